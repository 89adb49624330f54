"""The slices of an experiment's queries: by length, by query type, and by the rarity of words."""

from __future__ import annotations

from collections.abc import Mapping

from shaketable.core.documents import Collection, Query
from shaketable.measures.slices import Slices, group_by_label, group_by_length, group_by_quarter
from shaketable.nlp.analyzer import Analyzer
from shaketable.retrieval.inverted_index import open_index

RARITY_QUARTERS = ("very rare", "rare", "common", "very common")


def slice_queries(collection: Collection, queries: Mapping[str, Query]) -> Slices:
    """Divide queries by length, query type, and the document frequency of their rarest word."""
    texts = {qid: query.text for qid, query in queries.items()}
    slices = {
        "length": group_by_length(texts),
        "query type": group_by_label({qid: query.type for qid, query in queries.items()}),
        "rarest word": group_by_quarter(_measure_rarest_words(collection, texts), RARITY_QUARTERS),
    }
    return {name: parts for name, parts in slices.items() if len(parts) > 1}


def _measure_rarest_words(collection: Collection, texts: Mapping[str, str]) -> dict[str, float]:
    """Return the document frequency of the rarest word of each query."""
    index = open_index(collection.docs, Analyzer())
    bags = index.make_bags(list(texts.values()))
    ends = zip(texts, bags.starts[:-1], bags.starts[1:], strict=True)
    most = len(collection.docs)
    return {qid: float(index.df[bags.terms[start:end]].min(initial=most)) for qid, start, end in ends}
