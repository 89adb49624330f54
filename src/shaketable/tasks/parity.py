"""The parity task: tests whether two rankers are equal, such as one model in two servers, precisions or versions.

All rankers score the same documents without the cache, because a cached score may come from an older ranker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shaketable.core.documents import Run, Slate, rank_docnos
from shaketable.core.errors import BadInput, UnknownName, check_parameter
from shaketable.core.protocols import RecordedRanker, can_score_texts
from shaketable.core.results import Example, Figure, Finding, Result
from shaketable.core.seeding import make_item_rng
from shaketable.measures.effectiveness import score_table, tie_rate
from shaketable.measures.paired_comparison import (
    MOVEMENT_BETTER_DIRECTION,
    MOVEMENT_EXPLANATION,
    MOVEMENT_HEADINGS,
    MeanInterval,
    compare_paired,
    mean_movement_intervals,
    measure_movement,
    weighted_mean,
)
from shaketable.measures.parity import (
    PARITY_OUTCOMES,
    classify_parity,
    count_beyond_noise,
    find_score_differences,
    largest_difference,
    pair_rankings,
    saturated_share,
    tied_share,
)
from shaketable.scoring.uncached import Uncached
from shaketable.scoring.validation import collapse_ties

if TYPE_CHECKING:
    from shaketable.experiment import Experiment

MAX_SHOWN = 10
"""The number of documents and lists with the largest differences that are shown."""
PARITY_TABLE, NOISE_TABLE, LARGEST_DIFFERENCES_TABLE, LISTS_TABLE, PER_QUERY_TABLE = (
    "parity",
    "each ranker",
    "largest score differences",
    "lists",
    "per query",
)


@dataclass(frozen=True)
class Parity:
    """Equality of rankers: score differences compared with the noise floor, changed lists, ties, saturation.

    reference   the ranker that the others are compared with; by default the first one
    repeats     queries whose lists each ranker scores again, to measure its noise: once in the same order and, if the
                ranker is pointwise, once in reverse order; 0 for none
    measure     the effectiveness measure, if there are judgements
    """

    reference: str = ""
    repeats: int = 10
    measure: str = "nDCG@10"

    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = False
    opt_in: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_parameter("parity", self.repeats >= 0, "repeats", "0 or more", self.repeats)

    def run(self, experiment: Experiment) -> Result:
        import pandas as pd

        reference = self.reference or next(iter(experiment.models))
        if reference not in experiment.models:
            raise UnknownName("ranker", reference, experiment.models)
        if len(experiment.models) < 2:
            raise BadInput("parity needs at least two rankers: --ranker old=SPEC --ranker new=SPEC")
        asked = {name: _Answers.ask_ranker(experiment, name, self.repeats) for name in experiment.models}
        rows, per_query, where, examples = [], [], [], []
        for name in experiment.models:
            if name != reference:
                row, queries, differences, some = self._compare_ranker(experiment, reference, name, asked)
                rows.append(row)
                per_query += queries
                where += differences
                examples += some
        tables = {
            PARITY_TABLE: pd.DataFrame([_build_overview_row(row) for row in rows]),
            LISTS_TABLE: pd.DataFrame([line for row in rows for line in _build_list_rows(row)]),
            NOISE_TABLE: pd.DataFrame([_describe_ranker(name, one) for name, one in asked.items()]),
            LARGEST_DIFFERENCES_TABLE: pd.DataFrame(where),
            PER_QUERY_TABLE: pd.DataFrame(per_query),
        }
        return Result(
            "parity",
            "Do these rankers give the same scores?",
            {name: table for name, table in tables.items() if len(table)},
            (
                Figure(
                    "distribution",
                    PER_QUERY_TABLE,
                    "Largest score difference of each query's list",
                    x="ranker",
                    y="largest difference",
                ),
            ),
            tuple(self._build_notes(experiment, reference, rows)),
            tuple(finding for row in rows for finding in _build_findings(row, asked)),
            tuple(examples),
            brief=(PARITY_TABLE, LISTS_TABLE, NOISE_TABLE, LARGEST_DIFFERENCES_TABLE),
            conclusions=tuple(map(_conclude, rows)),
        )

    def _compare_ranker(
        self, experiment: Experiment, reference: str, name: str, asked: dict[str, _Answers]
    ) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]], list[Example]]:
        """Return the numbers, query rows, largest differences and examples of a ranker against the reference."""
        old, new = asked[reference], asked[name]
        found = find_score_differences(old.scores, new.scores)
        if not found:
            raise BadInput(f"{reference} and {name} scored no common document of any query, so they cannot be compared")
        noise = float(np.nanmax([old.noise, new.noise, 0.0]))
        lists = pair_rankings(old.lists, new.lists)
        moved = {qid: measure_movement(*both) for qid, both in lists.items()}
        many = count_beyond_noise(found, noise)
        verdict_level = classify_parity(many, lists)
        changed = {qid: 100.0 * (before != after) for qid, (before, after) in lists.items()}
        top_ten = {qid: 100.0 * (before[:10] != after[:10]) for qid, (before, after) in lists.items()}
        means = {
            "lists that change %": weighted_mean(changed, experiment.seed, experiment.weights),
            "first ten that change %": weighted_mean(top_ten, experiment.seed, experiment.weights),
            "Kendall tau": weighted_mean(
                {qid: 1 - 2 * one.kendall for qid, one in moved.items()}, experiment.seed, experiment.weights
            ),
            **mean_movement_intervals(list(moved), list(moved.values()), experiment.seed, experiment.weights),
        }
        row: dict[str, Any] = {
            "ranker": name,
            "reference": reference,
            "verdict": PARITY_OUTCOMES[verdict_level],
            "level": verdict_level,
            "largest difference": found[0].size,
            "noise floor": noise,
            "beyond noise %": 100 * many / len(found),
            "pairs": len(found),
            "queries": len(lists),
            "means": means,
        }
        if experiment.qrels:
            values = score_table(self.measure, experiment.qrels, {"old": old.lists, "new": new.lists})
            before, after = (dict(zip(values.topics, of.tolist(), strict=True)) for of in values.values)
            row |= {
                "judged": compare_paired(before, after, experiment.seed, experiment.weights),
                "measure": self.measure,
            }
        queries = _build_query_rows(name, old, new, moved, changed)
        shown = [
            {
                "ranker": name,
                "query": one.query,
                "document": one.document,
                reference: one.first,
                name: one.second,
                "difference": one.second - one.first,
                f"rank by {reference}": lists[one.query][0].index(one.document) + 1,
                f"rank by {name}": lists[one.query][1].index(one.document) + 1,
            }
            for one in found[:MAX_SHOWN]
            if one.size > 0
        ]
        return row, queries, shown, _select_examples(experiment, name, lists, moved)

    def _build_notes(self, experiment: Experiment, reference: str, rows: list[dict[str, Any]]) -> list[str]:
        notes = [
            (
                "Every ranker scored the same documents; no cached scores were used. Each ranker ranks "
                f"{experiment.candidate_description}."
            ),
            (
                "The 'noise floor' is the largest difference between two scores that one of the two rankers gives to "
                "the same text. A difference is beyond noise if it exceeds twice the noise floor and a millionth of "
                "the score."
            ),
            (
                "'tied %' is the percentage of documents with the same score as another document of the list; 'at the "
                "ends %' is the percentage of scores that equal the highest or the lowest score, if several do; this "
                "is a sign of saturation."
            ),
            f"'Kendall tau' is 1 for the same order and -1 for the reverse. {MOVEMENT_EXPLANATION}",
        ]
        if not experiment.qrels:
            notes.append("Only judgements could show which of two lists is better.")
        if experiment.weights:
            notes.append(f"{experiment.weighting_description[0].upper()}{experiment.weighting_description[1:]}.")
        return notes


@dataclass(frozen=True)
class _Answers:
    """The scores of a ranker, the scores that order its lists, and its noise."""

    scores: Run
    lists: Run
    noise: float
    repeated_pairs: int
    changed_lists_percent: float
    """The percentage of repeated lists whose order changes."""

    @classmethod
    def ask_ranker(cls, experiment: Experiment, name: str, repeats: int) -> _Answers:
        """Score all lists, and some of them again; a run file has nothing to repeat."""
        ranker = experiment.get_ranker(name)
        if isinstance(ranker, RecordedRanker):
            run = experiment.get_run(name)
            return cls(run, run, float("nan"), 0, float("nan"))
        if not can_score_texts(ranker):
            return cls._search_twice(experiment, name, repeats)
        traits = experiment.get_traits(name)
        scores = _score_uncached(experiment, name, experiment.candidates)
        if not scores:
            reason = f": {experiment.engine.failures[-1].reason}" if experiment.engine.failures else ""
            raise BadInput(f"ranker {name} scored none of the {len(experiment.queries)} queries{reason}")
        lists = _collapse_run_ties(scores, traits.noise)
        some = sorted(scores, key=lambda qid: make_item_rng(experiment.seed, "repeats", qid).random_bits())[:repeats]
        few = {qid: experiment.candidates[qid] for qid in some}
        again = [_score_uncached(experiment, name, few)] if few else []
        if few and traits.pointwise:
            again.append(_score_uncached(experiment, name, few, reverse_order=True))
        noise = max((largest_difference(scores, one) for one in again), default=float("nan"))
        steady = [
            rank_docnos(lists[qid]) == rank_docnos(scores_again)
            for one in again
            for qid, scores_again in _collapse_run_ties(one, traits.noise).items()
        ]
        changed = 100 * (1 - float(np.mean(steady))) if steady else float("nan")
        return cls(scores, lists, noise, sum(map(len, few.values())), changed)

    @classmethod
    def _search_twice(cls, experiment: Experiment, name: str, repeats: int) -> _Answers:
        """Search for all queries with a search engine, and for some of them again."""
        run = experiment.search_uncached(name, experiment.texts, experiment.depth)
        some = sorted(run, key=lambda qid: make_item_rng(experiment.seed, "repeats", qid).random_bits())[:repeats]
        again = experiment.search_uncached(name, {qid: experiment.texts[qid] for qid in some}, experiment.depth)
        steady = [rank_docnos(run[qid]) == rank_docnos(found) for qid, found in again.items()]
        changed = 100 * (1 - float(np.mean(steady))) if steady else float("nan")
        noise = largest_difference({qid: run[qid] for qid in again}, again) if again else float("nan")
        return cls(run, run, noise, sum(map(len, again.values())), changed)


def _score_uncached(experiment: Experiment, name: str, candidates: Run, reverse_order: bool = False) -> Run:
    """Score the candidates without the cache."""
    docnos = {qid: rank_docnos(candidates[qid]) for qid in candidates if candidates[qid]}
    if reverse_order:
        docnos = {qid: listed[::-1] for qid, listed in reversed(docnos.items())}
    slates = [Slate(experiment.texts[qid], experiment.get_documents(listed)) for qid, listed in docnos.items()]
    answers = experiment.engine.score(Uncached(experiment.get_ranker(name)), slates, name)
    return {
        qid: dict(zip(listed, scores.tolist(), strict=True))
        for (qid, listed), scores in zip(docnos.items(), answers, strict=True)
        if scores is not None
    }


def _collapse_run_ties(scores: Run, noise: float) -> Run:
    """Return scores in which differences within the ranker's noise are ties."""
    if not noise:
        return scores
    return {
        qid: dict(zip(of, collapse_ties(np.array(list(of.values())), noise).tolist(), strict=True))
        for qid, of in scores.items()
    }


