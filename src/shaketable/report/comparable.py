"""What two audits must have in common, or else a difference between them says nothing of the rankers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shaketable.errors import NotComparable, cut

PARTS: Mapping[str, str] = {
    "data": "the collection, its split, or how many of its queries were taken",
    "lists": "the first stage, or how many documents were ranked",
    "tasks": "the tasks or their settings",
    "seed": "the seed of all chance",
}
"""The parts of an audit's provenance that count, and what each of them is."""

Provenance = Mapping[str, Any]


def check_comparable(old: Provenance, new: Provenance, names: tuple[str, str], despite: Iterable[str] = ()) -> None:
    """Refuse two audits that differ in one of `PARTS`, but for those that are named."""
    allowed = set(despite)
    differ = [
        f"{part} ({told})"
        for part in PARTS
        if part not in allowed and (told := _difference(_known_by(part, old), _known_by(part, new)))
    ]
    if differ:
        raise NotComparable(
            f"{names[0]} and {names[1]} differ in {' and in '.join(differ)}, so that a difference between them says "
            "nothing of the rankers; 'compare' takes --despite "
            f"{' --despite '.join(one.partition(' ')[0] for one in differ)} to compare them all the same"
        )


def _known_by(part: str, provenance: Provenance) -> dict[str, Any]:
    """What a part of an audit is known by."""
    collection = provenance.get("collection", {})
    match part:
        case "data":
            said = {name: collection.get(name) for name in ("name", "split", "queries", "fingerprint")}
            return {"limit": provenance.get("limit"), **said}
        case "lists":
            return {name: provenance.get(name) for name in ("first stage", "depth", "ranked")}
        case "tasks":
            return {"tasks": ", ".join(provenance.get("tasks", ()))}
    return {"seed": provenance.get("seed")}


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """The first thing that differs, in words."""
    for name, value in old.items():
        if value != new[name]:
            return f"{name}: {cut(str(value))} and {cut(str(new[name]))}"
    return ""
