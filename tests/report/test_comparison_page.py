"""The page of a comparison and the board, in the browser and as text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import shaketable as st
from shaketable.api.audit import Audit
from shaketable.core.errors import BadInput
from shaketable.report.board import Board, BoardRow
from shaketable.report.document_lists import compare_lists

from .browsing import CHROMIUM, DESKTOP, FLAGS, PHONE, find_low_contrast, opened, visit_sections
from .samples import HOSTILE

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")]
TASKS = ("effectiveness", "first-stage", "query-typos(draws=1)")
SCREENS = pytest.mark.parametrize("device", [DESKTOP, PHONE], ids=["desktop", "phone"])


def long_first(query: str, texts: list[str]) -> list[float]:
    return [float(len(text)) for text in texts]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        opened_browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield opened_browser
        opened_browser.close()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two audits on two days: the second version of the ranker is much worse."""
    root = tmp_path_factory.mktemp("audits")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHAKETABLE_HOME", str(root / "home"))
        for name, ranker, day in (("old", "ql", "2026-01-30"), ("new <b>", long_first, "2026-02-01")):
            done = st.audit("sample", {"bm25": "bm25", "mine": ranker}, TASKS, max_queries=25)
            replace(done, facts={**done.facts, "date": day}).save(root / name)
    return root / "old", root / "new <b>"


@pytest.fixture(scope="module")
def comparison_page(folders: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "compare.html"
    path.write_text(st.compare(*folders).to_html(), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def board_page(folders: tuple[Path, Path]) -> Path:
    path = folders[0].parent / "board.html"
    st.board(folders).save(path)
    return path


@SCREENS
def test_a_comparison_can_be_read_on_any_screen(browser: Any, comparison_page: Path, device: dict[str, Any]) -> None:
    with opened(browser, comparison_page, **device) as page:
        for address in visit_sections(page):
            assert find_low_contrast(page) == [], address
            assert page.evaluate("document.documentElement.scrollWidth") <= device["viewport"]["width"], address
            assert page.evaluate("document.querySelector('main').offsetHeight") <= 6_000, address


def test_a_comparison_shows_scorecards_changes_and_lists(
    browser: Any, comparison_page: Path, folders: tuple[Path, Path]
) -> None:
    found = st.compare(*folders)
    before, after = (st.read_audit(folder) for folder in folders)
    with opened(browser, comparison_page, **DESKTOP) as page:
        assert page.locator(".outcome").inner_text() == "Worse"
        assert page.locator(".scorecard").count() == 2
        values = page.locator(".scorecard .value").all_text_contents()
        cells = [one.verdict.ranker_verdicts[0].facet_cells.values() for one in (before, after)]
        assert values == [cell.value for side in cells for cell in side]
        page.get_by_role("link", name="changes").click()
        assert page.locator("#changes tbody tr").count() == len(found.findings)
        page.get_by_role("link", name="queries that lost most").click()
        worst = page.locator("details.query").first
        qid = worst.locator("summary").inner_text().partition(":")[0]
        lists = [worst.locator(".list").nth(side).locator(".docno").all_text_contents() for side in (0, 1)]
        assert lists == [list(one.first_documents.docnos["mine"][qid]) for one in (before, after)]


@SCREENS
def test_a_board_can_be_read_on_any_screen(browser: Any, board_page: Path, device: dict[str, Any]) -> None:
    with opened(browser, board_page, **device) as page:
        assert find_low_contrast(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= device["viewport"]["width"]


def test_a_board_is_sorted_by_the_numbers_of_a_facet(browser: Any, board_page: Path) -> None:
    with opened(browser, board_page, **DESKTOP) as page:
        board = page.locator("table[data-table]")
        head = board.get_by_role("button", name="query typos", exact=True)
        head.focus()
        page.keyboard.press("Enter")
        board.locator("th[aria-sort=ascending]").wait_for()
        numbers = board.locator("tbody td[data-sort]").evaluate_all(
            "all => all.filter(one => one.cellIndex === [...one.closest('table').tHead.rows[0].cells]"
            ".findIndex(head => head.textContent === 'query typos')).map(one => Number(one.dataset.sort))"
        )
        assert len(numbers) == 4
        assert numbers == sorted(numbers)
        links = board.locator("tbody a").evaluate_all("all => all.map(one => one.getAttribute('href'))")
        assert len(links) == 4
        assert all((board_page.parent / unquote(link)).is_file() for link in links)


def test_a_board_has_the_trend_of_each_ranker(folders: tuple[Path, Path]) -> None:
    board = st.board(reversed(folders))
    frame = board.to_frame()
    assert sorted(set(frame["date"])) == ["2026-01-30", "2026-02-01"]
    assert {str(kind) for kind in frame[["value", "low", "high"]].dtypes} == {"float64"}
    text = board.to_html()
    assert text.count('class="spark"') >= 2
    old, new = (
        next(one for one in st.read_audit(folder).verdict.ranker_verdicts if one.ranker == "mine") for folder in folders
    )
    name = "query typos"
    if old.facet_cells[name].finding.name == new.facet_cells[name].finding.name:
        assert f"{old.facet_cells[name].value} to {new.facet_cells[name].value}" in text, "oldest first"


def test_hostile_names_stay_text(folders: tuple[Path, Path]) -> None:
    audit = st.read_audit(folders[0])
    cells = audit.verdict.ranker_verdicts[0].facet_cells
    rows = tuple(BoardRow(bad, bad, bad, "s", bad, "under test", bad, cells, Path(bad[:40])) for bad in HOSTILE)
    text = Board(rows).to_html(Path())
    assert "<script>alert" not in text
    assert "<img" not in text
    assert text.count("<script>") == 1


def test_a_board_of_nothing_is_refused() -> None:
    with pytest.raises(BadInput, match="a board needs at least one audit"):
        st.board([])


def test_lists_mark_what_moved() -> None:
    old, new = compare_lists(["a", "b", "c"], ["c", "b", "x"], ("before", "after"), {"a": "An <i>apple</i>"})
    assert [(row.docno, row.mark) for row in old.rows] == [("a", "not in the other list"), ("b", ""), ("c", "")]
    assert [(row.docno, row.mark) for row in new.rows] == [("c", "2 up"), ("b", ""), ("x", "new")]
    assert old.rows[0].text == "An <i>apple</i>"


def test_an_audit_of_an_earlier_version_is_read(folders: tuple[Path, Path], tmp_path: Path) -> None:
    """Without lists of documents and conclusions, which earlier versions did not write."""
    document = json.loads((folders[0] / "results.json").read_text(encoding="utf-8"))
    del document["first_documents"]
    for result in document["results"]:
        del result["conclusions"]
        for example in result["examples"]:
            del example["list_before"], example["list_after"]
    (tmp_path / "results.json").write_text(json.dumps(document), encoding="utf-8")
    audit = st.read_audit(tmp_path, allow_edited=True)
    assert str(audit.verdict) == str(st.read_audit(folders[0]).verdict)
    assert "date" not in audit.facts
    assert "kept no lists" in st.compare(audit, folders[1]).to_html()
    assert audit.to_html().startswith("<!DOCTYPE html>")


def test_the_date_of_an_audit_is_in_its_manifest_and_not_in_its_results(folders: tuple[Path, Path]) -> None:
    audit: Audit = st.read_audit(folders[0])
    assert date.fromisoformat(audit.facts["date"]) == date(2026, 1, 30)
    assert "2026-01-30" not in (folders[0] / "results.json").read_text(encoding="utf-8")
    (folders[0] / "manifest.json").read_text(encoding="utf-8").index('"date": "2026-01-30"')
