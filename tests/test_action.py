"""The GitHub Action: no input becomes part of a script, and its audit step runs as a build server runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
BASH = ["bash", "--noprofile", "--norc", "-eo", "pipefail"]
"""The command with which GitHub runs a step whose shell is bash."""
HOSTILE = "$(touch owned) `touch owned` '; touch owned; ' \"; touch owned; \" && touch owned | touch owned > owned"


def find_step(name: str) -> dict[str, Any]:
    (step,) = [step for step in STEPS if step.get("name") == name]
    return step


def test_the_action_is_a_composite_action():
    assert {"name", "description", "inputs", "runs"} == set(ACTION)
    assert ACTION["runs"]["using"] == "composite"
    assert all(set(about) == {"description", "default"} for about in ACTION["inputs"].values())
    assert {"data", "rankers", "require", "rules", "budget", "out", "extras"} <= set(ACTION["inputs"])
    for step in STEPS:
        assert ("run" in step) != ("uses" in step)
        assert "run" not in step or step["shell"] == "bash"


def test_no_expression_is_part_of_a_script():
    scripts = [step["run"] for step in STEPS if "run" in step]
    assert len(scripts) == 2
    assert [script for script in scripts if "${{" in script or "eval" in script] == []


def test_every_input_is_used_and_every_used_input_exists():
    used = re.findall(r"\$\{\{ inputs\.([\w-]+) \}\}", yaml.safe_dump(STEPS, width=1000))
    assert set(used) == set(ACTION["inputs"])


def test_the_report_is_uploaded_also_after_a_failed_gate():
    upload = find_step("Upload the report")
    assert upload["if"] == "always()"
    assert upload["with"]["path"] == "${{ inputs.out }}"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "tools").mkdir(parents=True)
    (folder / "shaketable.toml").write_text("max-queries = 5\n")
    program = folder / "tools" / "shaketable"
    program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c 'from shaketable.cli import main; main()' \"$@\"\n")
    program.chmod(0o755)
    return folder


def run_audit_step(workspace: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the audit step with inputs; others have their defaults."""
    step = find_step("Audit")
    names = {
        variable: re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", text)[1]  # type: ignore[index]
        for variable, text in step["env"].items()
    }
    given = {variable: inputs.get(name, ACTION["inputs"][name]["default"]) for variable, name in names.items()}
    script = workspace / "tools" / "step.sh"
    script.write_text(step["run"])
    env = os.environ | given | {"GITHUB_STEP_SUMMARY": str(workspace / "summary.md")}
    env |= {"PATH": f"{workspace / 'tools'}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([*BASH, script], cwd=workspace, env=env, capture_output=True, text=True)


def run_small_audit(workspace: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    small = {"data": "sample", "rankers": "bm25\nmine=ql\n", "tasks": "effectiveness"}
    return run_audit_step(workspace, **small | inputs)


@pytest.mark.slow
def test_gates_decide_the_exit_code_and_fill_the_summary(workspace):
    (workspace / "summary.md").write_text("an earlier summary\n")
    passed = run_small_audit(workspace, require="nDCG@10>=0.01\n\n  mine.nDCG@10>=0.02\n")
    assert passed.returncode == 0, passed.stderr
    summary = (workspace / "summary.md").read_text()
    assert summary.startswith("an earlier summary\n### Robustness of 2 rankers on sample")
    assert summary.count(">=0.0") == 2
    assert (workspace / "shaketable-audit" / "report.html").is_file()
    failed = run_small_audit(workspace, require="nDCG@10>=0.999", out="failed audit")
    assert failed.returncode == 1, failed.stderr
    assert "1 of 1 gates fail" in (workspace / "summary.md").read_text()
    assert (workspace / "failed audit" / "report.html").is_file()


@pytest.mark.slow
def test_without_rules_the_default_gate_decides(workspace):
    (workspace / "mine.py").write_text("def score(query, texts):\n    return [0.0] * len(texts)\n")
    ended = run_small_audit(workspace, rankers="bm25\nmine=./mine.py:score")
    assert ended.returncode == 1, ended.stderr
    assert "ranks by itself" in (workspace / "summary.md").read_text()


@pytest.mark.slow
def test_names_of_files_with_hostile_words_stay_names(workspace):
    rules, out = "$(touch owned) `touch owned` '.toml", '"; touch owned; $(touch owned)'
    (workspace / rules).write_text('[[fail_if]]\nfinding = "nDCG@10"\nbelow = 0.01\n')
    ended = run_small_audit(workspace, rules=rules, out=out)
    assert ended.returncode == 0, ended.stderr
    assert (workspace / out / "report.html").is_file()
    assert list(workspace.rglob("owned")) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["data", "rankers", "tasks", "require", "rules", "budget"])
def test_a_hostile_input_is_refused_as_a_text(workspace, name):
    ended = run_small_audit(workspace, **{name: f"--out=owned\n{HOSTILE}"})
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr
    assert list(workspace.rglob("owned")) == []
    assert not (workspace / "shaketable-audit").exists()
