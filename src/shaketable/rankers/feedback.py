"""Pseudo-relevance feedback: the first documents found lend the query their words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shaketable.errors import check
from shaketable.index.inverted import Bags
from shaketable.rankers.lexical import BM25, QL, QLJM, Floats, LexicalRanker
from shaketable.registry import RANKERS
from shaketable.types import Collection, Corpus

Expansion = tuple[NDArray[np.integer[Any]], Floats]
"""Terms and their weights."""
NOTHING: Expansion = (np.empty(0, np.int64), np.empty(0))
EXPANSIONS = 10_000  # queries whose expansion is remembered


@dataclass(frozen=True)
class RM3:
    """RM3: the query, mixed with the words that are frequent in its best documents.

        p(t|R) ∝ Σ_d p(t|d)·w(d) over the best `docs` documents, its `terms` largest, which then sum to 1
        weight of t = original·qtf/|q| + (1 − original)·p(t|R)

    w(d) is the score of a document, for query likelihood its exponential, which is what the query's likelihood is up
    to a factor. Scores below zero count as none; if all are, the documents count alike. Feedback comes from the index,
    never from the texts being ranked, so a score depends on query and text alone.

    Abdul-Jaleel et al. UMass at TREC 2004: novelty and HARD. 2004.
    """

    base: BM25 | QL | QLJM = field(default_factory=BM25)
    docs: int = 10
    terms: int = 10
    original: float = 0.5

    def __post_init__(self) -> None:
        check("rm3", isinstance(self.base, BM25 | QL | QLJM), "base", "bm25, ql or ql_jm", self.base)
        check("rm3", self.docs >= 1, "docs", "1 or more", self.docs)
        check("rm3", self.terms >= 1, "terms", "1 or more", self.terms)
        check("rm3", 0 <= self.original <= 1, "original", "between 0 and 1", self.original)

    def open(self, collection: Collection) -> LexicalRanker:
        """The base's ranker, asked with longer queries."""
        base = self.base.open(collection)
        return LexicalRanker(RANKERS.spec(self), base.scorer, Feedback(self, base, collection.docs).bags)


@dataclass(frozen=True, eq=False)
class Feedback:
    """Expands queries. Documents are read from the collection: few are needed, so the index keeps no copy of them."""

    model: RM3
    base: LexicalRanker
    docs: Corpus
    _known: dict[str, Expansion] = field(default_factory=dict)

    def bags(self, queries: Sequence[str]) -> Bags:
        """The expanded queries; those met before are remembered."""
        if len(self._known) > EXPANSIONS:
            self._known.clear()
        if fresh := [query for query in dict.fromkeys(queries) if query not in self._known]:
            self._known.update(zip(fresh, self._expand(fresh), strict=True))
        expanded = [self._known[query] for query in queries]
        owners = np.repeat(np.arange(len(queries)), [len(terms) for terms, _ in expanded])
        terms, weights = (np.concatenate(parts) for parts in zip(NOTHING, *expanded, strict=True))
        return Bags.of(len(queries), owners, terms, weights)

    def _expand(self, queries: Sequence[str]) -> Iterator[Expansion]:
        bags = self.base.bags(queries)
        answers = self.base.scorer.search(bags, self.model.docs)
        for start, end, (docs, scores) in zip(bags.starts, bags.starts[1:], answers, strict=False):
            counts, share = bags.counts[start:end], self.model.original
            terms, likelihoods = self._relevance_model(docs, scores) if len(docs) else NOTHING
            weights = np.concatenate([share * counts / counts.sum(), (1 - share) * likelihoods])
            used = weights > 0  # a term of no weight would still find documents
            yield np.concatenate([bags.terms[start:end], terms])[used], weights[used]

    def _relevance_model(self, docs: NDArray[np.int32], scores: Floats) -> Expansion:
        """The likeliest terms of the documents, and p(t|R)."""
        index = self.base.scorer.index
        texts = index.texts
        rows = texts.rows([self.docs[docno] for docno in index.docnos.take(docs)])
        spans = [texts.tokens[start:end] for start, end in zip(texts.starts[rows], texts.starts[rows + 1], strict=True)]
        shares = [np.full(len(s), w / len(s)) for s, w in zip(spans, self._worth(scores), strict=True)]
        terms, place = np.unique(np.concatenate(spans), return_inverse=True)
        likelihoods = np.bincount(place, np.concatenate(shares))
        likeliest = np.lexsort((terms, -likelihoods))[: self.model.terms]
        return terms[likeliest], likelihoods[likeliest] / likelihoods[likeliest].sum()

    def _worth(self, scores: Floats) -> Floats:
        if not isinstance(self.model.base, BM25):
            return np.asarray(np.exp(scores - scores.max()))
        worth: Floats = np.maximum(scores, 0)
        return worth if worth.any() else np.ones(len(scores))
