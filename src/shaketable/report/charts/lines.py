"""Charts of lines and points."""

from __future__ import annotations

from typing import Any

from shaketable.report import format_cell
from shaketable.report.charts.plot import MAX_LABELLED_POINTS, Plot, add_hints, make_chart, make_constant
from shaketable.report.colours import GAIN_COLOR, LOSS_COLOR, NEUTRAL_COLOR, PALETTE
from shaketable.report.layout import (
    CHART_WIDTH_PX,
    choose_rank_ticks,
    extend_to_zero,
    pad_span,
    position_labels,
    spread_values,
    widen_span,
)

MAX_SLOPE_LINES = 400
"""The maximum number of lines in a slope panel; more lines hide each other and enlarge the page."""


def draw_lines(plot: Plot) -> Any:
    """Draw a line for each series, named at its right end, in a band of its interval if there is one."""
    import altair as alt

    frame, height = plot.frame.sort_values("x", kind="stable"), 260
    known = [frame[role].dropna() for role in ("y", "low", "high") if role in frame]
    span = extend_to_zero([value for values in known for value in values])
    ticks = 8
    if len(frame) and (frame["x"] % 1 == 0).all():  # no tick between two whole numbers
        ticks = max(1, min(ticks, int(frame["x"].max() - frame["x"].min())))
    x = alt.X("x:Q", title=plot.names["x"], axis=alt.Axis(tickCount=ticks), scale=alt.Scale(zero=False))
    y = plot.encode_y_axis(domain=span, nice=False)
    layers = []
    if "low" in frame:
        bands = make_chart(frame.dropna(subset=["low", "high"]).to_dict("records")).mark_area(opacity=0.13, aria=False)
        low = plot.encode_y_axis(domain=span, nice=False, field="low")
        layers.append(bands.encode(x=x, y=low, y2=alt.Y2("high:Q"), color=plot.encode_color()))
    layers.append(
        plot.build_chart(frame).mark_line(strokeWidth=2, aria=False).encode(x=x, y=y, color=plot.encode_color())
    )
    if frame["x"].nunique() <= MAX_LABELLED_POINTS:
        points = plot.build_chart(frame).mark_circle(size=24, opacity=1)
        layers.append(add_hints(points.encode(x=x, y=y, color=plot.encode_color())))
    if plot.series:
        ends = frame.groupby("color", sort=False).tail(1)
        ends = ends.assign(
            x=frame["x"].max(), y=spread_values(list(ends["y"]), 13 / height * (span[1] - span[0]), span)
        )
        names = make_chart(ends.to_dict("records")).mark_text(align="left", dx=8, limit=150, aria=False)
        layers.append(names.encode(x=x, y=y, text=alt.Text("color:N"), color=plot.encode_color()))
    return alt.layer(*layers).properties(width=CHART_WIDTH_PX - 60, height=height)


def draw_profile(plot: Plot) -> Any:
    """Draw the score of each topic, sorted by mean; many topics are thin lines under a running mean."""
    import altair as alt

    topics = list(plot.frame.groupby("x", sort=False)["y"].mean().sort_values(kind="stable").index)
    positions = {topic: position for position, topic in enumerate(topics)}
    frame = plot.frame.assign(position=plot.frame["x"].map(positions)).sort_values("position", kind="stable")
    title = f"{plot.names['x']} ({len(topics)}, sorted by mean {plot.names['y']}"
    color, y = plot.encode_color(alt.Legend(symbolType="stroke")), plot.encode_y_axis()
    if len(topics) <= MAX_LABELLED_POINTS:
        axis = alt.Axis(labelAngle=-90, labelLimit=90, labelOverlap=False)
        x = alt.X("x:O", sort=topics, title=f"{title})", axis=axis)
        line = plot.build_chart(frame).mark_line(strokeWidth=1, opacity=0.5, aria=False).encode(x=x, y=y, color=color)
        points = plot.build_chart(frame).mark_circle(size=26, opacity=1).encode(x=x, y=y, color=color)
        layers = [line, add_hints(points)]
    else:
        window = len(topics) // 12 | 1
        scores = frame.groupby("color", sort=False)["y"] if plot.series else frame.groupby(lambda _: 0)["y"]
        mean = scores.transform(lambda y: y.rolling(window, center=True, min_periods=1).mean())
        scale = alt.Scale(domain=[0, len(topics) - 1], nice=False)
        x = alt.X("position:Q", title=f"{title}; thick: mean of {window})", axis=alt.Axis(labels=False), scale=scale)
        thin = plot.build_chart(frame).mark_line(strokeWidth=0.7, opacity=0.3, aria=False)
        thick = plot.build_chart(frame.assign(y=mean)).mark_line(strokeWidth=2.2, aria=False)
        layers = [line.encode(x=x, y=y, color=color) for line in (thin, thick)]
    return alt.layer(*layers).properties(width=CHART_WIDTH_PX + 80, height=260)


