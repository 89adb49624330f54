"""The defence task: trains one learner with several defences and attacks each resulting ranker.

Liu, Zhang, Zhang, Chen, de Rijke, Guo, Cheng. Perturbation-invariant adversarial training for neural ranking models:
Improving the effectiveness-robustness trade-off. AAAI 2024 (paper 003): Table 1, Figure 1, and the number behind
Figure 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, product
from math import nan
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shaketable.attacks.setup import open_target, rank_attacked_lists, split_rank_range
from shaketable.core.attack_types import AdversarialDocument
from shaketable.core.documents import Doc, rank_docnos
from shaketable.core.errors import BadInput, NotApplicable, check_parameter
from shaketable.core.protocols import Model
from shaketable.core.registries import DEFENCES, LEARNERS
from shaketable.core.results import Result
from shaketable.datasets.splits import TRAIN
from shaketable.defences.piat import PIAT
from shaketable.defences.smoothing import SmoothedRanker
from shaketable.defences.training import plan_defended_training
from shaketable.executors.base import Job
from shaketable.measures.certificates import CERTIFICATE_CONDITIONS, conditional_success_rates, find_certified_queries
from shaketable.measures.effectiveness import score_tables
from shaketable.measures.paired_comparison import CORRECTED_INTERVAL_NOTE, query_means
from shaketable.measures.rank_distance import LSD
from shaketable.measures.significance import MIN_QUERIES
from shaketable.rankers.saved import SavedModel
from shaketable.tasks._attack_run import AttackRun
from shaketable.tasks._certifiable_lists import build_certifiable_lists
from shaketable.tasks._defence_tables import (
    ALL_QUERIES_COLUMN,
    BASELINE_DEFENCES,
    BETTER_COLUMN,
    BOOST_COLUMN,
    KEPT_STEP_COLUMN,
    MEASURES,
    SUCCESS_COLUMN,
    DefendedRanker,
    build_defence_figures,
    build_defence_findings,
    build_defence_row,
    build_trade_off,
    compare_with_baselines,
    mark_better,
    merge_notes,
)
from shaketable.tasks._representations import build_representation_map, displacement, represent_lists
from shaketable.training.neural import NeuralLearner

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.attacks.target import Target
    from shaketable.experiment import Experiment

CONDITIONAL_TABLE = "conditional success"
CERTIFIED_RANK = 10
"""The rank K of conditional success rates."""


@dataclass(frozen=True)
class DefenceTask:
    """Cost and benefit of defences: one learner is trained with each, and each resulting ranker is attacked.

    learner     a learner of neural rankers
    defences    the defences to train with; `shaketable list defences` shows them all
    recipe      the attack on each ranker: its own lists, its own targets
    targets     documents attacked in each list: ranks from 11 on are cut into this many ranges, one document from each
    queries     queries whose lists are attacked, drawn at random; 0 is all of them
    seeds       training seeds; the results are means over them, and the attacked queries stay the same
    lambdas     shares of the natural loss, between 0 and 1, to try with each piat among the defences

    The task trains on the split train and attacks the evaluated queries. Trained models are cached.
    """

    learner: str = "conv_knrm"
    defences: tuple[str, ...] = (
        "standard",
        "da",
        "at",
        "piat(loss='kl')",
        "piat(loss='listnet')",
        "piat(loss='listmle')",
    )
    recipe: str = "wsra"
    targets: int = 9
    queries: int = 30
    seeds: tuple[int, ...] = (0,)
    lambdas: tuple[float, ...] = ()

    needs_judgements: ClassVar[bool] = True
    needs_scoring: ClassVar[bool] = False
    opt_in: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_parameter("defence", bool(self.defences), "defences", "one or more", self.defences)
        check_parameter("defence", bool(self.seeds), "seeds", "one or more", self.seeds)
        for seed in self.seeds:
            check_parameter("defence", isinstance(seed, int) and seed >= 0, "seeds", "whole numbers, 0 or more", seed)
        for share in self.lambdas:
            check_parameter("defence", 0 <= share <= 1, "lambdas", "between 0 and 1", share)
        if not isinstance(LEARNERS.build(self.learner), NeuralLearner):
            raise BadInput(
                f"defence: defences need a neural learner, and {self.learner} is not one; use for example knrm"
            )
        hows = [DEFENCES.build(text) for text in self.defences]
        if self.lambdas and not any(isinstance(how, PIAT) for how in hows):
            raise BadInput(
                "defence: lambdas are the weights of the natural loss in piat, but piat is not among the defences"
            )
        self._build_attack()

    def run(self, experiment: Experiment) -> Result:
        import pandas as pd

        self._check_applicable(experiment)
        notes: list[str] = []
        swept = self._list_swept_specs()
        measured: list[DefendedRanker] = []
        texts = list(dict.fromkeys((*self.defences, *(text for some in swept.values() for text in some))))
        if experiment.engine.executor.max_concurrency > 1:
            self._train_all(experiment, texts)
        for text in texts:
            own_notes: list[str] = []
            try:
                measured += [self._measure_defence(experiment, text, seed, own_notes) for seed in self.seeds]
                notes += own_notes
            except BadInput as error:
                notes.append(f"{text} is left out: {error}.")
        if not measured:
            raise NotApplicable(f"no defence can be measured; {notes[0].removesuffix('.')}")
        groups: dict[str, list[DefendedRanker]] = {}
        for one in measured:
            groups.setdefault(one.defence, []).append(one)
        full = pd.DataFrame([build_defence_row(text, some, experiment.seed) for text, some in groups.items()])
        asked = full[full["defence"].isin(self.defences)]
        compared = compare_with_baselines({text: groups[text] for text in asked["defence"]}, experiment.seed)
        tables = {
            "defence": mark_better(asked, compared).reset_index(drop=True),
            "trade-off": build_trade_off(full, swept),
            "against the best baseline": compared,
            "defence by seed": pd.DataFrame(
                [{"defence": m.defence, "seed": m.seed} | dict(m.summary) for m in measured]
            ),
            "targets": pd.concat([m.targets.assign(seed=m.seed) for m in measured], ignore_index=True),
            CONDITIONAL_TABLE: pd.DataFrame([row for m in measured for row in m.conditional_rows]),
        }
        firsts = {text: groups[text][0].first_list for text in asked["defence"]}
        tables |= {f"map of {text}": build_representation_map(first) for text, first in firsts.items() if first}
        tables = {name: table for name, table in tables.items() if len(table)}
        return Result(
            "defence",
            "What does a defence cost in effectiveness, and what does it gain in robustness?",
            tables,
            tuple(build_defence_figures(tables)),
            (*merge_notes(dict.fromkeys(notes), list(groups)), *self._build_notes(tables)),
            tuple(build_defence_findings(tables["defence"])),
            failures=tuple(failure for one in measured for failure in one.result.failures),
            brief=("defence", "trade-off"),
            sources={"defence": "Liu et al. 2024, Table 1"},
            attacked=tuple(doc for one in measured for doc in one.result.attacked),
        )

    def _build_attack(self) -> AttackRun:
        """Return the attack on each ranker."""
        return AttackRun((self.recipe,), targets=self.targets, queries=self.queries, detectors=(), similarity=False)

    def _check_applicable(self, experiment: Experiment) -> None:
        """Raise the errors that can be detected before training."""
        split_rank_range(self.targets, experiment.depth)
        learned = {qid for part in experiment.resolve_query_ids(TRAIN, None) for qid in part}
        if both := [qid for qid in experiment.queries if qid in learned]:
            raise NotApplicable(
                f"{len(both)} of the {len(experiment.queries)} test queries are also training queries; name another "
                "split, such as --split test"
            )

    def _list_swept_specs(self) -> dict[str, list[str]]:
        """Return, for each piat, its specs with the lambdas to try; a spec among the defences keeps its text."""
        hows = {text: DEFENCES.build(text) for text in self.defences}
        known = {DEFENCES.spec(how): text for text, how in hows.items()}
        return {
            text: [known.get(spec := DEFENCES.spec(replace(how, lambda_=share)), spec) for share in self.lambdas]
            for text, how in hows.items()
            if isinstance(how, PIAT) and self.lambdas
        }

    def _train_all(self, experiment: Experiment, texts: Sequence[str]) -> None:
        """Train all defences in parallel; errors are reported when each defence is measured."""
        wanted: list[SavedModel | Job] = []
        for text, seed in product(texts, self.seeds):
            with suppress(BadInput):
                wanted.append(self._make_training_job(experiment, text, seed))
        with suppress(BadInput):
            experiment.run_jobs(wanted)

    def _make_training_job(self, experiment: Experiment, text: str, seed: int) -> SavedModel | Job:
        """Return the cached model of a defence, or its training job."""
        how, learner = DEFENCES.build(text), LEARNERS.build(self.learner)
        training_experiment = replace(experiment, models={}, seed=seed)
        plan = plan_defended_training(
            training_experiment, learner, how, None, TRAIN, None, None, 0, lambda message: None
        )
        return training_experiment.training_job(learner, plan=plan)

    def _measure_defence(self, experiment: Experiment, text: str, seed: int, notes: list[str]) -> DefendedRanker:
        """Train with a defence, attack the model, and measure the lists of each query before and after."""
        how = DEFENCES.build(text)
        (saved,) = experiment.run_jobs([self._make_training_job(experiment, text, seed)])
        card = saved.read_card()
        if card.get("best") == 0:
            notes.append(
                f"{text}: no training step improved the validation value, so the saved model is untrained. It is not "
                "compared with the others, even if attacks change it little."
            )
        smoothed = getattr(how, "smooth", None)
        model: Model = smoothed(saved.path, seed=seed) if smoothed else saved
        table = replace(experiment, models={text: model})
        result = self._build_attack().run(table)
        notes += [note for note in result.notes if note.startswith((f"{text}:", f"{text} gives"))]
        targets = result.tables["targets"]
        texts = {qid: table.texts[qid] for qid in dict.fromkeys(targets["query"])}
        target = open_target(table, text, texts, table.candidates)
        values = _measure_lists(table, text, target, targets, result.attacked)
        representations = represent_lists(table, text, target, result.attacked)
        first = next(representations, None)
        if first is None:
            notes.append(f"{text}: the score does not come from one linear layer, so it has no displacement.")
        attack, damage = (result.tables[name].to_dict("records")[0] for name in ("attack in full", "damage in full"))
        row = {str(key): value for key, value in (damage | attack).items() if key not in ("recipe", "ranker")}
        row |= {
            "displacement": displacement(chain(filter(None, [first]), representations)),
            "documents changed": len(result.attacked),
        }
        row |= {ALL_QUERIES_COLUMN: float(table.get_score_table("RR@10").values.mean())}
        row |= {
            "training s": card.get("seconds", nan),
            "steps": card.get("steps", nan),
            KEPT_STEP_COLUMN: card.get("best", nan),
        }
        conditional = tuple(_build_conditional_rows(table, text, targets)) if smoothed else ()
        return DefendedRanker(text, seed, values, targets, row, result, first, conditional)

    def _build_notes(self, tables: Mapping[str, pd.DataFrame]) -> Iterator[str]:
        count = int(tables["defence"]["queries"].max())
        yield (
            f"{self.learner} was trained on the split {TRAIN} with each defence, and each model was attacked by "
            f"{self.recipe}, in its own lists of {count} queries. 'clean' is before the attack, and 'robust' with all "
            "changed documents in the lists at once; RR is the reciprocal rank of the first relevant document."
        )
        yield (
            f"'{SUCCESS_COLUMN}' (attack success rate) is the percentage of attacked documents that rank strictly "
            f"higher than before, with the ends of its interval over queries, and '{BOOST_COLUMN}' the number of "
            "ranks that they gain on average; it still shows differences when nearly every attack succeeds. 'LSD' "
            "is the mean square of the ranks that documents moved."
        )
        yield (
            "'displacement' is the distance between a changed text and its original in the input of the last layer, "
            "divided by the mean distance between two documents of the list; it is the mean over all changed documents."
        )
        if CONDITIONAL_TABLE in tables:
            yield (
                f"The table '{CONDITIONAL_TABLE}' is about smoothed rankers. 'CSR@{CERTIFIED_RANK} %' is the "
                f"percentage of attacked documents from below rank {CERTIFIED_RANK} that the attack brings above it; "
                "the other columns count only queries whose lists are certified, by each type of certificate "
                "('--task certificate' explains them). The attack may use synonyms that the ranker is not smoothed "
                "against, so even certified lists may change."
            )
        if len(self.seeds) > 1:
            yield f"Each number is a mean over {len(self.seeds)} trainings; the table by seed has all of them."
        if "against the best baseline" in tables:
            yield (
                f"'{BETTER_COLUMN}' names the measures in which the defence differs significantly from the best of "
                f"those of {', '.join(BASELINE_DEFENCES)} that were measured (paired t-test over queries, corrected by "
                "Holm for all comparisons of the table). There, the 95 % interval ('low', 'high') of a change is "
                f"{CORRECTED_INTERVAL_NOTE}."
            )
        if count < MIN_QUERIES:
            yield f"There are fewer than {MIN_QUERIES} queries: nothing is marked as significant."


def _measure_lists(
    experiment: Experiment, name: str, target: Target, targets: pd.DataFrame, attacked: Sequence[AdversarialDocument]
) -> dict[str, dict[str, float]]:
    """Return measure -> query id -> value, for the lists before and after."""
    changed: dict[str, dict[str, Doc]] = {qid: {} for qid in targets["query"]}
    for one in attacked:
        for qid in one.queries:
            changed[qid][one.docno] = one.doc
    clean, robust = rank_attacked_lists(target, changed)
    judged = {qid: experiment.qrels[qid] for qid in robust}
    values: dict[str, dict[str, float]] = {}
    for table in score_tables(["RR@10", "RR@100"], judged, {"clean": clean, "robust": robust}):
        for system, row in zip(table.systems, table.values, strict=True):
            values[f"{system} {table.measure}"] = dict(zip(table.topics, row.tolist(), strict=True))
    values[SUCCESS_COLUMN] = query_means(list(targets["query"]), 100.0 * targets["success"].to_numpy())
    values[BOOST_COLUMN] = query_means(
        list(targets["query"]), (targets["before"] - targets["after"]).to_numpy(np.float64)
    )
    values["LSD"] = {qid: LSD().between(rank_docnos(clean[qid]), rank_docnos(robust[qid])) for qid in robust}
    return {measure: values[measure] for measure in MEASURES}


def _build_conditional_rows(experiment: Experiment, name: str, targets: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the success rates of attacks on a smoothed ranker, for each certificate reading and condition."""
    ranker = experiment.get_ranker(name)
    assert isinstance(ranker, SmoothedRanker)
    lists = build_certifiable_lists(experiment, name, list(dict.fromkeys(targets["query"])))
    before, after = (targets[column].to_numpy(dtype=np.float64) for column in ("before", "after"))
    for reading in CERTIFICATE_CONDITIONS:
        sure = find_certified_queries(lists, CERTIFIED_RANK, reading, ranker.samples)
        found = conditional_success_rates(list(targets["query"]), before, after, sure, CERTIFIED_RANK, experiment.seed)
        about = {"defence": name, "certificate": reading, "queries": len(lists), "certified queries": len(sure)}
        yield about | {heading: one.value for heading, one in found.items()}
