"""Learning from features in general: what a learner is given and gives, folds, search over a grid.

A learner has two doors: `fit` takes a collection, as every learner does, and `fit_rows` takes rows of features, as
LETOR files have them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from shaketable import registry
from shaketable.data.letor import MOST, Letor
from shaketable.data.splits import folds
from shaketable.errors import BadInput, check
from shaketable.learners.baselines import Baselines
from shaketable.learners.ndcg import NDCG
from shaketable.learners.plan import Lessons, Plan
from shaketable.rankers.features import FIELDS, NAMES, Extractor, part_of
from shaketable.rankers.ltr import FittedModel, Linear, Trees
from shaketable.rankers.saved import Saved
from shaketable.text.tokens import Tokenizer
from shaketable.types import Collection, Qrels, Query, Run, Slate, Watch, ranking, unwatched

Floats = NDArray[np.float64]
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


@dataclass(frozen=True, kw_only=True)
class FeatureLearner(ABC):
    """A learner from features: a frozen dataclass whose fields are its settings (see `types.Learner`).

    parts         the parts of a document whose features are computed: title, url, body, document (title and body). A
                  ranker that is to go to collections without titles does better to learn without them.
    """

    grid: ClassVar[Mapping[str, Sequence[Any]]]
    all_names: ClassVar[tuple[str, ...]] = NAMES
    """The features of all parts."""

    parts: tuple[str, ...] = tuple(FIELDS)

    @property
    def names(self) -> tuple[str, ...]:
        """The features that are computed of a collection's texts."""
        found = tuple(name for name in self.all_names if part_of(name) in self.parts)
        fine = bool(found) and set(self.parts) <= FIELDS.keys()
        check(registry.LEARNERS.spec(self), fine, "parts", f"some of {', '.join(FIELDS)}", self.parts)
        return found

    @abstractmethod
    def fit_rows(self, train: Letor, valid: Letor | None, seed: int, baselines: Baselines | None = None) -> Fit:
        """Learn from rows of features, each a document of a query with its label."""

    def fit(
        self,
        collection: Collection,
        train: Sequence[str],
        *,
        valid: Sequence[str] = (),
        seed: int = 0,
        plan: Plan | None = None,
        candidates: Run | None = None,
        folder: str | Path,
        depth: int = 100,
        watch: Watch = unwatched,
        overwrite: bool = False,
    ) -> Saved:
        """Learn from the candidates of the queries `train`: their features, labelled by the judgements."""
        plan = plan or Plan()
        if plan.objective:
            raise BadInput(f"{registry.LEARNERS.spec(self)} has its own objective; {plan.objective} is for nets")
        lessons = Lessons.prepare(collection, train, valid, candidates, depth, seed, hold_out=False)
        queries = {"train": lessons.train, "valid": lessons.valid}
        with watch("computing features", len(lessons.train) + len(lessons.valid), "lists") as advance:
            rows = {}
            for part, qids in queries.items():
                asked = {qid: collection.queries[qid] for qid in qids}
                found = lessons.candidates, collection.qrels
                rows[part] = letor_of(collection, asked, *found, names=self.names) if qids else None
                advance(len(qids))
        assert rows["train"] is not None
        dealt = plan.lists.relabelled(rows["train"], seed)
        model = learn(self, dealt, rows["valid"], seed=seed, baselines=plan.systems(collection))
        model.save(folder, overwrite=overwrite)
        return Saved(str(folder))


AnyLearner = TypeVar("AnyLearner", bound=FeatureLearner)


def learn(
    learner: FeatureLearner,
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
    fit = learner.fit_rows(scaled(train, normalisation), valid and scaled(valid, normalisation), seed, baselines)
    names = train.names or tuple(str(number) for number in range(1, train.dims + 1))
    total = float(fit.importance.sum()) or 1.0
    order = np.argsort(-fit.importance, kind="stable")
    card = {
        "seed": seed,
        "train": {"queries": train.queries, "rows": train.rows, "source": train.source},
        "valid": valid and {"queries": valid.queries, "rows": valid.rows, "source": valid.source, "measure": "NDCG@10"},
        "baselines": list(baselines.systems) if baselines else [],
        "best": fit.best,
        "value": _validated(fit, valid and scaled(valid, normalisation)),
        "history": [dict(row) for row in fit.history],
        "importance": {names[i]: float(fit.importance[i]) / total for i in order},
        "notes": list(remarks(train)),
    }
    spec = registry.LEARNERS.spec(learner)
    return FittedModel(fit.predictor, train.names, normalisation, spec, tokenizer or Tokenizer(), card)


def _validated(fit: Fit, valid: Letor | None) -> float | None:
    """The mean NDCG@10 on the validation queries: one number by which settings can be compared, whatever is learned."""
    return None if valid is None else float(NDCG(valid, 10).of(fit.predictor.predict(valid.features)).mean())


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
        fit = replace(learner, **settings).fit_rows(train, valid, seed, baselines)
        value = float(measure.of(fit.predictor.predict(valid.features)).mean())
        trials.append(settings | {"best": fit.best, "valid": value})
    winner = max(trials, key=lambda trial: trial["valid"])
    return Tuned(replace(learner, **{name: winner[name] for name in grid}), trials)


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
    places = {qid: place for place, qid in enumerate(data.qids)}
    for fold in folds(data.qids, k, seed):
        parts = [np.array([places[qid] for qid in part]) for part in (fold.train, fold.valid, fold.test)]
        train, valid, test = (data.select(part) for part in parts)
        chosen = learner
        if grid:
            rows = (scaled(part, normalisation) for part in (train, valid))
            chosen = tune(learner, *rows, seed=seed, grid=grid, baselines=baselines).learner
        model = learn(chosen, train, valid, seed=seed, normalisation=normalisation, baselines=baselines)
        scores[np.isin(data.owners, parts[2])] = model.scores(test)
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
        # lists share documents, and one that is looked up may be read from a file
        docs = {docno: collection.docs[docno] for docno in dict.fromkeys(d for qid in batch for d in listed[qid])}
        slates = [Slate(queries[qid].text, tuple(docs[docno] for docno in listed[qid])) for qid in batch]
        blocks.append(extractor.remembered(slates).astype(np.float32))
    labels = np.array([max(0, qrels.get(qid, {}).get(docno, 0)) for qid in qids for docno in listed[qid]])
    if labels.max() > MOST:
        raise BadInput(f"a judgement of {collection.name} is {labels.max()}; labels to learn from are 0 to {MOST}")
    starts = np.concatenate(([0], np.cumsum([len(docnos) for docnos in listed.values()])))
    every = tuple(docno for docnos in listed.values() for docno in docnos)
    return Letor(np.concatenate(blocks), labels, starts, qids, every, tuple(names), collection.name)