def draw_scatter(plot: Plot) -> Any:
    """Draw points, labelled if each is a series of its own or has a label, otherwise coloured by series.

    Intervals are lines through the point. Points with the same `join` are joined in the order of the table, and a
    point with a `mark` is drawn as that text. A point with a lower `shade` is paler.
    """
    import altair as alt
    import pandas as pd

    frame, height = plot.frame, 340
    wide, high = ([frame[role] for role in ends if role in frame] for ends in (("x_low", "x_high"), ("low", "high")))
    across, up = (
        widen_span(pad_span(pd.concat([frame[role], *ends]).dropna())) for role, ends in (("x", wide), ("y", high))
    )
    axis = alt.Axis(grid=True, domain=False, tickCount=7)
    x = alt.X("x:Q", title=plot.names["x"], scale=alt.Scale(domain=across, nice=False), axis=axis)
    names = frame["label"] if "label" in frame else frame["color"] if plot.series else None
    alone = names is not None and names.is_unique
    few = len(plot.series) <= len(PALETTE)
    legend = alt.Legend() if "label" in frame or not alone else None
    color = plot.encode_color(legend) if few else make_constant(alt.ColorValue, PALETTE[0])
    y = plot.encode_y_axis(domain=up, nice=False)
    layers = []
    if "join" in frame:
        lines = plot.build_chart(frame.assign(position=range(len(frame))).dropna(subset="join"))
        line = lines.mark_line(strokeWidth=1.2, opacity=0.6, color=NEUTRAL_COLOR, aria=False)
        layers.append(line.encode(x=x, y=y, detail=alt.Detail("join:N"), order=alt.Order("position:Q")))
    marked = frame["mark"].fillna("") != "" if "mark" in frame else frame["x"] != frame["x"]
    size = 60 if len(frame) <= MAX_LABELLED_POINTS else 24
    if "shade" in frame:
        shaded = frame.assign(shade=frame["shade"].fillna(frame["shade"].max()))
        opacity = alt.Opacity("shade:Q", scale=alt.Scale(range=[0.2, 1.0]), legend=None)
        points = plot.build_chart(shaded[~marked]).mark_circle(size=size).encode(opacity=opacity)
    else:
        points = plot.build_chart(frame[~marked]).mark_circle(size=size, opacity=0.85)
    layers.append(add_hints(points.encode(x=x, y=y, color=color)))
    if marked.any():
        marks = plot.build_chart(frame[marked]).mark_text(fontSize=18, fontWeight="bold", aria=False)
        layers.append(marks.encode(x=x, y=y, color=color, text=alt.Text("mark:N")))
    if high:
        lines = plot.build_chart(frame).mark_rule(opacity=0.45, aria=False)
        bottom = plot.encode_y_axis(domain=up, nice=False, field="low")
        layers.append(lines.encode(x=x, y=bottom, y2=alt.Y2("high:Q"), color=color))
    if wide:
        lines = plot.build_chart(frame).mark_rule(opacity=0.45, aria=False)
        start = alt.X("x_low:Q", title=plot.names["x"], scale=alt.Scale(domain=across, nice=False), axis=axis)
        layers.append(lines.encode(x=start, x2=alt.X2("x_high:Q"), y=y, color=color))
    if names is not None and alone and len(frame) <= MAX_LABELLED_POINTS:
        lefts = (frame["x"] - across[0]) / (across[1] - across[0]) * CHART_WIDTH_PX
        tops = (up[1] - frame["y"]) / (up[1] - up[0]) * height
        positions = position_labels(list(zip(lefts, tops, strict=True)), list(names))
        for text, (left, top, align) in zip(names, positions, strict=True):
            name = make_chart([{"text": text}]).mark_text(align=align, baseline="middle", limit=170, aria=False)
            layers.append(
                name.encode(
                    x=make_constant(alt.XValue, left), y=make_constant(alt.YValue, top), text=alt.Text("text:N")
                )
            )
    return alt.layer(*layers).properties(width=CHART_WIDTH_PX, height=height)


