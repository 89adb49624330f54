"""A check that two audits are comparable, so that a difference between them is due to the rankers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shaketable.core.errors import NotComparable, truncate

PROVENANCE_PARTS: Mapping[str, str] = {
    "data": "the collection, its split, or the number of its queries",
    "lists": "the first stage, or the number of ranked documents",
    "tasks": "the tasks or their settings",
    "seed": "the seed of all random numbers",
}
"""The parts of an audit's provenance that must agree, and their meaning."""

FULL_EFFORT = "full"
"""The effort of an audit without a budget."""
Provenance = Mapping[str, Any]


def check_comparable(
    old: Provenance, new: Provenance, names: tuple[str, str], allow_mismatch: Iterable[str] = ()
) -> None:
    """Raise an error if two audits differ in a part of `PROVENANCE_PARTS` that is not in `allow_mismatch`."""
    allowed = set(allow_mismatch)
    differ = [
        f"{part} ({difference})"
        for part in PROVENANCE_PARTS
        if part not in allowed
        and (difference := _describe_difference(_identify_part(part, old), _identify_part(part, new)))
    ]
    if differ:
        raise NotComparable(
            f"{names[0]} and {names[1]} differ in {' and in '.join(differ)}, so a difference between them may not be "
            "due to the rankers; to compare them nevertheless, add --allow-mismatch "
            f"{' --allow-mismatch '.join(one.partition(' ')[0] for one in differ)}"
        )


def _identify_part(part: str, provenance: Provenance) -> dict[str, Any]:
    """Return the values that identify a part of an audit."""
    collection = provenance.get("collection", {})
    match part:
        case "data":
            said = {name: collection.get(name) for name in ("name", "split", "queries", "fingerprint")}
            return {"limit": provenance.get("limit"), **said}
        case "lists":
            return {name: provenance.get(name) for name in ("first stage", "depth", "ranked")}
        case "tasks":
            # the samples of two budgets may differ, because findings are compared on common queries
            effort = provenance.get("plan", {}).get("effort", FULL_EFFORT)
            return {"tasks": ", ".join(provenance.get("tasks", ())), "effort of the budget": effort}
    return {"seed": provenance.get("seed")}


def _describe_difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Describe the first difference."""
    for name, value in old.items():
        if value != new[name]:
            return f"{name}: {truncate(str(value))} and {truncate(str(new[name]))}"
    return ""
