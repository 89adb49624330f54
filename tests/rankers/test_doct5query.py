"""DocT5Query: BM25 over expanded texts, with the statistics of the expanded collection; each text is expanded once."""

# ruff: noqa: E402
from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from shaketable.core.documents import Collection, Doc, Query, Slate
from shaketable.core.errors import BadInput
from shaketable.core.registries import RANKERS
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.nlp import checkpoints
from shaketable.rankers import doct5query
from shaketable.rankers.doct5query import DocT5Query, DocumentExpander
from shaketable.rankers.lexical import BM25, QL
from shaketable.rankers.neural import pretrained_models
from shaketable.testing import check_model
from shaketable.transforms import add_queries
from shaketable.transforms.add_queries import QuerySampler
from tests.rankers.neural import tiny
from tests.toys import text

DOCS = {f"d{i}": Doc(text(i, 3 + i % 4), title="Oak" if i % 3 else "") for i in range(12)} | {"empty": Doc("")}
QUERIES = {"1": Query("oak elm"), "2": Query("willow"), "3": Query("fir yew")}
COLLECTION = Collection("trees", MemoryCorpus(DOCS), QUERIES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tiny.t5(tmp_path_factory.mktemp("t5"))


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Random models never come to an end by themselves."""
    monkeypatch.setattr(add_queries, "MAX_QUERY_TOKENS", 8)


@pytest.fixture
def counted(monkeypatch) -> list[int]:
    """How many texts were expanded at a time."""
    calls: list[int] = []
    sample = QuerySampler.sample_queries
    monkeypatch.setattr(
        QuerySampler, "sample_queries", lambda self, texts, n: calls.append(len(texts)) or sample(self, texts, n)
    )
    return calls


def own(name: str) -> Collection:
    """Return a collection that no other test uses, because an index in use would be shared."""
    return Collection(name, MemoryCorpus(DOCS | {name: Doc(name)}), QUERIES)


@cache
def sampler_of(folder: Path) -> QuerySampler:
    return QuerySampler(pretrained_models.read_t5(folder), checkpoints.read_tokenizer(folder))


def by_hand(folder: Path, doc: Doc, n: int) -> Doc:
    (queries,) = sampler_of(folder).sample_queries([doc.text], n)
    return Doc(" ".join([doc.body, *queries]).strip(), doc.title, doc.url)


@pytest.mark.parametrize("base", [BM25(), QL(mu=50.0)])
def test_it_is_its_base_over_expanded_texts(folder, base):
    """A collection that was expanded by hand, and texts that no collection has."""
    opened = DocT5Query(str(folder), 2, base).open(COLLECTION)
    whole = Collection("whole", MemoryCorpus({docno: by_hand(folder, doc, 2) for docno, doc in DOCS.items()}), {})
    plain = base.open(whole)
    new = (Doc("a new oak"), DOCS["d3"], Doc("willow willow", "Fir"), Doc(""))
    slates = [Slate(query.text, new) for query in QUERIES.values()]
    longer = [Slate(slate.query, tuple(by_hand(folder, doc, 2) for doc in slate.docs)) for slate in slates]
    for ours, theirs in zip(opened.score(slates), plain.score(longer), strict=True):
        assert ours.tolist() == theirs.tolist()
    texts = [query.text for query in QUERIES.values()]
    assert opened.search(texts, 5) == plain.search(texts, 5)
    assert opened.search(texts, 5) != base.open(COLLECTION).search(texts, 5)


def test_each_text_is_expanded_once_and_the_index_is_cached(folder, home, counted):
    model, collection = DocT5Query(str(folder), 2), own("once")
    first = model.open(collection)
    distinct = len({doc.text for doc in DOCS.values()}) + 1
    assert sum(counted) == distinct
    slate = Slate("oak", (*DOCS.values(), Doc("new"), Doc("new")))
    before = first.score([slate])[0].tolist()
    assert sum(counted) == distinct + 1
    assert first.score([slate])[0].tolist() == before
    again = model.open(collection)
    assert again.score([slate])[0].tolist() == before
    assert again.search(["oak"], 3) == first.search(["oak"], 3)
    assert sum(counted) == distinct + 1, "another process finds all of it on disk"
    assert len(list((home / "indexes").iterdir())) == 1
    DocT5Query(str(folder), 3).open(collection)
    assert len(list((home / "indexes").iterdir())) == 2, "another n, another index"


def test_an_expansion_that_was_cut_off_goes_on(folder, counted, monkeypatch):
    monkeypatch.setattr(doct5query, "BLOCK_DOCUMENTS", 4)

    class Stop(Exception):
        pass

    sample = QuerySampler.sample_queries

    def stopping(self, texts, n):
        if len(counted) == 2:
            raise Stop
        return sample(self, texts, n)

    with monkeypatch.context() as patch:
        patch.setattr(QuerySampler, "sample_queries", stopping)
        with pytest.raises(Stop):
            DocT5Query(str(folder), 1).open(own("cut"))
    DocT5Query(str(folder), 1).open(own("cut"))
    assert sum(counted) == len({doc.text for doc in DOCS.values()}) + 1


def test_fingerprints_follow_model_and_number(folder, tmp_path):
    other = tiny.t5(tmp_path / "other", seed=9)
    marks = {DocumentExpander(str(path), n).fingerprint for path in (folder, other) for n in (1, 4)}
    assert len(marks) == 4
    opened = [DocT5Query(str(path), 1).open(COLLECTION).fingerprint for path in (folder, other, folder)]
    assert opened[0] == opened[2] != opened[1]


def test_keeps_the_contract_and_round_trips(folder):
    model = RANKERS.build(f"doct5query(expander={str(folder)!r}, n=2, base=bm25(k1=0.9))")
    assert model == DocT5Query(str(folder), 2, BM25(k1=0.9))
    check_model(model, COLLECTION)


def test_invalid_settings_are_refused():
    with pytest.raises(BadInput, match="n should be 1 or more, not 0"):
        DocT5Query(n=0)
    with pytest.raises(BadInput, match="base should be bm25, ql or ql_jm"):
        DocT5Query(base="bm25")
