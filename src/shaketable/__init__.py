"""Measure, probe, attack and harden the robustness of search rankers.

    import shaketable as st
    audit = st.audit("sample", rankers=["bm25", my_ranker], tasks=["risk"])

Importing this does nothing but name things: no files, no network, no library; each name is loaded when it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_PLACES = {
    "load": "shaketable.data.load",
    "audit": "shaketable.door.audit",
    "Audit": "shaketable.door.audit",
    "read_audit": "shaketable.door.audit",
    "compare": "shaketable.door.compare",
    "evaluate": "shaketable.door.evaluate",
    "probe": "shaketable.door.probe",
    "attack": "shaketable.door.attack",
    "parity": "shaketable.door.parity",
    "rank": "shaketable.door.rank",
    "vary": "shaketable.door.vary",
    "train": "shaketable.door.train",
    "train_kinds": "shaketable.door.train_kinds",
    "workers": "shaketable.door.workers",
    "Bench": "shaketable.bench",
    "Collection": "shaketable.types",
    "Doc": "shaketable.types",
    "Query": "shaketable.types",
    "Slate": "shaketable.types",
    "Finding": "shaketable.types",
    "Result": "shaketable.types",
    "ShaketableError": "shaketable.errors",
    "RANKERS": "shaketable.registry",
    "LEARNERS": "shaketable.registry",
    "EDITS": "shaketable.registry",
    "MEASURES": "shaketable.registry",
    "TASKS": "shaketable.registry",
    "PROBES": "shaketable.registry",
    "ATTACKS": "shaketable.registry",
}

__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"shaketable has no {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return __all__


if TYPE_CHECKING:  # by their own names, so that type checkers let others have them
    from shaketable.bench import Bench as Bench
    from shaketable.data.load import load as load
    from shaketable.door.attack import attack as attack
    from shaketable.door.audit import Audit as Audit
    from shaketable.door.audit import audit as audit
    from shaketable.door.audit import read_audit as read_audit
    from shaketable.door.compare import compare as compare
    from shaketable.door.evaluate import evaluate as evaluate
    from shaketable.door.parity import parity as parity
    from shaketable.door.probe import probe as probe
    from shaketable.door.rank import rank as rank
    from shaketable.door.train import train as train
    from shaketable.door.train_kinds import train_kinds as train_kinds
    from shaketable.door.vary import vary as vary
    from shaketable.door.workers import workers as workers
    from shaketable.errors import ShaketableError as ShaketableError
    from shaketable.registry import ATTACKS as ATTACKS
    from shaketable.registry import EDITS as EDITS
    from shaketable.registry import LEARNERS as LEARNERS
    from shaketable.registry import MEASURES as MEASURES
    from shaketable.registry import PROBES as PROBES
    from shaketable.registry import RANKERS as RANKERS
    from shaketable.registry import TASKS as TASKS
    from shaketable.types import Collection as Collection
    from shaketable.types import Doc as Doc
    from shaketable.types import Finding as Finding
    from shaketable.types import Query as Query
    from shaketable.types import Result as Result
    from shaketable.types import Slate as Slate
