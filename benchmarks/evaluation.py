"""Per-query measures of 10,000 queries x 100 documents: time against pytrec_eval's own evaluate, and ir_measures'.

Run it: python benchmarks/evaluation.py. The limit is 1.2 times pytrec_eval.
ir_measures hands RR@10 to a slower library.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median

import ir_measures
import numpy as np
import pytrec_eval

from shaketable.measure.effectiveness import Evaluator, parse

QUERIES, DOCUMENTS, ROUNDS, LIMIT = 10_000, 100, 5, 1.2
NAMES = {"AP": "map", "nDCG@10": "ndcg_cut_10", "RR@10": "recip_rank", "P@10": "P_10", "R@100": "recall_100"}


def seconds(jobs: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Medians of a few rounds, the jobs taking turns, so that a busy machine slows all of them."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(ROUNDS):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            times[name].append(time.perf_counter() - start)
    return {name: median(found) for name, found in times.items()}


def main() -> int:
    rng = np.random.default_rng(1)
    docnos = [f"d{i:03}" for i in range(DOCUMENTS)]
    run = {f"q{i}": dict(zip(docnos, rng.random(DOCUMENTS).tolist(), strict=True)) for i in range(QUERIES)}
    qrels = {qid: dict(zip(docnos[:20], rng.integers(0, 4, 20).tolist(), strict=True)) for qid in run}
    measures = tuple(parse(name) for name in NAMES)
    ours = Evaluator(measures, qrels)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, set(NAMES.values()))
    interface = ir_measures.evaluator(measures, qrels)
    ours.per_query(run)  # reads the judgements, as the others have done by now
    found = seconds(
        {
            "shaketable": lambda: ours.per_query(run),
            "pytrec_eval": lambda: theirs.evaluate(run),
            "ir_measures": lambda: sum(1 for _ in interface.iter_calc(run)),
        }
    )
    for name, value in found.items():
        print(f"{name:12} {value:.3f} s")
    ratio = found["shaketable"] / found["pytrec_eval"]
    print(f"shaketable / pytrec_eval {ratio:.2f} (limit {LIMIT})")
    print(f"shaketable / ir_measures {found['shaketable'] / found['ir_measures']:.2f}")
    return int(ratio > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
