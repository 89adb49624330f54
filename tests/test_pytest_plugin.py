"""The pytest plugin in real sessions of pytest."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

RANKER = """
def score(query, texts):
    words = set(query.lower().split())
    return [len(words & set(text.lower().split())) for text in texts]

SETTINGS = {"tasks": "effectiveness", "max_queries": 20}
"""
TESTS = """
def test_good(shaketable_audit):
    audit = shaketable_audit({"mine": score}, rules="nDCG@10>=0.1", **SETTINGS)
    assert audit.findings

def test_bad(shaketable_audit):
    shaketable_audit({"mine": score}, rules=["nDCG@10>=0.99", "nDCG@10>=0.1"], **SETTINGS)
"""


def run_pytest(folder: Path, text: str, *arguments: str) -> str:
    (folder / "test_mine.py").write_text(text)
    plugin = ("-p", "shaketable.pytest_plugin", "-p", "no:cacheprovider", "-W", "error")
    command = [sys.executable, "-m", "pytest", *plugin, *arguments, "test_mine.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_broken_rules_fail_and_verdicts_end_the_session(tmp_path, arguments):
    out = run_pytest(tmp_path, RANKER + TESTS, *arguments)
    assert "1 failed, 1 passed" in out
    assert "AssertionError: 1 of 2 rules are broken:" in out
    assert "shaketable verdicts" in out
    assert "test_mine.py::test_good: 1 of 1 rules hold; " in out
    assert "test_mine.py::test_bad: 1 of 2 rules hold; " in out


def test_a_session_without_the_fixture_is_as_without_the_plugin(tmp_path):
    code = "import sys\ndef test_nothing():\n    heavy = {'numpy', 'pandas', 'scipy', 'shaketable.api.audit'}\n"
    out = run_pytest(tmp_path, f"{code}    assert not heavy & set(sys.modules)\n", "-p", "no:xdist")
    assert "1 passed" in out
    assert "verdicts" not in out


def test_the_package_registers_the_plugin():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"shaketable": "shaketable.pytest_plugin"}
