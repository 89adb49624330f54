"""The input of a chart: its rows, the names of its roles, and its colours."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from shaketable.report import format_cell, format_number, format_percent, is_missing, is_percentage
from shaketable.report.colours import PALETTE

if TYPE_CHECKING:
    import pandas as pd

Colors: TypeAlias = Mapping[str, str]
"""Series -> colour."""
MAX_LABELLED_POINTS = 60
"""The maximum number of labelled topics or points."""


@dataclass(frozen=True)
class Plot:
    """The input of a chart: the roles as columns `x`, `y`, `color`, their names, and the colours of the series."""

    frame: pd.DataFrame
    names: Mapping[str, str]
    colors: Colors
    text_roles: tuple[str, ...] = ()
    """The roles that hold texts; a page looks up the queries of a mark by them."""

    @property
    def series(self) -> list[str]:
        """The series, in the order of the table."""
        return list_distinct(self.frame, "color")

    def build_chart(self, frame: pd.DataFrame) -> Any:
        """Return a chart of these rows, each with a tooltip."""
        rows = [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]
        for row in rows:
            said = [f"{name}: {self.format_value(role, row[role])}" for role, name in self.names.items()]
            said += [format_cell(row["label"])] if "label" in row else []
            whose = [row[role] for role in self.text_roles if not is_missing(row.get(role))]
            row["hint"] = json.dumps(
                ["; ".join([*said, *self._describe_sample(row)]), whose if self.text_roles else []]
            )
        return make_chart(rows)

    def format_value(self, role: str, value: object, decimals: int = 4) -> str:
        """Format a value; a percentage (by the name of its role) has one decimal."""
        if isinstance(value, float) and not is_missing(value):
            return format_percent(value) if is_percentage(self.names[role]) else format_number(value, decimals)
        return format_cell(value)

    def _describe_sample(self, row: Mapping[str, Any]) -> Iterator[str]:
        """Yield the interval and the number of queries of a row, if they are known."""
        value = "color" if "y" not in self.names or isinstance(row.get("y"), str) else "y"
        if not is_missing(row.get("low")) and not is_missing(row.get("high")):
            yield (
                f"95 %: {self.format_value(value, float(row['low']), 3)} to "
                f"{self.format_value(value, float(row['high']), 3)}"
            )
        if not is_missing(row.get("n")):
            yield f"queries: {row['n']:.0f}"

    def encode_color(self, legend: Any = None) -> Any:
        """Encode the colour of a series; without series, the first colour of the palette."""
        import altair as alt

        if not self.series:
            return make_constant(alt.ColorValue, PALETTE[0])
        scale = alt.Scale(domain=self.series, range=[self.colors[name] for name in self.series])
        return alt.Color("color:N", scale=scale, legend=legend, title=None)

    def encode_y_axis(self, field: str = "y", **scale: Any) -> Any:
        """Encode the vertical axis: a light grid, and a horizontal title above it."""
        import altair as alt

        flat: dict[str, Any] = {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "end", "titleX": 0, "titleY": -12}
        axis = alt.Axis(grid=True, domain=False, tickCount=6, **flat)
        return alt.Y(f"{field}:Q", title=self.names["y"], scale=alt.Scale(**scale), axis=axis)


@dataclass(frozen=True)
class ChartKind:
    """A kind of chart: the roles with numbers (the last is the value), and the limit of distinct values of a role."""

    draw: Callable[[Plot], Any]
    numeric_roles: tuple[str, ...] = ("y",)
    max_values: Mapping[str, int] = field(default_factory=dict)


def list_distinct(frame: pd.DataFrame, role: str) -> list[str]:
    """Return the distinct values of a column, in order of appearance; none if the column is missing."""
    return list(dict.fromkeys(frame[role])) if role in frame else []


def make_chart(rows: Sequence[Mapping[Any, Any]]) -> Any:
    """Return an Altair chart of these rows, without marks.

    Encode it with channels, such as `alt.X2("high:Q")`: Altair takes 10 ms to find the channel of a plain "high:Q".
    """
    import altair as alt

    return alt.Chart(alt.InlineData(values=tuple(rows)))  # Altair copies lists each time that a chart is changed


def make_constant(channel: Any, value: object) -> Any:
    """Return a channel, such as `alt.XValue`, with one value for all marks; Altair's own classes have no types."""
    return channel(value)


def add_hints(chart: Any) -> Any:
    """Return the chart with the column "hint" as the description of each mark."""
    import altair as alt

    return chart.encode(description=alt.Description("hint:N"))
