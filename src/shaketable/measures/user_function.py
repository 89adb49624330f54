"""Measures of one query's list that a user or an installed package defines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from shaketable.core.errors import BadInput
from shaketable.core.import_object import import_object


@dataclass(frozen=True)
class FunctionMeasure:
    """Your own function of one query's list, written MODULE:FUNCTION: f(docno -> grade, docnos best first)."""

    target: str = field(
        metadata={
            "says": "The function: module:function or ./file.py:function.",
            "example": "./mine.py:first_is_relevant",
        }
    )

    def __str__(self) -> str:
        return self.target

    def value(self, grades: Mapping[str, int], ranking: Sequence[str]) -> float:
        """Return the value of the function; raise `BadInput` if it is not a finite number."""
        return _compute_value(self.target, lambda *given: import_object(self.target)(*given), grades, ranking)


@dataclass(frozen=True)
class InstalledMeasure:
    """A measure of an installed package: its spec, and the object with `value(grades, docnos)`."""

    spec: str
    measure: Any = field(compare=False)

    def __str__(self) -> str:
        return self.spec

    def value(self, grades: Mapping[str, int], ranking: Sequence[str]) -> float:
        """Return the value of the measure; raise `BadInput` if it is not a finite number."""
        return _compute_value(self.spec, self.measure.value, grades, ranking)


def _compute_value(name: str, function: Callable[..., Any], grades: Mapping[str, int], ranking: Sequence[str]) -> float:
    try:
        value = float(function(dict(grades), list(ranking)))
    except BadInput:
        raise
    except Exception as error:
        raise BadInput(f"the measure {name} failed: {type(error).__name__}: {error}") from error
    if not isfinite(value):
        raise BadInput(f"the measure {name} returned {value}, which is not a finite number")
    return value
