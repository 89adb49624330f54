"""A table as text for a paper or a pull request: Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from shaketable.report import cell, cells, is_numeric

if TYPE_CHECKING:
    import pandas as pd

LATEX: Mapping[str, str] = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
"""What LaTeX would take for commands."""


def markdown(frame: pd.DataFrame) -> str:
    """A table as GitHub shows it.

    >>> import pandas as pd
    >>> print(markdown(pd.DataFrame({"ranker": ["a|b"], "nDCG@10": [0.5]})))
    | ranker | nDCG@10 |
    |:--|--:|
    | a\\|b | 0.5000 |
    """
    names, rows = _texts(frame, escaped_markdown)
    rule = [("--:" if numeric else ":--") for numeric in _numeric(frame)]
    lines = [f"| {' | '.join(names)} |", f"|{'|'.join(rule)}|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines)


def escaped_markdown(text: str) -> str:
    """A text that Markdown shows as it is.

    >>> print(escaped_markdown("a_b <c>"))
    a\\_b \\<c\\>
    """
    return re.sub(r"([|\\`*_<>\[\]])", r"\\\1", text)


def latex(frame: pd.DataFrame) -> str:
    """A table for the package booktabs.

    >>> import pandas as pd
    >>> print(latex(pd.DataFrame({"ranker": ["a_b"], "p": [0.5]})))
    \\begin{tabular}{lr}
    \\toprule
    ranker & p \\\\
    \\midrule
    a\\_b & 0.5000 \\\\
    \\bottomrule
    \\end{tabular}
    """
    names, rows = _texts(frame, lambda text: re.sub(r"[\\&%$#_{}~^]", lambda sign: LATEX[sign.group()], text))
    columns = "".join("r" if numeric else "l" for numeric in _numeric(frame))
    ended = [f"{' & '.join(row)} \\\\" for row in rows]
    parts = [f"\\begin{{tabular}}{{{columns}}}", r"\toprule", f"{' & '.join(names)} \\\\", r"\midrule", *ended]
    return "\n".join([*parts, r"\bottomrule", r"\end{tabular}"])


FORMS: Mapping[str, tuple[str, Callable[[pd.DataFrame], str]]] = {
    "markdown": (".md", markdown),
    "latex": (".tex", latex),
}
"""Form -> the ending of its files, and who writes it."""


def _texts(frame: pd.DataFrame, escape: Callable[[str], str]) -> tuple[list[str], list[list[str]]]:
    names = [escape(cell(name)) for name in frame.columns]
    columns = [[escape(text) for text in cells(frame.iloc[:, i])] for i in range(frame.shape[1])]
    return names, [list(row) for row in zip(*columns, strict=True)]


def _numeric(frame: pd.DataFrame) -> list[bool]:
    return [is_numeric(frame.iloc[:, i]) for i in range(frame.shape[1])]
