"""Results to people and programs: pages, plots, terminal tables, JSON and CSV.

How one value is written as text is decided here, once, for the terminal and the page alike.
"""

from __future__ import annotations

import math
import re
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

NOTHING = "–"
"""What stands where a value is missing."""

# What may not reach a terminal or an XML file: control characters (a terminal obeys them), lone surrogates and
# non-characters (no encoder takes them), and the marks that turn the direction of writing (they hide what is there).
_UNSHOWABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_PERCENTAGE = re.compile(r"[-+−]?\d[\d.,]*\s*%")


def clean(text: str) -> str:
    """The text with whatever cannot be shown safely replaced by a mark that shows it was there.

    >>> clean("red \\x1b[31m alert")
    'red �[31m alert'
    """
    return _UNSHOWABLE.sub("\ufffd", text)


def escaped(text: str) -> str:
    r"""JSON whose strings show what `clean` would replace as escapes: nothing is lost, and a terminal obeys nothing.

    >>> escaped('{"a": "\x9b"}')
    '{"a": "\\u009b"}'
    """
    return _UNSHOWABLE.sub(lambda sign: f"\\u{ord(sign.group()):04x}", text)


def harmless(text: str) -> str:
    """A text for a spreadsheet, which runs a cell that starts like a formula: such a one is marked as text.

    >>> harmless("=1+1"), harmless("-12.5 %")
    ("'=1+1", '-12.5 %')
    """
    formula = re.match(r"[=+\-@\t\r\n＝＋－＠]", text) and not re.fullmatch(r"[-+]?\d[\d.,]*\s*%?|-", text)
    return clean(f"'{text}" if formula else text)


def number(value: float, decimals: int = 4) -> str:
    """A measured number: four decimals, fewer where it is large, an exponent where it would look like zero.

    >>> [number(x) for x in (0.31416, 1234.5, 123456.0, 0.00000321, -0.0)]
    ['0.3142', '1234.50', '123456', '3.2e-06', '0.0000']
    """
    size = abs(value)
    if not math.isfinite(value):
        return "inf" if value > 0 else "-inf" if value < 0 else NOTHING
    if 0 < size < 0.5 * 10**-decimals:
        return f"{value:.1e}"
    shown = decimals if size < 100 else min(decimals, 2) if size < 10_000 else 0
    return f"{value + 0.0:.{shown}f}"


def cell(value: object, most: int = 0) -> str:
    """Any value as one line of text, cut to `most` characters if that is given.

    >>> [cell(v) for v in (3, 0.5, True, None, float("nan"), "two\\nlines")]
    ['3', '0.5000', 'yes', '–', '–', 'two lines']
    """
    if missing(value):
        return NOTHING
    if isinstance(value, bool) or type(value).__name__ == "bool":  # numpy's is no subclass of Python's
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return number(float(value))
    text = " ".join(clean(str(value)).split())
    return text if not most or len(text) <= most else text[: most - 1].rstrip() + "…"


def cells(column: pd.Series[Any], most: int = 0) -> list[str]:
    """The values of a column as texts; what is in per cent, by its heading, has one decimal, and counts have none.

    >>> import pandas as pd
    >>> cells(pd.Series([-12.345, None], name="drop %")), cells(pd.Series([0.5], name="worst 25 %"))
    (['-12.3', '–'], ['0.5000'])
    >>> cells(pd.Series([5.0, 56.0, None], name="places"))
    ['5', '56', '–']
    """
    if is_percentage(str(column.name)):
        return [percent(float(v)) if isinstance(v, Real) and not _whole(v) else cell(v, most) for v in column]
    known = [float(v) for v in column if isinstance(v, Real) and not _whole(v) and not missing(v)]
    if known and all(value.is_integer() for value in known) and max(map(abs, known)) > 1:
        return [f"{float(v):.0f}" if isinstance(v, Real) and not missing(v) else cell(v, most) for v in column]
    return [cell(v, most) for v in column]


def percent(value: float) -> str:
    """A number of per cent: one decimal.

    >>> percent(12.34), percent(-0.01)
    ('12.3', '0.0')
    """
    return f"{round(value, 1) + 0.0:.1f}" if math.isfinite(value) else number(value)


def is_percentage(heading: str) -> bool:
    """Does a heading say that its numbers are per cent? "worst 25 %" and "losses > 20 %" do not.

    >>> [is_percentage(text) for text in ("drop % (valid)", "%no@10", "CSR@10 %", "worst 25 %", "nDCG@10")]
    [True, True, True, False, False]
    """
    return "%" in re.sub(r"(?<![@\d])\d+\s*%", "", heading)


def _whole(value: object) -> bool:
    return isinstance(value, bool | Integral) or type(value).__name__ == "bool"


def missing(value: object) -> bool:
    """Is this None, NaN, NaT or pandas' NA?"""
    if isinstance(value, str):  # most are, and for these nothing need be loaded
        return False
    import pandas as pd

    return value is None or (bool(pd.api.types.is_scalar(value)) and bool(pd.isna(value)))  # type: ignore[call-overload]


def is_numeric(column: pd.Series[Any]) -> bool:
    """Does the column hold numbers, or percentages written as text? Such columns are set flush right."""
    import pandas as pd

    if pd.api.types.is_bool_dtype(column):
        return False
    if pd.api.types.is_numeric_dtype(column):
        return True
    values = [value for value in column if not missing(value)]
    return bool(values) and all(
        isinstance(v, Real) or (isinstance(v, str) and _PERCENTAGE.fullmatch(v.strip())) for v in values
    )
