"""`--query-types` of an audit: queries get types, and those without one are counted."""

from __future__ import annotations

import shaketable as st

AUDIT = ("audit", "--ranker", "bm25", "--task", "variance", "--out", "audit")


def test_queries_without_a_type_are_counted_and_reported(shaketable, folder, tmp_path):
    (tmp_path / "kinds.tsv").write_text("qid\tkind\nq1\tEntity\nq3\tperson\n")
    ended = shaketable(*AUDIT, "--data", folder, "--query-types", "kinds.tsv")
    assert ended.code == 0, ended.err
    said = "entity 1, person 1, without a type 1"
    assert f"Query types from kinds.tsv: {said}" in ended.err
    assert said in (tmp_path / "audit" / "report.html").read_text()


def test_rules_make_slices(folder):
    done = st.audit(folder, "bm25", "variance", query_types="rules")
    assert "query types" in done.facts
    by_slice = st.audit("sample", "bm25", "variance", query_types="rules")["variance"].tables["by slice"]
    assert {"location", "person", "numeric"} <= set(by_slice[by_slice["slice"] == "query type"]["part"])


def test_errors_in_query_types_are_one_sentence(shaketable, folder, tmp_path):
    assert "query types come from 'rules'" in shaketable(*AUDIT, "--query-types", "nowhere").complaint()
    (tmp_path / "kinds.tsv").write_text("q1\tentity\n")
    assert "the first line should name the columns" in shaketable(*AUDIT, "--query-types", "kinds.tsv").complaint()
