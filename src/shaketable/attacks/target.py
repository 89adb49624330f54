"""The ranker under attack, which reveals only ranks."""

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
"""A function that returns one array of scores for each slate, or None if the ranker failed."""

DocnosAndScores = tuple[tuple[str, ...], Scores | None]
"""The docnos of a list and its scores, or None if the ranker failed."""

MAX_SCORES_PER_BATCH = 1_000_000
"""Scores ranked in one batch."""


@dataclass(frozen=True, eq=False)
class TargetList:
    """The candidates of a query in input order, with the target's scores."""

    qid: str
    query: str
    docnos: tuple[str, ...]
    docs: tuple[Doc, ...]
    scores: Scores
    noise: float = 0.0
    _tie_masks: dict[str, NDArray[np.bool_]] = field(default_factory=dict, repr=False)

    @cached_property
    def index_by_docno(self) -> dict[str, int]:
        """The index of each docno in the ranker's input."""
        return {docno: number for number, docno in enumerate(self.docnos)}

    @cached_property
    def target_ranking(self) -> TargetRanking:
        """The list in the target's order."""
        ranked = np.asarray(collapse_ties(self.scores, self.noise), dtype=np.float32)
        by_docno = sorted(range(len(self.docnos)), key=self.docnos.__getitem__, reverse=True)
        order = [by_docno[i] for i in np.argsort(-ranked[by_docno], kind="stable")]
        return TargetRanking(
            self.qid, self.query, tuple(self.docnos[i] for i in order), tuple(self.docs[i] for i in order)
        )

    def replace_text(self, docno: str, doc: Doc) -> tuple[Doc, ...]:
        """Return the documents with one text replaced; a new document is appended."""
        if (at := self.index_by_docno.get(docno)) is None:
            return (*self.docs, doc)
        return (*self.docs[:at], doc, *self.docs[at + 1 :])

    def replace_score(self, docno: str, score: float) -> Scores:
        """Return the scores with one score replaced; the score of a new document is appended."""
        if (at := self.index_by_docno.get(docno)) is None:
            return np.append(self.scores, score)
        scores = self.scores.copy()
        scores[at] = score
        return scores

    def find_new_texts(self, docs: Mapping[str, Doc]) -> dict[str, Doc]:
        """Return the documents whose text differs from that in the list, or that are not in the list."""
        index = self.index_by_docno
        return {docno: doc for docno, doc in docs.items() if docno not in index or self.docs[index[docno]] != doc}

    def merge_scores(self, new: Mapping[str, Scores | None]) -> DocnosAndScores:
        """Return the list with the scores of some documents replaced, or with new documents at its end.

        The scores are None if one of the new ones is.
        """
        scores = dict(zip(self.docnos, self.scores.tolist(), strict=True))
        known = {docno: float(answer[0]) for docno, answer in new.items() if answer is not None}
        scores |= known
        return tuple(scores), np.array(list(scores.values())) if len(known) == len(new) else None

    def find_index(self, docno: str) -> int:
        """Return the index of a document in the ranker's input; a new document comes last."""
        return self.index_by_docno.get(docno, len(self.docnos))

    def mask_tie_winners(self, docno: str) -> NDArray[np.bool_]:
        """Return a mask of the documents that win a tie against this document."""
        if docno not in self._tie_masks:
            named = self.docnos if docno in self.index_by_docno else (*self.docnos, docno)
            self._tie_masks[docno] = np.array([other > docno for other in named])
        return self._tie_masks[docno]


ScoredList = tuple[TargetList, str, Scores | None]
"""A list, a document in it or added to it, and the scores of all documents."""


