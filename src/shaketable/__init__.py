"""Measure, probe, attack and harden the robustness of search rankers.

    import shaketable as st
    audit = st.audit("sample", rankers=["bm25", my_ranker], tasks=["risk"])

Importing this package reads no files, uses no network and loads no libraries; each name is loaded on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_MODULES = {
    "load": "shaketable.datasets.load",
    "audit": "shaketable.api.audit",
    "Audit": "shaketable.api.audit",
    "read_audit": "shaketable.api.audit",
    "compare": "shaketable.api.compare",
    "evaluate": "shaketable.api.evaluate",
    "probe": "shaketable.api.probe",
    "attack": "shaketable.api.attack",
    "parity": "shaketable.api.parity",
    "rank": "shaketable.api.rank",
    "vary": "shaketable.api.vary",
    "train": "shaketable.api.train",
    "make_executor": "shaketable.api.workers",
    "Experiment": "shaketable.experiment",
    "Collection": "shaketable.core.documents",
    "Doc": "shaketable.core.documents",
    "Query": "shaketable.core.documents",
    "Slate": "shaketable.core.documents",
    "Finding": "shaketable.core.results",
    "Result": "shaketable.core.results",
    "ShaketableError": "shaketable.core.errors",
    "RANKERS": "shaketable.core.registries",
    "LEARNERS": "shaketable.core.registries",
    "TRANSFORMS": "shaketable.core.registries",
    "MEASURES": "shaketable.core.registries",
    "TASKS": "shaketable.core.registries",
    "PROBES": "shaketable.core.registries",
    "RECIPES": "shaketable.core.registries",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"shaketable has no {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__


if TYPE_CHECKING:  # `as` marks the names as exported for type checkers
    from shaketable.api.attack import attack as attack
    from shaketable.api.audit import Audit as Audit
    from shaketable.api.audit import audit as audit
    from shaketable.api.audit import read_audit as read_audit
    from shaketable.api.compare import compare as compare
    from shaketable.api.evaluate import evaluate as evaluate
    from shaketable.api.parity import parity as parity
    from shaketable.api.probe import probe as probe
    from shaketable.api.rank import rank as rank
    from shaketable.api.train import train as train
    from shaketable.api.vary import vary as vary
    from shaketable.api.workers import make_executor as make_executor
    from shaketable.core.documents import Collection as Collection
    from shaketable.core.documents import Doc as Doc
    from shaketable.core.documents import Query as Query
    from shaketable.core.documents import Slate as Slate
    from shaketable.core.errors import ShaketableError as ShaketableError
    from shaketable.core.registries import LEARNERS as LEARNERS
    from shaketable.core.registries import MEASURES as MEASURES
    from shaketable.core.registries import PROBES as PROBES
    from shaketable.core.registries import RANKERS as RANKERS
    from shaketable.core.registries import RECIPES as RECIPES
    from shaketable.core.registries import TASKS as TASKS
    from shaketable.core.registries import TRANSFORMS as TRANSFORMS
    from shaketable.core.results import Finding as Finding
    from shaketable.core.results import Result as Result
    from shaketable.datasets.load import load as load
    from shaketable.experiment import Experiment as Experiment
