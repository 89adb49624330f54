"""The Python example of the README; tests/test_pages.py runs its commands."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def from_python() -> str:
    section = README.read_text(encoding="utf-8").partition("## From Python")[2].partition("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    return str(code)


def test_the_python_example_is_five_lines_and_runs(tmp_path, monkeypatch):
    lines = [line for line in from_python().splitlines() if line.strip()]
    assert len(lines) == 5
    assert lines[0] == "import shaketable as st"
    monkeypatch.chdir(tmp_path)
    found: dict = {}
    exec(compile("\n".join(lines), str(README), "exec"), found)  # noqa: S102
    audit = found["audit"]
    assert set(audit["risk"].tables["risk"]["ranker"]) == {"bm25", "mine"}
    (rule,) = re.findall(r"check\(\"(.+)\"\)", "\n".join(lines))
    assert audit.check(rule) is True
    (folder,) = re.findall(r"save\(\"(.+)\"\)", "\n".join(lines))
    assert (tmp_path / folder / "report.html").is_file()
