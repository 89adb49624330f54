"""The neural rankers beside BM25: trained on one part of a collection's queries, tested on another.

    python evidence/neural.py [NAME ...] [--steps N]

Reads ../shared/data and writes docs/evidence/neural.md. Models and scores are kept in $SHAKETABLE_HOME, and a training
that was cut off goes on, so the page may be made in several sittings: some hours without a GPU. With names only these
rows are made and the page is printed, not written; --steps shortens all trainings, to see whether everything runs.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill

import numpy as np
from numpy.typing import NDArray

from shaketable.bench import Bench
from shaketable.data.beir import in_split
from shaketable.data.load import load
from shaketable.files import home
from shaketable.measure.effectiveness import score_table
from shaketable.measure.significance import t_test
from shaketable.registry import LEARNERS, RANKERS
from shaketable.score.road import Road
from shaketable.score.store import Store
from shaketable.types import Collection, Model, Run

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
PAGE = ROOT / "docs" / "evidence" / "neural.md"
VECTORS = DATA / "vectors" / "glove.6B.50d.60k.txt.gz"
MEASURES = ("nDCG@10", "AP")
DEPTH = {"bert": 50, "colbert": 50}
"""Where negatives come from and what validation ranks: the best 100, and half of it where that takes minutes."""
CONTROL = {"bert": 50, "colbert": 50}
"""Steps of the controls that take minutes."""
STEPS = {"conv_knrm": 200}
"""Steps at most, where those of the learner would take a quarter of an hour."""
SEEDS = {"bert": (0,), "colbert": (0,)}
WORDS = ("drmm", "knrm", "conv_knrm", "duet")
LEARNED = ("dssm", *WORDS, "bert", "colbert")
FEW = ("knrm(steps=300)", *(f"knrm(steps=300, teacher={name!r}, sentences=400)" for name in ("bm25", "dense")))
"""What learns on the sample, where judgements are few."""
LEVEL = 0.05

Values = dict[str, NDArray[np.float64]]
"""measure -> per query"""


@dataclass(frozen=True)
class Row:
    """A learner's models, the control that learned nothing, and what they took."""

    name: str
    runs: list[Values]
    control: Values
    steps: list[float]
    seconds: float

    def mean(self, measure: str) -> NDArray[np.float64]:
        """Per query, over the seeds."""
        over: NDArray[np.float64] = np.mean([run[measure] for run in self.runs], axis=0)
        return over

    @property
    def trained(self) -> bool:
        """Above its control, and not by chance."""
        ours, theirs = self.mean("nDCG@10"), self.control["nDCG@10"]
        return bool(ours.mean() > theirs.mean() and float(t_test(theirs, ours)) < LEVEL)

    def line(self, base: Values) -> str:
        cells = [spread(self.runs, measure) for measure in MEASURES]
        said = compared(base, self.mean("nDCG@10")) if self.trained else "untrained | "
        steps = ", ".join(f"{step:g}" for step in self.steps)
        return (
            f"| {self.name} | {' | '.join(cells)} | {self.control['nDCG@10'].mean():.4f} | {said} "
            f"| {steps} | {self.seconds / 60:.1f} |"
        )


def spread(runs: Sequence[Values], measure: str) -> str:
    """Mean and standard deviation over seeds."""
    means = [run[measure].mean() for run in runs]
    return f"{np.mean(means):.4f}" + (f" ± {np.std(means, ddof=1):.4f}" if len(means) > 1 else "")


def compared(base: Values, found: NDArray[np.float64]) -> str:
    """The difference from BM25 in nDCG@10, and p."""
    p = float(t_test(base["nDCG@10"], found))
    return f"{found.mean() - base['nDCG@10'].mean():+.4f} | {f'{p:.3f}' if p >= 0.0005 else '< 0.001'}"


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("names", nargs="*", help="rows to make; all without names")
    asked.add_argument("--steps", type=int, help="of each training, at most")
    given = asked.parse_args()
    if not DATA.is_dir():
        sys.exit(f"real data is not at {DATA}: nothing to show")
    collection = load(DATA / "collections" / "rag24")
    road = Road(Store(home() / "scores.sqlite"))
    bench = Bench(in_split(collection, "test"), {name: RANKERS.build(name) for name in ("bm25", "dense")}, road)
    base = values(bench, bench.models["bm25"])
    page = heading(bench, base)
    for name in given.names or LEARNED:
        made = row(name, collection, bench, given.steps)
        page.append(made.line(base))
        print(page[-1], flush=True)
    if not given.names:
        page += few(road, given.steps)
    text = "\n".join(page) + "\n"
    if not (given.names or given.steps):
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(text, encoding="utf-8")
    print(text)


