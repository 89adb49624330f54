"""An experiment: a collection, the rankers opened on it, their runs, and the scoring engine that tasks use."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from shaketable.core.documents import Collection, Doc, Qrels, Query, Run, Slate, rank_docnos
from shaketable.core.errors import BadInput, RankerFailed, UnknownName, explain_user_errors
from shaketable.core.protocols import (
    Learner,
    Model,
    Ranker,
    RecordedRanker,
    Retriever,
    Transform,
    can_score_texts,
)
from shaketable.core.registries import LEARNERS, RANKERS
from shaketable.core.results import ScoreTable
from shaketable.datasets.splits import TRAIN
from shaketable.executors.base import Job, RemoteSpec
from shaketable.experiment.opening import (
    draw_lists,
    find_baseline,
    lacks_declaration,
    make_document_fetcher,
    make_documents_spec,
    make_remote_spec,
    take_top,
)
from shaketable.experiment.provenance import (
    collect_provenance,
    collect_remarks,
    describe_candidates,
    describe_weights,
    summarize,
)
from shaketable.experiment.sampling import SampleSizes, collect_weights, select_queries, shuffle_queries
from shaketable.experiment.slices import slice_queries
from shaketable.experiment.tuning import fit_folds, tune_learner
from shaketable.experiment.variations import collect_vocabulary, vary_once
from shaketable.measures.effectiveness import score_table
from shaketable.measures.slices import Slices
from shaketable.rankers.saved import SavedModel
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.traits import RankerTraits
from shaketable.training.jobs import (
    TunedLearner,
    find_model_folder,
    get_model_folder,
    resolve_query_ids,
    run_fit_job,
    run_training_jobs,
)
from shaketable.training.plan import TrainingPlan
from shaketable.transforms.presets import select_transforms
from shaketable.transforms.vary import HUMAN, Variation, build_human_variations

LOG = logging.getLogger(__name__)

MAX_QUERIES_PER_BATCH = 2_000
"""Queries scored at a time; the texts of 100 candidates each take about 100 MB."""


@dataclass
class _ExperimentCache:
    """The caches that experiments of different depth share."""

    rankers: dict[str, Ranker] = field(default_factory=dict)
    runs: dict[tuple[str, int], Run] = field(default_factory=dict)
    variations: dict[tuple[str, int], list[Variation]] = field(default_factory=dict)
    tables: dict[tuple[str, int], ScoreTable] = field(default_factory=dict)
    repair_notes: list[str] = field(default_factory=list)  # damaged models that were trained again


@dataclass
class Experiment:
    """A collection, rankers and settings, on which tasks run. It makes each run and trains each model once.

    Retrievers search the collection; other rankers re-rank the candidates of the first stage. If the collection has its
    own candidates, all rankers rank those, so that runs differ by the ranker alone.

    Parameters
    ----------
    collection
        The documents, queries and judgements.
    models
        The models of the rankers, by name.
    engine
        The scoring engine, which has the score cache and the executor.
    seed
        The random seed.
    depth
        The number of documents to rank for each query.
    limit
        The maximum number of queries; None means all.
    first_stage
        The ranker that finds the candidates of re-rankers.
    split
        The split to measure on; None means all queries.
    sample
        Use only this many of the queries, drawn at random; None means all of them.
    sizes
        The number of queries of each test.
    """

    collection: Collection
    models: Mapping[str, Model]
    engine: ScoringEngine = field(default_factory=ScoringEngine)
    seed: int = 0
    depth: int = 100
    limit: int | None = None
    first_stage: str = "bm25"
    split: str | None = None
    sample: int | None = None
    sizes: SampleSizes = field(default_factory=SampleSizes)
    _cache: _ExperimentCache = field(default_factory=_ExperimentCache, init=False, repr=False)
    """Not a parameter, so that `replace` starts with an empty cache."""

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise BadInput(f"the depth must be at least 1, not {self.depth}")
        if self.split is not None and self.split not in self.collection.splits:
            raise UnknownName("split", self.split, self.collection.splits)

    def with_depth(self, depth: int) -> Experiment:
        """Return a copy with another depth that shares all caches."""
        return self._share_caches(replace(self, depth=depth))

    def with_sizes(self, sizes: SampleSizes) -> Experiment:
        """Return a copy whose tests use other numbers of queries, and that shares all caches."""
        return self._share_caches(replace(self, sizes=sizes))

    def _share_caches(self, copy: Experiment) -> Experiment:
        copy._cache = self._cache
        return copy

    def with_collection(self, collection: Collection, split: str | None = None) -> Experiment:
        """Return a copy with another collection that shares the scoring engine, and so scores and usage."""
        return replace(self, collection=collection, split=split)

    @cached_property
    def queries(self) -> Mapping[str, Query]:
        """The queries to measure on: judged ones if there are judgements, at most `limit`, without empty texts."""
        return select_queries(self.collection, self.split, self.limit, self.sample, self.seed)

    @cached_property
    def query_order(self) -> tuple[str, ...]:
        """The ids of the queries in a random order; the first of them are the sample of a smaller test."""
        return tuple(shuffle_queries(self.queries, self.seed))

    def sample_queries(self, facet: str, test: str = "") -> dict[str, str]:
        """Return the texts of the queries that a test may use, by query id, in the order of the collection."""
        drawn = set(self.query_order[: self.sizes.get_size(facet, test)])
        return {qid: text for qid, text in self.texts.items() if qid in drawn}

    @cached_property
    def weights(self) -> Mapping[str, float]:
        """The weight of each query in a mean, which is its frequency; empty if all queries weigh the same."""
        return collect_weights(self.queries)

    @property
    def weighting_description(self) -> str:
        """A sentence on the weights of queries; "" if all queries weigh the same."""
        return describe_weights(self.weights)

    @property
    def texts(self) -> dict[str, str]:
        """The texts of the queries, by query id."""
        return {qid: query.text for qid, query in self.queries.items()}

    @cached_property
    def qrels(self) -> Qrels:
        """The judgements of the queries."""
        return {qid: self.collection.qrels[qid] for qid in self.queries if qid in self.collection.qrels}

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """Words of the first documents of the collection; transforms that add words draw from them."""
        return collect_vocabulary(self.collection)

    @cached_property
    def candidates(self) -> Run:
        """The documents that re-rankers rank: the collection's candidates or the results of the first stage."""
        if self.collection.candidates:
            given = self.collection.candidates
            return {qid: take_top(given[qid], self.depth) for qid in self.queries if qid in given}
        return self.search_first_stage(self.texts)

    @property
    def candidate_description(self) -> str:
        """A phrase that describes the ranked documents."""
        return describe_candidates(self)

    @cached_property
    def slices(self) -> Slices:
        """The queries by length, by query type, and by the frequency of their rarest word."""
        return slice_queries(self.collection, self.queries)

    def make_variations(self, transforms: Sequence[str] = (), n: int = 1) -> tuple[list[Variation], dict[str, str]]:
        """Return variations of the queries, made once, and the omitted transforms with their missing resources.

        Without names, these are all transforms that vary a query and whose resources are installed, and the variants
        that people wrote.
        """
        names = [name for name in transforms if name != HUMAN]
        wanted, lacking = select_transforms(names) if names or not transforms else ([], {})
        variations = self._vary(wanted, n)
        if not transforms or HUMAN in transforms:
            variants = {qid: texts for qid, texts in self.collection.variants.items() if qid in self.queries}
            variations += build_human_variations(self.queries, variants)
        if not variations:
            raise BadInput("no transform applies to any of the queries, so there is nothing to compare")
        return variations, lacking

    def _vary(self, transforms: Sequence[Transform], n: int) -> list[Variation]:
        """Return the variations by these transforms; each transform runs once, because it does not depend on others."""
        return vary_once(self._cache.variations, self, transforms, n)

    def get_ranker(self, name: str) -> Ranker:
        """Return the ranker of that name, opened once."""
        if name not in self._cache.rankers:
            model = self._get_model(name)
            ours = type(model).__module__.startswith("shaketable.")  # our models explain their own errors
            started = time.perf_counter()
            with nullcontext() if ours else explain_user_errors(f"ranker {name} cannot be opened"):
                ranker = self._cache.rankers[name] = model.open(self.collection)
            LOG.info("The ranker %s was opened in %.1f seconds.", name, time.perf_counter() - started)
            if lacks_declaration(ranker):
                self.engine.resolve_pointwise(ranker, name, lambda: draw_lists(self), self.get_remote_spec(name))
        return self._cache.rankers[name]

    def get_traits(self, name: str) -> RankerTraits:
        """Return the traits of the ranker of that name; `pointwise` is what it declares, or what was found out."""
        return self.engine.get_traits(self.get_ranker(name), name)

    def discard_scores(self) -> None:
        """Discard all runs and failures, because a ranker had wrong scores; rankers stay open."""
        self._cache.runs.clear()
        self._cache.tables.clear()
        self.engine.discard_failures()

    def get_run(self, name: str) -> Run:
        """Return the run of a ranker over the original queries."""
        key = (name, self.depth)
        if key not in self._cache.runs:
            ranker = self.get_ranker(name)
            run: Run
            if isinstance(ranker, RecordedRanker):
                lists = ranker.recorded
                run = {qid: take_top(lists[qid], self.depth) for qid in self.queries if qid in lists}
            elif self.collection.candidates and can_score_texts(ranker):
                run = self.rerank(name, self.texts, self.candidates)
            else:
                run = self.run_pipeline(name, self.texts)
            if not run:
                reason = f": {self.engine.failures[0].reason}" if self.engine.failures else ""
                raise RankerFailed(f"ranker {name} ranked none of the {len(self.queries)} queries{reason}")
            self._cache.runs[key] = run
        return self._cache.runs[key]

    def get_runs(self) -> dict[str, Run]:
        """Return the run of every ranker."""
        return {name: self.get_run(name) for name in self.models}

    @property
    def scoring_rankers(self) -> list[str]:
        """The rankers that can score new texts; a run file and a search engine cannot."""
        return [name for name in self.models if can_score_texts(self.get_ranker(name))]

    @property
    def live_rankers(self) -> list[str]:
        """The rankers that answer new queries; a run file does not."""
        return [name for name in self.models if not isinstance(self.get_ranker(name), RecordedRanker)]

    @cached_property
    def baseline(self) -> str:
        """The name of the ranker that is the first stage; "" if none is.

        A search engine is the baseline of rankers that re-rank its hits; without any, it is itself under test.
        """
        return find_baseline(self, self._first_stage_name)

    def search_first_stage(self, texts: Mapping[str, str]) -> Run:
        """Return the documents that the first stage finds for the given query texts."""
        return self._search(self._first_stage_name, texts)

    def is_retriever(self, name: str) -> bool:
        """Return True if a ranker searches; only a search engine can search a corpus of which its hits are known."""
        ranker = self.get_ranker(name)
        partial = getattr(self.collection.docs, "is_partial", False)
        return isinstance(ranker, Retriever) and not (partial and can_score_texts(ranker))

    def run_pipeline(self, name: str, texts: Mapping[str, str]) -> Run:
        """Run the whole pipeline on the given query texts: a retriever searches, others re-rank the first stage."""
        if self.is_retriever(name):
            return self._search(name, texts)
        return self.rerank(name, texts, self.search_first_stage(texts))

    def rerank(self, name: str, queries: Mapping[str, str], candidates: Run) -> Run:
        """Return the scores of candidate documents for these query texts; queries that the ranker failed on are absent.

        Queries are scored in batches, to limit the texts in memory.
        """
        qids = [qid for qid in queries if candidates.get(qid)]
        run: dict[str, Mapping[str, float]] = {}
        for start in range(0, len(qids), MAX_QUERIES_PER_BATCH):
            docnos = {qid: rank_docnos(candidates[qid]) for qid in qids[start : start + MAX_QUERIES_PER_BATCH]}
            slates = [Slate(queries[qid], self.get_documents(listed)) for qid, listed in docnos.items()]
            answers = self.engine.score(self.get_ranker(name), slates, name, self.get_remote_spec(name))
            run |= {
                qid: dict(zip(listed, scores.tolist(), strict=True))
                for (qid, listed), scores in zip(docnos.items(), answers, strict=True)
                if scores is not None
            }
        return run

    def get_documents(self, docnos: Sequence[str]) -> tuple[Doc, ...]:
        """Return documents of the collection by their docnos, for a slate."""
        return tuple(map(self._fetch_document, docnos))

    def get_score_table(self, measure: str) -> ScoreTable:
        """Return the value of a measure for every ranker and judged query."""
        key = (measure, self.depth)
        if key not in self._cache.tables:
            self._cache.tables[key] = score_table(measure, self.qrels, self.get_runs())
        return self._cache.tables[key]

    def fit(
        self,
        learner: str | Learner,
        train: str | Sequence[str] = TRAIN,
        *,
        valid: str | Sequence[str] | None = None,
        plan: TrainingPlan | None = None,
        folder: str | Path | None = None,
        overwrite: bool = False,
    ) -> SavedModel:
        """Train a learner on queries of the collection (a split by name, or query ids) and return the model.

        Without a folder the model is stored under $SHAKETABLE_HOME and trained once. Without queries to validate on,
        the split validation or dev is used, or a fifth of the queries is held out.
        """
        (model,) = self.run_jobs([self.training_job(learner, train, valid, plan, folder, overwrite)])
        return model

    def training_job(
        self,
        learner: str | Learner,
        train: str | Sequence[str] = TRAIN,
        valid: str | Sequence[str] | None = None,
        plan: TrainingPlan | None = None,
        folder: str | Path | None = None,
        overwrite: bool = False,
        training_name: str = "",
    ) -> SavedModel | Job:
        """Return the stored model of a training, or the job that trains it, for `run_jobs`.

        A job contains its queries, judgements and candidates. Errors of the training name `training_name`.
        """
        how: Learner = LEARNERS.build(learner) if isinstance(learner, str) else learner
        qids, judges = self.resolve_query_ids(train, valid)
        given = None if folder is None else (Path(folder), False)
        model_folder, stored = given or self._find_model_folder(how, qids, judges, plan)
        if stored:
            LOG.info("%s was trained before; its model is in %s.", LEARNERS.spec(how), model_folder)
            return SavedModel(str(model_folder))
        known = {qid: self.collection.queries[qid] for qid in (*qids, *judges)}
        judged = {qid: grades for qid in known if (grades := self.collection.qrels.get(qid)) is not None}
        found = self.get_training_candidates(list(known)) or {}
        candidates = {qid: found[qid] for qid in known if qid in found}
        about = (known, judged, candidates, qids, judges)
        arguments = (model_folder, how, *about, self.seed, plan, self.depth, overwrite, training_name)
        local = {"progress": self.engine.progress}
        return Job(run_fit_job, self.collection, arguments, self._documents_spec, local, output_folder=model_folder)

    def run_jobs(
        self, wanted: Sequence[SavedModel | Job], on_done: Callable[[int], None] = lambda done: None
    ) -> list[SavedModel]:
        """Run the jobs with the engine's executor and return all wanted models."""
        return run_training_jobs(self.engine.executor, wanted, on_done)

    def is_fitted(self, learner: str) -> bool:
        """Return True if the learner's model for the train split is already stored."""
        return self._find_model_folder(LEARNERS.build(learner), *self.resolve_query_ids(TRAIN, None), None)[1]

    def fit_folds(
        self,
        learner: str | Learner,
        k: int = 5,
        *,
        folder: str | Path,
        plan: TrainingPlan | None = None,
        overwrite: bool = False,
    ) -> SavedModel:
        """Train k models, each without one fold of the judged queries, and save the joined run of the test folds.

        The folder stores that run as a ranker with recorded lists; the k models are stored as by `fit`. (Paper 000,
        section 3.4.1, evaluates like this.)
        """
        return fit_folds(self, learner, k, folder, plan, overwrite)

    def tune(
        self,
        learner: str | Learner,
        train: str | Sequence[str] = TRAIN,
        *,
        valid: str | Sequence[str] | None = None,
        plan: TrainingPlan | None = None,
        grid: Mapping[str, Sequence[Any]] | None = None,
    ) -> TunedLearner:
        """Return the learner with the grid settings that do best on the validation queries.

        Each setting is trained and stored as by `fit`, so an interrupted search continues.
        """
        return tune_learner(self, learner, train, valid, plan, grid)

    def resolve_query_ids(
        self, train: str | Sequence[str], valid: str | Sequence[str] | None
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the ids of the training and of the validation queries."""
        return resolve_query_ids(self.collection, train, valid)

    def get_remote_spec(self, name: str) -> RemoteSpec | None:
        """Return the spec by which another process opens a ranker; None if it exists in this process only."""
        return make_remote_spec(self.collection, self._get_model(name))

    @property
    def _documents_spec(self) -> RemoteSpec | None:
        """The spec by which another process opens the documents."""
        return make_documents_spec(self.collection)

    def summarize(self) -> dict[str, str]:
        """Return the main facts about the experiment, to show before the results."""
        return summarize(self)

    def collect_remarks(self) -> dict[str, str]:
        """Return remarks on scores by ranker, for example that texts were truncated."""
        return collect_remarks(self, self._cache.rankers, self._cache.repair_notes)

    def collect_provenance(self) -> dict[str, Any]:
        """Return everything that a result depends on, and its cost in query-document pairs."""
        return collect_provenance(self, self._cache.rankers)

    def _get_model(self, name: str) -> Model:
        """Return a model of the experiment, or the first stage."""
        if name in self.models:
            return self.models[name]
        if name != self._first_stage_name:
            raise UnknownName("ranker", name, self.models)
        model: Model = RANKERS.build(self.first_stage)
        return model

    @property
    def _first_stage_name(self) -> str:
        """The name of the first stage: its spec, unless another ranker of the experiment has taken that name."""
        taken = self.models.get(self.first_stage)
        if taken is None or self.first_stage not in RANKERS or RANKERS.spec(taken) == self.first_stage:
            return self.first_stage
        return f"{self.first_stage} (first stage)"

    def search_uncached(self, name: str, texts: Mapping[str, str], k: int) -> Run:
        """Return the first k documents that a retriever finds now for the given query texts, without the cache."""
        return self._search(name, texts, k, use_cache=False)

    def _search(self, name: str, texts: Mapping[str, str], k: int = 0, *, use_cache: bool = True) -> Run:
        ranker = self.get_ranker(name)
        if not isinstance(ranker, Retriever):
            raise BadInput(f"the first stage {name} cannot search a collection; use bm25, or give candidates")
        spec = self.get_remote_spec(name)
        lists = self.engine.search(ranker, list(texts.values()), k or self.depth, name, spec, use_cache=use_cache)
        return {qid: found for qid, found in zip(texts, lists, strict=True) if found is not None}

    def get_training_candidates(self, qids: Sequence[str]) -> Run | None:
        """Return the candidates to train on: the collection's if it has any for the queries, or those of a search."""
        if any(qid in self.collection.candidates for qid in qids):
            return self.collection.candidates
        return self._search(self._first_stage_name, {qid: self.collection.queries[qid].text for qid in qids})

    def _find_model_folder(
        self, learner: Learner, train: Sequence[str], valid: Sequence[str], plan: TrainingPlan | None
    ) -> tuple[Path, bool]:
        settings = (self.seed, self.depth, self.first_stage)
        kept = get_model_folder(learner, self.collection, train, valid, plan, *settings)
        return find_model_folder(kept, self._cache.repair_notes)

    @cached_property
    def _fetch_document(self) -> Callable[[str], Doc]:
        """A function docno -> document with a cache, because many queries and variations need the same documents."""
        return make_document_fetcher(self.collection)
