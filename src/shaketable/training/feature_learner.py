"""Learning from features: the base class of learners, cross-validation, and grid search.

`fit` takes a collection, as for every learner; `fit_rows` takes rows of features, as in LETOR files.
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

from shaketable.core import registries
from shaketable.core.documents import Collection, Qrels, Query, Run, Slate, rank_docnos
from shaketable.core.errors import BadInput, check_parameter
from shaketable.core.progress import ProgressFactory, no_progress
from shaketable.datasets.letor import MAX_LETOR_LABEL, Letor
from shaketable.datasets.splits import make_folds
from shaketable.nlp.analyzer import Analyzer
from shaketable.rankers.features import DEFAULT_COLUMNS, FIELDS, FeatureExtractor, parse_field
from shaketable.rankers.ltr import FittedModel, LinearPredictor, TreePredictor
from shaketable.rankers.saved import SavedModel
from shaketable.training.baselines import Baselines
from shaketable.training.ndcg import NDCG
from shaketable.training.plan import TrainingData, TrainingPlan

Floats = NDArray[np.float64]
QUERIES_PER_BATCH = 256  # queries whose documents are in memory at a time


@dataclass(frozen=True, eq=False)
class FitResult:
    """The result of a learner and the history of its training."""

    predictor: LinearPredictor | TreePredictor
    history: Sequence[Mapping[str, float]]
    """A row for each iteration: its number, and the measures on the training and the validation queries."""
    best_iteration: int
    """The iteration that was kept."""
    importance: Floats
    """The importance of each feature, on an arbitrary scale."""
    history_measure: str
    """The name of the measure in the history."""


@dataclass(frozen=True, kw_only=True)
class FeatureLearner(ABC):
    """A learner from features: a frozen dataclass whose fields are its settings (see `core.protocols.Learner`).

    parts         the parts of a document whose features are computed: title, url, body, document (title and body).
                  Leave out titles if the ranker is meant for collections without titles.
    """

    grid: ClassVar[Mapping[str, Sequence[Any]]]
    all_feature_names: ClassVar[tuple[str, ...]] = DEFAULT_COLUMNS
    """The features of all parts."""

    parts: tuple[str, ...] = tuple(FIELDS)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features that are computed from the texts of a collection."""
        found = tuple(name for name in self.all_feature_names if parse_field(name) in self.parts)
        fine = bool(found) and set(self.parts) <= FIELDS.keys()
        check_parameter(registries.LEARNERS.spec(self), fine, "parts", f"some of {', '.join(FIELDS)}", self.parts)
        return found

    @abstractmethod
    def fit_rows(self, train: Letor, valid: Letor | None, seed: int, baselines: Baselines | None = None) -> FitResult:
        """Learn from rows of features, each a document of a query with its label; return the fit."""

    def fit(
        self,
        collection: Collection,
        train: Sequence[str],
        *,
        valid: Sequence[str] = (),
        seed: int = 0,
        plan: TrainingPlan | None = None,
        candidates: Run | None = None,
        folder: str | Path,
        depth: int = 100,
        progress: ProgressFactory = no_progress,
        overwrite: bool = False,
    ) -> SavedModel:
        """Learn from features of the candidates of the queries `train`, labelled by judgements; return the model."""
        plan = plan or TrainingPlan()
        if plan.objective:
            raise BadInput(f"{registries.LEARNERS.spec(self)} has its own objective; {plan.objective} is for nets")
        training_data = TrainingData.prepare(collection, train, valid, candidates, depth, seed, hold_out=False)
        queries = {"train": training_data.train, "valid": training_data.valid}
        with progress("computing features", len(training_data.train) + len(training_data.valid), "lists") as advance:
            rows = {}
            for part, qids in queries.items():
                asked = {qid: collection.queries[qid] for qid in qids}
                found = training_data.candidates, collection.qrels
                rows[part] = build_letor(collection, asked, *found, names=self.feature_names) if qids else None
                advance(len(qids))
        assert rows["train"] is not None
        dealt = plan.lists.relabel(rows["train"], seed)
        model = learn(self, dealt, rows["valid"], seed=seed, baselines=plan.open_baselines(collection))
        model.save(folder, overwrite=overwrite)
        return SavedModel(str(folder))


AnyLearner = TypeVar("AnyLearner", bound=FeatureLearner)


def learn(
    learner: FeatureLearner,
    train: Letor,
    valid: Letor | None = None,
    *,
    seed: int = 0,
    normalisation: str = "query",
    tokenizer: Analyzer | None = None,
    baselines: Baselines | None = None,
) -> FittedModel:
    """Fit a learner and return its model, with a card that describes the training.

    With normalisation "query", features are scaled to [0, 1] within each query, here and when the model ranks.
    """
    refuse_nothing_to_learn(train)
    if valid is not None and valid.feature_count != train.feature_count:
        message = f"there are {valid.feature_count} features to validate on and {train.feature_count} to learn from"
        raise BadInput(message, valid.source or None)
    fit = learner.fit_rows(
        normalise_features(train, normalisation), valid and normalise_features(valid, normalisation), seed, baselines
    )
    names = train.names or tuple(str(number) for number in range(1, train.feature_count + 1))
    total = float(fit.importance.sum()) or 1.0
    order = np.argsort(-fit.importance, kind="stable")
    # the same measure for every objective, so that settings can be compared
    ndcg = None if valid is None else NDCG(normalise_features(valid, normalisation))
    card = {
        "seed": seed,
        "train": {"queries": train.query_count, "rows": train.row_count, "source": train.source},
        "valid": valid
        and ndcg
        and {"queries": valid.query_count, "rows": valid.row_count, "source": valid.source, "measure": ndcg.name},
        "baselines": list(baselines.systems) if baselines else [],
        "best": fit.best_iteration,
        "value": ndcg and ndcg.compute_mean(fit.predictor.predict(ndcg.data.features)),
        "history": [dict(row) for row in fit.history],
        "history_measure": fit.history_measure,
        "importance": {names[i]: float(fit.importance[i]) / total for i in order},
        "notes": list(describe_uninformative_queries(train)),
    }
    spec = registries.LEARNERS.spec(learner)
    return FittedModel(fit.predictor, train.names, normalisation, spec, tokenizer or Analyzer(), card)


