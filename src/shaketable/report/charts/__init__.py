"""Figures as inline SVG: Altair describes the chart, vl-convert draws it, and `sanitize_svg` keeps the safe parts.

Text and axes have the colour `currentColor`, so that a drawing follows the light or dark theme of its page. Texts of
the data never enter a Vega expression: columns are renamed to their roles, and texts are values or titles only.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from shaketable.core.errors import BadInput, MissingExtra
from shaketable.core.results import Figure, Result
from shaketable.report import format_cell, is_missing
from shaketable.report.charts.bars import draw_bars, draw_distribution, draw_diverging, draw_heatmap, draw_waterfall
from shaketable.report.charts.lines import draw_lines, draw_profile, draw_scatter, draw_slope
from shaketable.report.charts.plot import ChartKind, Colors, Plot, list_distinct
from shaketable.report.colours import PALETTE
from shaketable.report.svg import FONT_FAMILY, sanitize_svg

if TYPE_CHECKING:
    import pandas as pd
    from altair.typing import ChartType

_TEXT_STYLE = {"labelColor": "currentColor", "titleColor": "currentColor", "labelFontSize": 11, "titleFontSize": 11}
_VEGA_CONFIG = {
    "font": FONT_FAMILY,
    "background": None,
    "padding": 6,
    "view": {"stroke": None},
    "axis": {
        **_TEXT_STYLE,
        "titleFontWeight": "normal",
        "grid": False,
        "gridColor": "currentColor",
        "gridOpacity": 0.13,
        "domainColor": "currentColor",
        "domainOpacity": 0.4,
        "ticks": False,
        "labelLimit": 210,
        "labelPadding": 5,
        "labelFlush": False,
        "titlePadding": 8,
    },
    "legend": {
        **_TEXT_STYLE,
        "orient": "top",
        "columns": 3,
        "labelLimit": 190,
        "columnPadding": 16,
        "symbolStrokeWidth": 2.5,
        "symbolOpacity": 1,
        "offset": 26,  # space for the title of the vertical axis
    },
    "title": {
        "color": "currentColor",
        "fontSize": 11,
        "fontWeight": "normal",
        "anchor": "start",
        "subtitleColor": "currentColor",
        "subtitleFontSize": 11,
    },
    "text": {"color": "currentColor", "fontSize": 11},
    "concat": {"spacing": 24},
}


MAX_DRAWN_ROWS = 50_000
"""The maximum number of rows of a figure; the SVG of more would take several megabytes and minutes."""


def draw_svg(figure: Figure, table: pd.DataFrame, colors: Colors | None = None, key_columns: Sequence[str] = ()) -> str:
    """Return a figure as one SVG element; "" if the table has no values, or more than a page can hold.

    `colors` are those of `assign_page_colors`; other series get new colours. The attribute `data-at` of a mark has its
    values in `key_columns`, which must be columns that the figure draws.
    """
    kind = _find_chart_kind(figure)
    frame, notes = _limit_rows(figure, kind, table)
    if frame.empty or len(frame) > MAX_DRAWN_ROWS:
        return ""
    chart = _draw_rows(figure, kind, frame, notes, colors, key_columns)
    described = chart.to_dict(validate=False)
    svg = _import_plotting()[1].vegalite_to_svg(described, config=_VEGA_CONFIG, allowed_base_urls=[])
    return sanitize_svg(svg, format_cell(figure.title))


def build_chart(figure: Figure, table: pd.DataFrame) -> ChartType:
    """Return a figure as an Altair chart."""
    kind = _find_chart_kind(figure)
    return _draw_rows(figure, kind, *_limit_rows(figure, kind, table))


def _draw_rows(
    figure: Figure,
    kind: ChartKind,
    frame: pd.DataFrame,
    notes: list[str],
    colors: Colors | None = None,
    key_columns: Sequence[str] = (),
) -> ChartType:
    alt, _ = _import_plotting()
    names = {role: format_cell(getattr(figure, role)) for role in ("color", "x", "y") if getattr(figure, role)}
    own = {} if "color" in kind.numeric_roles else _assign_colors([list_distinct(frame, "color")])
    roles = {getattr(figure, role): role for role in names}
    plot = Plot(frame, names, {**own, **(colors or {})}, tuple(roles[key] for key in key_columns))
    with alt.utils.schemapi.debug_mode(False):  # schema checks would double the time
        chart: ChartType = kind.draw(plot)
        if notes:
            chart = alt.concat(chart, title=alt.TitleParams(notes, orient="bottom", offset=10, fontStyle="italic"))
    return chart


def _import_plotting() -> tuple[Any, Any]:
    """Return altair and vl_convert, which the extra `report` installs."""
    try:
        import altair
        import vl_convert
    except ModuleNotFoundError as error:
        raise MissingExtra("report", "drawing plots") from error
    return altair, vl_convert


def assign_page_colors(results: Iterable[Result]) -> dict[str, str]:
    """Return series -> colour, the same in all figures of a page.

    The series of one figure get different colours unless there are more series than colours.
    """
    return _assign_colors(
        list_distinct(_limit_rows(figure, kind, result.tables[figure.table])[0], "color")
        for result in results
        for figure in result.figures
        if figure.color and "color" not in (kind := _find_chart_kind(figure)).numeric_roles
    )


def _assign_colors(groups: Iterable[Sequence[str]]) -> dict[str, str]:
    neighbours: dict[str, set[str]] = defaultdict(set)
    for group in groups:
        for name in group:
            neighbours[name].update(group)
    colors: dict[str, str] = {}
    for name, others in neighbours.items():
        near = Counter(colors[other] for other in others if other in colors)
        used = Counter(colors.values())
        colors[name] = min(PALETTE, key=lambda color: (near[color], used[color]))
    return colors


def _find_chart_kind(figure: Figure) -> ChartKind:
    if figure.kind not in CHART_KINDS:
        raise BadInput(
            f"figure {figure.title!r}: there is no chart type {figure.kind!r}; there are {', '.join(CHART_KINDS)}"
        )
    return CHART_KINDS[figure.kind]


def _limit_rows(figure: Figure, kind: ChartKind, table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows to draw, limited to the series and categories with the highest mean, and notes on the limits."""
    frame, notes = _extract_roles(figure, kind, table), []
    for role, most in kind.max_values.items():
        if role in frame and (count := frame[role].nunique()) > most:
            means = frame.groupby(role, sort=False)[kind.numeric_roles[-1]].mean()
            frame = frame[frame[role].isin(means.nlargest(most).index)].reset_index(drop=True)
            name = format_cell(getattr(figure, role), 40)
            notes.append(f"Drawn: the {most} of {count} values of {name} with the highest mean. The table has all.")
    return frame, notes


