"""The layout of a chart: spans of axes, ticks, and labels that do not overlap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from typing import TypeAlias

Span: TypeAlias = tuple[float, float]

CHART_WIDTH_PX = 560
MIN_SPAN = 0.1


def widen_span(span: Span) -> Span:
    """Widen a span between 0 and 1 to at least a tenth, so that a difference of a hundredth does not look large.

    >>> tuple(round(end, 3) for end in widen_span((0.4, 0.42)))
    (0.36, 0.46)
    """
    low, high = span
    if low < 0 or high > 1 or high - low >= MIN_SPAN:
        return span
    middle = min(max((low + high) / 2, MIN_SPAN / 2), 1 - MIN_SPAN / 2)
    return middle - MIN_SPAN / 2, middle + MIN_SPAN / 2


def pad_span(values: Iterable[float], share: float = 0.06) -> Span:
    """Return the span of the values with a margin at both ends.

    >>> pad_span([0.0, 1.0], 0.5)
    (-0.5, 1.5)
    """
    values = list(values)
    low, high = min(values), max(values)
    padding = (high - low) * share or abs(high) * share or 1.0
    return low - padding, high + padding


def extend_to_zero(values: Iterable[float]) -> Span:
    """Return the span of an axis: from zero, unless all values are far from it.

    >>> extend_to_zero([0.2, 1.0])[0], round(extend_to_zero([0.8, 1.0])[0], 3)
    (0.0, 0.788)
    >>> extend_to_zero([-1.0, -0.2])[1], round(extend_to_zero([-1.0, -0.8])[1], 3), extend_to_zero([-1.0, 1.0])[1] > 1
    (0.0, -0.788, True)
    """
    values = list(values)
    low, high = pad_span(values)
    if min(values) >= 0:
        return (0.0 if min(values) <= max(values) / 2 else max(0.0, low)), high
    return low, (0.0 if max(values) <= 0 and max(values) >= min(values) / 2 else high)


def choose_rank_ticks(last: float) -> list[int]:
    """Return the ranks that an axis labels: 1, and round numbers up to the last rank.

    >>> choose_rank_ticks(98), choose_rank_ticks(23)
    ([1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100], [1, 5, 10, 15, 20, 25])
    """
    steps = (factor * 10**power for power in range(300) for factor in (1, 2, 5))
    step = next(step for step in steps if last <= 10 * step)
    return [1, *(step * number for number in range(1, max(2, ceil(last / step)) + 1) if step * number > 1)]


def spread_values(values: Sequence[float], gap: float, span: Span) -> list[float]:
    """Return the values moved apart to differ by `gap`, in the same order, inside the span if they fit.

    >>> spread_values([1.0, 1.0, 5.0], 2.0, (0.0, 10.0))
    [1.0, 3.0, 5.0]
    >>> spread_values([9.0, 10.0], 2.0, (0.0, 10.0))
    [8.0, 10.0]
    """
    order = sorted(range(len(values)), key=lambda i: values[i])
    spread = [values[i] for i in order]
    for i in range(1, len(spread)):
        spread[i] = max(spread[i], spread[i - 1] + gap)
    ceiling = span[1]
    for i in reversed(range(len(spread))):
        spread[i] = min(spread[i], ceiling)
        ceiling = spread[i] - gap
    moved = dict(zip(order, spread, strict=True))
    return [moved[i] for i in range(len(values))]


def position_labels(points: Sequence[tuple[float, float]], texts: Sequence[str]) -> list[tuple[float, float, str]]:
    """Return the position of each label with the least overlap: right, left, above or below its point."""
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y in points]
    positions = []
    for (x, y), text in zip(points, texts, strict=True):
        wide = min(170.0, 6.2 * len(text))
        sides = (
            (x + 8, y, "left", x + 8),
            (x - 8, y, "right", x - 8 - wide),
            (x, y - 13, "center", x - wide / 2),
            (x, y + 13, "center", x - wide / 2),
        )
        boxes = [(left, top - 6, left + wide, top + 6) for _, top, _, left in sides]
        hidden = [
            sum(a < right and left < b and c < low and top < d for a, c, b, d in taken)
            + (left < 0 or right > CHART_WIDTH_PX)
            for left, top, right, low in boxes
        ]
        best = hidden.index(min(hidden))
        taken.append(boxes[best])
        positions.append(sides[best][:3])
    return positions
