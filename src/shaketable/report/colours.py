"""Colours of light and dark pages and charts, distinguishable with colour blindness."""

from __future__ import annotations

from collections.abc import Sequence

# Two of Okabe and Ito's colours, then the colours that stay furthest apart under dichromacy.
PALETTE = (
    "#0072b2", "#d55e00", "#26a9b8", "#8c3168", "#a39c35", "#4f6420",
    "#a6726c", "#5f6f7f", "#5b4fb8", "#d37295", "#c39a10", "#009e73",
)  # fmt: skip
DARK_MODE_COLORS = {
    "#0072b2": "#3a96d0",
    "#8c3168": "#c4689f",
    "#4f6420": "#86a03c",
    "#5b4fb8": "#8f86e0",
    "#5f6f7f": "#8496a8",
}
"""Dark colour -> a lighter colour for a dark page."""
GAIN_COLOR, LOSS_COLOR, NEUTRAL_COLOR = PALETTE[0], PALETTE[1], "#9aa3ab"
SEQUENTIAL_RAMP = ("#eef4fa", "#b9d4ea", "#6baed6", "#2171b5", "#08306b")
DIVERGING_RAMP = ("#8c3a00", "#dd9455", "#f6f3ee", "#6fa8d6", "#0b4a86")
INK_COLORS = ("#000000", "#ffffff")


def interpolate_color(ramp: Sequence[str], share: float) -> str:
    """Return the colour at a share of the length of a ramp.

    >>> interpolate_color(("#000000", "#ffffff"), 0.5)
    '#808080'
    """
    position = min(max(share, 0.0), 1.0) * (len(ramp) - 1)
    left = min(int(position), len(ramp) - 2)
    pairs = zip(_parse_rgb(ramp[left]), _parse_rgb(ramp[left + 1]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * (position - left)):02x}" for a, b in pairs)


def choose_ink(fill: str) -> str:
    """Return black or white, by the higher contrast with this colour.

    >>> choose_ink("#08306b"), choose_ink("#eef4fa")
    ('#ffffff', '#000000')
    """
    return max(INK_COLORS, key=lambda ink: contrast_ratio(ink, fill))


def contrast_ratio(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, from 1 to 21 (WCAG 2).

    >>> contrast_ratio("#000000", "#ffffff")
    21.0
    """
    low, high = sorted(_luminance(color) for color in (one, other))
    return (high + 0.05) / (low + 0.05)


def _luminance(color: str) -> float:
    linear = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in (c / 255 for c in _parse_rgb(color)))
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _parse_rgb(color: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(color[1:]))
