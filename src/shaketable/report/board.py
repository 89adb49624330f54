"""Many audits on one page: a row for each audit and ranker, and the trend of each ranker over its audits."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from markupsafe import Markup

from shaketable.core.extras import use_python_strings
from shaketable.files.atomic import atomic_write
from shaketable.report import format_cell
from shaketable.report.notebook import render_frame, show_page
from shaketable.report.page_data import PageData
from shaketable.report.scorecard import FacetCell, sort_facets
from shaketable.report.templates import render_template
from shaketable.report.verdict import facet_is_relative

if TYPE_CHECKING:
    import pandas as pd

SPARK_WIDTH_PX, SPARK_HEIGHT_PX, SPARK_MARGIN_PX = 96, 26, 3
BOARD_COLUMNS = ("audit", "date", "collection", "ranker", "outcome", "facet", "status", "value", "low", "high")
MAX_ROWS = 5_000


@dataclass(frozen=True)
class BoardRow:
    """One ranker of one audit.

    Parameters
    ----------
    audit
        The name of the audit: its folder, or its title.
    date
        The date of the audit; empty if it is not known.
    collection
        The name of the collection.
    series
        The fingerprint of the collection, or its name: rankers of one name and one series have a trend.
    ranker, role
        The name of the ranker, and "under test" or "first stage".
    outcome
        "passed", "failed", "inconclusive", or "" for a first stage.
    facet_cells
        The cells of the scorecard by facet.
    folder
        The folder of the audit; None if it is not saved.
    """

    audit: str
    date: str
    collection: str
    series: str
    ranker: str
    role: str
    outcome: str
    facet_cells: Mapping[str, FacetCell]
    folder: Path | None = None


@dataclass(frozen=True)
class _Trend:
    """The values of a ranker in one facet over its audits, as a drawing, with the last value and status."""

    svg: Markup
    last: str
    status: str


@dataclass(frozen=True)
class Board:
    """Many audits, to compare side by side and over time."""

    rows: tuple[BoardRow, ...]

    @property
    def facets(self) -> list[str]:
        """The facets that an audit tested, in the order of the scorecard."""
        return sort_facets({facet for row in self.rows for facet in row.facet_cells})

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each audit, ranker and facet; `value`, `low` and `high` are numbers."""
        import pandas as pd

        rows = [
            (*_describe_row(row), facet, cell.status, cell.finding.value, cell.finding.low, cell.finding.high)
            for row in self.rows
            for facet, cell in row.facet_cells.items()
        ]
        return pd.DataFrame(rows, columns=list(BOARD_COLUMNS))

    @use_python_strings()
    def to_html(self, beside: str | Path | None = None) -> str:
        """Return the board as an HTML page without external files.

        Parameters
        ----------
        beside
            The folder of the page; links to the reports are relative to it. Without it, the page has no links.
        """
        facets = self.facets
        trends = [trends for *_, trends in self._build_trends(facets)]
        drawn = [facet for facet, column in zip(facets, zip(*trends, strict=True), strict=False) if any(column)]
        data = PageData({}, MAX_ROWS)
        number = data.add_table("board", self._build_wide_frame(facets), "board.csv")
        context: dict[str, Any] = {
            "title": f"{len({row.audit for row in self.rows})} audits",
            "rows": [(row, _make_link(row, beside)) for row in self.rows],
            "facets": facets,
            "relative_facets": [facet for facet in facets if facet_is_relative(facet)],
            "trend_facets": drawn,
            "trends": list(self._build_trends(drawn)),
            "number": number,
            "data": data.pack(MAX_ROWS),
        }
        return render_template("board.html", context)

    def save(self, path: str | Path) -> None:
        """Write the page to a file, with links to the reports.

        Parameters
        ----------
        path
            The HTML file to write.
        """
        with atomic_write(Path(path)) as out:
            out.write(self.to_html(Path(path).parent))

    def show(self) -> Path:
        """Open the page in the browser and return the path of its file, which is in a temporary folder."""
        return show_page(self.to_html())

    def _repr_html_(self) -> str:
        return render_frame(self._build_wide_frame(self.facets), "audits")

    def _build_wide_frame(self, facets: Sequence[str]) -> pd.DataFrame:
        """Return a row for each audit and ranker, with the text of each facet's cell."""
        import pandas as pd

        rows = [
            (*_describe_row(row), *(_format_facet_cell(row.facet_cells.get(facet)) for facet in facets))
            for row in self.rows
        ]
        return pd.DataFrame(rows, columns=[*BOARD_COLUMNS[:5], *facets])

    def _build_trends(self, facets: Sequence[str]) -> Iterator[tuple[str, str, str, list[_Trend | None]]]:
        """Yield the ranker, the collection, the dates and the trends of each ranker with several audits."""
        series: dict[tuple[str, str], list[BoardRow]] = {}
        for row in self.rows:
            series.setdefault((row.series, row.ranker), []).append(row)
        for (_, ranker), rows in series.items():
            if len(rows) > 1:
                ordered = sorted(rows, key=lambda row: row.date)  # audits of one day stay in the given order
                first, last = ordered[0].date, ordered[-1].date
                dates = f"{len(rows)} audits{f', {first}' if first else ''}{f' to {last}' if last > first else ''}"
                trends = [_draw_trend([row.facet_cells.get(facet) for row in ordered]) for facet in facets]
                yield format_cell(ranker), format_cell(rows[0].collection), dates, trends


def _describe_row(row: BoardRow) -> tuple[str, ...]:
    return row.audit, row.date, row.collection, row.ranker, row.outcome or row.role


def _format_facet_cell(cell: FacetCell | None) -> str:
    return f"{cell.status} {cell.value}" if cell else ""


def _make_link(row: BoardRow, beside: str | Path | None) -> str:
    """Return the relative address of the report of an audit; "" if there is none."""
    if row.folder is None or beside is None or not (row.folder / "report.html").is_file():
        return ""
    # the leading "./" keeps a folder such as "javascript:x" a path
    return "./" + quote(os.path.relpath(row.folder / "report.html", beside))


def _draw_trend(cells: Sequence[FacetCell | None]) -> _Trend | None:
    """Return the values as a line, oldest first; None if fewer than two audits have the same finding as the last."""
    known = [cell for cell in cells if cell is not None]
    alike = [cell for cell in known if cell.finding.name == known[-1].finding.name]
    if len(alike) < 2:
        return None
    values = [cell.finding.value for cell in alike]
    low, size = min(values), (max(values) - min(values)) or 1.0
    step = (SPARK_WIDTH_PX - 2 * SPARK_MARGIN_PX) / (len(values) - 1)
    height = SPARK_HEIGHT_PX - 2 * SPARK_MARGIN_PX
    points = [
        (SPARK_MARGIN_PX + i * step, SPARK_MARGIN_PX + height * (1 - (value - low) / size))
        for i, value in enumerate(values)
    ]
    said = f"{alike[0].value} to {alike[-1].value}"
    svg = Markup(
        '<svg class="spark" width="{w}" height="{h}" viewBox="0 0 {w} {h}" role="img" aria-label="{said}">'
        '<polyline points="{points}"/><circle cx="{x:.1f}" cy="{y:.1f}" r="2.5"/></svg>'
    ).format(
        w=SPARK_WIDTH_PX,
        h=SPARK_HEIGHT_PX,
        said=said,
        points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points),
        x=points[-1][0],
        y=points[-1][1],
    )
    return _Trend(svg, said, alike[-1].status)
