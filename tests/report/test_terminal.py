"""Tables in the terminal."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from shaketable.report.terminal import show_table

from .samples import HOSTILE, scores


def render_table(frame: pd.DataFrame, *notes: str, title: str = "A table", width: int = 80) -> list[str]:
    out = io.StringIO()
    show_table(Console(file=out, width=width, force_terminal=False), title, frame, notes)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_a_small_table() -> None:
    columns = {"score": [0.31419, np.nan], "n": [7, 12], "drop": ["-3.1 %", "12.0 %"]}
    frame = pd.DataFrame({"who": ["bm25", "ql"], **columns})
    assert render_table(frame, "A note.") == [
        "A table",
        "who     score    n     drop",
        "───────────────────────────",
        "bm25   0.3142    7   -3.1 %",
        "ql          –   12   12.0 %",
        "A note.",
        "",
    ]


def test_markup_is_shown_not_obeyed() -> None:
    lines = render_table(pd.DataFrame({"[b]who[/b]": ["[red]x", "[/]", ":boom:"]}), "[i]note", title="[u]t")
    for text in ("[u]t", "[b]who[/b]", "[red]x", "[/]", ":boom:", "[i]note"):
        assert text in lines


def test_control_characters_do_not_reach_the_terminal() -> None:
    text = "\n".join(render_table(pd.DataFrame({HOSTILE[7]: [HOSTILE[7]]}), HOSTILE[7], title=HOSTILE[7]))
    assert not {"\x1b", "\x00", "\x07", "\u202e", "\ud800"} & set(text)
    assert "�[31mred" in text


def test_long_tables_report_hidden_rows() -> None:
    lines = render_table(scores(20))
    assert "… and 20 more rows in the files" in lines
    assert sum(line.startswith("q") for line in lines) == 40 + 1  # and the head


def test_wide_tables_are_split_and_each_part_names_its_rows() -> None:
    frame = pd.DataFrame({"system": ["bm25", "ql"], **{f"nDCG@{k}": [k / 100, 0.5] for k in range(20)}})
    lines = render_table(frame)
    assert sum(line.startswith("system") for line in lines) == sum(line.startswith("bm25") for line in lines) == 3
    heads = " ".join(line for line in lines if line.startswith("system")).split()
    assert [name for name in heads if name != "system"] == [f"nDCG@{k}" for k in range(20)]


def test_long_texts_are_cut() -> None:
    lines = render_table(pd.DataFrame({"text": ["word " * 50], "n": [1]}))
    assert any("…" in line for line in lines)
    assert len([line for line in lines if "word" in line]) == 1


@pytest.mark.parametrize("frame", [pd.DataFrame(), pd.DataFrame({"a": []})])
def test_a_table_without_rows_is_reported(frame: pd.DataFrame) -> None:
    assert render_table(frame) == ["A table", "  (no rows)", ""]


@given(
    st.lists(st.text(max_size=60), min_size=1, max_size=9, unique=True),
    st.lists(st.one_of(st.text(max_size=120), st.floats(), st.integers(-999, 999), st.none()), min_size=1, max_size=5),
    st.integers(60, 120),
)
def test_no_line_is_wider_than_the_screen(names: list[str], values: list[object], width: int) -> None:
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name in names})
    assert all(cell_len(line) <= width for line in render_table(frame, width=width))


def test_long_names_that_differ_look_different() -> None:
    start = "minilm_reranker_model_listwise_trained_on_" + "adversarial_documents_"
    names = [f"{start}plain_2024", f"{start}targeted_2024", "bm25"]
    lines = render_table(pd.DataFrame({"run": names, "nDCG@10": [0.5, 0.4, 0.3], "AP": [0.1, 0.2, 0.3]}))
    assert len({line.split()[0] for line in lines[3:6]}) == 3
    assert all(cell_len(line) <= 80 for line in lines)


def test_names_that_differ_in_the_middle_are_broken_into_lines() -> None:
    names = [f"{'a' * 60}{letter}{'b' * 60}" for letter in "xy"]
    text = "".join("".join(render_table(pd.DataFrame({"run": names, "n": [1, 2]}))).split())
    assert "x" in text
    assert "y" in text


def test_a_long_name_alone_ends_in_an_ellipsis() -> None:
    assert any(
        line.startswith("aaa") and "a…" in line for line in render_table(pd.DataFrame({"run": ["a" * 90], "n": [1]}))
    )