@dataclass(eq=False)
class Target:
    """A ranker that attacks observe through its rankings.

    A trial changes no state, so cases do not affect each other.

    Attributes
    ----------
    score
        A function that returns one array of scores for each slate, or None if the ranker failed.
    pointwise
        True if a score depends on query and text alone, so that a trial scores one text; otherwise a trial scores the
        whole list.
    noise
        The relative difference up to which scores tie.
    target_lists
        Query id -> the candidates with their scores.
    confirm_score
        A function that calls the ranker again, without a cache; None if the ranker is known to be deterministic. A
        search keeps the luckiest of many answers of a noisy ranker, so the final texts need a new answer.
    """

    score: ScoreFunction
    pointwise: bool
    noise: float = 0.0
    target_lists: dict[str, TargetList] = field(default_factory=dict)
    confirm_score: ScoreFunction | None = None

    def read_lists(self, slates: Mapping[str, tuple[Slate, Sequence[str]]]) -> None:
        """Score and store the lists of queries: query id -> slate and the docnos of its documents."""
        if self.pointwise:  # one by one, so that ties are not yet collapsed within a list
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
        """Return the attack cases of documents, given each text and the queries of its lists.

        Documents on which the target fails have no rank and are omitted.
        """
        if strange := [qid for _, _, qids in documents for qid in qids if qid not in self.target_lists]:
            raise BadInput(f"there is no list for the query {strange[0]!r}, so it cannot be attacked")
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
        """Return a document from the lists of these queries, or None if no list contains it."""
        pools = [self.target_lists[qid] for qid in qids if docno in self.target_lists[qid].index_by_docno]
        return pools[0].docs[pools[0].index_by_docno[docno]] if pools else None

    def rank_trials(self, trials: Sequence[tuple[AttackCase, Doc]]) -> list[Ranks | None]:
        """Return the ranks of each text in the lists of its case, or None if the ranker failed on one of them."""
        return self._rank_trials(trials, self.score)

    def confirm_trials(self, trials: Sequence[tuple[AttackCase, Doc]]) -> list[Ranks | None]:
        """Return the ranks of `rank_trials` by new answers of the ranker."""
        return self._rank_trials(trials, self.confirm_score or self.score)

    def score_changed_lists(self, changed: Mapping[str, Mapping[str, Doc]]) -> dict[str, dict[str, float]]:
        """Return the scores of lists with all changed texts of a query at once; a failed list is absent.

        `changed` is query id -> docno -> text. The ranker is asked again if it is not known to be deterministic, but
        not for texts that are as they were.
        """
        pools = {qid: self.target_lists[qid] for qid in changed}
        new = {qid: pools[qid].find_new_texts(docs) for qid, docs in changed.items()}
        found = self._score_apart(new) if self.pointwise else self._score_together(new)
        return {
            qid: dict(zip(docnos, collapse_ties(scores, self.noise).tolist(), strict=True))
            for qid, pool in pools.items()
            for docnos, scores in [found.get(qid, (pool.docnos, pool.scores))]
            if scores is not None
        }

    def _score_apart(self, changed: Mapping[str, Mapping[str, Doc]]) -> dict[str, DocnosAndScores]:
        """Return the lists with changed texts, which are scored one by one; the other scores stay."""
        texts = [(qid, docno, doc) for qid, docs in changed.items() for docno, doc in docs.items()]
        slates = [Slate(self.target_lists[qid].query, (doc,)) for qid, _, doc in texts]
        answers = (self.confirm_score or self.score)(slates) if slates else ()
        new: dict[str, dict[str, Scores | None]] = {}
        for (qid, docno, _), answer in zip(texts, answers, strict=True):
            new.setdefault(qid, {})[docno] = answer
        return {qid: self.target_lists[qid].merge_scores(some) for qid, some in new.items()}

    def _score_together(self, changed: Mapping[str, Mapping[str, Doc]]) -> dict[str, DocnosAndScores]:
        """Return the lists with changed texts, each scored as a whole."""
        pools = {qid: self.target_lists[qid] for qid, docs in changed.items() if docs}
        texts = {qid: {**dict(zip(pool.docnos, pool.docs, strict=True)), **changed[qid]} for qid, pool in pools.items()}
        slates = [Slate(pools[qid].query, tuple(docs.values())) for qid, docs in texts.items()]
        answers = (self.confirm_score or self.score)(slates) if slates else ()
        return {qid: (tuple(docs), scores) for (qid, docs), scores in zip(texts.items(), answers, strict=True)}

    def _rank_trials(self, trials: Sequence[tuple[AttackCase, Doc]], score: ScoreFunction) -> list[Ranks | None]:
        wanted = [(self.target_lists[listing.qid], case.docno, doc) for case, doc in trials for listing in case.lists]
        slates = [
            Slate(pool.query, (doc,) if self.pointwise else pool.replace_text(docno, doc))
            for pool, docno, doc in wanted
        ]
        answers = score(slates) if slates else ()
        lists = [
            (pool, docno, pool.replace_score(docno, scores[0]) if self.pointwise and scores is not None else scores)
            for (pool, docno, _), scores in zip(wanted, answers, strict=True)
        ]
        return self._group_ranks([case for case, _ in trials], lists)

    def _group_ranks(self, cases: Sequence[AttackCase], lists: Sequence[ScoredList]) -> list[Ranks | None]:
        """Return the ranks in the lists of each case."""
        standing = iter(self.rank_documents(lists))
        ranks = [tuple(islice(standing, len(case.lists))) for case in cases]
        return [None if 0 in some else some for some in ranks]

    def rank_documents(self, lists: Sequence[ScoredList]) -> list[int]:
        """Return the rank of a document in each list, or 0 without scores.

        The order is that of `rank_docnos`: float32 score, then docno, both descending. Lists of equal length are ranked
        in one batch.
        """
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
        """Return the number of query-document pairs scored in one trial."""
        if self.pointwise:
            return len(case.lists)
        return sum(
            len(listing.docnos) + (case.docno not in self.target_lists[listing.qid].index_by_docno)
            for listing in case.lists
        )
