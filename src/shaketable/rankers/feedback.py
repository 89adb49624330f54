"""Pseudo-relevance feedback: query expansion with words of the top documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shaketable.core.documents import Collection, Corpus
from shaketable.core.errors import check_parameter
from shaketable.core.registries import RANKERS
from shaketable.rankers.lexical import BM25, QL, QLJM, Floats, LexicalRanker
from shaketable.retrieval.inverted_index import QueryBags

Expansion = tuple[NDArray[np.integer[Any]], Floats]
"""Terms and their weights."""
EMPTY_EXPANSION: Expansion = (np.empty(0, np.int64), np.empty(0))
MAX_CACHED_EXPANSIONS = 10_000  # queries


@dataclass(frozen=True)
class RM3:
    """RM3: the query, mixed with frequent words of its top documents.

        p(t|R) ∝ Σ_d p(t|d)·w(d) over the best `docs` documents, its `terms` largest, normalised to sum 1
        weight of t = original·qtf/|q| + (1 − original)·p(t|R)

    w(d) is the score of a document; for query likelihood it is the exponential of the score, which is the likelihood up
    to a factor. Negative scores count as 0; if all are negative, all documents have equal weight. Feedback comes from
    the index, never from the ranked texts, so a score depends only on query and text.

    Abdul-Jaleel et al. UMass at TREC 2004: novelty and HARD. 2004.

    base      the ranker that finds the feedback documents
    docs      the number of feedback documents
    terms     the number of words that feedback adds
    original  the weight of the original query, from 0 to 1
    """

    base: BM25 | QL | QLJM = field(default_factory=BM25)
    docs: int = 10
    terms: int = 10
    original: float = 0.5

    def __post_init__(self) -> None:
        check_parameter("rm3", isinstance(self.base, BM25 | QL | QLJM), "base", "bm25, ql or ql_jm", self.base)
        check_parameter("rm3", self.docs >= 1, "docs", "1 or more", self.docs)
        check_parameter("rm3", self.terms >= 1, "terms", "1 or more", self.terms)
        check_parameter("rm3", 0 <= self.original <= 1, "original", "between 0 and 1", self.original)

    def open(self, collection: Collection) -> LexicalRanker:
        """Return the base ranker with expanded queries."""
        base = self.base.open(collection)
        return LexicalRanker(RANKERS.spec(self), base.scorer, FeedbackExpansion(self, base, collection.docs).make_bags)


@dataclass(frozen=True, eq=False)
class FeedbackExpansion:
    """Query expansion. It reads the few documents it needs from the collection, so the index stores no copy of them."""

    model: RM3
    base: LexicalRanker
    docs: Corpus
    _cached_expansions: dict[str, Expansion] = field(default_factory=dict)

    def make_bags(self, queries: Sequence[str]) -> QueryBags:
        """Return the expanded queries, from the cache where possible."""
        if len(self._cached_expansions) > MAX_CACHED_EXPANSIONS:
            self._cached_expansions.clear()
        if fresh := [query for query in dict.fromkeys(queries) if query not in self._cached_expansions]:
            self._cached_expansions.update(zip(fresh, self._expand(fresh), strict=True))
        expanded = [self._cached_expansions[query] for query in queries]
        owners = np.repeat(np.arange(len(queries)), [len(terms) for terms, _ in expanded])
        terms, weights = (np.concatenate(parts) for parts in zip(EMPTY_EXPANSION, *expanded, strict=True))
        return QueryBags.from_triples(len(queries), owners, terms, weights)

    def _expand(self, queries: Sequence[str]) -> Iterator[Expansion]:
        bags = self.base.make_bags(queries)
        answers = self.base.scorer.search(bags, self.model.docs)
        for start, end, (docs, scores) in zip(bags.starts, bags.starts[1:], answers, strict=False):
            counts, share = bags.counts[start:end], self.model.original
            terms, likelihoods = self._build_relevance_model(docs, scores) if len(docs) else EMPTY_EXPANSION
            weights = np.concatenate([share * counts / counts.sum(), (1 - share) * likelihoods])
            used = weights > 0  # a term with weight 0 would still retrieve documents
            yield np.concatenate([bags.terms[start:end], terms])[used], weights[used]

    def _build_relevance_model(self, docs: NDArray[np.int32], scores: Floats) -> Expansion:
        """Return the most probable terms of the documents, and p(t|R)."""
        index = self.base.scorer.index
        rows, tokens, starts = index.text_cache.read([self.docs[docno] for docno in index.docnos.take(docs)])
        spans = [tokens[start:end] for start, end in zip(starts[rows], starts[rows + 1], strict=True)]
        shares = [np.full(len(s), w / len(s)) for s, w in zip(spans, self._weigh_documents(scores), strict=True)]
        terms, place = np.unique(np.concatenate(spans), return_inverse=True)
        likelihoods = np.bincount(place, np.concatenate(shares))
        likeliest = np.lexsort((terms, -likelihoods))[: self.model.terms]
        return terms[likeliest], likelihoods[likeliest] / likelihoods[likeliest].sum()

    def _weigh_documents(self, scores: Floats) -> Floats:
        if not isinstance(self.model.base, BM25):
            return np.asarray(np.exp(scores - scores.max()))
        worth: Floats = np.maximum(scores, 0)
        return worth if worth.any() else np.ones(len(scores))
