"""The settings file shaketable.toml, which holds the flags of an audit.

Each key is a flag without its dashes; a repeatable flag takes a list. Flags on the command line override the file. An
audit writes the flags that repeat it next to its results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shaketable.api.options import CollectionLike, ExperimentOptions
from shaketable.api.ranker_names import Rankers, as_list
from shaketable.core.documents import Collection
from shaketable.core.errors import BadInput, UnknownName, quote_value
from shaketable.core.protocols import Task
from shaketable.core.registries import RANKERS, TASKS
from shaketable.experiment import Experiment
from shaketable.files.atomic import atomic_write
from shaketable.report.toml import read_toml, to_toml

SETTINGS_FILE = "shaketable.toml"
VALUE_TYPES: Mapping[str, tuple[type, ...]] = {
    "a text": (str,),
    "a whole number": (int,),
    "a number": (int, float),
    "true or false": (bool,),
}


@dataclass(frozen=True)
class FlagType:
    """The type of a flag's values, one of `VALUE_TYPES`, and whether the flag may be repeated."""

    value_type: str
    repeatable: bool = False


def read_settings(path: Path, flags: Mapping[str, FlagType]) -> dict[str, Any]:
    """Return the flags of a settings file; an unknown flag or a value of the wrong type is an error."""
    given = read_toml(path)
    for name, value in given.items():
        if name not in flags:
            raise BadInput(str(UnknownName("setting", name, flags)), path)
        flag = flags[name]
        values = value if flag.repeatable and isinstance(value, list) else [value]
        if not all(_has_type(flag.value_type, one) for one in values):
            wanted = f"{flag.value_type}, or a list of such" if flag.repeatable else flag.value_type
            raise BadInput(f"{name} should be {wanted}, not {quote_value(value)}", path)
    return {
        name: [value] if flags[name].repeatable and not isinstance(value, list) else value
        for name, value in given.items()
    }


def write_settings(path: Path, settings: Mapping[str, Any]) -> None:
    """Write the flags that repeat an audit."""
    with atomic_write(path) as out:
        out.write(f"# The settings of the audit in this folder: shaketable audit --config {SETTINGS_FILE}\n")
        out.write(f"# Relative paths start at {Path.cwd()}\n{to_toml(settings)}\n")


def collect_settings(
    data: CollectionLike, rankers: Rankers, experiment: Experiment, tasks: Iterable[Task], options: ExperimentOptions
) -> dict[str, Any]:
    """Return the flags that repeat an audit; none if the collection or a ranker is in memory only.

    Rankers have the names that the user gave; without any, they are those of the experiment.
    """
    source = data.source if isinstance(data, Collection) else str(data)
    texts = list(rankers.values()) if isinstance(rankers, Mapping) else as_list(rankers)
    if not source or not all(isinstance(text, str | Path) for text in texts):
        return {}
    if isinstance(rankers, Mapping) and rankers:
        written = [f"{name}={text}" for name, text in rankers.items()]
    else:
        written = [str(text) for text in texts] or [
            _join_name(name, RANKERS.spec(model)) for name, model in experiment.models.items()
        ]
    used = {
        "split": options.get("split"),
        "split_ratio": options.get("split_ratio") or None,
        "query_types": options.get("query_types"),
        "candidates": options.get("candidates"),
        "first_stage": experiment.first_stage,
        "depth": experiment.depth,
        "max_queries": experiment.limit,
        "seed": experiment.seed,
        "keep_going": experiment.engine.keep_going,
    }
    return {
        "data": source,
        "ranker": written,
        "task": [TASKS.spec(task, paths=True) for task in tasks],
        **{name.replace("_", "-"): str(value) if isinstance(value, Path) else value for name, value in used.items()},
    }


def _join_name(name: str, spec: str) -> str:
    return spec if name == spec else f"{name}={spec}"


def _has_type(kind: str, value: Any) -> bool:
    return isinstance(value, VALUE_TYPES[kind]) and (isinstance(value, bool) == (VALUE_TYPES[kind] == (bool,)))
