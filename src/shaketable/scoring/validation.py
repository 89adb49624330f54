"""Calls of rankers and retrievers, the checks of their scores, and ties of scores within a ranker's noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from shaketable.core.documents import Doc, Scores, Slate, rank_docnos
from shaketable.core.errors import IncompleteAnswer, RankerFailed, explain_user_errors
from shaketable.core.protocols import Ranker, Retriever

MAX_ABS_SCORE = float(np.finfo(np.float32).max)
"""A larger score is infinite to `core.documents.rank_docnos`, which sorts by float32."""


def call_ranker(ranker: Ranker, name: str, slates: list[Slate]) -> list[Scores]:
    """Call the ranker and return its checked scores; an error names the ranker, the query and the text."""
    where = f" (first query {slates[0].query!r})" if slates else ""
    answers = _call_user_code(name, f"failed on {len(slates)} slates{where}", lambda: list(ranker.score(slates)))
    if len(answers) != len(slates):
        raise RankerFailed(f"ranker {name} returned {len(answers)} arrays for {len(slates)} slates")
    return [validate_scores(name, slate, answer) for slate, answer in zip(slates, answers, strict=True)]


def call_retriever(ranker: Retriever, name: str, queries: list[str], k: int) -> list[FoundList]:
    """Call the retriever and return its checked lists."""
    where = f" (first query {queries[0]!r})" if queries else ""
    what = f"failed to search for {len(queries)} queries{where}"
    answers = _call_user_code(name, what, lambda: list(ranker.search(queries, k)))
    if len(answers) != len(queries):
        raise RankerFailed(f"ranker {name} returned {len(answers)} lists for {len(queries)} queries")
    return [_validate_list(name, query, answer, k) for query, answer in zip(queries, answers, strict=True)]


def _call_user_code(name: str, what: str, call: Callable[[], list[Any]]) -> list[Any]:
    with explain_user_errors(f"ranker {name} {what}", RankerFailed):
        return call()


def _validate_list(name: str, query: str, answer: Any, k: int) -> FoundList:
    if not isinstance(answer, Mapping) or not all(isinstance(docno, str) for docno in answer):
        raise RankerFailed(
            f"ranker {name}, query {query!r}: a retriever must return a mapping from docno to score for each query"
        )
    scores = validate_scores(name, Slate(query, (Doc(""),) * len(answer)), list(answer.values()))
    return FoundList(k, tuple(answer), scores)


def validate_scores(name: str, slate: Slate, answer: Any) -> Scores:
    """Return the scores of one slate as float64, or raise an error that explains the problem."""
    with explain_user_errors(f"ranker {name}, query {slate.query!r}: scores are not numbers", RankerFailed):
        if getattr(answer, "requires_grad", False):  # numpy does not read a torch tensor with a gradient
            answer = answer.detach()
        array = np.asarray(answer)
        if np.iscomplexobj(array):
            raise ValueError("they are complex")
        scores = array.astype(np.float64)
    if scores.shape != (len(slate.docs),):
        fewer = scores.ndim == 1 and len(scores) < len(slate.docs)
        raise (IncompleteAnswer if fewer else RankerFailed)(
            f"ranker {name}, query {slate.query!r}: scores of shape {scores.shape} for {len(slate.docs)} documents"
        )
    if not (usable := np.abs(scores) <= MAX_ABS_SCORE).all():
        at = int(np.flatnonzero(~usable)[0])
        raise RankerFailed(
            f"ranker {name}, query {slate.query!r}: score {scores[at]} for the text {slate.docs[at].text[:60]!r}"
        )
    return scores


def collapse_ties(scores: Scores | None, noise: float) -> Any:
    """Return scores in which neighbours within the noise tie; the array is one list, or many lists of one length.

    >>> collapse_ties(np.array([1.0, 2.0, 1.0000001, 0.5]), 1e-6).tolist()
    [1.0000001, 2.0, 1.0000001, 0.5]

    Neighbours in the order of scores tie if they differ by at most `noise` times the score, or times 1 if the score is
    smaller. They get the highest of their scores, so that docnos decide their order, as for all ties.
    """
    if scores is None or scores.shape[-1] < 2:
        return scores
    lists = scores.reshape(-1, scores.shape[-1])
    tied = ~_mask_differences(-np.sort(-lists, axis=-1), noise).all(axis=-1)
    if not tied.any():  # most lists have no ties, and a sort is a fraction of the work below
        return scores
    same = lists.copy()
    same[tied] = _collapse_ties_within(lists[tied], noise)
    return same.reshape(scores.shape)


def _mask_differences(ranked: Scores, noise: float) -> Any:
    """Return where a score of a descending list differs from the next by more than the noise."""
    return ranked[:, :-1] - ranked[:, 1:] > noise * np.maximum(1.0, np.abs(ranked[:, :-1]))


def _collapse_ties_within(lists: Scores, noise: float) -> Scores:
    order = np.argsort(-lists, axis=-1, kind="stable")
    ranked = np.take_along_axis(lists, order, axis=-1)
    first = np.zeros(lists.shape, dtype=np.intp)  # the index in the order at which each score's group begins
    apart = _mask_differences(ranked, noise)
    first[:, 1:] = np.maximum.accumulate(np.where(apart, np.arange(1, lists.shape[-1]), 0), axis=-1)
    same = np.empty_like(lists)
    np.put_along_axis(same, order, np.take_along_axis(ranked, first, axis=-1), axis=-1)
    return same


@dataclass(frozen=True)
class FoundList:
    """A list that a search for `k` documents found, best first."""

    k: int
    docnos: tuple[str, ...]
    scores: Scores

    def head(self, k: int, noise: float = 0.0) -> dict[str, float]:
        """Return the first k documents, docno -> score, best first, with ties within the noise."""
        if not noise:
            return dict(islice(zip(self.docnos, self.scores.tolist(), strict=True), k))
        scores = dict(zip(self.docnos[:k], collapse_ties(self.scores[:k], noise).tolist(), strict=True))
        return {docno: scores[docno] for docno in rank_docnos(scores)}
