"""A small experiment: forty documents about trees, twenty-four queries, all rankers that need no model."""

from __future__ import annotations

import pytest

from shaketable.core.documents import Collection, Doc, Query, Variant
from shaketable.core.registries import RANKERS
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.experiment import Experiment
from tests.toys import text


@pytest.fixture
def collection() -> Collection:
    docs = {f"d{i:02}": Doc(text(i, 12)) for i in range(40)}
    queries = {f"q{i:02}": Query(text(500 + i, 3)) for i in range(24)}
    qrels = {
        qid: {docno: int(len(set(query.text.split()) & set(doc.body.split())) > 1) for docno, doc in docs.items()}
        for qid, query in queries.items()
    }
    variants = {"q00": (Variant("which trees", "naturality"), Variant(queries["q00"].text, "paraphrasing"))}
    return Collection("trees", MemoryCorpus(docs), queries, qrels, variants=variants)


@pytest.fixture
def experiment(collection: Collection) -> Experiment:
    return Experiment(collection, {name: RANKERS.build(name) for name in ("bm25", "ql", "rm3")}, seed=1)
