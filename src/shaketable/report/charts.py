"""Figures to inline SVG: Altair describes, vl-convert draws, and only what is known to be harmless is kept.

Text and axes have the colour `currentColor`, so a drawing follows its page from light to dark. Texts of the data
never enter a Vega expression: columns are renamed to their roles, and texts are values or titles only.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from shaketable.errors import BadInput, MissingExtra
from shaketable.report import cell, is_percentage, missing, number, percent
from shaketable.report.colours import GAIN, LOSS, NEITHER, ONE_SIDED, PALETTE, TWO_SIDED, ink_on, mixed
from shaketable.report.layout import WIDTH, beside, from_zero, padded, place_ticks, spread, widened
from shaketable.report.svg import FONT, harmless_svg
from shaketable.types import Figure, Result

if TYPE_CHECKING:
    import pandas as pd

Colors: TypeAlias = Mapping[str, str]
"""Series -> colour."""

FEW = 60
"""Up to so many topics or points, each is drawn and named by itself."""
FEWEST = 20
"""Queries that a number needs to stand alone; with fewer, their count is shown beside it."""
MOST_LINES = 400
"""Lines between places that one panel has; beyond that they would hide each other and make the page heavy."""

_QUIET = {"labelColor": "currentColor", "titleColor": "currentColor", "labelFontSize": 11, "titleFontSize": 11}
_CONFIG = {
    "font": FONT,
    "background": None,
    "padding": 6,
    "view": {"stroke": None},
    "axis": {
        **_QUIET,
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
        **_QUIET,
        "orient": "top",
        "columns": 3,
        "labelLimit": 190,
        "columnPadding": 16,
        "symbolStrokeWidth": 2.5,
        "symbolOpacity": 1,
        "offset": 26,  # leaves room for the title of the vertical axis
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


@dataclass(frozen=True)
class Plot:
    """What a kind of drawing gets: the roles as columns `x`, `y`, `color`, their names, and the series' colours."""

    frame: pd.DataFrame
    names: Mapping[str, str]
    colors: Colors
    texts: tuple[str, ...] = ()
    """The roles that hold texts: with them a mark tells whose it is, for a page that looks up its queries."""

    @property
    def series(self) -> list[str]:
        """The series, in the order of the table."""
        return _distinct(self.frame, "color")

    def chart(self, frame: pd.DataFrame) -> Any:
        """A chart of these rows, each with a hint of what it is."""
        rows = [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]
        for row in rows:
            said = [f"{name}: {self.shown(role, row[role])}" for role, name in self.names.items()]
            said += [cell(row["label"])] if "label" in row else []
            whose = [row[role] for role in self.texts if not missing(row.get(role))]
            row["hint"] = json.dumps(["; ".join([*said, *self._rests_on(row)]), whose if self.texts else []])
        return _chart(rows)

    def shown(self, role: str, value: object, decimals: int = 4) -> str:
        """A value as text: per cent with one decimal, where the name of the role says so."""
        if isinstance(value, float) and not missing(value):
            return percent(value) if is_percentage(self.names[role]) else number(value, decimals)
        return cell(value)

    def _rests_on(self, row: Mapping[str, Any]) -> Iterator[str]:
        """What a number rests on, for its hint: the interval and the queries, where they are known."""
        value = "color" if "y" not in self.names or isinstance(row.get("y"), str) else "y"
        if not missing(row.get("low")) and not missing(row.get("high")):
            yield f"95 %: {self.shown(value, float(row['low']), 3)} to {self.shown(value, float(row['high']), 3)}"
        if not missing(row.get("n")):
            yield f"queries: {row['n']:.0f}"

    def color(self, legend: Any = None) -> Any:
        """The colour of a series, the same wherever the series appears; without series the palette's first."""
        import altair as alt

        if not self.series:
            return alt.value(PALETTE[0])
        scale = alt.Scale(domain=self.series, range=[self.colors[name] for name in self.series])
        return alt.Color("color:N", scale=scale, legend=legend, title=None)

    def upwards(self, field: str = "y", **scale: Any) -> Any:
        """The vertical axis: a light grid, its title flat above it."""
        import altair as alt

        flat: dict[str, Any] = {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "end", "titleX": 0, "titleY": -12}
        axis = alt.Axis(grid=True, domain=False, tickCount=6, **flat)
        return alt.Y(f"{field}:Q", title=self.names["y"], scale=alt.Scale(**scale), axis=axis)


