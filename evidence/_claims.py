"""Claims of the papers (claims.toml), and the measurements of them in the stored rows of all pages.

A page's script records what it measures for a claim as a table `measurements` among its rows, one
`_verdicts.Measurement` a row (`to_row`). Guards can compute such a row again like any other. Rows that are older than
the claims have intervals in printed cells instead: `cells` of a claim says which.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evidence import FOLDER, Rows, read_interval
from evidence._verdicts import Measurement, Side

CLAIMS_PATH = Path(__file__).with_name("claims.toml")
MEASUREMENTS = "measurements"
"""The name of the table of a page's rows that holds measurements."""


@dataclass(frozen=True)
class CellReference:
    """Cells of a stored table that hold a number with its interval, one for each of some rankers.

    Parameters
    ----------
    page, table, column
        The page, the table among its rows, and the place of the cell in a row.
    collection
        The collection that the table is about.
    n
        The number of queries, or the name of the fact among the rows that has it.
    rankers
        The first cell of a row -> the ranker as the claim calls it.
    training
        The name of a toy training, or empty.
    """

    page: str
    table: str
    column: int
    collection: str
    n: int | str
    rankers: Mapping[str, str]
    training: str = ""

    def read(self, claim: str, rows: Rows) -> Iterator[Measurement]:
        """Yield the measurements in these cells."""
        cells = {row[0]: row[self.column] for row in rows[self.table]}
        n = int(rows[self.n]) if isinstance(self.n, str) else self.n
        for first, ranker in self.rankers.items():
            yield Measurement(claim, ranker, self.collection, *read_interval(cells[first]), n, self.training)


@dataclass(frozen=True)
class Claim:
    """One sentence of a paper, and what decides it.

    Parameters
    ----------
    id
        The id, which begins with that of the paper.
    where
        The section and the table of the paper.
    quote
        The sentence, word for word.
    published
        The numbers of the paper.
    quantity
        The number that is measured, with its unit.
    source
        The task, table or finding of Shaketable that has it.
    side
        The side of the bound on which the number must lie.
    reason
        Why the bound is this one, if it is not the 0 of a sign.
    interval
        The name of the way to an interval, in the table `intervals`.
    rankers, collections
        Where it is to be measured. A claim about one family names rankers of that family only.
    page
        The page that decides it.
    cells
        Where older rows have it.
    """

    id: str
    where: str
    quote: str
    published: str
    quantity: str
    source: str
    side: Side
    interval: str
    rankers: tuple[str, ...]
    collections: tuple[str, ...]
    page: str
    reason: str = ""
    cells: tuple[CellReference, ...] = ()

    @property
    def paper(self) -> str:
        """The id of the paper, such as 004."""
        return self.id[:3]

    @property
    def planned_count(self) -> int:
        """The number of measurements if every ranker is measured on every collection."""
        return len(self.rankers) * len(self.collections)


@dataclass(frozen=True)
class ClaimFile:
    """The content of claims.toml: the claims, and the tables of names that they use."""

    papers: Mapping[str, str]
    pages: Mapping[str, Mapping[str, Any]]
    intervals: Mapping[str, Mapping[str, str]]
    trainings: Mapping[str, str]
    rankers: Mapping[str, Mapping[str, str]]
    collections: Mapping[str, str]
    claims: tuple[Claim, ...]


@dataclass(frozen=True)
class Source:
    """The page that a measurement was read from, and why its rows are stale, if so."""

    page: str
    stale: str = ""


def load_claims(path: Path = CLAIMS_PATH) -> ClaimFile:
    """Read the file of claims."""
    with path.open("rb") as file:
        content = tomllib.load(file)
    claims = tuple(map(_build_claim, content.pop("claim")))
    return ClaimFile(**content, claims=claims)


def _build_claim(entry: dict[str, Any]) -> Claim:
    side = Side(**{name: float(entry.pop(name)) for name in ("above", "below") if name in entry})
    cells = tuple(CellReference(**one) for one in entry.pop("cells", ()))
    rankers, collections = (tuple(entry.pop(name)) for name in ("rankers", "collections"))
    return Claim(**entry, rankers=rankers, collections=collections, side=side, cells=cells)


def read_measurements(file: ClaimFile, folder: Path = FOLDER) -> dict[str, list[tuple[Measurement, Source]]]:
    """Return the measurements of each claim with their sources: claim -> in the order of pages and rows."""
    pages = {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted((folder / "rows").glob("*.json"))
    }
    sources = {name: Source(name, page.get("stale", "")) for name, page in pages.items()}
    known = {claim.id: claim for claim in file.claims}
    found: dict[str, list[tuple[Measurement, Source]]] = {name: [] for name in known}
    for name, page in pages.items():
        for row in page["rows"].get(MEASUREMENTS, ()):
            found[row["claim"]].append((Measurement(**row), sources[name]))
    for claim in file.claims:
        for cells in claim.cells:
            read = cells.read(claim.id, pages[cells.page]["rows"])
            found[claim.id] += [(one, sources[cells.page]) for one in read]
    for name, measured in found.items():
        _check_planned(known[name], [one for one, _ in measured])
    return found


def _check_planned(claim: Claim, measured: list[Measurement]) -> None:
    """Raise if a ranker or collection is not one of the claim, so that no other family can decide it."""
    places = [(one.ranker, one.collection) for one in measured]
    for ranker, collection in places:
        if ranker not in claim.rankers or collection not in claim.collections:
            raise ValueError(f"{claim.id} is not about {ranker} on {collection}")
    if len(places) != len(set(places)):
        raise ValueError(f"{claim.id} is measured twice on one collection for one ranker")
