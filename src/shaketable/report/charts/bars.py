"""Charts of bars, boxes and cells."""

from __future__ import annotations

from collections import Counter
from typing import Any

from shaketable.measures.significance import MIN_QUERIES
from shaketable.report import format_cell
from shaketable.report.charts.plot import MAX_LABELLED_POINTS, Plot, add_hints, list_distinct, make_chart
from shaketable.report.colours import (
    DIVERGING_RAMP,
    GAIN_COLOR,
    LOSS_COLOR,
    NEUTRAL_COLOR,
    SEQUENTIAL_RAMP,
    choose_ink,
    interpolate_color,
)
from shaketable.report.layout import CHART_WIDTH_PX, pad_span


def draw_bars(plot: Plot) -> Any:
    """Draw horizontal bars with space for long names; the columns `low` and `high` become whiskers."""
    import altair as alt

    frame = plot.frame
    grouped = len(plot.series) > 1 and not frame["color"].equals(frame["x"])
    categories = list_distinct(frame, "x")
    y = alt.Y("x:N", sort=categories, title=None, axis=alt.Axis(domain=False), scale=alt.Scale(padding=0.22))
    offset = {"yOffset": alt.YOffset("color:N", sort=plot.series)} if grouped else {}
    x = alt.X("y:Q", title=plot.names["y"], axis=alt.Axis(grid=True, domain=False, tickCount=6))
    bars = (
        plot.build_chart(frame)
        .mark_bar()
        .encode(y=y, x=x, color=plot.encode_color(alt.Legend(offset=8) if grouped else None), **offset)
    )
    zero = make_chart([{"y": 0}]).mark_rule(color="currentColor", opacity=0.5, aria=False).encode(x=alt.X("y:Q"))
    layers = [add_hints(bars), zero]
    if "low" in frame:
        rule = make_chart(frame.dropna(subset=["low", "high"]).to_dict("records")).mark_rule(
            color="currentColor", strokeWidth=1.3, aria=False
        )
        layers.append(rule.encode(y=y, x=alt.X("low:Q"), x2=alt.X2("high:Q"), **offset))
    high = len(categories) * (10 * len(plot.series) + 8 if grouped else 22)
    return alt.layer(*layers).properties(width=CHART_WIDTH_PX - 100, height=high)


def draw_distribution(plot: Plot) -> Any:
    """Draw horizontal boxes from the first to the third quartile, a tick at the median, whiskers from 5 % to 95 %."""
    import altair as alt
    import numpy as np

    roles = ["x", *(["color"] if plot.series else [])]
    levels = {"p5": 0.05, "q1": 0.25, "y": 0.5, "q3": 0.75, "p95": 0.95}
    groups = plot.frame.groupby(roles, sort=False)["y"]
    frame = (
        groups.quantile(np.array(list(levels.values()))).unstack().set_axis(list(levels), axis="columns").reset_index()
    )
    categories = list_distinct(frame, "x")
    y = alt.Y("x:N", sort=categories, title=None, axis=alt.Axis(domain=False), scale=alt.Scale(padding=0.22))
    offset = {"yOffset": alt.YOffset("color:N", sort=plot.series)} if len(plot.series) > 1 else {}
    axis = alt.Axis(grid=True, domain=False, tickCount=6)
    title = plot.names["y"]
    chart = plot.build_chart(frame)
    boxes = chart.mark_bar(opacity=0.75).encode(
        y=y,
        x=alt.X("q1:Q", title=title, axis=axis),
        x2=alt.X2("q3:Q"),
        color=plot.encode_color(alt.Legend(offset=8) if offset else None),
        **offset,
    )
    plain = {"color": "currentColor", "aria": False}
    whiskers = chart.mark_rule(opacity=0.6, **plain).encode(
        y=y, x=alt.X("p5:Q", title=title), x2=alt.X2("p95:Q"), **offset
    )
    medians = chart.mark_tick(thickness=2, **plain).encode(y=y, x=alt.X("y:Q", title=title), **offset)
    high = len(categories) * (14 * max(1, len(plot.series)) + 8)
    return alt.layer(whiskers, add_hints(boxes), medians).properties(width=CHART_WIDTH_PX - 100, height=high)


