"""The effort of an audit: the settings of tasks that save pairs and still decide every facet of the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from shaketable.api.options import DEFAULT_DEPTH
from shaketable.core.protocols import Task
from shaketable.experiment import Experiment
from shaketable.tasks.consistency import Consistency
from shaketable.tasks.document_attack import DocumentAttack
from shaketable.tasks.fusion import Fusion
from shaketable.tasks.probes import ProbesTask, select_verdict_probes
from shaketable.tasks.prompt_wording import PromptWording
from shaketable.tasks.query_typos import FACETS_BY_ATTACK, QueryTypos
from shaketable.tasks.query_variation import QueryVariation, select_verdict_transforms

FUSION_REASON = "it has no facet in the verdict, and the budget is short; add --task fusion or --budget none"
VERDICT_TYPOS = tuple(f"{name}_noise" for name in ("char", "word"))
assert len(VERDICT_TYPOS) == len(FACETS_BY_ATTACK)

Settings = Mapping[type, Mapping[str, Any | Callable[[], Any]]]


@dataclass(frozen=True)
class Effort:
    """A level of effort: the largest depth of lists, and settings of tasks that replace the defaults.

    A function stands for a setting that depends on what is installed.
    """

    name: str
    description: str
    depth: int = DEFAULT_DEPTH
    settings: Settings | None = None

    def reduce(self, task: Task) -> Task:
        """Return a task with the settings of this effort; settings that you chose yourself are kept."""
        changes = (self.settings or {}).get(type(task), {})
        defaults = {one.name: one.default for one in fields(task)}  # type: ignore[arg-type]
        return replace(  # type: ignore[type-var]
            task,
            **{
                name: value() if callable(value) else value
                for name, value in changes.items()
                if getattr(task, name) == defaults[name]
            },
        )

    def select_depth(self, experiment: Experiment) -> int:
        """Return the depth of lists; a depth that is not the default is kept."""
        return self.depth if experiment.depth == DEFAULT_DEPTH else experiment.depth


def select_tasks(tasks: Iterable[Task], effort: Effort, named: bool) -> tuple[dict[Task, Task], dict[Task, str]]:
    """Return each task with its reduced form, and the tasks that are left out with the reasons.

    Tasks without a facet are left out, unless you `named` the tasks.
    """
    kept: dict[Task, Task] = {}
    left_out: dict[Task, str] = {}
    for task in tasks:
        if effort.settings is not None and isinstance(task, Fusion) and not named:
            left_out[task] = FUSION_REASON
        else:
            kept[task] = effort.reduce(task)
    return kept, left_out


def _make_settings(shortlist: int, documents: int, trials: int) -> Settings:
    return {
        Consistency: {"queries": 25, "shuffles": 1, "length": 20},
        QueryTypos: {"transforms": VERDICT_TYPOS, "draws": 1, "shortlist": shortlist},
        QueryVariation: {
            "transforms": select_verdict_transforms,
            "settings": ("verdict",),
            "depths": (),
            "shortlist": shortlist,
        },
        ProbesTask: {"probes": select_verdict_probes, "max_documents_per_query": documents},
        DocumentAttack: {"trials": trials, "list_trials": 4},
        PromptWording: {"queries": 25, "documents": shortlist},
    }


FULL = Effort("full", "all tables")
MEDIUM = Effort(
    "medium",
    "the tests of the verdict; changed queries rank the first 20 documents again",
    settings=_make_settings(20, 2, 16),
)
LOW = Effort(
    "low",
    "the tests of the verdict on lists of 30; changed queries rank the first 15 documents again",
    30,
    _make_settings(15, 1, 12),
)
EFFORTS = (FULL, MEDIUM, LOW)
