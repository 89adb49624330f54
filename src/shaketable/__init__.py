"""Measure, probe, attack and harden the robustness of search rankers.

Importing this does nothing but name things: no files, no network, no heavy library.
"""

from shaketable.errors import ShaketableError
from shaketable.registry import MEASURES, RANKERS, TASKS
from shaketable.types import Collection, Doc, Query, Result, Slate

__all__ = ["MEASURES", "RANKERS", "TASKS", "Collection", "Doc", "Query", "Result", "ShaketableError", "Slate"]
