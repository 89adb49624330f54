"""Baselines of risk-sensitive training: systems whose NDCG on each list is known or can be computed.

Specs: feature:N, run:FILE, scores:FILE.csv, model:FOLDER, or, for the lists of a collection, any
ranker such as bm25.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shaketable.core.documents import Collection, Run, Slate
from shaketable.core.errors import BadInput
from shaketable.core.protocols import Ranker
from shaketable.core.registries import RANKERS
from shaketable.core.results import ScoreTable
from shaketable.datasets.letor import Letor
from shaketable.datasets.scores import read_scores
from shaketable.datasets.trec import read_run
from shaketable.rankers import ltr
from shaketable.rankers.ltr import FittedModel
from shaketable.rankers.saved import SavedModel
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.validation import call_ranker
from shaketable.training.ndcg import NDCG

Floats = NDArray[np.float64]
BaselineNDCG: TypeAlias = Callable[[Letor, NDCG], Floats]
"""A baseline on a data set: its NDCG on each list."""
BaselineScorer: TypeAlias = Callable[[str, Slate], Floats]
"""A baseline on lists of texts: query id and slate -> scores."""
_FEATURE_NUMBER = re.compile("[0-9]{1,9}")


@dataclass(frozen=True)
class Baselines:
    """The baselines of a training, by name."""

    systems: Mapping[str, BaselineNDCG]

    def compute_ndcg(self, data: Letor, ndcg: NDCG) -> Floats:
        """Return the NDCG of each baseline (rows) on each query (columns)."""
        return np.stack([system(data, ndcg) for system in self.systems.values()])


def make_feature_baseline(number: int) -> BaselineNDCG:
    """Return a baseline that ranks by one feature, numbered from 1 as in LETOR files."""

    def values(data: Letor, ndcg: NDCG) -> Floats:
        if not 1 <= number <= data.feature_count:
            raise BadInput(
                f"there is no feature {number} for the baseline; there are {data.feature_count}", data.source or None
            )
        return ndcg.compute((data.unscaled or data).features[:, number - 1])  # scaling may make near values tie

    return values


def make_model_baseline(model: FittedModel) -> BaselineNDCG:
    """Return a baseline that ranks by a model, which should have learned from other queries.

    The model gets the unscaled features, because each model applies its own normalisation.
    """
    return lambda data, ndcg: ndcg.compute(model.score_letor(data.unscaled or data))


def make_run_baseline(run: Run, name: str) -> BaselineNDCG:
    """Return a baseline that ranks by a run; documents that are not in the run come last."""

    def values(data: Letor, ndcg: NDCG) -> Floats:
        _refuse_missing(data, run, f"baseline {name}")
        scores = [
            run[data.qids[q]].get(docno, -np.inf) for q, docno in zip(data.query_numbers, data.docnos, strict=True)
        ]
        return ndcg.compute(np.array(scores))

    return values


def make_table_baseline(table: ScoreTable, system: str) -> BaselineNDCG:
    """Return a baseline with given values, which should be of the same NDCG."""
    known = dict(zip(table.topics, table.row(system).tolist(), strict=True))

    def values(data: Letor, ndcg: NDCG) -> Floats:
        _refuse_missing(data, known, f"baseline {system}")
        return np.array([known[qid] for qid in data.qids])

    return values


def _refuse_missing(data: Letor, known: Mapping[str, Any], what: str) -> None:
    if missing := [qid for qid in data.qids if qid not in known]:
        raise BadInput(
            f"{what} has no value for query {missing[0]!r} ({len(missing)} of {data.query_count} queries are missing)"
        )


def make_ranker_baseline(ranker: Ranker, collection: Collection) -> BaselineNDCG:
    """Return a baseline that ranks by any ranker; the rows must be documents of the collection."""

    def values(data: Letor, ndcg: NDCG) -> Floats:
        slates = [
            Slate(collection.queries[qid].text, tuple(collection.docs[docno] for docno in data.docnos[start:end]))
            for qid, start, end in zip(data.qids, data.starts[:-1], data.starts[1:], strict=True)
        ]
        return ndcg.compute(np.concatenate(call_ranker(ranker, ranker.name, slates)))

    return values


def read_baselines(texts: Sequence[str], collection: Collection | None = None) -> Baselines | None:
    """Return the baselines named by the texts, or None if there are no texts."""
    systems: dict[str, BaselineNDCG] = {}
    for text in texts:
        systems |= _parse_baseline(text, collection)
    return Baselines(systems) if systems else None


def _parse_baseline(text: str, collection: Collection | None) -> dict[str, BaselineNDCG]:
    """Return the baselines of one text: one system, or each column of a table of scores."""
    kind, _, value = text.partition(":")
    if kind == "feature" and _FEATURE_NUMBER.fullmatch(value):
        return {text: make_feature_baseline(int(value))}
    if kind == "run" and value:
        return {text: make_run_baseline(read_run(Path(value)), value)}
    if kind == "model" and value:
        return {text: make_model_baseline(ltr.read_model(value))}
    if kind == "scores" and value:
        table = read_scores(Path(value))
        return {f"{text}:{system}": make_table_baseline(table, system) for system in table.systems}
    if collection is not None:
        return {text: make_ranker_baseline(RANKERS.build(text).open(collection), collection)}
    raise BadInput(
        f"cannot read the baseline {text!r}: write feature:N, run:FILE, scores:FILE.csv or model:FOLDER; "
        "with a collection, also a ranker such as bm25"
    )


def read_text_baselines(texts: Sequence[str], collection: Collection) -> list[BaselineScorer]:
    """Return the baselines of a net as scorers of lists of texts: rankers, models and runs.

    Features and tables of scores are refused: features need rows, and the values of a table are of other lists.
    """
    return [_parse_text_baseline(text, collection) for text in texts]


def _parse_text_baseline(text: str, collection: Collection) -> BaselineScorer:
    kind, _, value = text.partition(":")
    if (kind == "feature" and _FEATURE_NUMBER.fullmatch(value)) or (kind == "scores" and value):
        raise BadInput(f"the baseline {text} cannot rank texts, which neural nets learn from; name a ranker")
    if kind == "run" and value:
        return _make_run_scorer(read_run(Path(value)), value, collection)
    model = SavedModel(value) if kind == "model" and value else RANKERS.build(text)
    ranker = model.open(collection)
    engine = ScoringEngine()  # caches the scores of texts that occur in many lists

    def scores(qid: str, slate: Slate) -> Floats:
        return np.asarray(engine.score(ranker, [slate])[0], np.float64)

    return scores


def _make_run_scorer(run: Run, name: str, collection: Collection) -> BaselineScorer:
    """Return a scorer by a run, which finds the docno of a text; texts that are not in the run come last."""
    docs = collection.docs

    def scores(qid: str, slate: Slate) -> Floats:
        if qid not in run:
            raise BadInput(f"baseline {name} has no documents for query {qid!r}")
        known = {docs[docno].text: score for docno, score in run[qid].items() if docno in docs}
        least = min(known.values(), default=0.0)
        return np.array([known.get(doc.text, least - max(1.0, abs(least))) for doc in slate.docs])

    return scores
