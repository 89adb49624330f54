"""Lexical rankers: BM25 and query likelihood. Each is a formula; `retrieval` computes the scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shaketable.core.documents import Collection, Scores, Slate, fingerprint
from shaketable.core.errors import BadInput, check_parameter
from shaketable.core.languages import ENGLISH
from shaketable.core.registries import RANKERS
from shaketable.nlp.analyzer import Analyzer
from shaketable.retrieval.inverted_index import QueryBags, open_index
from shaketable.retrieval.search import CollectionStats, Scorer, WeightCurve

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Grid = Mapping[str, Sequence[float]]
"""Parameter -> candidate values (paper 000, section 3.3.2)."""
MAX_QUERIES_PER_BATCH = 1024  # bounds the memory for the results of one search
K3 = 8.0


def make_value_range(first: float, last: float, step: float) -> tuple[float, ...]:
    """Return the numbers from first to last, a step apart.

    >>> make_value_range(0.1, 0.5, 0.1)
    (0.1, 0.2, 0.3, 0.4, 0.5)
    """
    return tuple(round(first + i * step, 9) for i in range(int((last - first) / step + 1 + 1e-9)))


@dataclass(frozen=True, kw_only=True)
class Lexical(ABC):
    """The base of the formulas: the parameters of the `Analyzer`, and opening on a collection.

    `language` selects the analysis of a language, such as "de" or "zh"; stemmer, stopwords and split replace parts of
    it if they differ from their defaults. Paper 000, section 3.3.2, uses stemmer="krovetz" and split="space".

    stemmer    porter, snowball, krovetz, none, or the stemmer of a language
    stopwords  english or none
    split      words, space (at white space only), terrier or unicode
    language   the language of the texts, such as de or zh
    """

    stemmer: str = "porter"
    stopwords: str = "english"
    split: str = "words"
    language: str = ENGLISH

    def __post_init__(self) -> None:
        _ = self.analyzer  # validates the parameters

    @property
    def analyzer(self) -> Analyzer:
        if self.language == ENGLISH:
            return Analyzer(split=self.split, stopwords=self.stopwords, stemmer=self.stemmer)
        own, default = Analyzer.for_language(self.language), Analyzer()
        given = {name: getattr(self, name) for name in ("split", "stopwords", "stemmer")}
        return replace(own, **{name: value for name, value in given.items() if value != getattr(default, name)})

    def open(self, collection: Collection) -> LexicalRanker:
        """Return the ranker with the statistics of the collection's index, which is built if it does not exist."""
        scorer = Scorer(open_index(collection.docs, self.analyzer), self)
        return LexicalRanker(RANKERS.spec(self), scorer, scorer.index.make_bags)

    @abstractmethod
    def curve(self, stats: CollectionStats) -> WeightCurve:
        """Return the curve that maps term frequency and document length to a weight."""

    @abstractmethod
    def weigh(self, counts: Floats, df: Counts, cf: Counts, stats: CollectionStats) -> tuple[Floats, Floats]:
        """Return the weight and the scale of each query term."""


@dataclass(frozen=True)
class BM25(Lexical):
    """BM25: rare words count more, repeated words count less and less, and long texts are penalised.

        Σ idf · qtf · tf / (tf + k1·(1 − b + b·dl/avdl))

    idf="lucene" is ln(1 + (N − df + ½)/(df + ½)), as in Anserini. idf="robertson" is the formula of Terrier:
    log2((N − df + ½)/(df + ½)), negative for words in more than half of the documents; times (k1 + 1); a word that
    occurs qtf times in the query counts (k3 + 1)·qtf/(k3 + qtf) times, k3 = 8.

    Robertson et al. Okapi at TREC-3. 1994.

    k1   how slowly repeated words stop to count more
    b    the weight of the length of a text, from 0 to 1
    idf  the formula of the weight of a word: lucene or robertson
    """

    grid: ClassVar[Grid] = {"k1": make_value_range(0.1, 5.0, 0.1), "b": make_value_range(0.1, 1.0, 0.1)}

    k1: float = 1.2
    b: float = 0.75
    idf: str = "lucene"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_parameter("bm25", 0 <= self.k1 < inf, "k1", "a number, 0 or more", self.k1)
        check_parameter("bm25", 0 <= self.b <= 1, "b", "between 0 and 1", self.b)
        check_parameter("bm25", self.idf in ("lucene", "robertson"), "idf", "lucene or robertson", self.idf)

    def curve(self, stats: CollectionStats) -> WeightCurve:
        return WeightCurve(log=False, base=self.k1 * (1 - self.b), slope=self.k1 * self.b / stats.average_length)

    def weigh(self, counts: Floats, df: Counts, cf: Counts, stats: CollectionStats) -> tuple[Floats, Floats]:
        odds = (stats.document_count - df + 0.5) / (df + 0.5)
        if self.idf == "lucene":
            return counts * np.log1p(odds), np.ones(len(df))
        return np.log2(odds) * (self.k1 + 1) * (K3 + 1) * counts / (K3 + counts), np.ones(len(df))


