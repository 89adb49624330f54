"""Rankers with short trainings on rag24, for the pages that are not yet made with the rankers of `_rankers`."""

from __future__ import annotations

from dataclasses import replace

from evidence import DATA
from shaketable.core.home import home_folder
from shaketable.core.protocols import Learner, Model
from shaketable.core.registries import LEARNERS, RANKERS
from shaketable.datasets.load import load
from shaketable.datasets.splits import split_held_out
from shaketable.experiment import Experiment
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store

VECTORS = DATA / "vectors" / "glove.6B.50d.60k.txt.gz"
WORD_NETS = ("drmm", "knrm", "conv_knrm", "duet")
STEPS = {"conv_knrm": 200}
"""Steps at most, where those of the learner would take a quarter of an hour."""
_SHORT = "lists=8, size=4, steps=60, every=60"
ENCODERS = {
    "bert": f"bert(max_length=64, {_SHORT})",
    "prop": f"prop(max_length=64, {_SHORT}, pretrain=100, adapt=50)",
    "colbert": f"colbert(text_length=64, {_SHORT})",
    "epic": f"epic(max_length=48, {_SHORT})",
}
"""Encoders on MiniLM with 60 steps of training."""
TREES = {"lambdamart": "lambdamart(trees=300, leaves=8, min_docs=20)", "lgbm": "lgbm(trees=300, leaves=8, min_docs=20)"}
LEXICAL = ("bm25", "ql", "rm3")
LTR = {"prank": "prank", "ranksvm": "ranksvm", "lambdamart": TREES["lambdamart"]}
NETS = ("dssm", "drmm", "knrm", "duet")
DEPTH = 30
"""Documents of BM25's list that encoders and trees are trained on."""


def net(name: str) -> Learner:
    """Return the learner of a small net with frozen word vectors."""
    learner: Learner = LEARNERS.build(name)
    if name in WORD_NETS:
        learner = replace(learner, vectors=str(VECTORS))  # type: ignore[type-var]
    return replace(learner, steps=STEPS[name]) if name in STEPS else learner  # type: ignore[type-var]


def open_rag24(*models: str) -> Experiment:
    """Return the test queries of rag24 with rankers by name; scores are stored."""
    store = Store(home_folder() / "scores.sqlite")
    return Experiment(
        load(DATA / "collections" / "rag24"), {m: RANKERS.build(m) for m in models}, ScoringEngine(store), split="test"
    )


def learned(experiment: Experiment) -> dict[str, Model]:
    """Return rankers that learned from the train queries of rag24, each with the first seed."""
    train, valid = split_held_out(experiment.collection.splits["train"], experiment.seed)
    models: dict[str, Model] = {name: experiment.fit(text, train, valid=valid) for name, text in LTR.items()}
    return models | {name: experiment.fit(net(name), "train") for name in NETS}
