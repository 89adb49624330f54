"""What the scripts here share: where the data are, and how a page is written.

Each script makes the page of its name: `make evidence PAGE=query-variation` runs `python -m evidence.query_variation`,
which writes docs/evidence/query-variation.md. Its `cheap_row` computes one line of that page again, which
tests/test_evidence.py looks up.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from shaketable.core.results import Result
from shaketable.files.atomic import atomic_write

if TYPE_CHECKING:
    import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("SHAKETABLE_DATA") or ROOT.parent / "shared" / "data")
"""Public collections, which are not part of the project: beside it, or wherever $SHAKETABLE_DATA says."""


def page_of(script: str) -> Path:
    """The page of a script, by the script's file.

    >>> page_of("evidence/query_variation.py").name
    'query-variation.md'
    """
    return ROOT / "docs" / "evidence" / f"{Path(script).stem.replace('_', '-')}.md"


def line(cells: Iterable[object]) -> str:
    """A row of a table."""
    return "| " + " | ".join(map(str, cells)) + " |"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown; the first column is text, the others are for numbers."""
    return "\n".join([line(head), line(["---", *["---:"] * (len(head) - 1)]), *map(line, rows)])


def prose(text: str) -> str:
    """A paragraph, broken at 120 characters."""
    return fill(" ".join(text.split()), 120, break_long_words=False, break_on_hyphens=False)


def plain_drops(result: Result) -> pd.DataFrame:
    """The table of a query attack with plain 95 % intervals: those in the table are corrected for all its rows."""
    frame = result.tables["query attack"].copy()
    known = {(one.ranker, one.name): one for one in result.findings}
    found = [known[row["ranker"], f"drop({row['attack']})"] for row in frame.to_dict("records")]
    frame["drop % low"], frame["drop % high"] = [one.low for one in found], [one.high for one in found]
    return frame


def need_data(*parts: str) -> None:
    """End, without failing, where the data are not on this machine: a page stays as it was."""
    if not (place := DATA.joinpath(*parts)).exists():
        print(f"skipped: there is no {place}")
        sys.exit(0)


def find_commit() -> str:
    """Return the short name of the current commit."""
    return subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True).strip()


def write_page(script: str, title: str, parts: Iterable[str]) -> None:
    """Write a script's page: its title, the commit, the command that made it, and the parts, one paragraph each."""
    page = page_of(script)
    commit = f"Written at commit `{find_commit()}`; names of tasks and options may have changed since."
    made = f"Made by `make evidence PAGE={page.stem}`; nothing here was edited by hand."
    text = "\n\n".join([f"# {title}", commit, made, *(part.strip("\n") for part in parts)]) + "\n"
    with atomic_write(page) as out:
        out.write(text)
    print(text)


def write_section(script: str, heading: str, parts: Iterable[str]) -> None:
    """Write the last section of a script's page again, or add it: for a part that needs no hour."""
    page = page_of(script)
    before = page.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[0].rstrip("\n")
    text = "\n\n".join([before, f"## {heading}", *(part.strip("\n") for part in parts)]) + "\n"
    with atomic_write(page) as out:
        out.write(text)
    print(text.removeprefix(before))
