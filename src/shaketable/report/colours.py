"""The colours of pages and drawings: told apart by everybody, and read on light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence

# Two of Okabe and Ito's colours, then those that stay furthest apart for people who see two primaries only.
PALETTE = (
    "#0072b2", "#d55e00", "#26a9b8", "#8c3168", "#a39c35", "#4f6420",
    "#a6726c", "#5f6f7f", "#5b4fb8", "#d37295", "#c39a10", "#009e73",
)  # fmt: skip
ON_DARK = {"#0072b2": "#3a96d0", "#8c3168": "#c4689f", "#4f6420": "#86a03c", "#5b4fb8": "#8f86e0", "#5f6f7f": "#8496a8"}
"""What a page puts in the place of the darkest colours when it is dark itself."""
GAIN, LOSS, NEITHER = PALETTE[0], PALETTE[1], "#9aa3ab"
ONE_SIDED = ("#eef4fa", "#b9d4ea", "#6baed6", "#2171b5", "#08306b")
TWO_SIDED = ("#8c3a00", "#dd9455", "#f6f3ee", "#6fa8d6", "#0b4a86")
INKS = ("#000000", "#ffffff")


def mixed(ramp: Sequence[str], share: float) -> str:
    """The colour at a share of the way along a ramp.

    >>> mixed(("#000000", "#ffffff"), 0.5)
    '#808080'
    """
    place = min(max(share, 0.0), 1.0) * (len(ramp) - 1)
    left = min(int(place), len(ramp) - 2)
    pairs = zip(_rgb(ramp[left]), _rgb(ramp[left + 1]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * (place - left)):02x}" for a, b in pairs)


def ink_on(fill: str) -> str:
    """Dark or white, whichever is read better on this colour.

    >>> ink_on("#08306b"), ink_on("#eef4fa")
    ('#ffffff', '#000000')
    """
    return max(INKS, key=lambda ink: contrast(ink, fill))


def contrast(one: str, other: str) -> float:
    """How well one colour is read on another, from 1 to 21 (WCAG 2).

    >>> contrast("#000000", "#ffffff")
    21.0
    """
    low, high = sorted(_luminance(color) for color in (one, other))
    return (high + 0.05) / (low + 0.05)


def _luminance(color: str) -> float:
    linear = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in (c / 255 for c in _rgb(color)))
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _rgb(color: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(color[1:]))
