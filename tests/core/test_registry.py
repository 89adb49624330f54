"""Text and object are the same thing, and text is never run."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from shaketable.core.errors import BadInput, UnknownName
from shaketable.core.import_object import import_object
from shaketable.core.registries import LEARNERS, MEASURES, RANKERS, TASKS, TRANSFORMS
from shaketable.core.registry import Registry, describe_type, find_named_files, matches_type
from tests.processes import in_a_process


@dataclass(frozen=True)
class Leaf:
    """A leaf."""

    size: float = 1.0
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tree:
    """A tree, with leaves."""

    leaf: Leaf = field(default_factory=Leaf)
    leaves: tuple[Leaf, ...] = ()
    name_: str = "oak"


@dataclass(frozen=True)
class Path:
    """Somewhere."""

    at: str


TOYS = Registry(
    "toy",
    {"leaf": f"{__name__}:Leaf", "big_tree": f"{__name__}:Tree", "path": f"{__name__}:Path"},
    shorthands={r"at:(.+)": "path"},
)


@pytest.mark.parametrize(
    ("text", "thing"),
    [
        ("leaf", Leaf()),
        ("leaf()", Leaf()),
        ("leaf(size=2)", Leaf(size=2)),
        ("leaf(2)", Leaf(size=2)),
        ("leaf(words=('a', 'b'))", Leaf(words=("a", "b"))),
        ("big_tree(leaf=leaf(size=3))", Tree(leaf=Leaf(size=3))),
        ("big_tree(leaves=(leaf(1.5), leaf))", Tree(leaves=(Leaf(1.5), Leaf()))),
        ("big_tree(name_='(odd), \"text\"')", Tree(name_='(odd), "text"')),
        ("big-tree", Tree()),
        ("big-tree(name_='ash')", Tree(name_="ash")),
        ("at:some where", Path("some where")),
    ],
)
def test_reading(text, thing):
    assert TOYS.build(text) == thing
    assert TOYS.build(TOYS.spec(thing)) == thing


def test_writing_leaves_out_defaults_and_uses_shorthands():
    assert TOYS.spec(Leaf()) == "leaf"
    assert TOYS.spec(Leaf(size=2.5)) == "leaf(size=2.5)"
    assert TOYS.spec(Path("x")) == "at:x"
    assert RANKERS.spec(RANKERS.build("run:a.run")) == "run:a.run"
    assert RANKERS.spec(RANKERS.build("http://h/rerank")) == "http://h/rerank"
    assert RANKERS.spec(RANKERS.build("module:thing")) == "module:thing"
    assert RANKERS.spec(RANKERS.build("http(url='http://h/rerank', dialect='tei')")) == (
        "http(url='http://h/rerank', dialect='tei')"
    )


@pytest.mark.parametrize(
    "text",
    [
        "leaf(size=__import__('os').getcwd())",
        "leaf(size=(1).__class__)",
        "leaf(**{'size': 1})",
        "leaf(*[1])",
        "leaf.size",
        "lambda: leaf",
        "leaf if True else tree",
        "leaf(size=[x for x in (1,)])",
        "",
        "leaf(",
        "'leaf'",
        "leaf; tree",
    ],
)
def test_only_names_and_literals(text):
    with pytest.raises((BadInput, UnknownName)):
        TOYS.build(text)


def test_errors_help():
    with pytest.raises(UnknownName, match="no toy is called 'laef'; did you mean leaf"):
        TOYS.build("laef")
    with pytest.raises(UnknownName, match="no toy is called 'laef'"):
        TOYS.build("laef(")
    with pytest.raises(BadInput, match="it takes: size, words"):
        TOYS.build("leaf(colour='red')")
    with pytest.raises(UnknownName, match="no ranker is called 'bm52'; did you mean bm25"):
        RANKERS.build("bm52(k1=1)")


@pytest.mark.parametrize("text", ["rbo(p=0.5)", "overlap(k=3)", "gmap(floor=True)"])
def test_real_measures_round_trip(text):
    assert MEASURES.spec(MEASURES.build(text)) == text


def test_nested_rankers_round_trip():
    text = "rm3(base=ql(mu=500.0), docs=5)"
    assert RANKERS.spec(RANKERS.build(text)) == text


@dataclass(frozen=True)
class Shout:
    """A transform of another package."""

    marks: int = 1
    also: tuple[str, ...] = ()
    category: str = field(default="naturality", init=False)

    def apply(self, text, rng, context):
        return text + "!" * self.marks


class Plain:
    """A class without fields: two objects differ by the arguments of the constructor."""

    def __init__(self, k=1, *, name="x"):
        self.k, self.name = k, name

    def open(self, collection):
        return self


class Hidden:
    def __init__(self, k=1):
        self.kept = k


class Refusing:
    def __init__(self, k):
        raise ValueError(f"no {k} today")


class TestObjectsOfTheUsers:
    @pytest.mark.parametrize("catalogue", [LEARNERS, TRANSFORMS, MEASURES, TASKS], ids=lambda c: c.kind)
    def test_by_module_and_class_with_parameters(self, catalogue):
        thing = catalogue.build(f"{__name__}:Shout(marks=2, also=('a',))")
        assert thing == Shout(2, ("a",))
        assert catalogue.spec(thing) == f"{__name__}:Shout(marks=2, also=('a',))"
        assert catalogue.build(catalogue.spec(thing)) == thing
        assert catalogue.build(f"{__name__}:Shout") == Shout()
        assert catalogue.build(f"  {__name__}:Shout()  ") == Shout()

    def test_a_ranker_is_made_when_it_is_opened(self):
        model = RANKERS.build(f"{__name__}:Plain(k=2)")
        assert RANKERS.spec(model) == f"{__name__}:Plain(k=2)"
        assert RANKERS.build("no_such_module:Thing(k=2)").target == "no_such_module:Thing(k=2)"
        assert import_object(model.target).k == 2

    def test_parameters_that_are_not_the_default_are_kept(self):
        assert RANKERS.spec(Plain()) == f"{__name__}:Plain"
        assert RANKERS.spec(Plain(2)) == f"{__name__}:Plain(k=2)"
        assert RANKERS.spec(Plain(2, name="y")) == f"{__name__}:Plain(k=2, name='y')"
        assert TRANSFORMS.spec(Shout(also=("a", "b"))) == f"{__name__}:Shout(also=('a', 'b'))"

    def test_parameters_without_attributes_are_left_out_of_the_spec(self):
        assert RANKERS.spec(Hidden(5)) == f"{__name__}:Hidden"

    def test_parameters_that_are_no_literals_have_a_text_all_the_same_and_always_the_same(self):
        assert RANKERS.spec(Plain(len)) == f"{__name__}:Plain(k=builtins:len)"
        assert RANKERS.spec(Plain(Plain)) == f"{__name__}:Plain(k={__name__}:Plain)"
        assert RANKERS.spec(Plain(Plain(3))) == f"{__name__}:Plain(k={__name__}:Plain(k=3))"
        assert RANKERS.spec(Plain(object())) == RANKERS.spec(Plain(object())) == f"{__name__}:Plain(k=builtins:object)"
        one, other = (RANKERS.spec(Plain(np.array([1.0, x]))) for x in (2.0, 3.0))
        assert one != other

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("no_such_module:Thing", "there is no module 'no_such_module'"),
            (f"{__name__}:Nothing", "there is no 'Nothing'"),
            (f"{__name__}:Shout(nonsense=1)", "cannot be created with these parameters"),
            (f"{__name__}:Shout(marks=", "cannot read the"),
            (f"{__name__}:Shout(marks=__import__('os'))", "cannot read the parameters"),
            (f"{__name__}:Shout(*[1])", "cannot read the parameters"),
            (f"{__name__}:Shout(**{{'marks': 1}})", "cannot read the parameters"),
            (f"{__name__}:Shout(marks=1)(2)", "cannot read the parameters"),
            (f"{__name__}:Shout(marks=1).apply", "cannot read"),
            (f"{__name__}:Refusing(k=2)", "no 2 today"),
            (f"{__name__}:Refusing", "cannot be created with these parameters"),
        ],
    )
    @pytest.mark.parametrize("catalogue", [LEARNERS, TRANSFORMS, MEASURES, TASKS], ids=lambda c: c.kind)
    def test_specs_that_cannot_be_built_are_an_error(self, catalogue, text, message):
        with pytest.raises(BadInput, match=message):
            catalogue.build(text)


ALL = (RANKERS, LEARNERS, TRANSFORMS, MEASURES, TASKS, TOYS)


class TestLimits:
    @pytest.mark.parametrize("catalogue", ALL, ids=lambda c: c.kind)
    @pytest.mark.parametrize(
        "text",
        [
            "x" * 10_000_000,
            "leaf(" * 1900 + ")" * 1900,
            "bm25(k1=" + "(" * 3000 + ")" * 3000 + ")",
            "bm25(k1=" + "-" * 9000 + "1)",
            "bm25(k1=" + "[" * 4000,
            "bm25(k1=" + "1" * 9000 + ")",
            "bm25(k1=1e" + "9" * 9000 + ")",
            "a." * 4000 + "b",
            "\x00",
            "\ud800",
            "bm25\x00",
            "bm25(k1='\ud800')",
        ],
        ids=lambda text: f"{text[:12]!r}-{len(text)}",
    )
    def test_unusual_texts(self, catalogue, text):
        with pytest.raises((BadInput, UnknownName)) as caught:
            catalogue.build(text)
        assert len(str(caught.value)) < 2000
        assert "\n" not in str(caught.value)

    def test_deep_nesting_that_can_be_read_is_read(self):
        text = "leaf"
        for _ in range(30):
            text = f"big_tree(leaves=({text},))" if text != "leaf" else "big_tree(leaf=leaf(size=2))"
        with pytest.raises(BadInput, match="leaves should be"):
            TOYS.build(text)

    @pytest.mark.parametrize(
        "text", ["run(5)", "hf(5)", "st(5)", "saved(None)", "http(5)", "python(True)", "rm3(bm25, docs='x')"]
    )
    def test_a_number_where_a_text_belongs(self, text):
        with pytest.raises(BadInput, match=r"should be (a text|a whole number), not"):
            RANKERS.build(text)


class TestTypes:
    @pytest.mark.parametrize(
        ("value", "hint", "fine"),
        [
            (1, int, True), (1.0, int, False), (True, int, False), (1, float, True), (True, float, False),
            ("x", str, True), (None, str, False), (None, str | None, True), (("a",), tuple[str, ...], True),
            (["a"], tuple[str, ...], True), (("a", 1), tuple[str, ...], False), ((), tuple[str, ...], True),
            ((1, "a"), tuple[int, str], True), ((1,), tuple[int, str], False), ("ab", tuple[str, ...], False),
            (1j, float, False), (float("inf"), float, True), ({}, dict, True), ([], dict, False),
        ],
    )  # fmt: skip
    def test_fits(self, value, hint, fine):
        assert matches_type(value, hint) is fine

    @pytest.mark.parametrize("hint", [int, float, str, bool, str | None, tuple[int, ...], Leaf, Leaf | Tree])
    def test_described(self, hint):
        words = describe_type(hint)
        assert words
        assert "class" not in words
        assert "tuple[" not in words

    def test_a_list_becomes_a_tuple_where_one_is_declared(self):
        assert TOYS.build("leaf(words=['a', 'b'])") == Leaf(words=("a", "b"))
        assert hash(TOYS.build("leaf(words=['a'])"))


def test_files_that_a_text_names_at_any_depth(tmp_path, monkeypatch, home):
    monkeypatch.chdir(tmp_path)
    for name in ("words.txt", "model/model.json", "model/files/net", "bare/file", "it's.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (home / "resources" / "mine").mkdir(parents=True)
    (home / "resources" / "mine" / "net").write_text("net")

    def texts(text: str) -> list[str]:
        return list(map(str, find_named_files(text)))

    inner = "counterfitted(path='words.txt')"
    assert texts(f"da(synonyms={inner!r}, words=3)") == ["words.txt"]
    assert find_named_files("hf:./model") == find_named_files("knrm(start='./model')")
    assert texts("knrm(start='./model')") == ["model/files/net", "model/model.json"]
    assert texts("run:words.txt") == ["words.txt"]
    assert texts("it's.txt") == ["it's.txt"]
    assert find_named_files("bert(checkpoint='mine')") == [home / "resources" / "mine" / "net"]
    for nothing in ("bare", "bm25", "", "knrm(vectors='absent')", "x" * 9999, "nul \0"):
        assert find_named_files(nothing) == []


OWN = """
from dataclasses import dataclass
from typing import ClassVar

