"""Measure, probe, attack and harden the robustness of search rankers.

    import shaketable as st
    audit = st.audit("sample", rankers=["bm25", my_ranker], tasks=["risk"])

Importing this package reads no files, uses no network and loads no libraries; each name is loaded on first use.
docs/extending.md shows how to write your own rankers, transforms, probes, recipes, tasks and measures with these names.
"""

from __future__ import annotations

import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0.dev0"
"""The only place with the version: pyproject.toml, `--version` and results read it."""

IMPORT_TIME_S = time.time()
"""A source file that was changed later may differ from the code that this process imported from it."""

_MODULES = {
    "load": "shaketable.datasets.load",
    "audit": "shaketable.api.audit",
    "Audit": "shaketable.api.audit",
    "read_audit": "shaketable.api.audit",
    "board": "shaketable.api.board",
    "compare": "shaketable.api.compare",
    "demo": "shaketable.api.demo",
    "evaluate": "shaketable.api.evaluate",
    "probe": "shaketable.api.probe",
    "attack": "shaketable.api.attack",
    "parity": "shaketable.api.parity",
    "rank": "shaketable.api.rank",
    "to_pyterrier": "shaketable.api.pyterrier",
    "vary": "shaketable.api.vary",
    "view": "shaketable.api.view",
    "train": "shaketable.api.train",
    "watch": "shaketable.api.watch",
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
    # the types that extensions of users are written with; docs/extending.md
    "AttackerKnowledge": "shaketable.attacks.knowledge",
    "Target": "shaketable.attacks.target",
    "Attack": "shaketable.core.attack_types",
    "AttackCase": "shaketable.core.attack_types",
    "AttackSteps": "shaketable.core.attack_types",
    "Constraint": "shaketable.core.attack_types",
    "ConstraintCheck": "shaketable.core.attack_types",
    "Detector": "shaketable.core.attack_types",
    "Goal": "shaketable.core.attack_types",
    "ModelQuery": "shaketable.core.attack_types",
    "RankQuery": "shaketable.core.attack_types",
    "Recipe": "shaketable.core.attack_types",
    "Suspicion": "shaketable.core.attack_types",
    "TargetRanking": "shaketable.core.attack_types",
    "BadInput": "shaketable.core.errors",
    "ChangeMeasure": "shaketable.core.protocols",
    "Defence": "shaketable.core.protocols",
    "Learner": "shaketable.core.protocols",
    "ListMeasure": "shaketable.core.protocols",
    "Model": "shaketable.core.protocols",
    "Probe": "shaketable.core.protocols",
    "Ranker": "shaketable.core.protocols",
    "Retriever": "shaketable.core.protocols",
    "Skipped": "shaketable.core.protocols",
    "SpreadMeasure": "shaketable.core.protocols",
    "Task": "shaketable.core.protocols",
    "TextPair": "shaketable.core.protocols",
    "Transform": "shaketable.core.protocols",
    "TransformContext": "shaketable.core.protocols",
    "CONSTRAINTS": "shaketable.core.registries",
    "DEFENCES": "shaketable.core.registries",
    "DETECTORS": "shaketable.core.registries",
    "GOALS": "shaketable.core.registries",
    "LIST_SOURCES": "shaketable.core.registries",
    "OBJECTIVES": "shaketable.core.registries",
    "SYNONYMS": "shaketable.core.registries",
    "WRITERS": "shaketable.core.registries",
    "Example": "shaketable.core.results",
    "Figure": "shaketable.core.results",
    "bootstrap_interval": "shaketable.measures.significance",
    "ItemRandom": "shaketable.core.seeding",
    "make_item_rng": "shaketable.core.seeding",
    "SynonymSource": "shaketable.nlp.synonyms",
    "JudgedDoc": "shaketable.probes.context",
    "ProbeContext": "shaketable.probes.context",
    "TrainingPlan": "shaketable.training.plan",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        from shaketable.core.deprecation import PYTHON_NAME, resolve_name

        if (current := resolve_name(PYTHON_NAME, name)) not in _MODULES:
            raise AttributeError(f"shaketable has no {name!r}")
        name = current
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__


if TYPE_CHECKING:  # `as` marks the names as exported for type checkers
    from shaketable.api.attack import attack as attack
    from shaketable.api.audit import Audit as Audit
    from shaketable.api.audit import audit as audit
    from shaketable.api.audit import read_audit as read_audit
    from shaketable.api.board import board as board
    from shaketable.api.compare import compare as compare
    from shaketable.api.demo import demo as demo
    from shaketable.api.evaluate import evaluate as evaluate
    from shaketable.api.parity import parity as parity
    from shaketable.api.probe import probe as probe
    from shaketable.api.pyterrier import to_pyterrier as to_pyterrier
    from shaketable.api.rank import rank as rank
    from shaketable.api.train import train as train
    from shaketable.api.vary import vary as vary
    from shaketable.api.view import view as view
    from shaketable.api.watch import watch as watch
    from shaketable.api.workers import make_executor as make_executor
    from shaketable.attacks.knowledge import AttackerKnowledge as AttackerKnowledge
    from shaketable.attacks.target import Target as Target
    from shaketable.core.attack_types import Attack as Attack
    from shaketable.core.attack_types import AttackCase as AttackCase
    from shaketable.core.attack_types import AttackSteps as AttackSteps
    from shaketable.core.attack_types import Constraint as Constraint
    from shaketable.core.attack_types import ConstraintCheck as ConstraintCheck
    from shaketable.core.attack_types import Detector as Detector
    from shaketable.core.attack_types import Goal as Goal
    from shaketable.core.attack_types import ModelQuery as ModelQuery
    from shaketable.core.attack_types import RankQuery as RankQuery
    from shaketable.core.attack_types import Recipe as Recipe
    from shaketable.core.attack_types import Suspicion as Suspicion
    from shaketable.core.attack_types import TargetRanking as TargetRanking
    from shaketable.core.documents import Collection as Collection
    from shaketable.core.documents import Doc as Doc
    from shaketable.core.documents import Query as Query
    from shaketable.core.documents import Slate as Slate
    from shaketable.core.errors import BadInput as BadInput
    from shaketable.core.errors import ShaketableError as ShaketableError
    from shaketable.core.protocols import ChangeMeasure as ChangeMeasure
    from shaketable.core.protocols import Defence as Defence
    from shaketable.core.protocols import Learner as Learner
    from shaketable.core.protocols import ListMeasure as ListMeasure
    from shaketable.core.protocols import Model as Model
    from shaketable.core.protocols import Probe as Probe
    from shaketable.core.protocols import Ranker as Ranker
    from shaketable.core.protocols import Retriever as Retriever
    from shaketable.core.protocols import Skipped as Skipped
    from shaketable.core.protocols import SpreadMeasure as SpreadMeasure
    from shaketable.core.protocols import Task as Task
    from shaketable.core.protocols import TextPair as TextPair
    from shaketable.core.protocols import Transform as Transform
    from shaketable.core.protocols import TransformContext as TransformContext
    from shaketable.core.registries import CONSTRAINTS as CONSTRAINTS
    from shaketable.core.registries import DEFENCES as DEFENCES
    from shaketable.core.registries import DETECTORS as DETECTORS
    from shaketable.core.registries import GOALS as GOALS
    from shaketable.core.registries import LEARNERS as LEARNERS
    from shaketable.core.registries import LIST_SOURCES as LIST_SOURCES
    from shaketable.core.registries import MEASURES as MEASURES
    from shaketable.core.registries import OBJECTIVES as OBJECTIVES
    from shaketable.core.registries import PROBES as PROBES
    from shaketable.core.registries import RANKERS as RANKERS
    from shaketable.core.registries import RECIPES as RECIPES
    from shaketable.core.registries import SYNONYMS as SYNONYMS
    from shaketable.core.registries import TASKS as TASKS
    from shaketable.core.registries import TRANSFORMS as TRANSFORMS
    from shaketable.core.registries import WRITERS as WRITERS
    from shaketable.core.results import Example as Example
    from shaketable.core.results import Figure as Figure
    from shaketable.core.results import Finding as Finding
    from shaketable.core.results import Result as Result
    from shaketable.core.seeding import ItemRandom as ItemRandom
    from shaketable.core.seeding import make_item_rng as make_item_rng
    from shaketable.datasets.load import load as load
    from shaketable.experiment import Experiment as Experiment
    from shaketable.measures.significance import bootstrap_interval as bootstrap_interval
    from shaketable.nlp.synonyms import SynonymSource as SynonymSource
    from shaketable.probes.context import JudgedDoc as JudgedDoc
    from shaketable.probes.context import ProbeContext as ProbeContext
    from shaketable.training.plan import TrainingPlan as TrainingPlan
