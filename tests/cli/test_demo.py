"""`shaketable demo`: a short verdict, in the folder of an earlier audit or in none."""

from __future__ import annotations

import json

import pytest

import shaketable as st

MAX_LINES = 25


@pytest.mark.slow
def test_the_demo_replaces_an_earlier_audit_and_prints_a_short_verdict(shaketable, tmp_path):
    st.audit("sample", "bm25", "effectiveness", max_queries=5).save(tmp_path / "shaketable-audit")
    ended = shaketable("demo")
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert len(lines) <= MAX_LINES
    assert lines[0].startswith("FAILED (not enforced; add --gate): ql and no-op fail.")
    assert "50 queries: a demonstration" in " ".join(lines)
    results = json.loads((tmp_path / "shaketable-audit" / "results.json").read_text(encoding="utf-8"))
    assert list(results["provenance"]["rankers"]) == ["bm25", "ql", "no-op"]
    cells = {one["ranker"]: one["facet_cells"] for one in results["verdict"]["ranker_verdicts"]}
    assert cells["no-op"]["input order"]["status"] == "fail"
    passes = [facet for facet, cell in cells["no-op"].items() if cell["status"] == "pass"]
    assert passes == [], "a ranker that changes nothing passes no facet"


def test_a_report_of_the_user_is_kept(shaketable, tmp_path):
    folder = tmp_path / "shaketable-audit"
    folder.mkdir()
    (folder / "report.html").write_text("mine")
    assert "has a file report.html that no audit wrote" in shaketable("demo").complaint()
    assert [path.name for path in folder.iterdir()] == ["report.html"]
    assert (folder / "report.html").read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_refused_before_the_audit(shaketable, tmp_path):
    (tmp_path / "taken").write_text("a file")
    assert "cannot be written to (Not a directory)" in shaketable("demo", "--out", "taken/audit").complaint()
