"""A bit that flips on the disk: each file that we keep is refused in a sentence, or made again, and never believed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shaketable.core.documents import Collection, Doc, Query
from shaketable.core.errors import Damaged
from shaketable.core.seeding import make_item_rng
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.nlp.analyzer import Analyzer
from shaketable.rankers.ltr import FittedModel, LinearPredictor, TreePredictor
from shaketable.rankers.neural.shapes import BertShape, KNRMShape
from shaketable.rankers.saved import SavedModel
from shaketable.retrieval.inverted_index import open_index
from tests.toys import WORDS, slates, text

DOCS = MemoryCorpus({f"d{i}": Doc(text(i, 3 + i % 7), title=text(40 + i, 2)) for i in range(20)})
COLLECTION = Collection("toy", DOCS, {"q": Query("oak elm")})
Look = Callable[[], Any]
"""Opens what is on disk; plain values, to be compared."""


def index(home: Path) -> tuple[Path, Look]:
    def look() -> Any:
        found = open_index(DOCS, Analyzer())
        arrays = (*found.postings, found.cf)
        return list(found.docnos), list(found.terms), [(a.dtype.str, a.tolist()) for a in arrays]

    return home / "indexes", look


def vectors(home: Path) -> tuple[Path, Look]:
    pytest.importorskip("torch")
    from shaketable.rankers.neural.vectors import open_vector_store

    def encode(texts: list[str]) -> list[Any]:
        return [np.array([[len(text), text.count("a"), text.count("e")]], np.float32) for text in texts]

    def look() -> Any:
        shelf = open_vector_store(DOCS, "toy", encode)
        return shelf.search(np.eye(3, dtype=np.float32), 20), [shelf.find(doc.text) for doc in DOCS.values()]

    return home / "vectors", look


def scored(folder: Path) -> tuple[Path, Look]:
    return folder, lambda: [s.tolist() for s in SavedModel(str(folder)).open(COLLECTION).score(slates())]


NAMES = ("bm25(document)", "dl(document)")


def linear(home: Path) -> tuple[Path, Look]:
    FittedModel(LinearPredictor((1 / 3, -0.25)), NAMES, learner="ranksvm", card={"seed": 1}).save(home / "linear")
    return scored(home / "linear")


def trees(home: Path) -> tuple[Path, Look]:
    lightgbm = pytest.importorskip("lightgbm")
    rows = np.random.default_rng(0).random((60, 2))
    params = {"objective": "regression", "verbosity": -1, "num_leaves": 4, "min_data_in_leaf": 5}
    booster = lightgbm.train(params, lightgbm.Dataset(rows, rows[:, 0] > rows[:, 1]), 2)
    FittedModel(TreePredictor(booster.model_to_string()), NAMES, learner="gbrt").save(home / "trees")
    return scored(home / "trees")


def words(home: Path) -> tuple[Path, Look]:
    torch = pytest.importorskip("torch")
    from shaketable.rankers.neural import knrm
    from shaketable.rankers.neural.saving import FittedNet
    from shaketable.rankers.neural.words import Vocabulary

    torch.manual_seed(0)
    net = knrm.KNRM(Vocabulary(tuple(WORDS), Analyzer(stemmer="none")), 4, KNRMShape())
    FittedNet(net, {"seed": 1}).save(home / "knrm")
    return scored(home / "knrm")


def encoder(home: Path) -> tuple[Path, Look]:
    pytest.importorskip("torch")
    from shaketable.rankers.neural.bert import CrossEncoder
    from shaketable.rankers.neural.saving import FittedNet
    from tests.rankers.neural import tiny

    FittedNet(CrossEncoder.from_checkpoint(str(tiny.bert(home / "tiny")), BertShape(max_length=32)), {"seed": 1}).save(
        home / "bert"
    )
    return scored(home / "bert")


KINDS = {index: 120, vectors: 100, linear: 100, trees: 100, words: 50, encoder: 30}


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """Nets this small are slower on several threads, most of all on a busy machine."""
    try:
        import torch
    except ModuleNotFoundError:
        yield
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize(("make", "flips"), KINDS.items(), ids=[kind.__name__ for kind in KINDS])
def test_a_flipped_bit_never_changes_a_result(home, monkeypatch, make, flips):
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # this test does not wait for the disk
    home.mkdir()
    folder, look = make(home)
    expected = look()
    outcomes: Counter[str] = Counter()
    for number in range(flips):
        rng = make_item_rng(0, "flip", make.__name__, number)
        path = rng.choice(sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size))
        whole = path.read_bytes()
        content = bytearray(whole)
        content[rng.randbelow(len(content))] ^= 1 << rng.randbelow(8)
        path.write_bytes(content)
        try:
            assert look() == expected, f"flip {number}, in {path.name}"
            outcomes["made again" if path.read_bytes() == whole else "equal"] += 1
        except Damaged:
            outcomes["refused"] += 1
        path.write_bytes(whole)
    again = "made again" if make in (index, vectors) else "refused"
    assert outcomes[again] > 0.6 * flips, "of those in model.json and about.json some are in spaces between words"
    assert outcomes.keys() <= {again, "equal"}, outcomes
    assert look() == expected