def _build_query_rows(
    name: str, old: _Answers, new: _Answers, moved: dict[str, Any], changed: dict[str, float]
) -> list[dict[str, Any]]:
    rows = []
    for qid, one in moved.items():
        both = {qid: old.scores[qid]}, {qid: new.scores[qid]}
        rows.append(
            {
                "ranker": name,
                "query": qid,
                "largest difference": largest_difference(*both),
                "list changes": bool(changed[qid]),
                **{heading: getattr(one, field) for field, heading in MOVEMENT_HEADINGS.items() if field != "top"},
                "new first": bool(one.top),
            }
        )
    return rows


def _conclude(row: dict[str, Any]) -> str:
    """Return the verdict on a ranker with the numbers that it rests on."""
    changed = row["means"]["lists that change %"]
    return (
        f"{row['ranker']} against {row['reference']}: {row['verdict']}. The largest score difference is "
        f"{row['largest difference']:.3g} (noise floor {row['noise floor']:.3g}), and {changed.value:.1f} % of "
        f"{row['queries']} lists change."
    )


def _build_overview_row(row: dict[str, Any]) -> dict[str, Any]:
    keys = ("ranker", "reference", "verdict", "largest difference", "noise floor", "beyond noise %", "pairs", "queries")
    return {key: row[key] for key in keys}


