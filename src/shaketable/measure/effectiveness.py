"""How good a run is, query by query, as trec_eval counts it.

Every query of the judgements has a value: one that is missing from the run counts 0 (trec_eval's -c), and so does one
without relevant documents, average precision and nDCG included. Lists are ordered by `types.ranking`: float32 score
descending, then docno descending, whichever library does the sum.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shaketable.data.bounds import GAIN, check_qrels, check_run
from shaketable.errors import BadInput, UnknownName
from shaketable.measure.function import FunctionMeasure
from shaketable.objects import OBJECT
from shaketable.types import Qrels, Run, ScoreTable, ranking

if TYPE_CHECKING:
    from ir_measures import Measure

PerQuery: TypeAlias = dict[str, float]
Part: TypeAlias = "Callable[[Run], dict[Measure, PerQuery]]"
"""Evaluates some of the measures wanted: one call of a library, or one function of ours."""
Grades: TypeAlias = "Callable[[Measure, list[list[int | None]]], NDArray[np.float64]]"
"""Measures lists of grades, best rank first, None without a judgement: a number for each list."""

NICKNAMES = {
    "map_cut": "AP",
    "recip_rank": "RR",
    "ndcg_cut": "nDCG",
    "prec": "P",
    "r_precision": "Rprec",
    "hit": "Success",
    "hits": "Success",
    "hit_rate": "Success",
    "iprec_at_recall": "IPrec",
    "num_ret": "NumRet",
    "num_rel": "NumRel",
    "num_rel_ret": "NumRelRet",
    "set_p": "SetP",
    "set_relative_p": "SetRelP",
    "set_recall": "SetR",
    "set_f": "SetF",
    "set_map": "SetAP",
}
"""What trec_eval and papers call a measure -> what ir_measures calls it, beyond its own aliases (MAP, MRR, Recall)."""

OF_RANKERS = {
    "gm_map": "the variance of a ranker has it as gMAP floor, and AP is what it is made of",
    "gmap": "the variance of a ranker has it as gMAP, and AP is what it is made of",
    "vnap": "the variance of a ranker has it, and AP is what it is made of",
    "vap": "the variance of a ranker has it, and AP is what it is made of",
}
"""Measures that somebody may ask for where values of queries are wanted, and where they are instead."""

EXAMPLES = {
    "nDCG@10": "gain of the first 10, discounted by rank; linear in the grade, nDCG(dcg='exp-log2')@10 for 2^g - 1",
    "AP": "precision averaged over the relevant documents, retrieved or not (MAP is its mean); AP@100 stops there",
    "RR@10": "1 / rank of the first relevant document, 0 beyond rank 10; RR(rel=2)@10 counts grades from 2 up",
    "P@20": "share of the first 20 that is relevant",
    "R@100": "share of the relevant documents that is among the first 100",
    "Success@5": "1 if a relevant document is among the first 5, else 0",
    "Rprec": "precision at the number of relevant documents",
    "Bpref": "how rarely documents judged not relevant stand before relevant ones; ignores the unjudged",
    "ERR@20": "expected reciprocal rank at which a reader is satisfied; grades 0 to 4, as TREC's gdeval",
    "RBP": "what a reader finds who goes on to the next rank with probability 0.8; RBP(p=0.5), RBP(rel=2)@100",
    "SetF": "F1 of the retrieved set",
    "Judged@10": "share of the first 10 that has a judgement",
    "Unjudged@10": "share of the first 10 that has none: what the others do not know",
}
"""The measures most asked for; `parse` reads all that ir_measures has."""

_FORM = re.compile(r"([^\W\d][\w-]*?)(?:\((.*)\))?(?:[@_.](\d+(?:\.\d+)?))?", re.DOTALL)


def parse(text: str) -> Measure:
    """The measure that a text names, in the words of ir_measures, trec_eval or a paper; case does not matter.

    >>> parse("ndcg_cut_10"), parse("mrr@10"), parse("RR(rel=2)@10"), parse("nDCG(dcg='exp-log2')@10")
    (nDCG@10, RR@10, RR(rel=2)@10, nDCG(dcg='exp-log2')@10)
    """
    if re.fullmatch(OBJECT, text.strip()):
        return cast("Measure", FunctionMeasure(text.strip()))  # all that is asked of it is its name
    form = _FORM.fullmatch(re.sub(r"\s*([@()])\s*", r"\1", text.strip()))
    if form is None:
        raise BadInput(f"cannot read the measure {text!r}: write NAME, NAME@K or NAME(parameter=value)@K")
    base = _named(form[1])
    given = _parameters(form[2] or "", text)
    if form[3] is not None:
        given[base.AT_PARAM] = float(form[3]) if "." in form[3] else int(form[3])
    return _built(base, given, text)


def name(measure: Measure) -> str:
    """The one way to write a measure; `parse` reads it back.

    >>> name(parse("map")), name(parse("recall_20"))
    ('AP', 'R@20')
    """
    return str(measure)


@cache
def _catalogue() -> dict[str, Measure]:
    from ir_measures.measures import registry

    own = {key.lower(): measure for key, measure in registry.items() if key.isascii()}
    kind = type(registry["Judged"])
    unjudged = type("Unjudged", (kind,), {"__name__": "Unjudged", "NAME": "Unjudged"})()
    return own | {nickname: registry[key] for nickname, key in NICKNAMES.items()} | {"unjudged": unjudged}


def _named(text: str) -> Measure:
    key = text.lower().replace("-", "_")
    if key in OF_RANKERS:
        raise BadInput(f"{text} is one number for a ranker, not one for each query; {OF_RANKERS[key]}")
    if key not in _catalogue():
        raise UnknownName("measure", text.lower(), _catalogue())
    return _catalogue()[key]


def _parameters(text: str, whole: str) -> dict[str, Any]:
    # ir_measures reads these with node classes that Python 3.14 no longer has
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        if isinstance(call, ast.Call) and not call.args and all(k.arg for k in call.keywords):
            return {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
    except (SyntaxError, ValueError):
        pass
    raise BadInput(f"cannot read the parameters of measure {whole!r}: write them as name=value, for example rel=2")


def _built(base: Measure, given: dict[str, Any], text: str) -> Measure:
    known: dict[str, Any] = base.SUPPORTED_PARAMS
    if strange := given.keys() - known.keys():
        takes = ", ".join(known) or "nothing"
        raise BadInput(f"measure {text!r}: {base.NAME} has no {min(strange)}; it takes: {takes}")
    as_floats = {key: float(v) for key, v in given.items() if known[key].dtype is float and isinstance(v, int)}
    measure: Measure = base(**dict(sorted((given | as_floats).items())))
    for key, info in known.items():
        value = measure.params.get(key, info.default)
        if not info.validate(value) or (key in measure.params and key == "cutoff" and value < 1):
            wrong = f"{key}={value!r} will not do" if key in measure.params else f"it needs a {key}"
            example = f"{base.NAME}@10" if key == "cutoff" else f"{base.NAME}({key}=...)"
            raise BadInput(f"measure {text!r}: {wrong}; write for example {example}")
    return measure


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Evaluates many runs against the same judgements, which are read once.

    `max_grade` is the grade at which a reader of ERR is all but satisfied: 4, as in TREC's gdeval.
    """

    measures: tuple[Measure, ...]
    qrels: Qrels
    max_grade: int = 4

    def per_query(self, run: Run) -> dict[Measure, PerQuery]:
        """measure -> query -> value, for every query of the judgements."""
        check_run(run)
        _refuse_nan(run)
        found: dict[Measure, PerQuery] = {}
        for part in self._parts:
            found |= part(run)
        return {measure: found[measure] for measure in self.measures}

    @cached_property
    def _parts(self) -> list[Part]:
        check_qrels(self.qrels)
        passes: dict[_Settings, dict[Measure, str]] = {}
        ranked: dict[Measure, Grades] = {}
        others: list[Measure] = []
        own: list[FunctionMeasure] = []
        for measure in self.measures:
            if isinstance(measure, FunctionMeasure):
                own.append(measure)
            elif trec := _trec_name(measure):
                passes.setdefault(_trec_settings(measure), {})[measure] = trec
            elif measure.NAME == "ERR":
                ranked[measure] = self._err()
            elif measure.NAME in _RANKED:
                ranked[measure] = _RANKED[str(measure.NAME)]
            else:
                others.append(measure)
        parts = [_trec_part(names, self.qrels, settings) for settings, names in passes.items()]
        parts += [_function_part(measure, self.qrels) for measure in own]
        if ranked:
            parts.append(_ranked_part(ranked, self.qrels))
        return parts + ([_other_part(others, self.qrels)] if others else [])

    def _err(self) -> Grades:
        for qid, grades in self.qrels.items():
            if grades and (highest := max(grades.values())) > self.max_grade:
                message = f"query {qid!r} has grade {highest}, but ERR was told that {self.max_grade} is the highest"
                raise BadInput(message)
        return lambda measure, lists: expected_reciprocal_rank(_padded(lists), self.max_grade)


