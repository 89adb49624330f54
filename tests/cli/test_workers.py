"""Workers from the command line: equal files, and one message for each error."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from shaketable.core.extras import format_install_command

pytestmark = pytest.mark.slow

MINE = """
def longer(query, texts):
    return [len(text) for text in texts]

longer.pointwise, longer.fingerprint = True, "longer"
"""


def results(folder: Path) -> object:
    found = json.loads((folder / "results.json").read_text())
    del found["provenance"]["command"], found["provenance"]["versions"]
    return found


def test_two_processes_write_the_same_audit_as_one(shaketable, tmp_path, home):
    (tmp_path / "mine.py").write_text(MINE)
    words = (
        "audit",
        "--ranker",
        "bm25",
        "--ranker",
        "mine=./mine.py:longer",
        "--task",
        "effectiveness",
        "--max-queries",
        5,
    )
    assert shaketable(*words, "--out", "one").code == 0
    (home / "scores.sqlite").unlink()
    ended = shaketable(*words, "--out", "two", "--jobs", 2, "--batch-tokens", 2000, "--device", "cpu")
    assert ended.code == 0, ended.err
    assert results(tmp_path / "two") == results(tmp_path / "one")
    for run in ("bm25.run", "mine.run"):
        assert (tmp_path / "one" / "runs" / run).read_text() == (tmp_path / "two" / "runs" / run).read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--jobs", 2, "--worker-gpus", 1), "apply to a Ray cluster"),
        (("--device", "abacus"), "device should be auto, cpu or cuda"),
        (("--dtype", "float8"), "dtype should be float32, bfloat16 or float16"),
    ],
)
@pytest.mark.parametrize("command", ["audit", "attack", "probe"])
def test_options_that_make_no_sense_are_refused(shaketable, command, words, sentence):
    assert sentence in shaketable(command, "--ranker", "bm25", *words).complaint()


def test_rank_and_train_take_the_same_options(shaketable):
    assert (
        "device should be"
        in shaketable("rank", "--ranker", "bm25", "--write-run", "a.run", "--device", "x").complaint()
    )
    assert (
        "device should be"
        in shaketable("train", "prank", "--data", "sample", "--model", "m", "--device", "x").complaint()
    )


def test_without_ray_the_message_names_the_extra(shaketable, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    said = shaketable("audit", "--ranker", "bm25", "--ray", "local").complaint()
    assert said == f"--ray needs libraries that are not installed: {format_install_command('cluster')}"


def test_an_address_that_does_not_answer(shaketable):
    pytest.importorskip("ray")
    said = shaketable("audit", "--ranker", "bm25", "--ray", "127.0.0.1:1").complaint()
    assert said.startswith("no Ray cluster answers at 127.0.0.1:1 (")
