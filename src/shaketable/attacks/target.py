"""The ranker under attack: texts go in, places come out, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from shaketable.errors import BadInput
from shaketable.score.road import settled
from shaketable.types import Case, Doc, Goal, Listing, Places, Scores, Slate

Score = Callable[[Sequence[Slate]], Sequence[Scores | None]]
"""The road to the ranker: one array of scores for each slate, None where it failed."""


@dataclass(frozen=True, eq=False)
class Pool:
    """The documents that the target ranks for a query, in the order it is given them, and its scores of them."""

    qid: str
    query: str
    docnos: tuple[str, ...]
    docs: tuple[Doc, ...]
    scores: Scores
    noise: float = 0.0
    _rivals: dict[str, NDArray[np.bool_]] = field(default_factory=dict, repr=False)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """docno -> where it stands among those that the ranker is given."""
        return {docno: number for number, docno in enumerate(self.docnos)}

    @cached_property
    def listing(self) -> Listing:
        """The list as the target orders it."""
        ranked = np.asarray(settled(self.scores, self.noise), dtype=np.float32)
        by_docno = sorted(range(len(self.docnos)), key=self.docnos.__getitem__, reverse=True)
        order = [by_docno[i] for i in np.argsort(-ranked[by_docno], kind="stable")]
        return Listing(self.qid, self.query, tuple(self.docnos[i] for i in order), tuple(self.docs[i] for i in order))

    def with_text(self, docno: str, doc: Doc) -> tuple[Doc, ...]:
        """The documents with another text in the place of one; a document that is new comes last."""
        if (at := self.numbers.get(docno)) is None:
            return (*self.docs, doc)
        return (*self.docs[:at], doc, *self.docs[at + 1 :])

    def with_score(self, docno: str, score: float) -> Scores:
        """The scores with another one in the place of one."""
        if (at := self.numbers.get(docno)) is None:
            return np.append(self.scores, score)
        scores = self.scores.copy()
        scores[at] = score
        return scores

    def place(self, docno: str, scores: Scores) -> int:
        """The place of a document by `types.ranking`: float32 score, then docno, both descending."""
        at = self.numbers.get(docno, len(self.docnos))
        ranked = np.asarray(settled(scores, self.noise), dtype=np.float32)
        before = ranked > ranked[at]
        ties = ranked == ranked[at]
        if ties.sum() > 1:
            before |= ties & self._larger(docno)
        return 1 + int(before.sum())

    def _larger(self, docno: str) -> NDArray[np.bool_]:
        """Which docnos come first where scores tie."""
        if docno not in self._rivals:
            named = self.docnos if docno in self.numbers else (*self.docnos, docno)
            self._rivals[docno] = np.array([other > docno for other in named])
        return self._rivals[docno]


@dataclass(eq=False)
class Target:
    """A ranker, known by what it does to lists.

    `pointwise` says that a text's score depends on query and text alone: then a trial costs one scoring, otherwise it
    costs the list. Nothing is changed by a trial, so no case sees what another one tried.
    """

    score: Score
    pointwise: bool
    noise: float = 0.0
    pools: dict[str, Pool] = field(default_factory=dict)

    def read(self, slates: Mapping[str, tuple[Slate, Sequence[str]]]) -> None:
        """Learn the lists of queries: by query id the slate, and the docnos of its documents."""
        if self.pointwise:  # one by one, so that nothing is evened out within a list yet
            parts = [Slate(slate.query, (doc,)) for slate, _ in slates.values() for doc in slate.docs]
            answers = iter(self.score(parts))
            apart = [list(islice(answers, len(slate.docs))) for slate, _ in slates.values()]
            whole = [[one for one in some if one is not None] for some in apart]
            lists = [np.concatenate(w) if len(w) == len(a) and w else None for w, a in zip(whole, apart, strict=True)]
        else:
            lists = list(self.score([slate for slate, _ in slates.values()]))
        for (qid, (slate, docnos)), scored in zip(slates.items(), lists, strict=True):
            if scored is not None:
                self.pools[qid] = Pool(qid, slate.query, tuple(docnos), slate.docs, scored, self.noise)

    def cases(self, documents: Sequence[tuple[str, Doc, Sequence[str]]], goal: Goal) -> list[Case]:
        """Documents to attack, each with its text and the queries whose lists it is to move in.

        A document that the target fails on has no place to move from, and is left out.
        """
        if strange := [qid for _, _, qids in documents for qid in qids if qid not in self.pools]:
            raise BadInput(f"there is no list for the query {strange[0]!r}, so nothing can be attacked in it")
        bare = [
            Case(docno, doc, tuple(self.pools[qid].listing for qid in qids), goal, ()) for docno, doc, qids in documents
        ]
        known = [self._standing(case) for case in bare]
        scored = iter(self.places([(case, case.doc) for case, places in zip(bare, known, strict=True) if not places]))
        settled_places = [places or next(scored) for places in known]
        return [replace(case, places=places) for case, places in zip(bare, settled_places, strict=True) if places]

    def text(self, docno: str, qids: Sequence[str]) -> Doc | None:
        """A document of the lists of these queries; None if it is in none of them."""
        pools = [self.pools[qid] for qid in qids if docno in self.pools[qid].numbers]
        return pools[0].docs[pools[0].numbers[docno]] if pools else None

    def _standing(self, case: Case) -> Places:
        """Where a document stands that is in all lists of its case; nothing if it is in one of them not."""
        pools = [self.pools[listing.qid] for listing in case.lists]
        if any(case.docno not in pool.numbers for pool in pools):
            return ()
        return tuple(pool.place(case.docno, pool.scores) for pool in pools)

    def places(self, trials: Sequence[tuple[Case, Doc]]) -> list[Places | None]:
        """Where each text would stand in the lists of its case; None where the ranker failed on one of them."""
        wanted = [(self.pools[listing.qid], case.docno, doc) for case, doc in trials for listing in case.lists]
        slates = [
            Slate(pool.query, (doc,) if self.pointwise else pool.with_text(docno, doc)) for pool, docno, doc in wanted
        ]
        answers = iter(zip(wanted, self.score(slates) if slates else (), strict=True))
        places: list[Places | None] = []
        for case, _ in trials:
            standing = [
                self._place(pool, docno, scores) for (pool, docno, _), scores in islice(answers, len(case.lists))
            ]
            places.append(None if 0 in standing else tuple(standing))
        return places

    def _place(self, pool: Pool, docno: str, scores: Scores | None) -> int:
        """0 where there are no scores."""
        if scores is None:
            return 0
        return pool.place(docno, pool.with_score(docno, float(scores[0])) if self.pointwise else scores)

    def cost(self, case: Case) -> int:
        """The pairs that one trial costs."""
        if self.pointwise:
            return len(case.lists)
        return sum(len(listing.docnos) + (case.docno not in self.pools[listing.qid].numbers) for listing in case.lists)
