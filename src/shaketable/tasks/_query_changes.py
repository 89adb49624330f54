"""Rankings of changed queries, shared by all tasks on queries.

In the setting "pipeline", the first stage retrieves candidates for the changed query. In the setting "re-ranker", the
candidates are those of the original query, and only the ranker sees the changed query. A search engine cannot
re-rank; it always searches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shaketable.core.documents import Qrels, Run, rank_docnos
from shaketable.core.errors import BadInput
from shaketable.core.protocols import can_score_texts
from shaketable.core.results import LIST_LENGTH, Example, Finding
from shaketable.measures.effectiveness import Evaluator
from shaketable.measures.measure_names import parse_measure
from shaketable.measures.paired_comparison import (
    MOVEMENT_BETTER_DIRECTION,
    MOVEMENT_HEADINGS,
    Movement,
    Weights,
    mean_movement_intervals,
    measure_movement,
    query_means,
)
from shaketable.rankers.similarity import build_validity_judge
from shaketable.transforms.published import read_variations
from shaketable.transforms.vary import Variation, normalise_query

if TYPE_CHECKING:
    from shaketable.experiment import Experiment

PIPELINE = "pipeline"
RERANKER = "re-ranker"
SETTINGS_NOTE = (
    "In the setting 'pipeline' the first stage and the ranker both see the changed query; in the setting 're-ranker' "
    "the candidates stay those of the original query, and only the ranker sees the changed one."
)


@dataclass(frozen=True, slots=True)
class ChangedQuery:
    """A changed query: the id of its original, its text, and the original text."""

    qid: str
    text: str
    original: str = field(default="", compare=False)


def list_settings(experiment: Experiment) -> tuple[str, ...]:
    """Return the settings that apply: a collection with its own candidates has no pipeline."""
    return (RERANKER,) if experiment.collection.candidates else (PIPELINE, RERANKER)


def rank_changed_queries(
    experiment: Experiment, ranker: str, changed_queries: Sequence[ChangedQuery], setting: str, shortlist: int = 0
) -> Run:
    """Return the list of each changed query, keyed by its index; each distinct text of a query is ranked once.

    With a `shortlist`, a re-ranker ranks only so many documents: the first of its list of the original query.
    """
    first: dict[ChangedQuery, int] = {}
    for changed_query in changed_queries:
        first.setdefault(changed_query, len(first))
    texts = {str(i): changed_query.text for changed_query, i in first.items()}
    if setting == PIPELINE or not can_score_texts(experiment.get_ranker(ranker)):
        lists = experiment.run_pipeline(ranker, texts)
    else:
        known = _cut_candidates(experiment, ranker, {one.qid for one in first}, shortlist)
        candidates = {str(i): known.get(changed_query.qid, {}) for changed_query, i in first.items()}
        lists = experiment.rerank(ranker, texts, candidates)
    return {str(i): lists.get(str(first[changed_query]), {}) for i, changed_query in enumerate(changed_queries)}


def _cut_candidates(experiment: Experiment, ranker: str, qids: Iterable[str], shortlist: int) -> Run:
    """Return the candidates of queries, with the scores of the first stage; all, or the first of the ranker's list."""
    listed = {qid: experiment.candidates[qid] for qid in qids if qid in experiment.candidates}
    if not shortlist or experiment.is_retriever(ranker):
        return listed
    own = experiment.get_run(ranker)
    return {
        qid: {docno: scores[docno] for docno in rank_docnos(own[qid])[:shortlist]}
        for qid, scores in listed.items()
        if qid in own
    }


def measure_changed_queries(
    experiment: Experiment, measure: str, changed_queries: Sequence[ChangedQuery], run: Run
) -> NDArray[np.float64]:
    """Return the value of a measure for each changed query, by the judgements of its original query."""
    wanted = parse_measure(measure)
    qrels = {str(i): experiment.qrels[changed_query.qid] for i, changed_query in enumerate(changed_queries)}
    values = Evaluator((wanted,), qrels).evaluate(run)[wanted]
    return np.array([values[key] for key in qrels])


