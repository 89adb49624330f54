"""Query types from a file or by rules; errors in a file are one sentence."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.documents import Collection, Doc, Query
from shaketable.core.errors import BadInput
from shaketable.datasets.beir import read_beir
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.datasets.load import load
from shaketable.datasets.query_types.labels import format_type_counts, with_query_types
from shaketable.datasets.query_types.rules import QUERY_TYPES, TYPE_PATTERNS, classify_by_rules

BOATS = Collection(
    "boats",
    MemoryCorpus({"d1": Doc("a boat")}),
    {"q1": Query("Who built the boat"), "q2": Query("how  long is a boat", "old"), "q3": Query("boat")},
)


def kinds(collection: Collection) -> dict[str, str]:
    return {qid: query.type for qid, query in collection.queries.items()}


def write_file(tmp_path: Path, text: str, name: str = "kinds.tsv") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


FILES = {
    "by id": ("kinds.tsv", "qid\ttype\nq1\tPERSON\nq2\tnumeric\n"),
    "by the name of before": ("kinds.tsv", "qid\tkind\nq1\tPERSON\nq2\tnumeric\n"),
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
def test_a_file_labels_queries_and_others_have_no_type(name: str, tmp_path: Path) -> None:
    file, text = FILES[name]
    found = with_query_types(BOATS, write_file(tmp_path, text, file))
    assert kinds(found) == {"q1": "person", "q2": "numeric", "q3": ""}
    assert format_type_counts(found.queries) == "numeric 1, person 1, without a type 1"
    assert replace(found, queries=BOATS.queries) == BOATS


def test_a_gzipped_file(tmp_path: Path) -> None:
    path = tmp_path / "kinds.tsv.gz"
    path.write_bytes(gzip.compress(FILES["by id"][1].encode()))
    assert kinds(with_query_types(BOATS, path))["q1"] == "person"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1\tperson\n", r"kinds.tsv:1: the first line should name the columns, among them qid \(or text\) and type"),
        ("qid\tsize\nq1\t3\n", r"the first line should name the columns.*it has: qid, size"),
        ("qid\tkind\n", "has no query types"),
        ("", "has no query types"),
        ("qid\tkind\nq1\n", "kinds.tsv:2: 1 cells where the header has 2"),
        ("qid\tkind\tkind\nq1\ta\tb\n", "two columns have the same name"),
        ("qid\tkind\nq1\tperson\nq1\tentity\n", r"kinds.tsv:3: query 'q1' is 'entity', and on line 2 'person'"),
        ("qid\tkind\nq8\tperson\n", "has no query of this collection, neither by id nor by text"),
        (f"qid\tkind\nq1\t{'x' * 101}\n", "is not a short printable text"),
        ('qid,kind\n"q1,person\n', "kinds.tsv:2: is not a line of a table"),
        ('{"qid": "q1"}\n', "kinds.tsv:1: there is no type here, only: qid"),
        ('{"kind": "person"}\n', "there is no qid and no text here, only: kind"),
        ('{"qid": "q1", "kind": "person"}\n[1]\n', "kinds.tsv:2: a line is a JSON object"),
    ],
)  # fmt: skip
def test_a_file_without_query_types(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=message):
        with_query_types(BOATS, write_file(tmp_path, text))


def test_nothing_of_that_name(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(BadInput, match=r"there is no file .*; query types come from 'rules', or a file"):
            with_query_types(BOATS, path)


def test_a_collection_is_loaded_with_query_types_and_reports_it(folder: Path, tmp_path: Path) -> None:
    file = write_file(tmp_path, "qid\tkind\nq1\tentity\n")
    for kinds_, expected in (("rules", "description"), (file, "entity")):
        collection = load(folder, query_types=kinds_)
        assert collection.queries["q1"].type == expected
        assert load(collection.source).queries == collection.queries
        assert load(load(folder), "test", query_types=kinds_).queries == collection.queries
        assert load(f"{folder}?split=test&query_types={kinds_}").queries == collection.queries


def test_training_does_not_depend_on_query_types(folder: Path) -> None:
    """`Experiment.to_fit_result` names cached models by this fingerprint; no learner uses query types."""
    plain, labelled = load(folder), load(folder, query_types="rules")
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
    assert classify_by_rules(query) == kind


@given(st.text())
def test_rules_have_an_answer_for_everything(text: str) -> None:
    assert classify_by_rules(text) in QUERY_TYPES
    assert {kind for kind, _ in TYPE_PATTERNS} == set(QUERY_TYPES)


def test_official_types(shared_data: Path) -> None:
    """Rules were written by looking at the train split; the test split is new to them."""
    whole = read_beir(shared_data / "collections" / "msmarco-types")
    test = [whole.queries[qid] for qid in whole.splits["test"]]
    assert np.mean([classify_by_rules(q.text) == q.type for q in test]) > 0.85


def test_published_files_of_kinds(shared_data: Path) -> None:
    """Tables that others wrote, one by id and one by text."""
    folder = shared_data / "query-types"
    hard = {"50122": Query("benefit policy in layoff"), "x": Query("nothing")}
    found = with_query_types(replace(BOATS, queries=hard), folder / "dl-hard-annotations.tsv")
    assert kinds(found) == {"50122": "description", "x": ""}
    asked = {"1": Query("what are the differences between Chinese and Western universities?")}
    assert kinds(with_query_types(replace(BOATS, queries=asked), folder / "nf-cats-test.csv")) == {"1": "comparison"}


def test_json_ids_may_be_numbers(tmp_path: Path) -> None:
    queries = {"301": Query("boat")}
    path = write_file(tmp_path, json.dumps({"qid": 301, "type": "entity"}), "kinds.jsonl")
    assert kinds(with_query_types(replace(BOATS, queries=queries), path)) == {"301": "entity"}