@dataclass(frozen=True)
class QL(Lexical):
    """Query likelihood with Dirichlet smoothing: the probability of the query under the text's language model.

        Σ qtf · [ln(1 + tf/(μ·p(t))) + ln(μ/(dl + μ))],   p(t) = cf/|C|

    The sum runs over the query words that occur in the collection; for a word that the text lacks, only the second part
    remains. This is the log-likelihood without the part that is the same for all texts.

    Zhai, Lafferty. A study of smoothing methods for language models applied to information retrieval. TOIS 2004.

    mu  the weight of the collection's word frequencies, in words
    """

    grid: ClassVar[Grid] = {"mu": make_value_range(1, 2000, 10)}

    mu: float = 1000.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_parameter("ql", 0 < self.mu < inf, "mu", "a number above 0", self.mu)

    def curve(self, stats: CollectionStats) -> WeightCurve:
        return WeightCurve(log=True, base=1.0, slope=0.0, shrink=1 / self.mu)

    def weigh(self, counts: Floats, df: Counts, cf: Counts, stats: CollectionStats) -> tuple[Floats, Floats]:
        return counts, np.float64(stats.token_count / self.mu) / cf


@dataclass(frozen=True)
class QLJM(Lexical):
    """Query likelihood with Jelinek-Mercer smoothing: a text's word frequencies mixed with the collection's.

        Σ qtf · ln(1 + (1 − λ)·tf / (λ·dl·p(t))),   p(t) = cf/|C|

    Zhai, Lafferty. A study of smoothing methods for language models applied to information retrieval. TOIS 2004.

    lambda_  the share of the collection's word frequencies, between 0 and 1
    """

    grid: ClassVar[Grid] = {"lambda_": make_value_range(0.1, 0.9, 0.1)}

    lambda_: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_parameter("ql_jm", 0 < self.lambda_ < 1, "lambda_", "between 0 and 1, both excluded", self.lambda_)

    def curve(self, stats: CollectionStats) -> WeightCurve:
        return WeightCurve(log=True, base=0.0, slope=1.0)

    def weigh(self, counts: Floats, df: Counts, cf: Counts, stats: CollectionStats) -> tuple[Floats, Floats]:
        return counts, np.float64((1 - self.lambda_) / self.lambda_ * stats.token_count) / cf


@dataclass(frozen=True, eq=False)
class LexicalRanker:
    """A formula opened on a collection: it scores any text and searches the collection.

    `make_bags` builds the queries: their own terms, or the terms that feedback adds.
    """

    name: str
    scorer: Scorer
    make_bags: Callable[[Sequence[str]], QueryBags]
    pointwise: ClassVar[bool] = True
    cached: ClassVar[bool] = False
    uses_all_cores: ClassVar[bool] = True  # the kernels release the GIL, and a search runs its queries in threads
    family: ClassVar[str] = "traditional"

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.name, self.scorer.index.fingerprint)

    @property
    def notice(self) -> str:
        """The report on a damaged index."""
        return self.scorer.index.remark

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        """Return the scores of each slate: all zero if the collection has no word of the query."""
        return self.scorer.score(self.make_bags([slate.query for slate in slates]), [slate.docs for slate in slates])

    def search(self, queries: Sequence[str], k: int) -> list[dict[str, float]]:
        """Return the top k documents of each query among those that contain a word of the query."""
        if k < 1:
            raise BadInput(f"k must be at least 1, not {k}")
        runs: list[dict[str, float]] = []
        for start in range(0, len(queries), MAX_QUERIES_PER_BATCH):
            answers = self.scorer.search(self.make_bags(queries[start : start + MAX_QUERIES_PER_BATCH]), k)
            docnos = iter(self.scorer.index.docnos.take(np.concatenate([docs for docs, _ in answers])))
            runs += ({docno: s for s, docno in zip(scores.tolist(), docnos, strict=False)} for _, scores in answers)
        return runs
