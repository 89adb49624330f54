"""Parsing of measures by name and type: of one query's list, of a ranker's queries, or of two rankings."""

from __future__ import annotations

from typing import Any

from shaketable.core.errors import BadInput, UnknownName
from shaketable.core.protocols import ChangeMeasure, ListMeasure, SpreadMeasure
from shaketable.core.registries import MEASURES
from shaketable.measures.measure_names import parse_measure

MEASURE_TYPES: dict[type[Any], tuple[str, str]] = {
    ListMeasure: ("a measure of one query's list", "nDCG@10"),
    SpreadMeasure: ("a measure of a ranker's queries", "vnap"),
    ChangeMeasure: ("a measure of two rankings", "rbo"),
}
"""The description of each measure type, and an example."""


def parse_change_measure(text: str) -> ChangeMeasure:
    """Return the measure of two rankings that a text names.

    >>> parse_change_measure("overlap(k=3)")
    Overlap(k=3)
    """
    measure: ChangeMeasure = _parse_measure_of_type(text, ChangeMeasure)
    return measure


def parse_spread_measure(text: str) -> SpreadMeasure:
    """Return the measure of a ranker's queries that a text names."""
    measure: SpreadMeasure = _parse_measure_of_type(text, SpreadMeasure)
    return measure


def _parse_measure_of_type(text: str, measure_type: type[Any]) -> Any:
    try:
        measure = MEASURES.build(text)
    except UnknownName:
        try:
            parse_measure(text)
        except (UnknownName, BadInput):
            raise UnknownName("measure", text, MEASURES) from None
        measure = None
    if isinstance(measure, measure_type):
        return measure
    found = next((k for k in MEASURE_TYPES if measure is not None and isinstance(measure, k)), ListMeasure)
    words, example = MEASURE_TYPES[measure_type]
    raise BadInput(f"{text} is {MEASURE_TYPES[found][0]}; expected {words}, such as {example}")
