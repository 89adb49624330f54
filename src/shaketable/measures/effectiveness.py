"""The effectiveness of a run per query, as trec_eval computes it.

Every query of the judgements has a value. A query that is missing from the run has the value 0 (trec_eval's -c), and so
does a query without relevant documents, for average precision and nDCG too. `rank_docnos` orders the lists for every
library: float32 score descending, then docno descending.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shaketable.core.documents import Qrels, Run, rank_docnos
from shaketable.core.errors import BadInput
from shaketable.core.results import ScoreTable
from shaketable.datasets.limits import MAX_GAIN, check_qrels, check_run
from shaketable.measures.measure_names import format_measure, parse_measure
from shaketable.measures.user_function import FunctionMeasure, InstalledMeasure

if TYPE_CHECKING:
    from ir_measures import Measure

PerQuery: TypeAlias = dict[str, float]
RunEvaluator: TypeAlias = "Callable[[Run], dict[Measure, PerQuery]]"
"""A function that evaluates some of the measures, with one library call or one function of this module."""
GradeListMeasure: TypeAlias = "Callable[[Measure, list[list[int | None]]], NDArray[np.float64]]"
"""A function from lists of grades, best rank first and None if unjudged, to a number for each list."""


@dataclass(frozen=True, eq=False)
class Evaluator:
    """An evaluator of many runs against the same judgements, which it prepares once.

    `max_grade` is the highest grade of ERR: 4, as in TREC's gdeval.
    """

    measures: tuple[Measure, ...]
    qrels: Qrels
    max_grade: int = 4

    def evaluate(self, run: Run) -> dict[Measure, PerQuery]:
        """Return measure -> query -> value, for every query of the judgements."""
        check_run(run)
        _refuse_nan(run)
        found: dict[Measure, PerQuery] = {}
        for part in self._run_evaluators:
            found |= part(run)
        return {measure: found[measure] for measure in self.measures}

    @cached_property
    def _run_evaluators(self) -> list[RunEvaluator]:
        check_qrels(self.qrels)
        passes: dict[_TrecSettings, dict[Measure, str]] = {}
        ranked: dict[Measure, GradeListMeasure] = {}
        others: list[Measure] = []
        own: list[FunctionMeasure | InstalledMeasure] = []
        for measure in self.measures:
            if isinstance(measure, FunctionMeasure | InstalledMeasure):
                own.append(measure)
            elif trec := _format_trec_name(measure):
                passes.setdefault(_read_trec_settings(measure), {})[measure] = trec
            elif measure.NAME == "ERR":
                ranked[measure] = self._build_err()
            elif measure.NAME in _RANKED_MEASURES:
                ranked[measure] = _RANKED_MEASURES[str(measure.NAME)]
            else:
                others.append(measure)
        parts = [_build_trec_evaluator(names, self.qrels, settings) for settings, names in passes.items()]
        parts += [_build_function_evaluator(measure, self.qrels) for measure in own]
        if ranked:
            parts.append(_build_ranked_evaluator(ranked, self.qrels))
        return parts + ([_build_ir_measures_evaluator(others, self.qrels)] if others else [])

    def _build_err(self) -> GradeListMeasure:
        for qid, grades in self.qrels.items():
            if grades and (highest := max(grades.values())) > self.max_grade:
                message = f"query {qid!r} has grade {highest}, but the highest grade of ERR is {self.max_grade}"
                raise BadInput(message)
        return lambda measure, lists: expected_reciprocal_rank(_pad_grades(lists), self.max_grade)


def evaluate_run(measures: Iterable[Measure], qrels: Qrels, run: Run) -> dict[Measure, PerQuery]:
    """Return measure -> query -> value of one run, for every query of the judgements.

    >>> ap = parse_measure("AP")
    >>> evaluate_run([ap], {"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": {"a": 1.0, "b": 2.0}})[ap]
    {'q1': 0.5, 'q2': 0.0}
    """
    return Evaluator(tuple(measures), qrels).evaluate(run)


def score_tables(measures: Sequence[str], qrels: Qrels, runs: Mapping[str, Run]) -> tuple[ScoreTable, ...]:
    """Return a table for each measure with the values of all runs, from one pass over each run.

    Variance needs further measures: Success@10 for %no, P@10 for R-Loss, Judged@10.

    >>> qrels, runs = {"q1": {"a": 1}, "q2": {"b": 1}}, {"ql": {"q1": {"a": 1.0, "b": 2.0}}}
    >>> [(table.measure, table.values.tolist()) for table in score_tables(["map", "P@1", "Judged@2"], qrels, runs)]
    [('AP', [[0.5, 0.0]]), ('P@1', [[0.0, 0.0]]), ('Judged@2', [[0.5, 0.0]])]
    """
    parsed = [parse_measure(measure) for measure in measures]
    evaluator = Evaluator(tuple(dict.fromkeys(parsed)), qrels)
    values = np.empty((len(parsed), len(runs), len(qrels)))  # filled run by run: dicts of all runs take far more memory
    for at, run in enumerate(runs.values()):
        found = evaluator.evaluate(run)
        for number, measure in enumerate(parsed):
            values[number, at] = np.fromiter(found[measure].values(), np.float64, len(qrels))
    return tuple(
        ScoreTable(format_measure(measure), tuple(runs), tuple(qrels), values[number])
        for number, measure in enumerate(parsed)
    )


def score_table(measure: str, qrels: Qrels, runs: Mapping[str, Run]) -> ScoreTable:
    """Return one row of per-query values for each run, the input of variance and risk.

    >>> score_table("map", {"q1": {"a": 1}, "q2": {"b": 1}}, {"ql": {"q1": {"a": 1.0, "b": 2.0}}})
    ScoreTable(measure='AP', systems=('ql',), topics=('q1', 'q2'), values=array([[0.5, 0. ]]))
    """
    return score_tables([measure], qrels, runs)[0]


@dataclass(frozen=True)
class TieRate:
    """The shares of tied neighbours, and of lists with a single score."""

    neighbours: float
    constant_lists: float


def tie_rate(run: Run) -> TieRate:
    """Return the shares of neighbouring documents that tie in float32, and of lists (of two or more) with one score.

    >>> tie_rate({"q1": {"a": 1.0, "b": 1.0, "c": 0.0}, "q2": {"a": 2.0, "b": 2.0}})
    TieRate(neighbours=0.6666666666666666, constant_lists=0.5)
    """
    lists = [np.sort(np.fromiter(s.values(), np.float32, len(s))) for s in run.values() if len(s) > 1]
    if not lists:
        return TieRate(0.0, 0.0)
    tied = [s[1:] == s[:-1] for s in lists]
    return TieRate(float(np.concatenate(tied).mean()), float(np.mean([t.all() for t in tied])))


def has_nonrelevant_judgements(qrels: Qrels) -> bool:
    """Return True if a document is judged as not relevant.

    >>> has_nonrelevant_judgements({"q": {"a": 1, "b": 0}}), has_nonrelevant_judgements({"q": {"a": 1}})
    (True, False)
    """
    return any(grade <= 0 for grades in qrels.values() for grade in grades.values())


def judged_share(qrels: Qrels, run: Run, k: int | None = 10) -> PerQuery:
    """Return the share of each query's first k documents with a judgement; 0 for a query that is not in the run.

    >>> judged_share({"q": {"a": 0}}, {"q": {"a": 2.0, "b": 1.0}})
    {'q': 0.5}
    """
    tops = {qid: select_top(run.get(qid, {}), k) for qid in qrels}
    return {qid: sum(d in qrels[qid] for d in found) / max(len(found), 1) for qid, found in tops.items()}


def select_top(scores: Mapping[str, float], k: int | None) -> list[str]:
    """Return the first k of `rank_docnos`, without sorting the others.

    >>> select_top({"a": 1.0, "b": 1.0, "c": 2.0, "d": 0.5}, 2)
    ['c', 'b']
    """
    if k is None or len(scores) <= k:
        return rank_docnos(scores)
    values = np.fromiter(scores.values(), np.float32, len(scores))
    least = np.partition(values, len(values) - k)[len(values) - k]
    docnos = list(scores)
    return rank_docnos({docnos[i]: scores[docnos[i]] for i in np.flatnonzero(values >= least).tolist()})[:k]


def expected_reciprocal_rank(grades: ArrayLike, max_grade: int = 4) -> NDArray[np.float64]:
    """Return ERR of lists of grades [..., ranks], best rank first.

    Σ_r (1/r) R_r Π_{i<r} (1 - R_i), with R = (2^g - 1) / 2^max_grade.

    >>> expected_reciprocal_rank([0, 1], max_grade=1).item()
    0.25

    Chapelle, Metzler, Zhang, Grinspan. Expected reciprocal rank for graded relevance. CIKM 2009.
    """
    stops = (2.0 ** np.maximum(np.asarray(grades), 0) - 1) / 2.0**max_grade
    leaves = np.cumprod(1 - stops, axis=-1)
    reached = np.concatenate([np.ones_like(leaves[..., :1]), leaves[..., :-1]], axis=-1)
    value: NDArray[np.float64] = (stops * reached / np.arange(1, stops.shape[-1] + 1)).sum(axis=-1)
    return value


def rank_biased_precision(relevant: ArrayLike, p: float = 0.8) -> NDArray[np.float64]:
    """Return RBP of lists of relevant (1) and other (0) documents [..., ranks], best first: (1 - p) Σ rel_r p^(r-1).

    >>> rank_biased_precision([1, 0, 1], p=0.5).item()
    0.625

    Moffat, Zobel. Rank-biased precision for measurement of retrieval effectiveness. TOIS 2008.
    """
    if not 0 < p < 1:
        raise BadInput(f"RBP: p must lie between 0 and 1, not {p}")
    rel = np.asarray(relevant, dtype=np.float64)
    return np.asarray((1 - p) * (rel * p ** np.arange(rel.shape[-1])).sum(axis=-1))


def alpha_ndcg(
    subtopics: Mapping[str, Mapping[str, int]], docnos: Sequence[str], cutoff: int = 20, alpha: float = 0.5
) -> float:
    """Return α-nDCG of one ranked list: each further document on a subtopic is worth 1 - α of the previous one.

    DCG = Σ_r log2(1 + r)^-1 Σ_subtopics rel (1 - α)^(relevant documents above), divided by the DCG of the greedy ideal
    list, as in ndeval. `subtopics` holds the judgements of each subtopic of one query. `parse_measure` does not support
    this measure, because plain judgements have no subtopics.

    >>> round(alpha_ndcg({"1": {"a": 1, "b": 1}, "2": {"c": 1}}, ["a", "b", "c"], cutoff=2), 4)
    0.8066

    Clarke, Kolla, Cormack, Vechtomova, Ashkan, Büttcher, MacKinnon. Novelty and diversity in information retrieval
    evaluation. SIGIR 2008.
    """
    about: dict[str, list[str]] = {}
    for subtopic, grades in subtopics.items():
        for docno, grade in grades.items():
            if grade > 0:
                about.setdefault(docno, []).append(subtopic)

    def gain(docno: str, seen: Mapping[str, int]) -> float:
        return float(sum((1 - alpha) ** seen[subtopic] for subtopic in about.get(docno, ())))

    def cumulate(take: Callable[[int, Mapping[str, int]], str | None]) -> float:
        seen, total = dict.fromkeys(subtopics, 0), 0.0
        for rank in range(cutoff):
            if (docno := take(rank, seen)) is None:
                break
            total += gain(docno, seen) / math.log2(2 + rank)
            for subtopic in about.get(docno, ()):
                seen[subtopic] += 1
        return total

    left = sorted(about)

    def best(rank: int, seen: Mapping[str, int]) -> str | None:
        return left.pop(max(range(len(left)), key=lambda i: gain(left[i], seen))) if left else None

    ideal = cumulate(best)
    return cumulate(lambda rank, seen: docnos[rank] if rank < len(docnos) else None) / ideal if ideal else 0.0


def _refuse_nan(run: Run) -> None:
    for qid, scores in run.items():
        # a sum checks all scores much faster than a loop; a sum of infinities may also be NaN
        if math.isnan(sum(scores.values())) and (bad := [d for d, s in scores.items() if math.isnan(s)]):
            raise BadInput(f"the score of document {bad[0]!r} for query {qid!r} is NaN; a run needs numbers")


_TREC_NAMES = {
    "AP": ("map", "map_cut_{}"),
    "nDCG": ("ndcg", "ndcg_cut_{}"),
    "RR": ("recip_rank", "recip_rank"),
    "P": ("", "P_{}"),
    "R": ("", "recall_{}"),
    "Success": ("", "success_{}"),
    "Rprec": ("Rprec", ""),
    "Bpref": ("bpref", ""),
}
"""The names of a measure in pytrec_eval: without a cutoff, and with one."""


@dataclass(frozen=True)
class _TrecSettings:
    """The settings that pytrec_eval applies to all measures of a pass."""

    rel: int
    judged_only: bool
    exponential: bool
    gains: tuple[tuple[int, int], ...]

    def compute_gain(self, grade: int) -> int:
        grade = int(dict(self.gains).get(grade, grade))
        return 2**grade - 1 if self.exponential and grade > 0 else grade


def _format_trec_name(measure: Measure) -> str:
    whole, cut = _TREC_NAMES.get(str(measure.NAME), ("", ""))
    return cut.format(measure.params["cutoff"]) if "cutoff" in measure.params else whole


def _read_trec_settings(measure: Measure) -> _TrecSettings:
    given = measure.params
    gains = tuple(sorted(given.get("gains", {}).items()))
    return _TrecSettings(given.get("rel", 1), given.get("judged_only", False), given.get("dcg") == "exp-log2", gains)


def _build_trec_evaluator(names: Mapping[Measure, str], qrels: Qrels, settings: _TrecSettings) -> RunEvaluator:
    import pytrec_eval

    worth = {grade: settings.compute_gain(grade) for grades in qrels.values() for grade in set(grades.values())}
    if (most := max(worth, key=worth.__getitem__, default=0)) in worth and worth[most] > MAX_GAIN:
        raise BadInput(f"a document of grade {most} gains {worth[most]:,}, more than the maximum of {MAX_GAIN:,}")
    judged = {qid: {d: worth[g] for d, g in grades.items()} for qid, grades in qrels.items()}
    # pytrec_eval crashes on a query without a grade of 0 or more, and on an empty list; the value of both is 0
    judged = {qid: grades for qid, grades in judged.items() if max(grades.values(), default=-1) >= 0}
    evaluator = pytrec_eval.RelevanceEvaluator(judged, set(names.values()), settings.rel, settings.judged_only)

    missing = dict.fromkeys(names.values(), 0.0)

    def values(rows: Iterable[Mapping[str, float]], measure: Measure, key: str) -> PerQuery:
        found = [row[key] for row in rows]
        if measure.NAME == "RR" and "cutoff" in measure.params:  # trec_eval has no cutoff for it
            least = 1 / measure.params["cutoff"]
            found = [value if value >= least else 0.0 for value in found]
        return dict(zip(qrels, found, strict=True))

    def evaluate(run: Run) -> dict[Measure, PerQuery]:
        lists = {qid: scores for qid, scores in run.items() if scores}
        try:
            rows = evaluator.evaluate(lists)
        except TypeError:  # pytrec_eval accepts only dicts of Python numbers
            rows = evaluator.evaluate({qid: {d: float(s) for d, s in scores.items()} for qid, scores in lists.items()})
        in_order = [rows.get(qid, missing) for qid in qrels]
        return {measure: values(in_order, measure, key) for measure, key in names.items()}

    return evaluate


def _build_ranked_evaluator(measures: Mapping[Measure, GradeListMeasure], qrels: Qrels) -> RunEvaluator:
    """Build the evaluator of measures on lists of grades, which are looked up once for all measures."""
    cutoffs = [measure.params.get("cutoff") for measure in measures]
    deepest: int | None = None if None in cutoffs else max(int(k) for k in cutoffs if k)

    def evaluate(run: Run) -> dict[Measure, PerQuery]:
        lists = [[judged.get(d) for d in select_top(run.get(qid, {}), deepest)] for qid, judged in qrels.items()]
        found: dict[Measure, PerQuery] = {}
        for measure, of in measures.items():
            k = measure.params.get("cutoff")
            values = of(measure, lists if k == deepest else [grades[:k] for grades in lists])
            found[measure] = dict(zip(qrels, values.tolist(), strict=True))
        return found

    return evaluate


def _build_function_evaluator(measure: FunctionMeasure | InstalledMeasure, qrels: Qrels) -> RunEvaluator:
    key = cast("Measure", measure)
    return lambda run: {key: {q: measure.value(grades, rank_docnos(run.get(q, {}))) for q, grades in qrels.items()}}


def _pad_grades(lists: list[list[int | None]]) -> NDArray[np.float64]:
    """Return grades [lists, ranks], 0 without a judgement and after the end of a list."""
    grades = np.zeros((len(lists), max(map(len, lists), default=0)))
    for row, found in zip(grades, lists, strict=True):
        row[: len(found)] = [grade or 0 for grade in found]
    return grades


def _judged_shares(measure: Measure, lists: list[list[int | None]]) -> NDArray[np.float64]:
    return np.array([sum(grade is not None for grade in found) / max(len(found), 1) for found in lists])


def _unjudged_shares(measure: Measure, lists: list[list[int | None]]) -> NDArray[np.float64]:
    return np.array([sum(grade is None for grade in found) / max(len(found), 1) for found in lists])


def _rbp(measure: Measure, lists: list[list[int | None]]) -> NDArray[np.float64]:
    return rank_biased_precision(_pad_grades(lists) >= measure.params.get("rel", 1), measure.params.get("p", 0.8))


_SUBTOPIC_MEASURES = {"alpha_nDCG", "alpha_DCG", "ERR_IA", "nERR_IA", "NRBP", "nNRBP", "AP_IA", "P_IA", "StRecall"}
_RANKED_MEASURES: dict[str, GradeListMeasure] = {"Judged": _judged_shares, "Unjudged": _unjudged_shares, "RBP": _rbp}


def _build_ir_measures_evaluator(measures: list[Measure], qrels: Qrels) -> RunEvaluator:
    import ir_measures

    if subtopics := [format_measure(m) for m in measures if m.NAME in _SUBTOPIC_MEASURES]:
        raise BadInput(
            f"{subtopics[0]} needs judgements of subtopics, which this collection does not have; "
            "`shaketable.measures.effectiveness.alpha_ndcg` takes judgements of each subtopic"
        )
    plain = {qid: dict(grades) for qid, grades in qrels.items() if max(grades.values(), default=-1) >= 0}
    try:
        evaluator = ir_measures.evaluator(measures, plain)
    except ValueError as error:
        names = ", ".join(map(format_measure, measures))
        raise BadInput(
            f"no installed library computes {names}; see ir_measures' providers for one that does"
        ) from error

    def evaluate(run: Run) -> dict[Measure, PerQuery]:
        # the libraries break ties differently; scores derived from ranks have no ties
        ranks = {qid: {d: -float(i) for i, d in enumerate(rank_docnos(run[qid]))} for qid in qrels if run.get(qid)}
        values: dict[Measure, PerQuery] = {measure: dict.fromkeys(qrels, 0.0) for measure in measures}
        for metric in evaluator.iter_calc(ranks):
            values[metric.measure][metric.query_id] = float(metric.value)
        return values

    return evaluate