def normalise_features(data: Letor, normalisation: str) -> Letor:
    """Return the features as a model with this normalisation reads them."""
    return data.normalise() if normalisation == "query" else data


def refuse_nothing_to_learn(train: Letor) -> None:
    """Raise an error unless a query has documents of different labels."""
    if not train.mixed_labels.any():
        message = "no query has documents of different labels, so there is no order to learn"
        raise BadInput(message, train.source or None)


def describe_uninformative_queries(train: Letor) -> Iterator[str]:
    """Yield remarks on queries from which nothing can be learned."""
    single = int((train.list_sizes == 1).sum())
    alike = int((~train.mixed_labels).sum()) - single
    if single:
        yield f"{single} of {train.query_count} queries have one document only, so they are not used"
    if alike:
        yield f"{alike} of {train.query_count} queries have documents of one label only, so they are not used"


@dataclass(frozen=True, eq=False)
class TuningResult:
    """The best settings on the validation queries, and the results of all others."""

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
) -> TuningResult:
    """Try every point of a grid, by default that of the learner's paper; the best mean `NDCG` on `valid` wins.

    Features are not normalised here: normalise both sets before.
    """
    grid = learner.grid if grid is None else grid
    measure = NDCG(valid, truncation)
    trials: list[dict[str, Any]] = []
    for point in product(*grid.values()):
        settings = dict(zip(grid, point, strict=True))
        fit = replace(learner, **settings).fit_rows(train, valid, seed, baselines)
        value = measure.compute_mean(fit.predictor.predict(valid.features))
        trials.append(settings | {"best": fit.best_iteration, "valid": value})
    winner = max(trials, key=lambda trial: trial["valid"])
    return TuningResult(replace(learner, **{name: winner[name] for name in grid}), trials)


def cross_validate(
    learner: AnyLearner,
    data: Letor,
    *,
    k: int = 5,
    seed: int = 0,
    normalisation: str = "query",
    grid: Mapping[str, Sequence[Any]] | None = None,
    baselines: Baselines | None = None,
    progress: ProgressFactory = no_progress,
) -> tuple[Floats, list[FittedModel]]:
    """Return the scores of all rows, each from the model of the fold that tests on it, and the models.

    With a grid, each fold chooses settings on its own validation queries.
    """
    scores, models = np.empty(data.row_count), []
    places = {qid: place for place, qid in enumerate(data.qids)}
    with progress(f"cross-validating {registries.LEARNERS.spec(learner)}", k, "folds") as advance:
        for fold in make_folds(data.qids, k, seed):
            parts = [np.array([places[qid] for qid in part]) for part in (fold.train, fold.valid, fold.test)]
            train, valid, test = (data.select_queries(part) for part in parts)
            chosen = learner
            if grid:
                rows = (normalise_features(part, normalisation) for part in (train, valid))
                chosen = tune(learner, *rows, seed=seed, grid=grid, baselines=baselines).learner
            model = learn(chosen, train, valid, seed=seed, normalisation=normalisation, baselines=baselines)
            scores[np.isin(data.query_numbers, parts[2])] = model.score_letor(test)
            models.append(model)
            advance(1)
    return scores, models


def build_letor(
    collection: Collection,
    queries: Mapping[str, Query],
    candidates: Run,
    qrels: Qrels,
    *,
    names: Sequence[str] = DEFAULT_COLUMNS,
    tokenizer: Analyzer | None = None,
) -> Letor:
    """Return the features of each query's candidates, best first, not normalised, labelled by the judgements.

    A candidate without a judgement, or with a negative one, has label 0.
    """
    extractor = FeatureExtractor.open(collection.docs, tokenizer or Analyzer(), names)
    listed = {qid: rank_docnos(candidates[qid]) for qid in queries if candidates.get(qid)}
    if not listed:
        raise BadInput(f"collection {collection.name}: no query has candidates to compute features for")
    for qid, docnos in listed.items():
        if unknown := next((docno for docno in docnos if docno not in collection.docs), None):
            raise BadInput(f"candidate {unknown!r} of query {qid!r} is not a document of {collection.name}")
    qids, blocks = tuple(listed), []
    for start in range(0, len(qids), QUERIES_PER_BATCH):
        batch = qids[start : start + QUERIES_PER_BATCH]
        # lists share documents, and each lookup may read a file
        docs = {docno: collection.docs[docno] for docno in dict.fromkeys(d for qid in batch for d in listed[qid])}
        slates = [Slate(queries[qid].text, tuple(docs[docno] for docno in listed[qid])) for qid in batch]
        blocks.append(extractor.extract_cached(slates).astype(np.float32))
    labels = np.array([max(0, qrels.get(qid, {}).get(docno, 0)) for qid in qids for docno in listed[qid]])
    if labels.max() > MAX_LETOR_LABEL:
        raise BadInput(
            f"a judgement of {collection.name} is {labels.max()}; labels to learn from are 0 to {MAX_LETOR_LABEL}"
        )
    starts = np.concatenate(([0], np.cumsum([len(docnos) for docnos in listed.values()])))
    every = tuple(docno for docnos in listed.values() for docno in docnos)
    return Letor(np.concatenate(blocks), labels, starts, qids, every, tuple(names), collection.name)
