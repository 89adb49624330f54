"""Pairs per second of BM25 and query likelihood on one core, against plain Python and a goal of 100,000.

    python benchmarks/pairs.py [--quick]

"New texts" are scored for the first time, so that tokenization is most of the work. "Known texts" are the same texts
with other queries, as in an audit. Texts have 60 words and queries 3 to 5; a slate has 50 texts and a call 10 slates.
The time is processor time, so that other programs do not change it. Compilation, from an empty cache, is timed
separately. Other texts are scored beforehand, so that most words are known.
"""

from __future__ import annotations

import math
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable

from generated import zipf_texts
from quick import judge_limits, parse_quick

from shaketable.core.documents import Collection, Doc, Slate
from shaketable.rankers.lexical import BM25, QL, QLJM
from shaketable.retrieval.inverted_index import InvertedIndex

MIN_PAIRS_PER_S = 100_000
TEXTS_PER_SLATE, SLATES_PER_CALL = 50, 10


class Corpus(dict[str, Doc]):
    """Generated documents in memory."""

    def __init__(self, documents: int):
        super().__init__((f"doc{i}", Doc(text)) for i, text in enumerate(zipf_texts(1, documents, 60, 60)))
        self.fingerprint = f"generated {documents}"


def make_slates(seed: int, texts: list[str]) -> list[Slate]:
    """Return slates of consecutive texts with random queries."""
    docs = [Doc(text) for text in texts]
    size = TEXTS_PER_SLATE
    queries = zipf_texts(seed, len(texts) // size, 3, 5)
    return [Slate(query, tuple(docs[i * size : (i + 1) * size])) for i, query in enumerate(queries)]


def make_plain_bm25(index: InvertedIndex) -> Callable[[list[Slate]], None]:
    """Return BM25 in plain Python, with the collection statistics of an index."""
    df = dict(zip(index.terms, index.df.tolist(), strict=True))
    documents, average = len(index.docnos), index.token_count / len(index.docnos)

    def score(slates: list[Slate]) -> None:
        for slate in slates:
            query = Counter(slate.query.split())
            for doc in slate.docs:
                counts = Counter(re.findall(r"\w+", doc.text.lower()))
                norm = 1.2 * (0.25 + 0.75 * counts.total() / average)
                sum(
                    qtf * math.log1p((documents - df[t] + 0.5) / (df[t] + 0.5)) * counts[t] / (counts[t] + norm)
                    for t, qtf in query.items()
                    if counts[t] and t in df
                )

    return score


def measure_rate(score: Callable[[list[Slate]], object], slates: list[Slate]) -> float:
    """Return the pairs per second of processor time."""
    started = time.process_time()
    for start in range(0, len(slates), SLATES_PER_CALL):
        score(slates[start : start + SLATES_PER_CALL])
    return sum(len(slate.docs) for slate in slates) / (time.process_time() - started)


def main() -> int:
    quick = parse_quick(__doc__)
    pairs = 1_000 if quick else 40_000
    models = [model(stemmer="none", stopwords="none") for model in (BM25, QL, QLJM)]
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(SHAKETABLE_HOME=home, NUMBA_CACHE_DIR=f"{home}/numba")
        started = time.perf_counter()
        BM25().open(Collection("few", Corpus(100), {})).score([Slate("ab", (Doc("ab"),))])
        print(f"compilation: {time.perf_counter() - started:.1f} s, once per machine")
        collection = Collection("generated", Corpus(pairs), {})
        rankers = [model.open(collection) for model in models]
        rankers[0].score(make_slates(8, list(zipf_texts(8, pairs, 60, 60))))
        plain_bm25 = make_plain_bm25(rankers[0].scorer.index)
        baseline = measure_rate(plain_bm25, make_slates(9, list(zipf_texts(9, pairs, 60, 60))))
        print(f"pairs/s on one core, {pairs:,} pairs; plain Python {baseline:,.0f} pairs/s; goal {MIN_PAIRS_PER_S:,}")
        print(f"{'':8}{'new texts':>12}{'x Python':>10}{'x goal':>8}{'known texts':>14}{'x Python':>10}{'x goal':>8}")
        slowest = math.inf
        for number, ranker in enumerate(rankers):
            texts = list(zipf_texts(100 + number, pairs, 60, 60))
            new, known = (measure_rate(ranker.score, make_slates(seed, texts)) for seed in (2, 3))
            print(f"{ranker.name.partition('(')[0]:8}", end="")
            print(f"{new:12,.0f}{new / baseline:10.1f}{new / MIN_PAIRS_PER_S:8.2f}", end="")
            print(f"{known:14,.0f}{known / baseline:10.1f}{known / MIN_PAIRS_PER_S:8.2f}")
            slowest = min(slowest, new)
    return judge_limits(slowest >= MIN_PAIRS_PER_S, quick)


if __name__ == "__main__":
    sys.exit(main())
