"""The shift tasks from the command line: output, files and errors."""

from __future__ import annotations

import json

import pytest

from shaketable.datasets.beir import write_beir
from tests.tasks.planted import LONG, SHORT, make_planted_collection

pytestmark = pytest.mark.slow


@pytest.fixture
def folders(tmp_path):
    """A corpus with query types and splits, and another corpus."""
    write_beir(
        make_planted_collection("home", {"brief": SHORT, "wordy": LONG}, queries=20, train=12), tmp_path / "home"
    )
    write_beir(make_planted_collection("away", {"": LONG}, queries=12), tmp_path / "away")
    return "home", "away"


def test_two_collections(shaketable, folders, tmp_path):
    home, away = folders
    words = ("audit", "--data", home, "--data", away, "--task", "corpus-shift(rankers=('ql', 'ranksvm'))")
    ended = shaketable(
        *words, "--out", "out", "--ranker", "bm25", "--require", "ranksvm.drop(another corpus)>=-90", "--tables"
    )
    assert ended.code == 0, ended.err
    assert "How well does a ranker work on a corpus that it was not trained on?" in ended.out
    assert "zero-shot" in ended.out
    written = json.loads((tmp_path / "out" / "results.json").read_text())
    (result,) = written["results"]
    assert result["task"] == "corpus-shift"
    assert any("away" in text for text in written["provenance"]["tasks"]), "the provenance names the corpora"
    page = (tmp_path / "out" / "report.html").read_text()
    assert "ranksvm: loss or gain in per cent, against the same ranker trained on the test domain" in page


def test_kinds(shaketable, folders, tmp_path):
    task = "query-type-shift(rankers=('ranksvm',), measure='RR@10')"
    ended = shaketable("audit", "--data", folders[0], "--task", task, "--out", "out", "--tables")
    assert ended.code == 0, ended.err
    assert "default" not in ended.err
    assert "-75.0" in ended.out
    assert "tested on the queries of the audit" in " ".join(ended.out.split())


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--data", "home", "--task", "corpus-shift"), "home is the only one; add another with a second --data"),
        (("--data", "home", "--data", "away"), "only the task corpus-shift uses several collections"),
        (("--data", "home", "--data", "gone", "--task", "corpus-shift"), "there is no collection 'gone'"),
        (("--data", "away", "--task", "query-type-shift"), "has no train split"),
        (("--data", "home", "--task", "query-type-shift(train=13)"), "has 12 queries to learn from, and 13 are needed"),
        (("--data", "home", "--data", "away", "--task", "corpus-shift(rankers=('knrm',))"), "name a file of vectors"),
    ],
)
def test_what_is_refused(shaketable, folders, words, complaint):
    assert complaint in shaketable("audit", *words, "--out", "out").complaint()
