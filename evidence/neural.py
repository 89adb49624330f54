"""The neural rankers beside BM25: trained on one part of a collection's queries, tested on another.

    python evidence/neural.py [NAME ...] [--steps N]

Reads ../shared/data and writes docs/evidence/neural.md. Models and scores are kept in $SHAKETABLE_HOME, and a training
that was cut off goes on, so the page may be made in several sittings: some hours without a GPU. With names only these
rows are made and the page is printed, not written; --steps shortens all trainings, to see whether everything runs.
"""

from __future__ import annotations

import argparse
import json
import sys
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
SEEDS = {"bert": (0,), "colbert": (0,)}
WORDS = ("drmm", "knrm", "conv_knrm", "duet")
LEARNED = ("dssm", *WORDS, "bert", "colbert")
TAUGHT = {"teacher": "dense", "sentences": 1000}
TAUGHT_TOO = ("dssm", "knrm")
"""Rankers with a second row: first they learn the margins of `dense`, then the judgements."""
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
        cells = []
        for measure in MEASURES:
            means = [run[measure].mean() for run in self.runs]
            cells.append(f"{np.mean(means):.4f}" + (f" ± {np.std(means, ddof=1):.4f}" if len(means) > 1 else ""))
        p = float(t_test(base["nDCG@10"], self.mean("nDCG@10")))
        difference = self.mean("nDCG@10").mean() - base["nDCG@10"].mean()
        said = f"{difference:+.4f} | {p:.3f}" if self.trained else "untrained | "
        steps = ", ".join(f"{step:g}" for step in self.steps)
        return (
            f"| {self.name} | {' | '.join(cells)} | {self.control['nDCG@10'].mean():.4f} | {said} "
            f"| {steps} | {self.seconds / 60:.1f} |"
        )


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
    names = given.names or [*LEARNED, *(f"{name} (taught)" for name in TAUGHT_TOO)]
    for name in names:
        made = row(name, collection, bench, given.steps)
        page.append(made.line(base))
        print(page[-1], flush=True)
    text = "\n".join(page) + "\n"
    if not (given.names or given.steps):
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(text, encoding="utf-8")
    print(text)


def heading(bench: Bench, base: Values) -> list[str]:
    # searching comes first: it leaves the vectors of all passages on disk, for whoever learns from dense
    searched = measured(bench, bench.answer("dense", bench.texts))
    ready = {"dense": values(bench, bench.models["dense"]), "dense, searching all passages": searched}
    said = f"""Trained on the train queries (215, judged by an LLM; a fifth of them validates), tested on
        {len(bench.queries)} test queries (judged by people), re-ranking BM25's top 100. Mean and standard deviation are
        over seeds. The control is the same learner on labels dealt out at random (bert and colbert: for 50 steps); a
        ranker that is not above it (paired t-test, p < {LEVEL}) is untrained, and nothing is claimed of it. Difference
        and p are those from BM25 in nDCG@10, by a paired t-test. "Taught" rankers learn the margins of `dense` on the
        train queries and on {TAUGHT["sentences"]} sentences of passages, then the judgements. Steps are those of the
        weights kept; minutes are those of one training on two cores, validation included, and the machine had other
        work to do at times. Reproduce with `python evidence/neural.py`."""
    lines = [
        "# Neural rankers on rag24",
        "",
        fill(" ".join(said.split()), 120),
        "",
        "| ranker | nDCG@10 | AP | control | difference | p | steps | minutes |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, found in ({"bm25": base} | ready).items():
        difference = found["nDCG@10"].mean() - base["nDCG@10"].mean()
        p = float(t_test(base["nDCG@10"], found["nDCG@10"]))
        compared = f"{difference:+.4f} | {p:.3f}" if name in ready else " | "
        lines.append(f"| {name} | {' | '.join(f'{found[m].mean():.4f}' for m in MEASURES)} | | {compared} | | |")
    return lines


def row(name: str, collection: Collection, bench: Bench, steps: int | None) -> Row:
    kind = name.partition(" ")[0]
    runs, kept, seconds = [], [], []
    for seed in SEEDS.get(kind, (0, 1, 2)):
        folder, spent = fit(name, collection, seed, steps)
        runs.append(values(bench, RANKERS.build(str(folder))))
        kept.append(card(folder)["best"])
        seconds.append(spent)
        print(f"{name}, seed {seed}: {runs[-1]['nDCG@10'].mean():.4f}, {spent:.0f} s", flush=True)
    control, _ = fit(name, collection, 0, steps, control=True)
    return Row(name, runs, values(bench, RANKERS.build(str(control))), kept, float(np.mean(seconds)))


def fit(name: str, collection: Collection, seed: int, steps: int | None, control: bool = False) -> tuple[Path, float]:
    """The folder of a model, trained if it is not there yet, and the seconds of its training."""
    kind, _, taught = name.partition(" ")
    learner = LEARNERS.build(kind)
    if kind in WORDS:
        learner = replace(learner, vectors=str(VECTORS))
    if most := steps or (CONTROL.get(kind) if control else None):
        learner = replace(learner, steps=most, every=min(most, learner.every))
    place = (
        home() / "evidence" / "neural" / f"{kind}-{seed}{'-control' if control else ''}{f'-{steps}' if steps else ''}"
    )
    stages = [(place, learner)]
    if taught:
        first, second = place.with_name(f"{place.name}-taught"), place.with_name(f"{place.name}-taught-judged")
        stages = [(first, replace(learner, **TAUGHT)), (second, replace(learner, start=str(first)))]
    for folder, settings in stages:
        if not (folder / "model.json").exists():
            depth = DEPTH.get(kind, 100)
            settings.fit(collection, collection.splits["train"], seed=seed, folder=folder, depth=depth, control=control)
    return stages[-1][0], sum(card(folder)["seconds"] for folder, _ in stages)


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