def per_query(measures: Iterable[Measure], qrels: Qrels, run: Run) -> dict[Measure, PerQuery]:
    """measure -> query -> value of one run, for every query of the judgements.

    >>> ap = parse("AP")
    >>> per_query([ap], {"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": {"a": 1.0, "b": 2.0}})[ap]
    {'q1': 0.5, 'q2': 0.0}
    """
    return Evaluator(tuple(measures), qrels).per_query(run)


def score_tables(measures: Sequence[str], qrels: Qrels, runs: Mapping[str, Run]) -> tuple[ScoreTable, ...]:
    """What several measures say of several runs: a table for each measure, from one pass over each run.

    What variance needs besides are measures too: Success@10 for %no, P@10 for R-Loss, Judged@10.

    >>> qrels, runs = {"q1": {"a": 1}, "q2": {"b": 1}}, {"ql": {"q1": {"a": 1.0, "b": 2.0}}}
    >>> [(table.measure, table.values.tolist()) for table in score_tables(["map", "P@1", "Judged@2"], qrels, runs)]
    [('AP', [[0.5, 0.0]]), ('P@1', [[0.0, 0.0]]), ('Judged@2', [[0.5, 0.0]])]
    """
    parsed = [parse(measure) for measure in measures]
    evaluator = Evaluator(tuple(dict.fromkeys(parsed)), qrels)
    found = [evaluator.per_query(run) for run in runs.values()]
    return tuple(
        ScoreTable(
            name(measure),
            tuple(runs),
            tuple(qrels),
            np.array([list(of[measure].values()) for of in found], dtype=np.float64).reshape(len(runs), len(qrels)),
        )
        for measure in parsed
    )


