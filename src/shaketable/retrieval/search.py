"""Search and scoring by any formula that is a sum of query term weights."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from shaketable.core.documents import Doc, Scores
from shaketable.retrieval.inverted_index import InvertedIndex, QueryBags

MIN_QUERIES_PER_THREAD = 16  # fewer queries do not justify a thread


class CollectionStats(NamedTuple):
    """The collection statistics that a formula can use."""

    document_count: int
    token_count: int
    """The total number of terms in all documents, at least 1."""

    @property
    def average_length(self) -> float:
        """The mean number of terms of a document."""
        return self.token_count / self.document_count


class WeightCurve(NamedTuple):
    """The dependence of a term weight on the document, given two numbers of each query term: `weight` and `scale`.

    A term that occurs tf times in a document of length dl adds

        weight · tf' / (tf' + norm),  or with `log`  weight · ln(1 + tf' / norm),
        tf' = scale · tf,   norm = base + slope · dl

    The document adds -ln(1 + shrink · dl) for each word of the query.
    """

    log: bool
    base: float
    slope: float
    shrink: float = 0.0


class Weighting(Protocol):
    """A ranking formula."""

    def curve(self, stats: CollectionStats) -> WeightCurve: ...
    def weigh(
        self, counts: NDArray[np.float64], df: NDArray[np.int64], cf: NDArray[np.int64], stats: CollectionStats
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return weight and scale of terms that occur `counts` times in a query."""
        ...


class WeightedQueries(NamedTuple):
    """Queries for the kernels: their terms in the order in which weights are added."""

    starts: NDArray[np.int64]
    terms: NDArray[np.int64]
    weights: NDArray[np.float64]
    scales: NDArray[np.float64]
    sizes: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scorer:
    """A formula on an index: searches documents, and scores any text with the collection's statistics."""

    index: InvertedIndex
    weighting: Weighting

    def search(self, bags: QueryBags, k: int) -> list[tuple[NDArray[np.int32], NDArray[np.float64]]]:
        """Return the numbers and the scores of the best k documents of each query, best first.

        Only documents with a query term are returned. Ties go to the higher docno.
        """
        from shaketable.retrieval import kernels

        queries = self._weigh_queries(bags)
        size, k = len(queries.sizes), min(k, len(self.index.docnos))
        found = np.zeros(size, np.int64)
        docs, scores = np.empty((size, k), np.int32), np.empty((size, k))
        threads = max(1, min(kernels.NUMBA_THREADS, size // MIN_QUERIES_PER_THREAD))

        def search_share(thread: int) -> None:
            index = self.index
            kernels.search_best(
                index.postings,
                index.common_terms,
                self._max_tf_ratios,
                self.curve,
                queries,
                thread,
                threads,
                found,
                docs,
                scores,
            )

        if k and len(queries.terms):
            if threads == 1:
                search_share(0)
            else:
                with ThreadPoolExecutor(threads) as pool:
                    list(pool.map(search_share, range(threads)))
        return [(docs[q, :n], scores[q, :n]) for q, n in enumerate(found.tolist())]

    def score(self, bags: QueryBags, slates: Sequence[Sequence[Doc]]) -> list[Scores]:
        """Return the scores of each query's texts."""
        from shaketable.retrieval import kernels

        rows, tokens, starts = self.index.text_cache.read([doc for docs in slates for doc in docs])
        sizes = np.array([len(docs) for docs in slates], dtype=np.int64)
        owners = np.repeat(np.arange(len(slates)), sizes)
        scores = np.empty(len(rows))
        kernels.score_pairs(tokens, starts, self.curve, self._weigh_queries(bags), owners, rows, scores)
        return np.split(scores, np.cumsum(sizes)[:-1]) if slates else []

    @cached_property
    def stats(self) -> CollectionStats:
        return CollectionStats(max(1, len(self.index.docnos)), max(1, self.index.token_count))

    @cached_property
    def curve(self) -> WeightCurve:
        return self.weighting.curve(self.stats)

    @cached_property
    def _max_tf_ratios(self) -> NDArray[np.float64]:
        from shaketable.retrieval import kernels

        return kernels.find_max_tf_ratios(self.index.postings, self.curve)

    def _weigh_queries(self, bags: QueryBags) -> WeightedQueries:
        """Return the queries with negative terms first, then terms by weight in an average document."""
        terms, curve = bags.terms, self.curve
        weights, scales = self.weighting.weigh(bags.counts, self.index.df[terms], self.index.cf[terms], self.stats)
        norm = curve.base + curve.slope * self.stats.average_length
        typical = weights * (np.log1p(scales / norm) if curve.log else scales / (scales + norm))
        owners = np.repeat(np.arange(len(bags.starts) - 1), np.diff(bags.starts))
        order = np.lexsort((terms, -typical, weights >= 0, owners))
        sizes = np.bincount(owners, bags.counts, len(bags.starts) - 1).astype(np.float64)
        return WeightedQueries(bags.starts, terms[order], weights[order], scales[order], sizes)
