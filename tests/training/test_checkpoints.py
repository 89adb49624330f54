"""Learners on a checkpoint: they beat a control with random labels, and training is deterministic."""

# ruff: noqa: E402
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from shaketable.core.documents import Collection, Doc, Query, Slate
from shaketable.core.registries import LEARNERS
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.measures.effectiveness import score_table
from shaketable.training.plan import ShuffledLabelSource
from tests.rankers.neural import tiny
from tests.toys import WORDS

pytestmark = pytest.mark.slow

CHECKPOINTS = {"epic": tiny.write_masked_model, "monot5": tiny.t5}
SETTINGS = {
    "epic": {"lr": 5e-3, "steps": 60},
    "monot5": {"lr": 3e-3, "steps": 120},
}
QIDS = [f"q{i}" for i in range(10)]
TEST = QIDS[6:]


def make_collection() -> Collection:
    """Return ten queries with eight candidates each; for all queries the three texts with "yew" are relevant."""
    others = [word for word in WORDS if word != "yew"]
    queries, docs, qrels, candidates = {}, {}, {}, {}
    for i, qid in enumerate(QIDS):
        rng = np.random.default_rng(i)
        queries[qid] = Query(" ".join(rng.choice(others, 2)))
        for j in range(8):
            words = rng.permutation([*rng.choice(others, 5), "yew" if j < 3 else rng.choice(others)])
            docs[f"{qid}-{j}"] = Doc(" ".join(words))
        qrels[qid] = {f"{qid}-{j}": int(j < 3) for j in range(8)}
        candidates[qid] = {f"{qid}-{j}": float(rng.random()) for j in range(8)}
    return Collection("marked", MemoryCorpus(docs), queries, qrels, candidates=candidates)


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """Nets this small are slower on several threads, most of all on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def learner_of(kind: str, folder: Path):
    shared = {"max_length": 32, "lists": 3, "size": 4, "every": 20, "patience": 9}
    return replace(LEARNERS.build(kind), checkpoint=str(CHECKPOINTS[kind](folder)), **(shared | SETTINGS[kind]))


@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_a_trained_model_beats_the_control(tmp_path, kind):
    collection, learner = make_collection(), learner_of(kind, tmp_path / "tiny")
    qrels = {qid: collection.qrels[qid] for qid in TEST}
    docs = {qid: [collection.docs[docno] for docno in grades] for qid, grades in qrels.items()}
    slates = [Slate(collection.queries[qid].text, tuple(docs[qid])) for qid in TEST]
    values = {}
    for control in (False, True):
        plan = replace(learner.make_default_plan(), lists=ShuffledLabelSource()) if control else None
        model = learner.fit(collection, QIDS[:6], valid=TEST[:2], folder=tmp_path / str(control), plan=plan)
        scores = model.open(collection).score(slates)
        run = {qid: dict(zip(qrels[qid], row.tolist(), strict=True)) for qid, row in zip(TEST, scores, strict=True)}
        values[control] = score_table("AP", qrels, {"": run}).values.mean()
    assert values[False] > 0.9
    assert values[True] < 0.8


class Stop(Exception):
    pass


def weights_of(folder: Path) -> bytes:
    (path,) = folder.glob("*/weights.safetensors")
    return path.read_bytes()


@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_the_same_seed_the_same_weights_and_a_run_cut_off_comes_to_the_same_end(tmp_path, kind):
    collection, learner = make_collection(), replace(learner_of(kind, tmp_path / "tiny"), steps=6, every=2)
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        learner.fit(collection, QIDS[:6], valid=TEST[:2], folder=tmp_path / name, seed=seed)
    assert weights_of(tmp_path / "a") == weights_of(tmp_path / "b") != weights_of(tmp_path / "c")

    @contextmanager
    def stopping(what: str, total: int, unit: str) -> Iterator[Callable[[int], None]]:
        steps = count(1)

        def advance(done: int) -> None:
            if what == f"training {kind}" and next(steps) == 5:
                raise Stop

        yield advance

    with pytest.raises(Stop):
        learner.fit(collection, QIDS[:6], valid=TEST[:2], folder=tmp_path / "d", progress=stopping)
    learner.fit(collection, QIDS[:6], valid=TEST[:2], folder=tmp_path / "d")
    assert weights_of(tmp_path / "d") == weights_of(tmp_path / "a")