def draw_slope(plot: Plot) -> Any:
    """Draw a line for each row, from its rank before (x) to its rank after (y), the best rank at the top.

    Each series has a panel; its title counts the lines that go up, down and neither, each in its own colour. At most
    `MAX_SLOPE_LINES` lines are drawn, spread evenly over the ranks; the title reports the limit.
    """
    import altair as alt
    import numpy as np
    import pandas as pd

    ranks = plot.frame[["x", "y"]].to_numpy(dtype=float)
    whole = bool(((ranks % 1 == 0) & (np.abs(ranks) < 2**53)).all())
    frame = plot.frame.astype({"x": int, "y": int}) if whole else plot.frame
    facets = list(frame.groupby("color", sort=False)) if plot.series else [("", frame)]
    width, height = (CHART_WIDTH_PX // 2, 360) if len(facets) == 1 else (CHART_WIDTH_PX // 3, 300)
    ticks = [float(tick) for tick in choose_rank_ticks(ranks.max())]
    axis = alt.Axis(grid=True, domain=False, values=ticks, title=None)
    x = alt.X("side:Q", scale=alt.Scale(domain=[0, 1], nice=False), axis=None)
    y = alt.Y("rank:Q", scale=alt.Scale(domain=[ticks[-1], min(1.0, ranks.min())], nice=False), axis=axis)
    panels = []
    for facet, part in facets:
        up, down, equal = part["x"] > part["y"], part["x"] < part["y"], part["x"] == part["y"]
        counts = f"{up.sum()} up, {down.sum()} down, {equal.sum()} equal"
        if len(part) > MAX_SLOPE_LINES:
            order = part.sort_values(["x", "y"], kind="stable").index
            part = part.loc[order[np.linspace(0, len(part) - 1, MAX_SLOPE_LINES).round().astype(int)]]
            counts += f" ({MAX_SLOPE_LINES} drawn)"
        layers = []
        for way, color, most in (
            (equal, NEUTRAL_COLOR, 0.45),
            (up, GAIN_COLOR, 0.9),
            (down, LOSS_COLOR, 0.9),
        ):  # the last direction is drawn on top
            lines = part[way.loc[part.index]]
            if lines.empty:
                continue
            lines = lines.assign(line=range(len(lines)), side=0, rank=lines["x"])
            ends = plot.build_chart(pd.concat([lines, lines.assign(side=1, rank=lines["y"])]))
            few = len(part) <= MAX_LABELLED_POINTS
            faint = min(most, max(0.3, 8 / len(lines) ** 0.5))
            thin = ends.mark_line(color=color, strokeWidth=1.6 if few else 0.9, opacity=faint)
            layers.append(add_hints(thin.encode(x=x, y=y, detail=alt.Detail("line:N"))))
            if few:
                layers.append(ends.mark_circle(color=color, size=26, opacity=most, aria=False).encode(x=x, y=y))
        for role, left, align in (("x", 0, "left"), ("y", width, "right")):
            head = make_chart([{"text": plot.names[role]}]).mark_text(
                align=align, dy=-12, limit=width // 2 - 4, aria=False
            )
            layers.append(
                head.encode(x=make_constant(alt.XValue, left), y=make_constant(alt.YValue, 0), text=alt.Text("text:N"))
            )
        below: dict[str, Any] = {"subtitle": counts} if facet else {}
        title = alt.TitleParams(format_cell(facet, 30) if facet else counts, fontWeight="bold", offset=8, **below)
        panels.append(alt.layer(*layers).properties(width=width, height=height, title=title))
    return alt.concat(*panels, columns=3)
