"""The ranker under attack: texts go in, places come out, and nothing else."""

from __future__ import annotations

from collections import defaultdict
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

AT_ONCE = 1_000_000
"""Scores that are ranked together."""


@dataclass(frozen=True, eq=False)
class Pool:
    """The documents that the target ranks for a query, in the order it is given them, and its scores of them."""

    qid: str
    query: str
    docnos: tuple[str, ...]
    docs: tuple[Doc, ...]
    scores: Scores
    noise: float = 0.0
    _larger: dict[str, NDArray[np.bool_]] = field(default_factory=dict, repr=False)

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

    def number(self, docno: str) -> int:
        """Where a document stands among those that the ranker is given; a new one comes last."""
        return self.numbers.get(docno, len(self.docnos))

    def larger(self, docno: str) -> NDArray[np.bool_]:
        """Which docnos come first where scores tie."""
        if docno not in self._larger:
            named = self.docnos if docno in self.numbers else (*self.docnos, docno)
            self._larger[docno] = np.array([other > docno for other in named])
        return self._larger[docno]


Scored = tuple[Pool, str, Scores | None]
"""A list, a document that is in it or added to it, and the scores of all of them."""


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
        listed = [all(case.docno in self.pools[one.qid].numbers for one in case.lists) for case in bare]
        old = [case for case, there in zip(bare, listed, strict=True) if there]
        new = [(case, case.doc) for case, there in zip(bare, listed, strict=True) if not there]
        pools = [(self.pools[one.qid], case.docno) for case in old for one in case.lists]
        known = iter(self._places(old, [(pool, docno, pool.scores) for pool, docno in pools]))
        asked = iter(self.places(new))
        places = [next(known if there else asked) for there in listed]
        return [replace(case, places=found) for case, found in zip(bare, places, strict=True) if found]

    def text(self, docno: str, qids: Sequence[str]) -> Doc | None:
        """A document of the lists of these queries; None if it is in none of them."""
        pools = [self.pools[qid] for qid in qids if docno in self.pools[qid].numbers]
        return pools[0].docs[pools[0].numbers[docno]] if pools else None

    def places(self, trials: Sequence[tuple[Case, Doc]]) -> list[Places | None]:
        """Where each text would stand in the lists of its case; None where the ranker failed on one of them."""
        wanted = [(self.pools[listing.qid], case.docno, doc) for case, doc in trials for listing in case.lists]
        slates = [
            Slate(pool.query, (doc,) if self.pointwise else pool.with_text(docno, doc)) for pool, docno, doc in wanted
        ]
        answers = self.score(slates) if slates else ()
        lists = [
            (pool, docno, pool.with_score(docno, scores[0]) if self.pointwise and scores is not None else scores)
            for (pool, docno, _), scores in zip(wanted, answers, strict=True)
        ]
        return self._places([case for case, _ in trials], lists)

    def _places(self, cases: Sequence[Case], lists: Sequence[Scored]) -> list[Places | None]:
        """The places in the lists of each case, one after the other."""
        standing = iter(self.standing(lists))
        places = [tuple(islice(standing, len(case.lists))) for case in cases]
        return [None if 0 in some else some for some in places]

    def standing(self, lists: Sequence[Scored]) -> list[int]:
        """The place of a document in each list by `types.ranking`: float32 score, then docno, both descending; 0 where
        there are no scores. Lists of one length are ranked together."""
        places = [0] * len(lists)
        alike = defaultdict(list)
        for i, (_, _, scores) in enumerate(lists):
            if scores is not None:
                alike[len(scores)].append(i)
        for length, numbers in alike.items():
            step = max(1, AT_ONCE // length)
            for some in (numbers[start : start + step] for start in range(0, len(numbers), step)):
                pools, docnos, scored = zip(*(lists[i] for i in some), strict=True)
                ranked = np.asarray(settled(np.stack(scored), self.noise), dtype=np.float32)
                own = [pool.number(docno) for pool, docno in zip(pools, docnos, strict=True)]
                larger = np.stack([pool.larger(docno) for pool, docno in zip(pools, docnos, strict=True)])
                mine = ranked[np.arange(len(some)), own, None]
                before = ((ranked > mine) | ((ranked == mine) & larger)).sum(axis=1)
                for i, count in zip(some, before.tolist(), strict=True):
                    places[i] = 1 + count
        return places

    def cost(self, case: Case) -> int:
        """The pairs that one trial costs."""
        if self.pointwise:
            return len(case.lists)
        return sum(len(listing.docnos) + (case.docno not in self.pools[listing.qid].numbers) for listing in case.lists)
