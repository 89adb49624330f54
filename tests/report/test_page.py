"""The page: complete, one file, and safe with hostile data."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import shaketable as st
from shaketable.core.extras import format_install_command
from shaketable.core.results import Example, Figure, Result
from shaketable.report.charts import MAX_DRAWN_ROWS
from shaketable.report.glossary import TERMS
from shaketable.report.page import MAX_PAGE_BYTES, _describe_rank_change, write_page

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
        *("Means", "As measured.", "scores per query ", "(24 rows)", "1 failed", "returned NaN", "ndcg"),
        *("versions.numpy", "2.0", "1.0e-07", "-12.5 %", "–"),
    ):
        assert expected in reader.texts, expected
    assert "no plots" not in text


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page of an ordinary result and a hostile one."""
    return page(tmp_path_factory.mktemp("page"), ordinary(), hostile())


def test_elements_close_in_order(mixed: str) -> None:
    assert Reader(mixed).open == []


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (7, 2, "The document d1 rose from rank 7 to rank 2."),
        (2, 7, "The document d1 fell from rank 2 to rank 7."),
        (4, 4, "The document d1 stayed at rank 4."),
        (4, 0, "The document d1 was at rank 4 and is no longer in the list."),
        (0, 4, "The document d1 was not in the list and is now at rank 4."),
        (0, 0, ""),
    ],
)
def test_a_sentence_says_how_a_document_moved(old: int, new: int, sentence: str) -> None:
    example = Example("bm25", "q1", "typo", "a", "b", document="d1", rank_before=old, rank_after=new)
    assert _describe_rank_change(example) == sentence
    assert _describe_rank_change(replace(example, document="")) == ""


def test_every_section_is_in_the_contents(tmp_path: Path) -> None:
    reader = Reader(page(tmp_path, *(ordinary(f"task {i}") for i in range(3))))
    links = [value for name, value in reader.attributes if name == "href"]
    assert links == [f"#{name}" for name in ("overview", "overview", "task-s1", "task-s2", "task-s3", "glossary")]
    assert {link[1:] for link in links} <= {value for name, value in reader.attributes if name == "id"}


def test_ids_are_unique(tmp_path: Path) -> None:
    other = Result("b", "?", {"t": scores(5)}, (Figure("profile", "t", "P", "query", "nDCG@10", "system"),))
    ids = [value for name, value in Reader(page(tmp_path, ordinary(), other)).attributes if name == "id"]
    assert len(ids) == len(set(ids))


def test_hostile_texts_are_shown_and_do_nothing(tmp_path: Path) -> None:
    plain = Reader(page(tmp_path, *[ordinary()] * 2, summary={"Seed": "7"}, seed=7))
    summary = dict(zip(HOSTILE, HOSTILE[::-1], strict=True))
    write_page(tmp_path / "page.html", HOSTILE[4], summary, [hostile()] * 2, {HOSTILE[0]: HOSTILE, "in": summary})
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    reader = Reader(text)
    assert set(reader.elements) - set(plain.elements) <= {"text", "title", "rect"}
    assert not {"iframe", "img", "object", "form"} & set(reader.elements)
    assert reader.elements.count("script") == 1
    assert not [name for name, _ in reader.attributes if name.startswith("on") or name in ("src", "style", "action")]
    links = {value for name, value in reader.attributes if name == "href"}
    sections = {"#overview", "#task-s1", "#task-s2", "#glossary", "#provenance"}
    assert links <= {*sections, *(f"#{term.anchor}" for term in TERMS)}
    assert HOSTILE[0] in reader.texts
    assert any("{{ 7 * 7 }}" in shown for shown in reader.texts)
    assert not {"\x00", "\x1b", "\u202e"} & set(text)


def test_the_page_asks_nothing_of_the_network(mixed: str) -> None:
    assert "default-src 'none'" in mixed
    values = [value for name, value in Reader(mixed).attributes if name not in ("xmlns", "aria-label", "content")]
    assert not [value for value in values if "//" in value or ("url(" in value and not value.startswith("url(#"))]
    style = mixed[mixed.index("<style>") : mixed.index("</style>")]
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
        "This page has no plots: drawing plots needs libraries that are not installed: "
        + format_install_command("report")
    ]


def test_long_tables_are_cut_and_the_csv_is_named(tmp_path: Path) -> None:
    reader = Reader(page(tmp_path, ordinary(topics=100)))
    assert "The first 10 of 300 rows; all of them are in " in reader.texts
    assert "tables/variance/scores-per-query.csv" in reader.texts


