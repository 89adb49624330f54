"""Peak memory of indexing and searching a million generated documents, against a limit of 3 GB.

    python benchmarks/million.py [--quick]

The documents are a stream of JSON lines that is generated on the fly and never kept in memory. Peak memory is that of
the whole process, including libraries.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator

from generated import zipf_texts
from quick import judge_limits, parse_quick

from shaketable.core.documents import Collection, Doc
from shaketable.rankers.lexical import BM25, QL

LIMIT_GB = 3.0


class Stream(dict[str, Doc]):
    """A corpus that is read line by line from beginning to end."""

    def __init__(self, documents: int):
        self.documents = documents
        self.fingerprint = f"stream {documents}"

    def items(self) -> Iterator[tuple[str, Doc]]:  # type: ignore[override]
        for number, text in enumerate(zipf_texts(1, self.documents, 60, 60)):
            row = json.loads(json.dumps({"_id": f"doc{number}", "text": text}))
            yield row["_id"], Doc(row["text"])


def measure_peak_gb() -> float:
    """Return the peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e9


def main() -> int:
    quick = parse_quick(__doc__)
    documents = 2_000 if quick else 1_000_000
    queries = list(zipf_texts(2, 1000, 3, 5))
    with tempfile.TemporaryDirectory() as home:
        os.environ["SHAKETABLE_HOME"] = home
        BM25().open(Collection("few", Stream(100), {})).search(queries[:32], 100)  # compiles
        stream = Stream(documents)
        started = time.perf_counter()
        for _ in stream.items():
            pass
        generating = time.perf_counter() - started
        started = time.perf_counter()
        rankers = [m(stemmer="none", stopwords="none").open(Collection("s", stream, {})) for m in (BM25, QL)]
        indexing = time.perf_counter() - started - generating
        print(f"{documents:,} documents: indexed in {indexing:.1f} s, without {generating:.1f} s to generate the texts")
        size = sum(file.stat().st_size for file in os.scandir(f"{home}/indexes/{rankers[0].scorer.index.fingerprint}"))
        print(f"{'index on disk, GB':24}{size / 1e9:8.2f}")
        for ranker in rankers:
            ranker.search(queries[:32], 100)
            started = time.perf_counter()
            ranker.search(queries, 100)
            rate = len(queries) / (time.perf_counter() - started)
            print(f"{ranker.name.partition('(')[0] + ', top 100, queries/s':24}{rate:8,.0f}")
        peak = measure_peak_gb()
        print(f"{'peak memory, GB':24}{peak:8.2f}   limit {LIMIT_GB} GB, ratio {peak / LIMIT_GB:.2f}")
    return judge_limits(peak <= LIMIT_GB, quick)


if __name__ == "__main__":
    sys.exit(main())
