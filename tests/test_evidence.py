"""One cheap line of each page of docs/evidence is computed again: a page that the code no longer makes is stale."""

from __future__ import annotations

from importlib import import_module

import pytest
from evidence import DATA, ROOT, page_of

pytestmark = pytest.mark.slow

SCRIPTS = sorted(path.stem for path in (ROOT / "evidence").glob("[a-z]*.py"))


def cells(line: str) -> list[str]:
    """A line without its layout: how wide a table's columns are says nothing."""
    return [cell.strip() for cell in line.split("|")]


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