def heading(bench: Bench, base: Values) -> list[str]:
    # searching comes first: it leaves the vectors of all passages on disk
    searched = measured(bench, bench.answer("dense", bench.texts))
    ready = {"dense": values(bench, bench.models["dense"]), "dense, searching all passages": searched}
    said = f"""Trained on the train queries (215, judged by an LLM; a fifth of them validates), tested on
        {len(bench.queries)} test queries (judged by people), re-ranking BM25's top 100. Mean and standard deviation are
        over seeds. The control is the same learner on labels dealt out at random (bert and colbert: for 50 steps); a
        ranker that is not above it (paired t-test, p < {LEVEL}) is untrained, and nothing is claimed of it. Difference
        and p are those from BM25 in nDCG@10, by a paired t-test. Steps are those of the weights kept (conv_knrm was
        given {STEPS["conv_knrm"]}, the others what their learners have); minutes are those of one training on two
        cores, validation included, and the machine had other work to do at times. Reproduce with
        `python evidence/neural.py`. With so few queries a lead of 0.02 over BM25 may be chance: look at p."""
    lines = [
        "# Neural rankers on rag24",
        "",
        fill(" ".join(said.split()), 120),
        "",
        "| ranker | nDCG@10 | AP | control | difference | p | steps | minutes |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, found in ({"bm25": base} | ready).items():
        against = compared(base, found["nDCG@10"]) if name in ready else " | "
        lines.append(f"| {name} | {' | '.join(f'{found[m].mean():.4f}' for m in MEASURES)} | | {against} | | |")
    return lines


def row(name: str, collection: Collection, bench: Bench, steps: int | None) -> Row:
    runs, kept, seconds = [], [], []
    for seed in SEEDS.get(name, (0, 1, 2)):
        folder = fit(name, collection, seed, steps)
        runs.append(values(bench, RANKERS.build(str(folder))))
        kept.append(card(folder)["best"])
        seconds.append(card(folder)["seconds"])
        print(f"{name}, seed {seed}: {runs[-1]['nDCG@10'].mean():.4f}, {seconds[-1]:.0f} s", flush=True)
    control = fit(name, collection, 0, steps, control=True)
    return Row(name, runs, values(bench, RANKERS.build(str(control))), kept, float(np.mean(seconds)))


def few(road: Road, steps: int | None) -> list[str]:
    """The section on learning from a teacher."""
    sample = load("sample")
    bench = Bench(in_split(sample, "test"), {}, road)
    said = f"""The bundled sample has {len(sample.splits["train"])} train queries. A teacher needs no judgements: its
        margins are learned on these queries and on 400 sentences of passages. Tested on {len(bench.queries)} queries of
        the sample, re-ranking BM25's top 100; mean and standard deviation over three seeds; vectors are learned."""
    lines = ["", "## Where judgements are few", "", fill(" ".join(said.split()), 120), ""]
    lines += ["| ranker | nDCG@10 | AP |", "|---|---:|---:|"]
    for name in ("bm25", "dense"):
        found = values(bench, RANKERS.build(name))
        lines.append(f"| {name} | {' | '.join(f'{found[measure].mean():.4f}' for measure in MEASURES)} |")
    for name in FEW:
        runs = [values(bench, RANKERS.build(str(fit(name, sample, seed, steps)))) for seed in (0, 1, 2)]
        lines.append(f"| {name} | {' | '.join(spread(runs, measure) for measure in MEASURES)} |")
        print(lines[-1], flush=True)
    return lines


def fit(name: str, collection: Collection, seed: int, steps: int | None, control: bool = False) -> Path:
    """The folder of a model, trained if it is not there yet."""
    learner = LEARNERS.build(name)
    if collection.name != "sample" and learner.kind in WORDS:
        learner = replace(learner, vectors=str(VECTORS))
    if most := steps or (CONTROL.get(name) if control else None) or STEPS.get(name):
        learner = replace(learner, steps=most, every=min(most, learner.every))
    parts = [re.sub(r"\W+", "-", name).strip("-"), str(seed), "control" * control, str(steps or "")]
    folder = home() / "evidence" / "neural" / collection.name / "-".join(filter(None, parts))
    if not (folder / "model.json").exists():
        train, valid = collection.splits["train"], collection.splits.get("validation", ())
        depth = DEPTH.get(name, 100)
        learner.fit(collection, train, valid, seed=seed, folder=folder, depth=depth, control=control)
    return folder


def card(folder: Path) -> dict[str, float]:
    about: dict[str, dict[str, float]] = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    return about["card"]


def values(bench: Bench, model: Model) -> Values:
    """What re-ranking the candidates comes to, per query."""
    return measured(bench, bench.rerank(model.open(bench.collection), bench.texts, bench.candidates))


def measured(bench: Bench, run: Run) -> Values:
    return {measure: score_table(measure, bench.qrels, {"": run}).values[0] for measure in MEASURES}


if __name__ == "__main__":
    main()
