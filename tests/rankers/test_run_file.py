"""A run file is a ranker for tasks that need no new scores; other tasks report this."""

from __future__ import annotations

from pathlib import Path

import pytest

from shaketable.core.documents import Collection, Doc, Query, Slate
from shaketable.core.errors import BadInput, RankerFailed
from shaketable.core.protocols import Ranker
from shaketable.core.registries import RANKERS
from shaketable.rankers.run_file import RunFile

RUN = "7 Q0 b 1 2.5 toy\n7 Q0 a 2 1.5 toy\n8 Q0 a 1 0.5 toy\n"


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "toy.run"
    file.write_text(RUN)
    return str(file)


def collection(*qids: str) -> Collection:
    return Collection("toys", {}, {qid: Query("text") for qid in qids})


@pytest.mark.parametrize("qids", [(), ("7",), ("8", "9")])
def test_the_run_is_there(path, qids):
    ranker = RunFile(path).open(collection(*qids))
    assert isinstance(ranker, Ranker)
    assert ranker.name == path
    assert ranker.recorded == {"7": {"b": 2.5, "a": 1.5}, "8": {"a": 0.5}}


def test_new_texts_cannot_be_scored(path):
    with pytest.raises(RankerFailed, match=r"toy\.run is a run file and cannot give new scores"):
        RunFile(path).open(collection()).score([Slate("q", (Doc("new"),))])


def test_a_run_of_other_queries_is_a_mistake(path):
    with pytest.raises(BadInput, match=r"toy\.run: no query of this run is in toys: it has '7', the collection 'q7'"):
        RunFile(path).open(collection("q7"))


def test_a_missing_file(tmp_path):
    with pytest.raises(BadInput, match=r"absent\.run: there is no such file"):
        RunFile(str(tmp_path / "absent.run")).open(collection())


def test_written_in_short_or_in_full():
    assert RANKERS.build("run:out/toy.run") == RunFile("out/toy.run")
    assert RANKERS.build(RANKERS.spec(RunFile("out/toy.run"))) == RunFile("out/toy.run")
