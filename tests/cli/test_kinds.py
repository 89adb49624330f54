"""`shaketable train-kinds`, and `--kinds` of an audit: queries get kinds, and those without one are counted."""

from __future__ import annotations

import json

import pytest

import shaketable as st

AUDIT = ("audit", "--ranker", "bm25", "--task", "variance", "--out", "audit")


def test_a_model_is_learned_and_used(shaketable, tmp_path):
    ended = shaketable("train-kinds", "--data", "sample", "--split", "all", "-o", "model", "--json", "told.json")
    assert ended.code == 0, ended.err
    told = json.loads((tmp_path / "told.json").read_text())
    assert sum(map(sum, told["confusion"])) == len(st.load("sample").queries)
    assert told["kinds"] == ["description", "entity", "location", "numeric", "person"]
    right = sum(row[i] for i, row in enumerate(told["confusion"]))
    assert told["accuracy"] == pytest.approx(right / sum(map(sum, told["confusion"])))
    assert told["accuracy"] > 0.6  # the commonest kind alone would be right for under half of them
    assert f"accuracy {told['accuracy']:.3f}" in ended.err
    assert "were taken for each kind" in ended.out
    ended = shaketable(*AUDIT, "--kinds", "model")
    assert ended.code == 0, ended.err
    assert "kinds of queries by model: " in ended.err
    assert (
        "kinds=" in json.loads((tmp_path / "audit" / "results.json").read_text())["provenance"]["collection"]["source"]
    )
    assert (
        shaketable("train-kinds", "-o", "model").complaint()
        == "model: is there already; name a new folder for the model"
    )


def test_queries_without_a_kind_are_counted_and_said(shaketable, folder, tmp_path):
    (tmp_path / "kinds.tsv").write_text("qid\tkind\nq1\tEntity\nq3\tperson\n")
    ended = shaketable(*AUDIT, "--data", folder, "--kinds", "kinds.tsv")
    assert ended.code == 0, ended.err
    said = "entity 1, person 1, without a kind 1"
    assert f"kinds of queries by kinds.tsv: {said}" in ended.err
    assert said in (tmp_path / "audit" / "report.html").read_text()


def test_rules_make_slices(folder):
    done = st.audit(folder, "bm25", "variance", kinds="rules")
    assert "kinds of queries" in done.facts
    by_slice = st.audit("sample", "bm25", "variance", kinds="rules")["variance"].tables["by slice"]
    assert {"location", "person", "numeric"} <= set(by_slice[by_slice["slice"] == "kind"]["part"])


def test_what_is_wrong_with_kinds_is_said_in_a_sentence(shaketable, folder, tmp_path):
    assert "kinds come from 'rules'" in shaketable(*AUDIT, "--kinds", "nowhere").complaint()
    (tmp_path / "kinds.tsv").write_text("q1\tentity\n")
    assert "the first line should name the columns" in shaketable(*AUDIT, "--kinds", "kinds.tsv").complaint()
    complaint = shaketable("train-kinds", "--data", folder, "-o", "model").complaint()
    assert complaint.startswith("0 queries of trees have a kind, and 10 are needed to learn from")
    assert not (tmp_path / "model").exists()
