"""The ranker under attack: texts go in, places come out, and nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from shaketable.core.attack_types import AttackCase, Goal, Ranks, TargetRanking
from shaketable.core.documents import Doc, Scores, Slate
from shaketable.core.errors import BadInput
from shaketable.scoring.validation import collapse_ties

ScoreFunction = Callable[[Sequence[Slate]], Sequence[Scores | None]]
"""The road to the ranker: one array of scores for each slate, None where it failed."""

MAX_SCORES_PER_BATCH = 1_000_000
"""Scores that are ranked together."""


@dataclass(frozen=True, eq=False)
class TargetList:
    """The documents that the target ranks for a query, in the order it is given them, and its scores of them."""

    qid: str
    query: str
    docnos: tuple[str, ...]
    docs: tuple[Doc, ...]
    scores: Scores
    noise: float = 0.0
    _tie_masks: dict[str, NDArray[np.bool_]] = field(default_factory=dict, repr=False)

    @cached_property
    def index_by_docno(self) -> dict[str, int]:
        """docno -> where it stands among those that the ranker is given."""
        return {docno: number for number, docno in enumerate(self.docnos)}

    @cached_property
    def target_ranking(self) -> TargetRanking:
        """The list as the target orders it."""
        ranked = np.asarray(collapse_ties(self.scores, self.noise), dtype=np.float32)
        by_docno = sorted(range(len(self.docnos)), key=self.docnos.__getitem__, reverse=True)
        order = [by_docno[i] for i in np.argsort(-ranked[by_docno], kind="stable")]
        return TargetRanking(
            self.qid, self.query, tuple(self.docnos[i] for i in order), tuple(self.docs[i] for i in order)
        )

    def replace_text(self, docno: str, doc: Doc) -> tuple[Doc, ...]:
        """The documents with another text in the place of one; a document that is new comes last."""
        if (at := self.index_by_docno.get(docno)) is None:
            return (*self.docs, doc)
        return (*self.docs[:at], doc, *self.docs[at + 1 :])

    def replace_score(self, docno: str, score: float) -> Scores:
        """The scores with another one in the place of one."""
        if (at := self.index_by_docno.get(docno)) is None:
            return np.append(self.scores, score)
        scores = self.scores.copy()
        scores[at] = score
        return scores

    def find_index(self, docno: str) -> int:
        """Where a document stands among those that the ranker is given; a new one comes last."""
        return self.index_by_docno.get(docno, len(self.docnos))

    def mask_tie_winners(self, docno: str) -> NDArray[np.bool_]:
        """Which docnos come first where scores tie."""
        if docno not in self._tie_masks:
            named = self.docnos if docno in self.index_by_docno else (*self.docnos, docno)
            self._tie_masks[docno] = np.array([other > docno for other in named])
        return self._tie_masks[docno]


ScoredList = tuple[TargetList, str, Scores | None]
"""A list, a document that is in it or added to it, and the scores of all of them."""


@dataclass(eq=False)
class Target:
    """A ranker, known by what it does to lists.

    `pointwise` says that a text's score depends on query and text alone: then a trial costs one scoring, otherwise it
    costs the list. Nothing is changed by a trial, so no case sees what another one tried.
    """

    score: ScoreFunction
    pointwise: bool
    noise: float = 0.0
    target_lists: dict[str, TargetList] = field(default_factory=dict)

    def read_lists(self, slates: Mapping[str, tuple[Slate, Sequence[str]]]) -> None:
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
                self.target_lists[qid] = TargetList(qid, slate.query, tuple(docnos), slate.docs, scored, self.noise)

    def build_cases(self, documents: Sequence[tuple[str, Doc, Sequence[str]]], goal: Goal) -> list[AttackCase]:
        """Documents to attack, each with its text and the queries whose lists it is to move in.

        A document that the target fails on has no place to move from, and is left out.
        """
        if strange := [qid for _, _, qids in documents for qid in qids if qid not in self.target_lists]:
            raise BadInput(f"there is no list for the query {strange[0]!r}, so nothing can be attacked in it")
        bare = [
            AttackCase(docno, doc, tuple(self.target_lists[qid].target_ranking for qid in qids), goal, ())
            for docno, doc, qids in documents
        ]
        listed = [all(case.docno in self.target_lists[one.qid].index_by_docno for one in case.lists) for case in bare]
        old = [case for case, there in zip(bare, listed, strict=True) if there]
        new = [(case, case.doc) for case, there in zip(bare, listed, strict=True) if not there]
        pools = [(self.target_lists[one.qid], case.docno) for case in old for one in case.lists]
        known = iter(self._group_ranks(old, [(pool, docno, pool.scores) for pool, docno in pools]))
        asked = iter(self.rank_trials(new))
        ranks = [next(known if there else asked) for there in listed]
        return [replace(case, ranks=found) for case, found in zip(bare, ranks, strict=True) if found]

    def find_text(self, docno: str, qids: Sequence[str]) -> Doc | None:
        """A document of the lists of these queries; None if it is in none of them."""
        pools = [self.target_lists[qid] for qid in qids if docno in self.target_lists[qid].index_by_docno]
        return pools[0].docs[pools[0].index_by_docno[docno]] if pools else None

    def rank_trials(self, trials: Sequence[tuple[AttackCase, Doc]]) -> list[Ranks | None]:
        """Where each text would stand in the lists of its case; None where the ranker failed on one of them."""
        wanted = [(self.target_lists[listing.qid], case.docno, doc) for case, doc in trials for listing in case.lists]
        slates = [
            Slate(pool.query, (doc,) if self.pointwise else pool.replace_text(docno, doc))
            for pool, docno, doc in wanted
        ]
        answers = self.score(slates) if slates else ()
        lists = [
            (pool, docno, pool.replace_score(docno, scores[0]) if self.pointwise and scores is not None else scores)
            for (pool, docno, _), scores in zip(wanted, answers, strict=True)
        ]
        return self._group_ranks([case for case, _ in trials], lists)

    def _group_ranks(self, cases: Sequence[AttackCase], lists: Sequence[ScoredList]) -> list[Ranks | None]:
        """The places in the lists of each case, one after the other."""
        standing = iter(self.rank_documents(lists))
        ranks = [tuple(islice(standing, len(case.lists))) for case in cases]
        return [None if 0 in some else some for some in ranks]

    def rank_documents(self, lists: Sequence[ScoredList]) -> list[int]:
        """The place of a document in each list by `types.rank_docnos`: float32 score, then docno, both descending; 0
        where there are no scores. Lists of one length are ranked together."""
        ranks = [0] * len(lists)
        alike = defaultdict(list)
        for i, (_, _, scores) in enumerate(lists):
            if scores is not None:
                alike[len(scores)].append(i)
        for length, numbers in alike.items():
            step = max(1, MAX_SCORES_PER_BATCH // length)
            for some in (numbers[start : start + step] for start in range(0, len(numbers), step)):
                pools, docnos, scored = zip(*(lists[i] for i in some), strict=True)
                ranked = np.asarray(collapse_ties(np.stack(scored), self.noise), dtype=np.float32)
                own = [pool.find_index(docno) for pool, docno in zip(pools, docnos, strict=True)]
                larger = np.stack([pool.mask_tie_winners(docno) for pool, docno in zip(pools, docnos, strict=True)])
                mine = ranked[np.arange(len(some)), own, None]
                before = ((ranked > mine) | ((ranked == mine) & larger)).sum(axis=1)
                for i, count in zip(some, before.tolist(), strict=True):
                    ranks[i] = 1 + count
        return ranks

    def count_pairs_per_trial(self, case: AttackCase) -> int:
        """The pairs that one trial costs."""
        if self.pointwise:
            return len(case.lists)
        return sum(
            len(listing.docnos) + (case.docno not in self.target_lists[listing.qid].index_by_docno)
            for listing in case.lists
        )
