"""A user's function or class is known by its source file, its name and its parameters."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from shaketable.core.documents import Collection, Doc, Slate
from shaketable.core.errors import BadInput
from shaketable.core.registries import RANKERS
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.rankers.python import Identity, adapt
from shaketable.rankers.source_fingerprint import _digests
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store
from shaketable.scoring.traits import RankerTraits

NOWHERE = Collection("empty", MemoryCorpus({}), {})

SOURCE = """
import json
from shaketable_helpers import weigh

def length(query, texts):
    return [weigh(len(text)) for text in texts]

def other(query, texts):
    return length(query, texts)

def make(k, pointwise=None):
    return lambda query, texts: [k * len(text) for text in texts]

def build():
    return lambda query, texts: [3 * len(text) for text in texts]

class Scorer:
    name = "scorer"

    def __init__(self, k=1):
        self.k = k

    def score(self, slates):
        return [[self.k * len(doc.text) for doc in slate.docs] for slate in slates]

class Choosing(Scorer):
    def __init__(self, pointwise=1, k=1):
        self.weight, self.k = pointwise, k

class Fixed:
    name = "fixed"
    __slots__ = ()

    def score(self, slates):
        return [[0.0 for doc in slate.docs] for slate in slates]

class Opens:
    def open(self, collection):
        return Scorer()

named = Scorer(2)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    (tmp_path / "mine.py").write_text(SOURCE)
    (tmp_path / "shaketable_helpers.py").write_text("def weigh(x):\n    return x\n")
    yield tmp_path
    forget_modules(tmp_path)


def forget_modules(folder: Path) -> None:
    """Forget the user's modules, and keep those of installed packages, which take long to import."""
    for name, module in list(sys.modules.items()):
        if Path(getattr(module, "__file__", None) or "/").is_relative_to(folder):
            del sys.modules[name]


def mark(spec: str) -> Any:
    """Return the fingerprint of a spec as in a new process."""
    ranker = RANKERS.build(spec).open(NOWHERE)
    found = RankerTraits.from_ranker(ranker).fingerprint
    forget_modules(Path.cwd())
    return found


def test_one_source_is_one_fingerprint(folder):
    specs = ["mine.py:length", "mine.py:other", "mine.py:make(1)", "mine.py:make(2)", "mine.py:Scorer", "mine.py:named"]
    marks = [mark(f"./{spec}") for spec in specs]
    assert None not in marks
    assert len(set(marks)) == len(marks)
    assert marks == [mark(f"./{spec}") for spec in specs]
    assert mark("mine:length") == mark("./mine.py:length")


@pytest.mark.parametrize("file", ["mine.py", "shaketable_helpers.py"])
def test_a_change_of_the_file_or_of_a_module_beside_it_is_seen(folder, file):
    before = mark("./mine.py:length")
    (folder / file).write_text((folder / file).read_text() + "\nMORE = 1\n")
    assert mark("./mine.py:length") != before


def test_a_change_of_another_file_is_not_seen(folder):
    before = mark("./mine.py:length")
    (folder / "unrelated.py").write_text("K = 2\n")
    assert mark("./mine.py:length") == before


def test_modules_of_packages_are_found(folder):
    package = folder / "shaketable_package"
    (package / "deep").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "deep" / "__init__.py").write_text("")
    (package / "a.py").write_text("from .deep.b import f\nfrom . import c\n")
    (package / "deep" / "b.py").write_text("def f(query, texts):\n    from ..d import K\n    return [K] * len(texts)\n")
    (package / "c.py").write_text("")
    (package / "d.py").write_text("K = 1.0\n")
    marks = [mark("shaketable_package.a:f")]
    for changed in ("deep/b.py", "c.py", "d.py", "deep/__init__.py"):
        (package / changed).write_text((package / changed).read_text() + "# changed\n")
        marks.append(mark("shaketable_package.a:f"))
    assert len(set(marks)) == len(marks)


def test_a_revision_replaces_the_source(folder):
    first = mark("./mine.py:length(revision='2')")
    (folder / "mine.py").write_text(SOURCE + "# changed\n")
    assert first == mark("./mine.py:length(revision='2')") != mark("./mine.py:length(revision='3')")


def test_an_own_fingerprint_wins(folder):
    (folder / "mine.py").write_text(SOURCE + "length.fingerprint = 'mine 1'\nScorer.fingerprint = 'scorer 1'\n")
    assert mark("./mine.py:length").endswith(":length mine 1")
    assert mark("./mine.py:Scorer") == "scorer 1"


