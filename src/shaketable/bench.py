"""Where tasks work: a collection, rankers opened on it, their runs, and the one road to scores.

A ranker's run over the original queries is what most tasks start from, so the bench makes each once. Rankers that can
search the collection do so; all others re-rank the first stage's candidates. Where the collection brings its own
candidates, everybody ranks those, so that runs differ by the ranker alone.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib.metadata import version
from itertools import islice
from typing import Any

from shaketable.errors import BadInput, RankerFailed
from shaketable.measure.effectiveness import score_table
from shaketable.registry import RANKERS
from shaketable.score.road import Road, Traits
from shaketable.types import (
    Collection,
    Doc,
    Model,
    Qrels,
    Query,
    Ranker,
    Retriever,
    Run,
    Scores,
    ScoreTable,
    Slate,
    ranking,
)


@dataclass
class Bench:
    """What a task is given: see the module."""

    collection: Collection
    models: Mapping[str, Model]
    road: Road = field(default_factory=Road)
    seed: int = 0
    depth: int = 100
    limit: int | None = None
    first_stage: str = "bm25"
    _rankers: dict[str, Ranker] = field(default_factory=dict, repr=False)
    _runs: dict[str, Run] = field(default_factory=dict, repr=False)

    @cached_property
    def queries(self) -> Mapping[str, Query]:
        """The queries of the experiment: those with judgements where there are any, at most `limit`, none empty."""
        judged = self.collection.qrels
        wanted = [qid for qid, q in self.collection.queries.items() if q.text.strip() and (not judged or qid in judged)]
        if not wanted:
            reason = "has judgements" if self.collection.queries else "is there"
            raise BadInput(f"collection {self.collection.name}: no query {reason}; `shaketable doctor` says more")
        return {qid: self.collection.queries[qid] for qid in wanted[: self.limit]}

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
            return f"the collection's own candidates, at most {self.depth} a query"
        return f"the best {self.depth} of the collection (re-rankers: of {self.first_stage})"

    def ranker(self, name: str) -> Ranker:
        """The ranker of that name, opened once."""
        if name not in self._rankers:
            self._rankers[name] = self.models[name].open(self.collection)
        return self._rankers[name]

    def run(self, name: str) -> Run:
        """What a ranker makes of the original queries."""
        if name not in self._runs:
            ranker = self.ranker(name)
            run: Run
            if isinstance(ready := getattr(ranker, "run", None), Mapping):
                run = {qid: _top(ready[qid], self.depth) for qid in self.queries if qid in ready}
            elif self.collection.candidates:
                run = self.rerank(ranker, self.texts, self.candidates)
            else:
                run = self.answer(name, self.texts)
            if not run:
                reason = f": {self.road.failures[0].reason}" if self.road.failures else ""
                raise RankerFailed(f"ranker {name} ranked none of the {len(self.queries)} queries{reason}")
            self._runs[name] = run
        return self._runs[name]

    def runs(self) -> dict[str, Run]:
        """The run of every ranker."""
        return {name: self.run(name) for name in self.models}

    @property
    def scoring(self) -> list[str]:
        """The rankers that can score new texts; a run file cannot."""
        return [name for name in self.models if not isinstance(getattr(self.ranker(name), "run", None), Mapping)]

    def first_stage_finds(self, texts: Mapping[str, str]) -> Run:
        """What the first stage finds for query texts of any origin."""
        return self._search(self._first_stage, texts)

    def answer(self, name: str, texts: Mapping[str, str]) -> Run:
        """The whole pipeline on query texts of any origin: a retriever searches, others re-rank a new first stage."""
        ranker = self.ranker(name)
        if isinstance(ranker, Retriever):
            return self._search(ranker, texts)
        return self.rerank(ranker, texts, self.first_stage_finds(texts))

    def rerank(self, ranker: Ranker, queries: Mapping[str, str], candidates: Run) -> Run:
        """Score candidate documents for these query texts; a query the ranker failed on is absent."""
        qids = [qid for qid in queries if candidates.get(qid)]
        docnos = {qid: ranking(candidates[qid]) for qid in qids}
        slates = [Slate(queries[qid], tuple(self._doc(docno) for docno in docnos[qid])) for qid in qids]
        answers = self.score(ranker, slates)
        return {
            qid: dict(zip(docnos[qid], scores.tolist(), strict=True))
            for qid, scores in zip(qids, answers, strict=True)
            if scores is not None
        }

    def score(self, ranker: Ranker, slates: Sequence[Slate]) -> list[Scores | None]:
        """Scores by the one road."""
        return self.road.score(ranker, slates)

    def table(self, measure: str) -> ScoreTable:
        """A measure's value for every ranker and judged query."""
        return score_table(measure, self.qrels, self.runs())

    def summary(self) -> dict[str, str]:
        """The facts a reader needs before any number."""
        return {
            "collection": self.collection.name,
            "documents": f"{len(self.collection.docs):,}",
            "queries": f"{len(self.queries):,}",
            "ranked": self.pool,
            "seed": str(self.seed),
        }

    def remarks(self) -> dict[str, str]:
        """What rankers have to say of their scores: that texts were cut, for example."""
        said = {name: getattr(ranker, "remark", "") for name, ranker in self._rankers.items()}
        return {name: remark for name, remark in said.items() if remark}

    def provenance(self) -> dict[str, Any]:
        """All that a result depends on, and what it cost."""
        return {
            "versions": {name: version(name) for name in ("shaketable", "numpy", "scipy", "pandas", "ir-measures")}
            | {"python": platform.python_version()},
            "collection": {
                "name": self.collection.name,
                "fingerprint": self.collection.fingerprint,
                "documents": len(self.collection.docs),
                "queries": len(self.queries),
                "judgements": sum(map(len, self.qrels.values())),
            },
            "rankers": {name: Traits.of(ranker).fingerprint for name, ranker in self._rankers.items()},
            "ranked": self.pool,
            "depth": self.depth,
            "limit": self.limit,
            "seed": self.seed,
            "remarks": self.remarks(),
            "spent": {name: {"asked": spent.asked, "scored": spent.scored} for name, spent in self.road.spent.items()},
        }

    @cached_property
    def _first_stage(self) -> Ranker:
        ranker: Ranker = RANKERS.build(self.first_stage).open(self.collection)
        return ranker

    @cached_property
    def _doc(self) -> Callable[[str], Doc]:
        """docno -> document; a document is wanted for many queries and variations, so the last ones are kept."""

        def fetch(docno: str) -> Doc:
            try:
                return self.collection.docs[docno]
            except KeyError:
                raise BadInput(f"candidate {docno!r} is not a document of {self.collection.name}") from None

        return lru_cache(maxsize=50_000)(fetch)

    def _search(self, ranker: Retriever | Ranker, texts: Mapping[str, str]) -> Run:
        if not isinstance(ranker, Retriever):
            raise BadInput(f"first stage {self.first_stage} cannot search a collection; use bm25, or give candidates")
        return dict(zip(texts, ranker.search(list(texts.values()), self.depth), strict=True))


def _top(scores: Mapping[str, float], depth: int) -> dict[str, float]:
    return {docno: scores[docno] for docno in ranking(scores)[:depth]}