@dataclass(frozen=True)
class Kind:
    """A way to draw: which roles hold numbers (the last is the value), and how many different others may have."""

    make: Callable[[Plot], Any]
    numbers: tuple[str, ...] = ("y",)
    most: Mapping[str, int] = field(default_factory=dict)


def draw(figure: Figure, table: pd.DataFrame, colors: Colors | None = None, keys: Sequence[str] = ()) -> str:
    """The figure as one SVG element, or "" where the table holds nothing to draw.

    `colors` are those of `page_colors`; series that are not among them get colours of their own. Marks tell what they
    have in the columns `keys`, which must be columns that the figure draws, in an attribute `data-at`.
    """
    kind = _kind(figure)
    frame, notes = _limited(figure, kind, table)
    if frame.empty:
        return ""
    try:
        import altair as alt
        import vl_convert
    except ModuleNotFoundError as error:
        raise MissingExtra("report", "drawing plots") from error
    names = {role: cell(getattr(figure, role)) for role in ("color", "x", "y") if getattr(figure, role)}
    own = {} if "color" in kind.numbers else _colored([_distinct(frame, "color")])
    roles = {getattr(figure, role): role for role in names}
    plot = Plot(frame, names, {**own, **(colors or {})}, tuple(roles[key] for key in keys))
    with alt.utils.schemapi.debug_mode(False):  # what is drawn here is known to be right, and checking takes as long
        chart = kind.make(plot)
        if notes:
            chart = alt.concat(chart, title=alt.TitleParams(notes, orient="bottom", offset=10, fontStyle="italic"))
        described = chart.to_dict(validate=False)
    svg = vl_convert.vegalite_to_svg(described, config=_CONFIG, allowed_base_urls=[])
    return harmless_svg(svg, cell(figure.title))


def page_colors(results: Iterable[Result]) -> dict[str, str]:
    """One colour for each series of a page, the same in all its figures.

    Names that meet in one figure get different colours, as far as the palette goes.
    """
    return _colored(
        _distinct(_limited(figure, kind, result.tables[figure.table])[0], "color")
        for result in results
        for figure in result.figures
        if figure.color and "color" not in (kind := _kind(figure)).numbers
    )


def _colored(groups: Iterable[Sequence[str]]) -> dict[str, str]:
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


def _kind(figure: Figure) -> Kind:
    if figure.kind not in KINDS:
        raise BadInput(f"figure {figure.title!r}: no drawing is called {figure.kind!r}; there are: {', '.join(KINDS)}")
    return KINDS[figure.kind]


