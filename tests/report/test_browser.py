"""The page in a real browser: it renders, it works, it sends no request, and texts of attackers stay text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import shaketable as st
from shaketable.api.audit import Audit
from shaketable.core.results import Example, Finding
from shaketable.report.files import write_tables
from shaketable.report.first_documents import FirstDocuments
from shaketable.report.gates import GateResult
from shaketable.report.page import MAX_PAGE_BYTES, render_page, write_page
from shaketable.report.verdict import FIRST_STAGE, UNDER_TEST, FacetCell, RankerVerdict, Verdict, WorstFinding

from .browsing import CHROMIUM, DESKTOP, FLAGS, PHONE, each_scheme, find_low_contrast, opened, visit_sections
from .samples import HOSTILE, hostile, ordinary

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")]

MORE_HOSTILE = (
    "</script><script>window.hacked = 1</script>",
    "</template><img src=x onerror='window.hacked = 1'>",
    '=HYPERLINK("http://evil.example","x")',
    r"\input{/etc/passwd} $x_1$ 100% & ~",
    "${window.hacked = 1} {{constructor.constructor('window.hacked = 1')()}}",
    "| a | `b` * _c_ <d> [e](f) \\",
)
MAX_SECTION_PX = 6_000
RANKERS = {
    "bm25": "bm25",
    "ql": "ql",
    "ql_jm": "ql_jm",
    "rm3": "rm3",
    "flat": "bm25(k1=0.3)",
    "short": "bm25(b=1.0)",
    "loose": "ql(mu=50)",
    "wide": "rm3(base=ql)",
}
TASKS = (
    *("effectiveness", "variance", "risk", "agreement", "query_typos(draws=1)", "competition"),
    *(
        "query_variation(transforms=('neighb_char_swap', 'remove_stop_words', 'random_order_swap'))",
        "probes(probes=('shuffle-words', 'length-given-tf', 'fluency'))",
    ),
    *("fusion(transforms=('neighb_char_swap', 'remove_stop_words'))", "document-attack(queries=2, targets=1)"),
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    """Eight rankers, every task that applies to them, quick settings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHAKETABLE_HOME", str(tmp_path_factory.mktemp("home")))
        return st.audit("sample", RANKERS, TASKS, max_queries=20)


