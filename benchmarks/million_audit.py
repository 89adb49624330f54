"""An audit of a million generated documents and 10,000 queries, within 3 GB of memory, and its time by part.

    python benchmarks/million_audit.py [--quick | --documents N --queries N] [--folder FOLDER]

Tasks: variance, risk and one query attack on 500 of the queries; rankers: bm25, ql, rm3, and one of Python that spends
0.1 ms of processor time a pair. 100 documents are ranked for each query, everything is written as `shaketable audit`
writes it. Peak memory is that of the whole process, libraries included. With --folder, what was made is kept there:
a second run finds collection, index and scores.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from generated import zipf_texts
from million import GOAL, peak
from quick import judge_limits, make_parser

from shaketable.api.audit import Audit
from shaketable.api.ranker_names import build_models
from shaketable.core.home import home_folder
from shaketable.core.registries import TASKS
from shaketable.datasets.load import load
from shaketable.experiment import Experiment
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store
from shaketable.tasks.runner import run_tasks

PAIR = 0.0001
"""Seconds of processor time that the slow ranker spends on a pair."""
ATTACKED = 500


class Spending:
    """Shares of words in common, at 0.1 ms of processor time a pair."""

    name = "spending"
    fingerprint = "spending 1"
    pointwise = True

    def score(self, slates):
        until = time.process_time() + PAIR * sum(len(slate.docs) for slate in slates)
        scores = [self._shares(slate) for slate in slates]
        while time.process_time() < until:
            pass
        return scores

    def _shares(self, slate):
        words = set(slate.query.split())
        return np.array([len(words & set(doc.body.split())) / (1 + len(doc.body)) for doc in slate.docs])


def write_collection(folder: Path, documents: int, queries: int) -> None:
    """A BEIR folder of generated texts; a query is made of words of a document, which is relevant to it."""
    (folder / "qrels").mkdir(parents=True)
    step = max(1, documents // queries)
    rng = np.random.default_rng(3)
    with (
        (folder / "corpus.jsonl").open("w") as corpus,
        (folder / "queries.jsonl").open("w") as asked,
        (folder / "qrels" / "test.tsv").open("w") as judged,
    ):
        judged.write("query-id\tcorpus-id\tscore\n")
        for number, text in enumerate(zipf_texts(1, documents, 60, 60)):
            corpus.write(json.dumps({"_id": f"doc{number}", "text": text}) + "\n")
            if number % step == 0 and number // step < queries:
                rare = sorted(text.split(), key=len)[-12:]
                words = " ".join(rng.choice(rare, 3, replace=False))
                asked.write(json.dumps({"_id": f"q{number}", "text": words}) + "\n")
                judged.write(f"q{number}\tdoc{number}\t1\n")


@contextmanager
def timed(what: str) -> Iterator[None]:
    started, spent = time.perf_counter(), time.process_time()
    yield
    wall, cpu = time.perf_counter() - started, time.process_time() - spent
    print(f"{what:34}{wall:9.1f} s{cpu:9.1f} s of the processor, peak so far {peak():5.2f} GB", flush=True)


def audited(folder: Path, out: Path) -> None:
    with timed("open the collection"):
        collection = load(folder)
    models = build_models({"bm25": "bm25", "ql": "ql", "rm3": "rm3", "spending": Spending()})
    engine = ScoringEngine(Store(home_folder() / "scores.sqlite"))
    experiment = Experiment(collection, models, engine, split="test")
    for name in models:
        with timed(f"open {name}" + (", and index" if name == "bm25" else "")):
            experiment.get_ranker(name)
        with timed(f"run {name}"):
            experiment.get_run(name)
    results = []
    for text in ("variance", "risk"):
        with timed(text):
            results += run_tasks(experiment, [TASKS.build(text)])[0]
    few = Experiment(collection, models, engine, split="test", limit=ATTACKED)
    for name, ranker in experiment._cache.rankers.items():
        few._cache.rankers[name] = ranker
    with timed(f"query attack, {len(few.queries)} queries"):
        results += run_tasks(few, [TASKS.build("query_typos(draws=1)")])[0]
    with timed("write page, tables and runs"):
        done = Audit(
            "a million documents",
            experiment.summarize(),
            tuple(results),
            experiment.collect_provenance(),
            experiment.get_runs(),
        )
        done.save(out)
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    print(f"{'written':34}{size / 1e9:9.2f} GB")


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    documents, queries = (1_000, 20) if given.quick else (given.documents, given.queries)
    with tempfile.TemporaryDirectory() as temporary:
        place = given.folder or Path(temporary)
        os.environ["SHAKETABLE_HOME"] = str(place / "home")
        print(f"{documents:,} documents, {queries:,} queries")
        if not (place / "collection").exists():
            with timed("make the texts"):
                write_collection(place / "collection", documents, queries)
        started = time.perf_counter()
        audited(place / "collection", place / "out")
        print(f"{'the audit':34}{time.perf_counter() - started:9.1f} s")
        print(f"{'peak memory':34}{peak():9.2f} GB, limit {GOAL} GB, ratio {peak() / GOAL:.2f}")
    return judge_limits(peak() <= GOAL, given.quick)


if __name__ == "__main__":
    sys.exit(main())
