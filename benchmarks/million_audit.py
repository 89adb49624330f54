"""Peak memory of an audit of a million generated documents with 10,000 queries, against a limit of 3 GB.

    python benchmarks/million_audit.py [--quick | --documents N --queries N] [--folder FOLDER]

The tasks are variance, risk, and query typos on 500 of the queries. The rankers are bm25, ql, rm3, and a Python ranker
that spends 0.1 ms of processor time per pair. Each ranker ranks 100 documents per query, and the script writes the same
files as `shaketable audit`. Peak memory is that of the whole process, including libraries. The script also prints the
time of each step. With --folder, a second run reuses the collection, the index and the scores.
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
from million import LIMIT_GB, measure_peak_gb
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

PAIR_S = 0.0001
"""Processor time of the slow ranker."""
TYPO_QUERIES = 500


class SlowRanker:
    """A ranker by common words that spends 0.1 ms of processor time per pair."""

    name = "slow"
    fingerprint = "slow 1"
    pointwise = True

    def score(self, slates):
        until = time.process_time() + PAIR_S * sum(len(slate.docs) for slate in slates)
        scores = [self._score_slate(slate) for slate in slates]
        while time.process_time() < until:
            pass
        return scores

    def _score_slate(self, slate):
        words = set(slate.query.split())
        return np.array([len(words & set(doc.body.split())) / (1 + len(doc.body)) for doc in slate.docs])


def write_collection(folder: Path, documents: int, queries: int) -> None:
    """Write generated texts as a BEIR folder; a query is three long words of a document, which is relevant to it."""
    (folder / "qrels").mkdir(parents=True)
    step = max(1, documents // queries)
    rng = np.random.default_rng(3)
    with (
        (folder / "corpus.jsonl").open("w") as corpus,
        (folder / "queries.jsonl").open("w") as topics,
        (folder / "qrels" / "test.tsv").open("w") as qrels,
    ):
        qrels.write("query-id\tcorpus-id\tscore\n")
        for number, text in enumerate(zipf_texts(1, documents, 60, 60)):
            corpus.write(json.dumps({"_id": f"doc{number}", "text": text}) + "\n")
            if number % step == 0 and number // step < queries:
                longest = sorted(text.split(), key=len)[-12:]
                words = " ".join(rng.choice(longest, 3, replace=False))
                topics.write(json.dumps({"_id": f"q{number}", "text": words}) + "\n")
                qrels.write(f"q{number}\tdoc{number}\t1\n")


@contextmanager
def report_step(name: str) -> Iterator[None]:
    """Print the wall time and the processor time of a step, and the peak memory so far."""
    started, started_cpu = time.perf_counter(), time.process_time()
    yield
    wall, cpu = time.perf_counter() - started, time.process_time() - started_cpu
    print(f"{name:34}{wall:9.1f} s wall{cpu:9.1f} s CPU, peak memory {measure_peak_gb():5.2f} GB", flush=True)


def run_audit(folder: Path, out: Path) -> None:
    """Audit the rankers and write the files of the audit."""
    with report_step("open the collection"):
        collection = load(folder)
    models = build_models({"bm25": "bm25", "ql": "ql", "rm3": "rm3", "slow": SlowRanker()})
    engine = ScoringEngine(Store(home_folder() / "scores.sqlite"))
    experiment = Experiment(collection, models, engine, split="test")
    for name in models:
        with report_step(f"open {name}" + (", and index" if name == "bm25" else "")):
            experiment.get_ranker(name)
        with report_step(f"run {name}"):
            experiment.get_run(name)
    results = []
    for task in ("variance", "risk"):
        with report_step(task):
            results += run_tasks(experiment, [TASKS.build(task)])[0]
    few = Experiment(collection, models, engine, split="test", limit=TYPO_QUERIES)
    for name, ranker in experiment._cache.rankers.items():
        few._cache.rankers[name] = ranker
    with report_step(f"query typos, {len(few.queries)} queries"):
        results += run_tasks(few, [TASKS.build("query_typos(draws=1)")])[0]
    with report_step("write page, tables and runs"):
        audit = Audit(
            "a million documents",
            experiment.summarize(),
            tuple(results),
            experiment.collect_provenance(),
            experiment.get_runs(),
        )
        audit.save(out)
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    print(f"{'size of the files':34}{size / 1e9:9.2f} GB")


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    documents, queries = (1_000, 20) if given.quick else (given.documents, given.queries)
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        os.environ["SHAKETABLE_HOME"] = str(folder / "home")
        print(f"{documents:,} documents, {queries:,} queries")
        if not (folder / "collection").exists():
            with report_step("generate the texts"):
                write_collection(folder / "collection", documents, queries)
        started = time.perf_counter()
        run_audit(folder / "collection", folder / "out")
        print(f"{'audit':34}{time.perf_counter() - started:9.1f} s wall")
        peak = measure_peak_gb()
        print(f"{'peak memory':34}{peak:9.2f} GB (limit {LIMIT_GB} GB), ratio {peak / LIMIT_GB:.2f}")
    return judge_limits(peak <= LIMIT_GB, given.quick)


if __name__ == "__main__":
    sys.exit(main())
