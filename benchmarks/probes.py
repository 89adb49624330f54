"""Time of probes: matching against a comparison of all pairs, and the whole suite against parsing and scoring alone.

    python benchmarks/probes.py [--quick] [--data FOLDER]

Matching: a pool of 10,000 judged documents and the 18 rows of Table 1 of paper 001. Goal: 50 times as fast as comparing
all pairs in plain Python, whose time is measured on a part of the pool and extrapolated with the square of the size.
Suite: all probes of BM25, against parsing the distinct texts once and scoring the distinct pairs. Limit: 1.5 times with
spaCy. The parser `light` is twenty times as fast, so that generating the texts (24 per document) takes most of the
time; the script prints that ratio too, without a limit.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from quick import judge_limits, make_parser

from shaketable.api.ranker_names import build_models
from shaketable.datasets.load import load
from shaketable.experiment import Experiment
from shaketable.nlp.parser import open_parser
from shaketable.probes.batch import PairTable, draw_batch
from shaketable.probes.matched_pairs import find_matched_pairs
from shaketable.probes.presets import PAPER_CONTROLS
from shaketable.probes.suite import select_probes
from shaketable.tasks._probe_scoring import score_pair_table
from shaketable.tasks.probes import ProbesTask

POOL_SIZE, PART_SIZE, MIN_SPEED_UP, MAX_SUITE_RATIO = 10_000, 400, 50, 1.5
CRANFIELD = Path(__file__).parents[2] / "shared" / "data" / "collections" / "cranfield"


def count_matched_pairs(variable: list[list[float]], control: list[list[float]]) -> int:
    """Count the matched pairs by comparing all pairs of documents."""
    pairs = 0
    for a in range(len(variable)):
        for b in range(len(variable)):
            if control[a] == control[b]:
                d = [x - y for x, y in zip(variable[a], variable[b], strict=True)]
                pairs += all(x >= 0 for x in d) and any(x > 0 for x in d)
    return pairs


def draw_pool(size: int) -> dict[str, np.ndarray]:
    """Draw the characteristics of documents as in a test collection, for a query of three terms."""
    rng = np.random.default_rng(0)
    length = np.maximum(rng.lognormal(3.6, 0.5, size).round(), 3)
    tf = rng.poisson([1.2, 0.8, 0.4], (size, 3)).astype(float)
    total = tf.sum(axis=1)
    overlap = np.where(total > 0, total / length, np.nan)
    grade = rng.choice(4, size, p=[0.55, 0.2, 0.15, 0.1]).astype(float)
    columns = {"relevance": grade, "length": length, "sum_tf": total, "overlap": overlap}
    return {name: values[:, None] for name, values in columns.items()} | {"tf": tf}


def compare_matching(size: int, part: int) -> bool:
    """Print the speed-up over plain Python for the 18 pairs of variable and control; return True if the goal is met."""
    pool, ours, theirs = draw_pool(size), 0.0, 0.0
    for variable, controls in PAPER_CONTROLS.items():
        for control in controls:
            started = time.perf_counter()
            first, _ = find_matched_pairs(pool[variable], [pool[control]], [0.0], max_pairs=size**2)
            fast = time.perf_counter() - started
            some = (pool[variable][:part].tolist(), pool[control][:part].tolist())
            started = time.perf_counter()
            count_matched_pairs(*some)
            slow = (time.perf_counter() - started) * (size / part) ** 2
            rate = f"{len(first):>12,} pairs in {fast:5.2f} s, {slow / fast:6.0f} x plain Python"
            print(f"{variable:9} | {control:9} {rate}")
            ours, theirs = ours + fast, theirs + slow
    print(f"matching, in total: {theirs / ours:.0f} x plain Python (goal {MIN_SPEED_UP})")
    return bool(theirs / ours >= MIN_SPEED_UP)


def measure_suite(folder: Path | str, tool: str, max_documents: int = 0) -> float:
    """Return the time of the whole suite relative to parsing and scoring alone."""
    collection = load(folder)
    task = ProbesTask(delta_queries=5, max_documents=max_documents, parser=tool)
    experiment = Experiment(collection, build_models(["bm25"]))
    ProbesTask(probes=("tf-given-length", "fluency"), parser=tool).run(experiment)  # builds the index, loads the parser
    experiment = Experiment(collection, build_models(["bm25"]))
    experiment.get_run("bm25")
    started = time.perf_counter()
    task.run(experiment)
    whole = time.perf_counter() - started
    experiment = Experiment(collection, build_models(["bm25"]))
    experiment.get_run("bm25")
    context, units = task._make_context(experiment), PairTable()
    for probe in select_probes(task.probes):
        if not probe.unavailable_reason(context):
            draw_batch(probe, context, units)
    texts = list(context._parse_cache)
    started = time.perf_counter()
    open_parser(tool).parse(texts)
    parsing = time.perf_counter() - started
    started = time.perf_counter()
    score_pair_table(experiment, "bm25", units)
    scoring = time.perf_counter() - started
    ratio = whole / (parsing + scoring)
    parts = f"parsing {len(texts):,} texts {parsing:.2f} s, scoring {len(units.pairs):,} pairs {scoring:.2f} s"
    print(f"suite on {collection.name}, {tool}: {whole:.2f} s; {parts}; ratio {ratio:.2f}")
    return ratio


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, default=CRANFIELD, help="a collection, by default cranfield")
    given = parser.parse_args()
    quick, folder = given.quick, given.data
    is_fast = compare_matching(*((500, 50) if quick else (POOL_SIZE, PART_SIZE)))
    if quick:
        measure_suite("sample", "light", max_documents=5)
        return judge_limits(is_fast, quick)
    if not folder.exists():
        print(f"the suite is not measured: {folder} does not exist")
        return judge_limits(is_fast, quick)
    measure_suite(folder, "light")
    ratio = measure_suite(folder, "spacy")
    print(f"suite with spaCy: {ratio:.2f} x parsing and scoring (limit {MAX_SUITE_RATIO})")
    return judge_limits(ratio <= MAX_SUITE_RATIO and is_fast, quick)


if __name__ == "__main__":
    sys.exit(main())