def traits(spec: str) -> RankerTraits:
    return RankerTraits.from_ranker(RANKERS.build(spec).open(NOWHERE))


@pytest.mark.parametrize("said", [True, False])
@pytest.mark.parametrize("name", ["length", "Scorer", "Scorer(k=2, {})", "build"])
def test_pointwise_in_the_spec_overrides(folder, name, said):
    spec = name if "{}" in name else f"{name}({{}})"
    found = traits(f"./mine.py:{spec.format(f'pointwise={said}')}")
    assert (found.pointwise, found.pointwise_unknown) == (said, False)


def test_a_factory_is_called_and_a_function_is_not(folder):
    slate = [Slate("q", (Doc("abc"),))]
    assert RANKERS.build("./mine.py:build(pointwise=True)").open(NOWHERE).score(slate)[0].tolist() == [9.0]
    assert RANKERS.build("./mine.py:length(pointwise=True)").open(NOWHERE).score(slate)[0].tolist() == [3.0]


def test_a_parameter_of_the_object_stays_its_own(folder):
    ranker: Any = RANKERS.build("./mine.py:Choosing(pointwise=7)").open(NOWHERE)
    assert ranker.weight == 7
    assert traits("./mine.py:make(2, pointwise=True)").pointwise_unknown


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("length(pointwise='yes')", "pointwise should be True or False, not 'yes'"),
        ("length(revision=2)", "revision should be a text, such as '2', not 2"),
        ("Fixed(pointwise=True)", "pointwise cannot be set, because Fixed forbids it"),
    ],
)
def test_wrong_options_are_named(folder, spec, said):
    with pytest.raises(BadInput, match=said):
        RANKERS.build(f"./mine.py:{spec}").open(NOWHERE)


def plain(query: str, texts: list[str]) -> list[float]:
    return [float(len(text)) for text in texts]


class Plain:
    def __call__(self, query: str, texts: list[str]) -> list[float]:
        return plain(query, texts)


def make_closure(k: int) -> Callable[..., list[float]]:
    return lambda query, texts: [k * value for value in plain(query, texts)]


def test_a_function_of_a_file_is_known_in_memory_too():
    assert Identity.from_object(plain).fingerprint == Identity.from_object(plain).fingerprint is not None
    assert Identity.from_object(Plain).fingerprint is not None
    assert not adapt(plain, NOWHERE).notice


def _from_a_prompt() -> Any:
    space: dict[str, Any] = {"__name__": "shaketable_prompt"}
    exec("def typed(query, texts):\n    return [1.0] * len(texts)", space)  # noqa: S102 - as a prompt does
    return space["typed"]


@pytest.mark.parametrize(
    ("thing", "reason"),
    [
        (lambda query, texts: plain(query, texts), "it is a lambda"),
        (make_closure(2), "it is a lambda"),
        (Plain(), "it is an object in memory"),
        (partial(plain, "oak"), "it is an object in memory"),
        (_from_a_prompt(), "its module has another object of the name typed"),
    ],
)
def test_what_cannot_be_known_is_said(thing, reason):
    identity = Identity.from_object(thing)
    assert identity.fingerprint is None
    assert f"not cached on disk, because {reason}" in identity.notice


def test_an_installed_object_is_not_known_by_its_source(folder):
    identity = Identity.from_source("f", lambda: pytest)
    assert identity.unknown_because == "it comes from an installed package"
    assert Identity.from_source("f", lambda: sys).unknown_because == "it is not defined in a file"


def test_a_file_that_changed_after_its_import_is_not_trusted(folder):
    RANKERS.build("mine:other").open(NOWHERE)  # an import in this process
    module = sys.modules["mine"]
    del _digests[folder / "mine.py"]  # as if the user had imported it
    os.utime(folder / "mine.py", (time.time() + 60,) * 2)
    assert adapt(module.length, NOWHERE).notice.startswith(
        "its scores are not cached on disk, because mine.py may have changed since it was imported"
    )


def test_a_ranker_opened_on_a_collection_needs_a_revision(folder):
    assert mark("./mine.py:Opens") is None
    assert "revision 1 on " in mark("./mine.py:Opens(revision='1')")


def test_the_output_says_that_a_ranker_is_not_cached(tmp_path):
    class Bare:
        name = "bare"

        def score(self, slates):
            return [[0.0] * len(slate.docs) for slate in slates]

    engine = ScoringEngine(Store(tmp_path / "s.sqlite"))
    assert engine.get_remark(Bare()) == "its scores are not cached on disk, because it has no fingerprint"
    assert ScoringEngine().get_remark(Bare()) == ""