def _extract_roles(figure: Figure, kind: ChartKind, table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of the figure, named by their roles: finite numbers, clean texts, no missing values."""
    import numpy as np
    import pandas as pd

    named = {role: getattr(figure, role) for role in ("x", "y", "color") if getattr(figure, role)}
    more = {role: getattr(figure, role) for role in ("join", "mark", "label", "shade") if getattr(figure, role)}
    if absent := [column for column in (*named.values(), *more.values()) if column not in table.columns]:
        raise BadInput(f"figure {figure.title!r}: table {figure.table!r} has no column {absent[0]!r}")
    value = getattr(figure, kind.numeric_roles[-1])
    # the columns of an interval are named after its column, or "low" and "high"
    beside_it = [str(name) for name in table.columns][list(table.columns).index(value) + 1 :][:2]
    ends = {"low": f"{value} low", "high": f"{value} high"}
    ends = {"low": "low", "high": "high"} if beside_it == ["low", "high"] else ends
    wide = {"x_low": f"{figure.x} low", "x_high": f"{figure.x} high"}
    interval = {role: name for pair in (ends, wide) for role, name in pair.items() if set(pair.values()) <= set(table)}
    if "queries" in table:
        interval["n"] = "queries"
    columns = {}
    for role, column in {**named, **more, **interval}.items():
        if role in (*kind.numeric_roles, "shade") or role in interval:
            try:
                numbers = pd.to_numeric(table[column]).to_numpy(dtype=float, na_value=np.nan)
            except (TypeError, ValueError) as error:
                raise BadInput(f"figure {figure.title!r}: column {column!r} must have numbers ({error})") from error
            columns[role] = pd.Series(np.where(np.isfinite(numbers), numbers, np.nan))
        else:
            columns[role] = pd.Series(_format_texts(table[column]), dtype=object)
    return pd.DataFrame(columns).dropna(subset=list(named)).reset_index(drop=True)


def _format_texts(column: Iterable[object]) -> list[str | None]:
    """Return the texts of a column, None where it has no value; a text that repeats is formatted once."""
    known: dict[str, str] = {}
    texts: list[str | None] = []
    for value in column:
        if type(value) is str:
            if (text := known.get(value)) is None:
                text = known[value] = format_cell(value, 80)
            texts.append(text)
        else:
            texts.append(None if is_missing(value) else format_cell(value, 80))
    return texts


CHART_KINDS = {
    "bars": ChartKind(draw_bars, max_values={"x": 40, "color": 12}),
    "distribution": ChartKind(draw_distribution, max_values={"x": 40, "color": 12}),
    "lines": ChartKind(draw_lines, numeric_roles=("x", "y"), max_values={"color": 12}),
    "profile": ChartKind(draw_profile, max_values={"color": 12}),
    "scatter": ChartKind(draw_scatter, numeric_roles=("x", "y")),
    "heatmap": ChartKind(draw_heatmap, numeric_roles=("color",), max_values={"x": 30, "y": 40}),
    "waterfall": ChartKind(draw_waterfall, max_values={"color": 12}),
    "diverging": ChartKind(draw_diverging, max_values={"x": 40, "color": 3}),
    "slope": ChartKind(draw_slope, numeric_roles=("x", "y"), max_values={"color": 12}),
}
