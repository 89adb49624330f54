"""Kinds of queries: from a file, by rules, by a model; what a file cannot say is said in a sentence."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.data import kind_model
from shaketable.data.beir import read_beir
from shaketable.data.corpus import MemoryCorpus
from shaketable.data.kind_model import learn, read_model
from shaketable.data.kind_rules import KINDS, RULES, kind_by_rules
from shaketable.data.kinds import told, with_kinds
from shaketable.data.load import load
from shaketable.errors import BadInput, Damaged
from shaketable.types import Collection, Doc, Query

BOATS = Collection(
    "boats",
    MemoryCorpus({"d1": Doc("a boat")}),
    {"q1": Query("Who built the boat"), "q2": Query("how  long is a boat", "old"), "q3": Query("boat")},
)


def kinds(collection: Collection) -> dict[str, str]:
    return {qid: query.kind for qid, query in collection.queries.items()}


def written(tmp_path: Path, text: str, name: str = "kinds.tsv") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


FILES = {
    "by id": ("kinds.tsv", "qid\tkind\nq1\tPERSON\nq2\tnumeric\n"),
    "columns in any order": ("kinds.tsv", "Type\tsize\tquery-id\nperson\t1\tq1\nnumeric\t2\tq2\n"),
    "by text": ("kinds.csv", 'text,kind\nwho built the BOAT,person\n"how long is a boat",numeric\n'),
    "query is an id": ("kinds.tsv", "query\tkind\nq1\tperson\nq2\tnumeric\n"),
    "query is a text": ("kinds.csv", "query,category\nWho built the boat,person\nhow long is a boat,numeric\n"),
    "text on two lines": ("kinds.csv", 'text,kind\n"Who built\nthe boat",person\nhow long is a boat,numeric\n'),
    "unknown ids, known texts": (
        "kinds.tsv",
        "id\ttext\tkind\n7\tWho built the boat\tperson\n8\thow long is a boat\tnumeric\n",
    ),
    "JSON": ("kinds.jsonl", '{"_id": "q1", "kind": "person", "n": [1]}\n{"_id": "q2", "kind": "numeric"}\n'),
    "other queries as well": ("kinds.tsv", "qid\tkind\nq1\tperson\nq2\tnumeric\nq9\tentity\nq3\t\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_file_says_the_kinds_and_who_is_not_in_it_has_none(name: str, tmp_path: Path) -> None:
    file, text = FILES[name]
    found = with_kinds(BOATS, written(tmp_path, text, file))
    assert kinds(found) == {"q1": "person", "q2": "numeric", "q3": ""}
    assert told(found.queries) == "numeric 1, person 1, without a kind 1"
    assert replace(found, queries=BOATS.queries) == BOATS


def test_a_gzipped_file(tmp_path: Path) -> None:
    path = tmp_path / "kinds.tsv.gz"
    path.write_bytes(gzip.compress(FILES["by id"][1].encode()))
    assert kinds(with_kinds(BOATS, path))["q1"] == "person"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1\tperson\n", r"kinds.tsv:1: the first line should name the columns, among them qid \(or text\) and kind"),
        ("qid\tsize\nq1\t3\n", r"the first line should name the columns.*it has: qid, size"),
        ("qid\tkind\n", "holds no kinds"),
        ("", "holds no kinds"),
        ("qid\tkind\nq1\n", "kinds.tsv:2: 1 cells where the header has 2"),
        ("qid\tkind\tkind\nq1\ta\tb\n", "two columns have the same name"),
        ("qid\tkind\nq1\tperson\nq1\tentity\n", r"kinds.tsv:3: query 'q1' is 'entity', and on line 2 'person'"),
        ("qid\tkind\nq8\tperson\n", "names no query of the collection, neither by id nor by text"),
        (f"qid\tkind\nq1\t{'x' * 101}\n", "is no short text that can be printed"),
        ('qid,kind\n"q1,person\n', "kinds.tsv:2: is not a line of a table"),
        ('{"qid": "q1"}\n', "kinds.tsv:1: there is no kind here, only: qid"),
        ('{"kind": "person"}\n', "there is no qid and no text here, only: kind"),
        ('{"qid": "q1", "kind": "person"}\n[1]\n', "kinds.tsv:2: a line is a JSON object"),
    ],
)  # fmt: skip
def test_a_file_that_says_no_kinds(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=message):
        with_kinds(BOATS, written(tmp_path, text))


def test_nothing_of_that_name(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"there is no file or folder .*nowhere.*; kinds come from 'rules', a file"):
        with_kinds(BOATS, tmp_path / "nowhere")
    with pytest.raises(BadInput, match="holds no model of kinds; 'shaketable train-kinds' writes one"):
        with_kinds(BOATS, tmp_path)


def test_a_collection_is_loaded_with_kinds_and_says_so(folder: Path, tmp_path: Path) -> None:
    file = written(tmp_path, "qid\tkind\nq1\tentity\n")
    for kinds_, expected in (("rules", "description"), (file, "entity")):
        collection = load(folder, kinds=kinds_)
        assert collection.queries["q1"].kind == expected
        assert load(collection.source).queries == collection.queries
        assert load(load(folder), "test", kinds=kinds_).queries == collection.queries
        assert load(f"{folder}?split=test&kinds={kinds_}").queries == collection.queries


def test_what_is_learned_does_not_depend_on_kinds(folder: Path) -> None:
    """`Bench.fit` names what it keeps by this fingerprint; no learner looks at kinds."""
    plain, labelled = load(folder), load(folder, kinds="rules")
    assert plain.queries != labelled.queries
    assert plain.fingerprint == labelled.fingerprint


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("Where is Ghent?", "location"),
        ("what county is ghent ny in", "location"),
        ("what time zone is ghent in", "location"),
        ("how many bridges are in ghent", "numeric"),
        ("when was ghent founded", "numeric"),
        ("population of ghent", "numeric"),
        ("population definition", "description"),
        ("who painted the ghent altarpiece", "person"),
        ("what painter lived in ghent", "entity"),
        ("what color is the flag of ghent", "entity"),
        ("symptoms of homesickness", "entity"),
        ("how to get to ghent", "description"),
        ("what is a guild", "description"),
        ("why is ghent wet", "description"),
        ("ghent", "description"),
        ("", "description"),
    ],
)
def test_rules_by_hand(query: str, kind: str) -> None:
    assert kind_by_rules(query) == kind


@given(st.text())
def test_rules_have_an_answer_for_everything(text: str) -> None:
    assert kind_by_rules(text) in KINDS
    assert {kind for kind, _ in RULES} == set(KINDS)


TRAIN = [
    *((f"who {verb} the boat", "person") for verb in ("built", "sold", "painted", "sank", "steered", "found")),
    *((f"boat {what} please", "numeric") for what in ("price", "length", "cost", "age", "weight", "number")),
    *((f"is the boat {how}", "description") for how in ("red", "slow", "old", "wet", "safe", "new")),
]


def test_a_model_is_what_another_library_makes_of_the_same_features() -> None:
    """scikit-learn: C = 1 / (n · penalty), with a free constant for each kind."""
    sklearn = pytest.importorskip("sklearn.linear_model")
    model = learn(TRAIN, penalty=0.01)
    queries = [query for query, _ in TRAIN]
    rows = kind_model._matrix(queries, model.known).toarray()[:, :-1]
    peer = sklearn.LogisticRegression(C=1 / (len(TRAIN) * 0.01), tol=1e-10, max_iter=10_000)
    peer.fit(rows, [kind for _, kind in TRAIN])
    assert tuple(peer.classes_) == model.kinds
    assert model.probabilities(queries) == pytest.approx(peer.predict_proba(rows), abs=1e-4)


def test_a_model_tells_queries_that_it_has_not_seen() -> None:
    model = learn(TRAIN)
    new = {"who lost the boat": "person", "boat height please": "numeric", "is the boat big": "description"}
    assert model.predict(list(new)) == list(new.values())
    assert model.predict([]) == []
    assert model.predict(["", "xyzzy"])  # nothing that it knows
    assert model.probabilities(["xyzzy"]).sum() == pytest.approx(1)


def test_a_saved_model_is_the_same_model(tmp_path: Path) -> None:
    model = learn(TRAIN)
    model.save(tmp_path / "model")
    again = read_model(tmp_path / "model")
    queries = ["who lost the boat", "boat"]
    assert (again.probabilities(queries) == model.probabilities(queries)).all()
    assert kinds(with_kinds(BOATS, tmp_path / "model"))["q1"] == "person"
    with pytest.raises(BadInput, match="is there already; name a new folder"):
        model.save(tmp_path / "model")


def test_the_order_of_the_queries_does_not_matter() -> None:
    queries = ["who lost the boat", "boat height"]
    assert learn(TRAIN).probabilities(queries) == pytest.approx(learn(TRAIN[::-1]).probabilities(queries), abs=1e-3)


@pytest.mark.parametrize("name", ["weights.bin", "known.blob.bin", "about.json"])
def test_a_damaged_model_is_refused(name: str, tmp_path: Path) -> None:
    learn(TRAIN).save(tmp_path / "model")
    path = tmp_path / "model" / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(Damaged):
        read_model(tmp_path / "model")


def test_a_folder_of_other_arrays_is_no_model(tmp_path: Path) -> None:
    with kind_model.arrays.kept(tmp_path / "other", {"format": "other"}) as writer:
        writer.append("weights", np.zeros(3))
    with pytest.raises(BadInput, match="holds something else than a model of kinds"):
        read_model(tmp_path / "other")


def test_one_kind_is_none() -> None:
    with pytest.raises(BadInput, match="needs queries of two kinds at least; there are 1"):
        learn([("a b", "x"), ("b c", "x")])


def test_official_types(shared_data: Path) -> None:
    """Rules were written by looking at the train split; the test split is new to them and to the model."""
    whole = read_beir(shared_data / "collections" / "msmarco-types")
    train, test = ([whole.queries[qid] for qid in whole.splits[part]] for part in ("train", "test"))
    by_rules = np.mean([kind_by_rules(q.text) == q.kind for q in test])
    model = learn([(q.text, q.kind) for q in train])
    by_model = np.mean([kind == q.kind for q, kind in zip(test, model.predict([q.text for q in test]), strict=True)])
    assert by_rules > 0.85
    assert by_model > 0.86


def test_published_files_of_kinds(shared_data: Path) -> None:
    """Tables that others wrote, one by id and one by text."""
    folder = shared_data / "query-types"
    hard = {"50122": Query("benefit policy in layoff"), "x": Query("nothing")}
    found = with_kinds(replace(BOATS, queries=hard), folder / "dl-hard-annotations.tsv")
    assert kinds(found) == {"50122": "description", "x": ""}
    asked = {"1": Query("what are the differences between Chinese and Western universities?")}
    assert kinds(with_kinds(replace(BOATS, queries=asked), folder / "nf-cats-test.csv")) == {"1": "comparison"}


def test_json_ids_may_be_numbers(tmp_path: Path) -> None:
    queries = {"301": Query("boat")}
    path = written(tmp_path, json.dumps({"qid": 301, "type": "entity"}), "kinds.jsonl")
    assert kinds(with_kinds(replace(BOATS, queries=queries), path)) == {"301": "entity"}
