"""Search and scoring by any formula that adds up a weight for each query term."""

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

MIN_QUERIES_PER_THREAD = 16  # queries that are worth a thread


class CollectionStats(NamedTuple):
    """What a formula may know of a collection."""

    document_count: int
    token_count: int
    """Terms of all documents together, at least 1."""

    @property
    def average_length(self) -> float:
        """Terms of a document."""
        return self.token_count / self.document_count


class WeightCurve(NamedTuple):
    """How a weight depends on a document, up to two numbers of each query term: `weight` and `scale`.

    A term that occurs tf times in a document of length dl adds

        weight · tf' / (tf' + norm),  or with `log`  weight · ln(1 + tf' / norm),
        tf' = scale · tf,   norm = base + slope · dl

    and the document, for each word of the query, -ln(1 + shrink · dl).
    """

    log: bool
    base: float
    slope: float
    shrink: float = 0.0


class Weighting(Protocol):
    """A formula of ranking."""

    def curve(self, stats: CollectionStats) -> WeightCurve: ...
    def weigh(
        self, counts: NDArray[np.float64], df: NDArray[np.int64], cf: NDArray[np.int64], stats: CollectionStats
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Weight and scale of terms that a query has `counts` times."""
        ...


class WeightedQueries(NamedTuple):
    """Queries, ready for the kernels: their terms in the order in which weights are added."""

    starts: NDArray[np.int64]
    terms: NDArray[np.int64]
    weights: NDArray[np.float64]
    scales: NDArray[np.float64]
    sizes: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scorer:
    """A formula on an index: finds documents, and scores any text with the collection's statistics."""

    index: InvertedIndex
    weighting: Weighting

    def search(self, bags: QueryBags, k: int) -> list[tuple[NDArray[np.int32], NDArray[np.float64]]]:
        """For each query the numbers and the scores of its best k documents, best first.

        Only documents that have a term of the query are found. Ties go to the higher docno.
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
        """For each query the scores of its texts."""
        from shaketable.retrieval import kernels

        texts = self.index.text_cache
        rows = texts.add_rows([doc for docs in slates for doc in docs])
        sizes = np.array([len(docs) for docs in slates], dtype=np.int64)
        owners = np.repeat(np.arange(len(slates)), sizes)
        scores = np.empty(len(rows))
        kernels.score_pairs(texts.tokens, texts.starts, self.curve, self._weigh_queries(bags), owners, rows, scores)
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
        """Put terms that take away first, then those that add most to an average document: see `search_best`."""
        terms, curve = bags.terms, self.curve
        weights, scales = self.weighting.weigh(bags.counts, self.index.df[terms], self.index.cf[terms], self.stats)
        norm = curve.base + curve.slope * self.stats.average_length
        typical = weights * (np.log1p(scales / norm) if curve.log else scales / (scales + norm))
        owners = np.repeat(np.arange(len(bags.starts) - 1), np.diff(bags.starts))
        order = np.lexsort((terms, -typical, weights >= 0, owners))
        sizes = np.bincount(owners, bags.counts, len(bags.starts) - 1).astype(np.float64)
        return WeightedQueries(bags.starts, terms[order], weights[order], scales[order], sizes)