@dataclass(frozen=True)
class ChangedQueryRun:
    """The runs of one ranker in one setting for changed and original queries, and their values.

    Without judgements there are no values.
    """

    changed_queries: Sequence[ChangedQuery]
    run_before: Run
    run_after: Run
    values_before: NDArray[np.float64] | None
    values_after: NDArray[np.float64] | None
    qrels: Qrels = field(default_factory=dict)

    @cached_property
    def movements(self) -> list[Movement]:
        """How far the list of each changed query moved."""
        tops = {key: rank_docnos(scores) for key, scores in self.run_before.items()}
        return [
            measure_movement(tops[str(i)], rank_docnos(self.run_after[str(i)]))
            for i in range(len(self.changed_queries))
        ]

    def compute_drops(self, indices: Sequence[int] | None = None, weights: Weights | None = None) -> dict[str, float]:
        """Return each query's contribution to the drop of the mean, in per cent, over all or some changed queries.

        The result is empty without judgements, or if the mean before is 0.
        """
        if self.values_before is None or self.values_after is None:
            return {}
        chosen = range(len(self.changed_queries)) if indices is None else indices
        qids = [self.changed_queries[i].qid for i in chosen]
        before, after = (query_means(qids, values[list(chosen)]) for values in (self.values_before, self.values_after))
        return compute_query_drops(before, after, weights)

    def compute_overlaps(self, indices: Sequence[int] | None = None) -> dict[str, float]:
        """Return the share of the first ten documents that remain, by query."""
        chosen = range(len(self.changed_queries)) if indices is None else indices
        known = [i for i in chosen if not np.isnan(self.movements[i].overlap)]
        return query_means([self.changed_queries[i].qid for i in known], [self.movements[i].overlap for i in known])

    def make_example(self, ranker: str, index: int, change: str) -> Example:
        """Return a changed query as an example: the texts, the values, and a document that moved.

        The document is the relevant one that fell furthest, or rose furthest if the value rose. Without judgements, or
        if no relevant document moved, it is the former first document.
        """
        changed_query, key = self.changed_queries[index], str(index)
        old, new = rank_docnos(self.run_before[key]), rank_docnos(self.run_after[key])
        values = [float("nan") if v is None else float(v[index]) for v in (self.values_before, self.values_after)]
        document = self._find_moved_document(changed_query.qid, old, new, values[1] > values[0]) or (
            old[0] if old else ""
        )
        return Example(
            ranker,
            changed_query.qid,
            change,
            changed_query.original or changed_query.text,
            changed_query.text,
            values[0],
            values[1],
            document,
            _find_rank(old, document),
            _find_rank(new, document),
            tuple(old[:LIST_LENGTH]),
            tuple(new[:LIST_LENGTH]),
        )

    def _find_moved_document(self, qid: str, old: Sequence[str], new: Sequence[str], rising: bool) -> str:
        """Return the relevant document of either top ten that fell (or rose) furthest; "" if none moved."""
        relevant = [docno for docno in (*old[:10], *new[:10]) if self.qrels.get(qid, {}).get(docno, 0) > 0]
        below = max(len(old), len(new)) + 1
        falls = {d: (_find_rank(new, d) or below) - (_find_rank(old, d) or below) for d in relevant}
        furthest = max(falls, key=lambda d: -falls[d] if rising else falls[d], default="")
        return furthest if furthest and falls[furthest] and (falls[furthest] < 0) == rising else ""


def compute_query_drops(
    before: Mapping[str, float], after: Mapping[str, float], weights: Weights | None = None
) -> dict[str, float]:
    """Return the contribution of each query with both values to the drop of the mean, in per cent of the mean before.

    >>> compute_query_drops({"a": 0.5, "b": 0.5}, {"a": 0.25, "b": 0.5})
    {'a': -50.0, 'b': 0.0}
    """
    both = [qid for qid in before if qid in after]
    heavy = [weights[qid] for qid in both] if weights else None
    start = float(np.average([before[qid] for qid in both], weights=heavy)) if both else 0.0
    return {qid: 100 * (after[qid] - before[qid]) / start for qid in both} if start else {}


