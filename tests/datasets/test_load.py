"""`load`: the sample, ir_datasets and folders, and the errors for names without a collection."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from shaketable.core.documents import Collection, Doc, Query
from shaketable.core.errors import BadInput, MissingExtra, UnknownName
from shaketable.datasets import irds
from shaketable.datasets.beir import write_beir
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.datasets.load import load
from shaketable.datasets.sample import SAMPLE_FOLDER
from shaketable.datasets.validation import validate_collection


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    docs = MemoryCorpus({"d1": Doc("a boat"), "d2": Doc("a train")})
    queries = {"q1": Query("boat"), "q2": Query("train")}
    splits = {"test": ("q1",), "train": ("q2",)}
    write_beir(Collection("toy", docs, queries, {"q1": {"d1": 1}, "q2": {"d2": 1}}, splits), tmp_path / "toy")
    return tmp_path / "toy"


def test_a_folder(toy: Path) -> None:
    assert load(toy).name == load(str(toy)).name == "toy"
    assert list(load(toy, "train").queries) == ["q2"]


@pytest.mark.parametrize(("split", "expected"), [(None, {"q1", "q2"}), ("test", {"q1"})])
def test_candidates_from_elsewhere(toy: Path, tmp_path: Path, split: str | None, expected: set[str]) -> None:
    run = tmp_path / "first.run"
    run.write_text("q1 Q0 d2 1 1.0 t\nq2 Q0 d1 1 1.0 t\n")
    assert set(load(toy, split, candidates=run).candidates) == expected


def test_there_is_no_such_collection(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(toy.parent)
    looked = "a collection is 'sample', 'irds:ID', or a folder with corpus.jsonl, queries.jsonl and qrels/"
    for source, says in {
        "tpy": f"there is no collection 'tpy' (did you mean toy?); {looked}",
        "smaple": f"there is no collection 'smaple' (did you mean sample?); {looked}",
        "zzzzz": f"there is no collection 'zzzzz'; {looked}",
        "no/such/folder": f"there is no collection 'no/such/folder'; {looked}",
        "": f"the folder '.' has no corpus.jsonl; {looked}",
        "toy/qrels": f"the folder 'toy/qrels' has no corpus.jsonl; {looked}",
        "toy/corpus.jsonl": f"'toy/corpus.jsonl' is a file; {looked}",
    }.items():
        with pytest.raises(BadInput) as caught:
            load(source)
        assert str(caught.value) == says


@pytest.mark.skipif(not (SAMPLE_FOLDER / "corpus.jsonl").exists(), reason="the sample is not written yet")
def test_the_sample_is_in_order() -> None:
    collection = load("sample")
    assert collection.name == "sample"
    assert not [finding for finding in validate_collection(collection) if finding.severity == "error"]


class Page(NamedTuple):
    doc_id: str
    url: str
    title: str
    body: str


class Paper(NamedTuple):
    doc_id: str
    title: str
    abstract: str | None
    authors: list[str]

    def default_text(self) -> str:
        return f"{self.title} by {', '.join(self.authors)}"


class Topic(NamedTuple):
    query_id: str
    title: str
    description: str


class Question(NamedTuple):
    query_id: str
    parts: list[str]

    def default_text(self) -> str:
        return " ".join(self.parts)


def test_fields_find_their_places() -> None:
    assert irds._to_doc(Page("1", "http://u", "Boats", "a boat")) == Doc("a boat", "Boats", "http://u")
    assert irds._to_doc(Paper("1", "On boats", "They float.", [])) == Doc("They float.", "On boats")
    assert irds._to_doc(Paper("1", "On boats", None, ["Ann", "Bo"])) == Doc("On boats by Ann, Bo")
    assert irds._to_query(Topic("1", "boats", "Which boats float?")) == Query("boats", description="Which boats float?")
    assert irds._to_query(Question("1", ["which", "boats"])) == Query("which boats")


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The real ir_datasets, with a small collection of our own in its registry."""
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "irds"))
    ir_datasets = pytest.importorskip("ir_datasets")
    (tmp_path / "docs.tsv").write_text("d1\ta boat\nd2\ta train\n")
    (tmp_path / "queries.tsv").write_text("q1\tboat\n")
    (tmp_path / "qrels").write_text("q1 0 d1 1\n")
    whole = ir_datasets.create_dataset(
        str(tmp_path / "docs.tsv"), str(tmp_path / "queries.tsv"), str(tmp_path / "qrels")
    )
    docs = ir_datasets.create_dataset(str(tmp_path / "docs.tsv"))
    registered = dict(ir_datasets.registry._registered)
    monkeypatch.setattr(ir_datasets.registry, "_registered", registered | {"toys/test": whole, "toys": docs})
    return ir_datasets


