"""Reports of results: pages, charts, terminal tables, JSON and CSV.

This module formats single values for the terminal and the page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from shaketable.core.redaction import redact
from shaketable.core.results import MARK_SUFFIX

if TYPE_CHECKING:
    import pandas as pd

MISSING_TEXT = "–"
"""The text of a missing value."""

# Unsafe in a terminal or an XML file: control characters (a terminal interprets them), lone surrogates and
# non-characters (encoders reject them), and marks that change the direction of writing (they hide text).
_UNSAFE_CHARACTERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_PERCENTAGE = re.compile(r"[-+−]?\d[\d.,]*\s*%")


def clean(text: str) -> str:
    """Return the text without API keys, with unsafe characters replaced by U+FFFD.

    >>> clean("red \\x1b[31m alert")
    'red �[31m alert'
    """
    return _UNSAFE_CHARACTERS.sub("\ufffd", redact(text))


def escape_controls(text: str) -> str:
    r"""Escape the characters of JSON that a terminal or GitHub's runner (`##[`) would interpret; the data is the same.

    >>> escape_controls('{"a": "\x9b ##[x]"}')
    '{"a": "\\u009b #\\u0023[x]"}'
    """
    return _UNSAFE_CHARACTERS.sub(lambda sign: f"\\u{ord(sign.group()):04x}", text).replace("##[", r"#\u0023[")


def escape_formula(text: str) -> str:
    """Escape a text that a spreadsheet would run as a formula.

    >>> escape_formula("=1+1"), escape_formula("-12.5 %")
    ("'=1+1", '-12.5 %')
    """
    formula = re.match(r"[=+\-@\t\r\n＝＋－＠]", text) and not re.fullmatch(r"[-+]?\d[\d.,]*\s*%?|-", text)
    return clean(f"'{text}" if formula else text)


def format_number(value: float, decimals: int = 4) -> str:
    """Format a number: four decimals, fewer if it is large, an exponent if it would look like zero.

    >>> [format_number(x) for x in (0.31416, 1234.5, 123456.0, 0.00000321, -0.0)]
    ['0.3142', '1234.50', '123456', '3.2e-06', '0.0000']
    """
    size = abs(value)
    if not math.isfinite(value):
        return "inf" if value > 0 else "-inf" if value < 0 else MISSING_TEXT
    if 0 < size < 0.5 * 10**-decimals:
        return f"{value:.1e}"
    shown = decimals if size < 100 else min(decimals, 2) if size < 10_000 else 0
    return f"{value + 0.0:.{shown}f}"


def format_cell(value: object, max_chars: int = 0) -> str:
    """Format any value as one line of text of at most `max_chars` characters; 0 means no limit.

    >>> [format_cell(v) for v in (3, 0.5, True, None, float("nan"), "two\\nlines")]
    ['3', '0.5000', 'yes', '–', '–', 'two lines']
    """
    if is_missing(value):
        return MISSING_TEXT
    if isinstance(value, bool) or type(value).__name__ == "bool":  # numpy's bool is not a subclass of Python's
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return format_number(float(value))
    text = " ".join(clean(str(value)).split())
    return text if not max_chars or len(text) <= max_chars else text[: max_chars - 1].rstrip() + "…"


def join_names(names: Sequence[str], max_names: int = 0) -> str:
    """Join names with commas and "and"; those beyond `max_names` are counted.

    >>> join_names(["a", "b", "c"]), join_names(["a", "b", "c", "d"], max_names=2)
    ('a, b and c', 'a, b and 2 more')
    """
    shown = [format_cell(name) for name in names]
    if max_names and len(shown) > max_names + 1:
        shown = [*shown[:max_names], f"{len(shown) - max_names} more"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def format_column(column: pd.Series[Any], max_chars: int = 0) -> list[str]:
    """Format the values of a column: percentages (by the heading) with one decimal, counts with none.

    >>> import pandas as pd
    >>> format_column(pd.Series([-12.345, None], name="drop %"))
    ['-12.3', '–']
    >>> format_column(pd.Series([0.5], name="worst 25 %"))
    ['0.5000']
    >>> format_column(pd.Series([5.0, 56.0, None], name="ranks"))
    ['5', '56', '–']
    """
    if is_percentage(str(column.name)):
        return [
            format_percent(float(v)) if isinstance(v, Real) and not _is_integer(v) else format_cell(v, max_chars)
            for v in column
        ]
    known = [float(v) for v in column if isinstance(v, Real) and not _is_integer(v) and not is_missing(v)]
    if known and all(value.is_integer() for value in known) and max(map(abs, known)) > 1:
        return [
            f"{float(v):.0f}" if isinstance(v, Real) and not is_missing(v) else format_cell(v, max_chars)
            for v in column
        ]
    return [format_cell(v, max_chars) for v in column]


def format_frame(frame: pd.DataFrame, max_chars: int = 0) -> list[tuple[str, bool, list[str]]]:
    """Return the heading of each column, whether it is numeric, and its texts; marks follow their numbers.

    >>> import pandas as pd
    >>> format_frame(pd.DataFrame({"bm25": [0.25, 0.5], "bm25 mark": ["*", ""]}))
    [('bm25', True, ['0.2500*', '0.5000'])]
    """
    shown: list[tuple[str, bool, list[str]]] = []
    for i, name in enumerate(map(str, frame.columns)):
        column = frame.iloc[:, i]
        texts = format_column(column, max_chars)
        if shown and name == f"{frame.columns[i - 1]}{MARK_SUFFIX}":
            heading, numeric, numbers = shown.pop()
            marks = ["" if is_missing(mark) else clean(str(mark)) for mark in column]
            texts = [number + mark for number, mark in zip(numbers, marks, strict=True)]
            shown.append((heading, numeric, texts))
        else:
            shown.append((format_cell(frame.columns[i]), is_numeric(column), texts))
    return shown


def format_signed(value: float, decimals: int = 3) -> str:
    """Format a difference with its sign; a value that rounds to zero has none.

    >>> format_signed(-0.00004), format_signed(0.0121), format_signed(-3.0, 1)
    ('0.000', '+0.012', '-3.0')
    """
    text = f"{value:+.{decimals}f}"
    return text if text.strip("+-0.") else text[1:]


def format_percent(value: float) -> str:
    """Format a percentage with one decimal.

    >>> format_percent(12.34), format_percent(-0.01)
    ('12.3', '0.0')
    """
    return f"{round(value, 1) + 0.0:.1f}" if math.isfinite(value) else format_number(value)


def is_percentage(heading: str) -> bool:
    """Return True if the numbers under a heading are percentages; those of "worst 25 %" and "losses > 20 %" are not.

    >>> [is_percentage(text) for text in ("drop % (valid)", "%no@10", "CSR@10 %", "worst 25 %", "nDCG@10")]
    [True, True, True, False, False]
    """
    return "%" in re.sub(r"(?<![@\d])\d+\s*%", "", heading)


def _is_integer(value: object) -> bool:
    return isinstance(value, bool | Integral) or type(value).__name__ == "bool"


def is_missing(value: object) -> bool:
    """Return True for None, NaN, NaT and pandas' NA."""
    if isinstance(value, str):  # the most common case, without loading pandas
        return False
    import pandas as pd

    return value is None or (bool(pd.api.types.is_scalar(value)) and bool(pd.isna(value)))  # type: ignore[call-overload]


def is_numeric(column: pd.Series[Any]) -> bool:
    """Return True for a column of numbers, or of percentages as text; such columns are right-aligned."""
    import pandas as pd

    if pd.api.types.is_bool_dtype(column):
        return False
    if pd.api.types.is_numeric_dtype(column):
        return True
    values = [value for value in column if not is_missing(value)]
    return bool(values) and all(
        isinstance(v, Real) or (isinstance(v, str) and _PERCENTAGE.fullmatch(v.strip())) for v in values
    )
