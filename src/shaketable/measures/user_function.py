"""Measures defined by a user's function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from shaketable.core.errors import BadInput
from shaketable.core.import_object import import_object


@dataclass(frozen=True)
class FunctionMeasure:
    """Your own function of one query's list, written MODULE:FUNCTION: f(docno -> grade, docnos best first)."""

    target: str

    def __str__(self) -> str:
        return self.target

    def value(self, grades: Mapping[str, int], ranking: Sequence[str]) -> float:
        """Return the value of the function; raise `BadInput` if it is not a finite number."""
        try:
            value = float(import_object(self.target)(dict(grades), list(ranking)))
        except BadInput:
            raise
        except Exception as error:
            raise BadInput(f"the measure {self.target} failed: {type(error).__name__}: {error}") from error
        if not isfinite(value):
            raise BadInput(f"the measure {self.target} returned {value}, which is not a finite number")
        return value
