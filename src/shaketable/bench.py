"""Where tasks work: a collection, rankers opened on it, their runs, and the one road to scores.

A ranker's run over the original queries is what most tasks start from, so the bench makes each once. Rankers that can
search the collection do so; all others re-rank the first stage's candidates. Where the collection brings its own
candidates, everybody ranks those, so that runs differ by the ranker alone. What a learner makes of the collection is
kept, named by all that it depends on, and never learned twice.
"""

from __future__ import annotations

import logging
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from importlib.metadata import PackageNotFoundError, version
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np

from shaketable.data.splits import TEST, TRAIN, Fold, folds, validation_split
from shaketable.edit.methods import chosen
from shaketable.edit.vary import HUMAN, Variation, vary, written
from shaketable.errors import BadInput, Damaged, RankerFailed, ShaketableError, UnknownName, users_code
from shaketable.files import digests, home
from shaketable.index.inverted import open_index
from shaketable.learners.plan import Plan
from shaketable.measure.effectiveness import score_table
from shaketable.measure.slices import Slices, by_label, by_length, by_quarter
from shaketable.rankers import runfile
from shaketable.rankers.folder import MODEL, SCHEMA, opened, refuse_taken, tidy
from shaketable.rankers.saved import Saved
from shaketable.rankers.similarity import judge_for
from shaketable.registry import EDITS, LEARNERS, RANKERS, files_named
from shaketable.score.executor import Job, Origin, completed
from shaketable.score.road import Road, Traits
from shaketable.text.tokens import Tokenizer
from shaketable.types import (
    Collection,
    Doc,
    Edit,
    Learner,
    Model,
    Qrels,
    Query,
    Ranker,
    Recorded,
    Retriever,
    Run,
    ScoreTable,
    Slate,
    Watch,
    fingerprint,
    ranking,
    unwatched,
)

LOG = logging.getLogger(__name__)

WINDOW = 2_000
"""Queries whose candidates are scored at a time: with 100 documents each, their texts are some 100 MB."""
LIBRARIES = ("numpy", "scipy", "pandas", "ir-measures", "torch", "transformers", "lightgbm")
"""Whose versions numbers may depend on, as far as they are loaded."""


@dataclass(frozen=True)
class Tuned:
    """A learner with the best of the settings that were tried, and what each of them gave."""

    learner: Learner
    trials: list[dict[str, Any]]


@dataclass
class _Memory:
    """What benches that differ in depth alone share: opened rankers, runs by name and depth, variations by method."""

    rankers: dict[str, Ranker] = field(default_factory=dict)
    runs: dict[tuple[str, int], Run] = field(default_factory=dict)
    variations: dict[tuple[str, int], list[Variation]] = field(default_factory=dict)
    tables: dict[tuple[str, int], ScoreTable] = field(default_factory=dict)
    repaired: list[str] = field(default_factory=list)
    """What was found damaged and made again."""