def score_table(measure: str, qrels: Qrels, runs: Mapping[str, Run]) -> ScoreTable:
    """One row of per-query values for each run: what variance and risk are computed from.

    >>> score_table("map", {"q1": {"a": 1}, "q2": {"b": 1}}, {"ql": {"q1": {"a": 1.0, "b": 2.0}}})
    ScoreTable(measure='AP', systems=('ql',), topics=('q1', 'q2'), values=array([[0.5, 0. ]]))
    """
    return score_tables([measure], qrels, runs)[0]


@dataclass(frozen=True)
class Ties:
    """How much of a run's order is chance: shares of neighbours with one score, and of lists with only one."""

    neighbours: float
    constant_lists: float


def tie_rate(run: Run) -> Ties:
    """Shares of neighbouring documents that tie in float32, and of lists (of two or more) that are all one tie.

    >>> tie_rate({"q1": {"a": 1.0, "b": 1.0, "c": 0.0}, "q2": {"a": 2.0, "b": 2.0}})
    Ties(neighbours=0.6666666666666666, constant_lists=0.5)
    """
    lists = [np.sort(np.fromiter(s.values(), np.float32, len(s))) for s in run.values() if len(s) > 1]
    if not lists:
        return Ties(0.0, 0.0)
    tied = [s[1:] == s[:-1] for s in lists]
    return Ties(float(np.concatenate(tied).mean()), float(np.mean([t.all() for t in tied])))


def judged_share(qrels: Qrels, run: Run, k: int | None = 10) -> PerQuery:
    """The share of each query's first k documents that have a judgement; 0 for a query that is not in the run.

    >>> judged_share({"q": {"a": 0}}, {"q": {"a": 2.0, "b": 1.0}})
    {'q': 0.5}
    """
    tops = {qid: top(run.get(qid, {}), k) for qid in qrels}
    return {qid: sum(d in qrels[qid] for d in found) / max(len(found), 1) for qid, found in tops.items()}


