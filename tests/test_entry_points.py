"""Rows that an installed package adds to the catalogues."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from shaketable.core import registries
from shaketable.core.documents import Doc, Slate
from shaketable.core.errors import BadInput, UnknownName
from shaketable.core.registries import LEARNERS, MEASURES, PROBES, RANKERS, TASKS, TRANSFORMS
from shaketable.core.registry import Registry
from shaketable.datasets.sample import read_sample

CATALOGUES = {
    "ranker": RANKERS,
    "learner": LEARNERS,
    "transform": TRANSFORMS,
    "measure": MEASURES,
    "task": TASKS,
    "probe": PROBES,
}

PLUGIN = '''
"""A package of a third party."""
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


class PlainRanker:
    """A ranker as the README has it, with nothing to open."""

    name = "plain"

    def __init__(self, weight=1.0):
        self.weight = weight

    def score(self, slates):
        return [np.array([self.weight * len(doc.text) for doc in slate.docs]) for slate in slates]


def rank_short_first(query, texts):
    """A function that ranks texts."""
    return [-len(text) for text in texts]


@dataclass(frozen=True)
class Learner:
    """Learns nothing."""

    grid: ClassVar[dict] = {}
    steps: int = 3


@dataclass(frozen=True)
class Transform:
    """Turns a text round."""

    category: ClassVar[str] = "ordering"
    words: int = 2

    def apply(self, text, rng, context):
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

    def run(self, experiment):
        import pandas as pd
        from shaketable.core.results import Result
        return Result("counting", "How many?", {"count": pd.DataFrame({"n": [self.factor * len(experiment.queries)]})})


@dataclass(frozen=True)
class Probe:
    """Repeats a text."""

    times: int = 2
    strategy: ClassVar[str] = "manipulation"
    symmetric: ClassVar[bool] = False

    def unavailable_reason(self, context):
        return ""

    def draw_pairs(self, context):
        from shaketable.core.documents import Doc
        from shaketable.core.protocols import TextPair
        for docs in context.judged_documents.values():
            for one in docs:
                yield TextPair(one.query, Doc(one.doc.body * self.times), one.doc, one.qid, one.docno, one.grade)
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
        "transform": ("words", 5),
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


GROUPS = """rankers learners writers transforms measures tasks recipes goals constraints detectors defences probes
synonym_sources objectives list_sources""".split()


def test_every_registry_has_a_group_that_adds_rows(plugin):
    found = [one for one in vars(registries).values() if isinstance(one, Registry)]
    assert {one.entry_point_group for one in found} == {f"shaketable.{group}" for group in GROUPS}
    about = plugin / "their_plugin-1.0.dist-info" / "entry_points.txt"
    about.write_text("".join(f"[shaketable.{group}]\nof_theirs = their_plugin:Task\n" for group in GROUPS))
    for one in found:
        assert replace(one).get_class("of_theirs").__module__ == "their_plugin", one.kind
    assert all(f"shaketable.{group}" in registries.__doc__.split() for group in GROUPS)


@pytest.mark.parametrize("kind", CATALOGUES)
@pytest.mark.parametrize("name", ["broken", "gone"])
def test_a_row_that_cannot_be_imported_is_one_sentence(plugin, kind, name):
    with pytest.raises(BadInput, match="of an installed package cannot be imported"):
        replace(CATALOGUES[kind]).build(name)


def test_a_name_of_ours_cannot_be_taken(plugin):
    about = plugin / "their_plugin-1.0.dist-info" / "entry_points.txt"
    about.write_text("[shaketable.rankers]\nbm25 = their_plugin:Ranker\nmine = their_plugin:Ranker\n")
    catalogue = replace(RANKERS)
    assert catalogue.rows["bm25"] == RANKERS.builtin_rows["bm25"]
    assert catalogue.build("bm25") == RANKERS.build("bm25")
    assert type(catalogue.build("mine")).__module__ == "their_plugin"


def test_a_ranker_without_open_is_adapted(plugin):
    names = "[shaketable.rankers]\nplain = their_plugin:PlainRanker\nshort = their_plugin:rank_short_first\n"
    (plugin / "their_plugin-1.0.dist-info" / "entry_points.txt").write_text(names)
    catalogue = replace(RANKERS)
    collection, slate = read_sample(), Slate("q", (Doc("tea"), Doc("coffee")))
    for text, scores in {"plain": [3, 6], "plain(weight=-2.0)": [-6, -12], "short": [-3, -6]}.items():
        model = catalogue.build(text)
        assert catalogue.spec(model) == text
        assert model.open(collection).score([slate])[0].tolist() == scores
    with pytest.raises(BadInput):
        catalogue.build("plain(nonsense=1)").open(collection)


def lines_of(script: str, plugin: Path) -> list[str]:
    """Return the output of a script in a new process, because registries read entry points only once."""
    places = os.pathsep.join([str(plugin), *sys.path])
    out = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": places},
    )
    assert out.returncode == 0, out.stderr
    return out.stdout.split("\n")[:-1]


def test_a_whole_audit_with_them_and_their_probes_in_the_suite(plugin):
    with (plugin / "their_plugin-1.0.dist-info" / "entry_points.txt").open("a") as points:
        points.write("[shaketable.rankers]\nplain = their_plugin:PlainRanker\n")
    script = """
        import sys
        import shaketable as st
        assert "their_plugin" not in sys.modules
        st.RANKERS.build("bm25"), st.TASKS.build("risk")
        assert "their_plugin" not in sys.modules, "built-in names do not import plugins"
        list(st.RANKERS), list(st.TASKS)
        assert "their_plugin" not in sys.modules, "names are listed without importing"
        tasks = ["of_theirs(factor=2)", "agreement(measures=('of_theirs',))"]
        done = st.audit("sample", ["bm25", "of_theirs(sign=-1.0)", "plain(weight=2.0)"], tasks, max_queries=3)
        print(done["counting"].tables["count"]["n"][0], *done.runs)
        print(*sorted({v.method for v in st.vary({"q": "red boat"}, "of_theirs").variations}))
        from shaketable.transforms.presets import select_transforms
        edits, left_out = select_transforms()
        print("of_theirs" in {st.TRANSFORMS.spec(one) for one in edits}, *sorted({"broken", "gone"} & left_out.keys()))
        print(st.TRANSFORMS.summary("gone").partition(",")[0])
        from shaketable.probes.suite import format_probe_name, select_probes
        names = [format_probe_name(probe) for probe in select_probes()]
        print(names.count("of-theirs"), len(names) == len(set(names)))
        print(*[format_probe_name(probe) for probe in select_probes(["of_th*", "of-t*"])])
        done = st.audit("sample", ["bm25"], ["probes(probes=('of_th*', 'b*', '?o*'))"], max_queries=3)
        left_out = done["probes"].tables["left out"]
        print(*sorted(left_out["test"][left_out["cases"].isna()]))
        print("of-theirs" in set(done["probes"].tables["details"]["name"]))
    """
    assert lines_of(script, plugin) == [
        "6 bm25 of_theirs(sign=-1.0) plain(weight=2.0)",
        "of_theirs",
        "True broken gone",  # what cannot be had is left out and named
        "no_such_package:X of an installed package cannot be imported (No module named 'no_such_package')",
        *("1 True", "of-theirs", "bm25 broken gone", "True"),
    ]


LIST_MEASURES = '''

@dataclass(frozen=True)
class FirstGrade:
    """The grade of the first document, times a weight."""

    weight: float = 1.0

    def value(self, grades, docnos):
        return self.weight * grades.get(docnos[0], 0) if docnos else 0.0


def first_is_relevant(grades, docnos):
    """1 if the first document is relevant."""
    return float(bool(docnos) and grades.get(docnos[0], 0) > 0)
'''


def test_their_measures_of_one_list(plugin):
    with (plugin / "their_plugin.py").open("a") as source:
        source.write(LIST_MEASURES)
    names = "[shaketable.measures]\nfirst_grade = their_plugin:FirstGrade\nfirst = their_plugin:first_is_relevant\n"
    names += "AP = their_plugin:first_is_relevant\nbetween = their_plugin:Measure\n"
    (plugin / "their_plugin-1.0.dist-info" / "entry_points.txt").write_text(names)
    script = """
        import shaketable as st
        from shaketable.core.errors import ShaketableError
        from shaketable.measures.measure_names import format_measure, parse_measure
        qrels, run = {"q1": {"a": 2}, "q2": {"b": 1, "a": 0}}, {"q1": {"a": 2.0, "b": 1.0}, "q2": {"a": 2.0, "b": 1.0}}
        for name in ("first_grade(weight=0.5)", "first-grade", "first", "AP"):
            table = st.evaluate(qrels, {"mine": run}, measures=[name])["effectiveness"].tables["per query"]
            shown = format_measure(parse_measure(name))
            assert format_measure(parse_measure(shown)) == shown
            print(shown, table[shown].tolist())
        done = st.audit("sample", "bm25", ["effectiveness(measures=('first', 'AP'))"], max_queries=3)
        print({finding.name for finding in done.findings} >= {"first", "AP"})
        for wrong in ("between", "frist_grade", "rbo"):
            try:
                parse_measure(wrong)
            except ShaketableError as error:
                print(str(error).partition(";")[0])
    """
    assert lines_of(script, plugin) == [
        "first_grade(weight=0.5) [1.0, 0.0]",
        "first_grade [2.0, 0.0]",
        "first [1.0, 0.0]",
        "AP [1.0, 0.5]",
        "True",
        "the measure between has no method value(grades, docnos), so it does not measure one list",
        "no measure is called 'frist_grade'",
        "no measure is called 'rbo'",
    ]
