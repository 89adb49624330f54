"""Time of per-query measures, against pytrec_eval and ir_measures, in memory and from run files.

    python benchmarks/evaluation.py [--quick]

In memory: 10,000 queries x 100 documents, against `evaluate` of both libraries. Limit: 1.2 times pytrec_eval.
ir_measures calls a slower library for RR@10. From files: reading 16 runs and computing everything that the command
`evaluate` prints, against `parse_run` and `evaluate` of pytrec_eval. Limit: 1.5 times.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import ir_measures
import numpy as np
import pytrec_eval
from quick import judge_limits, parse_quick

from shaketable.datasets.trec import read_qrels, read_run, write_qrels, write_run
from shaketable.measures.effectiveness import Evaluator, score_tables, tie_rate
from shaketable.measures.measure_names import parse_measure

QUERIES, DOCUMENTS, ROUNDS, LIMIT = 10_000, 100, 5, 1.2
RUNS, TOPICS, DEPTH, FILES_LIMIT = 16, 50, 1000, 1.5
NAMES = {"AP": "map", "nDCG@10": "ndcg_cut_10", "RR@10": "recip_rank", "P@10": "P_10", "R@100": "recall_100"}


def measure_seconds(jobs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the median processor time of each job; the jobs take turns, so that load slows all of them."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            start = time.process_time()  # excludes other programs
            job()
            times[name].append(time.process_time() - start)
    return {name: median(found) for name, found in times.items()}


def compare_on_files(folder: Path, runs: int, rounds: int) -> float:
    """Return the ratio of our time to that of pytrec_eval, for run files with 1000 documents per topic."""
    rng = np.random.default_rng(2)
    docnos = [f"clueweb-{i:05}" for i in range(5 * DEPTH)]
    qids = [str(100 + q) for q in range(TOPICS)]
    qrels = {
        q: {docnos[i]: int(g) for i, g in zip(rng.permutation(200), rng.integers(0, 4, 200), strict=True)} for q in qids
    }
    write_qrels(qrels, folder / "qrels")
    paths = [folder / f"{number}.run" for number in range(runs)]
    for path in paths:
        found = {q: rng.permutation(len(docnos))[:DEPTH].tolist() for q in qids}
        scores = np.sort(rng.normal(size=DEPTH).round(6))[::-1].tolist()
        write_run({q: {docnos[i]: s for i, s in zip(at, scores, strict=True)} for q, at in found.items()}, path)

    def run_ours() -> None:
        qrels, runs = read_qrels(folder / "qrels"), {path.stem: read_run(path) for path in paths}
        score_tables(["nDCG@10", "AP", "Success@10", "P@10", "Judged@10"], qrels, runs)
        for run in runs.values():
            tie_rate(run)

    def run_pytrec_eval() -> None:
        with (folder / "qrels").open() as file:
            evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(file), {"ndcg_cut_10", "map"})
        for path in paths:
            with path.open() as file:
                evaluator.evaluate(pytrec_eval.parse_run(file))

    def read_runs() -> None:
        for path in paths:
            read_run(path)

    run_ours()
    run_pytrec_eval()
    jobs = {"shaketable": run_ours, "pytrec_eval": run_pytrec_eval, "shaketable, reading only": read_runs}
    seconds = measure_seconds(jobs, rounds)
    print(f"{runs} run files of {TOPICS} topics x {DEPTH} documents")
    for name, value in seconds.items():
        print(f"{name:24} {value:.3f} s")
    return seconds["shaketable"] / seconds["pytrec_eval"]


def main() -> int:
    quick = parse_quick(__doc__)
    queries, runs, rounds = (100, 1, 1) if quick else (QUERIES, RUNS, ROUNDS)
    rng = np.random.default_rng(1)
    docnos = [f"d{i:03}" for i in range(DOCUMENTS)]
    run = {f"q{i}": dict(zip(docnos, rng.random(DOCUMENTS).tolist(), strict=True)) for i in range(queries)}
    qrels = {qid: dict(zip(docnos[:20], rng.integers(0, 4, 20).tolist(), strict=True)) for qid in run}
    measures = tuple(parse_measure(name) for name in NAMES)
    ours = Evaluator(measures, qrels)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, set(NAMES.values()))
    interface = ir_measures.evaluator(measures, qrels)
    ours.evaluate(run)  # indexes the qrels; the peers did so above
    seconds = measure_seconds(
        {
            "shaketable": lambda: ours.evaluate(run),
            "pytrec_eval": lambda: theirs.evaluate(run),
            "ir_measures": lambda: sum(1 for _ in interface.iter_calc(run)),
        },
        rounds,
    )
    for name, value in seconds.items():
        print(f"{name:12} {value:.3f} s")
    ratio = seconds["shaketable"] / seconds["pytrec_eval"]
    print(f"time relative to pytrec_eval {ratio:.2f} (limit {LIMIT})")
    print(f"time relative to ir_measures {seconds['shaketable'] / seconds['ir_measures']:.2f}")
    with tempfile.TemporaryDirectory() as folder:
        files_ratio = compare_on_files(Path(folder), runs, rounds)
    print(f"time relative to pytrec_eval, from files {files_ratio:.2f} (limit {FILES_LIMIT})")
    return judge_limits(ratio <= LIMIT and files_ratio <= FILES_LIMIT, quick)


if __name__ == "__main__":
    sys.exit(main())
