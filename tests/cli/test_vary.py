"""`shaketable vary`: queries from anywhere, variations with their validity."""

from __future__ import annotations

import io
import json

import pytest


def rows(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_tsv_of_queries(shaketable, tmp_path):
    (tmp_path / "q.tsv").write_text("q1\thow to bake good bread\nq2\tgarden slugs at night\n")
    ended = shaketable(
        "vary", "q.tsv", "--category", "ordering", "--transform", "drop_letter", "-n", "2", "--seed", "3"
    )
    assert ended.code == 0, ended.err
    found = rows(ended.out)
    assert {(r["qid"], r["method"]) for r in found} == {
        (q, m) for q in ("q1", "q2") for m in ("drop_letter", "random_order_swap")
    }
    assert all(r["text"] != r["original"] for r in found)
    assert shaketable(
        "vary", "q.tsv", "--category", "ordering", "--transform", "drop_letter", "-n", "2", "--seed", "3"
    ).out == (ended.out)


def test_a_collection_into_files(shaketable, folder, tmp_path):
    for name in ("v.jsonl", "v.tsv", "v.jsonl.gz"):
        assert shaketable("vary", folder, "--transform", "drop_letter", "--write-variations", name).code == 0
        assert (tmp_path / name).stat().st_size > 0
    header, *lines = (tmp_path / "v.tsv").read_text().splitlines()
    assert header.split("\t") == ["qid", "method", "category", "text", "original", "valid", "why"]
    assert len(lines) == len((tmp_path / "v.jsonl").read_text().splitlines()) == 3


def test_stdin(shaketable, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("q1\tred boat on a lake\n"))
    (row,) = rows(shaketable("vary", "-", "--transform", "random_order_swap").out)
    assert sorted(row["text"].split()) == sorted(["red", "boat", "on", "a", "lake"])


def test_stdin_without_ids_is_refused(shaketable, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("q1\tred boat\nred boat on a lake\n"))
    assert "standard input: each line must have a query id" in shaketable("vary", "-").complaint()


def test_human_variants_are_written_like_others(shaketable, folder, tmp_path):
    (tmp_path / "mine.tsv").write_text("q1\ttree oak leaves\tordering\nq2\tneedles in winter\n")
    found = rows(shaketable("vary", folder, "--variants", "mine.tsv").out)
    assert [(r["qid"], r["method"], r["valid"]) for r in found] == [("q1", "human", True), ("q2", "human", False)]


@pytest.mark.parametrize("text", ["", "a", "the of and", "日本語", "🌲", "x" * 10_000, "tab\there"])
def test_odd_queries_never_crash(shaketable, tmp_path, text):
    (tmp_path / "q.tsv").write_text(f"q1\t{text}\nq2\tgood bread\n", encoding="utf-8")
    ended = shaketable("vary", "q.tsv", "--write-variations", "v.jsonl")
    assert ended.code in (0, 2), ended.err
    assert "Traceback" not in ended.err


def test_bad_words(shaketable, tmp_path):
    (tmp_path / "q.tsv").write_text("q1\tgood bread\n")
    assert "did you mean drop_letter" in shaketable("vary", "q.tsv", "--transform", "drop_leter").complaint()
    assert "did you mean misspelling" in shaketable("vary", "q.tsv", "--category", "mispelling").complaint()
    assert "back_translation" in shaketable("vary", "q.tsv", "--transform", "back_translation").complaint()
    assert "absent" in shaketable("vary", "absent").complaint()
    assert (
        "add_queries is a transform of documents"
        in shaketable("vary", "q.tsv", "--transform", "add-queries").complaint()
    )


def test_a_variation_without_evidence_is_not_judged(shaketable, tmp_path):
    """The label of such variations stays empty, because a later run with a collection decides their validity."""
    (tmp_path / "q.tsv").write_text("q1\tcold war origins\nq2\thow to buy a house\nq3\tversailles failure\n")
    for name in ("v.jsonl", "v.tsv"):
        ended = shaketable("vary", "q.tsv", "--transform", "syn_swap", "-n", "5", "--write-variations", name)
    found = rows((tmp_path / "v.jsonl").read_text())
    cold, unknown = ({r["text"]: r for r in found if r["qid"] == qid} for qid in ("q1", "q3"))
    assert cold["chilly war origins"]["valid"] is False
    unjudged = [r for r in found if r["valid"] is None]
    assert unjudged or all(r["valid"] is False for r in unknown.values())
    assert all(r["why"].startswith("Not judged:") for r in unjudged)
    assert not any(r["valid"] for r in unknown.values())
    assert ended.err.count(f"{len(unjudged)} could not be judged") == bool(unjudged)
    column = [line.split("\t")[5] for line in (tmp_path / "v.tsv").read_text().splitlines()[1:]]
    assert column == ["" if r["valid"] is None else str(r["valid"]) for r in found]
