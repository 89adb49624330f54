"""The data that probes draw from: a collection, queries, a parser, the tokeniser of the index and a seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import log
from typing import Any

from shaketable.core.documents import Collection, Doc, Run, rank_docnos
from shaketable.core.seeding import make_item_rng
from shaketable.nlp.analyzer import Analyzer
from shaketable.nlp.parser import Parsed, Parser
from shaketable.retrieval.inverted_index import InvertedIndex, open_index

TOP_DOCUMENTS_PER_LIST = 10
"""Documents of each first-stage list that are manipulated if there are no judgements."""


@dataclass(frozen=True, slots=True)
class JudgedDoc:
    """A document that was judged for a query.

    Attributes
    ----------
    qid, query
        The id and the text of the query.
    docno, doc
        The id of the document, and the document.
    grade
        The grade of the judgement.
    """

    qid: str
    query: str
    docno: str
    doc: Doc
    grade: int


@dataclass(frozen=True, eq=False)
class ProbeContext:
    """The data that probes draw from.

    Attributes
    ----------
    collection, qids
        The collection, and the ids of the queries to use.
    parser, analyzer
        The parser of texts, and the tokeniser of the index.
    seed
        The seed of all draws.
    first_stage_lists
        A run that adds unjudged documents. Without judgements, manipulations use the top documents of these lists, and
        matched pairs use all their documents unless relevance is a characteristic.
    stopwords
        Stop-words that replace those of the tokeniser when probes count terms.
    max_documents
        Maximum number of judged documents to manipulate, drawn at random; 0 means all.
    shared_cache
        A cache shared by the probes.
    """

    collection: Collection
    qids: Sequence[str]
    parser: Parser
    analyzer: Analyzer
    seed: int = 0
    first_stage_lists: Run = field(default_factory=dict)
    stopwords: frozenset[str] | None = None
    max_documents: int = 0
    shared_cache: dict[Any, Any] = field(default_factory=dict, repr=False)
    _parse_cache: dict[str, Parsed] = field(default_factory=dict, repr=False)

    @cached_property
    def judged_documents(self) -> Mapping[str, tuple[JudgedDoc, ...]]:
        """The judged documents of each query id, sorted by docno; queries without any are omitted."""
        rows = {qid: tuple(self._iter_judged(qid)) for qid in self.qids}
        return {qid: found for qid, found in rows.items() if found}

    def _iter_judged(self, qid: str) -> Iterator[JudgedDoc]:
        text = self.collection.queries[qid].text
        for docno, grade in sorted(self.collection.qrels.get(qid, {}).items()):
            if docno in self.collection.docs:
                yield JudgedDoc(qid, text, docno, self.collection.docs[docno], grade)

    @cached_property
    def sampled_documents(self) -> Mapping[str, tuple[JudgedDoc, ...]]:
        """The judged documents to manipulate; the sample does not depend on their order."""
        known = self.judged_documents or self._top_documents
        every = [doc for docs in known.values() for doc in docs]
        if not 0 < self.max_documents < len(every):
            return known
        ranks = {doc: make_item_rng(self.seed, "judged documents", doc.qid, doc.docno).random_bits() for doc in every}
        last = sorted(ranks.values())[self.max_documents - 1]
        rows = {qid: tuple(doc for doc in docs if ranks[doc] <= last) for qid, docs in known.items()}
        return {qid: docs for qid, docs in rows.items() if docs}

    def get_documents(self, include_unjudged: bool = False) -> Mapping[str, Sequence[JudgedDoc]]:
        """Return the documents to compare by query id; unjudged documents of the first stage have grade 0."""
        if not include_unjudged:
            return self.judged_documents
        return {qid: [*self.judged_documents.get(qid, ()), *self._iter_unjudged(qid)] for qid in self.qids}

    @cached_property
    def _top_documents(self) -> Mapping[str, tuple[JudgedDoc, ...]]:
        """The top documents of each list, used if there are no judgements."""
        tops = {qid: {*rank_docnos(self.first_stage_lists.get(qid, {}))[:TOP_DOCUMENTS_PER_LIST]} for qid in self.qids}
        rows = {qid: tuple(doc for doc in self._iter_unjudged(qid) if doc.docno in top) for qid, top in tops.items()}
        return {qid: docs for qid, docs in rows.items() if docs}

    def _iter_unjudged(self, qid: str) -> Iterator[JudgedDoc]:
        known, text = self.collection.qrels.get(qid, {}), self.collection.queries[qid].text
        for docno in sorted(self.first_stage_lists.get(qid, {})):
            if docno not in known:
                yield JudgedDoc(qid, text, docno, self.collection.docs[docno], 0)

    def extract_words(self, text: str) -> list[str]:
        """Return the words of a text, not stemmed and with stop-words."""
        return self.analyzer.split_words(text)

    def extract_terms(self, text: str) -> list[str]:
        """Return the terms of a text as the index stores them."""
        if self.stopwords is None:
            return self.analyzer(text)
        return self._analyzer_without_stopwords(
            " ".join(word for word in self.extract_words(text) if word not in self.stopwords)
        )

    @cached_property
    def _analyzer_without_stopwords(self) -> Analyzer:
        return replace(self.analyzer, stopwords="none")

    def idf(self, term: str) -> float:
        """Return ln(N / df) of a term in the collection; an unknown term counts as df = 1."""
        return log(max(len(self._index.docnos), 1) / max(int(self._document_frequency(term)), 1))

    @cached_property
    def _index(self) -> InvertedIndex:
        return open_index(self.collection.docs, self.analyzer)

    def _document_frequency(self, term: str) -> int:
        place = int(self._index.terms.find_many([term])[0])
        return int(self._index.df[place]) if place >= 0 else 0

    def parse(self, text: str) -> Parsed:
        """Return the parse of a text; each distinct text is parsed once."""
        if text not in self._parse_cache:
            self.parse_many([text])
        return self._parse_cache[text]

    def parse_many(self, texts: Iterable[str]) -> None:
        """Parse many texts in one call, which is faster than one by one."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._parse_cache]
        self._parse_cache.update(zip(fresh, self.parser.parse(fresh), strict=True))
