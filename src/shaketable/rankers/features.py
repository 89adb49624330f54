"""Features of a query and a text, the input of learned rankers.

A feature is a function of the matches between queries and texts in one field; a field is a part of a document. Each
feature on each field is a column, called "bm25(title)". To add a feature or a field, add a row to its table: FEATURES
ignore word order; PHRASE_FEATURES use phrases and a language model of the collection. Statistics (document frequencies,
lengths) come from an index of each field, so features can be computed for any text.

Seven features on four fields are the 28 of Wu et al. (Are neural ranking models robust? TOIS 2022), with the parameters
of LETOR (Qin et al. LETOR: a benchmark collection for research on learning to rank. Information Retrieval 2010).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import RLock

import numpy as np
from numpy.typing import NDArray

from shaketable.core.documents import Corpus, Doc, Slate, fingerprint
from shaketable.core.errors import UnknownName
from shaketable.nlp.analyzer import Analyzer
from shaketable.rankers.feature_texts import TermReader
from shaketable.rankers.lexical import BM25, QL, QLJM
from shaketable.rankers.phrases import PhraseReader, Phrases
from shaketable.retrieval.inverted_index import InvertedIndex, QueryBags, open_index
from shaketable.retrieval.ngram_models import open_ngrams
from shaketable.retrieval.search import CollectionStats, Weighting

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MAX_PAIRS_PER_BLOCK = 16_384  # bounds the memory for matching
MAX_CACHED_ROWS = 100_000  # feature rows of a corpus; about 25 MB plus their texts
MAX_OPEN_EXTRACTORS = 8  # extractors whose rows are cached at a time


@dataclass(frozen=True, eq=False)
class TermMatches:
    """The query terms that occur in one field of the texts: each match belongs to a pair in `pairs` and has a `tf`."""

    stats: CollectionStats
    lengths: Floats
    """The length of the field in terms, for each pair of a query and a text."""
    known_query_terms: Floats
    """The number of query words that the field has anywhere in the collection, for each pair."""
    pairs: Ints
    tf: Floats
    qtf: Floats
    df: Ints
    cf: Ints

    @property
    def idf(self) -> Floats:
        """ln(N / df) of each term."""
        return np.log(self.stats.document_count / self.df)

    def sum_per_pair(self, values: Floats) -> Floats:
        """Return the sum of the values of the matches of each pair."""
        return _sum_by_index(self.pairs, values, len(self.lengths))

    def score(self, formula: Weighting, qtf: Floats | None = None) -> Floats:
        """Return the scores of a ranking formula: see `retrieval.search.WeightCurve`."""
        curve = formula.curve(self.stats)
        weights, scales = formula.weigh(self.qtf if qtf is None else qtf, self.df, self.cf, self.stats)
        norms = curve.base + curve.slope * self.lengths[self.pairs]
        seen = scales * self.tf
        gains = weights * (np.log1p(seen / norms) if curve.log else seen / (seen + norms))
        return self.sum_per_pair(gains) - self.known_query_terms * np.log1p(curve.shrink * self.lengths)


def tf(found: TermMatches) -> Floats:
    """Return how often the query words occur."""
    return found.sum_per_pair(found.tf)


def idf(found: TermMatches) -> Floats:
    """Return the rarity of the query words that occur: Σ ln(N / df). Over all words it would be equal for all texts."""
    return found.sum_per_pair(found.idf)


def tf_idf(found: TermMatches) -> Floats:
    """Return Σ tf · ln(N / df)."""
    return found.sum_per_pair(found.tf * found.idf)


def dl(found: TermMatches) -> Floats:
    """Return the length in terms."""
    return found.lengths


def bm25(found: TermMatches) -> Floats:
    """Return BM25 with k1 = 2.5, b = 0.8, k3 = 0: repetitions of a word in the query do not count."""
    return found.score(BM25(k1=2.5, b=0.8, idf="robertson"), np.ones(len(found.tf)))


def ql_dir(found: TermMatches) -> Floats:
    """Return query likelihood with Dirichlet smoothing, μ = 2000."""
    return found.score(QL(mu=2000.0))


def ql_jm(found: TermMatches) -> Floats:
    """Return query likelihood with Jelinek-Mercer smoothing, λ = 0.1."""
    return found.score(QLJM(lambda_=0.1))


def coverage(found: Phrases) -> Floats:
    """Return the share of the query's words without stop words that are in a phrase of the text."""
    return found.covered / np.maximum(1, found.content_words)


def longest_phrase(found: Phrases) -> Floats:
    """Return the length of the longest phrase in the text, as a share of the query."""
    return found.longest / np.maximum(1, found.query_length)


def neighbours(found: Phrases) -> Floats:
    """Return the share of the query's adjacent words that are adjacent in the text, in the same order."""
    return found.neighbours / np.maximum(1, found.query_length - 1)


