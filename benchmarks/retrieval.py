"""Indexing and top-100 search of 200,000 generated documents, against bm25s (numba backend), tantivy and Lucene.

    python benchmarks/retrieval.py [--quick]

Every engine runs in a process of its own, on all cores, with BM25 (k1 1.2, b 0.75; tantivy has no other) and neither
stop-words nor stemming. Search gives document numbers and scores. What compiles is compiled on a small collection
before the clock starts, from an empty cache, and reported by itself as warm-up. CPU is the time of all cores together,
which other programs change least. Memory is what the process has resident after indexing and searching, less what it
had with the texts alone. Lucene (`make lucene`; left out if absent) is Anserini on all cores: its warm-up is the start
of Java with one query, which is subtracted from its searches, and its memory is not measured.
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


def shaketable(texts: list[str]) -> Search:
    from shaketable.core.documents import Collection, Doc
    from shaketable.rankers.lexical import BM25

    class Corpus(dict[str, Doc]):
        fingerprint = f"generated {len(texts)}"

        def items(self) -> Any:
            return ((f"doc{number}", Doc(text)) for number, text in enumerate(texts))

    scorer = BM25(stemmer="none", stopwords="none").open(Collection("generated", Corpus(), {})).scorer
    return lambda queries: scorer.search(scorer.index.make_bags(queries), TOP)


def bm25s(texts: list[str]) -> Search:
    import bm25s as library

    tokens = library.tokenize(texts, stopwords=None, show_progress=False)
    engine = library.BM25(k1=1.2, b=0.75, backend="numba")
    engine.index(tokens, show_progress=False)

    def search(queries: list[str]) -> Any:
        words = library.tokenize(queries, stopwords=None, show_progress=False)
        return engine.retrieve(words, k=TOP, n_threads=-1, show_progress=False)

    return search


def tantivy(texts: list[str]) -> Search:
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


ENGINES = {"shaketable": shaketable, "bm25s": bm25s, "tantivy": tantivy}


def measure(name: str, documents: int, queries: int) -> dict[str, float]:
    engine = ENGINES[name]
    few = list(zipf_texts(3, 1000, LENGTH, LENGTH))
    started = time.perf_counter()
    engine(few)(few[:64])
    warm_up = time.perf_counter() - started
    texts, asked = list(zipf_texts(1, documents, LENGTH, LENGTH)), list(zipf_texts(2, queries, 3, 5))
    before = resident()
    started = time.perf_counter()
    search = engine(texts)
    indexing = time.perf_counter() - started
    search(asked[:64])
    started, worked = time.perf_counter(), time.process_time()
    search(asked)
    searching, working = time.perf_counter() - started, time.process_time() - worked
    return {
        "warm-up s": warm_up,
        "index s": indexing,
        "queries/s": queries / searching,
        "CPU ms/query": working / queries * 1e3,
        "memory MB": (resident() - before) / 1e6,
    }


def measure_lucene(documents: int, queries: int) -> dict[str, float]:
    """Measure Anserini's programs for indexing and search, with stop-words and without stemming."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from evidence._lucene import find_lucene

    lucene = find_lucene()
    assert lucene is not None
    texts, asked = list(zipf_texts(1, documents, LENGTH, LENGTH)), list(zipf_texts(2, queries, 3, 5))
    cores = str(os.cpu_count() or 1)
    same = ("-keepStopwords", "-stemmer", "none")
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        named = {f"doc{number}": text for number, text in enumerate(texts)}
        index = lucene.index(named, Path(folder), "generated", *same)
        indexing = time.perf_counter() - started
        seconds, worked = [], []
        for some in (asked[:1], asked):
            before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            topics = {str(number): query for number, query in enumerate(some)}
            lucene.search(
                index, topics, "-hits", str(TOP), "-threads", cores, "-bm25.k1", "1.2", "-bm25.b", "0.75", *same
            )
            seconds.append(time.perf_counter() - started)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            worked.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return {
        "warm-up s": seconds[0],
        "index s": indexing,
        "queries/s": queries / (seconds[1] - seconds[0]),
        "CPU ms/query": (worked[1] - worked[0]) / queries * 1e3,
        "memory MB": float("nan"),
    }


def has_lucene() -> bool:
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from evidence._lucene import HOW, find_lucene

    if find_lucene() is None:
        print(f"Lucene is left out: {HOW}")
        return False
    return True


def resident() -> int:
    gc.collect()
    if sys.platform == "linux":
        CDLL("libc.so.6").malloc_trim(0)  # what was freed is not counted
    return int(psutil.Process().memory_info().rss)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    documents, queries = (500, 20) if given.quick else (200_000, 2000)
    if given.engine:
        print(json.dumps(measure(given.engine, documents, queries)))
        return
    found: dict[str, dict[str, float]] = {}
    for engine in ENGINES:
        with tempfile.TemporaryDirectory() as home:
            command = [sys.executable, __file__, "--engine", engine, *(["--quick"] if given.quick else [])]
            env = {**os.environ, "SHAKETABLE_HOME": home}
            if not given.quick:
                env["NUMBA_CACHE_DIR"] = f"{home}/numba"  # what compiles is timed
            done = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE)
            found[engine] = json.loads(done.stdout)
    if has_lucene():
        found["lucene"] = measure_lucene(documents, queries)
    columns = list(found["shaketable"])
    print(f"{documents:,} documents of {LENGTH} words, {queries:,} queries of 3 to 5, top {TOP}")
    print(f"{'':20}" + "".join(f"{column:>14}" for column in columns))
    for engine, row in found.items():
        print(f"{engine:20}" + "".join(f"{row[column]:14,.2f}" for column in columns))
    for peer in list(found)[1:]:
        ratios = (found["shaketable"][column] / found[peer][column] for column in columns)
        print(f"{'ratio to ' + peer:20}" + "".join(f"{ratio:14.2f}" for ratio in ratios))
    print(f"{'goal, to bm25s':20}" + "".join(f"{GOALS.get(column, ''):>14}" for column in columns))


if __name__ == "__main__":
    main()
