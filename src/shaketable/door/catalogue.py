"""What there is to choose from: a line on each row of a catalogue, and on what it lacks on this machine."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections.abc import Callable
from typing import Any

from shaketable.edit.taxonomy import DOCUMENT
from shaketable.errors import BadInput
from shaketable.extras import has, installed, libraries
from shaketable.registry import (
    ATTACKS,
    CONSTRAINTS,
    DEFENCES,
    DETECTORS,
    EDITS,
    GOALS,
    LEARNERS,
    MEASURES,
    PROBES,
    RANKERS,
    SYNONYMS,
    TASKS,
    WRITERS,
    Catalogue,
    described,
)
from shaketable.text.resources import PACKAGED, has_weights, model_places, resources

WEIGHTS = ("checkpoint", "expander")
"""The settings that name pretrained weights."""


def listed(kind: str) -> dict[str, str]:
    """What there is of a kind, such as "rankers": name -> a line on what it is."""
    return LISTS[kind]()


def parameters(kind: str, name: str) -> dict[str, str]:
    """The parameters of one thing of a kind: name -> what it is, its default, and an example.

    >>> parameters("rankers", "bm25")["k1"]
    'A number. By default 1.2. Example: bm25(k1=1.2)'
    """
    catalogue = CATALOGUES.get(kind)
    if catalogue is None:
        raise BadInput(f"{kind} have no parameters to list; these have some: {', '.join(CATALOGUES)}")
    name = name if name in catalogue else name.replace("-", "_")
    make = catalogue.class_of(name)
    fields = [field for field in dataclasses.fields(make) if field.init] if dataclasses.is_dataclass(make) else []
    needed = [field for field in fields if _default(field) is dataclasses.MISSING]
    always = [f"{field.name}={field.metadata.get('example', '...')!r}" for field in needed]
    return {name: _line(catalogue, name)} | {
        field.name: _parameter(catalogue, make, field, lambda given: f"{name}({', '.join([*always, *given])})")
        for field in fields
    }


def _parameter(
    catalogue: Catalogue, make: type[Any], field: dataclasses.Field[Any], spec: Callable[[list[str]], str]
) -> str:
    """What its class says of it, or else its type; the default; and an example, its class's own or the default."""
    said = field.metadata.get("says") or _documented(make).get(field.name)
    says = said or described(typing.get_type_hints(make).get(field.name, Any))
    says = says[:1].upper() + says[1:]
    default = _default(field)
    if default is dataclasses.MISSING:
        return f"{says.rstrip('.')}. It must be given. Example: {spec([])}"
    text = catalogue.spec(default) if dataclasses.is_dataclass(default) else repr(default)
    example = field.metadata.get("example") or f"{field.name}={text}"
    return f"{says.rstrip('.')}. By default {text}. Example: {spec([example])}"


def _documented(make: type[Any]) -> dict[str, str]:
    """What the docstring of a class says of its settings, in lines such as "goal   promote or demote".

    >>> from shaketable.task.substitution import Substitution
    >>> _documented(Substitution)["goal"]
    'promote, demote, or top(k=10)'
    """
    rows: dict[str, str] = {}
    for line in inspect.getdoc(make).splitlines() if make.__doc__ else ():  # type: ignore[union-attr]
        if row := re.match(r"(\w+) {2,}(\S.*)", line):
            rows[row[1]] = row[2]
        elif rows and line.startswith("    "):
            rows[next(reversed(rows))] += f" {line.strip()}"
    return rows


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def lacking(make: type[Any]) -> str:
    """What is missing to open or to train a thing by its defaults, and where it would be looked for; "" if nothing is.

    It is told by a class's `extra` and by the setting that names pretrained weights. No library is imported.
    """
    missing = []
    extra = getattr(make, "extra", "")
    if extra and not has(extra):
        absent = ", ".join(name for name in libraries()[extra] if not installed(name))
        missing.append(f"needs libraries that are not installed ({absent}): pip install 'shaketable[{extra}]'")
    fields = dataclasses.fields(make) if dataclasses.is_dataclass(make) else ()
    for name in (field.default for field in fields if field.name in WEIGHTS):
        if isinstance(name, str) and name not in PACKAGED and not has_weights(name):  # a package is part of its extra
            places = ", ".join(map(str, model_places(name)))
            missing.append(f"needs the weights {name}, which were looked for at {places}: hf download {name}")
    return "; it ".join(missing)


def _rows(catalogue: Catalogue) -> dict[str, str]:
    return {name: _line(catalogue, name) for name in catalogue}


def _line(catalogue: Catalogue, name: str) -> str:
    """What a thing is, and what it lacks."""
    try:
        missing = lacking(catalogue.class_of(name))
    except BadInput:  # a row of another package; its summary says why it cannot be had
        missing = ""
    return f"{catalogue.summary(name)} It {missing}" if missing else catalogue.summary(name)


def _rankers() -> dict[str, str]:
    """Rankers, and below them those that must be trained first."""
    return _rows(RANKERS) | {f"train {name}": line for name, line in _rows(LEARNERS).items()}


def _learners() -> dict[str, str]:
    """Learners, and below them the writers."""
    return _rows(LEARNERS) | {name: f"A writer. {line}" for name, line in _rows(WRITERS).items()}


def _edits() -> dict[str, str]:
    """Edits of queries, and those of documents, which say so."""
    lines = {name: EDITS.summary(name) for name in EDITS}
    return {
        name: f"For documents, not queries. {line}" if _edits_documents(name) else line for name, line in lines.items()
    }


def _edits_documents(name: str) -> bool:
    try:
        return getattr(EDITS.class_of(name), "category", "") == DOCUMENT
    except BadInput:
        return False


def _measures() -> dict[str, str]:
    """Measures of one query's list, by example, and the others."""
    from shaketable.measure.effectiveness import EXAMPLES

    return {**EXAMPLES, **_rows(MEASURES)}


def _data() -> dict[str, str]:
    from shaketable.data.load import SOURCES

    return dict(SOURCES)


def _resources() -> dict[str, str]:
    return {
        r.name: f"It was found at {r.where}." if r.found else f"It is not at {r.where}; {r.advice}" for r in resources()
    }


CATALOGUES = {
    "rankers": RANKERS,
    "tasks": TASKS,
    "probes": PROBES,
    "recipes": ATTACKS,
    "goals": GOALS,
    "constraints": CONSTRAINTS,
    "detectors": DETECTORS,
    "defences": DEFENCES,
    "synonyms": SYNONYMS,
    "edits": EDITS,
    "learners": LEARNERS,
}
"""What has parameters."""

LISTS: dict[str, Callable[[], dict[str, str]]] = {
    "rankers": _rankers,
    "tasks": lambda: _rows(TASKS),
    "probes": lambda: _rows(PROBES),
    "recipes": lambda: _rows(ATTACKS),
    "goals": lambda: _rows(GOALS),
    "constraints": lambda: _rows(CONSTRAINTS),
    "detectors": lambda: _rows(DETECTORS),
    "defences": lambda: _rows(DEFENCES),
    "synonyms": lambda: _rows(SYNONYMS),
    "edits": _edits,
    "learners": _learners,
    "measures": _measures,
    "data": _data,
    "resources": _resources,
}
"""What can be listed."""
