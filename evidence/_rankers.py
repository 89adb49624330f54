"""The rankers of the evidence pages: four families under short names, opened on public collections.

`open_collection` returns an experiment. Its scores are stored in $SHAKETABLE_HOME/scores.sqlite and its trained models
in $SHAKETABLE_HOME/models, so that all pages share them, and a page that was cut off continues.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from weights import BGE_SMALL, MINILM_L12, find_model

from evidence import DATA
from shaketable.core.documents import Collection, Run, Scores, Slate
from shaketable.core.home import home_folder
from shaketable.core.protocols import Model, Ranker
from shaketable.core.registries import RANKERS
from shaketable.core.seeding import make_item_rng
from shaketable.datasets.load import load
from shaketable.datasets.splits import make_folds
from shaketable.experiment import Experiment
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store

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
VECTORS = DATA / "vectors" / "glove.6B.50d.60k.txt.gz"
WORDS = f"vectors={str(VECTORS)!r}, frozen=False, query_length=20, text_length=150"
"""Word vectors that are trained too, and how much a net reads."""
DEPTHS = {"nfcorpus": 20, "rag24": 50, "cranfield": 50}
"""Documents of BM25's list that are ranked; on dl19 all judged passages are."""
TRAIN_QUERIES = 400
"""Train queries of nfcorpus that learning to rank uses, drawn from 2,590."""
FOLDS = 5


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
        "knrm": f"knrm({WORDS}, steps=1000, every=100, lr=0.003)",
        "conv_knrm": f"conv_knrm({WORDS}, filters=32, steps=400, every=100)",
    },
    "rag24": {
        "knrm": f"knrm({WORDS}, steps=1000, every=100, lr=0.003, teacher={TEACHER!r})",
        "conv_knrm": f"conv_knrm({WORDS}, filters=32, steps=400, every=100, teacher={TEACHER!r})",
    },
}
"""On nfcorpus, nets learn from judgements of 2,590 queries; on rag24, from the scores of the cross-encoder."""


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
        "minilm-l6": lambda: f"dense(max_length={PIECES})",
    }
    model: Model = RANKERS.build(specs[name]() if name in specs else name)
    return model


def open_engine() -> ScoringEngine:
    """Return a scoring engine with the store of all pages."""
    return ScoringEngine(Store(home_folder() / "scores.sqlite"))


def open_collection(name: str, rankers: Iterable[str] = ()) -> Experiment:
    """Return the test queries of a collection with rankers that learn nothing.

    The candidates of dl19 are all judged passages of a query, because its documents are judged pools.
    """
    collection = load(DATA / "collections" / name)
    depth = DEPTHS.get(name, 100)
    if name == "dl19":
        pools = {qid: dict.fromkeys(grades, 0.0) for qid, grades in collection.qrels.items()}
        collection, depth = replace(collection, candidates=pools, source=""), max(map(len, pools.values()))
    split = "test" if "train" in collection.splits else None
    models = {ranker: build_model(ranker) for ranker in rankers}
    return Experiment(collection, models, open_engine(), depth=depth, split=split)


def draw_train_queries(experiment: Experiment, count: int = TRAIN_QUERIES) -> list[str]:
    """Return train queries, drawn at random if there are more than `count`."""
    queries = sorted(experiment.collection.splits["train"])
    return sorted(make_item_rng(experiment.seed, "train queries").permutation(queries)[:count])


def fit_features(experiment: Experiment, name: str) -> Model:
    """Return a learning-to-rank model, trained on train queries of the collection and validated on others."""
    train = draw_train_queries(experiment)
    valid = "validation" if "validation" in experiment.collection.splits else None
    return experiment.fit(LEARNING_TO_RANK[name], train, valid=valid)


def fit_net(experiment: Experiment, name: str) -> Model:
    """Return a net, trained on the train split of nfcorpus or rag24."""
    return experiment.fit(NETS[experiment.collection.name][name], "train")


def rank_by_folds(experiment: Experiment, learner: str) -> Run:
    """Return the lists of five models, each of the queries of one fold, which it was not trained on."""
    judged = [qid for qid in experiment.collection.queries if experiment.collection.qrels.get(qid)]
    joined: dict[str, Mapping[str, float]] = {}
    for fold in make_folds(judged, FOLDS, experiment.seed):
        model = experiment.fit(learner, fold.train, valid=fold.valid)
        texts = {qid: experiment.collection.queries[qid].text for qid in fold.test}
        joined |= replace(experiment, models={learner: model}).rerank(
            learner, texts, experiment.search_first_stage(texts)
        )
    return joined


def rank(experiment: Experiment, name: str, model: Model | None = None) -> Run:
    """Return the lists of one ranker: lexical rankers search, all others re-rank the first stage's documents."""
    alone = replace(experiment, models={name: model or build_model(name)})
    if name in LEXICAL and not experiment.collection.candidates:
        return alone.run_pipeline(name, experiment.texts)
    return alone.rerank(name, experiment.texts, experiment.candidates)
