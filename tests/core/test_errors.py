"""Error messages are bounded in length, even if they quote long input."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.errors import (
    MAX_MESSAGE_CHARS,
    MAX_QUOTED_CHARS,
    BadInput,
    MissingExtra,
    NotComparable,
    RankerFailed,
    UnknownName,
    quote_value,
)

ANYTHING = st.text(st.characters(exclude_categories=())) | st.integers() | st.binary() | st.lists(st.text())


@given(ANYTHING)
def test_a_short_value_is_its_repr(value):
    assert quote_value(value) == repr(value) or len(repr(value)) > MAX_QUOTED_CHARS


@pytest.mark.parametrize(
    "value",
    ["x" * 10**6, "\0" * 10**6, "'" * 300, b"x" * 10**6, list(range(1000)), 10**4000, 10**5000, "é" * 199],
    ids=range(8),
)
def test_a_long_value_is_cut(value):
    assert len(quote_value(value)) <= MAX_QUOTED_CHARS
    assert quote_value(value).isprintable()


@pytest.mark.parametrize("piece", ["x", "é", "\ud800", "\0", "a b ", "\n", "\x1b[2J"])
def test_no_message_is_longer_than_a_reader_reads_and_any_terminal_shows_it(piece):
    text = piece * 2000
    for error in (
        BadInput(text),
        BadInput("is wrong", text, 3),
        UnknownName("thing", text, [text, "a"]),
        MissingExtra("all", text),
        RankerFailed(text),
        NotComparable(text),
    ):
        assert 0 < len(str(error)) <= MAX_MESSAGE_CHARS
        assert str(error).isprintable()
    assert "is wrong" in str(BadInput("is wrong", "x" * 10_000, 3))