@pytest.fixture(scope="module")
def full(audit: Audit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    parts = (audit.title, audit.facts, audit.results, audit.provenance, answer_of(audit), audit.first_documents)
    path.write_text(render_page(*parts), encoding="utf-8")
    return path


def answer_of(audit: Audit) -> Verdict:
    """Return a verdict: one ranker fails on typos, one warns, and the rest passes."""
    rows = audit["query-typos"].tables["per query"]
    words = {"bm25": "inconclusive", "ql": "fail", "rm3": "warn"}
    verdicts = []
    for ranker in ("ql", "ql_jm", "rm3", "flat", "short", "loose", "wide", "bm25"):
        found = next(f for f in audit["query-typos"].findings if f.ranker == ranker and f.name == "drop(1-char)")
        own = rows[(rows["ranker"] == ranker) & (rows["attack"] == "1-char")]
        values = dict(zip(map(str, own["query"]), map(float, own["change"]), strict=True))
        said = (f"{found.value:.1f} %", "change of nDCG@10 by a typing error", f"at best {found.high:.1f} %")
        mark = FacetCell("query typos", words.get(ranker, "pass"), *said, replace(found, values=values))
        role = FIRST_STAGE if ranker == "bm25" else UNDER_TEST
        verdicts.append(RankerVerdict(ranker, role, f"{ranker} was measured.", {"query typos": mark}))
    example = audit["query-typos"].examples[0]
    blow = WorstFinding(
        "One letter costs much.", verdicts[0].facet_cells["query typos"], "ql", example, "Correct the spelling."
    )
    gate_results = (
        GateResult("no facet fails", "ql", "fail", "ql fails in query typos."),
        GateResult("nDCG@10>=0.3", "rm3", "pass", "It is 0.51."),
        GateResult("nDCG@10.low>=0.4", "rm3", "warn", "It is 0.41."),
    )
    facets = ("query typos", "attack")
    return Verdict(
        "ql fails.", "failed", facets, tuple(verdicts), (blow,), gate_results, ("Not tested: risk.",), ("A sample.",)
    )


def hostile_answer() -> Verdict:
    """Hostile texts wherever an answer has texts."""
    bad = iter((*HOSTILE, *MORE_HOSTILE) * 4)
    finding = Finding(next(bad), next(bad), 0.5, 0.4, 0.6, 5, values=dict.fromkeys(MORE_HOSTILE, 0.5))
    mark = FacetCell(next(bad), "fail", next(bad), next(bad), next(bad), finding, next(bad), next(bad))
    example = Example(next(bad), next(bad), next(bad), next(bad), next(bad), 0.5, 0.2, next(bad), 1, 9)
    blow = WorstFinding(next(bad), mark, next(bad), example, next(bad))
    gate_results = (
        GateResult(next(bad), next(bad), "fail", next(bad)),
        GateResult(next(bad), next(bad), "pass", next(bad)),
    )
    standing = RankerVerdict(next(bad), UNDER_TEST, next(bad), {mark.facet: mark})
    return Verdict(next(bad), "failed", (mark.facet,), (standing,), (blow,), gate_results, (next(bad),), HOSTILE)


def texts(page: Any, selector: str) -> list[str]:
    return [text.strip() for text in page.locator(selector).all_text_contents()]


def show_element(page: Any, selector: str) -> Any:
    """Show the section of the first matching element, open its fold, and return the element."""
    found = page.locator(selector).first
    found.evaluate("node => { location.hash = node.closest('main > section').id; }")
    page.wait_for_function("node => !node.closest('main > section').hidden", arg=found.element_handle())
    found.evaluate("node => { const fold = node.closest('details'); if (fold) fold.open = true; }")
    return found


def table(page: Any, name: str) -> Any:
    """Show and return the table of a CSV file."""
    return show_element(page, f'table[data-csv="tables/{name}"]')


def column(found: Any, heading: str) -> list[str]:
    at = [text.strip() for text in found.locator("thead th").all_text_contents()].index(heading) + 1
    return [text.strip() for text in found.locator(f"tbody tr > :nth-child({at})").all_text_contents()]


def test_a_full_audit_of_eight_rankers_is_small_and_opens_quickly(browser: Any, full: Path) -> None:
    assert full.stat().st_size < MAX_PAGE_BYTES
    with opened(browser, full) as page:
        assert page.locator("article[id^=s]").count() == len(TASKS)
        assert page.locator("figure svg").count() > 20
        took = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
        assert took < 5_000  # well under a second on a machine that has nothing else to do


def test_the_papers_figures_and_tables_are_there_by_name(browser: Any, full: Path) -> None:
    """Those of papers 003 and of shifts, which train rankers, are looked for in the tests of their tasks."""
    wanted = {
        *(f"Wu et al. 2022, Fig. {number}" for number in (2, 3, 6, 7)),
        *(f"MacAvaney et al. 2022, Table {number}" for number in (1, 2, 3)),
        *("Dinçer et al. 2016, Fig. 1", "Dinçer et al. 2016, Figs. 2 and 3"),
        *(f"Dinçer et al. 2016, Table {number}" for number in (6, 7)),
        *(f"Penha et al. 2022, Fig. {number}" for number in (1, 2, 3, 4)),
        *(f"Penha et al. 2022, Table {number}" for number in (5, 6, 7)),
    }
    with opened(browser, full) as page:
        assert set(texts(page, ".source")) == wanted


def test_the_first_screen_is_the_answer(browser: Any, full: Path, audit: Audit) -> None:
    with opened(browser, full, viewport={"width": 1200, "height": 900}) as page:
        assert page.locator(".band.failed .outcome").inner_text() == "Failed"
        assert page.locator(".rules summary").inner_text() == "3 gates: 1 fail, 1 warn, 1 pass"
        assert texts(page, ".band > .gates b") == ["warn"], "the scorecard shows the default gate"
        assert page.locator(".headline").inner_text() == "ql fails."
        marks = page.locator(".scorecard .cell b")
        assert marks.all_text_contents() == ["fail", "pass", "warn", *["pass"] * 4, "inconclusive"]
        assert page.locator(".scorecard tbody tr").first.bounding_box()["y"] < 900
        assert page.locator(".case del").count() == page.locator(".case ins").count() == 1
        assert re.search(r"The document \S+ (fell|stayed|stood)", page.locator(".case .moved").text_content())
        assert "Not tested: risk." in texts(page, ".untested li")
        version, day = audit.provenance["versions"]["shaketable"], audit.facts["date"]
        assert page.locator(".imprint").inner_text() == f"sample · 20 queries · {day} · Shaketable {version}"
        shown_lists = page.locator(".case .list ol")
        assert [one.locator("li").count() for one in shown_lists.all()] == [10, 10]


def test_tables_are_sorted_by_any_heading(browser: Any, full: Path, audit: Audit) -> None:
    frame = audit["query-typos"].tables["per query"]
    with opened(browser, full) as page:
        found = table(page, "query-typos/per-query.csv")
        head = found.get_by_role("button", name="change", exact=True)
        head.click()
        found.locator("th[aria-sort=ascending]").wait_for()
        shown = [float(text) for text in column(found, "change")]
        assert len(shown) == 100
        assert shown == [round(value, 4) for value in sorted(frame["change"])[:100]]
        head.click()
        found.locator("th[aria-sort=descending]").wait_for()
        assert float(column(found, "change")[0]) == round(frame["change"].max(), 4)


def test_tables_are_filtered_by_words(browser: Any, full: Path, audit: Audit) -> None:
    frame = audit["query-typos"].tables["per query"]
    wanted = [
        row
        for row in frame.astype(str).itertuples(index=False)
        if all(any(w in t for t in row) for w in ("loose", "word"))
    ]
    with opened(browser, full) as page:
        found = table(page, "query-typos/per-query.csv")
        box = found.locator("xpath=../preceding-sibling::div[1]").get_by_role("searchbox")
        box.fill("loose word")
        expect(found.locator("tbody tr")).to_have_count(len(wanted))
        assert column(found, "query") == [row.query for row in wanted]
        box.fill("no such words anywhere")
        expect(found.locator("tbody tr")).to_have_count(0)
        box.fill("")
        expect(found.locator("tbody tr")).to_have_count(100)


def test_a_mark_leads_to_its_queries_and_a_query_to_its_texts(browser: Any, full: Path, audit: Audit) -> None:
    frame = audit["query-typos"].tables["per query"]
    mine = frame[(frame["ranker"] == "ql") & (frame["attack"] == "1-char")].sort_values("change", kind="stable")
    worst = str(mine["query"].iloc[0])
    asked = audit.provenance["queries"][worst]
    with opened(browser, full) as page:
        page.locator(".scorecard .fail a").click()
        drill = page.locator("#drill[open]")
        drill.locator(".found tbody tr").first.wait_for()
        assert column(drill.locator(".found table"), "query")[0] == worst
        assert column(drill.locator(".found table"), "as asked")[0] == asked
        assert len(column(drill.locator(".found table"), "query")) == len(mine)
        drill.locator(".found tbody tr button").first.click()
        cases = drill.locator(".cases-of table").first
        cases.wait_for()
        assert set(mine["text"][mine["query"] == worst]) <= set(column(cases, "text"))
        drill.get_by_role("button", name="Close").click()
        assert page.locator("#drill[open]").count() == 0


def test_cells_of_heat_maps_and_rows_of_tables_lead_to_their_queries(browser: Any, full: Path, audit: Audit) -> None:
    frame = audit["query-typos"].tables["per query"]
    with opened(browser, full) as page:
        cell = show_element(page, 'figure[data-detail] path[data-at=\'["ql", "word"]\']')
        cell.click()
        drill = page.locator("#drill[open]")
        drill.locator(".found tbody tr").first.wait_for()
        assert drill.locator("h2").inner_text() == "ql, word"
        assert len(column(drill.locator(".found table"), "query")) == len(
            frame[(frame["ranker"] == "ql") & (frame["attack"] == "word")]
        )
        changes = [float(text) for text in column(drill.locator(".found table"), "change")]
        assert changes == sorted(changes)
        page.keyboard.press("Escape")
        found = table(page, "query-typos/query-attack.csv")
        found.locator("tbody tr").first.get_by_role("button").click()
        drill.locator(".found tbody tr").first.wait_for()
        assert drill.locator("h2").inner_text() == "1-char, bm25"


def download_table(page: Any, found: Any, form: str) -> tuple[str, str]:
    with page.expect_download() as waiting:
        found.locator("xpath=../preceding-sibling::div[1]").get_by_role("button", name=form, exact=True).click()
    return waiting.value.suggested_filename, Path(waiting.value.path()).read_text(encoding="utf-8")


@pytest.mark.parametrize(("form", "written"), [("Markdown", "markdown"), ("LaTeX", "latex")])
def test_a_download_is_the_file_that_an_audit_writes(
    browser: Any, full: Path, audit: Audit, tmp_path: Path, form: str, written: str
) -> None:
    write_tables(tmp_path, audit.results, written)
    with opened(browser, full) as page:
        for name in ("query-typos/per-query", "effectiveness/effectiveness", "probes/details"):
            file, text = download_table(page, table(page, f"{name}.csv"), form)
            written_to = tmp_path / f"{name}{Path(file).suffix}"
            assert file == f"{name.replace('/', '-')}{Path(file).suffix}"
            assert text == written_to.read_text(encoding="utf-8")


def test_a_csv_has_every_row_and_no_formula(browser: Any, tmp_path: Path) -> None:
    result = hostile()
    frame = result.tables["t"].assign(more=[*MORE_HOSTILE, *HOSTILE][: len(HOSTILE)])
    result = replace(result, tables={**result.tables, "t": frame})
    write_page(tmp_path / "page.html", "An audit", {}, [result], {})
    write_tables(tmp_path, [result])
    with opened(browser, tmp_path / "page.html") as page:
        found = show_element(page, "table[data-table='0']")
        _, text = download_table(page, found, "CSV")
        theirs = next(tmp_path.rglob("t.csv")).read_text(encoding="utf-8")
        import csv

        ours, written = (list(csv.reader(some.splitlines(keepends=True))) for some in (text, theirs))
        words = [at for at, name in enumerate(written[0]) if not re.fullmatch(r"value|second|.*onerror.*", name)]
        flat = [[" ".join(row[at].split()) for at in words] for row in written]
        assert [[row[at] for at in words] for row in ours] == flat
        assert not [
            value for row in ours for at, value in enumerate(row) if at in words and value.startswith(("=", "+", "@"))
        ]


def test_hostile_texts_stay_inert(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    queries = {text: text for text in MORE_HOSTILE}
    result = hostile()
    per_query = result.tables["t"].assign(query=list(HOSTILE), ranker=MORE_HOSTILE[0])
    summary = per_query[["ranker", "value"]]
    result = replace(result, tables={**result.tables, MORE_HOSTILE[1]: per_query, MORE_HOSTILE[0]: summary})
    facts = dict(zip(HOSTILE, HOSTILE[::-1], strict=True))
    provenance = {"queries": queries, HOSTILE[0]: HOSTILE}
    lists = {ranker: dict.fromkeys(MORE_HOSTILE, HOSTILE) for ranker in (MORE_HOSTILE[0], MORE_HOSTILE[1])}
    documents = FirstDocuments(lists, dict.fromkeys(HOSTILE, MORE_HOSTILE[1]))
    text = render_page(HOSTILE[4], facts, [result], provenance, hostile_answer(), documents)
    path.write_text(text, encoding="utf-8")
    with opened(browser, path) as page:
        show_element(page, "article[id=s1]")
        for fold in page.locator("details").all():
            fold.evaluate("fold => fold.open = true")
        for head in page.locator("article th button").all()[:20]:
            head.click()
        for box in page.locator("article input[type=search]").all():
            box.fill("<script>")
            box.fill("")
        for mark in page.locator("figure path:has(title)").all()[:5]:
            mark.dispatch_event("pointerover")
        lead = page.locator("article td button.open").first
        lead.click()
        page.locator("#drill[open] .found tbody tr").first.wait_for()
        page.keyboard.press("Escape")
        show_element(page, ".scorecard .cell a").click()
        page.locator("#drill[open] .found tbody tr").first.wait_for()
        assert MORE_HOSTILE[0] in texts(page, "#drill td")
        page.locator("#drill[open] td button").first.click()
        assert page.locator("#drill .list li").count() == 2 * len(HOSTILE)
        assert HOSTILE[0] in texts(page, "#drill .docno")
        assert page.evaluate("window.hacked") is None
        assert page.evaluate("document.scripts.length") == 1
        assert page.evaluate("document.querySelectorAll('iframe, img, object, embed, form, link').length") == 0
        assert page.evaluate("7 * 7") == 49
        assert "{{ 7 * 7 }}" in page.content()


def test_the_policy_lets_no_other_script_run(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_page(path, "An audit", {}, [ordinary()], {})
    forged = path.read_text(encoding="utf-8").replace("</main>", "<script>window.hacked = 1</script></main>")
    path.write_text(forged, encoding="utf-8")
    window = browser.new_context()
    page = window.new_page()
    page.goto(path.as_uri())
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.documentElement.classList.contains('live')")
    window.close()


def test_hints_are_shown_at_once(browser: Any, full: Path) -> None:
    with opened(browser, full) as page:
        bar = show_element(page, "#s1 figure path:has(title)")
        said = bar.locator("title").text_content()
        bar.hover()
        assert page.locator(".tip").inner_text() == said.replace("; ", "\n")
        show_element(page, ".notes .term").hover()
        assert len(page.locator(".tip").inner_text()) > 40


def test_terms_lead_to_the_glossary(browser: Any, full: Path) -> None:
    with opened(browser, full) as page:
        links = page.locator(".term").evaluate_all("links => links.map(link => link.getAttribute('href').slice(1))")
        assert len(set(links)) > 5
        assert page.evaluate("ids => ids.every(id => document.getElementById(id))", links)


@pytest.mark.parametrize("device", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_every_section_can_be_read_on_any_screen(browser: Any, full: Path, device: dict[str, Any]) -> None:
    with opened(browser, full, **device) as page:
        for scheme in each_scheme(page):
            ink, paper = page.evaluate(
                "['color', 'backgroundColor'].map("
                "name => getComputedStyle(document.body)[name].match(/\\d+/g).map(Number))"
            )
            assert (sum(ink) > sum(paper)) == (scheme == "dark")
        for address in visit_sections(page):
            heights = page.evaluate("document.querySelector('main').offsetHeight")
            assert heights <= MAX_SECTION_PX or device is PHONE, address
            page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
            assert find_low_contrast(page) == [], address
            assert page.evaluate("document.documentElement.scrollWidth") <= device["viewport"]["width"], address
            page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = false)")


def test_any_section_is_one_click_away(browser: Any, full: Path) -> None:
    with opened(browser, full, **DESKTOP) as page:
        assert set(page.locator("main > section[id]").evaluate_all("all => all.map(one => '#' + one.id)")) == set(
            page.locator(".contents a").evaluate_all("all => all.map(one => one.hash)")
        )
        assert page.locator("main > section:not([hidden])").count() == 1
        page.get_by_role("link", name="glossary").click()
        page.locator("#glossary").wait_for()  # the address changes before the section is shown
        page.locator("#overview").wait_for(state="hidden")
        page.go_back()
        page.locator("#overview").wait_for()


def test_a_query_has_the_lists_of_two_rankers_side_by_side(browser: Any, full: Path, audit: Audit) -> None:
    qid, text = next(iter(audit.queries.items()))
    with opened(browser, full) as page:
        page.get_by_role("link", name="queries").click()
        page.get_by_role("button", name=qid, exact=True).click()
        drill = page.locator("#drill[open]")
        drill.locator(".list ol").first.wait_for()
        assert drill.locator(".status").inner_text() == text
        assert texts(page, "#drill .list h4") == ["bm25", "ql"]
        for side, ranker in enumerate(("bm25", "ql")):
            wanted = list(audit.first_documents.docnos[ranker][qid])
            assert texts(page, f"#drill .list:nth-child({side + 1}) .docno") == wanted
        drill.get_by_label("Ranker of the right list").select_option("wide")
        assert texts(page, "#drill .list:nth-child(2) .docno") == list(audit.first_documents.docnos["wide"][qid])


def test_stars_stay_in_sight_when_a_wide_table_is_cut_off(browser: Any, full: Path) -> None:
    with opened(browser, full, viewport={"width": 700, "height": 844}) as page:
        found = table(page, "risk/against-bm25.csv")
        star, box = found.locator("tbody td.star").first.bounding_box(), found.locator("xpath=..").bounding_box()
        assert found.evaluate("table => table.offsetWidth") > box["width"]
        assert star["x"] + star["width"] <= box["x"] + box["width"] + 1


def test_a_printed_page_has_folded_tables_or_names_their_files(browser: Any, full: Path, tmp_path: Path) -> None:
    with opened(browser, full) as page:
        page.emulate_media(media="print")
        assert not page.locator(".tools").first.is_visible()
        assert not page.locator("nav").is_visible()
        assert page.locator(".band summary").is_visible()
        fold = page.locator("article details.fold").first
        assert fold.locator(".unprinted").is_visible()
        assert not fold.locator("table").is_visible()
        assert page.pdf(path=tmp_path / "page.pdf")
        assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


def test_all_can_be_read_without_the_script(browser: Any, full: Path) -> None:
    with opened(browser, full, java_script_enabled=False) as page:
        assert page.locator(".scorecard .cell a").first.get_attribute("href").startswith("#s")
        assert page.locator("#s1 tbody tr").count() > 10
        assert page.locator("#s1").is_visible()
        assert page.locator(".tools").count() == 0
        assert page.locator("#glossary dt").count() > 30


def test_without_an_answer_the_page_is_whole(browser: Any, tmp_path: Path) -> None:
    write_page(tmp_path / "page.html", "Runs", {"runs": "3"}, [ordinary()], {"seed": 1})
    with opened(browser, tmp_path / "page.html") as page:
        assert page.locator("h1").inner_text() == "Runs"
        assert page.locator(".scorecard").count() == 0
        assert page.locator("figure svg").count() == 2
