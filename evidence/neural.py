"""The small nets beside BM25: trained on some queries of rag24, tested on others, with three seeds and a control.

make evidence PAGE=neural        (about an hour on two cores; models and scores are kept, so it may be cut off)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from evidence import DATA, Guard, Page, Rows, line, need_data, prose, table
from shaketable.core.documents import Run
from shaketable.core.home import home_folder
from shaketable.core.protocols import Learner, Model
from shaketable.core.registries import LEARNERS, RANKERS
from shaketable.datasets.load import load
from shaketable.experiment import Experiment
from shaketable.measures.effectiveness import score_table
from shaketable.measures.significance import t_test
from shaketable.rankers.saved import SavedModel
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store
from shaketable.training.plan import ShuffledLabelSource, TrainingPlan

MEASURES = ("nDCG@10", "AP")
VECTORS = DATA / "vectors" / "glove.6B.50d.60k.txt.gz"
WORDS = ("drmm", "knrm", "conv_knrm", "duet")
NETS = ("dssm", *WORDS)
STEPS = {"conv_knrm": 200}
"""Steps at most, where those of the learner would take a quarter of an hour."""
FEW = ("knrm(steps=300)", *(f"knrm(steps=300, teacher={name!r}, sentences=400)" for name in ("bm25", "dense")))
"""What learns on the sample, where judgements are few."""
SEEDS, LEVEL = (0, 1, 2), 0.05
HEAD = ("ranker", *MEASURES, "control", "difference", "p", "steps", "minutes")

Values = dict[str, NDArray[np.float64]]
"""measure -> per query"""


def net(name: str) -> Learner:
    """A small net with the settings of this page."""
    learner = LEARNERS.build(name)
    if name in WORDS:
        learner = replace(learner, vectors=str(VECTORS))
    return replace(learner, steps=STEPS[name]) if name in STEPS else learner


def open_rag24(*models: str) -> Experiment:
    """The test queries of rag24, whose train queries are what is learned from; scores are kept."""
    store = Store(home_folder() / "scores.sqlite")
    return Experiment(
        load(DATA / "collections" / "rag24"), {m: RANKERS.build(m) for m in models}, ScoringEngine(store), split="test"
    )


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
        return np.asarray(np.mean([run[measure] for run in self.runs], axis=0))

    @property
    def trained(self) -> bool:
        """Above its control, and not by chance."""
        ours, theirs = self.mean("nDCG@10"), self.control["nDCG@10"]
        return bool(ours.mean() > theirs.mean() and float(t_test(theirs, ours)) < LEVEL)

    def cells(self, base: Values) -> list[str]:
        """The row of the table."""
        said = compared(base, self.mean("nDCG@10")) if self.trained else ["untrained", ""]
        steps = ", ".join(f"{step:g}" for step in self.steps)
        values = [spread(self.runs, measure) for measure in MEASURES]
        return [self.name, *values, f"{self.control['nDCG@10'].mean():.4f}", *said, steps, f"{self.seconds / 60:.1f}"]


def spread(runs: Sequence[Values], measure: str) -> str:
    """Mean and standard deviation over seeds."""
    means = [run[measure].mean() for run in runs]
    return f"{np.mean(means):.4f}" + (f" ± {np.std(means, ddof=1):.4f}" if len(means) > 1 else "")


def compared(base: Values, values: NDArray[np.float64]) -> list[str]:
    """The difference from BM25 in nDCG@10, and p."""
    p = float(t_test(base["nDCG@10"], values))
    return [f"{values.mean() - base['nDCG@10'].mean():+.4f}", f"{p:.3f}" if p >= 0.0005 else "< 0.001"]


def measured(experiment: Experiment, run: Run) -> Values:
    return {measure: score_table(measure, experiment.qrels, {"": run}).values[0] for measure in MEASURES}


def reranked(experiment: Experiment, model: Model) -> Values:
    """What re-ranking BM25's list comes to, per query."""
    alone = replace(experiment.with_collection(experiment.collection, experiment.split), models={"model": model})
    return measured(experiment, alone.rerank("model", experiment.texts, experiment.candidates))


def row(
    name: str,
    learner: Any,
    experiment: Experiment,
    seeds: Sequence[int],
    control_steps: int | None = None,
    depth: int = 100,
) -> Row:
    """Train with each seed, and once on labels dealt out at random; measure all."""
    how = LEARNERS.build(learner) if isinstance(learner, str) else learner
    shallow = experiment.with_depth(depth)
    models = [replace(shallow, seed=seed).fit(how, "train") for seed in seeds]
    short = replace(how, steps=control_steps, every=control_steps) if control_steps else how
    control = shallow.fit(short, "train", plan=TrainingPlan(ShuffledLabelSource()))
    cards = [model.read_card() for model in models]
    seconds = float(np.mean([card["seconds"] for card in cards]))
    runs = [reranked(experiment, model) for model in models]
    return Row(name, runs, reranked(experiment, control), [card["best"] for card in cards], seconds)


