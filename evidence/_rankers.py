"""The rankers of the evidence pages: four families under short names, opened on public collections.

`open_collection` returns an experiment. Its scores are stored in $SHAKETABLE_HOME/scores.sqlite and its trained models
in $SHAKETABLE_HOME/models, so that all pages share them, and a page that was cut off continues.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from weights import BGE_SMALL, MINILM_L12, find_model

from evidence import DATA
from shaketable.core import registries
from shaketable.core.documents import Collection, Run, Scores, Slate
from shaketable.core.home import home_folder
from shaketable.core.protocols import Model, Ranker
from shaketable.core.seeding import make_item_rng
from shaketable.datasets.load import load
from shaketable.datasets.splits import make_folds
from shaketable.experiment import Experiment
from shaketable.measures.effectiveness import score_table, score_tables
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store
from shaketable.training.plan import split_train_valid

Values = NDArray[np.float64]

PIECES = 160
"""Word pieces of query and text that a pre-trained ranker reads."""
FIRST_STAGE = "bm25"
LEXICAL = ("bm25", "ql", "rm3")
LEARNING_TO_RANK = {
    "prank": "prank",
    "ranksvm": "ranksvm",
    "lambdamart": "lambdamart(trees=300, leaves=8, min_docs=20)",
}
PRE_TRAINED = ("minilm-l12", "bge-small", "minilm-l6")
FLOAT32 = "minilm-l12 in float32"
"""The same weights as minilm-l12, computed in float32 instead of int8."""
VECTORS = DATA / "vectors" / "glove.6B.50d.60k.txt.gz"
WORDS = f"vectors={str(VECTORS)!r}, frozen=False, query_length=20, text_length=150"
"""Word vectors that are trained too, and how much a net reads."""
DEPTHS = {"nfcorpus": 20, "rag24": 20, "cranfield": 50}
"""Documents of BM25's list that are ranked; on dl19 all judged passages are."""
TRAIN_QUERIES = 400
"""Train queries of nfcorpus that learning to rank uses, drawn from 2,590."""
TEACHER_DEPTH = 15
"""Documents of each train query that the teacher scores."""
FOLDS = 5
TRAINED_ON = {"nfcorpus": "nfcorpus", "rag24": "rag24", "dl19": "rag24", "cranfield": "cranfield"}
"""A collection -> the collection whose queries its trained rankers learned from; dl19 has no train queries."""
NET_NAMES = ("knrm", "conv_knrm")
RANKERS = {
    "nfcorpus": (*LEXICAL, *LEARNING_TO_RANK, "minilm-l12", "bge-small"),
    "dl19": ("bm25", "ql", "ranksvm", "lambdamart", "minilm-l12", "bge-small"),
    "rag24": (*LEXICAL, *LEARNING_TO_RANK, "minilm-l12", "bge-small"),
    "cranfield": (*LEXICAL, *LEARNING_TO_RANK),
}
"""A collection -> the rankers that are measured on it."""
TOY_TRAININGS = {
    "nfcorpus": ("nfcorpus-features", "nfcorpus-nets"),
    "rag24": ("rag24-features", "rag24-nets"),
    "cranfield": ("cranfield-features", ""),
}
"""A collection -> names in claims.toml of trainings on it that do not reach BM25: learning to rank, and nets."""


@dataclass(frozen=True)
class Teacher:
    """The cross-encoder as a teacher, whose scores are stored, so that each net that it trains finds them."""

    def open(self, collection: Collection) -> Ranker:
        """Open the cross-encoder on a collection."""
        return _StoredRanker(build_model("minilm-l12").open(collection))


@dataclass(frozen=True)
class _StoredRanker:
    ranker: Ranker
    engine: ScoringEngine = field(default_factory=lambda: open_engine())

    @property
    def name(self) -> str:
        return self.ranker.name

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        return [scores for scores in self.engine.score(self.ranker, slates) if scores is not None]


TEACHER = "evidence._rankers:Teacher()"
NETS = {
    "nfcorpus": {
        "knrm": f"knrm({WORDS}, steps=600, every=100, lr=0.003, teacher={TEACHER!r})",
        "conv_knrm": f"conv_knrm({WORDS}, filters=32, steps=600, every=100, teacher={TEACHER!r})",
    },
    "rag24": {
        "knrm": f"knrm({WORDS}, steps=1000, every=100, lr=0.003, teacher={TEACHER!r})",
        "conv_knrm": f"conv_knrm({WORDS}, filters=32, steps=400, every=100, teacher={TEACHER!r})",
    },
}
"""Nets learn from the scores of the cross-encoder.

The judgements of nfcorpus teach them the opposite: most relevant documents share no word with the query and are not
among BM25's candidates, so that K-NRM learns to prefer texts without words of the query (nDCG@10 .20 on validation
queries, against .31 with the teacher and .32 of BM25).
"""


@cache
def find_weights(name: str) -> str:
    """Return the folder of a packaged model; end the script if `make models` has not built it."""
    if folder := find_model(name):
        return str(folder)
    print(f"skipped: {name} is not built; run make models")
    sys.exit(0)