@dataclass
class Bench:
    """What a task is given: see the module. `split` names the queries to measure on; None is all of them."""

    collection: Collection
    models: Mapping[str, Model]
    road: Road = field(default_factory=Road)
    seed: int = 0
    depth: int = 100
    limit: int | None = None
    first_stage: str = "bm25"
    split: str | None = None
    _memory: _Memory = field(default_factory=_Memory, init=False, repr=False)
    """Not a parameter, so that whoever is `replace`d begins with an empty one."""

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise BadInput(f"at least one document must be ranked for each query, not {self.depth}")
        if self.split is not None and self.split not in self.collection.splits:
            raise UnknownName("split", self.split, self.collection.splits)

    def cut(self, depth: int) -> Bench:
        """The same bench with shorter lists; whatever is known by content is shared."""
        short = replace(self, depth=depth)
        short._memory = self._memory
        return short

    def on(self, collection: Collection, split: str | None = None) -> Bench:
        """The same models on another collection; the road, and so the scores and what was spent, is shared."""
        return replace(self, collection=collection, split=split)

    @cached_property
    def queries(self) -> Mapping[str, Query]:
        """The queries of the experiment: those with judgements where there are any, at most `limit`, none empty."""
        judged, known = self.collection.qrels, self.collection.queries
        asked = known if self.split is None else [qid for qid in self.collection.splits[self.split] if qid in known]
        wanted = [qid for qid in asked if known[qid].text.strip() and (not judged or qid in judged)]
        if not wanted:
            reason = "has judgements" if self.collection.queries else "is there"
            raise BadInput(f"collection {self.collection.name}: no query {reason}; `shaketable doctor` says more")
        return {qid: known[qid] for qid in wanted[: self.limit]}

    @cached_property
    def weights(self) -> Mapping[str, float]:
        """How much each query counts in a mean: as often as it was asked; empty where all count alike."""
        weights = {qid: query.weight for qid, query in self.queries.items()}
        return weights if len(set(weights.values())) > 1 else {}

    @property
    def weighing(self) -> str:
        """How queries weigh, in words; "" where all count alike."""
        if not self.weights:
            return ""
        values = np.array(list(self.weights.values()))
        alike = values.sum() ** 2 / (values**2).sum()
        return (
            f"queries weigh as often as they were asked: {values.sum():,.6g} times in all, the most frequent "
            f"{values.max() / values.sum():.1%} of it, so that the {len(values):,} queries say as much as "
            f"{alike:,.1f} of equal weight. This goes for effectiveness, agreement, query-attack, query-variation, "
            "fusion and parity; in all other tasks, and in slices, every query counts alike"
        )

    @property
    def texts(self) -> dict[str, str]:
        """What was typed, by query."""
        return {qid: query.text for qid, query in self.queries.items()}

    @cached_property
    def qrels(self) -> Qrels:
        """The judgements of those queries."""
        return {qid: self.collection.qrels[qid] for qid in self.queries if qid in self.collection.qrels}

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """Words of the collection, from its first documents: what edits that add words draw from."""
        texts = (doc.text.lower() for _, doc in islice(self.collection.docs.items(), 2000))
        return tuple(sorted({word for text in texts for word in text.split() if word.isalpha()}))

    @cached_property
    def candidates(self) -> Run:
        """What re-rankers are given: the collection's candidates, or what the first stage finds."""
        if self.collection.candidates:
            given = self.collection.candidates
            return {qid: _top(given[qid], self.depth) for qid in self.queries if qid in given}
        return self.first_stage_finds(self.texts)

    @property
    def pool(self) -> str:
        """Which documents were ranked, in words, for the reader of a number."""
        if self.collection.candidates:
            return f"the candidates that came with the collection, at most {self.depth} for each query"
        return (
            f"the best {self.depth} documents of the collection for each query; "
            f"a ranker that cannot search re-ranks those that {self.first_stage} finds"
        )

    @cached_property
    def slices(self) -> Slices:
        """The queries by what they are like: their length, their kind, how common their rarest word is."""
        kinds = {qid: query.kind for qid, query in self.queries.items()}
        divided = {"length": by_length(self.texts), "kind": by_label(kinds), "rarest word": self._by_rarity()}
        return {name: parts for name, parts in divided.items() if len(parts) > 1}

    def _by_rarity(self) -> dict[str, tuple[str, ...]]:
        index = open_index(self.collection.docs, Tokenizer())
        bags = index.bags(list(self.texts.values()))
        ends = zip(self.texts, bags.starts[:-1], bags.starts[1:], strict=True)
        rarest = {
            qid: float(index.df[bags.terms[start:end]].min(initial=len(self.collection.docs)))
            for qid, start, end in ends
        }
        return by_quarter(rarest, ("very rare", "rare", "common", "very common"))

    def variations(self, edits: Sequence[str] = (), n: int = 1) -> tuple[list[Variation], dict[str, str]]:
        """Variations of the queries, made once, and which methods were left out for want of what.

        Without edits, all that vary a query and whose resources are there, and the variants that people wrote.
        """
        names = [name for name in edits if name != HUMAN]
        wanted, lacking = chosen(names) if names or not edits else ([], {})
        variations = self._vary(wanted, n)
        if not edits or HUMAN in edits:
            variants = {qid: texts for qid, texts in self.collection.variants.items() if qid in self.queries}
            variations += written(self.queries, variants)
        if not variations:
            raise BadInput("no edit applies to any of the queries, so there is nothing to compare")
        return variations, lacking

    def _vary(self, edits: Sequence[Edit], n: int) -> list[Variation]:
        """What the edits make of the queries; an edit's work does not depend on the others, so it is done once."""
        known = self._memory.variations
        if new := {spec: edit for edit in edits if ((spec := EDITS.spec(edit)), n) not in known}:
            judge = judge_for(self.collection)
            made = vary(self.queries, list(new.values()), n, self.seed, self.vocabulary, validity=judge)
            known |= {(spec, n): [v for v in made if v.method == spec] for spec in new}
        return [v for edit in edits for v in known[EDITS.spec(edit), n]]

    def ranker(self, name: str) -> Ranker:
        """The ranker of that name, opened once."""
        if name not in self._memory.rankers:
            model = self._model(name)
            ours = type(model).__module__.startswith("shaketable.")  # then an error is ours too
            started = time.perf_counter()
            with nullcontext() if ours else users_code(f"ranker {name} cannot be opened"):
                self._memory.rankers[name] = model.open(self.collection)
            LOG.info("The ranker %s was opened in %.1f seconds.", name, time.perf_counter() - started)
        return self._memory.rankers[name]

    def run(self, name: str) -> Run:
        """What a ranker makes of the original queries."""
        key = (name, self.depth)
        if key not in self._memory.runs:
            ranker = self.ranker(name)
            run: Run
            if isinstance(ranker, Recorded):
                lists = ranker.recorded
                run = {qid: _top(lists[qid], self.depth) for qid in self.queries if qid in lists}
            elif self.collection.candidates:
                run = self.rerank(name, self.texts, self.candidates)
            else:
                run = self.answer(name, self.texts)
            if not run:
                reason = f": {self.road.failures[0].reason}" if self.road.failures else ""
                raise RankerFailed(f"ranker {name} ranked none of the {len(self.queries)} queries{reason}")
            self._memory.runs[key] = run
        return self._memory.runs[key]

    def runs(self) -> dict[str, Run]:
        """The run of every ranker."""
        return {name: self.run(name) for name in self.models}

    @property
    def scoring(self) -> list[str]:
        """The rankers that can score new texts; a run file cannot."""
        return [name for name in self.models if not isinstance(self.ranker(name), Recorded)]

    @cached_property
    def baseline(self) -> str:
        """The name of the ranker that is the first stage; "" if none of them is."""
        if self._finder in self.models:
            return self._finder
        try:
            spec = RANKERS.spec(RANKERS.build(self.first_stage))
        except ShaketableError:  # whoever needs the first stage is told
            return ""
        return next((name for name, model in self.models.items() if RANKERS.spec(model) == spec), "")

    def first_stage_finds(self, texts: Mapping[str, str]) -> Run:
        """What the first stage finds for query texts of any origin."""
        return self._search(self._finder, texts)

    def answer(self, name: str, texts: Mapping[str, str]) -> Run:
        """The whole pipeline on query texts of any origin: a retriever searches, others re-rank a new first stage."""
        if isinstance(self.ranker(name), Retriever):
            return self._search(name, texts)
        return self.rerank(name, texts, self.first_stage_finds(texts))

    def rerank(self, name: str, queries: Mapping[str, str], candidates: Run) -> Run:
        """Score candidate documents for these query texts; a query the ranker failed on is absent.

        Of very many queries, the texts of some are in memory at a time.
        """
        qids = [qid for qid in queries if candidates.get(qid)]
        run: dict[str, Mapping[str, float]] = {}
        for start in range(0, len(qids), WINDOW):
            docnos = {qid: ranking(candidates[qid]) for qid in qids[start : start + WINDOW]}
            slates = [Slate(queries[qid], self.documents(listed)) for qid, listed in docnos.items()]
            answers = self.road.score(self.ranker(name), slates, name, self.origin(name))
            run |= {
                qid: dict(zip(listed, scores.tolist(), strict=True))
                for (qid, listed), scores in zip(docnos.items(), answers, strict=True)
                if scores is not None
            }
        return run

    def documents(self, docnos: Sequence[str]) -> tuple[Doc, ...]:
        """Documents of the collection by their docnos, for a slate."""
        return tuple(map(self._doc, docnos))

    def table(self, measure: str) -> ScoreTable:
        """A measure's value for every ranker and judged query."""
        key = (measure, self.depth)
        if key not in self._memory.tables:
            self._memory.tables[key] = score_table(measure, self.qrels, self.runs())
        return self._memory.tables[key]

    def fit(
        self,
        learner: str | Learner,
        train: str | Sequence[str] = TRAIN,
        *,
        valid: str | Sequence[str] | None = None,
        plan: Plan | None = None,
        folder: str | Path | None = None,
        overwrite: bool = False,
    ) -> Saved:
        """What a learner makes of queries of the collection: a split by name, or query ids.

        Without a folder it is kept under $SHAKETABLE_HOME, named by all that it depends on, and learned once. Where no
        queries to validate on are named, the split validation or dev is taken, or a fifth held out.
        """
        (model,) = self.together([self.prepared(learner, train, valid, plan, folder, overwrite)])
        return model

    def prepared(
        self,
        learner: str | Learner,
        train: str | Sequence[str] = TRAIN,
        valid: str | Sequence[str] | None = None,
        plan: Plan | None = None,
        folder: str | Path | None = None,
        overwrite: bool = False,
        where: str = "",
    ) -> Saved | Job:
        """What `fit` finds or does: a model that is kept, or the job of learning it, for `together`.

        A job brings its own queries, judgements and candidates: of its origin, only documents are used. `where` is what
        the reader calls the training, for the error of one that cannot be done.
        """
        how: Learner = LEARNERS.build(learner) if isinstance(learner, str) else learner
        qids, judges = self.parts(train, valid)
        place = Path(folder) if folder is not None else self._place(how, qids, judges, plan)
        if folder is None and self._is_kept(place):
            LOG.info("%s was trained before; its model is in %s.", LEARNERS.spec(how), place)
            return Saved(str(place))
        known = {qid: self.collection.queries[qid] for qid in (*qids, *judges)}
        judged = {qid: grades for qid in known if (grades := self.collection.qrels.get(qid)) is not None}
        found = self.candidates_of(list(known)) or {}
        candidates = {qid: found[qid] for qid in known if qid in found}
        about = (known, judged, candidates, qids, judges)
        arguments = (place, how, *about, self.seed, plan, self.depth, overwrite, where)
        return Job(_fitted, self.collection, arguments, self._documents, {"watch": self.road.watch}, leaves=place)

    def together(self, wanted: Sequence[Saved | Job], told: Callable[[int], None] = lambda done: None) -> list[Saved]:
        """The models that were wanted, those that are not there yet learned by whoever does the road's work.

        `told` hears of each that is done.
        """
        jobs = {one.arguments[0]: one for one in wanted if isinstance(one, Job)}
        told(sum(isinstance(one, Saved) for one in wanted))
        made: dict[Path, Saved] = {}
        started = time.perf_counter()
        for place, model in completed(self.road.executor, jobs.items()):
            made[place] = model
            learner, seconds = LEARNERS.spec(jobs[place].arguments[1]), time.perf_counter() - started
            LOG.info("%s was trained, after %.1f seconds; its model is in %s.", learner, seconds, place)
            told(1)
        return [one if isinstance(one, Saved) else made[one.arguments[0]] for one in wanted]

    def is_fitted(self, learner: str) -> bool:
        """Was what `fit` makes of the split train kept before, so that nothing has to be trained?"""
        how: Learner = LEARNERS.build(learner)
        return self._is_kept(self._place(how, *self.parts(TRAIN, None), None))

    def fit_folds(
        self,
        learner: str | Learner,
        k: int = 5,
        *,
        folder: str | Path,
        plan: Plan | None = None,
        overwrite: bool = False,
    ) -> Saved:
        """Learn k times, each time without a part of the judged queries; the lists of those parts make one run.

        What is left in the folder is that run, as a ranker whose lists are recorded; the k models are kept as `fit`
        keeps them. (Paper 000, section 3.4.1, measures like this.)
        """
        refuse_taken(folder, overwrite=overwrite)
        judged = [qid for qid in self.collection.queries if self.collection.qrels.get(qid)]
        joined: dict[str, Mapping[str, float]] = {}
        dealt = folds(judged, k, self.seed)
        models = self.together([self.prepared(learner, fold.train, fold.valid, plan) for fold in dealt])
        for fold, model in zip(dealt, models, strict=True):
            joined |= self._test_lists(model, fold)
        card = {"learner": _spec(learner), "folds": k, "seed": self.seed, "train": {"queries": len(judged)}}
        runfile.save({qid: joined[qid] for qid in judged if qid in joined}, folder, card, overwrite=overwrite)
        return Saved(str(folder))

    def tune(
        self,
        learner: str | Learner,
        train: str | Sequence[str] = TRAIN,
        *,
        valid: str | Sequence[str] | None = None,
        plan: Plan | None = None,
        grid: Mapping[str, Sequence[Any]] | None = None,
    ) -> Tuned:
        """The settings of the learner's grid that do best on the validation queries.

        Each point is fitted as by `fit`, and so kept: a search that was cut off goes on.
        """
        how: Learner = LEARNERS.build(learner) if isinstance(learner, str) else learner
        qids, judges = self.parts(train, valid)
        if hasattr(how, "choose"):
            watch, given = self.road.watch, self.collection.candidates or None
            best, trials = how.choose(self.collection, judges or qids, given, self.depth, watch)
            return Tuned(best, trials)
        grid = how.grid if grid is None else grid
        if not grid:
            raise BadInput(f"{LEARNERS.spec(how)} has no grid of settings to choose from")
        if not judges:
            raise BadInput(
                "settings are chosen on validation queries, and there are none; name some, or cut the queries"
            )
        points = [dict(zip(grid, point, strict=True)) for point in product(*grid.values())]
        with self.road.watch(f"tuning {LEARNERS.spec(how)}", len(points), "trials") as advance:
            wanted = [self.prepared(replace(how, **point), qids, judges, plan) for point in points]  # type: ignore[type-var]
            models = self.together(wanted, advance)
        trials = [point | {"valid": float(model.card()["value"])} for point, model in zip(points, models, strict=True)]
        winner = max(trials, key=lambda trial: trial["valid"])
        return Tuned(replace(how, **{name: winner[name] for name in grid}), trials)  # type: ignore[type-var]

    def parts(
        self, train: str | Sequence[str], valid: str | Sequence[str] | None
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The ids of the queries to learn from and to validate on."""
        splits = self.collection.splits
        if valid is None:
            valid = (validation_split(self.collection) or ()) if isinstance(train, str) else ()
        named = [part for part in (train, valid) if isinstance(part, str)]
        if absent := [name for name in named if name not in splits]:
            if not splits or tuple(splits) == (TEST,):
                raise BadInput(
                    f"collection {self.collection.name} has no split {absent[0]}; cut its queries with --cut 60/20/20, "
                    "or learn in folds with --folds 5"
                )
            raise UnknownName("split", absent[0], splits)
        return self._known(train), self._known(valid)

    def _known(self, part: str | Sequence[str]) -> tuple[str, ...]:
        """Ids of queries: of a split, whose judgements may name some that nobody wrote down, or as they are given."""
        known = self.collection.queries
        if isinstance(part, str):
            return tuple(qid for qid in self.collection.splits[part] if qid in known)
        if strange := [qid for qid in part if qid not in known]:
            raise BadInput(f"collection {self.collection.name}: no query is called {strange[0]!r}")
        return tuple(part)

    def origin(self, name: str) -> Origin | None:
        """The texts from which another process can open a ranker; None if it lives in this process only."""
        model = self._model(name)
        text = RANKERS.spec(model)
        try:
            same = bool(self.collection.source) and RANKERS.build(text) == model
        except ShaketableError:
            same = False
        return Origin(self.collection.source, text, self.collection.docs.fingerprint) if same else None

    @property
    def _documents(self) -> Origin | None:
        """Where another process can open the documents."""
        source, docs = self.collection.source, self.collection.docs
        return Origin(source, documents=docs.fingerprint) if source else None

    def summary(self) -> dict[str, str]:
        """The facts a reader needs before any number."""
        return {
            "collection": self.collection.name,
            "documents": f"{len(self.collection.docs):,}",
            "queries": f"{len(self.queries):,}",
            "ranked": self.pool,
            "seed": str(self.seed),
        } | ({"weights": self.weighing} if self.weights else {})

    def remarks(self) -> dict[str, str]:
        """What rankers have to say of their scores: that texts were cut, for example."""
        said = {name: self.road.remark(ranker) for name, ranker in self._memory.rankers.items()}
        said |= {"scores": "; ".join(self.road.remarks()), "models": "; ".join(self._memory.repaired)}
        return {name: remark for name, remark in said.items() if remark}

    def provenance(self) -> dict[str, Any]:
        """All that a result depends on, and what it cost, in pairs of a query and a document."""
        rankers = self._memory.rankers
        return {
            "versions": _versions(),
            "collection": {
                "name": self.collection.name,
                "source": self.collection.source,
                "fingerprint": self.collection.fingerprint,
                "split": self.split,
                "documents": len(self.collection.docs),
                "queries": len(self.queries),
                "judgements": sum(map(len, self.qrels.values())),
            },
            "rankers": {name: RANKERS.spec(self._model(name)) for name in self.models},
            "fingerprints": {name: Traits.of(rankers[name]).fingerprint for name in self.models if name in rankers},
            "first stage": self.first_stage,
            "baseline": self.baseline,
            "ranked": self.pool,
            "depth": self.depth,
            "limit": self.limit,
            "seed": self.seed,
            "remarks": self.remarks(),
            "spent": {
                name: {"asked": spent.asked, "scored": spent.scored, "searches": spent.searches}
                for name, spent in self.road.spent.items()
            },
        }

    def _model(self, name: str) -> Model:
        """A model of the bench, or the first stage."""
        if name in self.models:
            return self.models[name]
        if name != self._finder:
            raise UnknownName("ranker", name, self.models)
        model: Model = RANKERS.build(self.first_stage)
        return model

    @property
    def _finder(self) -> str:
        """What the first stage is called: its text, or the ranker of the bench that has this name.

        A ranker that somebody called bm25, and that is another, does not take the place of bm25.
        """
        taken = self.models.get(self.first_stage)
        if taken is None or self.first_stage not in RANKERS or RANKERS.spec(taken) == self.first_stage:
            return self.first_stage
        return f"{self.first_stage} (first stage)"

    def _search(self, name: str, texts: Mapping[str, str]) -> Run:
        ranker = self.ranker(name)
        if not isinstance(ranker, Retriever):
            raise BadInput(f"the first stage {name} cannot search a collection; use bm25, or give candidates")
        lists = self.road.search(ranker, list(texts.values()), self.depth, name, self.origin(name))
        return {qid: found for qid, found in zip(texts, lists, strict=True) if found is not None}

    def candidates_of(self, qids: Sequence[str]) -> Run | None:
        """What the queries are learned with: the collection's candidates if it has any for them, or a new search."""
        given = self.collection.candidates
        if any(qid in given for qid in qids):
            return given
        return self._search(self._finder, {qid: self.collection.queries[qid].text for qid in qids})

    def _is_kept(self, place: Path) -> bool:
        """Is a model there, as it was written? One that is damaged is set aside, and will be learned again."""
        if not (place / MODEL).is_file():
            return False
        try:
            tidy(place)
            opened(place)
        except Damaged as error:
            place.rename(place.with_name(f"{place.name}.damaged-{time.time_ns()}"))
            self._memory.repaired.append(f"a kept model was damaged, and learned again ({error})")
            return False
        return True

    def _place(self, learner: Learner, train: Sequence[str], valid: Sequence[str], plan: Plan | None) -> Path:
        text = LEARNERS.spec(learner)
        parts = (
            SCHEMA,
            text,
            digests(files_named(text)),
            plan.fingerprint if plan else "",
            self.collection.fingerprint,
        )
        return home() / "models" / fingerprint(*parts, train, valid, self.seed, self.depth, self.first_stage)

    def _test_lists(self, model: Saved, fold: Fold) -> Run:
        whole = self.collection
        test = replace(whole, queries={qid: whole.queries[qid] for qid in fold.test}, splits={})
        return replace(self.on(test), models={model.path: model}, limit=None).run(model.path)

    @cached_property
    def _doc(self) -> Callable[[str], Doc]:
        """docno -> document; a document is wanted for many queries and variations, so the last ones are kept."""

        def fetch(docno: str) -> Doc:
            try:
                return self.collection.docs[docno]
            except KeyError:
                raise BadInput(f"candidate {docno!r} is not a document of {self.collection.name}") from None

        return lru_cache(maxsize=50_000)(fetch)


def _fitted(
    collection: Collection,
    folder: Path,
    learner: Learner,
    queries: Mapping[str, Query],
    qrels: Qrels,
    candidates: Run,
    train: Sequence[str],
    valid: Sequence[str],
    seed: int,
    plan: Plan | None,
    depth: int,
    overwrite: bool,
    where: str,
    watch: Watch = unwatched,
) -> Model:
    """`Learner.fit` as a job."""
    asked = replace(collection, queries=queries, qrels=qrels, splits={}, candidates={}, variants={})
    what: Any = {"valid": valid, "seed": seed, "plan": plan, "candidates": candidates, "depth": depth}
    try:
        return learner.fit(asked, train, **what, folder=folder, watch=watch, overwrite=overwrite)
    except BadInput as error:
        if not where:
            raise
        raise BadInput(f"it cannot be trained on {where} ({error})") from error


def _spec(learner: str | Learner) -> str:
    return learner if isinstance(learner, str) else LEARNERS.spec(learner)


def _versions() -> dict[str, str]:
    known = {"python": platform.python_version()}
    for name in ("shaketable", *LIBRARIES):
        if name == "shaketable" or name.replace("-", "_") in sys.modules:
            try:
                known[name] = version(name)
            except PackageNotFoundError:
                continue
    return known


def _top(scores: Mapping[str, float], depth: int) -> dict[str, float]:
    return {docno: scores[docno] for docno in ranking(scores)[:depth]}
