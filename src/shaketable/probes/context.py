"""The data that probes draw from: a collection, queries, a parser, the tokeniser of the index and a seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import log
from typing import Any

from shaketable.core.documents import MAX_CHANGED_CHARS, Collection, Doc, Run, rank_docnos
from shaketable.core.seeding import make_item_rng
from shaketable.nlp.analyzer import Analyzer
from shaketable.nlp.parser import Parsed, Parser
from shaketable.retrieval.inverted_index import InvertedIndex, open_index
from shaketable.transforms.stopwords import load_stopwords

TOP_DOCUMENTS_PER_LIST = 10
"""Documents of each first-stage list that are manipulated if there are no judgements."""


@dataclass(frozen=True, slots=True)
class JudgedDoc:
    """A document that was judged for a query.

    Parameters
    ----------
    qid
        The id of the query.
    query
        The text of the query.
    docno
        The id of the document.
    doc
        The document.
    grade
        The relevance grade; 0 also for an unjudged document of the first stage.
    """

    qid: str
    query: str
    docno: str
    doc: Doc
    grade: int


@dataclass(frozen=True, eq=False)
class ProbeContext:
    """The data that probes draw from.

    Without judgements, manipulations use the top documents of the first-stage lists, and matched pairs use all their
    documents unless relevance is a characteristic. Queries and documents of more than `MAX_CHANGED_CHARS` characters
    are left out.

    Parameters
    ----------
    collection
        The documents, queries and judgements.
    qids
        The ids of the queries to draw pairs for.
    parser
        The parser, which finds the sentences, words, parts of speech and noun chunks of texts.
    analyzer
        The analyzer that turns a text into the terms of the index.
    seed
        The random seed.
    first_stage_lists
        The run of the first stage, which adds unjudged documents; empty if there is none.
    stopwords
        The stop-words that replace those of the analyzer when probes count terms; None keeps those of the analyzer.
    query_stopwords
        True if stop-words of queries count as terms; documents never have them.
    max_documents
        The maximum number of judged documents to manipulate, drawn at random; 0 means all.
    max_documents_per_query
        The maximum number of them for each query; 0 means all.
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
    query_stopwords: bool = False
    max_documents: int = 0
    max_documents_per_query: int = 0
    shared_cache: dict[Any, Any] = field(default_factory=dict, repr=False)
    long_documents: set[str] = field(default_factory=set, init=False, repr=False)
    """The ids of documents that were left out because they are too long."""
    _parse_cache: dict[str, Parsed] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def judged_documents(self) -> Mapping[str, tuple[JudgedDoc, ...]]:
        """The judged documents of each query id, sorted by docno; queries without any are omitted."""
        rows = {qid: tuple(self._iter_judged(qid)) for qid in self.qids}
        return {qid: found for qid, found in rows.items() if found}

    def _iter_judged(self, qid: str) -> Iterator[JudgedDoc]:
        grades = self.collection.qrels.get(qid, {})
        return self._iter_short(qid, {docno: grade for docno, grade in grades.items() if docno in self.collection.docs})

    def _iter_short(self, qid: str, grades: Mapping[str, int]) -> Iterator[JudgedDoc]:
        """Yield the documents of a query, sorted by docno, without texts that are too long to change."""
        query = self.collection.queries[qid].text
        for docno in sorted(grades) if len(query) <= MAX_CHANGED_CHARS else ():
            doc = self.collection.docs[docno]
            if len(doc.text) <= MAX_CHANGED_CHARS:
                yield JudgedDoc(qid, query, docno, doc, grades[docno])
            else:
                self.long_documents.add(docno)

    @cached_property
    def sampled_documents(self) -> Mapping[str, tuple[JudgedDoc, ...]]:
        """The judged documents to manipulate; the sample does not depend on their order."""
        known = self.judged_documents or self._top_documents
        every = [doc for docs in known.values() for doc in docs]
        if not 0 < self.max_documents < len(every) and not self.max_documents_per_query:
            return known
        ranks = {doc: make_item_rng(self.seed, "judged documents", doc.qid, doc.docno).random_bits() for doc in every}
        if per_query := self.max_documents_per_query:
            known = {qid: tuple(sorted(docs, key=ranks.__getitem__)[:per_query]) for qid, docs in known.items()}
            every = [doc for docs in known.values() for doc in docs]
        last = sorted(map(ranks.__getitem__, every))[: self.max_documents or None][-1]
        rows = {
            qid: tuple(sorted((doc for doc in docs if ranks[doc] <= last), key=lambda doc: doc.docno))
            for qid, docs in known.items()
        }
        return {qid: docs for qid, docs in rows.items() if docs}

    @property
    def long_queries(self) -> list[str]:
        """The ids of queries that are left out because they are too long."""
        return [qid for qid in self.qids if len(self.collection.queries[qid].text) > MAX_CHANGED_CHARS]

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
        known = self.collection.qrels.get(qid, {})
        return self._iter_short(qid, {docno: 0 for docno in self.first_stage_lists.get(qid, {}) if docno not in known})

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

    def extract_query_terms(self, query: str) -> list[str]:
        """Return the terms of a query."""
        return (self._analyzer_without_stopwords if self.query_stopwords else self.extract_terms)(query)

    def count_as_terrier(self, stopwords: str) -> ProbeContext:
        """Return the context with the terms of Terrier's index, given a file of its stop-words; each file once."""
        words, analyzer = load_stopwords(stopwords), Analyzer(split="terrier")
        counting = replace(self, analyzer=analyzer, stopwords=words, query_stopwords=True, shared_cache={})
        found: ProbeContext = self.shared_cache.setdefault(("terrier", stopwords), counting)
        return found

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
