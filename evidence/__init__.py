"""Pages of docs/evidence: how a script measures, stores and prints one, and how a test finds a stale one.

A script has one `PAGE`. Its `measure` returns the rows of the page, which may take hours; they are stored in
docs/evidence/rows. Its `compose` turns stored rows into text at once, claims and verdicts included. Its guards compute
single rows again.

    python -m evidence.query_typos             measure, store the rows and write the page
    python -m evidence.query_typos --render    write the page again from the stored rows
    python -m evidence.query_typos --check     compare page and rows, and compute the rows of all guards again

If the code can no longer make the rows, write the reason under "stale" in their file: the page then shows it.

A row holds cells as they are printed. Claims read these cells, so that you can check a verdict on the page itself.
tests/test_evidence.py renders every page and runs the quick guards.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from time import perf_counter
from typing import TYPE_CHECKING, Any

from shaketable.core.results import Result
from shaketable.files.atomic import atomic_write

if TYPE_CHECKING:
    import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("SHAKETABLE_DATA") or ROOT.parent / "shared" / "data")
"""Public collections, which are not part of the project: beside it, or wherever $SHAKETABLE_DATA says."""
FOLDER = ROOT / "docs" / "evidence"
NUMBER = re.compile(r"[+-]?\d[\d,]*\.?\d*")

Rows = dict[str, Any]
"""Name of a table -> its rows, lists of cells; or name of a fact -> a number or text. JSON can hold all of it."""


@dataclass(frozen=True)
class Guard:
    """One row of a page that can be computed again.

    Parameters
    ----------
    table
        The table or fact in the rows of the page.
    what
        The row, as the page calls it.
    recompute
        Return the row, or the whole table or fact.
    slow
        It takes more than a few seconds: `--check` runs it, and the tests do not.
    """

    table: str
    what: str
    recompute: Callable[[], object]
    slow: bool = False

    def find_difference(self, rows: Rows) -> str:
        """Return what is wrong with the stored row, or an empty text."""
        stored, found = rows[self.table], as_json(self.recompute())
        matches = found == stored or (isinstance(stored, list) and found in stored)
        return "" if matches else f"{self.table}: the code computes {found}, which is not among the stored rows"


@dataclass(frozen=True)
class Stored:
    """Rows as they are stored: the commit that measured them, and why the code cannot make them any more, if so."""

    commit: str
    rows: Rows
    stale: str = ""


@dataclass(frozen=True)
class Page:
    """A page of docs/evidence.

    Parameters
    ----------
    script
        The file of the script, whose name is that of the page.
    title
        The heading.
    measure
        Return the rows. May take hours.
    compose
        Return the paragraphs and tables of the page from its rows, at once and without data.
    guards
        Rows that can be computed again.
    """

    script: str
    title: str
    measure: Callable[[], Rows]
    compose: Callable[[Rows], Iterable[str]]
    guards: tuple[Guard, ...]

    @property
    def name(self) -> str:
        """The name of the page, such as query-variation."""
        return Path(self.script).stem.replace("_", "-")

    @property
    def path(self) -> Path:
        """The page."""
        return FOLDER / f"{self.name}.md"

    @property
    def rows_path(self) -> Path:
        """The file of stored rows."""
        return FOLDER / "rows" / f"{self.name}.json"

    def read(self) -> Stored:
        """Return the stored rows."""
        return Stored(**json.loads(self.rows_path.read_text(encoding="utf-8")))

    def store(self, rows: Rows) -> None:
        """Write the rows, with the current commit."""
        with atomic_write(self.rows_path) as out:
            out.write(dump_rows(Stored(find_commit(), rows)))

    def render(self) -> str:
        """Return the text of the page from its stored rows."""
        stored = self.read()
        parts = [part.strip("\n") for part in self.compose(stored.rows)]
        return "\n\n".join([f"# {self.title}", *self.describe(stored), *parts]) + "\n"

    def describe(self, stored: Stored) -> list[str]:
        """Return where the numbers come from, and which of them are computed again."""
        tested, checked = ([g for g in self.guards if g.slow == slow] for slow in (False, True))
        said = f"""Made by `make evidence PAGE={self.name}` from [its rows](rows/{self.name}.json); nothing here was
        edited by hand. The tests make this page again from the rows"""
        said += f", and compute again: {'; '.join(g.what for g in tested)}." if tested else "."
        if checked:
            module = Path(self.script).stem
            said += f" `python -m evidence.{module} --check` also computes: {'; '.join(g.what for g in checked)}."
        written = f"Written at commit `{stored.commit}`; names of tasks and options may have changed since."
        return [written, prose(said), *([prose(f"**Stale: {stored.stale}**")] if stored.stale else ())]

    def check(self, slow: bool = True) -> Iterator[str]:
        """Yield what is stale: the page, or rows that the code no longer computes."""
        if self.path.read_text(encoding="utf-8") != self.render():
            yield f"{self.path.name} is not what its rows give: python -m evidence.{Path(self.script).stem} --render"
        stored = self.read()
        if stored.stale:
            yield f"stale: {stored.stale}"
        for guard in self.guards:
            if slow or not guard.slow:
                started = perf_counter()
                if said := guard.find_difference(stored.rows):
                    yield said
                print(f"{guard.what}: {perf_counter() - started:.1f} s", flush=True)

    def main(self) -> None:
        """Measure and write the page, or do what the command line asks for."""
        parser = argparse.ArgumentParser(description=self.title)
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--render", action="store_true", help="write the page from the stored rows")
        which.add_argument("--check", action="store_true", help="compare page and rows, compute guarded rows again")
        flags = parser.parse_args()
        if flags.check:
            if stale := list(self.check()):
                sys.exit("\n".join(stale))
            return
        if not flags.render:
            self.store(self.measure())
        with atomic_write(self.path) as out:
            out.write(text := self.render())
        print(text)


def as_json(value: object) -> Any:
    """Return a value as it comes back from JSON: tuples and iterators of rows become lists."""
    return json.loads(json.dumps(value, default=list))


def dump_rows(stored: Stored) -> str:
    """Return JSON with one row of a table on each line, so that a change is easy to see."""
    entries = []
    for name, value in as_json(stored.rows).items():
        shown = json.dumps(value, ensure_ascii=False)
        if isinstance(value, list) and value:
            shown = "[\n" + ",\n".join(f"   {json.dumps(row, ensure_ascii=False)}" for row in value) + "\n  ]"
        entries.append(f"  {json.dumps(name, ensure_ascii=False)}: {shown}")
    head = {"commit": stored.commit} | ({"stale": stored.stale} if stored.stale else {})
    lines = [f' "{name}": {json.dumps(value, ensure_ascii=False)},\n' for name, value in head.items()]
    return "{\n" + "".join(lines) + ' "rows": {\n' + ",\n".join(entries) + "\n }\n}\n"


def line(cells: Iterable[object]) -> str:
    """Return a row of a table in Markdown."""
    return "| " + " | ".join(map(str, cells)) + " |"


def table(head: Sequence[str], rows: Iterable[Sequence[object]], numbers: bool = True) -> str:
    """Return a table in Markdown; the first column is text, the others are numbers or text too."""
    rule = "---:" if numbers else "---"
    return "\n".join([line(head), line(["---", *[rule] * (len(head) - 1)]), *map(line, rows)])


def fold(title: str, content: str) -> str:
    """Return a part of a page that is closed until it is clicked."""
    return f"<details><summary>{title}</summary>\n\n{content}\n\n</details>"


def prose(text: str) -> str:
    """Return a paragraph, broken at 120 characters."""
    return fill(" ".join(text.split()), 120, break_long_words=False, break_on_hyphens=False)


def read_number(cell: str) -> float:
    """Return the first number of a printed cell.

    >>> read_number("-13.3 [-17.5, -9.3]"), read_number("0.3200↓"), read_number("9,139")
    (-13.3, 0.32, 9139.0)
    """
    found = NUMBER.search(cell)
    assert found, f"{cell!r} has no number"
    return float(found[0].replace(",", ""))


def read_interval(cell: str) -> tuple[float, float, float]:
    """Return the value of a printed cell and the ends of its interval.

    >>> read_interval("-13.3 [-17.5, -9.3]")
    (-13.3, -17.5, -9.3)
    """
    value, low, high = (float(text.replace(",", "")) for text in NUMBER.findall(re.sub(r", ", " ", cell)))
    return value, low, high


def plain_drops(result: Result) -> pd.DataFrame:
    """Return the table of a query attack with plain 95 % intervals: those in the table are corrected for all rows."""
    frame = result.tables["query attack"].copy()
    known = {(one.ranker, one.name): one for one in result.findings}
    found = [known[row["ranker"], f"drop({row['attack']})"] for row in frame.to_dict("records")]
    frame["drop % low"], frame["drop % high"] = [one.low for one in found], [one.high for one in found]
    return frame


def need_data(*parts: str) -> None:
    """End without failing if the data are not on this machine: the page stays as it was."""
    if not (place := DATA.joinpath(*parts)).exists():
        print(f"skipped: there is no {place}")
        sys.exit(0)


def find_commit() -> str:
    """Return the short name of the current commit."""
    return subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True).strip()