def phrase_log(found: Phrases) -> Floats:
    """Return the mean of log10 p of the phrases in the text."""
    return found.logs / np.maximum(1, found.phrases)


def phrase_mass(found: Phrases) -> Floats:
    """Return Σ log10 p · words over the phrases in the text; rarer, longer and more phrases lower it."""
    return found.mass


def missing_log(found: Phrases) -> Floats:
    """Return Σ log10 p of the query words that the text lacks."""
    return found.missing


def fluency(found: Phrases) -> Floats:
    """Return log10 p of the text per word under the collection's n-gram model; 0 for an empty text."""
    return found.fluency


FEATURES: dict[str, Callable[[TermMatches], Floats]] = {
    f.__name__: f for f in (tf, idf, tf_idf, dl, bm25, ql_dir, ql_jm)
}
PHRASE_FEATURES: dict[str, Callable[[Phrases], Floats]] = {
    f.__name__: f for f in (coverage, longest_phrase, neighbours, phrase_log, phrase_mass, missing_log, fluency)
}
FIELDS: dict[str, Callable[[Doc], Doc]] = {
    "title": lambda doc: Doc(doc.title),
    "url": lambda doc: Doc(doc.url),
    "body": lambda doc: Doc(doc.body),
    "document": lambda doc: doc,
}
DEFAULT_COLUMNS = tuple(f"{feature}({field})" for feature in FEATURES for field in FIELDS)
"""The default columns."""
PHRASE_COLUMNS = tuple(f"{feature}({field})" for feature in PHRASE_FEATURES for field in ("title", "body", "document"))
"""Columns that depend on word order, for L-GBM."""


def parse_field(name: str) -> str:
    """Return the field of a column.

    >>> parse_field("bm25(title)")
    'title'
    """
    return name.removesuffix(")").partition("(")[2]


@dataclass(frozen=True, eq=False)
class FieldCorpus:
    """A corpus of one field of each document."""

    corpus: Corpus
    field: str

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.corpus.fingerprint, self.field)

    def __getitem__(self, docno: str) -> Doc:
        return FIELDS[self.field](self.corpus[docno])

    def __contains__(self, docno: object) -> bool:
        return docno in self.corpus

    def __iter__(self) -> Iterator[str]:
        return iter(self.corpus)

    def __len__(self) -> int:
        return len(self.corpus)

    def items(self) -> Iterator[tuple[str, Doc]]:
        part = FIELDS[self.field]
        return ((docno, part(doc)) for docno, doc in self.corpus.items())


