"""BEIR folders: read, cut by split, written, read again."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shaketable.core.documents import Collection, Doc, Query
from shaketable.core.errors import BadInput, UnknownName
from shaketable.datasets.beir import read_beir, select_split, write_beir
from shaketable.datasets.corpus import MemoryCorpus

FILES = {
    "corpus.jsonl": '{"_id": "d1", "title": "Boats", "text": "a boat"}\n{"_id": "d#2", "text": "a train"}\n',
    "queries.jsonl": '{"_id": 1, "text": "boat?", "type": "entity"}\n'
    '{"_id": "2", "text": "train", "metadata": {"description": "about trains", "kind": "person"}, "genre": "x"}\n'
    '{"_id": "3", "text": "nobody judged this", "metadata": {}}\n',
    "qrels/test.tsv": "query-id\tcorpus-id\tscore\n1\td1\t2\n1\td#2\t0\n",
    "qrels/train.qrels": "2 0 d#2 1\n",
}


def make(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return folder


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
def test_the_whole_folder(tmp_path: Path, packed: bool) -> None:
    files = {f"{name}.gz" if packed else name: text for name, text in FILES.items()}
    collection = read_beir(make(tmp_path / "toy", files))
    assert collection.name == "toy"
    assert collection.docs["d1"] == Doc("a boat", "Boats")
    assert collection.queries == {
        "1": Query("boat?", "entity"),
        "2": Query("train", "person", "about trains"),
        "3": Query("nobody judged this"),
    }
    assert collection.qrels == {"1": {"d1": 2, "d#2": 0}, "2": {"d#2": 1}}
    assert collection.splits == {"test": ("1",), "train": ("2",)}
    assert collection.candidates == {}


def test_the_type_of_a_query_is_written_as_type_and_documents_may_have_any(tmp_path: Path) -> None:
    files = FILES | {"corpus.jsonl": '{"_id": "d1", "text": "a boat", "type": 3}\n{"_id": "d#2", "text": "a train"}\n'}
    write_beir(read_beir(make(tmp_path / "old", files)), tmp_path / "new")
    rows = [json.loads(line) for line in (tmp_path / "new" / "queries.jsonl").read_text().splitlines()]
    assert [row.get("type", "") for row in rows] == ["entity", "person", ""]
    assert not any("kind" in row for row in rows)


def test_one_split(tmp_path: Path) -> None:
    folder = make(tmp_path, FILES | {"candidates.run": "1 Q0 d1 1 2.0 t\n2 Q0 d1 1 1.0 t\n"})
    train = read_beir(folder, "train")
    assert list(train.queries) == ["2"]
    assert train.qrels == {"2": {"d#2": 1}}
    assert train.splits == {"train": ("2",)}
    assert train.candidates == {"2": {"d1": 1.0}}
    assert len(train.docs) == 2
    cut = select_split(read_beir(folder), "train")
    assert (cut.queries, cut.qrels, cut.splits) == (train.queries, train.qrels, train.splits)
    assert cut.fingerprint == train.fingerprint


def test_unknown_split(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="no split is called 'tets'; did you mean test"):
        read_beir(make(tmp_path, FILES), "tets")
    with pytest.raises(UnknownName, match="no split is called 'dev'; there are: test, train"):
        select_split(read_beir(tmp_path), "dev")


def test_without_judgements(tmp_path: Path) -> None:
    folder = make(tmp_path, {name: text for name, text in FILES.items() if "qrels" not in name})
    assert read_beir(folder).qrels == {}
    with pytest.raises(BadInput, match="has no judgements in qrels/"):
        read_beir(folder, "test")


def test_files_that_are_no_splits_are_passed_over(tmp_path: Path) -> None:
    folder = make(tmp_path, FILES | {"qrels/.test.tsv": "x", "qrels/README.md": "x", "qrels/dev.v2.txt": "3 0 d1 1"})
    assert list(read_beir(folder).splits) == ["dev.v2", "test", "train"]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        (
            "queries.jsonl",
            '{"_id": "1", "text": "a"}\n{"_id": 1, "text": "b"}\n',
            "queries.jsonl:2: the id '1' is taken",
        ),
        ("queries.jsonl", '{"_id": "1"}\n', 'queries.jsonl:1: has no "text"'),
        (
            "queries.jsonl",
            '{"_id": "1", "text": ""}\n{"_id": "a\\u0000b", "text": ""}\n',
            "queries.jsonl:2: the id 'a\\x00b'",
        ),
        (
            "queries.jsonl",
            '{"_id": "1", "text": ' + "[" * 100_000,
            "queries.jsonl:1: is not valid JSON (it is",
        ),
        ("variants.jsonl", "[" * 100_000, "variants.jsonl:1: is not valid JSON (it is nested too deeply)"),
        ("variants.jsonl", '{"query": "a b", "text": ""}', "variants.jsonl:1: the query id 'a b' has ' ' in it"),
        ("variants.jsonl", "[1]", "variants.jsonl:1: a variant is a JSON object"),
        (
            "variants.jsonl",
            '{"query": 1, "text": ""}',
            "query, text, category and language of a variant are",
        ),
        ("queries.jsonl", '{"_id": "1", "text": "a", "kind": 3}\n', "\"kind\" of '1' is not a string"),
        ("queries.jsonl", '{"_id": "1", "text": "a", "type": 3}\n', "\"type\" of '1' is not a string"),
        ("queries.jsonl", "{\n", "queries.jsonl:1: is not JSON"),
        ("queries.jsonl", "", "queries.jsonl: holds no queries"),
        ("corpus.jsonl", "", "corpus.jsonl: holds no documents"),
        ("qrels/test.tsv", "1\td1\t1\n", "test.tsv:1: has three columns and no header"),
        ("qrels/test.txt", "1 0 d1 1\n", "is the split 'test', and so is test.tsv"),
        (
            "qrels/other.tsv",
            "qid\tdocno\tlabel\n1\td1\t3\n",
            "'d1' grade 2 for query '1', another split 3; load one split",
        ),
        ("candidates.run", "1 Q0 d1 1 x t\n", "candidates.run:1: score 'x' is not a number"),
    ],
)
def test_errors_are_reported(tmp_path: Path, name: str, text: str, says: str) -> None:
    folder = make(tmp_path, FILES | {name: text})
    with pytest.raises(BadInput) as caught:
        read_beir(folder)
    assert says in str(caught.value)


def test_contradicting_splits_can_be_loaded_one_by_one(tmp_path: Path) -> None:
    folder = make(tmp_path, FILES | {"qrels/other.tsv": "qid\tdocno\tlabel\n1\td1\t3\n"})
    assert read_beir(folder, "other").qrels == {"1": {"d1": 3}}


@pytest.mark.parametrize("name", ["queries.jsonl", "corpus.jsonl"])
def test_missing_file(tmp_path: Path, name: str) -> None:
    folder = make(tmp_path, {key: text for key, text in FILES.items() if key != name})
    with pytest.raises(BadInput, match=f"{name}: there is no such file"):
        read_beir(folder)


def tidy(collection: Collection) -> dict[str, Any]:
    return {
        "docs": dict(collection.docs.items()),
        "queries": dict(collection.queries),
        "qrels": collection.qrels,
        "splits": collection.splits,
        "candidates": collection.candidates,
    }


def test_write_by_hand(tmp_path: Path) -> None:
    docs = MemoryCorpus({"d-1": Doc('a "boat"', url="http://u"), "d2": Doc("", title="é")})
    queries = {"1": Query("a", "entity"), "2": Query("b", description="long")}
    qrels = {"1": {"d-1": 2}, "2": {"d2": 0}}
    write_beir(Collection("toy", docs, queries, qrels, {"dev": ("1",)}), tmp_path / "new" / "toy")
    folder = tmp_path / "new" / "toy"
    assert [json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines()] == [
        {"_id": "d-1", "text": 'a "boat"', "url": "http://u"},
        {"_id": "d2", "title": "é", "text": ""},
    ]
    assert (folder / "qrels" / "dev.tsv").read_text() == "query-id\tcorpus-id\tscore\n1\td-1\t2\n"
    assert read_beir(folder).splits == {"dev": ("1",), "rest": ("2",)}
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["toy"]


def test_without_splits_the_judgements_are_the_test(tmp_path: Path) -> None:
    write_beir(Collection("toy", MemoryCorpus({"d": Doc("x")}), {"q": Query("y")}, {"q": {"d": 1}}), tmp_path / "toy")
    assert read_beir(tmp_path / "toy").splits == {"test": ("q",)}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"qrels": {"q\t1": {"d": 1}}}, "the query id 'q\\t1' has '\\t' in it"),
        ({"qrels": {"q": {"a b": 1}}}, "the document id 'a b' has ' ' in it"),
        ({"qrels": {"q": {"d": 10**9}}}, "grade 1000000000 is not a whole number"),
        ({"qrels": {"q": {"d": 1}}, "splits": {"../up": ("q",)}}, "the split '../up' cannot be the name of a file"),
        ({"candidates": {"q": {"a b": 1.0}}}, "the document id 'a b'"),
    ],
)
def test_data_that_cannot_be_written_leave_no_folder(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    collection = Collection("toy", MemoryCorpus({"d": Doc("x")}), {"q": Query("y")}, **change)
    with pytest.raises(BadInput) as caught:
        write_beir(collection, tmp_path / "out" / "toy")
    assert says in str(caught.value)
    assert not list((tmp_path / "out").iterdir())


def test_nothing_is_written_over(tmp_path: Path) -> None:
    folder = make(tmp_path / "toy", FILES)
    with pytest.raises(BadInput, match="exists already"):
        write_beir(read_beir(folder), folder)
    (tmp_path / "empty").mkdir()
    write_beir(read_beir(folder), tmp_path / "empty")
    assert tidy(read_beir(tmp_path / "empty")) == tidy(read_beir(folder))


characters = st.characters(exclude_categories=["Cs"])
text = st.text(characters, max_size=12)
ids = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters="\ufeff"),
    min_size=1,
    max_size=6,
)


@st.composite
def collections(draw: st.DrawFn) -> Collection:
    docs = draw(st.dictionaries(ids, st.builds(Doc, text, text, text), min_size=1, max_size=5))
    queries = draw(st.dictionaries(ids, st.builds(Query, text, text, text), min_size=1, max_size=5))
    docno, qid = st.sampled_from(sorted(docs)), st.sampled_from(sorted(queries))
    qrels = draw(st.dictionaries(qid, st.dictionaries(docno, st.integers(-1, 3), min_size=1)))
    candidates = draw(st.dictionaries(qid, st.dictionaries(docno, st.floats(-1e9, 1e9), min_size=1)))
    splits: dict[str, tuple[str, ...]] = {}
    for query in qrels:
        name = draw(st.sampled_from(["dev", "test", "train-small"]))
        splits[name] = (*splits.get(name, ()), query)
    return Collection("toy", MemoryCorpus(docs), queries, qrels, splits, candidates)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(collection=collections())
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, collection: Collection) -> None:
    folder = tmp_path_factory.mktemp("out") / "toy"
    write_beir(collection, folder)
    assert tidy(read_beir(folder)) == tidy(collection)


@pytest.mark.parametrize(
    ("name", "docs", "queries", "judged", "judgements"),
    [
        ("cacm", 3204, 64, 52, 796),
        ("cranfield", 1400, 225, 225, 1612),
        ("medline", 1033, 30, 30, 696),
        ("time", 423, 79, 79, 253),
        ("vaswani", 11429, 93, 93, 2083),
    ],
)
def test_real_collections(shared_data: Path, name: str, docs: int, queries: int, judged: int, judgements: int) -> None:
    collection = read_beir(shared_data / "collections" / name)
    assert collection.name == name
    assert len(collection.docs) == docs == sum(1 for _ in collection.docs.items())
    assert len(collection.queries) == queries
    assert len(collection.qrels) == judged
    assert sum(map(len, collection.qrels.values())) == judgements
    assert list(collection.splits) == ["test"]


def test_a_real_collection_with_two_splits(shared_data: Path) -> None:
    collection = read_beir(shared_data / "collections" / "rag24")
    assert (len(collection.docs), len(collection.queries)) == (6011, 301)
    assert {name: len(qids) for name, qids in collection.splits.items()} == {"test": 86, "train": 215}
    assert len(select_split(collection, "test").queries) == 86


def test_half_a_character_in_a_variant_or_a_query(tmp_path: Path) -> None:
    variant = '{"query": "1", "text": "cut \\ud83d", "category": "misspelling"}\n'
    query = '{"_id": "1", "text": "cut \\ud83d"}\n'
    collection = read_beir(make(tmp_path, FILES | {"variants.jsonl": variant, "queries.jsonl": query}))
    assert collection.variants["1"][0].text == collection.queries["1"].text == "cut \ufffd"


def test_variants_come_back(tmp_path):
    from shaketable.core.documents import Collection, Variant
    from shaketable.datasets.corpus import MemoryCorpus

    variants = {"q1": (Variant("tree oak", "ordering"), Variant("what is an oak", "naturality"))}
    docs = MemoryCorpus({"d1": Doc("an oak")})
    whole = Collection("c", docs, {"q1": Query("oak tree")}, {"q1": {"d1": 1}}, {"test": ("q1",)}, variants=variants)
    write_beir(whole, tmp_path / "c")
    assert read_beir(tmp_path / "c").variants == variants
    assert read_beir(tmp_path / "c", "test").variants == variants
    (tmp_path / "c" / "variants.jsonl").write_text('{"query": "q1"}\n')
    with pytest.raises(BadInput, match=r"variants\.jsonl:1: a variant is"):
        read_beir(tmp_path / "c")