def test_long_tables_are_folded(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": range(51)})
    tables = {"short": frame.iloc[:15], "long": frame, "scores per query": frame.iloc[:2]}
    shown = Result("t", "?", tables, brief=("short", "long", "scores per query"))
    assert Reader(page(tmp_path, shown)).elements.count("details") == 2


def test_the_page_stays_small(tmp_path: Path) -> None:
    words = pd.DataFrame({f"c{i}": ["some words " * 100] * 500 for i in range(8)})
    many = [Result(f"t{i}", "?", {"examples": words, "scores per query": scores(300)}) for i in range(3)]
    text = page(tmp_path, *many)
    assert len(text.encode()) < MAX_PAGE_BYTES
    assert "The first 10 of 500 rows" in text
    assert [len(table["cells"][0]) for table in data(text)["tables"][:2]] == [500, 900]


def test_tables_that_do_not_fit_have_fewer_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digits = np.random.default_rng(1).integers(0, 10**9, (3_000, 5)).astype(str)
    many = Result("t", "?", {"words": pd.DataFrame(digits, columns=list("abcde"))})
    assert len(data(page(tmp_path, many))["tables"][0]["cells"][0]) == 3_000
    monkeypatch.setattr("shaketable.report.page.MAX_PAGE_BYTES", 100_000)
    text = page(tmp_path, many)
    assert len(text.encode()) < 100_000
    assert len(data(text)["tables"][0]["cells"][0]) == 1_000


def test_the_script_is_the_one_that_the_policy_names(mixed: str) -> None:
    (script,) = re.findall(r"<script>(.*?)</script>", mixed, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in mixed
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval",
        "fetch",
        "XMLHttp",
        "import(",
    ):
        assert word not in script


def test_terms_are_explained_where_they_stand(tmp_path: Path) -> None:
    tables = {"t": pd.DataFrame({"VNAP": [0.5]})}
    text = page(tmp_path, Result("t", "?", tables, notes=("VNAP, by <b>RRF</b>; VNAP.",)))
    assert text.count('<a class="term" href="#term-vnap"') == 1
    assert text.count('<abbr title="') == 1
    assert "&lt;b&gt;<a" in text
    assert 'id="term-vnap"' in text


def test_percentages_have_one_decimal_and_stars_a_heading(tmp_path: Path) -> None:
    frame = pd.DataFrame({"drop %": [-12.345, 0.04], "p (Holm)": [0.001, 0.5], "": ["*", ""], "more": [1, 2]})
    text = page(tmp_path, Result("t", "?", {"t": frame}))
    assert '<td class="n">-12.3</td>' in text
    assert '<th class="star r0" scope="col">*</th>' in text


def test_tables_report_a_small_number_of_queries(tmp_path: Path) -> None:
    frame = pd.DataFrame({"who": ["a", "b"], "s": [0.1, 0.2], "queries": [12, 40]})
    figure = Figure("bars", "t", "S", "who", "s", source="Somebody 2001, Fig. 1", folded=True)
    text = page(tmp_path, Result("t", "?", {"t": frame}, (figure,), sources={"t": "Somebody 2001, Table 2"}))
    assert "Numbers rest on 12 to 40 queries." in text
    assert "Somebody 2001, Fig. 1" in text
    assert "Somebody 2001, Table 2" in text
    assert '<details class="theory">' in text


def data(text: str) -> dict[str, Any]:
    """Return the data of the page's script."""
    packed = re.findall(r'<template id="data">(.*?)</template>', text)[0]
    found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed)))
    return found


def test_empty_and_missing_values(tmp_path: Path) -> None:
    nothing = pd.DataFrame({"who": ["a", "b"], "score": [np.nan, np.nan]})
    figures = tuple(Figure("bars", table, "Bars", "who", "score") for table in ("none", "empty"))
    result = Result("t", "?", {"none": nothing, "empty": nothing.iloc[:0], "bare": pd.DataFrame()}, figures)
    reader = Reader(page(tmp_path, result))
    assert reader.texts.count("–") == 2
    assert reader.texts.count("No rows.") == 2
    assert reader.texts.count("No plot: the table has no values.") == 2


def test_a_figure_of_too_many_points_is_left_out_and_says_so(tmp_path: Path) -> None:
    queries = [f"q{number}" for number in range(MAX_DRAWN_ROWS + 1)]
    frame = pd.DataFrame({"ranker": "a", "query": queries, "z": np.arange(len(queries)) / len(queries)})
    figures = (Figure("profile", "per query", "Profile", "query", "z", color="ranker"),)
    text = page(tmp_path, Result("t", "?", {"per query": frame}, figures))
    assert Reader(text).texts.count("Not drawn: more than 50,000 points. The table 'per query' has the values.") == 1
    assert "<svg" not in text


def test_a_page_formats_only_rows_that_it_can_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"ranker": "a", "query": [f"q{number}" for number in range(6_000)], "z": 0.5})
    result = Result("t", "?", {"per query": frame})
    (whole,) = [table for table in data(page(tmp_path, result))["tables"] if table["name"] == "per query"]
    assert len(whole["cells"][0]) == len(frame)
    monkeypatch.setattr("shaketable.report.page.MAX_TOTAL_ROWS", 5_999)
    text = page(tmp_path, result)
    (head,) = [table for table in data(text)["tables"] if table["name"] == "per query"]
    assert head["cells"] == [column[:5_000] for column in whole["cells"]]
    assert "6000 rows" in text


def test_no_results_at_all(tmp_path: Path) -> None:
    assert "An audit" in Reader(page(tmp_path)).texts


def test_without_a_verdict_no_ranker_is_named(tmp_path: Path) -> None:
    """A list of untested facets is no verdict."""
    st.audit("sample", ["ql", "rm3"], "agreement", max_queries=4, runs=False).save(tmp_path / "audit")
    text = (tmp_path / "audit" / "report.html").read_text(encoding="utf-8")
    assert "These tasks produce no verdict" in text
    assert "was not tested" not in text


def test_one_query_is_one(tmp_path: Path) -> None:
    frame = pd.DataFrame({"query": ["q1", "q1"], "x": [1.0, 2.0], "y": [1.0, 2.0]})
    text = page(tmp_path, Result("t", "What?", {"points": frame}, (Figure("scatter", "points", "Points", "x", "y"),)))
    assert "It shows one query." in text
