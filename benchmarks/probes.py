"""Behaviour tests: matching against a comparison of all pairs, and the whole suite against what cannot be avoided.

    python benchmarks/probes.py [--quick] [--data FOLDER]

Matching: a pool of 10,000 judged documents, the 18 rows of paper 001's Table 1; goal 50 times as fast as comparing all
pairs in plain Python, whose time is measured on a part of the pool and grows with its square. The suite: all tests for
BM25, against scoring their distinct pairs and one linguistic pass over the distinct texts: at most 1.5 times with
spaCy. Our light rules read twenty times as fast, so with them the texts that are made (24 of each document) are most of
the time; that ratio is printed too.
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

SIZE, PART, GOAL, LIMIT = 10_000, 400, 50, 1.5
CRANFIELD = Path(__file__).parents[2] / "shared" / "data" / "collections" / "cranfield"


def plain(variable: list[list[float]], control: list[list[float]]) -> int:
    """All pairs, one by one."""
    pairs = 0
    for a in range(len(variable)):
        for b in range(len(variable)):
            if control[a] == control[b]:
                d = [x - y for x, y in zip(variable[a], variable[b], strict=True)]
                pairs += all(x >= 0 for x in d) and any(x > 0 for x in d)
    return pairs


def pool(size: int) -> dict[str, np.ndarray]:
    """Documents like those of a test collection: lengths of a hundred, few of the query's three terms."""
    rng = np.random.default_rng(0)
    length = np.maximum(rng.lognormal(3.6, 0.5, size).round(), 3)
    tf = rng.poisson([1.2, 0.8, 0.4], (size, 3)).astype(float)
    total = tf.sum(axis=1)
    overlap = np.where(total > 0, total / length, np.nan)
    grade = rng.choice(4, size, p=[0.55, 0.2, 0.15, 0.1]).astype(float)
    columns = {"relevance": grade, "length": length, "sum_tf": total, "overlap": overlap}
    return {name: values[:, None] for name, values in columns.items()} | {"tf": tf}


def matching(size: int, part: int) -> bool:
    """How many times as fast as plain Python, over the 18 pairs of variable and control."""
    whole, ours, theirs = pool(size), 0.0, 0.0
    for variable, controls in PAPER_CONTROLS.items():
        for control in controls:
            started = time.perf_counter()
            first, _ = find_matched_pairs(whole[variable], [whole[control]], [0.0], max_pairs=size**2)
            fast = time.perf_counter() - started
            some = (whole[variable][:part].tolist(), whole[control][:part].tolist())
            started = time.perf_counter()
            plain(*some)
            slow = (time.perf_counter() - started) * (size / part) ** 2
            rate = f"{len(first):>12,} pairs in {fast:5.2f} s, {slow / fast:6.0f} x plain Python"
            print(f"{variable:9} | {control:9} {rate}")
            ours, theirs = ours + fast, theirs + slow
    print(f"together {theirs / ours:.0f} x plain Python (goal {GOAL})")
    return bool(theirs / ours >= GOAL)


def suite(folder: Path | str, tool: str, max_documents: int = 0) -> float:
    """The time of the whole suite over its bare cost."""
    collection = load(folder)
    task = ProbesTask(delta_queries=5, max_documents=max_documents, parser=tool)
    experiment = Experiment(collection, build_models(["bm25"]))
    ProbesTask(probes=("tf-given-length", "fluency"), parser=tool).run(experiment)  # the index, and what is loaded once
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
    parts = f"reading {len(texts):,} texts {parsing:.2f} s, scoring {len(units.pairs):,} pairs {scoring:.2f} s"
    print(f"suite on {collection.name}, {tool}: {whole:.2f} s; {parts}; ratio {ratio:.2f}")
    return ratio


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, default=CRANFIELD, help="a collection, by default cranfield")
    given = parser.parse_args()
    quick, folder = given.quick, given.data
    kept = matching(*((500, 50) if quick else (SIZE, PART)))
    if quick:
        suite("sample", "light", max_documents=20)
        return judge_limits(kept, quick)
    if not folder.exists():
        print(f"no collection at {folder}: the suite was not timed")
        return judge_limits(kept, quick)
    suite(folder, "light")
    ratio = suite(folder, "spacy")
    print(f"with spaCy {ratio:.2f} (limit {LIMIT})")
    return judge_limits(ratio <= LIMIT and kept, quick)


if __name__ == "__main__":
    sys.exit(main())
