"""Measures by name, of the kind that is wanted: of one query's list, of a ranker's queries, or of two rankings."""

from __future__ import annotations

from typing import Any

from shaketable.errors import BadInput, UnknownName
from shaketable.measure.effectiveness import parse
from shaketable.registry import MEASURES
from shaketable.types import ChangeMeasure, ListMeasure, SpreadMeasure

KINDS: dict[type[Any], tuple[str, str]] = {
    ListMeasure: ("a measure of one query's list", "nDCG@10"),
    SpreadMeasure: ("a measure of a ranker's queries", "vnap"),
    ChangeMeasure: ("a measure of two rankings", "rbo"),
}
"""What each kind is called, and an example."""


def change_measure(text: str) -> ChangeMeasure:
    """The measure of two rankings that a text names.

    >>> change_measure("overlap(k=3)")
    Overlap(k=3)
    """
    measure: ChangeMeasure = _wanted(text, ChangeMeasure)
    return measure


def spread_measure(text: str) -> SpreadMeasure:
    """The measure of a ranker's queries that a text names."""
    measure: SpreadMeasure = _wanted(text, SpreadMeasure)
    return measure


def _wanted(text: str, kind: type[Any]) -> Any:
    try:
        measure = MEASURES.build(text)
    except UnknownName:
        try:
            parse(text)
        except (UnknownName, BadInput):
            raise UnknownName("measure", text, MEASURES) from None
        measure = None
    if isinstance(measure, kind):
        return measure
    found = next((k for k in KINDS if measure is not None and isinstance(measure, k)), ListMeasure)
    words, example = KINDS[kind]
    raise BadInput(f"{text} is {KINDS[found][0]}; {words} is wanted here, such as {example}")