def _build_list_rows(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the changes of lists, a row for each number."""
    about = {"ranker": row["ranker"], "reference": row["reference"]}
    lines = [
        about | {"measure": heading, "mean": mean.value, "low": mean.low, "high": mean.high, "queries": mean.n}
        for heading, mean in row["means"].items()
    ]
    if "judged" in row:
        one = row["judged"]
        what = {"measure": f"{row['measure']} change", "mean": one.change, "low": one.low, "high": one.high}
        lines.append(about | what | {"queries": one.n})
    return lines


def _describe_ranker(name: str, one: _Answers) -> dict[str, Any]:
    """Return the noise, the ties and the extreme scores of one ranker."""
    every = [score for scores in one.scores.values() for score in scores.values()]
    return {
        "ranker": name,
        "noise floor": one.noise,
        "repeated pairs": one.repeated_pairs,
        "repeated lists that change %": one.changed_lists_percent,
        "tied %": 100 * tied_share(one.scores),
        "at the ends %": 100 * saturated_share(one.scores),
        "lists of one score %": 100 * tie_rate(one.scores).constant_lists,
        "lowest": min(every),
        "highest": max(every),
    }


def _build_findings(row: dict[str, Any], asked: dict[str, _Answers]) -> list[Finding]:
    """Return the findings. "parity" is the level of the verdict: 0 is equal within noise, 3 a change in the top ten."""
    about: Any = {"ranker": row["ranker"], "against": row["reference"], "n": row["queries"]}
    means: dict[str, MeanInterval] = row["means"]
    lower: Any = {"better": "lower"}
    one = asked[row["ranker"]]
    found = [
        Finding(name="parity", value=float(row["level"]), **lower, **about),
        Finding(name="largest difference", value=row["largest difference"], **lower, **about),
        Finding(name="beyond noise %", value=row["beyond noise %"], **lower, **about),
        Finding(name="noise floor", value=one.noise, **lower, **about),
        Finding(name="tied %", value=100 * tied_share(one.scores), **lower, **about),
        Finding(name="at the ends %", value=100 * saturated_share(one.scores), **lower, **about),
    ]
    for heading, mean in means.items():
        better = MOVEMENT_BETTER_DIRECTION.get(heading, "higher" if heading == "Kendall tau" else "lower")
        found.append(
            Finding(
                row["ranker"],
                heading,
                mean.value,
                mean.low,
                mean.high,
                mean.n,
                better=better,
                against=row["reference"],
            )
        )
    if "judged" in row:
        change = row["judged"]
        name = f"{row['measure']} change"
        found.append(Finding(name=name, value=change.change, low=change.low, high=change.high, p=change.p, **about))
    return found


def _select_examples(experiment: Experiment, name: str, lists: dict[str, Any], moved: dict[str, Any]) -> list[Example]:
    """Return the lists that moved most: the query, the former first document, and its rank now."""
    worst = sorted(moved, key=lambda qid: (-moved[qid].fall, moved[qid].overlap))[:3]
    found = []
    for qid in worst:
        before, after = lists[qid]
        if before != after:
            text = experiment.texts[qid]
            now = after.index(before[0]) + 1 if before[0] in after else 0
            found.append(Example(name, qid, "parity", text, text, document=before[0], rank_before=1, rank_after=now))
    return found