@dataclass(frozen=True)
class Typo:
    category: ClassVar[str] = "misspelling"
    again: tuple = ()

    def apply(self, text, rng, context):
        return text + rng.choice("abcdefghijklmnopqrstuvwxyz")
"""
SCRIPT = """
import sys
import shaketable as st
(target,) = sys.argv[1:]
own = st.TRANSFORMS.build(target)
print(st.TRANSFORMS.spec(own), st.TRANSFORMS.spec(type(own)(again=(own, type(own)))))
print(st.TRANSFORMS.spec(own, paths=True))
print([(v.method, v.text) for v in st.vary({str(n): "red boat" for n in range(9)}, own).variations])
"""


def test_a_class_in_a_file_is_seeded_and_shown_by_names_wherever_the_file_is(tmp_path):
    folders = [tmp_path / "one", tmp_path / "two" / "three"]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "own.py").write_text(OWN)
    done = [in_a_process(SCRIPT, folder / "own.py:Typo").stdout.splitlines() for folder in folders]
    (shown, one, drawn), (shown_too, two, drawn_too) = done
    assert shown == shown_too == "own.py:Typo own.py:Typo(again=(own.py:Typo, own.py:Typo))"
    assert drawn == drawn_too
    assert "('own.py:Typo', " in drawn
    assert [one, two] == [f"{folder / 'own.py'}:Typo" for folder in folders], "from anywhere"


def test_two_files_of_one_name_are_not_mixed_up(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "namesake.py").write_text(OWN)
    first = TRANSFORMS.build(f"{tmp_path}/one/namesake.py:Typo")
    assert TRANSFORMS.spec(first) == TRANSFORMS.get_name(first) == "namesake.py:Typo"
    assert TRANSFORMS.get_name(first, paths=True) == f"{tmp_path}/one/namesake.py:Typo"
    other = TRANSFORMS.build(f"{tmp_path}/two/namesake.py:Typo")
    assert TRANSFORMS.spec(first) != TRANSFORMS.spec(other)
