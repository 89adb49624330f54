"""Fitting in general: what a learner is given and gives, folds, search over a grid, features of a collection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from shaketable import registry
from shaketable.chance import draws_for
from shaketable.data.letor import MOST, Letor
from shaketable.errors import BadInput
from shaketable.rank.features import NAMES, Extractor
from shaketable.rank.ltr import FittedModel, Linear, Trees
from shaketable.text.tokens import Tokenizer
from shaketable.train.ndcg import NDCG
from shaketable.types import Collection, Qrels, Query, Run, ScoreTable, Slate, ranking

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BATCH = 256  # queries whose documents are in memory at a time


@dataclass(frozen=True, eq=False)
class Fit:
    """What a learner found, and how it came there."""

    predictor: Linear | Trees
    history: Sequence[Mapping[str, float]]
    """A row for each iteration: its number, and what was measured on the training and the validation queries."""
    best: int
    """The iteration that was kept."""
    importance: Floats
    """How much each feature has to say; only ratios mean something."""


class Learner(Protocol):
    """A frozen dataclass whose fields are its settings; `grid` holds the values that its paper chose them from."""

    grid: ClassVar[Mapping[str, Sequence[Any]]]

    def fit(self, train: Letor, valid: Letor | None, seed: int, baselines: Baselines | None = None) -> Fit: ...


AnyLearner = TypeVar("AnyLearner", bound=Learner)
System: TypeAlias = Callable[[Letor, NDCG], Floats]
"""Whoever ranks the lists of a data set: the NDCG it reaches on each of them."""


@dataclass(frozen=True)
class Baselines:
    """What a ranker should not lose to, by name."""

    systems: Mapping[str, System]

    def values(self, data: Letor, ndcg: NDCG) -> Floats:
        """NDCG of each baseline (rows) on each query (columns)."""
        return np.stack([system(data, ndcg) for system in self.systems.values()])


def by_feature(number: int) -> System:
    """The ranking by one feature, numbered from 1 as in LETOR files."""

    def values(data: Letor, ndcg: NDCG) -> Floats:
        if not 1 <= number <= data.dims:
            raise BadInput(f"there is no feature {number} to be a baseline; there are {data.dims}", data.source or None)
        return ndcg.of((data.unscaled or data).features[:, number - 1])  # scaled, near values may tie

    return values


def by_model(model: FittedModel) -> System:
    """The ranking of a model, which should have learned from other queries.

    It is given the features as they came, whatever its rival is given: each model scales them as it learned to.
    """
    return lambda data, ndcg: ndcg.of(model.scores(data.unscaled or data))


def by_run(run: Run, name: str) -> System:
    """The ranking of a run; documents that it lacks come last."""

    def values(data: Letor, ndcg: NDCG) -> Floats:
        _refuse_missing(data, run, f"baseline {name}")
        scores = [run[data.qids[q]].get(docno, -np.inf) for q, docno in zip(data.owners, data.docnos, strict=True)]
        return ndcg.of(np.array(scores))

    return values


def by_table(table: ScoreTable, system: str) -> System:
    """Values measured elsewhere; they should be of the same NDCG."""
    known = dict(zip(table.topics, table.row(system).tolist(), strict=True))

    def values(data: Letor, ndcg: NDCG) -> Floats:
        _refuse_missing(data, known, f"baseline {system}")
        return np.array([known[qid] for qid in data.qids])

    return values


def _refuse_missing(data: Letor, known: Mapping[str, Any], what: str) -> None:
    if missing := [qid for qid in data.qids if qid not in known]:
        raise BadInput(f"{what} has nothing for query {missing[0]!r} ({len(missing)} of {data.queries} such)")


def learn(
    learner: Learner,
    train: Letor,
    valid: Letor | None = None,
    *,
    seed: int = 0,
    normalisation: str = "query",
    tokenizer: Tokenizer | None = None,
    baselines: Baselines | None = None,
) -> FittedModel:
    """Fit a learner and make a model of it, with a card that says how it came about.

    With normalisation "query" features are brought to [0, 1] within each query, here and whenever the model ranks.
    """
    refuse_nothing_to_learn(train)
    if valid is not None and valid.dims != train.dims:
        message = f"there are {valid.dims} features to validate on and {train.dims} to learn from"
        raise BadInput(message, valid.source or None)
    fit = learner.fit(scaled(train, normalisation), valid and scaled(valid, normalisation), seed, baselines)
    names = train.names or tuple(str(number) for number in range(1, train.dims + 1))
    total = float(fit.importance.sum()) or 1.0
    order = np.argsort(-fit.importance, kind="stable")
    card = {
        "seed": seed,
        "train": {"queries": train.queries, "rows": train.rows, "source": train.source},
        "valid": valid and {"queries": valid.queries, "rows": valid.rows, "source": valid.source},
        "baselines": list(baselines.systems) if baselines else [],
        "best": fit.best,
        "history": [{key: float(value) for key, value in row.items()} for row in fit.history],
        "importance": {names[i]: float(fit.importance[i]) / total for i in order},
        "notes": list(remarks(train)),
    }
    spec = registry.LEARNERS.spec(learner)
    return FittedModel(fit.predictor, train.names, normalisation, spec, tokenizer or Tokenizer(), card)


def scaled(data: Letor, normalisation: str) -> Letor:
    """The features as a model with this normalisation reads them."""
    return data.normalised() if normalisation == "query" else data


def refuse_nothing_to_learn(train: Letor) -> None:
    """An order can only be learned from queries that have documents of different labels."""
    if not train.telling.any():
        message = "no query has documents of different labels, so there is no order to learn"
        raise BadInput(message, train.source or None)


def remarks(train: Letor) -> Iterator[str]:
    """What a reader should know of queries that teach nothing."""
    single = int((train.sizes == 1).sum())
    alike = int((~train.telling).sum()) - single
    if single:
        yield f"{single} of {train.queries} queries have one document only and teach nothing"
    if alike:
        yield f"{alike} of {train.queries} queries have documents of one label only and teach no order"


@dataclass(frozen=True, eq=False)
class Fold:
    """Numbers of queries to learn from, to choose settings by, and to measure on."""

    train: Ints
    valid: Ints
    test: Ints


def folds(qids: Sequence[str], k: int = 5, seed: int = 0) -> list[Fold]:
    """Queries dealt into k parts: each is tested on once, the next validates, the others train, as in LETOR.

    Which part a query is in depends on the seed and its id, not on where it stands.

    >>> [len(part) for part in vars(folds("abcdefghij", k=5)[0]).values()]
    [6, 2, 2]
    """
    if not 3 <= k <= len(qids):
        raise BadInput(f"{len(qids)} queries cannot be cut into {k} folds of train, validation and test; 3 are needed")
    order = sorted(range(len(qids)), key=lambda query: (draws_for(seed, "fold", qids[query]).bits(), qids[query]))
    parts = [np.sort(np.array(order[start::k], dtype=np.int64)) for start in range(k)]
    return [
        Fold(
            np.sort(np.concatenate([parts[p] for p in range(k) if p not in (i, (i + 1) % k)])),
            parts[(i + 1) % k],
            parts[i],
        )
        for i in range(k)
    ]


@dataclass(frozen=True, eq=False)
class Tuned:
    """The best settings on the validation queries, and what every other gave."""

    learner: Any
    trials: Sequence[Mapping[str, Any]]


def tune(
    learner: AnyLearner,
    train: Letor,
    valid: Letor,
    *,
    seed: int = 0,
    grid: Mapping[str, Sequence[Any]] | None = None,
    truncation: int = 10,
    baselines: Baselines | None = None,
) -> Tuned:
    """Try every point of a grid, by default that of the learner's paper: the best mean NDCG on `valid` wins.

    Features are taken as they are: normalise both sets before.
    """
    grid = learner.grid if grid is None else grid
    measure = NDCG(valid, truncation)
    trials: list[dict[str, Any]] = []
    for point in product(*grid.values()):
        settings = dict(zip(grid, point, strict=True))
        fit = replace(learner, **settings).fit(train, valid, seed, baselines)  # type: ignore[type-var]
        value = float(measure.of(fit.predictor.predict(valid.features)).mean())
        trials.append(settings | {"best": fit.best, "valid": value})
    winner = max(trials, key=lambda trial: trial["valid"])
    return Tuned(replace(learner, **{name: winner[name] for name in grid}), trials)  # type: ignore[type-var]


def cross_validate(
    learner: AnyLearner,
    data: Letor,
    *,
    k: int = 5,
    seed: int = 0,
    normalisation: str = "query",
    grid: Mapping[str, Sequence[Any]] | None = None,
    baselines: Baselines | None = None,
) -> tuple[Floats, list[FittedModel]]:
    """Scores of all rows, each from the model of the fold that tests on it, and those models.

    With a grid, settings are chosen in every fold on its own validation queries.
    """
    scores, models = np.empty(data.rows), []
    for fold in folds(data.qids, k, seed):
        train, valid, test = (data.select(part) for part in (fold.train, fold.valid, fold.test))
        chosen = learner
        if grid:
            parts = (scaled(part, normalisation) for part in (train, valid))
            chosen = tune(learner, *parts, seed=seed, grid=grid, baselines=baselines).learner
        model = learn(chosen, train, valid, seed=seed, normalisation=normalisation, baselines=baselines)
        scores[np.isin(data.owners, fold.test)] = model.scores(test)
        models.append(model)
    return scores, models


def letor_of(
    collection: Collection,
    queries: Mapping[str, Query],
    candidates: Run,
    qrels: Qrels,
    *,
    names: Sequence[str] = NAMES,
    tokenizer: Tokenizer | None = None,
) -> Letor:
    """The features of each query's candidates, best first, not normalised, labelled by the judgements.

    A candidate without a judgement has label 0, and so has one judged worse than not relevant.
    """
    extractor = Extractor.open(collection.docs, tokenizer or Tokenizer(), names)
    listed = {qid: ranking(candidates[qid]) for qid in queries if candidates.get(qid)}
    if not listed:
        raise BadInput(f"collection {collection.name}: no query has candidates to compute features of")
    for qid, docnos in listed.items():
        if unknown := next((docno for docno in docnos if docno not in collection.docs), None):
            raise BadInput(f"candidate {unknown!r} of query {qid!r} is not a document of {collection.name}")
    qids, blocks = tuple(listed), []
    for start in range(0, len(qids), BATCH):
        batch = qids[start : start + BATCH]
        slates = [Slate(queries[qid].text, tuple(collection.docs[docno] for docno in listed[qid])) for qid in batch]
        blocks.append(extractor.rows(slates).astype(np.float32))
    labels = np.array([max(0, qrels.get(qid, {}).get(docno, 0)) for qid in qids for docno in listed[qid]])
    if labels.max() > MOST:
        raise BadInput(f"a judgement of {collection.name} is {labels.max()}; labels to learn from are 0 to {MOST}")
    starts = np.concatenate(([0], np.cumsum([len(docnos) for docnos in listed.values()])))
    every = tuple(docno for docnos in listed.values() for docno in docnos)
    return Letor(np.concatenate(blocks), labels, starts, qids, every, tuple(names), collection.name)
