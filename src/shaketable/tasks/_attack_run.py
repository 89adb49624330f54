"""Attacks on the documents of rankers' lists, shared by several tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shaketable.attacks.detectors import compute_alarm_threshold, detection_rate
from shaketable.attacks.knowledge import AttackerKnowledge
from shaketable.attacks.runner import run_attacks
from shaketable.attacks.setup import (
    AttackResult,
    RankRange,
    build_attacker_knowledge,
    collect_changed_texts,
    confirm_outcomes,
    draw_attacked_queries,
    draw_new_documents,
    draw_targets,
    evaluate_given_texts,
    explain_missing_targets,
    group_by_origin,
    has_arrived,
    open_recipe,
    open_target,
    rank_attacked_lists,
    split_rank_range,
)
from shaketable.attacks.surrogate import Surrogate
from shaketable.attacks.synonyms import describe_synonym_sources
from shaketable.attacks.target import Target
from shaketable.core.attack_types import AdversarialDocument, AttackCase, AttackOutcome, Goal, Ranks
from shaketable.core.documents import Run, rank_docnos
from shaketable.core.errors import BadInput, NotApplicable, check_parameter, quote_value
from shaketable.core.protocols import ChangeMeasure
from shaketable.core.registries import DETECTORS, GOALS, RECIPES
from shaketable.core.results import Failure, Result
from shaketable.datasets.adversarial_documents import read_adversarial_documents
from shaketable.measures.attack_success import compute_losses
from shaketable.measures.effectiveness import judged_share, score_tables
from shaketable.measures.facets import ATTACK
from shaketable.measures.paired_comparison import compare_paired, query_means
from shaketable.measures.rank_distance import LMD, LSD, RLSD, Kendall, Overlap, TopChange
from shaketable.measures.ranking_error import RankingError, ranking_error
from shaketable.rankers.similarity import make_encoder
from shaketable.tasks._attack_findings import (
    AttackLoss,
    DetectorAlarms,
    build_attack_findings,
    discard_controlled_losses,
    select_attack_examples,
)
from shaketable.tasks._attack_notes import MIN_CLEAN_TEXTS, build_attack_notes, describe_surrogate, explain_nothing
from shaketable.tasks._attack_tables import (
    TOP_K,
    build_attack_figures,
    build_attack_tables,
    list_adversarial_documents,
    shorten_recipes,
)

if TYPE_CHECKING:
    from shaketable.experiment import Experiment

DAMAGE_MEASURES: Mapping[str, ChangeMeasure] = {
    "top change": TopChange(),
    "Kendall": Kendall(),
    "LSD": LSD(),
    "RLSD": RLSD(),
    "LMD": LMD(),
}


@dataclass
class _AttackRows:
    """The results of all attacks so far, the rows of tables, and the notes."""

    results: list[AttackResult] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    damage: list[dict[str, Any]] = field(default_factory=list)
    losses: list[AttackLoss] = field(default_factory=list)
    alarms: list[DetectorAlarms] = field(default_factory=list)
    detection: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class AttackRun:
    """The settings of a run of attacks on all rankers of an experiment; `tasks.document_attack` describes them."""

    recipes: tuple[str, ...]
    goal: str = "promote"
    targets: int = 1
    queries: int = 0
    group: int = 1
    trials: int = 0
    list_trials: int = 0
    max_trials: int | None = None
    control: bool = False
    adversarial_documents: str = ""
    any_grade: bool = False
    detectors: tuple[str, ...] = tuple(DETECTORS)
    similarity: bool = True
    parser: str = "light"
    measure: str = "nDCG@10"

    def __post_init__(self) -> None:
        for name, least in (("targets", 1), ("queries", 0), ("group", 1), ("trials", 0), ("list_trials", 0)):
            value: int = getattr(self, name)
            check_parameter("document-attack", value >= least, name, f"{least} or more", value)
        check_parameter(
            "document-attack",
            self.max_trials is None or self.max_trials >= 1,
            "max_trials",
            "1 or more, or None",
            self.max_trials,
        )
        check_parameter(
            "document-attack", bool(self.recipes or self.adversarial_documents), "recipes", "one or more", self.recipes
        )
        for recipe in self.recipes:
            RECIPES.build(recipe)
        for detector in self.detectors:
            DETECTORS.build(detector)
        GOALS.build(self.goal)

    def run(self, experiment: Experiment) -> Result:
        import pandas as pd

        goal: Goal = GOALS.build(self.goal)
        given = read_adversarial_documents(Path(self.adversarial_documents)) if self.adversarial_documents else []
        texts, candidates = self._select_lists(experiment, given)
        found = _AttackRows()
        for name in experiment.scoring_rankers:
            target = open_target(experiment, name, texts, candidates)
            found.notes += _drop_constant_lists(name, target)
            if target.target_lists:
                known = build_attacker_knowledge(experiment, name, list(texts), self.parser)
                self._attack_ranker(experiment, name, target, known, goal, given, found)
        if not found.results:
            raise NotApplicable(explain_nothing(found.notes, found.failures, experiment.engine.failures))
        found.notes += () if given else describe_synonym_sources(self.recipes)
        tables = build_attack_tables(
            found.results,
            pd.DataFrame(found.damage),
            pd.DataFrame(found.detection),
            goal,
            experiment.seed,
            self.measure,
            make_encoder() if self.similarity else None,
        )
        return Result(
            "document-attack",
            "How easily does a changed document gain ranks?",
            tables,
            build_attack_figures(tables),
            (*found.notes, *build_attack_notes(self, experiment, tables)),
            tuple(build_attack_findings(found.results, found.losses, found.alarms, tables, goal, experiment.seed)),
            tuple(select_attack_examples(found.results, goal)),
            tuple(found.failures),
            brief=("attack", "damage", "detection"),
            attacked=tuple(list_adversarial_documents(found.results)),
        )

    def _attack_ranker(
        self,
        experiment: Experiment,
        name: str,
        target: Target,
        known: AttackerKnowledge,
        goal: Goal,
        given: Sequence[AdversarialDocument],
        found: _AttackRows,
    ) -> None:
        """Attack one ranker by every recipe, or by the texts of a file, and collect the results."""
        attacks = (
            self._try_given_texts(name, target, goal, given, found.notes)
            if given
            else self._run_recipes(experiment, name, target, known, goal, found.notes)
        )
        for recipe, results in attacks:
            done = [result for result in results if isinstance(result, AttackResult)]
            found.failures += [result for result in results if isinstance(result, Failure)]
            found.results += done
            if done:
                damage, loss = self._measure_damage(experiment, recipe, name, target, done)
                found.damage.append({"recipe": recipe, "ranker": name} | damage)
                found.losses.append(loss)
                for caught, alarms in self._run_detectors(known, target, recipe, name, done):
                    found.detection.append(caught)
                    found.alarms += [alarms] if caught["clean texts"] >= MIN_CLEAN_TEXTS else []
        found.notes += [describe_surrogate(name, one) for one in known.cache.values() if isinstance(one, Surrogate)]

    def _select_lists(
        self, experiment: Experiment, adversarial: Sequence[AdversarialDocument]
    ) -> tuple[dict[str, str], Run]:
        """Return the attacked queries and their candidates, from the experiment or from a file."""
        if not adversarial:
            texts = draw_attacked_queries(experiment, self.queries)
            return texts, {qid: experiment.candidates[qid] for qid in texts if experiment.candidates.get(qid)}
        known = experiment.collection.queries
        texts = {qid: text for one in adversarial for qid, text in one.queries.items()}
        for qid, text in texts.items():
            if qid in known and known[qid].text != text:
                here = f"{quote_value(known[qid].text)} in {experiment.collection.name}"
                raise BadInput(
                    f"the query {qid} is {quote_value(text)} in this file and {here}: use its collection",
                    self.adversarial_documents,
                )
        given = {
            qid: experiment.candidates[qid]
            for qid in texts
            if qid in experiment.queries and experiment.candidates.get(qid)
        }
        new = {qid: text for qid, text in texts.items() if qid not in given and text.strip()}
        return texts, given | (dict(experiment.search_first_stage(new)) if new else {})

    def _try_given_texts(
        self, name: str, target: Target, goal: Goal, given: Sequence[AdversarialDocument], notes: list[str]
    ) -> Iterator[tuple[str, list[AttackResult | Failure]]]:
        """Yield the results of the texts of a file, by recipe."""
        file = self.adversarial_documents
        listed = [one for one in given if one.queries.keys() <= target.target_lists.keys()]
        if len(listed) < len(given):
            notes.append(
                f"{name}: {len(given) - len(listed)} of the {len(given)} documents of {file} are left out, because "
                "there is no list for one of their queries."
            )
        for recipe, mine in group_by_origin(listed).items():
            named = [(one.docno, *one.queries) for one in mine if one.docno]
            if again := len(named) - len(set(named)):
                notes.append(
                    f"{recipe}: in {file}, {again} texts are further texts of the same document. Each is tried; the "
                    "damage is measured with the last text of each document."
                )
            yield recipe, list(evaluate_given_texts(name, target, mine, goal, recipe))

    def _run_recipes(
        self,
        experiment: Experiment,
        name: str,
        target: Target,
        known: AttackerKnowledge,
        goal: Goal,
        notes: list[str],
    ) -> Iterator[tuple[str, list[AttackResult | Failure]]]:
        """Yield the results of each recipe; failures name the ranker."""
        every = self._draw_cases(experiment, name, target, goal, notes)

        def attack(recipe: Any, some: Sequence[AttackCase], label: str) -> list[AttackOutcome | Failure]:
            outcomes = run_attacks(
                open_recipe(experiment, name, recipe, known),
                some,
                target,
                budget=self._compute_budget(target, len(some)),
                seed=experiment.seed,
                progress=experiment.engine.progress,
                progress_label=label,
            )
            return confirm_outcomes(target, some, outcomes)

        for text, short in shorten_recipes(self.recipes).items():
            sample = experiment.sample_queries(ATTACK, short)
            drawn = [one for one in every if all(listing.qid in sample for listing in one[0].lists)]
            if not drawn:
                continue
            cases = [case for case, _ in drawn]
            recipe = RECIPES.build(text)
            outcomes = attack(recipe, cases, f"attacking {name} by {text}")
            control_ranks: dict[int, Ranks] = {}
            if self.control and hasattr(recipe, "make_control"):
                arrived = [i for i, one in enumerate(outcomes) if isinstance(one, AttackOutcome) and has_arrived(one)]
                label = f"attacking {name} by the control of {text}"
                controls = attack(recipe.make_control(), [cases[i] for i in arrived], label) if arrived else []
                control_ranks = {
                    i: one.ranks_after
                    for i, one in zip(arrived, controls, strict=True)
                    if isinstance(one, AttackOutcome)
                }
            yield (
                text,
                [
                    Failure(name, outcome.query, outcome.reason)
                    if isinstance(outcome, Failure)
                    else AttackResult(name, text, case, outcome, rank_range, control_ranks.get(i, ()))
                    for i, ((case, rank_range), outcome) in enumerate(zip(drawn, outcomes, strict=True))
                ],
            )

    def _compute_budget(self, target: Target, case_count: int) -> int | None:
        """Return the number of trials for all cases together, or None if there is no limit."""
        trials = self.trials if target.pointwise else self.list_trials or self.trials
        limits = [trials * case_count] if trials else []
        limits += [self.max_trials] if self.max_trials is not None else []
        return min(limits, default=None)

    def _draw_cases(
        self, experiment: Experiment, name: str, target: Target, goal: Goal, notes: list[str]
    ) -> list[tuple[AttackCase, RankRange | None]]:
        """Draw the documents to attack in a ranker's lists, or new documents for groups of queries."""
        rank_ranges: list[RankRange | None]
        if self.group > 1:
            documents = draw_new_documents(experiment, target, self.targets, self.group)
            rank_ranges = [None] * len(documents)
        else:
            parts = split_rank_range(self.targets, experiment.depth)
            drawn = [
                aim
                for qid, pool in target.target_lists.items()
                for aim in draw_targets(
                    pool.target_ranking, experiment.qrels.get(qid, {}), parts, experiment.seed, self.any_grade
                )
            ]
            if len(drawn) < len(parts) * len(target.target_lists):
                list_lengths = [len(pool.docnos) for pool in target.target_lists.values()]
                notes.append(f"{name}: {explain_missing_targets(drawn, parts, list_lengths)}")
            documents = [(aim.docno, aim.doc, [aim.qid]) for aim in drawn]
            rank_ranges = [aim.rank_range for aim in drawn]
        found = {case.key: case for case in target.build_cases(documents, goal)}
        return [
            (found[docno, *qids], rank_range)
            for (docno, _, qids), rank_range in zip(documents, rank_ranges, strict=True)
            if (docno, *qids) in found
        ]

    def _measure_damage(
        self, experiment: Experiment, recipe: str, name: str, target: Target, attempts: Sequence[AttackResult]
    ) -> tuple[dict[str, Any], AttackLoss]:
        """Return the change in order and effectiveness of lists with all changed texts of their query."""
        clean, robust = rank_attacked_lists(target, collect_changed_texts(attempts))
        orders = {qid: (rank_docnos(clean[qid]), rank_docnos(robust[qid])) for qid in robust}
        moved = {
            heading: float(np.mean([measure.between(*order) for order in orders.values()]))
            for heading, measure in DAMAGE_MEASURES.items()
        }
        judged = {qid: experiment.qrels[qid] for qid in robust if qid in experiment.qrels}
        row: dict[str, Any] = {"queries": len(robust)}
        before = dict.fromkeys(orders, 1.0)
        after = {qid: Overlap(TOP_K).between(*order) for qid, order in orders.items()}
        if judged:
            for table in score_tables(["RR@10", "RR@100", self.measure], judged, {"clean": clean, "robust": robust}):
                before, after = (dict(zip(table.topics, row.tolist(), strict=True)) for row in table.values)
                change = compare_paired(before, after, experiment.seed)
                row |= {
                    f"clean {table.measure}": change.before,
                    f"robust {table.measure}": change.after,
                    f"{table.measure} change low": change.low,
                    f"{table.measure} change high": change.high,
                    f"{table.measure} p": change.p,
                }
            # score_tables has the task's measure last, so `before` and `after` are its values
            if self.group == 1 and not self.adversarial_documents:
                row |= _average_errors(
                    [ranking_error(orders[q][0], judged[q], _collect_ranks(q, attempts)) for q in judged]
                )
        values = discard_controlled_losses(compute_losses(before, after), attempts)
        shares = [100 * np.mean(list(judged_share(judged, run).values())) for run in (clean, robust) if judged]
        return row | moved, AttackLoss(recipe, name, values, *map(float, shares))

    def _run_detectors(
        self, known: AttackerKnowledge, target: Target, recipe: str, name: str, attempts: Sequence[AttackResult]
    ) -> Iterator[tuple[dict[str, Any], DetectorAlarms]]:
        """Yield the changed texts that each detector finds, at one false alarm in a hundred clean texts."""
        changed = [attempt for attempt in attempts if attempt.outcome.doc != attempt.case.doc]
        won = [attempt.outcome.doc for attempt in changed]
        queries = [attempt.case.lists[0].qid for attempt in changed]
        for text in self.detectors if won else ():
            suspicion = known.cache.setdefault(("detector", text), DETECTORS.build(text).open(known))
            key = "clean", text, *sorted(target.target_lists)
            if key not in known.cache:
                clean = dict.fromkeys(doc for pool in target.target_lists.values() for doc in pool.docs)
                known.cache[key] = suspicion(list(clean))
            limit = compute_alarm_threshold(known.cache[key])
            found = suspicion(won)
            row = {
                "recipe": recipe,
                "ranker": name,
                "detector": text,
                "caught %": 100 * detection_rate(found, limit),
                "false alarms %": 100 * detection_rate(known.cache[key], limit),
                "texts": len(won),
                "clean texts": len(known.cache[key]),
            }
            yield (
                row,
                DetectorAlarms(recipe, name, text, query_means(queries, 100.0 * (found > limit)), Counter(queries)),
            )


def _collect_ranks(qid: str, attempts: Sequence[AttackResult]) -> dict[str, list[int]]:
    """Return docno -> the rank of its changed text in the list of a query, without other changed texts."""
    return {
        attempt.case.docno: [rank]
        for attempt in attempts
        for listing, rank in zip(attempt.case.lists, attempt.outcome.ranks_after, strict=True)
        if listing.qid == qid
    }


def _average_errors(errors: Sequence[RankingError]) -> dict[str, float]:
    """Return the mean errors over queries."""
    names = ("natural", "boundary", "robust")
    return {f"{name} ranking error": float(np.mean([getattr(error, name) for error in errors])) for name in names}


def _drop_constant_lists(name: str, target: Target) -> list[str]:
    """Remove the lists in which all documents have the same score, and return a note on them."""
    constant = {qid for qid, pool in target.target_lists.items() if len(pool.docs) > 1 and np.ptp(pool.scores) == 0}
    if not constant:
        return []
    note = (
        f"{name} gives all documents the same score in {len(constant)} of {len(target.target_lists)} lists. "
        "These lists have no order that an attack could change, and are left out."
    )
    target.target_lists = {qid: pool for qid, pool in target.target_lists.items() if qid not in constant}
    return [note]
