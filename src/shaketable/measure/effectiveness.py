"""How good a run is, query by query, as trec_eval counts it.

Every query of the judgements has a value: one that is missing from the run counts 0 (trec_eval's -c), and so does one
without relevant documents, average precision and nDCG included. Lists are ordered by `types.ranking`: float32 score
descending, then docno descending, whichever library does the sum.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shaketable.data.bounds import GAIN, check_qrels, check_run
from shaketable.errors import BadInput, UnknownName
from shaketable.types import Qrels, Run, ScoreTable, ranking

if TYPE_CHECKING:
    from ir_measures import Measure

PerQuery: TypeAlias = dict[str, float]
Part: TypeAlias = "Callable[[Run], dict[Measure, PerQuery]]"
"""Evaluates some of the measures wanted: one call of a library, or one function of ours."""

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
    "SetF": "F1 of the retrieved set",
    "Judged@10": "share of the first 10 that has a judgement",
}
"""The measures most asked for; `parse` reads all that ir_measures has."""

_FORM = re.compile(r"([^\W\d][\w-]*?)(?:\((.*)\))?(?:[@_.](\d+(?:\.\d+)?))?", re.DOTALL)


def parse(text: str) -> Measure:
    """The measure that a text names, in the words of ir_measures, trec_eval or a paper; case does not matter.

    >>> parse("ndcg_cut_10"), parse("mrr@10"), parse("RR(rel=2)@10"), parse("nDCG(dcg='exp-log2')@10")
    (nDCG@10, RR@10, RR(rel=2)@10, nDCG(dcg='exp-log2')@10)
    """
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
    return own | {nickname: registry[key] for nickname, key in NICKNAMES.items()}


def _named(text: str) -> Measure:
    key = text.lower().replace("-", "_")
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
        parts: list[Part] = []
        passes: dict[_Settings, dict[Measure, str]] = {}
        others: list[Measure] = []
        for measure in self.measures:
            if trec := _trec_name(measure):
                passes.setdefault(_trec_settings(measure), {})[measure] = trec
            elif measure.NAME == "ERR":
                parts.append(_err_part(measure, self.qrels, self.max_grade))
            elif measure.NAME == "Judged":
                parts.append(_judged_part(measure, self.qrels))
            else:
                others.append(measure)
        parts += [_trec_part(names, self.qrels, settings) for settings, names in passes.items()]
        return parts + ([_other_part(others, self.qrels)] if others else [])


def per_query(measures: Iterable[Measure], qrels: Qrels, run: Run) -> dict[Measure, PerQuery]:
    """measure -> query -> value of one run, for every query of the judgements.

    >>> ap = parse("AP")
    >>> per_query([ap], {"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": {"a": 1.0, "b": 2.0}})[ap]
    {'q1': 0.5, 'q2': 0.0}
    """
    return Evaluator(tuple(measures), qrels).per_query(run)


def score_table(measure: str, qrels: Qrels, runs: Mapping[str, Run]) -> ScoreTable:
    """One row of per-query values for each run: what variance and risk are computed from.

    >>> score_table("map", {"q1": {"a": 1}, "q2": {"b": 1}}, {"ql": {"q1": {"a": 1.0, "b": 2.0}}})
    ScoreTable(measure='AP', systems=('ql',), topics=('q1', 'q2'), values=array([[0.5, 0. ]]))
    """
    parsed = parse(measure)
    evaluator = Evaluator((parsed,), qrels)
    rows = [list(evaluator.per_query(run)[parsed].values()) for run in runs.values()]
    values = np.array(rows, dtype=np.float64).reshape(len(runs), len(qrels))
    return ScoreTable(name(parsed), tuple(runs), tuple(qrels), values)


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
    tops = {qid: ranking(run.get(qid, {}))[:k] for qid in qrels}
    return {qid: sum(d in qrels[qid] for d in top) / max(len(top), 1) for qid, top in tops.items()}


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


def _err_part(measure: Measure, qrels: Qrels, max_grade: int) -> Part:
    for qid, grades in qrels.items():
        if grades and (highest := max(grades.values())) > max_grade:
            raise BadInput(f"query {qid!r} has grade {highest}, but ERR was told that {max_grade} is the highest")

    def evaluate(run: Run) -> dict[Measure, PerQuery]:
        tops = [ranking(run.get(qid, {}))[: measure.params.get("cutoff")] for qid in qrels]
        grades = np.zeros((len(tops), max(map(len, tops), default=0)))
        for row, top, judged in zip(grades, tops, qrels.values(), strict=True):
            row[: len(top)] = [judged.get(docno, 0) for docno in top]
        return {measure: dict(zip(qrels, expected_reciprocal_rank(grades, max_grade).tolist(), strict=True))}

    return evaluate


def _judged_part(measure: Measure, qrels: Qrels) -> Part:
    return lambda run: {measure: judged_share(qrels, run, measure.params.get("cutoff"))}


def _other_part(measures: list[Measure], qrels: Qrels) -> Part:
    import ir_measures

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