def run_changed_queries(
    experiment: Experiment,
    ranker: str,
    changed_queries: Sequence[ChangedQuery],
    measure: str,
    setting: str,
    shortlist: int = 0,
) -> ChangedQueryRun:
    """Rank each changed query and its original, and measure both if there are judgements."""
    plain = [
        ChangedQuery(changed_query.qid, changed_query.original or experiment.queries[changed_query.qid].text)
        for changed_query in changed_queries
    ]
    old, new = (
        rank_changed_queries(experiment, ranker, plain, setting, shortlist),
        rank_changed_queries(experiment, ranker, changed_queries, setting, shortlist),
    )
    if not experiment.qrels:
        return ChangedQueryRun(changed_queries, old, new, None, None)
    before, after = (
        measure_changed_queries(experiment, measure, plain, old),
        measure_changed_queries(experiment, measure, changed_queries, new),
    )
    return ChangedQueryRun(changed_queries, old, new, before, after, experiment.qrels)


def _find_rank(docnos: Sequence[str], docno: str) -> int:
    """Return the rank of a document, from 1; 0 if it is not in the list."""
    return docnos.index(docno) + 1 if docno in docnos else 0


def build_stability_rows(
    experiment: Experiment, about: Mapping[str, str], qids: Sequence[str], movements: Sequence[Movement]
) -> list[dict[str, Any]]:
    """Return the movement of lists by each measure that needs no judgements, with intervals over queries."""
    return [
        {**about, "measure": heading, "mean": mean.value, "low": mean.low, "high": mean.high, "queries": mean.n}
        for heading, mean in mean_movement_intervals(qids, movements, experiment.seed, experiment.weights).items()
    ]


QueryContributions: TypeAlias = Mapping[tuple[str, str], Mapping[str, float]]
"""(change of the queries, ranker) -> the contribution of each query to a number."""


def build_stability_findings(
    rows: Sequence[Mapping[str, Any]], by: str, overlaps: QueryContributions, facets: Mapping[str, str]
) -> list[Finding]:
    """Return stability rows as findings, such as "overlap(misspelling)" and "RBO(misspelling)".

    `facets` maps a change to the facet that its overlap decides; it is empty if judgements decide the facets.
    """
    findings = []
    for row in rows:
        overlap = row["measure"] == MOVEMENT_HEADINGS["overlap"]
        findings.append(
            Finding(
                row["ranker"],
                f"{'overlap' if overlap else row['measure']}({row[by]})",
                row["mean"],
                row["low"],
                row["high"],
                row["queries"],
                better=MOVEMENT_BETTER_DIRECTION[row["measure"]],
                facet=facets.get(row[by], "") if overlap else "",
                values=overlaps[row[by], row["ranker"]] if overlap else {},
            )
        )
    return findings


def make_original_queries(experiment: Experiment, variations: Sequence[Variation]) -> list[ChangedQuery]:
    """Return the original queries, normalised like their variations (usually in lower case).

    If tests use samples of the queries, only the queries with variations are returned.
    """
    texts = {v.qid: v.original for v in variations}
    lower = all(text == text.lower() for text in texts.values())
    wanted = experiment.texts if experiment.sizes.is_complete else {qid: experiment.texts[qid] for qid in texts}
    return [ChangedQuery(qid, texts.get(qid) or normalise_query(text, lower)) for qid, text in wanted.items()]


def get_variations(
    experiment: Experiment, transforms: Sequence[str], n: int, file: str = ""
) -> tuple[list[Variation], dict[str, str]]:
    """Return the variations of the queries, from a file if one is named, and the skipped transforms."""
    if not file:
        return experiment.make_variations(transforms, n)
    variations = read_variations(Path(file), experiment.queries, build_validity_judge(experiment.collection))
    if not variations:
        raise BadInput(f"no variation in it belongs to a query of {experiment.collection.name}", file)
    return variations, {}
