"""Peak memory of `evaluate` for 200 run files with 10,000 queries, against a limit of 2 GB.

    python benchmarks/evaluate_many.py [--quick]

The command also writes the HTML page and the CSV files.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from quick import judge_limits, parse_quick

DEPTH, LIMIT_MB = 10, 2000
CODE = "from shaketable.cli import main; main()"


def write_files(folder: Path, runs: int, queries: int) -> list[Path]:
    """Write a qrels file and run files, and return their paths."""
    rng = np.random.default_rng(1)
    qids = [f"q{number}" for number in range(queries)]
    qrels = folder / "qrels"
    qrels.write_text("".join(f"{qid} 0 d{number} {number % 3}\n" for qid in qids for number in range(5)))
    paths = []
    for run in range(runs):
        docs = rng.permuted(np.tile(np.arange(30), (queries, 1)), axis=1)[:, :DEPTH].tolist()
        path = folder / f"system{run}.run"
        with path.open("w", encoding="utf-8") as out:
            for qid, row in zip(qids, docs, strict=True):
                ranked = enumerate(row, 1)
                out.writelines(f"{qid} Q0 d{doc} {rank} {DEPTH - rank}.5 system{run}\n" for rank, doc in ranked)
        paths.append(path)
    return [qrels, *paths]


def main() -> int:
    quick = parse_quick(__doc__)
    runs, queries = (2, 5) if quick else (200, 10_000)
    with tempfile.TemporaryDirectory() as folder:
        qrels, *paths = write_files(Path(folder), runs, queries)
        words = ["evaluate", "--qrels", qrels, "--html", f"{folder}/page.html", "--csv", f"{folder}/tables"]
        words += [word for path in paths for word in ("--run", path)]
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", CODE, *map(str, words)], check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(
        f"{runs} runs x {queries:,} queries x {DEPTH} documents: peak memory {peak:,.0f} MB (limit {LIMIT_MB:,} MB), "
        f"{seconds:.0f} s"
    )
    return judge_limits(peak < LIMIT_MB, quick)


if __name__ == "__main__":
    sys.exit(main())