@pytest.mark.parametrize(("source", "split"), [("irds:toys/test", None), ("irds:toys", "test")])
def test_ir_datasets(library: Any, source: str, split: str | None) -> None:
    collection = load(source, split)
    assert collection.name == "toys/test"
    assert collection.docs["d2"] == Doc("a train")
    assert "d1" in collection.docs
    assert "d3" not in collection.docs
    assert list(collection.docs) == ["d1", "d2"]
    assert dict(collection.docs.items()) == {"d1": Doc("a boat"), "d2": Doc("a train")}
    assert len(collection.docs) == 2
    assert collection.queries == {"q1": Query("boat")}
    assert collection.qrels == {"q1": {"d1": 1}}
    assert collection.splits == ({} if split is None else {"test": ("q1",)})
    assert collection.fingerprint == load("irds:toys/test").fingerprint


def test_ir_datasets_has_no_such_collection(library: Any) -> None:
    with pytest.raises(BadInput, match="ir_datasets has no collection 'toys/tset'; did you mean toys/test"):
        load("irds:toys/tset")
    with pytest.raises(BadInput, match=r"has no collection '!'; https://ir-datasets\.com lists the ids"):
        load("irds:!")
    with pytest.raises(BadInput, match="irds:toys has no queries"):
        load("irds:toys")


