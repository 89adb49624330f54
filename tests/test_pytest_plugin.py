"""The pytest plugin in real sessions of pytest."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
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
    """Run pytest where the entry point of our pyproject.toml is installed, and return what it prints."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    about = folder / "site" / "plugin-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    points = "".join(f"{name} = {module}\n" for name, module in project["entry-points"]["pytest11"].items())
    (about / "entry_points.txt").write_text(f"[pytest11]\n{points}")
    (folder / "test_mine.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", *arguments, "test_mine.py"]
    path = os.pathsep.join([str(folder / "site"), str(ROOT / "src")])
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("-p", "shaketable.pytest_plugin"), ("-n", "1")], ids=["named", "xdist"])
def test_broken_rules_fail_and_verdicts_end_the_session(tmp_path, arguments):
    out = run_pytest(tmp_path, RANKER + TESTS, *arguments)
    assert "1 failed, 1 passed" in out
    assert "AssertionError: 1 of 2 rules are broken:" in out
    assert "shaketable verdicts" in out
    assert "test_mine.py::test_good: 1 of 1 rules hold; " in out
    assert "test_mine.py::test_bad: 1 of 2 rules hold; " in out


def test_a_session_without_the_fixture_is_as_without_the_plugin(tmp_path):
    code = "import sys\ndef test_nothing():\n    heavy = {'numpy', 'pandas', 'scipy', 'shaketable.api.audit'}\n"
    out = run_pytest(tmp_path, f"{code}    assert not heavy & set(sys.modules)\n", "-p", "no:xdist", "--trace-config")
    assert "1 passed" in out
    assert "shaketable.pytest_plugin" in out, "it is loaded"
    assert "verdicts" not in out
