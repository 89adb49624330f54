"""Rows that an installed package adds to the catalogues."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from shaketable.errors import BadInput, UnknownName
from shaketable.registry import EDITS, LEARNERS, MEASURES, PROBES, RANKERS, TASKS

CATALOGUES = {
    "ranker": RANKERS,
    "learner": LEARNERS,
    "edit": EDITS,
    "measure": MEASURES,
    "task": TASKS,
    "probe": PROBES,
}

PLUGIN = '''
"""A package of somebody else's."""
from dataclasses import dataclass
from typing import ClassVar

import numpy as np


@dataclass(frozen=True)
class Ranker:
    """Ranks by length."""

    sign: float = 1.0

    def open(self, collection):
        sign = self.sign
        class Opened:
            name = "by length"
            def score(self, slates):
                return [np.array([sign * len(doc.text) for doc in slate.docs]) for slate in slates]
        return Opened()


@dataclass(frozen=True)
class Learner:
    """Learns nothing."""

    grid: ClassVar[dict] = {}
    steps: int = 3


@dataclass(frozen=True)
class Edit:
    """Turns a text round."""

    category: ClassVar[str] = "ordering"
    words: int = 2

    def apply(self, text, draws, context):
        turned = " ".join(reversed(text.split()))
        return None if turned.split() == text.split() else turned


class Measure:
    """A plain class: the share of first documents that stay, times a weight."""

    def __init__(self, weight=1.0):
        self.weight = weight

    def between(self, before, after):
        return self.weight * (before[:1] == after[:1])


@dataclass(frozen=True)
class Task:
    """Counts queries."""

    factor: int = 1
    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = False

    def run(self, bench):
        import pandas as pd
        from shaketable.types import Result
        return Result("counting", "How many?", {"count": pd.DataFrame({"n": [self.factor * len(bench.queries)]})})


@dataclass(frozen=True)
class Probe:
    """Repeats a text."""

    times: int = 2
    strategy: ClassVar[str] = "manipulation"
    symmetric: ClassVar[bool] = False

    def lacking(self, ground):
        return ""

    def contrasts(self, ground):
        from shaketable.types import Contrast, Doc
        for docs in ground.judged.values():
            for one in docs:
                yield Contrast(one.query, Doc(one.doc.body * self.times), one.doc, one.qid, one.docno, one.grade)
'''
NAMES = "[shaketable.{kind}s]\nof_theirs = their_plugin:{cls}\nbroken = their_plugin:Absent\ngone = no_such_package:X\n"


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "site"
    about = place / "their_plugin-1.0.dist-info"
    about.mkdir(parents=True)
    (place / "their_plugin.py").write_text(PLUGIN)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: their-plugin\nVersion: 1.0\n")
    rows = [NAMES.format(kind=kind, cls=kind.capitalize()) for kind in CATALOGUES]
    (about / "entry_points.txt").write_text("\n".join(rows) + "bm25 = their_plugin:Task\n")
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.delitem(sys.modules, "their_plugin", raising=False)
    return place


@pytest.mark.parametrize("kind", CATALOGUES)
def test_rows_of_every_kind(plugin, kind):
    catalogue = replace(CATALOGUES[kind])  # one that has not looked yet
    assert "of_theirs" in list(catalogue)
    assert "their_plugin" not in sys.modules, "a name is read, nothing is imported"
    thing = catalogue.build("of_theirs")
    assert type(thing).__module__ == "their_plugin"
    assert catalogue.summary("of_theirs")
    assert catalogue.spec(thing) == "of_theirs"
    parameter, value = {
        "ranker": ("sign", -2.0),
        "learner": ("steps", 7),
        "edit": ("words", 5),
        "measure": ("weight", 0.5),
        "task": ("factor", 3),
        "probe": ("times", 4),
    }[kind]
    text = f"of_theirs({parameter}={value!r})"
    assert getattr(catalogue.build(text), parameter) == value
    assert catalogue.spec(catalogue.build(text)) == text
    with pytest.raises(BadInput):
        catalogue.build("of_theirs(nonsense=1)")
    with pytest.raises(UnknownName, match="did you mean of_theirs"):
        catalogue.build("of_thiers")


@pytest.mark.parametrize("kind", CATALOGUES)
@pytest.mark.parametrize("name", ["broken", "gone"])
def test_a_row_that_cannot_be_imported_is_one_sentence(plugin, kind, name):
    with pytest.raises(BadInput, match="which an installed package offers, cannot be imported"):
        replace(CATALOGUES[kind]).build(name)


def test_a_name_of_ours_cannot_be_taken(plugin):
    about = plugin / "their_plugin-1.0.dist-info" / "entry_points.txt"
    about.write_text("[shaketable.rankers]\nbm25 = their_plugin:Ranker\nmine = their_plugin:Ranker\n")
    catalogue = replace(RANKERS)
    assert catalogue.rows["bm25"] == RANKERS.own["bm25"]
    assert catalogue.build("bm25") == RANKERS.build("bm25")
    assert type(catalogue.build("mine")).__module__ == "their_plugin"


def test_a_whole_audit_with_them(plugin):
    """In a process of its own, as a user has it: the global catalogues look once."""
    script = """
        import sys
        import shaketable as st
        assert "their_plugin" not in sys.modules
        st.RANKERS.build("bm25"), st.TASKS.build("risk")
        assert "their_plugin" not in sys.modules, "our own names need nobody else"
        list(st.RANKERS), list(st.TASKS)
        assert "their_plugin" not in sys.modules, "names are listed without importing"
        tasks = ["of_theirs(factor=2)", "agreement(measures=('of_theirs',))"]
        done = st.audit("sample", ["bm25", "of_theirs(sign=-1.0)"], tasks, limit=3)
        print(done["counting"].tables["count"]["n"][0], *done.runs)
        print(*sorted({v.method for v in st.vary({"q": "red boat"}, "of_theirs").variations}))
        from shaketable.edit.methods import chosen
        edits, left_out = chosen()
        print("of_theirs" in {st.EDITS.spec(edit) for edit in edits}, *sorted({"broken", "gone"} & left_out.keys()))
        print(st.EDITS.summary("gone").partition(",")[0])
    """
    places = os.pathsep.join([str(plugin), *sys.path])
    out = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": places},
    )
    assert out.returncode == 0, out.stderr
    assert out.stdout.split("\n")[:-1] == [
        "6 bm25 of_theirs(sign=-1.0)",
        "of_theirs",
        "True broken gone",  # what cannot be had is left out and named
        "no_such_package:X",
    ]
