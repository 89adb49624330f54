"""Text and object are the same thing, and text is never run."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from shaketable.errors import BadInput, UnknownName
from shaketable.registry import MEASURES, RANKERS, Catalogue


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


TOYS = Catalogue(
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
