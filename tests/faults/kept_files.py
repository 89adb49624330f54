"""Every type of file that Shaketable stores, as small as possible, with a function that reads it."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shaketable.core.documents import Collection, Doc, Query
from shaketable.datasets.corpus import JsonlCorpus, MemoryCorpus
from shaketable.datasets.tables import read_docs_table
from shaketable.nlp.analyzer import Analyzer
from shaketable.rankers.ltr import FittedModel, LinearPredictor, TreePredictor
from shaketable.rankers.neural.shapes import BertShape, KNRMShape
from shaketable.rankers.saved import SavedModel
from shaketable.retrieval.inverted_index import open_index
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store
from tests.toys import WORDS, Overlap, slates, text

DOCS = MemoryCorpus({f"d{i}": Doc(text(i, 3 + i % 7), title=text(40 + i, 2)) for i in range(20)})
COLLECTION = Collection("toy", DOCS, {"q": Query("oak elm")})
FEATURES = ("bm25(document)", "dl(document)")


@dataclass(frozen=True)
class Kept:
    """A folder of kept files; `read` opens them as a new process would and returns plain values."""

    folder: Path
    read: Callable[[], Any]
    names: tuple[str, ...] = ("*",)
    """The files to damage, as patterns."""

    def list_files(self) -> list[Path]:
        found = {path for name in self.names for path in self.folder.rglob(name)}
        return sorted(path for path in found if path.is_file() and path.stat().st_size)


def scores(home: Path) -> Kept:
    path = home / "scores" / "scores.sqlite"

    def read() -> Any:
        store = Store(path)
        found = ScoringEngine(store).score(Overlap(), slates(60))
        store.close()
        return [s.tolist() for s in found if s is not None]

    read()
    return Kept(path.parent, read)


def scores_after_a_kill(home: Path) -> Kept:
    """The latest answers are still in the write-ahead log."""
    kept, store = scores(home), Store(home / "scores" / "scores.sqlite")
    ScoringEngine(store).score(Overlap(fingerprint="overlap 2"), slates(20))
    shutil.copytree(kept.folder, home / "killed")
    store.close()

    def read() -> Any:
        left = Store(home / "killed" / "scores.sqlite")
        found = [ScoringEngine(left).score(Overlap(fingerprint=f"overlap {i}"), slates(20)) for i in (1, 2)]
        left.close()
        return [s.tolist() for some in found for s in some if s is not None]

    return Kept(home / "killed", read)


def indexes(home: Path) -> Kept:
    def read() -> Any:
        found = open_index(DOCS, Analyzer())
        arrays = (*found.postings, found.cf)
        return list(found.docnos), list(found.terms), [(a.dtype.str, a.tolist()) for a in arrays]

    return Kept(home / "indexes", read)


def ngrams(home: Path) -> Kept:
    from shaketable.retrieval.ngram_models import open_ngrams

    def read() -> Any:
        found = open_ngrams(DOCS)
        parts = [part for table in found.tables for part in table]
        return found.order, found.word_hashes.tolist(), [(a.dtype.str, a.tolist()) for a in parts]

    return Kept(home / "ngrams", read)


def vectors(home: Path) -> Kept:
    pytest.importorskip("torch")
    from shaketable.rankers.neural.vectors import open_vector_store

    def encode(texts: list[str]) -> list[Any]:
        return [np.array([[len(text), text.count("a"), text.count("e")]], np.float32) for text in texts]

    def read() -> Any:
        shelf = open_vector_store(DOCS, "toy", encode)
        return shelf.search(np.eye(3, dtype=np.float32), 20), [shelf.find(doc.text) for doc in DOCS.values()]

    return Kept(home / "vectors", read)


def expansions(home: Path) -> Kept:
    pytest.importorskip("torch")
    from shaketable.rankers.doct5query import DocumentExpander
    from tests.rankers.neural import tiny

    model = tiny.t5(home / "t5")
    docs = [DOCS[f"d{i}"] for i in range(8)]

    def read() -> Any:
        expander = DocumentExpander(str(model), 1)
        found = [doc.body for doc in expander.expand(docs)]
        expander._store.close()
        return found

    return Kept(home, read, ("expansions.sqlite",))


def _keep_scores(folder: Path) -> Kept:
    return Kept(folder, lambda: [s.tolist() for s in SavedModel(str(folder)).open(COLLECTION).score(slates())])


def linear_model(home: Path) -> Kept:
    FittedModel(LinearPredictor((1 / 3, -0.25)), FEATURES, learner="ranksvm", card={"seed": 1}).save(home / "linear")
    return _keep_scores(home / "linear")


def tree_model(home: Path) -> Kept:
    lightgbm = pytest.importorskip("lightgbm")
    rows = np.random.default_rng(0).random((60, 2))
    params = {"objective": "regression", "verbosity": -1, "num_leaves": 4, "min_data_in_leaf": 5}
    booster = lightgbm.train(params, lightgbm.Dataset(rows, rows[:, 0] > rows[:, 1]), 2)
    FittedModel(TreePredictor(booster.model_to_string()), FEATURES, learner="gbrt").save(home / "trees")
    return _keep_scores(home / "trees")


def word_model(home: Path) -> Kept:
    torch = pytest.importorskip("torch")
    from shaketable.rankers.neural import knrm
    from shaketable.rankers.neural.saving import FittedNet
    from shaketable.rankers.neural.words import Vocabulary

    torch.manual_seed(0)
    net = knrm.KNRM(Vocabulary(tuple(WORDS), Analyzer(stemmer="none")), 4, KNRMShape())
    FittedNet(net, {"seed": 1}).save(home / "knrm")
    return _keep_scores(home / "knrm")


def cross_encoder(home: Path) -> Kept:
    pytest.importorskip("torch")
    from shaketable.rankers.neural.bert import CrossEncoder
    from shaketable.rankers.neural.saving import FittedNet
    from tests.rankers.neural import tiny

    net = CrossEncoder.from_checkpoint(str(tiny.bert(home / "tiny")), BertShape(max_length=32))
    FittedNet(net, {"seed": 1}).save(home / "bert")
    return _keep_scores(home / "bert")


def trained_models(home: Path) -> Kept:
    """A model that an experiment trained and keeps for the next one."""
    from shaketable.datasets.load import load
    from shaketable.experiment import Experiment
    from tests.faults.jobs import collection

    collection(home / "trees")
    data = load(home / "trees")

    def read() -> Any:
        model = Experiment(data, {}, depth=5).fit("prank")
        return [s.tolist() for s in model.open(data).score(slates())]

    return Kept(home / "models", read)


def pretrained_models(home: Path) -> Kept:
    torch = pytest.importorskip("torch")
    from shaketable.rankers.neural import saving
    from shaketable.training.prop import PretrainingSettings, open_pretrained
    from tests.rankers.neural import tiny

    rng = np.random.default_rng(0)
    corpus = MemoryCorpus({f"{i:02}": Doc(" ".join(rng.choice(WORDS, 110))) for i in range(12)})
    checkpoint = str(tiny.write_masked_model(home / "tiny"))
    settings = PretrainingSettings(checkpoint, max_length=16, steps=1, adapt=0, lists=2, lr=5e-3, every=1)

    def read() -> Any:
        net = saving.read_net(open_pretrained(corpus, settings)).eval()
        with torch.inference_mode():
            return net(**net.collate(net.prepare([("oak elm", "oak fir yew"), ("fir", "ash elm")]))).tolist()

    return Kept(home / "pretrained", read)


def adversaries(home: Path) -> Kept:
    from tests.defences.making import making

    def read() -> Any:
        found = making(queries=2, documents=1).run()
        counts = (found.document_count, found.changed_count, found.failed_count, found.cost.pairs)
        return counts, found.path.read_text()

    return Kept(home / "adversaries", read)


def adversary_parts(home: Path) -> Kept:
    """Two of three parts are finished; the process was killed then."""
    from shaketable.defences import adversarial_examples
    from tests.defences.making import making

    class Stop(Exception):
        pass

    def stop(qids: list[str]) -> None:
        asked.append(qids)
        if len(asked) == 3:
            raise Stop

    asked: list[list[str]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adversarial_examples, "QUERIES_PER_PART", 1)
        with pytest.raises(Stop):
            making(queries=3, documents=1, count=stop).run()

    def read() -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(adversarial_examples, "QUERIES_PER_PART", 1)
            found = making(queries=3, documents=1).run()
        return (found.document_count, found.changed_count, found.cost.pairs), found.path.read_text()

    return Kept(home / "adversaries", read)


def _lines() -> str:
    return "".join(
        json.dumps({"_id": docno, "text": doc.body, "title": doc.title}) + "\n" for docno, doc in DOCS.items()
    )


def unpacked_corpora(home: Path) -> Kept:
    path = home / "corpus.jsonl.gz"
    path.write_bytes(gzip.compress(_lines().encode(), mtime=0))

    def read() -> Any:
        corpus = JsonlCorpus.read(path)
        return corpus.fingerprint, dict(corpus.items())

    return Kept(home / "corpora", read)


def converted_corpora(home: Path) -> Kept:
    path = home / "docs.csv"
    rows = [f"{docno},{doc.body},{doc.title}\n" for docno, doc in DOCS.items()]
    path.write_text("".join(["docno,text,title\n", *rows]))

    def read() -> Any:
        corpus = read_docs_table(path)
        return corpus.fingerprint, dict(corpus.items())

    return Kept(home / "corpora", read)


def results(home: Path) -> Kept:
    import shaketable as st
    from tests.faults.jobs import collection

    collection(home / "trees")
    st.audit(home / "trees", ["bm25", "ql"], ["variance", "agreement"], depth=5).save(home / "out")
    return Kept(home / "out", lambda: st.read_audit(home / "out").to_dict(), ("results.json", "manifest.json"))


REFUSED, MADE_AGAIN = "refused", "made again"
KINDS: dict[Callable[[Path], Kept], tuple[int, str]] = {
    scores: (150, MADE_AGAIN),
    scores_after_a_kill: (50, MADE_AGAIN),
    indexes: (110, MADE_AGAIN),
    ngrams: (80, MADE_AGAIN),
    vectors: (100, MADE_AGAIN),
    expansions: (50, MADE_AGAIN),
    linear_model: (60, REFUSED),
    tree_model: (60, REFUSED),
    word_model: (40, REFUSED),
    cross_encoder: (30, REFUSED),
    trained_models: (50, MADE_AGAIN),
    pretrained_models: (30, MADE_AGAIN),
    adversaries: (30, MADE_AGAIN),
    adversary_parts: (20, MADE_AGAIN),
    unpacked_corpora: (60, MADE_AGAIN),
    converted_corpora: (40, MADE_AGAIN),
    results: (100, REFUSED),
}
"""Each kind, how many times it is damaged, and what becomes of damage."""
