"""RankSVM on 2,000 queries x 100 documents x 136 features: time and peak memory, against a matrix of all pairs.

    python benchmarks/ranksvm_memory.py [--quick]

Peak memory is what the process has resident at most while it fits, less what it had before with the rows alone. The
matrix of pair differences is not made, only counted: it is what LinearSVC would have to be given.
"""

from __future__ import annotations

import resource
import time

import numpy as np
from quick import parse_quick

from shaketable.datasets.letor import Letor
from shaketable.training.linear import PairLoss, RankSVM

QUERIES, DOCS, DIMS = 2_000, 100, 136


def generated(queries: int) -> Letor:
    """Grades 0 to 4, most of them low, that a few features half decide."""
    rng = np.random.default_rng(0)
    features = rng.random((queries * DOCS, DIMS), dtype=np.float32)
    worth = features[:, :5].sum(axis=1) + rng.normal(size=len(features))
    labels = np.digitize(worth, np.quantile(worth, [0.55, 0.85, 0.97, 0.99]))
    docnos = tuple(map(str, range(len(features))))
    return Letor(features, labels, np.arange(queries + 1) * DOCS, tuple(map(str, range(queries))), docnos)


def peak() -> float:
    """Megabytes that the process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    queries = 20 if parse_quick(__doc__) else QUERIES
    RankSVM().fit_rows(generated(5), None, seed=0)  # compiles
    data = generated(queries)
    rows = data.features.nbytes / 2**20
    before, started = peak(), time.perf_counter()
    fit = RankSVM(C=0.001).fit_rows(data, None, seed=0)
    seconds, more = time.perf_counter() - started, peak() - before
    pairs = PairLoss(data, 1.0).pair_count
    matrix = pairs * DIMS * 8 / 2**20
    print(f"{data.row_count:,} rows ({rows:,.0f} MB), {pairs:,} pairs; nDCG@10 {fit.history[-1]['train']:.3f}")
    print(f"ranksvm            {more:10,.0f} MB more at its peak   {seconds:.1f} s")
    print(f"matrix of pairs    {matrix:10,.0f} MB   {matrix / max(more, 1):,.0f} x as much")


if __name__ == "__main__":
    main()
