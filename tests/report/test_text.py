"""How values are written as text."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.report import clean, format_cell, format_number, is_numeric


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.31415926, "0.3142"),
        (-0.5, "-0.5000"),
        (-0.0, "0.0000"),
        (99.99999, "100.0000"),
        (250.126, "250.13"),
        (1_234_567.8, "1234568"),
        (1e-7, "1.0e-07"),
        (float("inf"), "inf"),
        (float("-inf"), "-inf"),
        (float("nan"), "–"),
        (None, "–"),
        (pd.NA, "–"),
        (pd.NaT, "–"),
        (7, "7"),
        (np.int64(7), "7"),
        (np.float32(0.5), "0.5000"),
        (True, "yes"),
        (np.bool_(False), "no"),
        ("12.5 %", "12.5 %"),
        (["a", 1], "['a', 1]"),
    ],
)
def test_cell_by_hand(value: object, text: str) -> None:
    assert format_cell(value) == text


def test_long_texts_end_in_an_ellipsis() -> None:
    assert format_cell("a" * 10, 5) == "aaaa…"
    assert format_cell("a" * 5, 5) == "aaaaa"


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_clean_text_can_be_encoded_and_gives_a_terminal_no_orders(text: str) -> None:
    shown = clean(text)
    shown.encode("utf-8")
    assert len(shown) == len(text)
    assert not any(ord(c) < 32 and c not in "\t\n" for c in shown)
    assert not {"\x1b", "\x9b", "\u202e"} & set(shown)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_no_number_but_zero_looks_like_zero(value: float) -> None:
    assert (float(format_number(value)) == 0) == (value == 0)


@pytest.mark.parametrize(
    ("values", "numeric"),
    [
        ([1, 2], True),
        ([0.5, None], True),
        (["1.5 %", "-20 %"], True),
        (["1.5 %", "many"], False),
        (["301", "302"], False),  # names of topics
        ([True, False], False),
        ([None, None], False),
        ([], False),
    ],
)
def test_which_columns_are_numbers(values: list[object], numeric: bool) -> None:
    assert is_numeric(pd.Series(values, dtype=None if values else object)) is numeric


def test_importing_the_package_loads_no_heavy_library() -> None:
    modules = ", ".join(f"shaketable.report.{name}" for name in ("charts", "files", "page", "terminal"))
    heavy = "{'pandas', 'altair', 'vl_convert', 'scipy'}"
    code = f"import sys, {modules}; print(*({heavy} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
