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

from tests.pages import run_shaketable

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
    return folder


def write_program(workspace: Path, script: str) -> None:
    program = workspace / "tools" / "shaketable"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


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


SMALL = {"data": "sample", "rankers": "bm25\nmine=ql\n", "tasks": "effectiveness"}


@pytest.mark.slow
def test_gates_decide_the_exit_code_and_fill_the_summary(workspace):
    write_program(workspace, f"exec '{sys.executable}' -c 'from shaketable.cli import main; main()' \"$@\"")
    (workspace / "summary.md").write_text("an earlier summary\n")
    gates = "nDCG@10>=0.01\n\n  mine.nDCG@10>=0.999\n"
    failed = run_audit_step(workspace, **SMALL, require=gates, out="failed audit")
    assert failed.returncode == 1, failed.stderr
    summary = (workspace / "summary.md").read_text()
    assert summary.startswith("an earlier summary\n### Robustness of 2 rankers on sample")
    assert "1 of 2 gates fail" in summary
    assert summary.count(">=0.") == 2
    assert (workspace / "failed audit" / "report.html").is_file()


@pytest.mark.parametrize("code", [0, 1, 2, 70])
def test_the_step_ends_with_the_exit_code_of_the_program(workspace, code):
    write_program(workspace, f"exit {code}")
    assert run_audit_step(workspace, **SMALL).returncode == code


@pytest.fixture
def run_command_of_step(workspace, monkeypatch):
    """Return a function that runs, in this process, the command that the audit step makes of inputs."""
    write_program(workspace, "printf '%s\\0' \"$@\" > tools/arguments")
    monkeypatch.chdir(workspace)

    def run(**inputs: str) -> int:
        ended = run_audit_step(workspace, **SMALL | inputs)
        assert ended.returncode == 0, ended.stderr
        assert list(workspace.rglob("owned")) == []
        words = (workspace / "tools" / "arguments").read_text().split("\0")[:-1]
        return run_shaketable([*words, f"--summary={workspace / 'summary.md'}"])

    return run


@pytest.mark.slow
def test_without_rules_the_default_gate_decides(workspace, run_command_of_step):
    (workspace / "mine.py").write_text("def score(query, texts):\n    return [0.0] * len(texts)\n")
    assert run_command_of_step(rankers="bm25\nmine=./mine.py:score") == 1
    assert "ranks by itself" in (workspace / "summary.md").read_text()


@pytest.mark.slow
def test_names_of_files_with_hostile_words_stay_names(workspace, run_command_of_step):
    rules, out = "$(touch owned) `touch owned` '.toml", '"; touch owned; $(touch owned)'
    (workspace / rules).write_text('[[fail_if]]\nfinding = "nDCG@10"\nbelow = 0.01\n')
    assert run_command_of_step(rules=rules, out=out) == 0
    assert (workspace / out / "report.html").is_file()
    assert list(workspace.rglob("owned")) == []


@pytest.mark.parametrize("name", ["data", "rankers", "tasks", "require", "rules", "budget"])
def test_a_hostile_input_is_refused_as_a_text(workspace, run_command_of_step, capsys, name):
    assert run_command_of_step(**{name: f"--out=owned\n{HOSTILE}"}) == 2
    assert "Traceback" not in capsys.readouterr().err
    assert list(workspace.rglob("owned")) == []
    assert not (workspace / "shaketable-audit").exists()
