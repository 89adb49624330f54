"""Gates on findings that a command does not report are refused before any ranker runs."""

from __future__ import annotations

from pathlib import Path

import pytest

RECORDING = """
from pathlib import Path

def score(query, texts):
    Path({called!r}).touch()
    return [float(len(text)) for text in texts]
"""

COMMANDS = {
    "probe": ("probe", "--probe", "prepend-query"),
    "attack": ("attack", "--recipe", "keyword_stuffing", "--attacked-queries", "2", "--targets", "1"),
    "parity": ("parity", "--ranker", "bm25"),
}
REPORTED = {"probe": "prepend-query.s", "attack": "attack success %", "parity": "parity"}


@pytest.fixture
def ranker(tmp_path: Path) -> tuple[str, str]:
    """A ranker that leaves a file when it is called."""
    (tmp_path / "mine.py").write_text(RECORDING.format(called=str(tmp_path / "called")))
    return "--ranker", "mine=./mine.py:score"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("rule", ["{}x<=1", "nobody.{}<=1", "accuracy of the weather>=0.5"], ids=str)
def test_an_unknown_finding_is_refused_before_the_run(shaketable, ranker, tmp_path, command, rule):
    words = (*COMMANDS[command], *ranker, "--max-queries", "4", "--require", rule.format(REPORTED[command]))
    assert "is called" in shaketable(*words).complaint()
    assert not (tmp_path / "called").exists()
    assert not (tmp_path / f"shaketable-{command}").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_known_finding_is_gated(shaketable, ranker, tmp_path, command):
    words = (*COMMANDS[command], *ranker, "--max-queries", "15", "--require", f"{REPORTED[command]}>=1000")
    assert shaketable(*words).code == 1
    assert (tmp_path / "called").exists()
