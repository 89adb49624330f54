"""`shaketable demo`: a folder that it must not write to. tests/test_pages.py runs the demo of the README."""

from __future__ import annotations


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
