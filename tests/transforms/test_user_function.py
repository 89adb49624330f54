"""A function is a transform."""

from __future__ import annotations

import pytest

from shaketable.core.documents import Query
from shaketable.core.errors import BadInput
from shaketable.core.protocols import TransformContext
from shaketable.testing import check_transform
from shaketable.transforms.user_function import FunctionTransform
from shaketable.transforms.vary import vary

SOURCE = '''
def last_first(text, rng):
    """The last word first, if that is another text."""
    words = text.split()
    return " ".join(words[-1:] + words[:-1])


last_first.category = "ordering"
last_first.sources = ("bigrams",)


def any_letter(text, rng):
    return text + rng.choice("xyz")


def number(text, rng):
    return 7


def nothing(text, rng):
    return "  "


CONSTANT = "no function"
'''


@pytest.fixture(autouse=True)
def module(tmp_path, monkeypatch):
    (tmp_path / "my_edits_of_a_test.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))


def edit(name: str) -> FunctionTransform:
    return FunctionTransform(f"my_edits_of_a_test:{name}")


@pytest.mark.parametrize("name", ["last_first", "any_letter", "nothing"])
def test_functions_keep_the_contract(name):
    check_transform(edit(name))


def test_attributes_of_a_function_are_used():
    assert (edit("last_first").category, edit("last_first").sources) == ("ordering", ("bigrams",))
    assert (edit("any_letter").category, edit("any_letter").sources) == ("", ())


def test_through_vary():
    queries = {"q1": Query("A red boat"), "q2": Query("tea")}
    made = vary(queries, [edit("last_first"), edit("any_letter")])
    assert [(v.qid, v.text) for v in made][:1] == [("q1", "boat a red")]
    assert [v.qid for v in made] == ["q1", "q1", "q2"], "of one word the order cannot change"
    assert {v.category for v in made[1:]} <= {"misspelling", "aspect-change", "paraphrasing"}
    assert made == vary(queries, [edit("last_first"), edit("any_letter")])


def test_two_are_equal_if_they_name_the_same():
    assert edit("nothing") == edit("nothing") != edit("number")
    assert hash(edit("nothing")) == hash(edit("nothing"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("number", "a transform must return a text or None, not 7"),
        ("CONSTANT", "is str, not a function"),
        ("absent", "there is no 'absent'"),
    ],
)
def test_an_object_that_is_no_transform_is_an_error(name, message):
    with pytest.raises(BadInput, match=message):
        edit(name).apply("red boat", None, TransformContext())
