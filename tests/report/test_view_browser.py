"""The live page in a real browser: it ranks as you type, asks its own server only, and texts of attackers stay text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import shaketable as st
from shaketable.api.viewing.server import ViewServer
from shaketable.core.documents import Collection, Doc, Query
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.probes.user_pairs import read_expectations

from .browsing import CHROMIUM, DESKTOP, FLAGS, PHONE, find_low_contrast
from .samples import HOSTILE

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")]

HOSTILE_TEXTS = [
    text.encode("utf-8", "replace").decode()
    for text in (*HOSTILE, "</script><script>window.hacked = 1</script>", "<img src=x onerror='window.hacked = 1'>")
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield found
        found.close()


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pairs") / "mine.jsonl"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, pairs: Path) -> Iterator[ViewServer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHAKETABLE_HOME", str(tmp_path_factory.mktemp("home")))
        with st.view("sample", ["bm25", "ql", "bm25(b=1.0)"], write_pairs=pairs) as page:
            yield page


@contextmanager
def visit(browser: Any, server: ViewServer, **context: Any) -> Iterator[Any]:
    """The page in a new window; an error, a dialog, or a request to another server fails the test."""
    window = browser.new_context(**context)
    wrong: list[str] = []
    own = re.escape(server.url)
    window.route(re.compile(f"^(?!{own})"), lambda route: (wrong.append(route.request.url), route.abort()))
    page = window.new_page()
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    page.goto(server.url)
    page.wait_for_selector(".ranked li")
    try:
        yield page
        assert not wrong
        assert page.evaluate("() => window.hacked") is None
    finally:
        window.close()


def docnos(page: Any, ranker: int = 0) -> list[str]:
    found: list[str] = page.locator(".ranked").nth(ranker).locator(".docno").all_text_contents()
    return found


def test_a_typed_query_changes_the_lists_and_an_edit_changes_the_rank(browser, server):
    with visit(browser, server, **DESKTOP) as page:
        before = docnos(page)
        page.get_by_label("Query", exact=True).fill("otter sightings")
        expect(page.locator(".ranked").first.locator(".docno").first).not_to_have_text(before[0])
        assert docnos(page) != before
        page.locator(".ranked").first.locator("button").nth(4).click()
        ranks = page.locator("#moves .ranks").first
        expect(ranks).to_have_text("5")
        body = page.get_by_label("Text", exact=True)
        text = body.input_value()
        body.fill(f"otter sightings otter sightings {text}")
        expect(ranks).to_have_text("5 → 1")
        expect(page.locator("#after ins").first).to_contain_text("otter")
        expect(page.locator(".ranked").first.locator("button").first).to_have_attribute("aria-pressed", "true")
        page.get_by_role("button", name="Restore the original").click()
        expect(ranks).to_have_text("5")
        assert body.input_value() == text


def test_transforms_recipes_and_saving(browser, server, pairs):
    with visit(browser, server, **DESKTOP) as page:
        query, before = page.get_by_label("Query", exact=True).input_value(), docnos(page)
        page.locator("#change-query").click()
        expect(page.locator("#compared ins")).to_have_count(1)
        assert page.get_by_label("Query", exact=True).input_value() != query
        page.get_by_role("button", name="Stop comparing").click()
        page.get_by_label("Query", exact=True).fill(query)
        expect(page.locator(".ranked").first.locator(".docno")).to_have_text(before)
        page.locator(".ranked").first.locator("button").nth(7).click()
        page.get_by_label("Recipe").select_option("keyword_stuffing")
        page.get_by_role("button", name="Attack").click()
        expect(page.locator("#outcome")).to_contain_text("from rank 8 to 1 of bm25")
        expect(page.locator("#moves .ranks").first).to_have_text("8 → 1")
        page.get_by_role("button", name="Save the pair").click()
        expect(page.locator("#saved pre")).to_contain_text("shaketable probe --pairs")
    (kept,) = read_expectations(pairs)
    assert kept.contrast.query == query
    assert kept.contrast.second.body != kept.contrast.first.body


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_every_text_can_be_read_and_nothing_is_wider_than_the_window(browser, server, size):
    with visit(browser, server, **size) as page:
        page.locator("#change-query").click()
        page.locator(".ranked").first.locator("button").nth(2).click()
        page.get_by_role("button", name="Apply to the text").click()
        expect(page.locator("#difference")).to_be_visible()
        page.locator("summary").click()
        assert find_low_contrast(page) == []
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        unlabelled = "() => [...document.querySelectorAll('input, textarea, select')].filter((x) => !x.labels.length)"
        assert page.evaluate(f"{unlabelled}.map((x) => x.id)") == []


def test_the_keyboard_is_enough(browser, server):
    with visit(browser, server, **DESKTOP) as page:
        page.get_by_role("button", name="Show all").first.press("Enter")
        expect(page.get_by_role("button", name="Show the first 10")).to_be_focused()
        assert len(docnos(page)) > 10
        page.keyboard.press("Enter")
        assert len(docnos(page)) == 10
        page.get_by_label("Query", exact=True).focus()
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("() => Boolean(document.activeElement.dataset.docno)"):
                break
        docno = page.evaluate("() => document.activeElement.dataset.docno")
        page.keyboard.press("Enter")
        expect(page.locator("#document-title")).to_have_text(f"Document {docno}")
        expect(page.locator("#document-title")).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        expect(page.get_by_label("Title")).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.type("owl ")
        expect(page.locator("#difference")).to_be_visible()


def test_hostile_texts_stay_texts(browser, tmp_path):
    docs = {text: Doc(f"owl {text}", text) for text in HOSTILE_TEXTS}
    queries = {f"q{i}": Query(f"owl {text}") for i, text in enumerate(HOSTILE_TEXTS)}
    collection = Collection(HOSTILE_TEXTS[0], MemoryCorpus(docs), queries)
    named = {HOSTILE_TEXTS[1]: "bm25"}
    with (
        st.view(collection, named, write_pairs=tmp_path / "p.jsonl") as server,
        visit(browser, server, **DESKTOP) as page,
    ):
        for number, text in enumerate(HOSTILE_TEXTS):
            page.get_by_label("Queries of the collection").select_option(str(number))
            page.locator(".ranked button").first.click()
            expect(page.locator("#document-title")).to_contain_text("Document")
            page.get_by_label("Text", exact=True).fill(f"owl {text} {text}")
        page.wait_for_selector("#difference:not([hidden])")
        assert page.locator("main script, main iframe, main img").count() == 0


def test_errors_are_shown_on_the_page(browser, tmp_path):
    collection = Collection("trees", MemoryCorpus({"d1": Doc("oak")}), {"q1": Query("oak")})
    server = st.view(collection, "ql", write_pairs=tmp_path / "p.jsonl")
    window = browser.new_context()
    page = window.new_page()
    page.goto(server.url)
    page.wait_for_selector(".ranked li")
    page.locator("#query-change").select_option("random_order_swap")
    page.locator("#change-query").click()
    expect(page.get_by_role("alert")).to_have_text("the transform random_order_swap does not apply to this text")
    server.close()
    page.get_by_role("button", name="Rank").click()
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer")
    window.close()
