"""Any user object that scores texts becomes a ranker; other objects are an error with advice."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from shaketable.core.documents import Collection, Doc, Slate
from shaketable.core.errors import BadInput, RankerFailed
from shaketable.core.registries import RANKERS
from shaketable.rankers.python import PythonObject, accepts_arguments, adapt
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.traits import RankerTraits
from shaketable.testing import SAMPLE_SLATES, check_ranker
from tests.toys import Normalised, Overlap

NOWHERE = Collection("empty", {}, {})


def worth(query: str, text: str) -> float:
    return len(set(query.split()) & set(text.split())) / (1 + len(text))


EXPECTED = [[worth(slate.query, doc.text) for doc in slate.docs] for slate in SAMPLE_SLATES]


def function(query: str, texts: list[str]) -> list[float]:
    return [worth(query, text) for text in texts]


class Calling:
    def __call__(self, query: str, texts: list[str]) -> np.ndarray:
        return np.array(function(query, texts), dtype=np.float32)


class Nameless:
    def score(self, slates: list[Slate]) -> list[list[float]]:
        return [function(slate.query, [doc.text for doc in slate.docs]) for slate in slates]


class CrossEncoder:
    """As in sentence-transformers: it can rank as well, and be called."""

    def predict(self, sentences: list[tuple[str, str]], batch_size: int = 32) -> np.ndarray:
        assert sentences, "nothing to predict"
        return np.array([worth(*pair) for pair in sentences], dtype=np.float32)

    def rank(self, query: str, documents: list[str]) -> list[dict[str, Any]]:
        raise NotImplementedError

    def __call__(self, features: dict[str, Any]) -> Any:
        raise NotImplementedError


class Scorer:
    """As in ABNIRML."""

    def score_iter(self, it: Any) -> Any:
        for query, text in it:
            yield worth(query, text)


class Transformer:
    """As in PyTerrier: best first, and with more columns than it was given."""

    def transform(self, frame: pd.DataFrame) -> pd.DataFrame:
        assert list(frame.columns) == ["qid", "query", "docno", "text"]
        scores = [worth(query, text) for query, text in zip(frame["query"], frame["text"], strict=True)]
        return frame.assign(score=scores, rank=0).sort_values("score", ascending=False)


class Reranker:
    """As in rerankers: its own `score` takes a query and one text."""

    def rank(self, query: str, docs: list[str], doc_ids: list[int] | None = None) -> Any:
        results = [SimpleNamespace(doc_id=i, score=worth(query, text)) for i, text in enumerate(docs)]
        return sorted(results, key=lambda result: -result.score)

    def score(self, query: str, doc: str) -> float:
        return worth(query, doc)


@dataclass(frozen=True)
class Model:
    def open(self, collection: Collection) -> Overlap:
        return Overlap(name=f"opened on {collection.name}")


THINGS = [function, Calling(), Calling, Nameless(), Nameless, CrossEncoder(), Scorer(), Transformer(), Reranker()]


@pytest.mark.parametrize("thing", [*THINGS, Overlap(), Overlap, Model()])
def test_each_shape_scores_the_same(thing):
    ranker = adapt(thing, NOWHERE, "mine")
    for scores, expected in zip(ranker.score(SAMPLE_SLATES), EXPECTED, strict=True):
        assert scores == pytest.approx(expected, abs=1e-7)
    check_ranker(ranker)


@pytest.mark.parametrize("thing", THINGS)
def test_an_object_without_a_name_gets_its_spec_as_name(thing):
    assert adapt(thing, NOWHERE, "package.module:thing").name == "package.module:thing"


def test_a_ranker_is_left_as_it_is():
    ranker = Normalised()
    assert adapt(ranker, NOWHERE, "mine") is ranker
    assert adapt(Model(), NOWHERE, "mine").name == "opened on empty"


@pytest.mark.parametrize("thing", [Transformer(), Reranker(), lambda query, texts: function(query, texts)])
def test_rankers_of_lists_do_not_say_that_they_are_pointwise(thing):
    assert RankerTraits.from_ranker(adapt(thing, NOWHERE, "mine")) == RankerTraits(
        "mine", pointwise=False, fingerprint=None, cached=True, pointwise_unknown=True
    )


def test_pairs_are_pointwise():
    assert RankerTraits.from_ranker(adapt(CrossEncoder(), NOWHERE)).pointwise
    assert RankerTraits.from_ranker(adapt(Scorer(), NOWHERE)).pointwise


def test_attributes_of_a_function_are_used():
    def promising(query: str, texts: list[str]) -> list[float]:
        return function(query, texts)

    promising.pointwise = True
    promising.fingerprint = "promising 1"
    promising.cached = False
    own = f"{__name__}:test_attributes_of_a_function_are_used.<locals>.promising promising 1"
    expected = RankerTraits("promising", pointwise=True, fingerprint=own, cached=False)
    assert RankerTraits.from_ranker(adapt(promising, NOWHERE)) == expected


def test_a_pair_scorer_is_asked_once_for_all_slates():
    calls = []
    thing = SimpleNamespace(predict=lambda pairs: calls.append(len(pairs)) or [0.0] * len(pairs))
    ranker = adapt(thing, NOWHERE, "mine")
    shapes = [scores.shape for scores in ranker.score([SAMPLE_SLATES[0], Slate("none", ()), SAMPLE_SLATES[1]])]
    assert (calls, shapes) == ([7], [(4,), (0,), (3,)])


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (lambda query, texts: [1.0], r"query 'red boat': scores of shape \(1,\) for 4 documents"),
        (lambda query, texts: None, "query 'red boat'"),
        (lambda query, texts: ["high"] * len(texts), "query 'red boat': scores are not numbers"),
        (
            lambda query, texts: [float("nan")] * len(texts),
            "query 'red boat': score nan for the text 'a small red boat'",
        ),
        (SimpleNamespace(predict=lambda pairs: np.zeros((len(pairs), 2))), r"scores of shape \(8, 2\) for 8 pairs"),
        (SimpleNamespace(transform=lambda frame: frame.assign(score=1.0).head(3)), "scored 3 of 4 texts"),
        (SimpleNamespace(rank=lambda q, t: [SimpleNamespace(doc_id=0, score=1.0)]), "scored 1 of 4 texts"),
        (
            SimpleNamespace(rank=lambda q, t: [SimpleNamespace(doc_id=i, score=None) for i in range(len(t))]),
            "score nan",
        ),
    ],
)
def test_wrong_answers_are_named(thing, said):
    with pytest.raises(RankerFailed, match=said):
        ScoringEngine().score(adapt(thing, NOWHERE, "mine"), SAMPLE_SLATES)


@pytest.mark.parametrize("thing", [3, "text", object(), lambda one: one, SimpleNamespace(rank=lambda q: q), None])
def test_an_object_that_is_no_ranker_gets_advice(thing):
    with pytest.raises(BadInput, match=r"mine is .*not a ranker") as caught:
        adapt(thing, NOWHERE, "mine")
    for accepted in ("score(slates)", "predict(", "transform(", "f(query, texts)", "open(collection)"):
        assert accepted in str(caught.value)


def test_a_class_that_wants_arguments():
    class Wanting:
        def __init__(self, size: int):
            raise NotImplementedError

    with pytest.raises(BadInput, match=r"must need no arguments; otherwise name an instance of it .*'size'"):
        adapt(Wanting, NOWHERE, "mine")


@pytest.mark.parametrize(("number", "expected"), [(1, False), (2, True), (3, True), (4, False)])
def test_takes_counts_arguments(number, expected):
    assert accepts_arguments(lambda a, b, c=None, *, d=None: None, number) is expected


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes a module into the current folder, and forgets it afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    before = set(sys.modules)

    def module(name: str, text: str) -> None:
        (tmp_path / f"{name}.py").write_text(text)
        importlib.invalidate_caches()

    yield module
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_module_of_the_current_folder_is_found(write):
    write("shaketable_mine", "def length(query, texts):\n    return [len(t) for t in texts]\n")
    ranker = RANKERS.build("shaketable_mine:length").open(NOWHERE)
    assert ranker.name == "shaketable_mine:length"
    assert ranker.score([Slate("q", (Doc("abc"), Doc("")))])[0].tolist() == [3.0, 0.0]


def test_an_attribute_of_an_object_is_found(write):
    write(
        "shaketable_deep",
        "class Box:\n    @staticmethod\n    def f(query, texts):\n        return [1.0] * len(texts)\n",
    )
    assert PythonObject("shaketable_deep:Box.f").open(NOWHERE).score([Slate("q", (Doc("a"),))])[0].tolist() == [1.0]


@pytest.mark.parametrize(
    ("text", "target", "said"),
    [
        ("", "shaketable_absent:f", "there is no module 'shaketable_absent' in"),
        ("", "shaketable_absent.inner:f", "there is no module 'shaketable_absent' in"),
        ("", "shaketable_user:ranker", "there is no 'ranker' in shaketable_user; it has nothing"),
        ("my_ranker = 1", "shaketable_user:my_rankr", "it has my_ranker$"),
        ("one = 1\ntwo = 2", "shaketable_user:zzz", "it has one, two$"),
        ("a = b = c = d = e = f = g = h = i = j = 1", "shaketable_user:zzz", "it has a, b, c, d, e, f, g, h$"),
        (
            "import shaketable_lost",
            "shaketable_user:f",
            "importing shaketable_user failed: No module named 'shaketable_lost'",
        ),
        ("1 / 0", "shaketable_user:f", r"importing shaketable_user failed \(ZeroDivisionError: division by zero\)"),
        ("def f(:", "shaketable_user:f", r"importing shaketable_user failed \(SyntaxError"),
        ("raise SystemExit('stop')", "shaketable_user:f", r"importing shaketable_user failed \(SystemExit: stop\)"),
        ("", "shaketable_user", "write MODULE:OBJECT"),
        ("", ":f", "write MODULE:OBJECT"),
    ],
)
def test_a_missing_object_is_an_error_with_a_reason(write, text, target, said):
    write("shaketable_user", text)
    with pytest.raises(BadInput, match=said):
        PythonObject(target).open(NOWHERE)


def test_two_classes_of_one_fingerprint_are_two_rankers():
    class One:
        fingerprint = "the same"

        def predict(self, pairs):
            return [1.0] * len(pairs)

    class Other(One):
        pass

    assert adapt(One(), NOWHERE).fingerprint != adapt(Other(), NOWHERE).fingerprint
    assert adapt(One(), NOWHERE).fingerprint == adapt(One(), NOWHERE).fingerprint