def _limited(figure: Figure, kind: Kind, table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The rows to draw; of too many series or categories those with the highest mean, and a line that says so."""
    frame, notes = _roles(figure, kind, table), []
    for role, most in kind.most.items():
        if role in frame and (count := frame[role].nunique()) > most:
            means = frame.groupby(role, sort=False)[kind.numbers[-1]].mean()
            frame = frame[frame[role].isin(means.nlargest(most).index)].reset_index(drop=True)
            name = cell(getattr(figure, role), 40)
            notes.append(f"Drawn: the {most} of {count} values of {name} with the highest mean. The table has all.")
    return frame, notes


def _roles(figure: Figure, kind: Kind, table: pd.DataFrame) -> pd.DataFrame:
    """The columns that the figure names, called by their roles: numbers finite, texts clean, no holes."""
    import numpy as np
    import pandas as pd

    named = {role: getattr(figure, role) for role in ("x", "y", "color") if getattr(figure, role)}
    more = {role: getattr(figure, role) for role in ("join", "mark", "label") if getattr(figure, role)}
    if absent := [column for column in (*named.values(), *more.values()) if column not in table.columns]:
        raise BadInput(f"figure {figure.title!r}: table {figure.table!r} has no column {absent[0]!r}")
    value = getattr(figure, kind.numbers[-1])
    # an interval is named after its column, or stands beside it as "low" and "high"
    beside_it = [str(name) for name in table.columns][list(table.columns).index(value) + 1 :][:2]
    ends = {"low": f"{value} low", "high": f"{value} high"}
    ends = {"low": "low", "high": "high"} if beside_it == ["low", "high"] else ends
    wide = {"x_low": f"{figure.x} low", "x_high": f"{figure.x} high"}
    interval = {role: name for pair in (ends, wide) for role, name in pair.items() if set(pair.values()) <= set(table)}
    if "queries" in table:
        interval["n"] = "queries"
    columns = {}
    for role, column in {**named, **more, **interval}.items():
        if role in kind.numbers or role in interval:
            try:
                numbers = pd.to_numeric(table[column]).to_numpy(dtype=float, na_value=np.nan)
            except (TypeError, ValueError) as error:
                raise BadInput(f"figure {figure.title!r}: column {column!r} must hold numbers ({error})") from error
            columns[role] = pd.Series(np.where(np.isfinite(numbers), numbers, np.nan))
        else:
            columns[role] = pd.Series([None if missing(v) else cell(v, 80) for v in table[column]], dtype=object)
    return pd.DataFrame(columns).dropna(subset=list(named)).reset_index(drop=True)


def _bars(plot: Plot) -> Any:
    """Lying bars, so that long names can be read; columns `low` and `high` become whiskers."""
    import altair as alt

    frame = plot.frame
    grouped = len(plot.series) > 1 and not frame["color"].equals(frame["x"])
    categories = _distinct(frame, "x")
    y = alt.Y("x:N", sort=categories, title=None, axis=alt.Axis(domain=False), scale=alt.Scale(padding=0.22))
    offset = {"yOffset": alt.YOffset("color:N", sort=plot.series)} if grouped else {}
    x = alt.X("y:Q", title=plot.names["y"], axis=alt.Axis(grid=True, domain=False, tickCount=6))
    bars = (
        plot.chart(frame)
        .mark_bar()
        .encode(y=y, x=x, color=plot.color(alt.Legend(offset=8) if grouped else None), **offset)
    )
    zero = _chart([{"y": 0}]).mark_rule(color="currentColor", opacity=0.5, aria=False).encode(x="y:Q")
    layers = [_hinted(bars), zero]
    if "low" in frame:
        rule = _chart(frame.dropna(subset=["low", "high"]).to_dict("records")).mark_rule(
            color="currentColor", strokeWidth=1.3, aria=False
        )
        layers.append(rule.encode(y=y, x="low:Q", x2="high:Q", **offset))
    high = len(categories) * (10 * len(plot.series) + 8 if grouped else 22)
    return alt.layer(*layers).properties(width=WIDTH - 100, height=high)


def _distribution(plot: Plot) -> Any:
    """Lying boxes over the middle half of each group's values, a mark at the median, whiskers from 5 % to 95 %."""
    import altair as alt
    import numpy as np

    roles = ["x", *(["color"] if plot.series else [])]
    levels = {"p5": 0.05, "q1": 0.25, "y": 0.5, "q3": 0.75, "p95": 0.95}
    groups = plot.frame.groupby(roles, sort=False)["y"]
    frame = (
        groups.quantile(np.array(list(levels.values()))).unstack().set_axis(list(levels), axis="columns").reset_index()
    )
    categories = _distinct(frame, "x")
    y = alt.Y("x:N", sort=categories, title=None, axis=alt.Axis(domain=False), scale=alt.Scale(padding=0.22))
    offset = {"yOffset": alt.YOffset("color:N", sort=plot.series)} if len(plot.series) > 1 else {}
    axis = alt.Axis(grid=True, domain=False, tickCount=6)
    title = plot.names["y"]
    chart = plot.chart(frame)
    boxes = chart.mark_bar(opacity=0.75).encode(
        y=y,
        x=alt.X("q1:Q", title=title, axis=axis),
        x2="q3:Q",
        color=plot.color(alt.Legend(offset=8) if offset else None),
        **offset,
    )
    plain = {"color": "currentColor", "aria": False}
    whiskers = chart.mark_rule(opacity=0.6, **plain).encode(y=y, x=alt.X("p5:Q", title=title), x2="p95:Q", **offset)
    medians = chart.mark_tick(thickness=2, **plain).encode(y=y, x=alt.X("y:Q", title=title), **offset)
    high = len(categories) * (14 * max(1, len(plot.series)) + 8)
    return alt.layer(whiskers, _hinted(boxes), medians).properties(width=WIDTH - 100, height=high)


def _lines(plot: Plot) -> Any:
    """A line for each series, named at its right end, in a band that is its interval where there is one."""
    import altair as alt

    frame, height = plot.frame.sort_values("x", kind="stable"), 260
    known = [frame[role].dropna() for role in ("y", "low", "high") if role in frame]
    span = from_zero([value for values in known for value in values])
    ticks = 8
    if len(frame) and (frame["x"] % 1 == 0).all():  # no tick between two whole numbers
        ticks = max(1, min(ticks, int(frame["x"].max() - frame["x"].min())))
    x = alt.X("x:Q", title=plot.names["x"], axis=alt.Axis(tickCount=ticks), scale=alt.Scale(zero=False))
    y = plot.upwards(domain=span, nice=False)
    layers = []
    if "low" in frame:
        bands = _chart(frame.dropna(subset=["low", "high"]).to_dict("records")).mark_area(opacity=0.13, aria=False)
        low = plot.upwards(domain=span, nice=False, field="low")
        layers.append(bands.encode(x=x, y=low, y2="high:Q", color=plot.color()))
    layers.append(plot.chart(frame).mark_line(strokeWidth=2, aria=False).encode(x=x, y=y, color=plot.color()))
    if frame["x"].nunique() <= FEW:
        points = plot.chart(frame).mark_circle(size=24, opacity=1)
        layers.append(_hinted(points.encode(x=x, y=y, color=plot.color())))
    if plot.series:
        ends = frame.groupby("color", sort=False).tail(1)
        ends = ends.assign(x=frame["x"].max(), y=spread(list(ends["y"]), 13 / height * (span[1] - span[0]), span))
        names = _chart(ends.to_dict("records")).mark_text(align="left", dx=8, limit=150, aria=False)
        layers.append(names.encode(x=x, y=y, text="color:N", color=plot.color()))
    return alt.layer(*layers).properties(width=WIDTH - 60, height=height)


def _profile(plot: Plot) -> Any:
    """The score of each topic, topics sorted by their mean; many topics are thin lines under a running mean."""
    import altair as alt

    topics = list(plot.frame.groupby("x", sort=False)["y"].mean().sort_values(kind="stable").index)
    place = {topic: position for position, topic in enumerate(topics)}
    frame = plot.frame.assign(place=plot.frame["x"].map(place)).sort_values("place", kind="stable")
    title = f"{plot.names['x']} ({len(topics)}, sorted by mean {plot.names['y']}"
    color, y = plot.color(alt.Legend(symbolType="stroke")), plot.upwards()
    if len(topics) <= FEW:
        axis = alt.Axis(labelAngle=-90, labelLimit=90, labelOverlap=False)
        x = alt.X("x:O", sort=topics, title=f"{title})", axis=axis)
        line = plot.chart(frame).mark_line(strokeWidth=1, opacity=0.5, aria=False).encode(x=x, y=y, color=color)
        points = plot.chart(frame).mark_circle(size=26, opacity=1).encode(x=x, y=y, color=color)
        layers = [line, _hinted(points)]
    else:
        window = len(topics) // 12 | 1
        scores = frame.groupby("color", sort=False)["y"] if plot.series else frame.groupby(lambda _: 0)["y"]
        mean = scores.transform(lambda y: y.rolling(window, center=True, min_periods=1).mean())
        scale = alt.Scale(domain=[0, len(topics) - 1], nice=False)
        x = alt.X("place:Q", title=f"{title}; thick: mean of {window})", axis=alt.Axis(labels=False), scale=scale)
        thin = plot.chart(frame).mark_line(strokeWidth=0.7, opacity=0.3, aria=False)
        thick = plot.chart(frame.assign(y=mean)).mark_line(strokeWidth=2.2, aria=False)
        layers = [line.encode(x=x, y=y, color=color) for line in (thin, thick)]
    return alt.layer(*layers).properties(width=WIDTH + 80, height=260)


def _scatter(plot: Plot) -> Any:
    """Points: each named beside it where each is a series of its own or has a label, else a colour for each series.

    Intervals are drawn as lines through the point. Points that the figure joins are joined
    in the order of the table, and a point with a mark is that mark.
    """
    import altair as alt
    import pandas as pd

    frame, height = plot.frame, 340
    wide, high = ([frame[role] for role in ends if role in frame] for ends in (("x_low", "x_high"), ("low", "high")))
    across, up = (
        widened(padded(pd.concat([frame[role], *ends]).dropna())) for role, ends in (("x", wide), ("y", high))
    )
    axis = alt.Axis(grid=True, domain=False, tickCount=7)
    x = alt.X("x:Q", title=plot.names["x"], scale=alt.Scale(domain=across, nice=False), axis=axis)
    names = frame["label"] if "label" in frame else frame["color"] if plot.series else None
    alone = names is not None and names.is_unique
    few = len(plot.series) <= len(PALETTE)
    legend = alt.Legend() if "label" in frame or not alone else None
    color = plot.color(legend) if few else alt.value(PALETTE[0])
    y = plot.upwards(domain=up, nice=False)
    layers = []
    if "join" in frame:
        lines = plot.chart(frame.assign(place=range(len(frame))).dropna(subset="join"))
        line = lines.mark_line(strokeWidth=1.2, opacity=0.6, color=NEITHER, aria=False)
        layers.append(line.encode(x=x, y=y, detail="join:N", order="place:Q"))
    marked = frame["mark"].fillna("") != "" if "mark" in frame else frame["x"] != frame["x"]
    points = plot.chart(frame[~marked]).mark_circle(size=60 if len(frame) <= FEW else 24, opacity=0.85)
    layers.append(_hinted(points.encode(x=x, y=y, color=color)))
    if marked.any():
        marks = plot.chart(frame[marked]).mark_text(fontSize=18, fontWeight="bold", aria=False)
        layers.append(marks.encode(x=x, y=y, color=color, text="mark:N"))
    if high:
        lines = plot.chart(frame).mark_rule(opacity=0.45, aria=False)
        bottom = plot.upwards(domain=up, nice=False, field="low")
        layers.append(lines.encode(x=x, y=bottom, y2="high:Q", color=color))
    if wide:
        lines = plot.chart(frame).mark_rule(opacity=0.45, aria=False)
        start = alt.X("x_low:Q", title=plot.names["x"], scale=alt.Scale(domain=across, nice=False), axis=axis)
        layers.append(lines.encode(x=start, x2="x_high:Q", y=y, color=color))
    if names is not None and alone and len(frame) <= FEW:
        lefts = (frame["x"] - across[0]) / (across[1] - across[0]) * WIDTH
        tops = (up[1] - frame["y"]) / (up[1] - up[0]) * height
        places = beside(list(zip(lefts, tops, strict=True)), list(names))
        for text, (left, top, align) in zip(names, places, strict=True):
            name = _chart([{"text": text}]).mark_text(align=align, baseline="middle", limit=170, aria=False)
            layers.append(name.encode(x=alt.value(left), y=alt.value(top), text="text:N"))
    return alt.layer(*layers).properties(width=WIDTH, height=height)


def _heatmap(plot: Plot) -> Any:
    """A table of coloured cells with their numbers; the colours are two-sided where numbers are below zero.

    A number that rests on few queries has their count beside it.
    """
    import altair as alt

    frame, values = plot.frame, plot.frame["color"]
    low, high = values.min(), values.max()
    if low < 0:
        ramp, low, high = TWO_SIDED, -max(-low, high), max(-low, high)
    else:
        ramp, high = ONE_SIDED, high if high > low else low + 1
    fills = [mixed(ramp, (value - low) / (high - low)) for value in values]
    counts = frame["n"] if "n" in frame else [FEWEST] * len(frame)
    texts = [
        plot.shown("color", float(v), 3) + (f" ({n:.0f})" if n < FEWEST else "")
        for v, n in zip(values, counts, strict=True)
    ]
    frame = frame.assign(fill=fills, ink=[ink_on(fill) for fill in fills], text=texts)
    columns, rows = _distinct(frame, "x"), _distinct(frame, "y")
    width = min(90, max(46, WIDTH // len(columns)))
    angle = 0 if max(map(len, columns)) * 6.5 < width else -40
    above = alt.Axis(orient="top", domain=False, labelAngle=angle, labelLimit=150, labelOverlap=False)
    x = alt.X("x:N", sort=columns, title=plot.names["x"], axis=above)
    y = alt.Y("y:N", sort=rows, title=plot.names["y"], axis=alt.Axis(domain=False))
    cells = plot.chart(frame).mark_rect(stroke="#ffffff", strokeWidth=1, strokeOpacity=0.6)
    cells = cells.encode(x=x, y=y, fill=alt.Fill("fill:N", scale=None))
    numbers = _chart(frame.to_dict("records")).mark_text(aria=False)
    numbers = numbers.encode(x=x, y=y, text="text:N", color=alt.Color("ink:N", scale=None))
    return alt.layer(_hinted(cells), numbers).properties(width=len(columns) * width, height=len(rows) * 26)


def _waterfall(plot: Plot) -> Any:
    """Gain or loss of each query, sorted: a panel for each facet, whose title counts the signs."""
    import altair as alt

    facets = list(plot.frame.groupby("color", sort=False)) if plot.series else [("", plot.frame)]
    facets = [(facet, part) for facet, part in facets if (part["y"] != 0).any()] or facets  # nobody against itself
    width, height = (WIDTH + 80, 240) if len(facets) == 1 else (WIDTH // 2, 130)
    low, high = padded(plot.frame["y"])
    domain = [min(low, 0), max(high, 0)]
    panels = []
    for facet, part in facets:
        part = part.sort_values("y", ascending=False, kind="stable")
        part = part.assign(place=range(len(part)), sign=[GAIN if y > 0 else LOSS for y in part["y"]])
        signs = Counter("up" if y > 0 else "down" if y < 0 else "equal" for y in part["y"])
        counts = ", ".join(f"{signs[sign]} {sign}" for sign in ("up", "down", "equal"))
        named = len(facets) == 1 and len(part) <= FEW and part["x"].is_unique
        sort = {"sort": list(part["x"])} if named else {"scale": alt.Scale(domain=[-0.5, len(part) - 0.5], nice=False)}
        axis = alt.Axis(labels=named, domain=False, labelAngle=-90, labelLimit=90, labelOverlap=False)
        x = alt.X(
            "x:O" if named else "place:Q", title=f"{plot.names['x']}, sorted by {plot.names['y']}", axis=axis, **sort
        )
        bars = plot.chart(part).mark_bar(width=min(40, max(0.6, 0.85 * width / len(part))))
        fill = alt.Fill("sign:N", scale=None)
        panel = _hinted(bars.encode(x=x, y=plot.upwards(domain=domain, nice=False).title(None), fill=fill))
        title = alt.TitleParams(f"{cell(facet, 30)}: {counts}" if facet else counts, fontWeight="bold", offset=8)
        panels.append(panel.properties(width=width, height=height, title=title))
    return alt.concat(*panels, columns=2)


def _diverging(plot: Plot) -> Any:
    """Lying bars of three shares: the last series to the left of zero, the first to the right, the second around it."""
    import altair as alt
    import pandas as pd

    rows = []
    for category, part in plot.frame.groupby("x", sort=False):
        shares = dict(zip(part["color"], part["y"], strict=True))
        right, middle, left = (shares.get(name, 0.0) for name in (*plot.series, "", "")[:3])
        ends = ((middle / 2, middle / 2 + right), (-middle / 2, middle / 2), (-middle / 2 - left, -middle / 2))
        rows += [
            {"x": category, "color": name, "y": shares.get(name, 0.0), "left": low, "right": high}
            for name, (low, high) in zip(plot.series, ends, strict=False)
        ]
    frame = pd.DataFrame(rows)
    categories = _distinct(frame, "x")
    y = alt.Y("x:N", sort=categories, title=None, axis=alt.Axis(domain=False), scale=alt.Scale(padding=0.22))
    scale = alt.Scale(domain=[-1, 1])
    x = alt.X("left:Q", title=plot.names["y"], scale=scale, axis=alt.Axis(grid=True, domain=False, tickCount=5))
    fills = alt.Scale(domain=plot.series, range=[GAIN, NEITHER, LOSS][: len(plot.series)])
    color = alt.Color("color:N", scale=fills, legend=alt.Legend(offset=8), title=None)
    bars = plot.chart(frame).mark_bar().encode(y=y, x=x, x2="right:Q", color=color)
    zero = _chart([{"y": 0}]).mark_rule(color="currentColor", opacity=0.5, aria=False).encode(x="y:Q")
    return alt.layer(_hinted(bars), zero).properties(width=WIDTH - 100, height=len(categories) * 22)


def _slope(plot: Plot) -> Any:
    """A line for each row, from its place before (x) to its place after (y), the best place at the top.

    There is a panel for each series; its title counts the lines that go up, down and neither way, which have a colour
    each. Of very many lines those drawn are spread evenly over the places, and the title says so.
    """
    import altair as alt
    import numpy as np
    import pandas as pd

    places = plot.frame[["x", "y"]].to_numpy(dtype=float)
    whole = bool(((places % 1 == 0) & (np.abs(places) < 2**53)).all())
    frame = plot.frame.astype({"x": int, "y": int}) if whole else plot.frame
    facets = list(frame.groupby("color", sort=False)) if plot.series else [("", frame)]
    width, height = (WIDTH // 2, 360) if len(facets) == 1 else (WIDTH // 3, 300)
    ticks = [float(tick) for tick in place_ticks(places.max())]
    axis = alt.Axis(grid=True, domain=False, values=ticks, title=None)
    x = alt.X("side:Q", scale=alt.Scale(domain=[0, 1], nice=False), axis=None)
    y = alt.Y("place:Q", scale=alt.Scale(domain=[ticks[-1], min(1.0, places.min())], nice=False), axis=axis)
    panels = []
    for facet, part in facets:
        up, down, equal = part["x"] > part["y"], part["x"] < part["y"], part["x"] == part["y"]
        counts = f"{up.sum()} up, {down.sum()} down, {equal.sum()} equal"
        if len(part) > MOST_LINES:
            order = part.sort_values(["x", "y"], kind="stable").index
            part = part.loc[order[np.linspace(0, len(part) - 1, MOST_LINES).round().astype(int)]]
            counts += f" ({MOST_LINES} drawn)"
        layers = []
        for way, color, most in ((equal, NEITHER, 0.45), (up, GAIN, 0.9), (down, LOSS, 0.9)):  # the last is on top
            lines = part[way.loc[part.index]]
            if lines.empty:
                continue
            lines = lines.assign(line=range(len(lines)), side=0, place=lines["x"])
            ends = plot.chart(pd.concat([lines, lines.assign(side=1, place=lines["y"])]))
            few = len(part) <= FEW
            faint = min(most, max(0.3, 8 / len(lines) ** 0.5))
            thin = ends.mark_line(color=color, strokeWidth=1.6 if few else 0.9, opacity=faint)
            layers.append(_hinted(thin.encode(x=x, y=y, detail="line:N")))
            if few:
                layers.append(ends.mark_circle(color=color, size=26, opacity=most, aria=False).encode(x=x, y=y))
        for role, left, align in (("x", 0, "left"), ("y", width, "right")):
            head = _chart([{"text": plot.names[role]}]).mark_text(align=align, dy=-12, limit=width // 2 - 4, aria=False)
            layers.append(head.encode(x=alt.value(left), y=alt.value(0), text="text:N"))
        below: dict[str, Any] = {"subtitle": counts} if facet else {}
        title = alt.TitleParams(cell(facet, 30) if facet else counts, fontWeight="bold", offset=8, **below)
        panels.append(alt.layer(*layers).properties(width=width, height=height, title=title))
    return alt.concat(*panels, columns=3)


KINDS = {
    "bars": Kind(_bars, most={"x": 40, "color": 12}),
    "distribution": Kind(_distribution, most={"x": 40, "color": 12}),
    "lines": Kind(_lines, numbers=("x", "y"), most={"color": 12}),
    "profile": Kind(_profile, most={"color": 12}),
    "scatter": Kind(_scatter, numbers=("x", "y")),
    "heatmap": Kind(_heatmap, numbers=("color",), most={"x": 30, "y": 40}),
    "waterfall": Kind(_waterfall, most={"color": 12}),
    "diverging": Kind(_diverging, most={"x": 40, "color": 3}),
    "slope": Kind(_slope, numbers=("x", "y"), most={"color": 12}),
}


def _distinct(frame: pd.DataFrame, role: str) -> list[str]:
    return list(dict.fromkeys(frame[role])) if role in frame else []


def _chart(rows: Sequence[Mapping[Any, Any]]) -> Any:
    import altair as alt

    return alt.Chart(alt.InlineData(values=list(rows)))


def _hinted(chart: Any) -> Any:
    import altair as alt

    return chart.encode(description=alt.Description("hint:N"))