@dataclass(frozen=True, eq=False)
class FeatureExtractor:
    """A feature extractor for any texts, with the statistics of one corpus."""

    feature_names: tuple[str, ...]
    field_indexes: dict[str, InvertedIndex]
    reader: TermReader
    phrase_reader: PhraseReader | None = None
    _cached_rows: dict[tuple[str, Doc], Floats] = field(default_factory=dict, repr=False)
    _lock: RLock = field(default_factory=RLock, repr=False)
    """Threads take turns, because the term numbers of a reader are valid until it is reset."""

    @classmethod
    def open(
        cls, corpus: Corpus, analyzer: Analyzer, feature_names: Sequence[str] = DEFAULT_COLUMNS
    ) -> FeatureExtractor:
        """Return the extractor of these columns; fields without an index are indexed.

        Learners and rankers that use the same columns of a corpus share one extractor and its cached rows.
        """
        key = fingerprint(corpus.fingerprint, repr(analyzer), tuple(feature_names))
        extractor = _open_extractors.pop(key, None) or cls._build(corpus, analyzer, feature_names)
        _open_extractors[key] = extractor  # the last entry is the most recently used
        while len(_open_extractors) > MAX_OPEN_EXTRACTORS:
            del _open_extractors[next(iter(_open_extractors))]
        return extractor

    @classmethod
    def _build(cls, corpus: Corpus, analyzer: Analyzer, feature_names: Sequence[str]) -> FeatureExtractor:
        every = [f"{feature}({field})" for feature in (*FEATURES, *PHRASE_FEATURES) for field in FIELDS]
        for name in feature_names:
            if name not in every:
                raise UnknownName("feature", name, every)
        asked = [field for field in FIELDS if any(f"{feature}({field})" in feature_names for feature in FEATURES)]
        # The field "document" is the corpus itself, so it shares its index with the lexical rankers.
        parts = {field: corpus if field == "document" else FieldCorpus(corpus, field) for field in asked}
        indexes = {field: open_index(part, analyzer) for field, part in parts.items()}
        ordered = any(name.partition("(")[0] in PHRASE_FEATURES for name in feature_names)
        phrases = PhraseReader.from_model(open_ngrams(corpus)) if ordered else None
        return cls(tuple(feature_names), indexes, TermReader(analyzer), phrases)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of everything the features depend on."""
        indexes = sorted((field, index.fingerprint) for field, index in self.field_indexes.items())
        return fingerprint(
            self.feature_names, indexes, *([self.phrase_reader.model.fingerprint] if self.phrase_reader else [])
        )

    @property
    def remarks(self) -> list[str]:
        """The reports on damaged indexes and on a damaged language model."""
        model = [self.phrase_reader.model.remark] if self.phrase_reader else []
        return [*(index.remark for index in self.field_indexes.values()), *model]

    def extract_cached(self, slates: Sequence[Slate]) -> Floats:
        """Return the features of every document of every slate, from the cache where possible."""
        with self._lock:
            return self._extract_cached(slates)

    def _extract_cached(self, slates: Sequence[Slate]) -> Floats:
        rows, keys = self._cached_rows, [(slate.query, doc) for slate in slates for doc in slate.docs]
        if len(rows) > MAX_CACHED_ROWS:
            rows.clear()
        fresh: dict[str, list[Doc]] = {}
        for query, doc in dict.fromkeys(keys):
            if (query, doc) not in rows:
                fresh.setdefault(query, []).append(doc)
        unseen = [Slate(query, tuple(docs)) for query, docs in fresh.items()]
        found = iter(self.extract(unseen))
        rows.update(((slate.query, doc), next(found)) for slate in unseen for doc in slate.docs)
        return np.array([rows[key] for key in keys]).reshape(len(keys), len(self.feature_names))

    def extract(self, slates: Sequence[Slate]) -> Floats:
        """Return the features of every document of every slate, one row each, in input order."""
        pairs = [(query, doc) for query, slate in enumerate(slates) for doc in slate.docs]
        with self._lock:
            blocks = [
                self._extract_block(slates, pairs[at : at + MAX_PAIRS_PER_BLOCK])
                for at in range(0, len(pairs), MAX_PAIRS_PER_BLOCK)
            ]
        return np.concatenate(blocks) if blocks else np.empty((0, len(self.feature_names)))

    def _extract_block(self, slates: Sequence[Slate], pairs: Sequence[tuple[int, Doc]]) -> Floats:
        numbers, owners = np.unique([query for query, _ in pairs], return_inverse=True)
        queries = [slates[number].query for number in numbers]
        bags = self.reader.make_bags(queries)
        docs: dict[Doc, int] = {}
        texts = np.array([docs.setdefault(doc, len(docs)) for _, doc in pairs])
        rows = np.empty((len(pairs), len(self.feature_names)))
        columns = [name.removesuffix(")").partition("(")[::2] for name in self.feature_names]
        for name, part in FIELDS.items():
            named = {feature: column for column, (feature, where) in enumerate(columns) if where == name}
            if name in self.field_indexes:
                found = self._match(self.field_indexes[name], bags, owners, list(map(part, docs)), texts)
                for feature in named.keys() & FEATURES.keys():
                    rows[:, named[feature]] = FEATURES[feature](found)
            if self.phrase_reader and named.keys() & PHRASE_FEATURES.keys():
                phrases = self.phrase_reader.find_phrases(queries, owners, list(map(part, docs)), texts)
                for feature in named.keys() & PHRASE_FEATURES.keys():
                    rows[:, named[feature]] = PHRASE_FEATURES[feature](phrases)
        return rows

    def _match(
        self, index: InvertedIndex, bags: QueryBags, owners: Ints, docs: Sequence[Doc], texts: Ints
    ) -> TermMatches:
        """Return the matches of the terms of query owners[p] in docs[texts[p]], for every pair p."""
        from shaketable.rankers.match_kernels import count_matches

        queries = len(bags.starts) - 1
        asked = np.repeat(np.arange(queries), np.diff(bags.starts))
        distinct, which = np.unique(bags.terms, return_inverse=True)
        numbers = index.terms.find_many([self.reader.terms[term] for term in distinct])[which]
        known = numbers >= 0  # a term that the field never contains carries no information
        terms, counts, numbers = bags.terms[known], bags.counts[known], numbers[known]
        first = np.searchsorted(asked[known], np.arange(queries + 1))
        rows, tokens, starts = self.reader.texts.read(docs)
        held = rows[texts]
        most = int(np.diff(first)[owners].sum())
        pairs, places, tf = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
        found = count_matches(tokens, starts, first, terms, owners, held, pairs, places, tf)
        places = places[:found]
        return TermMatches(
            stats=CollectionStats(max(1, len(index.docnos)), max(1, index.token_count)),
            lengths=(starts[held + 1] - starts[held]).astype(np.float64),
            known_query_terms=_sum_by_index(asked[known], counts, queries)[owners],
            pairs=pairs[:found],
            tf=tf[:found],
            qtf=counts[places],
            df=index.df[numbers[places]],
            cf=index.cf[numbers[places]],
        )


_open_extractors: dict[str, FeatureExtractor] = {}


def _sum_by_index(indexes: Ints, values: Floats, size: int) -> Floats:
    return np.asarray(np.bincount(indexes, values, size), dtype=np.float64)
