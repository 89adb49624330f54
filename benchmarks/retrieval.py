"""Speed and memory of indexing and top-100 search of 200,000 documents, against bm25s, tantivy and Lucene.

    python benchmarks/retrieval.py [--quick]

Every engine runs in its own process, on all cores, with BM25 (k1 1.2, b 0.75; tantivy has no other values), without
stop-words and stemming. bm25s uses its numba backend. Search returns document numbers and scores. Compilation happens
on a small collection, from an empty cache, and is timed separately as warm-up. CPU time is that of all cores; other
programs change it least. Memory is the resident memory after indexing and searching, minus that with the texts alone.
Lucene runs as Anserini on all cores if `make lucene` installed it. Its warm-up is the start of Java with one query,
which is subtracted from its search time. Its memory is not measured.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from ctypes import CDLL
from pathlib import Path
from typing import Any

import psutil
from generated import zipf_texts
from quick import make_parser

LENGTH, TOP = 60, 100
GOALS = {"index s": "at most 0.50", "queries/s": "at least 0.50", "memory MB": "at most 1.00"}  # ratios to bm25s

Search = Callable[[list[str]], Any]


def index_with_shaketable(texts: list[str]) -> Search:
    from shaketable.core.documents import Collection, Doc
    from shaketable.rankers.lexical import BM25

    class Corpus(dict[str, Doc]):
        fingerprint = f"generated {len(texts)}"

        def items(self) -> Any:
            return ((f"doc{number}", Doc(text)) for number, text in enumerate(texts))

    scorer = BM25(stemmer="none", stopwords="none").open(Collection("generated", Corpus(), {})).scorer
    return lambda queries: scorer.search(scorer.index.make_bags(queries), TOP)


def index_with_bm25s(texts: list[str]) -> Search:
    import bm25s as library

    tokens = library.tokenize(texts, stopwords=None, show_progress=False)
    engine = library.BM25(k1=1.2, b=0.75, backend="numba")
    engine.index(tokens, show_progress=False)

    def search(queries: list[str]) -> Any:
        words = library.tokenize(queries, stopwords=None, show_progress=False)
        return engine.retrieve(words, k=TOP, n_threads=-1, show_progress=False)

    return search


def index_with_tantivy(texts: list[str]) -> Search:
    import tantivy as library

    schema = library.SchemaBuilder().add_text_field("text", stored=False, tokenizer_name="whitespace").build()
    engine = library.Index(schema)
    writer = engine.writer(heap_size=500_000_000)
    for text in texts:
        writer.add_document(library.Document(text=text))
    writer.commit()
    writer.wait_merging_threads()
    engine.reload()
    searcher = engine.searcher()

    def search(queries: list[str]) -> Any:
        return [searcher.search(engine.parse_query(query, ["text"]), TOP).hits for query in queries]

    return search


ENGINES = {"shaketable": index_with_shaketable, "bm25s": index_with_bm25s, "tantivy": index_with_tantivy}
"""Engine -> a function that indexes texts and returns a search function."""


def measure_engine(name: str, documents: int, queries: int) -> dict[str, float]:
    """Return the columns of the table for an engine of this process."""
    index = ENGINES[name]
    few = list(zipf_texts(3, 1000, LENGTH, LENGTH))
    started = time.perf_counter()
    index(few)(few[:64])
    warm_up = time.perf_counter() - started
    texts, topics = list(zipf_texts(1, documents, LENGTH, LENGTH)), list(zipf_texts(2, queries, 3, 5))
    before = measure_resident_bytes()
    started = time.perf_counter()
    search = index(texts)
    indexing = time.perf_counter() - started
    search(topics[:64])
    started, started_cpu = time.perf_counter(), time.process_time()
    search(topics)
    searching, cpu = time.perf_counter() - started, time.process_time() - started_cpu
    return {
        "warm-up s": warm_up,
        "index s": indexing,
        "queries/s": queries / searching,
        "CPU ms/query": cpu / queries * 1e3,
        "memory MB": (measure_resident_bytes() - before) / 1e6,
    }


def measure_lucene(documents: int, queries: int) -> dict[str, float]:
    """Return the columns of the table for Anserini, which keeps stop-words and does not stem."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from evidence._lucene import find_lucene

    lucene = find_lucene()
    assert lucene is not None
    texts, query_texts = list(zipf_texts(1, documents, LENGTH, LENGTH)), list(zipf_texts(2, queries, 3, 5))
    cores = str(os.cpu_count() or 1)
    analyzer = ("-keepStopwords", "-stemmer", "none")
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        docs = {f"doc{number}": text for number, text in enumerate(texts)}
        index = lucene.index(docs, Path(folder), "generated", *analyzer)
        indexing = time.perf_counter() - started
        seconds, cpu = [], []
        for some in (query_texts[:1], query_texts):
            before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            topics = {str(number): query for number, query in enumerate(some)}
            lucene.search(
                index, topics, "-hits", str(TOP), "-threads", cores, "-bm25.k1", "1.2", "-bm25.b", "0.75", *analyzer
            )
            seconds.append(time.perf_counter() - started)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return {
        "warm-up s": seconds[0],
        "index s": indexing,
        "queries/s": queries / (seconds[1] - seconds[0]),
        "CPU ms/query": (cpu[1] - cpu[0]) / queries * 1e3,
        "memory MB": float("nan"),
    }


def has_lucene() -> bool:
    """Return True if Lucene is installed; print how to install it otherwise."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from evidence._lucene import HOW, find_lucene

    if find_lucene() is None:
        print(f"Lucene is not measured: {HOW}")
        return False
    return True


def measure_resident_bytes() -> int:
    """Return the resident memory of this process without freed memory."""
    gc.collect()
    if sys.platform == "linux":
        CDLL("libc.so.6").malloc_trim(0)  # returns freed memory to the system
    return int(psutil.Process().memory_info().rss)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    documents, queries = (500, 20) if given.quick else (200_000, 2000)
    if given.engine:
        print(json.dumps(measure_engine(given.engine, documents, queries)))
        return
    rows: dict[str, dict[str, float]] = {}
    for engine in ENGINES:
        with tempfile.TemporaryDirectory() as home:
            command = [sys.executable, __file__, "--engine", engine, *(["--quick"] if given.quick else [])]
            env = {**os.environ, "SHAKETABLE_HOME": home}
            if not given.quick:
                env["NUMBA_CACHE_DIR"] = f"{home}/numba"  # so that warm-up includes compilation
            done = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE)
            rows[engine] = json.loads(done.stdout)
    if has_lucene():
        rows["lucene"] = measure_lucene(documents, queries)
    columns = list(rows["shaketable"])
    print(f"{documents:,} documents of {LENGTH} words, {queries:,} queries of 3 to 5 words, top {TOP}")
    print(f"{'engine':20}" + "".join(f"{column:>14}" for column in columns))
    for engine, row in rows.items():
        print(f"{engine:20}" + "".join(f"{row[column]:14,.2f}" for column in columns))
    for peer in list(rows)[1:]:
        ratios = (rows["shaketable"][column] / rows[peer][column] for column in columns)
        print(f"{'ratio to ' + peer:20}" + "".join(f"{ratio:14.2f}" for ratio in ratios))
    print(f"{'goal to bm25s':20}" + "".join(f"{GOALS.get(column, ''):>14}" for column in columns))


if __name__ == "__main__":
    main()