def test_ir_datasets_cannot_get_it(library: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = library.create_dataset(str(tmp_path / "gone.tsv"), str(tmp_path / "gone.tsv"))
    monkeypatch.setitem(library.registry._registered, "gone", gone)
    with pytest.raises(
        BadInput, match=r"ir_datasets cannot get 'gone' .*IR_DATASETS_HOME.*network; you can use a BEIR folder"
    ):
        load("irds:gone")


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(MissingExtra, match=r"pip install 'shaketable\[data\]'"):
        load("irds:antique/test")


def test_ir_datasets_keeps_the_bounds(library: Any, tmp_path: Path) -> None:
    (tmp_path / "docs.tsv").write_text("d1\ta boat\nd 2\ta train\n")
    (tmp_path / "qrels").write_text("q1 0 d1 2000000000\n")
    with pytest.raises(BadInput, match="grade 2000000000 is not a whole number from -127 to 127"):
        load("irds:toys/test")
    (tmp_path / "qrels").write_text("q1 0 d1 1\n")
    (tmp_path / "queries.tsv").write_text("q 1\tboat\n")
    with pytest.raises(BadInput, match="the query id 'q 1' has ' ' in it"):
        load("irds:toys/test")
    (tmp_path / "queries.tsv").write_text("q1\tboat\n")
    for read in (list, lambda docs: list(docs.items())):
        with pytest.raises(BadInput, match="the document id 'd 2' has ' ' in it"):
            read(load("irds:toys/test").docs)


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b"], ids=["long", "NUL"])
def test_names_that_no_folder_has(name: str) -> None:
    with pytest.raises(BadInput):
        load(name)


def same(one: Collection, other: Collection) -> bool:
    """All that a collection holds; corpora are alike if their content is."""
    names = ("name", "queries", "qrels", "splits", "candidates", "variants", "source", "fingerprint")
    return all(getattr(one, name) == getattr(other, name) for name in names) and (
        one.docs.fingerprint == other.docs.fingerprint
    )


@pytest.fixture
def larger(tmp_path: Path) -> Path:
    """A folder with queries enough to deal."""
    docs = MemoryCorpus({f"d{i}": Doc(f"boat number {i}") for i in range(4)})
    queries = {f"q{i}": Query(f"boat {i}") for i in range(10)}
    qrels = {qid: {"d1": 1} for qid in queries}
    splits = {"everyone": tuple(queries)}
    write_beir(Collection("larger", docs, queries, qrels, splits), tmp_path / "larger")
    return tmp_path / "larger"


@pytest.mark.parametrize(
    "odd", ["plain", "with space", "what?", "a&b=c", "50% + more", "#1", "é", "split=test", "x?split=y"]
)
def test_a_collection_has_a_source(
    larger: Path, toy: Path, tmp_path: Path, odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place" / odd
    place.parent.mkdir()
    larger.rename(place)
    run = toy.parent / f"first {odd.replace('/', '')}.run"
    run.write_text("q1 Q0 d2 1 1.0 t\nq2 Q0 d1 1 1.0 t\n")
    monkeypatch.chdir(place.parent)
    ways = [
        load(Path(odd)),
        load(f"./{odd}"),
        load(Path(odd), "everyone"),
        load(Path(odd), candidates=run.name if run.parent == Path.cwd() else f"../{run.name}"),
        load(Path(odd), split_ratio="60/20/20"),
        load(Path(odd), "test", run, "60/20/20", 3),
        load(toy, "test"),
        load(toy),
    ]
    monkeypatch.chdir(tmp_path)
    for collection in ways:
        assert collection.source.startswith("/"), "wherever it is read from"
        assert same(load(collection.source), collection)
    assert set(ways[5].queries) == set(ways[5].splits["test"])
    assert len(ways[5].queries) == 2


@pytest.mark.skipif(not (SAMPLE_FOLDER / "corpus.jsonl").exists(), reason="the sample is not written yet")
def test_the_sample_has_a_source() -> None:
    assert load("sample").source == "sample"
    assert load("sample", "test").source == "sample?split=test"
    for text in ("sample", "sample?split=test"):
        assert same(load(load(text).source), load(text))


def test_options_in_the_spec_and_as_arguments(larger: Path) -> None:
    assert same(load(f"{larger}?cut=60/20/20&seed=3&split=test"), load(larger, "test", split_ratio="60/20/20", seed=3))
    assert same(load(f"{larger}?cut=60/20/20&seed=3", "train"), load(larger, "train", split_ratio="60/20/20", seed=3))
    assert load(f"{larger}?cut=60/20/20&seed=3").splits != load(f"{larger}?cut=60/20/20").splits
    assert same(load(f"{larger}?cut=90/5/5", split_ratio="60/20/20"), load(larger, split_ratio="60/20/20"))
    assert same(load(f"{larger}?"), load(larger))


def test_a_collection_is_itself(larger: Path, tmp_path: Path) -> None:
    whole = load(larger)
    assert load(whole) == whole
    part = load(larger, "test", split_ratio="60/20/20")
    assert load(part) == part
    assert same(load(whole, "everyone"), load(larger, "everyone"))
    assert same(load(whole, split_ratio="60/20/20", seed=2), load(larger, split_ratio="60/20/20", seed=2))
    memory = Collection("mine", whole.docs, whole.queries, whole.qrels)
    assert load(memory).source == load(memory, split_ratio="60/20/20").source == ""


def test_repeated_options_have_a_readable_source_or_none(larger: Path, tmp_path: Path) -> None:
    (tmp_path / "first.run").write_text("q1 Q0 d2 1 1.0 t\n")
    for once in (
        load(larger, split_ratio="60/20/20"),
        load(larger, "everyone"),
        load(larger, candidates=tmp_path / "first.run"),
    ):
        for twice in (load(once, next(iter(once.splits))), load(once, candidates=tmp_path / "first.run")):
            assert twice.source == "" or same(load(twice.source), twice)
    again = load(load(larger, "everyone"), split_ratio="60/20/20")
    assert again.source == "" or same(load(again.source), again)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("splt=test", "no parameter of a collection is called 'splt'; did you mean split"),
        ("split=tset", "no split is called 'tset'"),
        ("cut=60/20", "a split ratio is three percentages"),
        ("cut=60/20/20&seed=x", "the seed of a split is a whole number, not 'x'"),
        ("cut=60/20/20&seed=1.5", "the seed of a split is a whole number"),
        ("candidates=absent.run", "absent.run: there is no such file"),
    ],
)
def test_parameters_that_make_no_sense(larger: Path, parameters: str, message: str) -> None:
    with pytest.raises((BadInput, UnknownName), match=message):
        load(f"{larger}?{parameters}")


def test_a_split_of_files_is_read_alone(toy: Path) -> None:
    (toy / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\n")
    with pytest.raises(BadInput, match="another split"):
        load(toy)
    assert load(toy, "test").qrels == {"q1": {"d1": 1}}
    assert load(toy, "train").qrels == {"q1": {"d1": 2}}