def top(scores: Mapping[str, float], k: int | None) -> list[str]:
    """The first k of `types.ranking`, without ordering the others.

    >>> top({"a": 1.0, "b": 1.0, "c": 2.0, "d": 0.5}, 2)
    ['c', 'b']
    """
    if k is None or len(scores) <= k:
        return ranking(scores)
    values = np.fromiter(scores.values(), np.float32, len(scores))
    least = np.partition(values, len(values) - k)[len(values) - k]
    docnos = list(scores)
    return ranking({docnos[i]: scores[docnos[i]] for i in np.flatnonzero(values >= least).tolist()})[:k]


def expected_reciprocal_rank(grades: ArrayLike, max_grade: int = 4) -> NDArray[np.float64]:
    """ERR of lists of grades [..., ranks], best rank first.

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
    """RBP of lists of relevant (1) and other (0) documents [..., ranks], best rank first: (1 - p) Σ rel_r p^(r-1).

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
    """α-nDCG of one ranked list: what a document says of a subtopic is worth 1 - α of what the one before it was.

    DCG = Σ_r log2(1 + r)^-1 Σ_subtopics rel (1 - α)^(relevant documents above), divided by that of the list that takes
    the best next document each time, as ndeval does. `subtopics` has the judgements of each subtopic of one query;
    judgements without subtopics cannot say what is new, so `parse` has no such measure of them.

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

    def cumulated(take: Callable[[int, Mapping[str, int]], str | None]) -> float:
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

    ideal = cumulated(best)
    return cumulated(lambda rank, seen: docnos[rank] if rank < len(docnos) else None) / ideal if ideal else 0.0


def _refuse_nan(run: Run) -> None:
    for qid, scores in run.items():
        # a sum meets every score far faster than a loop does; infinities may make NaN of their own
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
"""What pytrec_eval calls a measure: without a cutoff, and with one."""


@dataclass(frozen=True)
class _Settings:
    """What pytrec_eval can be told only once for all the measures of a pass."""

    rel: int
    judged_only: bool
    exponential: bool
    gains: tuple[tuple[int, int], ...]

    def worth(self, grade: int) -> int:
        grade = int(dict(self.gains).get(grade, grade))
        return 2**grade - 1 if self.exponential and grade > 0 else grade


def _trec_name(measure: Measure) -> str:
    whole, cut = _TREC_NAMES.get(str(measure.NAME), ("", ""))
    return cut.format(measure.params["cutoff"]) if "cutoff" in measure.params else whole


def _trec_settings(measure: Measure) -> _Settings:
    given = measure.params
    gains = tuple(sorted(given.get("gains", {}).items()))
    return _Settings(given.get("rel", 1), given.get("judged_only", False), given.get("dcg") == "exp-log2", gains)


def _trec_part(names: Mapping[Measure, str], qrels: Qrels, settings: _Settings) -> Part:
    import pytrec_eval

    worth = {grade: settings.worth(grade) for grades in qrels.values() for grade in set(grades.values())}
    if (most := max(worth, key=worth.__getitem__, default=0)) in worth and worth[most] > GAIN:
        raise BadInput(
            f"a document of grade {most} gains {worth[most]:,}, more than the {GAIN:,} that can be summed up"
        )
    judged = {qid: {d: worth[g] for d, g in grades.items()} for qid, grades in qrels.items()}
    # pytrec_eval crashes on a query that has no grade from 0 up, and on an empty list; both are worth 0 anyway
    judged = {qid: grades for qid, grades in judged.items() if max(grades.values(), default=-1) >= 0}
    evaluator = pytrec_eval.RelevanceEvaluator(judged, set(names.values()), settings.rel, settings.judged_only)

    def values(rows: Mapping[str, Mapping[str, float]], measure: Measure, key: str) -> PerQuery:
        found = {qid: rows[qid][key] if qid in rows else 0.0 for qid in qrels}
        if measure.NAME == "RR" and "cutoff" in measure.params:  # trec_eval has no cutoff for it
            least = 1 / measure.params["cutoff"]
            return {qid: value if value >= least else 0.0 for qid, value in found.items()}
        return found

    def evaluate(run: Run) -> dict[Measure, PerQuery]:
        lists = {qid: scores for qid, scores in run.items() if scores}
        try:
            rows = evaluator.evaluate(lists)
        except TypeError:  # it takes dicts of Python numbers only
            rows = evaluator.evaluate({qid: {d: float(s) for d, s in scores.items()} for qid, scores in lists.items()})
        return {measure: values(rows, measure, key) for measure, key in names.items()}

    return evaluate


def _ranked_part(measures: Mapping[Measure, Grades], qrels: Qrels) -> Part:
    """Measures of ours, which look at the grades of the first documents: these are found once for all."""
    cutoffs = [measure.params.get("cutoff") for measure in measures]
    deepest: int | None = None if None in cutoffs else max(int(k) for k in cutoffs if k)

    def evaluate(run: Run) -> dict[Measure, PerQuery]:
        lists = [[judged.get(d) for d in top(run.get(qid, {}), deepest)] for qid, judged in qrels.items()]
        found: dict[Measure, PerQuery] = {}
        for measure, of in measures.items():
            k = measure.params.get("cutoff")
            values = of(measure, lists if k == deepest else [grades[:k] for grades in lists])
            found[measure] = dict(zip(qrels, values.tolist(), strict=True))
        return found

    return evaluate


def _function_part(measure: FunctionMeasure, qrels: Qrels) -> Part:
    key = cast("Measure", measure)
    return lambda run: {key: {q: measure.value(grades, ranking(run.get(q, {}))) for q, grades in qrels.items()}}


def _padded(lists: list[list[int | None]]) -> NDArray[np.float64]:
    """Grades [lists, ranks], 0 where there is no judgement and where a list has ended."""
    grades = np.zeros((len(lists), max(map(len, lists), default=0)))
    for row, found in zip(grades, lists, strict=True):
        row[: len(found)] = [grade or 0 for grade in found]
    return grades


def _judged(measure: Measure, lists: list[list[int | None]]) -> NDArray[np.float64]:
    return np.array([sum(grade is not None for grade in found) / max(len(found), 1) for found in lists])


def _unjudged(measure: Measure, lists: list[list[int | None]]) -> NDArray[np.float64]:
    return np.array([sum(grade is None for grade in found) / max(len(found), 1) for found in lists])


def _rbp(measure: Measure, lists: list[list[int | None]]) -> NDArray[np.float64]:
    return rank_biased_precision(_padded(lists) >= measure.params.get("rel", 1), measure.params.get("p", 0.8))


_OF_SUBTOPICS = {"alpha_nDCG", "alpha_DCG", "ERR_IA", "nERR_IA", "NRBP", "nNRBP", "AP_IA", "P_IA", "StRecall"}
_RANKED: dict[str, Grades] = {"Judged": _judged, "Unjudged": _unjudged, "RBP": _rbp}


def _other_part(measures: list[Measure], qrels: Qrels) -> Part:
    import ir_measures

    if subtopics := [name(m) for m in measures if m.NAME in _OF_SUBTOPICS]:
        raise BadInput(
            f"{subtopics[0]} is about subtopics, which these judgements do not tell apart; "
            "`shaketable.measure.effectiveness.alpha_ndcg` takes judgements of each subtopic"
        )
    plain = {qid: dict(grades) for qid, grades in qrels.items() if max(grades.values(), default=-1) >= 0}
    try:
        evaluator = ir_measures.evaluator(measures, plain)
    except ValueError as error:
        names = ", ".join(map(name, measures))
        raise BadInput(
            f"no installed library computes {names}; see ir_measures' providers for one that does"
        ) from error

    def evaluate(run: Run) -> dict[Measure, PerQuery]:
        # its libraries break ties each in its own way: scores that are ranks leave them none to break
        ranks = {qid: {d: -float(i) for i, d in enumerate(ranking(run[qid]))} for qid in qrels if run.get(qid)}
        values: dict[Measure, PerQuery] = {measure: dict.fromkeys(qrels, 0.0) for measure in measures}
        for metric in evaluator.iter_calc(ranks):
            values[metric.measure][metric.query_id] = float(metric.value)
        return values

    return evaluate
