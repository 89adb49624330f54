"""Variations from files: of any shape, by id or by text, labelled or judged."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from shaketable.core.documents import Query
from shaketable.core.errors import BadInput
from shaketable.datasets.load import load
from shaketable.nlp.bigrams import Bigrams
from shaketable.transforms.presets import PAPER_004, select_transforms
from shaketable.transforms.published import find_sources, read_variations
from shaketable.transforms.validity import NO_EVIDENCE_REASON, Validity
from shaketable.transforms.vary import HUMAN, vary

TEXTS = ("What's the Red boat?", "flu symptoms", "tea", "Tea!", "🙃")
QUERIES = {f"q{i}": Query(text) for i, text in enumerate(TEXTS, 1)}
COLUMNS = ("query", "method", "category", "text", "valid", "remark")
ROWS = [
    ("q1", "drop_letter", "misspelling", "Whats the rd boat", "True", ""),
    ("flu  symptoms?", "syn_swap", "", "flu signs", "", "matched by its text"),
    ("q2", "WordSwapWordNet", "synonym", "grippe symptoms", "no", ""),
    ("q2", "", "", "symptoms flu", "", ""),
    ("q2", "drop_letter", "", "", "", "an empty text"),
]


@pytest.mark.parametrize("name", ["v.csv", "v.tsv", "v.jsonl", "v.csv.gz", "v.jsonl.gz"])
def test_files_of_any_shape(name, tmp_path: Path):
    if "jsonl" in name:
        text = "\n".join(json.dumps(dict(zip(COLUMNS, row, strict=True))) for row in ROWS)
    else:
        text = "\n".join(("," if "csv" in name else "\t").join(row) for row in [COLUMNS, *ROWS])
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    found = read_variations(path, QUERIES)
    assert [(v.qid, v.method, v.category, v.text, v.original, v.valid) for v in found] == [
        ("q1", "drop_letter", "misspelling", "whats the rd boat", "what's the red boat?", True),
        ("q2", "syn_swap", "paraphrasing", "flu signs", "flu symptoms", False),
        ("q2", "wordnet_syn_swap", "paraphrasing", "grippe symptoms", "flu symptoms", False),
        ("q2", HUMAN, "ordering", "symptoms flu", "flu symptoms", True),
        ("q2", "drop_letter", "misspelling", "", "flu symptoms", False),
    ]
    labelled = f"It is labelled as not valid in {name}."
    assert [v.why for v in found] == ["", NO_EVIDENCE_REASON, labelled, "", "The text is empty."]
    judged = read_variations(path, QUERIES, Validity(bigrams=Bigrams(list)))
    assert [v.valid for v in judged] == [True, True, False, True, False], "without a label the given judge decides"


@pytest.mark.parametrize("name", ["v.jsonl", "v.tsv"])
def test_the_output_of_vary_is_read_back(name, tmp_path: Path):
    """With the columns that the command writes; a change of case alone stays what it is."""
    edits, _ = select_transforms(categories=["naturality", "ordering", "misspelling"])
    made = vary(QUERIES, edits)
    rows = [asdict(v) for v in made]
    lines = ["\t".join(map(str, row.values())) for row in rows] if "tsv" in name else [json.dumps(row) for row in rows]
    (tmp_path / name).write_text("\n".join(["\t".join(rows[0]), *lines] if "tsv" in name else lines))
    read = read_variations(tmp_path / name, QUERIES)
    assert [replace(v, why="") for v in read] == [replace(v, why="") for v in made]
    assert any(v.text != v.text.lower() for v in read)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("q9,drop_letter,misspelling,x,True", "no query has the id 'q9' or the text 'q9'"),
        ("TEA?,drop_letter,misspelling,x,True", "the queries q3, q4 all have the text 'TEA[?]'; give the id instead"),
        ("q1,drop_letter,funny,x,True", "the category is one of misspelling, .* not 'funny'"),
        ("q1,drop_letter,misspelling,x,perhaps", "the label in the column valid is one of true, .* not 'perhaps'"),
        ("q1,drop_letter,misspelling,x", "the header has 5 columns, this row has 4"),
        ("🙂,drop_letter,misspelling,x,True", "no query has the id '🙂' or the text '🙂'"),
        (",drop_letter,misspelling,x,True", "a variation needs a query [(]its id or its text[)] and a text"),
    ],
)
def test_broken_rows_are_named(row, message, tmp_path: Path):
    path = tmp_path / "v.csv"
    path.write_text(f"query,method,category,text,valid\nq1,drop_letter,misspelling,x,True\n{row}\n")
    with pytest.raises(BadInput, match=rf"v\.csv:3: {message}"):
        read_variations(path, QUERIES)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("v.jsonl", '{"query": "q1", "text": "x"}\n{"query": ', r"v\.jsonl:2: a line is a JSON object"),
        ("v.jsonl", "[1]", r"v\.jsonl:1: a line is a JSON object"),
        ("v.csv", "id;text\nq1;x\n", r"v\.csv:2: a variation needs a query"),
        (
            "v.csv",
            "query,original,text\nq1,green tea,x\n",
            r"v\.csv:2: the query 'q1' is .*, but 'green tea' in the file",
        ),
    ],
)
def test_broken_files_are_named(name, text, message, tmp_path: Path):
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInput, match=message):
        read_variations(tmp_path / name, QUERIES)


def test_a_header_alone_has_no_variations(tmp_path: Path):
    (tmp_path / "v.csv").write_text("query,text\n")
    (tmp_path / "empty.csv").write_text("")
    assert read_variations(tmp_path / "v.csv", QUERIES) == read_variations(tmp_path / "empty.csv", QUERIES) == []


def test_methods_declare_their_sources():
    assert find_sources("syn_swap") == find_sources("syn_swap(choice='random')") == ("thesaurus",)
    assert find_sources("wordnet_syn_swap") == find_sources("somebody's own") == find_sources(HUMAN) == ()


@pytest.mark.parametrize(("name", "rows", "valid"), [("trec-dl-2019", 429, 334), ("antique", 2001, 1506)])
def test_the_files_of_the_paper_are_read_as_they_are(name, rows, valid, shared_data):
    path = shared_data / "variations" / f"qvg-{name}.csv"
    if name == "antique":  # its passages are not installed, so the queries come from the file
        with path.open(newline="", encoding="utf-8") as file:
            queries = {row["q_id"]: Query(row["original_query"]) for row in csv.DictReader(file)}
    else:
        queries = dict(load(str(shared_data / "collections" / "dl19")).queries)
    found = read_variations(path, queries)
    assert (len(found), sum(v.valid for v in found)) == (rows, valid)
    assert {v.method for v in found} == set(PAPER_004.values())
    kinds = Counter(v.category for v in found)
    assert kinds["misspelling"] == 3 * kinds["ordering"]


def test_ids_of_others_do_not_matter_where_the_texts_are_the_same(shared_data):
    queries = {f"mine-{i}": q for i, q in enumerate(load(str(shared_data / "collections" / "dl19")).queries.values())}
    found = read_variations(shared_data / "variations" / "qvg-trec-dl-2019.csv", queries)
    assert {v.qid for v in found} == set(queries)
