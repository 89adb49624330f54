"""Peak memory and time of RankSVM, against the size of a matrix of all pair differences.

    python benchmarks/ranksvm_memory.py [--quick]

2,000 queries x 100 documents x 136 features. Peak memory is the largest resident memory of the process during the
training, minus that before the training. The script computes the size of the matrix, which LinearSVC would need as
input, without allocating it.
"""

from __future__ import annotations

import resource
import time

import numpy as np
from quick import parse_quick

from shaketable.datasets.letor import Letor
from shaketable.training.linear import PairLoss, RankSVM

QUERIES, DOCS, DIMS = 2_000, 100, 136


def generate_data(queries: int) -> Letor:
    """Return feature rows with grades 0 to 4, mostly low, which depend on five features and noise."""
    rng = np.random.default_rng(0)
    features = rng.random((queries * DOCS, DIMS), dtype=np.float32)
    relevance = features[:, :5].sum(axis=1) + rng.normal(size=len(features))
    labels = np.digitize(relevance, np.quantile(relevance, [0.55, 0.85, 0.97, 0.99]))
    docnos = tuple(map(str, range(len(features))))
    return Letor(features, labels, np.arange(queries + 1) * DOCS, tuple(map(str, range(queries))), docnos)


def measure_peak_mb() -> float:
    """Return the peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    queries = 20 if parse_quick(__doc__) else QUERIES
    RankSVM().fit_rows(generate_data(5), None, seed=0)  # compiles
    data = generate_data(queries)
    input_mb = data.features.nbytes / 2**20
    before, started = measure_peak_mb(), time.perf_counter()
    fit = RankSVM(C=0.001).fit_rows(data, None, seed=0)
    seconds, peak = time.perf_counter() - started, measure_peak_mb() - before
    pairs = PairLoss(data, 1.0).pair_count
    matrix = pairs * DIMS * 8 / 2**20
    print(f"{data.row_count:,} rows ({input_mb:,.0f} MB), {pairs:,} pairs; nDCG@10 {fit.history[-1]['train']:.3f}")
    print(f"ranksvm, additional peak memory  {peak:10,.0f} MB, time {seconds:.1f} s")
    print(f"matrix of pair differences       {matrix:10,.0f} MB, ratio {matrix / max(peak, 1):,.0f}")


if __name__ == "__main__":
    main()