def baseline(name: str, values: Values, base: Values | None = None) -> list[str]:
    """The row of a ranker that is not trained here."""
    cells = [f"{values[measure].mean():.4f}" for measure in MEASURES]
    return [name, *cells, "", *(compared(base, values["nDCG@10"]) if base else ["", ""]), "", ""]


def few(experiment: Experiment) -> list[list[str]]:
    """Learning from a teacher, on the bundled sample."""
    rows = []
    for name in ("bm25", "dense"):
        values = reranked(experiment, RANKERS.build(name))
        rows.append([name, *(f"{values[measure].mean():.4f}" for measure in MEASURES)])
    for name in FEW:
        models: list[SavedModel] = [replace(experiment, seed=seed).fit(name, "train") for seed in SEEDS]
        runs = [reranked(experiment, model) for model in models]
        rows.append([f"`{name}`", *(spread(runs, measure) for measure in MEASURES)])
        print(line(rows[-1]), flush=True)
    return rows


def measure() -> Rows:
    need_data("collections", "rag24")
    torch.set_num_threads(1)  # the sums of several threads lead to other weights
    experiment = open_rag24("bm25")
    base = reranked(experiment, experiment.models["bm25"])
    rows = [baseline("bm25", base)]
    for name in NETS:
        rows.append(row(name, net(name), experiment, SEEDS).cells(base))
        print(line(rows[-1]), flush=True)
    sample = Experiment(load("sample"), {}, experiment.engine, split="test")
    return {
        "sizes": describe(experiment),
        "rag24": rows,
        "sizes of the sample": describe(sample),
        "sample": few(sample),
    }


def describe(experiment: Experiment) -> dict[str, int]:
    """Return how many queries there are to learn from and to test on, and how long lists are."""
    train = len(experiment.collection.splits["train"])
    return {"train": train, "test": len(experiment.queries), "depth": experiment.depth}


def compose(found: Rows) -> list[str]:
    sizes, sample = found["sizes"], found["sizes of the sample"]
    return [
        prose(f"""Trained on the train queries ({sizes["train"]}, judged by an LLM; a fifth of them validates), tested
        on {sizes["test"]} test queries (judged by people), re-ranking BM25's top {sizes["depth"]}. Mean and standard
        deviation are over {len(SEEDS)} seeds. The control is the same learner on labels dealt out at random; a ranker
        that is not above it (paired t-test, p < {LEVEL}) is untrained, and nothing is claimed of it. Difference and p
        are those from BM25 in nDCG@10, by a paired t-test. Steps are those of the weights kept (conv_knrm was given
        {STEPS["conv_knrm"]}, the others what their learners have); minutes are those of one training, validation
        included, on two cores that had other work to do. Words are read by GloVe vectors of 50 numbers, but dssm reads
        letters."""),
        table(HEAD, found["rag24"]),
        "## Where judgements are few",
        prose(f"""The bundled sample has {sample["train"]} train queries. A teacher needs no judgements: its margins are
        learned on these queries and on 400 sentences of passages. Tested on {sample["test"]} queries of the sample,
        re-ranking BM25's top {sample["depth"]}; mean and standard deviation over {len(SEEDS)} seeds; vectors are
        learned."""),
        table(("ranker", *MEASURES), found["sample"]),
    ]


def baseline_row() -> list[str]:
    experiment = open_rag24("bm25")
    return baseline("bm25", reranked(experiment, experiment.models["bm25"]))


def taught_row() -> list[str]:
    """Return the row of a net that learned from judgements, three times."""
    torch.set_num_threads(1)
    sample = Experiment(load("sample"), {}, ScoringEngine(), split="test")
    runs = [reranked(sample, replace(sample, seed=seed).fit(FEW[0], "train")) for seed in SEEDS]
    return [f"`{FEW[0]}`", *(spread(runs, measure) for measure in MEASURES)]


PAGE = Page(
    __file__,
    "Small neural rankers on rag24",
    measure,
    compose,
    (
        Guard("rag24", "the row of bm25", baseline_row),
        Guard("sample", f"the row of `{FEW[0]}` on the sample, trained again", taught_row, slow=True),
    ),
)

if __name__ == "__main__":
    PAGE.main()
