"""The program as a shell starts it: encodings, signals, and exit codes that user code cannot fake."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.processes import ROOT, SOURCE

pytestmark = pytest.mark.slow

PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"  # tests may run in the background
    "signal.signal(signal.SIGHUP, signal.SIG_DFL);"  # and under nohup
    "from shaketable.cli import main; main()"
)


def start(words: Sequence[object], home: Path, **settings: str) -> subprocess.Popen[bytes]:
    path = f"{SOURCE}{os.pathsep}{ROOT}"
    env = os.environ | {"PYTHONPATH": path, "SHAKETABLE_HOME": str(home)} | settings
    command = [sys.executable, "-c", PROGRAM, *map(str, words)]
    return subprocess.Popen(
        command, cwd=home, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip


def run(words: Sequence[object], home: Path, **settings: str) -> tuple[int, str, str]:
    with start(words, home, **settings) as program:
        out, err = program.communicate(timeout=120)
    assert b"Traceback" not in err
    return program.returncode, out.decode(), err.decode()


def audit(data: object, ranker: str, *words: str) -> list[str]:
    task = ("--max-queries", "3", "--task", "variance")
    return ["audit", "--data", str(data), *task, "--ranker", ranker, *words]


@pytest.fixture
def trees(folder: Path) -> list[str]:
    """A tiny collection with its lists, so that no program builds an index."""
    (folder / "first.run").write_text("q1 Q0 d4 1 2 m\nq1 Q0 d5 2 1 m\nq2 Q0 d5 1 2 m\nq3 Q0 d3 1 2 m\n")
    return [str(folder), "--candidates", str(folder / "first.run")]


ASCII_ONLY = {"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""}


def test_a_terminal_without_unicode(tmp_path: Path) -> None:
    for words in (["list", "rankers"], audit("sample", "bm25", "--tables")):
        code, out, err = run(words, tmp_path, **ASCII_ONLY)
        assert code == 0, (words, err)
        assert out.isascii()
    code, out, err = run(["vary", "sample", "--transform", "random_order_swap"], tmp_path, **ASCII_ONLY)
    assert code == 0, err
    assert out.isascii()
    rows = [json.loads(line) for line in out.splitlines()]
    assert any("lomvár" in row["original"] for row in rows), "escaped so that JSON can be read, and not lost"
    code, _, err = run(["doctor", "caf\u00e9"], tmp_path, **ASCII_ONLY)
    assert (code, err.count("shaketable: ")) == (2, 1)


@pytest.mark.parametrize("gate", [(), ("--gate",)])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_with_the_sentence_of_an_interrupt(
    tmp_path: Path, trees: list[str], number: int, gate: tuple[str, ...]
) -> None:
    with start(audit(trees[0], "tests.faults.rude:Waits", *trees[1:], *gate), tmp_path) as program:
        assert program.stderr is not None
        for line in program.stderr:
            if line.startswith(b"asked"):
                break
        program.send_signal(number)
        try:
            _, err = program.communicate(timeout=60)
        finally:
            program.kill()  # a program that ignores the signal must not stop the tests
    assert program.returncode == 128 + number, err
    (sentence,) = [line for line in err.decode().splitlines() if line.startswith("shaketable: ")]
    assert "stopped while scoring with tests.faults.rude:Waits" in sentence


@pytest.mark.parametrize("gate", [("--gate",), ("--require", "AP>=0")])
def test_a_gate_never_passes_without_a_result(tmp_path: Path, trees: list[str], gate: tuple[str, ...]) -> None:
    code, _, err = run(audit(trees[0], "tests.faults.rude:Vanishes", *trees[1:], *gate), tmp_path)
    assert code == 70
    (sentence,) = [line for line in err.splitlines() if line.startswith("shaketable: ")]
    assert "ended with exit code 0 before it had a result" in sentence
    assert not (tmp_path / "shaketable-audit").exists()


def test_a_gate_that_fails_is_no_success_whatever_happens_at_the_end(tmp_path: Path, trees: list[str]) -> None:
    words = audit(trees[0], "tests.faults.rude:VanishesLater", *trees[1:], "--require")
    assert run([*words, "AP>=0.99"], tmp_path)[0] == 1
    assert run([*words, "AP>="], tmp_path)[0] == 2


def test_a_killed_supervisor_takes_its_child_with_it(tmp_path: Path, trees: list[str]) -> None:
    with start(audit(trees[0], "tests.faults.rude:Waits", *trees[1:], "--gate"), tmp_path) as program:
        assert program.stderr is not None
        for line in program.stderr:
            if line.startswith(b"asked"):
                break
        program.kill()
        rest = program.stderr.read()  # ends when the child has closed it
    assert b"stopped while scoring" in rest


def test_a_killed_child_is_reported(tmp_path: Path, trees: list[str]) -> None:
    (tmp_path / "killed.py").write_text(
        "import os, signal\nclass Killed:\n    name = 'killed'\n    def score(self, slates):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    code, _, err = run(audit(trees[0], "killed.py:Killed", *trees[1:], "--gate"), tmp_path)
    assert code == 128 + signal.SIGKILL
    assert "shaketable: SIGKILL ended the process; no gate was evaluated" in err


def test_a_gated_command_that_passes_names_its_settings_once(tmp_path: Path) -> None:
    (tmp_path / "shaketable.toml").write_text("seed = 3\n")
    code, _, err = run(audit("sample", "bm25", "--require", "bm25.gMAP>=0"), tmp_path)
    assert code == 0, err
    assert err.count("Settings from shaketable.toml.") == 1
