"""One cheap line of each page of docs/evidence is computed again: a page that the code no longer makes is stale."""

from __future__ import annotations

import re
import subprocess
from importlib import import_module

import pytest
from evidence import DATA, ROOT, page_of

COMMIT_LINE = re.compile(r"Written at commit `([0-9a-f]{7,40})`; names of tasks and options may have changed since.")
"""The third line of each page; a page's script need not write it."""
SCRIPTS = sorted(path.stem for path in (ROOT / "evidence").glob("[a-z]*.py"))


def cells(line: str) -> list[str]:
    """A line without its layout: the width of columns has no meaning."""
    return [cell.strip() for cell in line.split("|")]


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason=f"real data is not at {DATA}")
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_line_of_the_page_comes_out_the_same(script):
    page = page_of(script)
    if not page.is_file():
        pytest.skip(f"the page does not exist yet: make evidence PAGE={page.stem}")
    row = import_module(f"evidence.{script}").cheap_row()
    assert len(row.split()) > 3, "a line that says nothing would be found anywhere"
    assert cells(row) in map(cells, page.read_text(encoding="utf-8").splitlines())


def test_every_page_has_a_script():
    pages = {page.stem for page in (ROOT / "docs" / "evidence").glob("*.md")}
    assert pages <= {page_of(script).stem for script in SCRIPTS}


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "evidence").glob("*.md")), ids=lambda page: page.stem)
def test_every_page_names_the_commit_that_wrote_it(page):
    named = COMMIT_LINE.fullmatch(page.read_text(encoding="utf-8").splitlines()[2])
    assert named, "the third line must name the commit"
    git = ("git", "-C", str(ROOT))
    shallow = subprocess.run([*git, "rev-parse", "--is-shallow-repository"], capture_output=True, text=True)
    if shallow.stdout.strip() == "false":  # with the whole history at hand
        assert subprocess.run([*git, "cat-file", "-e", f"{named[1]}^{{commit}}"]).returncode == 0