def draw_heatmap(plot: Plot) -> Any:
    """Draw a table of coloured cells with their numbers; the ramp is diverging if numbers are below zero.

    A number from fewer than `MIN_QUERIES` queries has their count beside it.
    """
    import altair as alt

    frame, values = plot.frame, plot.frame["color"]
    low, high = values.min(), values.max()
    if low < 0:
        ramp, low, high = DIVERGING_RAMP, -max(-low, high), max(-low, high)
    else:
        ramp, high = SEQUENTIAL_RAMP, high if high > low else low + 1
    fills = [interpolate_color(ramp, (value - low) / (high - low)) for value in values]
    counts = frame["n"] if "n" in frame else [MIN_QUERIES] * len(frame)
    texts = [
        plot.format_value("color", float(v), 3) + (f" ({n:.0f})" if n < MIN_QUERIES else "")
        for v, n in zip(values, counts, strict=True)
    ]
    frame = frame.assign(fill=fills, ink=[choose_ink(fill) for fill in fills], text=texts)
    columns, rows = list_distinct(frame, "x"), list_distinct(frame, "y")
    width = min(90, max(46, CHART_WIDTH_PX // len(columns)))
    angle = 0 if max(map(len, columns)) * 6.5 < width else -40
    above = alt.Axis(orient="top", domain=False, labelAngle=angle, labelLimit=150, labelOverlap=False)
    x = alt.X("x:N", sort=columns, title=plot.names["x"], axis=above)
    y = alt.Y("y:N", sort=rows, title=plot.names["y"], axis=alt.Axis(domain=False))
    cells = plot.build_chart(frame).mark_rect(stroke="#ffffff", strokeWidth=1, strokeOpacity=0.6)
    cells = cells.encode(x=x, y=y, fill=alt.Fill("fill:N", scale=None))
    numbers = make_chart(frame.to_dict("records")).mark_text(aria=False)
    numbers = numbers.encode(x=x, y=y, text=alt.Text("text:N"), color=alt.Color("ink:N", scale=None))
    return alt.layer(add_hints(cells), numbers).properties(width=len(columns) * width, height=len(rows) * 26)


def draw_waterfall(plot: Plot) -> Any:
    """Draw the sorted gain or loss of each query: a panel for each series, with the counts of the signs as title."""
    import altair as alt

    facets = list(plot.frame.groupby("color", sort=False)) if plot.series else [("", plot.frame)]
    facets = [
        (facet, part) for facet, part in facets if (part["y"] != 0).any()
    ] or facets  # without the baseline itself
    width, height = (CHART_WIDTH_PX + 80, 240) if len(facets) == 1 else (CHART_WIDTH_PX // 2, 130)
    low, high = pad_span(plot.frame["y"])
    domain = [min(low, 0), max(high, 0)]
    panels = []
    for facet, part in facets:
        part = part.sort_values("y", ascending=False, kind="stable")
        part = part.assign(position=range(len(part)), sign=[GAIN_COLOR if y > 0 else LOSS_COLOR for y in part["y"]])
        signs = Counter("up" if y > 0 else "down" if y < 0 else "equal" for y in part["y"])
        counts = ", ".join(f"{signs[sign]} {sign}" for sign in ("up", "down", "equal"))
        named = len(facets) == 1 and len(part) <= MAX_LABELLED_POINTS and part["x"].is_unique
        sort = {"sort": list(part["x"])} if named else {"scale": alt.Scale(domain=[-0.5, len(part) - 0.5], nice=False)}
        axis = alt.Axis(labels=named, domain=False, labelAngle=-90, labelLimit=90, labelOverlap=False)
        x = alt.X(
            "x:O" if named else "position:Q", title=f"{plot.names['x']}, sorted by {plot.names['y']}", axis=axis, **sort
        )
        bars = plot.build_chart(part).mark_bar(width=min(40, max(0.6, 0.85 * width / len(part))))
        fill = alt.Fill("sign:N", scale=None)
        panel = add_hints(bars.encode(x=x, y=plot.encode_y_axis(domain=domain, nice=False).title(None), fill=fill))
        title = alt.TitleParams(f"{format_cell(facet, 30)}: {counts}" if facet else counts, fontWeight="bold", offset=8)
        panels.append(panel.properties(width=width, height=height, title=title))
    return alt.concat(*panels, columns=2)


def draw_diverging(plot: Plot) -> Any:
    """Draw horizontal bars of three shares: the last series left of zero, the first right, the second around it."""
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
    categories = list_distinct(frame, "x")
    y = alt.Y("x:N", sort=categories, title=None, axis=alt.Axis(domain=False), scale=alt.Scale(padding=0.22))
    scale = alt.Scale(domain=[-1, 1])
    x = alt.X("left:Q", title=plot.names["y"], scale=scale, axis=alt.Axis(grid=True, domain=False, tickCount=5))
    fills = alt.Scale(domain=plot.series, range=[GAIN_COLOR, NEUTRAL_COLOR, LOSS_COLOR][: len(plot.series)])
    color = alt.Color("color:N", scale=fills, legend=alt.Legend(offset=8), title=None)
    bars = plot.build_chart(frame).mark_bar().encode(y=y, x=x, x2=alt.X2("right:Q"), color=color)
    zero = make_chart([{"y": 0}]).mark_rule(color="currentColor", opacity=0.5, aria=False).encode(x=alt.X("y:Q"))
    return alt.layer(add_hints(bars), zero).properties(width=CHART_WIDTH_PX - 100, height=len(categories) * 22)
