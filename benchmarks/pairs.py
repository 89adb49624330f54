"""Scoring (query, text) pairs on one core: BM25 and query likelihood, against plain Python.

    python benchmarks/pairs.py [--quick]

"new texts": every text is seen for the first time, so reading it is most of the work. "known texts": the same texts
with other queries, as an audit asks for them. Texts have 60 words, queries 3 to 5; a slate has 50 texts, a call 10
slates. Seconds are the processor's, so that waiting for other programs does not count. Before the clock starts, what
compiles is compiled, from an empty cache, which is reported by itself, and other texts have brought most of the words.
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

GOAL = 100_000  # pairs a second, with 60-word texts
SLATE, CALL = 50, 10


class Corpus(dict[str, Doc]):
    def __init__(self, documents: int):
        super().__init__((f"doc{i}", Doc(text)) for i, text in enumerate(zipf_texts(1, documents, 60, 60)))
        self.fingerprint = f"generated {documents}"


def slates(seed: int, texts: list[str]) -> list[Slate]:
    docs = [Doc(text) for text in texts]
    queries = zipf_texts(seed, len(texts) // SLATE, 3, 5)
    return [Slate(query, tuple(docs[i * SLATE : (i + 1) * SLATE])) for i, query in enumerate(queries)]


def plain(index: InvertedIndex) -> Callable[[list[Slate]], None]:
    """BM25 in a few lines of Python, the collection's statistics being at hand."""
    df = dict(zip(index.terms, index.df.tolist(), strict=True))
    documents, average = len(index.docnos), index.token_count / len(index.docnos)

    def score(asked: list[Slate]) -> None:
        for slate in asked:
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


def rate(work: Callable[[list[Slate]], object], asked: list[Slate]) -> float:
    started = time.process_time()
    for start in range(0, len(asked), CALL):
        work(asked[start : start + CALL])
    return sum(len(slate.docs) for slate in asked) / (time.process_time() - started)


def main() -> int:
    quick = parse_quick(__doc__)
    pairs = 1_000 if quick else 40_000
    models = [model(stemmer="none", stopwords="none") for model in (BM25, QL, QLJM)]
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(SHAKETABLE_HOME=home, NUMBA_CACHE_DIR=f"{home}/numba")
        started = time.perf_counter()
        BM25().open(Collection("few", Corpus(100), {})).score([Slate("ab", (Doc("ab"),))])
        print(f"compiling: {time.perf_counter() - started:.1f} s, the first time on a machine")
        collection = Collection("generated", Corpus(pairs), {})
        rankers = [model.open(collection) for model in models]
        rankers[0].score(slates(8, list(zipf_texts(8, pairs, 60, 60))))
        baseline = rate(plain(rankers[0].scorer.index), slates(9, list(zipf_texts(9, pairs, 60, 60))))
        print(f"{pairs:,} pairs on one core, pairs/s; plain Python: {baseline:,.0f}")
        print(f"{'':8}{'new texts':>12}{'x Python':>10}{'x goal':>8}{'known texts':>14}{'x Python':>10}{'x goal':>8}")
        slowest = math.inf
        for number, ranker in enumerate(rankers):
            texts = list(zipf_texts(100 + number, pairs, 60, 60))
            new, known = (rate(ranker.score, slates(seed, texts)) for seed in (2, 3))
            print(f"{ranker.name.partition('(')[0]:8}", end="")
            print(f"{new:12,.0f}{new / baseline:10.1f}{new / GOAL:8.2f}", end="")
            print(f"{known:14,.0f}{known / baseline:10.1f}{known / GOAL:8.2f}")
            slowest = min(slowest, new)
    return judge_limits(slowest >= GOAL, quick)


if __name__ == "__main__":
    sys.exit(main())