def build_model(name: str) -> Model:
    """Return a ranker that learns nothing here, by the name that claims.toml gives it."""
    specs = {
        "minilm-l12": lambda: f"onnx({find_weights(MINILM_L12)!r}, max_length={PIECES})",
        "bge-small": lambda: f"onnx({find_weights(BGE_SMALL)!r}, max_length={PIECES})",
        FLOAT32: lambda: f"hf({find_weights(MINILM_L12)!r}, max_length={PIECES})",
        "minilm-l6": lambda: f"dense(max_length={PIECES})",
    }
    model: Model = registries.RANKERS.build(specs[name]() if name in specs else name)
    return model


def open_engine() -> ScoringEngine:
    """Return a scoring engine with the store of all pages."""
    return ScoringEngine(Store(home_folder() / "scores.sqlite"))


@cache
def open_collection(name: str) -> Experiment:
    """Return an experiment without rankers on the test queries of a collection, or on all if it has no train queries.

    The candidates of dl19 are all judged passages of a query, because its documents are judged pools.
    """
    collection = load(DATA / "collections" / name)
    depth = DEPTHS.get(name, 100)
    if name == "dl19":
        pools = {qid: dict.fromkeys(grades, 0.0) for qid, grades in collection.qrels.items()}
        collection, depth = replace(collection, candidates=pools, source=""), max(map(len, pools.values()))
    split = "test" if "train" in collection.splits else None
    return Experiment(collection, {}, open_engine(), depth=depth, split=split)


def split_train_queries(experiment: Experiment, name: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return the queries that a ranker is trained and validated on; without a validation split, a fifth is held out."""
    collection = experiment.collection
    train = make_item_rng(experiment.seed, "train queries").permutation(sorted(collection.splits["train"]))
    some = train[:TRAIN_QUERIES] if name in LEARNING_TO_RANK else train
    return split_train_valid(collection, sorted(some), collection.splits.get("validation", ()), experiment.seed)


def fit(trained_on: str, name: str, depth: int = 0) -> Model:
    """Return a trained ranker: learning to rank or a net, by the collection whose train queries it learns from.

    It learns from `depth` documents of each query; 0 is as many as are ranked, or as the teacher scores.
    """
    experiment = open_collection(trained_on)
    learner = LEARNING_TO_RANK.get(name) or NETS[trained_on][name]
    train, valid = split_train_queries(experiment, name)
    usual = TEACHER_DEPTH if "teacher=" in learner else experiment.depth
    return experiment.with_depth(depth or usual).fit(learner, train, valid=valid)


def rank(experiment: Experiment, name: str, model: Model, texts: Mapping[str, str] | None = None) -> Run:
    """Return the lists of one ranker: lexical rankers search, all others re-rank the first stage's documents."""
    alone = replace(experiment, models={name: model})
    if name in LEXICAL and not experiment.collection.candidates:
        return alone.run_pipeline(name, texts or experiment.texts)
    return alone.rerank(
        name, texts or experiment.texts, experiment.search_first_stage(texts) if texts else experiment.candidates
    )


def rank_by_folds(experiment: Experiment, learner: str, part: str = "test") -> Run:
    """Return the lists of five models, each of the queries of one fold, which it was not trained on.

    The part "valid" has each query with the model that it validates.
    """
    joined: dict[str, Mapping[str, float]] = {}
    for fold in make_folds(list(experiment.queries), FOLDS, experiment.seed):
        model = experiment.fit(learner, fold.train, valid=fold.valid)
        joined |= rank(experiment, learner, model, {qid: experiment.texts[qid] for qid in getattr(fold, part)})
    return joined


def rank_named(collection: str, name: str) -> Run:
    """Return the lists of a ranker on a collection, by name; what learns is trained first if it is not stored."""
    experiment = open_collection(collection)
    if name not in (*LEARNING_TO_RANK, *NET_NAMES):
        return rank(experiment, name, build_model(name))
    if collection == "cranfield":
        return rank_by_folds(experiment, LEARNING_TO_RANK[name])
    return rank(experiment, name, fit(TRAINED_ON[collection], name))


def score_named(collection: str, name: str, measures: Sequence[str]) -> list[Values]:
    """Return measures of a ranker for each query of a collection."""
    experiment = open_collection(collection)
    tables = score_tables(measures, experiment.qrels, {name: rank_named(collection, name)})
    return [one.values[0] for one in tables]


def validate(collection: str, name: str) -> tuple[float, float]:
    """Return nDCG@10 of a trained ranker and of BM25 on its validation queries."""
    experiment = open_collection(TRAINED_ON[collection])
    if collection == "cranfield":
        ours = rank_by_folds(experiment, LEARNING_TO_RANK[name], "valid")
    else:
        texts = {qid: experiment.collection.queries[qid].text for qid in split_train_queries(experiment, name)[1]}
        ours = rank(experiment, name, fit(TRAINED_ON[collection], name), texts)
    texts = {qid: experiment.collection.queries[qid].text for qid in ours}
    runs = {name: ours, FIRST_STAGE: rank(experiment, FIRST_STAGE, build_model(FIRST_STAGE), texts)}
    qrels = {qid: experiment.collection.qrels[qid] for qid in ours}
    first, second = score_table("nDCG@10", qrels, runs).values.mean(axis=1)
    return float(first), float(second)


@cache
def name_training(collection: str, name: str) -> str:
    """Return the name of a toy training in claims.toml; "" if a ranker learned nothing here, or reaches BM25."""
    if name not in (*LEARNING_TO_RANK, *NET_NAMES):
        return ""
    ours, base = validate(collection, name)
    return "" if ours >= base else TOY_TRAININGS[TRAINED_ON[collection]][name in NET_NAMES]
