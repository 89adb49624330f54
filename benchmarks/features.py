"""Speed of the 28 query-document features for 100,000 pairs, against a plain Python loop over the same terms.

    python benchmarks/features.py [--quick]

The time is the processor time of one thread. Both sides have computed the collection statistics before. The time
includes reading each text once. Both sides must agree. Goal: 20,000 pairs per second for texts that are not cached.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence

import numpy as np
from generated import zipf_texts
from quick import judge_limits, parse_quick

from shaketable.core.documents import Doc, Slate
from shaketable.nlp.analyzer import Analyzer
from shaketable.rankers.features import FIELDS, FeatureExtractor

DOCUMENTS, QUERIES, DEPTH, LENGTH = 20_000, 1_000, 100, 100
MIN_PAIRS_PER_S = 20_000


class Corpus(dict[str, Doc]):
    """Documents in memory."""

    fingerprint = "generated"


def make_corpus(documents: int) -> Corpus:
    """Return generated documents with title and URL."""
    bodies, titles = zipf_texts(1, documents, LENGTH // 2, 3 * LENGTH // 2), zipf_texts(2, documents, 4, 10)
    urls = (text.replace(" ", "/") for text in zipf_texts(3, documents, 2, 4))
    docs = zip(bodies, titles, urls, strict=True)
    return Corpus({f"d{number}": Doc(body, title, url) for number, (body, title, url) in enumerate(docs)})


class LoopExtractor:
    """A plain Python implementation of the features, term by term."""

    def __init__(self, corpus: Corpus, tokenizer: Analyzer):
        self.tokenizer, self.documents = tokenizer, len(corpus)
        self.counts: dict[tuple[str, Doc], Counter[str]] = {}
        self.df: dict[str, Counter[str]] = {field: Counter() for field in FIELDS}
        self.cf: dict[str, Counter[str]] = {field: Counter() for field in FIELDS}
        for field, part in FIELDS.items():
            for doc in corpus.values():
                terms = tokenizer(part(doc).text)
                self.df[field].update(set(terms))
                self.cf[field].update(terms)
        self.size = {field: sum(cf.values()) for field, cf in self.cf.items()}

    def count_terms(self, field: str, doc: Doc) -> Counter[str]:
        if (field, doc) not in self.counts:
            self.counts[field, doc] = Counter(self.tokenizer(FIELDS[field](doc).text))
        return self.counts[field, doc]

    def extract_row(self, query: Sequence[str], doc: Doc) -> list[float]:
        columns = [self.extract_field(field, Counter(query), self.count_terms(field, doc)) for field in FIELDS]
        return [value for feature in zip(*columns, strict=True) for value in feature]

    def extract_field(self, field: str, query: Counter[str], counts: Counter[str]) -> tuple[float, ...]:
        total, dl, average = self.size[field], sum(counts.values()), self.size[field] / self.documents
        tf = idf = tf_idf = bm25 = ql_dir = ql_jm = 0.0
        for term, qtf in query.items():
            if not (df := self.df[field][term]):
                continue
            ql_dir -= qtf * math.log1p(dl / 2000)
            if not (count := counts[term]):
                continue
            rarity, share = math.log(self.documents / df), self.cf[field][term] / total
            tf += count
            idf += rarity
            tf_idf += count * rarity
            odds = math.log2((self.documents - df + 0.5) / (df + 0.5))
            bm25 += odds * 3.5 * count / (count + 2.5 * (1 - 0.8 + 0.8 * dl / average))
            ql_dir += qtf * math.log1p(count / (2000 * share))
            ql_jm += qtf * math.log1p(0.9 * count / (0.1 * dl * share))
        return tf, idf, tf_idf, float(dl), bm25, ql_dir, ql_jm


def main() -> int:
    quick = parse_quick(__doc__)
    documents, queries = (500, 5) if quick else (DOCUMENTS, QUERIES)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SHAKETABLE_HOME"] = folder
        docs = make_corpus(documents)
        extractor = FeatureExtractor.open(docs, Analyzer())
        extractor.extract([Slate("word1 word2", (Doc("word1 word3"),))])  # compiles
        rng, every = np.random.default_rng(0), list(docs.values())
        slates = [
            Slate(text, tuple(every[i] for i in rng.choice(len(every), DEPTH, replace=False)))
            for text in zipf_texts(4, queries, 3, 5)
        ]
        started = time.process_time()
        rows = extractor.extract(slates)
        cold = len(rows) / (time.process_time() - started)
        started = time.process_time()
        extractor.extract(slates)
        warm = len(rows) / (time.process_time() - started)
    loop = LoopExtractor(docs, Analyzer())
    started = time.process_time()
    plain = [
        loop.extract_row(words, doc)
        for slate in slates
        for words in [loop.tokenizer(slate.query)]
        for doc in slate.docs
    ]
    peer = len(plain) / (time.process_time() - started)
    worst = float(np.abs(np.array(plain) - rows).max())
    print(
        f"{len(rows):,} pairs x {rows.shape[1]} features, {LENGTH} words per document; largest difference {worst:.1e}"
    )
    print(f"features, new texts    {cold:10,.0f} pairs/s (goal {MIN_PAIRS_PER_S:,}), {cold / peer:.1f} x the loop")
    print(f"features, known texts  {warm:10,.0f} pairs/s, {warm / peer:.1f} x the loop")
    print(f"plain Python loop      {peer:10,.0f} pairs/s")
    return judge_limits(cold >= MIN_PAIRS_PER_S, quick)


if __name__ == "__main__":
    sys.exit(main())
