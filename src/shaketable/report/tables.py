"""Tables as Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from shaketable.report import format_frame

if TYPE_CHECKING:
    import pandas as pd

MINUS = "\u2212"
LATEX_ESCAPES: Mapping[str, str] = {
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
    "[": "{[}",  # after a line end, a bracket would be its parameter
    "*": "{*}",
    "<": r"\textless{}",  # other characters in the default encoding of fonts
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    MINUS: "$-$",
}
"""LaTeX special characters -> their escapes."""
ZERO_WIDTH_SPACE = "&#8203;"
_MARKDOWN_SPECIAL = re.compile(r"[|\\`*_<>\[\]&~$#]|(?<=:):")
_MARKDOWN_ACTIVE = re.compile(
    r"@(?=[a-z])|(?<!\w)@(?=\w)|\\#(?=\d)|:(?=//)|\bwww(?=\.)|\bgh-(?=\d)|\{(?=[{%])", re.IGNORECASE
)
"""The beginning of a mention, a reference to an issue, a URL, or an expression of a template or a workflow."""


def to_markdown(frame: pd.DataFrame) -> str:
    """Render a table in GitHub's Markdown.

    >>> import pandas as pd
    >>> print(to_markdown(pd.DataFrame({"ranker": ["a|b"], "nDCG@10": [0.5]})))
    | ranker | nDCG@10 |
    |:--|--:|
    | a\\|b | 0.5000 |
    """
    names, kinds, rows = _format_texts(frame, escape_markdown)
    rule = [("--:" if numeric else ":--") for numeric in kinds]
    lines = [f"| {' | '.join(names)} |", f"|{'|'.join(rule)}|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines)


def escape_markdown(text: str) -> str:
    """Escape a text for Markdown, so that it is neither markup nor a mention, a reference, a link or a template.

    >>> print(escape_markdown("a_b <c> nDCG@10"))
    a\\_b \\<c\\> nDCG@10
    >>> print(escape_markdown("@name"))
    @&#8203;name

    A build server finds mentions, references (#1) and bare URLs in the finished page, where a backslash is gone, so a
    space of no width interrupts them. `::` at the start of a line would be a command of GitHub's runner.
    """
    return _MARKDOWN_ACTIVE.sub(rf"\g<0>{ZERO_WIDTH_SPACE}", _MARKDOWN_SPECIAL.sub(r"\\\g<0>", text))


def to_latex(frame: pd.DataFrame) -> str:
    """Render a table for the LaTeX package booktabs.

    >>> import pandas as pd
    >>> print(to_latex(pd.DataFrame({"ranker": ["a_b"], "change": [-0.5]})))
    \\begin{tabular}{lr}
    \\toprule
    ranker & change \\\\
    \\midrule
    a\\_b & $-$0.5000 \\\\
    \\bottomrule
    \\end{tabular}
    """
    names, kinds, rows = _format_texts(frame, escape_latex, MINUS)
    columns = "".join("r" if numeric else "l" for numeric in kinds)
    ended = [f"{' & '.join(row)} \\\\" for row in rows]
    parts = [f"\\begin{{tabular}}{{{columns}}}", r"\toprule", f"{' & '.join(names)} \\\\", r"\midrule", *ended]
    return "\n".join([*parts, r"\bottomrule", r"\end{tabular}"])


def escape_latex(text: str) -> str:
    """Escape a text for LaTeX.

    >>> print(escape_latex("a_b 50 %"))
    a\\_b 50 \\%
    """
    escaped = "".join(LATEX_ESCAPES.get(sign, sign) for sign in text)
    return re.sub("-(?=-)", "-{}", escaped)  # two hyphens would become a dash


TABLE_FORMATS: Mapping[str, tuple[str, Callable[[pd.DataFrame], str]]] = {
    "markdown": (".md", to_markdown),
    "latex": (".tex", to_latex),
}
"""Format -> the suffix of its files, and its writer."""


def _format_texts(
    frame: pd.DataFrame, escape: Callable[[str], str], minus: str = "-"
) -> tuple[list[str], list[bool], list[list[str]]]:
    """Return the headings, which columns are numeric, and the rows; `minus` replaces the hyphen before a number."""
    shown = format_frame(frame)
    columns = [
        [escape(re.sub("^-", minus, text) if numeric else text) for text in texts] for _, numeric, texts in shown
    ]
    names, kinds = [escape(name) for name, _, _ in shown], [numeric for _, numeric, _ in shown]
    return names, kinds, [list(row) for row in zip(*columns, strict=True)]
