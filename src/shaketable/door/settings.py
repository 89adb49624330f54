"""A file of settings, shaketable.toml: the flags of an audit, for a folder where the same one is made again and again.

Each key is a flag without its dashes; a flag that may be repeated takes a list. What stands on the command line wins.
An audit writes the flags that make it again beside its results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shaketable.door.names import several
from shaketable.errors import BadInput, UnknownName, quoted
from shaketable.files import written_whole
from shaketable.registry import RANKERS, TASKS
from shaketable.report.toml import read_toml, toml_text
from shaketable.types import Collection, Model, Task

SETTINGS = "shaketable.toml"
KINDS: Mapping[str, tuple[type, ...]] = {
    "a text": (str,),
    "a whole number": (int,),
    "a number": (int, float),
    "true or false": (bool,),
}


@dataclass(frozen=True)
class Flag:
    """A flag of a command: what its values are, one of `KINDS`, and whether it may be repeated."""

    kind: str
    several: bool = False


def read_settings(path: Path, flags: Mapping[str, Flag]) -> dict[str, Any]:
    """The flags that a file of settings sets; whatever is no flag, or no value for it, is an error."""
    given = read_toml(path)
    for name, value in given.items():
        if name not in flags:
            raise BadInput(str(UnknownName("setting", name, flags)), path)
        flag = flags[name]
        values = value if flag.several and isinstance(value, list) else [value]
        if not all(_is_a(flag.kind, one) for one in values):
            wanted = f"{flag.kind}, or a list of such" if flag.several else flag.kind
            raise BadInput(f"{name} should be {wanted}, not {quoted(value)}", path)
    return {
        name: [value] if flags[name].several and not isinstance(value, list) else value for name, value in given.items()
    }


def write_settings(path: Path, settings: Mapping[str, Any]) -> None:
    """Write the flags that make an audit again."""
    with written_whole(path) as out:
        out.write(f"# What made the audit in this folder: shaketable audit --config {SETTINGS}\n")
        out.write(f"# Paths are as they were seen from {Path.cwd()}\n{toml_text(settings)}\n")


def settings_of(
    data: str | Path | Collection,
    rankers: Any,
    models: Mapping[str, Model],
    tasks: Iterable[Task],
    others: Mapping[str, Any],
) -> dict[str, Any]:
    """The flags that make an audit again; none if something of it is in memory only, and no text can say it.

    Rankers are named as the user did; those that nobody named by what was taken instead.
    """
    source = data.source if isinstance(data, Collection) else str(data)
    texts = list(rankers.values()) if isinstance(rankers, Mapping) else several(rankers)
    if not source or not all(isinstance(text, str | Path) for text in texts):
        return {}
    if isinstance(rankers, Mapping) and rankers:
        written = [f"{name}={text}" for name, text in rankers.items()]
    else:
        written = [str(text) for text in texts] or [_named(name, RANKERS.spec(model)) for name, model in models.items()]
    return {
        "data": source,
        "ranker": written,
        "task": [TASKS.spec(task) for task in tasks],
        **{name: str(value) if isinstance(value, Path) else value for name, value in others.items() if value != ""},
    }


def _named(name: str, spec: str) -> str:
    return spec if name == spec else f"{name}={spec}"


def _is_a(kind: str, value: Any) -> bool:
    return isinstance(value, KINDS[kind]) and (isinstance(value, bool) == (KINDS[kind] == (bool,)))
