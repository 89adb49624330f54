"""Pages of docs/evidence: each is what its script makes of its stored rows, and rows that are quick to compute hold."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from functools import cache
from importlib import import_module

import pytest
from evidence import DATA, FOLDER, ROOT, Guard, Page, Stored, as_json, dump_rows, prose, summary, table

COMMIT_LINE = re.compile(r"Written at commit `([0-9a-f]{7,40})`; names of tasks and options may have changed since.")
SCRIPTS = sorted({path.stem for path in (ROOT / "evidence").glob("[a-z]*.py")} - {"summary"})
PAGES = sorted(set(FOLDER.glob("*.md")) - {summary.README})


@cache
def find_page(script: str) -> Page:
    """Return the page of a script."""
    page: Page = import_module(f"evidence.{script}").PAGE
    return page


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_page_is_what_its_script_makes_of_its_rows(script):
    page = find_page(script)
    assert page.path.read_text(encoding="utf-8") == page.render(), f"python -m evidence.{script} --render"


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory):
    """A home for all pages, because many of them read the same collections."""
    return tmp_path_factory.mktemp("home")


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason=f"real data is not at {DATA}")
@pytest.mark.parametrize("script", SCRIPTS)
def test_guarded_rows_come_out_the_same(script, shared_home, monkeypatch):
    monkeypatch.setenv("SHAKETABLE_HOME", str(shared_home))
    page = find_page(script)
    guards = [guard for guard in page.guards if not guard.slow]
    if not guards:
        pytest.skip("no row of this page can be computed again in a few seconds")
    rows = page.read().rows
    assert [said for guard in guards if (said := guard.find_difference(rows))] == []


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_page_says_which_rows_are_computed_again(script):
    page = find_page(script)
    said = " ".join(page.path.read_text(encoding="utf-8").split())
    assert all(guard.what in said for guard in page.guards)


def test_every_page_has_a_script_and_rows():
    pages = {path.stem for path in PAGES}
    assert pages == {find_page(script).name for script in SCRIPTS}
    assert pages == {path.stem for path in (FOLDER / "rows").glob("*.json")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_names_the_commit_that_wrote_it(page):
    named = COMMIT_LINE.fullmatch(page.read_text(encoding="utf-8").splitlines()[2])
    assert named, "the third line must name the commit"
    git = ("git", "-C", str(ROOT))
    shallow = subprocess.run([*git, "rev-parse", "--is-shallow-repository"], capture_output=True, text=True)
    if shallow.stdout.strip() == "false":  # with the whole history at hand
        assert subprocess.run([*git, "cat-file", "-e", f"{named[1]}^{{commit}}"]).returncode == 0


def test_the_summary_is_what_its_script_makes_of_claims_and_rows():
    assert summary.README.read_text(encoding="utf-8") == summary.render(), "python -m evidence.summary"


@pytest.fixture
def page(tmp_path, monkeypatch):
    """A page of one table, whose claim depends on its rows."""
    monkeypatch.setattr("evidence.FOLDER", tmp_path)
    monkeypatch.setattr("evidence.find_commit", lambda: "0123abc")

    def compose(rows):
        verdict = "holds" if float(rows["scores"][0][1]) > float(rows["scores"][1][1]) else "does not hold"
        return [prose("Two rankers."), table(("ranker", "value"), rows["scores"]), f"The first is better: {verdict}."]

    def measure():
        return {"queries": 3, "scores": (("a", "0.4"), ("b", "0.3"))}

    made = Page(
        "evidence/two_rankers.py", "Two", measure, compose, (Guard("scores", "the row of a", lambda: ["a", "0.4"]),)
    )
    (tmp_path / "rows").mkdir()
    made.store(made.measure())
    made.path.write_text(made.render())
    return made


def test_a_fresh_page_is_not_stale(page):
    assert list(page.check()) == []
    assert "The first is better: holds." in page.path.read_text()
    assert page.read() == Stored("0123abc", {"queries": 3, "scores": [["a", "0.4"], ["b", "0.3"]]})


def test_a_row_that_the_code_no_longer_computes_is_found(page):
    page.store({"queries": 3, "scores": [["a", "0.2"], ["b", "0.3"]]})
    said = list(page.check())
    assert any("the code computes ['a', '0.4']" in one for one in said)
    assert any("--render" in one for one in said), "its claim has changed too"


def test_a_claim_that_the_script_would_not_print_is_found(page):
    page.path.write_text(page.path.read_text().replace("better: holds", "better: does not hold"))
    assert list(page.check()) == ["two-rankers.md is not what its rows give: python -m evidence.two_rankers --render"]


def test_a_page_says_that_it_is_stale(page):
    page.rows_path.write_text(dump_rows(replace(page.read(), stale="the code has other synonyms now.")))
    page.path.write_text(page.render())
    assert "**Stale: the code has other synonyms now.**" in page.path.read_text()
    assert list(page.check()) == ["stale: the code has other synonyms now."]
    page.store(page.measure())
    assert "Stale" not in page.render(), "rows that are measured again are not stale"


def test_slow_guards_are_left_to_the_check(page):
    slow = replace(page, guards=(Guard("scores", "the row of a", lambda: ["a", "9"], slow=True),))
    slow.path.write_text(slow.render())
    assert list(slow.check(slow=False)) == []
    assert len(list(slow.check())) == 1


def test_a_guard_may_compute_a_whole_table_or_a_fact(page):
    rows = page.read().rows
    assert Guard("scores", "all", lambda: [("a", "0.4"), ("b", "0.3")]).find_difference(rows) == ""
    assert Guard("queries", "their number", lambda: 3).find_difference(rows) == ""
    assert Guard("queries", "their number", lambda: 4).find_difference(rows) != ""


def test_rows_are_stored_one_a_line():
    text = dump_rows(Stored("0123abc", {"scores": [["a", "ü|"], ["b", ""]], "none": []}))
    assert '   ["a", "ü|"],\n   ["b", ""]\n' in text
    assert as_json({"x": (1, (2,))}) == {"x": [1, [2]]}
