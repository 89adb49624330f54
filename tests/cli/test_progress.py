"""Progress of commands: bars on a terminal, lines elsewhere, --quiet, --verbose, completed names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shaketable.cli import progress
from shaketable.cli.console import set_verbosity
from shaketable.cli.progress import OPEN_BARS, ProgressBar, describe_progress, show_progress

pytestmark = pytest.mark.slow

SLOW = """
import time

def slow(query, texts):
    time.sleep(0.3)
    return [len(text) for text in texts]

slow.pointwise = True
"""


@pytest.fixture
def slow(tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    tasks = "--task", "effectiveness", "--task", "variance"
    return "audit", "--ranker", "slow=./slow.py:slow", *tasks, "--budget", "none"


def test_without_a_terminal_a_line_reports_progress(shaketable, folder, slow, monkeypatch):
    monkeypatch.setattr(progress, "REPORT_INTERVAL_S", 0.05)
    done = shaketable(*slow, "--data", folder)
    assert done.code == 0, done.err
    lines = [line for line in done.err.splitlines() if line.startswith("in all (task 1 of 2, effectiveness): 0 of 2")]
    assert lines, done.err
    said = re.compile(
        r"in all \(task 1 of 2, effectiveness\): 0 of 2 tasks, 0\.0 %; scoring with slow: \d+ of \d+ query-document "
        r"pairs, [\d.]+ %; \d+ s so far(, about \d+ s left for this part)?"
    )
    assert any(said.fullmatch(line) for line in lines), lines
    assert progress.OPEN_BARS == []


def test_short_work_reports_no_progress(shaketable, folder):
    done = shaketable("audit", "--data", folder, "--ranker", "bm25", "--task", "effectiveness")
    assert "so far" not in done.err


def test_a_line_has_an_estimate_when_there_is_something_to_go_by(monkeypatch):
    outer = ProgressBar("in all", 4, "tasks", done=1, started=time.monotonic() - 100)
    inner = ProgressBar("scoring with mine", 1_000, "query-document pairs", done=250, started=time.monotonic() - 30)
    monkeypatch.setattr(progress, "OPEN_BARS", [outer, inner])
    assert describe_progress() == (
        "in all: 1 of 4 tasks, 25.0 %; scoring with mine: 250 of 1,000 query-document pairs, 25.0 %; "
        "1 min 40 s so far, about 1 min 30 s left for this part"
    )
    inner.done = 0
    assert "left" not in describe_progress()
    monkeypatch.setattr(progress, "OPEN_BARS", [])
    assert describe_progress() == ""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_on_a_terminal_the_bar_of_all_tasks_stands_above(folder, slow, tmp_path):
    import pty

    ours, theirs = pty.openpty()
    source = str(Path(sys.modules["shaketable"].__file__).parents[1])
    command = [sys.executable, "-c", "from shaketable.cli import main; main()", *slow, "--data", str(folder)]
    env = os.environ | {"PYTHONPATH": source, "COLUMNS": "110", "TERM": "xterm"}
    with subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, stderr=theirs) as child:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    assert child.returncode == 0, shown
    text = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", shown.decode())
    above = r"in all \(task 1 of 2, effectiveness\) \S+ 0 of 2 tasks\s*\n"
    below = r"scoring with slow +\S+ \d+ of \d+ query-document pairs"
    assert re.search(above + below, text), text
    assert "so far" not in text, "where there are bars, there are no lines"


def test_quiet_is_the_result_and_nothing_else(shaketable, folder):
    words = ("audit", "--data", folder, "--ranker", "bm25", "--task", "effectiveness")
    usual, quiet = shaketable(*words), shaketable(*words, "--quiet")
    assert "report.html" in usual.err
    assert (quiet.code, quiet.err) == (0, "")
    assert "effectiveness" in quiet.out
    failed = shaketable(*words, "--quiet", "--require", "bm25.nDCG@10>=2")
    assert failed.code == 1
    assert "bm25.nDCG@10" in failed.out + failed.err
    assert "no task" in shaketable("audit", "-q", "--task", "risc").complaint()


def test_verbose_reports_files_cache_and_durations(shaketable, folder):
    words = ("audit", "--data", folder, "--ranker", "bm25", "--task", "effectiveness")
    assert "took" not in shaketable(*words).err
    told = shaketable(*words, "--verbose").err
    assert re.search(r"^The task effectiveness took \d+\.\d seconds\.$", told, re.MULTILINE)
    assert re.search(r"^The ranker bm25 was opened in \d+\.\d seconds\.$", told, re.MULTILINE)
    assert "searching with bm25: of 3 queries, 0 were cached and 3 were computed in 0." in told
    assert "took" not in shaketable(*words).err, "loudness is of one command alone"
    assert "contradict" in shaketable(*words, "--quiet", "--verbose").complaint()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("shaketable eval", {"evaluate"}),
        ("shaketable audit --ranker rm", {"rm3"}),
        ("shaketable audit --task query_typo", {"query_typos"}),
        ("shaketable attack --recipe key", {"keyword_stuffing"}),
        ("shaketable probe --probe shuffle-s", {"shuffle-sentences", "shuffle-sentence-words", "shuffle-some-words"}),
        ("shaketable evaluate --measure nD", {"nDCG@10"}),
        ("shaketable vary --category mis", {"misspelling"}),
        ("shaketable train lamb", {"lambdamart"}),
        ("shaketable list recipes hom", {"homoglyphs"}),
    ],
)
def test_names_are_completed(shaketable, monkeypatch, words, found):
    monkeypatch.setenv("_SHAKETABLE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    done = shaketable()
    assert done.code == 0
    assert set(done.out.split()) == found


def test_completion_can_be_shown(shaketable, monkeypatch):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    done = shaketable("--show-completion", "bash")
    assert done.code == 0
    assert "_SHAKETABLE_COMPLETE=complete_bash" in done.out


def test_quiet_opens_no_bar():
    for quiet, bars in ((True, 0), (False, 1)):
        with set_verbosity(quiet, False), show_progress("scoring", 2, "pairs"):
            assert len(OPEN_BARS) == bars
