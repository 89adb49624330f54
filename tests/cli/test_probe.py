"""`shaketable probe`, as users run it."""

from __future__ import annotations

import json

import pytest

PAIRS = [
    {"id": "fits", "query": "oak tree", "a": "an oak is a tree", "b": "a pine in winter", "expect": "a"},
    {"id": "order", "query": "oak tree", "a": "oak tree", "b": "tree oak", "expect": "same"},
]


def write_rows(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_paper_s_tables_for_a_ranker(shaketable, tmp_path):
    probes = ("--probe", "tf-given-length", "--probe", "shuffle-*")
    done = shaketable("probe", "--ranker", "bm25", *probes, "--max-queries", "10", "--tables")
    assert done.code == 0
    for said in ("measure and match", "text manipulation", "TF | Length", "Shuffle words", "1.0000"):
        assert said in done.out
    results = json.loads((tmp_path / "shaketable-probe" / "results.json").read_text())
    (task,) = results["tasks"] if "tasks" in results else results["results"]
    names = {finding["name"] for finding in task["findings"]}
    assert "tf-given-length.s" not in names, "ten queries have fewer than 200 such pairs: no claim"
    assert "shuffle-words.s" in names
    assert "<svg" in (tmp_path / "shaketable-probe" / "report.html").read_text()


def test_a_gate_reads_a_finding(shaketable):
    words = ("probe", "--ranker", "bm25", "--probe", "prepend-query", "--max-queries", "15")
    assert shaketable(*words, "--require", "prepend-query.s>=0.9").code == 0
    assert shaketable(*words, "--require", "bm25.prepend-query.s<=0").code == 1


def test_own_pairs_decide_the_exit_code(shaketable, tmp_path):
    right = write_rows(tmp_path / "right.jsonl", PAIRS)
    done = shaketable("probe", "--ranker", "bm25", "--pairs", right)
    assert done.code == 0
    assert "your pairs, one by one" in done.out
    assert PAIRS[0]["a"] in done.out
    assert PAIRS[0]["b"] in done.out
    wrong = write_rows(tmp_path / "wrong.jsonl", [PAIRS[0] | {"expect": "b"}])
    done = shaketable("probe", "--ranker", "bm25", "--pairs", wrong)
    assert done.code == 1
    assert "1 of your own pairs differ from the expectation" in done.err


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"query": "x", "a": "y", "expect": "a"}, "b"),
        ({"query": "x", "a": "y", "b": "y", "expect": "a"}, "the two texts are the same"),
        ({"query": "x", "a": "y", "b": "z", "expect": "c"}, "expect"),
        ({"query": "x", "a": "", "b": "z", "expect": "b"}, "a"),
    ],
)
def test_pairs_that_cannot_be_used(shaketable, tmp_path, row, said):
    complaint = shaketable(
        "probe", "--ranker", "bm25", "--pairs", write_rows(tmp_path / "mine.jsonl", [row])
    ).complaint()
    assert "mine.jsonl:1" in complaint or "line 1" in complaint
    assert said in complaint
    assert not (tmp_path / "shaketable-probe").exists()


def test_missing_files_and_names(shaketable, tmp_path):
    assert "no probe" in shaketable("probe", "--ranker", "bm25", "--probe", "shufle-*").complaint()
    assert "is not a parser" in shaketable("probe", "--ranker", "bm25", "--parser", "klingon").complaint()
    gone = shaketable("probe", "--ranker", "bm25", "--pairs", tmp_path / "gone.jsonl").complaint()
    assert "there is no file" in gone
    assert "gone.jsonl" in gone
    beside = ("--probe", "shuffle-words", "--max-queries", "3", "--pairs", tmp_path / "gone.jsonl")
    assert "there is no file" in shaketable("probe", "--ranker", "bm25", *beside).complaint()
    empty = write_rows(tmp_path / "empty.jsonl", [])
    assert "has no pairs" in shaketable("probe", "--ranker", "bm25", "--pairs", empty).complaint()
    lost = shaketable("probe", "--ranker", "bm25", "--probe", "fluency(path='nowhere')").complaint()
    assert "JFLEG" in lost


def test_documents_without_sentences_and_collections_without_grades(shaketable, folder):
    """The toy collection has single sentences, and nothing judged 0 for two of its queries."""
    done = shaketable(
        "probe", "--data", folder, "--ranker", "bm25", "--probe", "shuffle-sentences", "--probe", "*-given-*"
    )
    assert done.code == 0
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    words = ("probe", "--data", folder, "--ranker", "bm25", "--probe", "relevance-given-length")
    assert "all judged documents have the same grade" in shaketable(*words).complaint()
    done = shaketable(*words, "--probe", "fluency", "--tables")
    assert done.code == 0
    assert "1 test was skipped" in done.out


def test_probes_are_listed(shaketable):
    listed = shaketable("list", "probes").out
    assert "shuffle_prepositions" in listed
    assert "prox5" in listed
