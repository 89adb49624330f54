"""The page: whole, alone, and deaf to what the data says."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shaketable.report.page import MOST_BYTES, write_page
from shaketable.types import Figure, Result

from .samples import HOSTILE, hostile, ordinary, scores

VOID = {"meta", "path", "line", "rect"}


class Reader(HTMLParser):
    """Elements, attributes and texts as a browser would find them."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID or tag == "path":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if self.open[-1] == tag:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def page(tmp_path: Path, *results: Result, summary: dict[str, str] | None = None, **provenance: object) -> str:
    write_page(tmp_path / "page.html", "An audit", summary or {}, results, provenance)
    return (tmp_path / "page.html").read_text(encoding="utf-8")


def test_everything_is_there(tmp_path: Path) -> None:
    text = page(tmp_path, ordinary(), summary={"Queries": "8", "Verdict": "passed"}, seed=7, versions={"numpy": "2.0"})
    reader = Reader(text)
    assert reader.elements.count("svg") == 2
    assert reader.elements.count("table") == 6  # two tables, examples, findings, failures, provenance
    for expected in (
        *("An audit", "Verdict", "passed", "How evenly are queries served?", "Two queries had no relevant document."),
        *("Means", "As measured.", "scores per query (24 rows)", "1 failed", "returned NaN", "ndcg"),
        *("versions.numpy", "2.0", "1.0e-07", "-12.5 %", "–"),
    ):
        assert expected in reader.texts, expected
    assert "nav" not in reader.elements
    assert "no plots" not in text


def test_elements_close_in_order(tmp_path: Path) -> None:
    assert Reader(page(tmp_path, ordinary(), hostile())).open == []


def test_contents_are_listed_when_there_are_more_than_two(tmp_path: Path) -> None:
    reader = Reader(page(tmp_path, *(ordinary(f"task {i}") for i in range(3))))
    links = [value for name, value in reader.attributes if name == "href"]
    assert links == ["#s1", "#s2", "#s3"]
    assert {"s1", "s2", "s3"} <= {value for name, value in reader.attributes if name == "id"}


def test_ids_are_unique(tmp_path: Path) -> None:
    other = Result("b", "?", {"t": scores(5)}, (Figure("profile", "t", "P", "query", "nDCG@10", "system"),))
    ids = [value for name, value in Reader(page(tmp_path, ordinary(), other)).attributes if name == "id"]
    assert len(ids) == len(set(ids))


def test_hostile_texts_are_shown_and_do_nothing(tmp_path: Path) -> None:
    plain = Reader(page(tmp_path, *[ordinary()] * 3, summary={"Seed": "7"}, seed=7))
    summary = dict(zip(HOSTILE, HOSTILE[::-1], strict=True))
    write_page(tmp_path / "page.html", HOSTILE[4], summary, [hostile()] * 3, {HOSTILE[0]: HOSTILE, "in": summary})
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    reader = Reader(text)
    assert set(reader.elements) - set(plain.elements) <= {"text", "title", "rect"}
    assert not {"script", "iframe", "img", "object", "form"} & set(reader.elements)
    assert not [name for name, _ in reader.attributes if name.startswith("on") or name in ("src", "style", "action")]
    assert {value for name, value in reader.attributes if name == "href"} == {"#s1", "#s2", "#s3"}
    assert HOSTILE[0] in reader.texts
    assert any("{{ 7 * 7 }}" in shown for shown in reader.texts)
    assert not {"\x00", "\x1b", "\u202e"} & set(text)


def test_the_page_asks_nothing_of_the_network(tmp_path: Path) -> None:
    text = page(tmp_path, ordinary(), hostile())
    assert "default-src 'none'" in text
    values = [value for name, value in Reader(text).attributes if name not in ("xmlns", "aria-label", "content")]
    assert not [value for value in values if "//" in value or ("url(" in value and not value.startswith("url(#"))]
    style = text[text.index("<style>") : text.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_without_the_extra_the_tables_stay_and_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    reader = Reader(page(tmp_path, ordinary(), ordinary("again")))
    assert "svg" not in reader.elements
    assert reader.elements.count("table") == 10
    assert [text for text in reader.texts if "pip install 'shaketable[report]'" in text] == [
        "This page has no plots: drawing plots needs more than the core install: pip install 'shaketable[report]'"
    ]


def test_long_tables_are_cut_and_the_csv_is_named(tmp_path: Path) -> None:
    reader = Reader(page(tmp_path, ordinary(topics=100)))
    assert "The first 200 of 300 rows; all of them are in " in reader.texts
    assert "variance-scores-per-query.csv" in reader.texts


def test_long_tables_are_folded(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": range(51)})
    tables = {"short": frame.iloc[:50], "long": frame, "scores per query": frame.iloc[:2]}
    assert Reader(page(tmp_path, Result("t", "?", tables))).elements.count("details") == 2


def test_the_page_stays_small(tmp_path: Path) -> None:
    words = pd.DataFrame({f"c{i}": ["some words " * 100] * 500 for i in range(8)})
    many = [Result(f"t{i}", "?", {"examples": words, "scores per query": scores(300)}) for i in range(8)]
    text = page(tmp_path, *many)
    assert len(text.encode()) < MOST_BYTES
    assert "The first 60 of 500 rows" in text


def test_empty_and_missing_values(tmp_path: Path) -> None:
    nothing = pd.DataFrame({"who": ["a", "b"], "score": [np.nan, np.nan]})
    figures = tuple(Figure("bars", table, "Bars", "who", "score") for table in ("none", "empty"))
    result = Result("t", "?", {"none": nothing, "empty": nothing.iloc[:0], "bare": pd.DataFrame()}, figures)
    reader = Reader(page(tmp_path, result))
    assert reader.texts.count("–") == 2
    assert reader.texts.count("No rows.") == 2
    assert reader.texts.count("Nothing to draw: the table holds no values.") == 2


def test_no_results_at_all(tmp_path: Path) -> None:
    assert "An audit" in Reader(page(tmp_path)).texts
