"""The table of systems by measures, as papers print it: in Markdown, LaTeX and HTML. `terminal.py` prints it.

The best value of each measure is bold. Superscripts are the letters of the systems that a system significantly beats.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from shaketable.core.results import SystemTable
from shaketable.report import MISSING_TEXT, format_cell
from shaketable.report.tables import MINUS, escape_latex, escape_markdown

LETTERS = "abcdefghijklmnoprstuvwxyz"
"""The letters of systems, without q, which has no superscript in Unicode; a table of more systems has no letters."""
SYSTEM_HEADING = "System"


@dataclass(frozen=True)
class Cell:
    """A value as text, with the letters of the systems that are significantly worse, and their names."""

    text: str
    is_best: bool = False
    letters: str = ""
    beaten: tuple[str, ...] = ()


@dataclass(frozen=True)
class TypesetTable:
    """A table of systems as texts, before the markup of a format: `letters` is empty if no cell has one."""

    caption: str
    letters: Sequence[str]
    systems: Sequence[str]
    measures: Sequence[str]
    columns: Sequence[Sequence[Cell]]
    """The cells of each measure, one for each system."""


def typeset(table: SystemTable, best_mark: str = "") -> TypesetTable:
    """Format the values, name the systems by letters and write the caption; without a mark, best values are bold.

    >>> shown = typeset(SystemTable(("bm25", "ql"), ("AP",), ((0.3,), (0.41234,)), (((),), ((0,),)), 50, "t-test"))
    >>> shown.letters, shown.columns[0][1]
    ('ab', Cell(text='0.4123', is_best=True, letters='a', beaten=('bm25',)))
    """
    is_marked = len(table.systems) <= len(LETTERS) and any(any(row) for row in table.beaten)
    names = [format_cell(name) for name in table.systems]
    columns = []
    for measure in range(len(table.measures)):
        texts, is_best = _format_values([row[measure] for row in table.values])
        beaten = [row[measure] if is_marked else () for row in table.beaten]
        columns.append(
            [
                Cell(text, top, "".join(LETTERS[i] for i in worse), tuple(names[i] for i in worse))
                for text, top, worse in zip(texts, is_best, beaten, strict=True)
            ]
        )
    has_best = any(cell.is_best for column in columns for cell in column)
    best = f"{best_mark} marks the best value" if best_mark else "The best value"
    best_note = f"{best} of each measure{'' if best_mark else ' is in bold'}." if has_best else ""
    caption = " ".join(filter(None, _write_caption(table, best_note, is_marked)))
    letters = LETTERS[: len(names)] if is_marked else ""
    return TypesetTable(caption, letters, names, [format_cell(name) for name in table.measures], columns)


def _write_caption(table: SystemTable, best_note: str, is_marked: bool) -> Iterator[str]:
    systems = "one system" if len(table.systems) == 1 else f"{len(table.systems)} systems"
    yield f"Mean effectiveness of {systems} over {table.queries:,} {'query' if table.queries == 1 else 'queries'}."
    yield best_note
    if is_marked:
        yield f"Superscripts denote significant improvements over the systems with these letters ({table.comparison})."
    elif any(any(row) for row in table.beaten):
        yield f"Significant differences are not shown, since there are more than {len(LETTERS)} systems."
    elif table.comparison:
        yield f"No difference between systems is significant ({table.comparison})."
    elif len(table.systems) > 1:
        yield "There are too few queries to test the differences."


def _format_values(values: Sequence[float]) -> tuple[list[str], list[bool]]:
    """Return values with a common number of decimals, and which of them are the best; equal texts are equally good."""
    known = [value for value in values if math.isfinite(value)]
    largest = max(map(abs, known), default=0.0)
    decimals = 4 if largest < 100 else 2 if largest < 10_000 else 0
    rounded = [round(value, decimals) + 0.0 if math.isfinite(value) else math.nan for value in values]
    top = max((value for value in rounded if not math.isnan(value)), default=math.nan)
    is_best = [value == top for value in rounded]
    texts = [MISSING_TEXT if math.isnan(v) else f"{v:.{decimals}f}".replace("-", MINUS) for v in rounded]
    return texts, is_best if not all(is_best) else [False] * len(values)


def render_markdown(table: SystemTable) -> str:
    """Render a table in GitHub's Markdown: the caption, and the table below it.

    >>> found = SystemTable(("bm25", "ql"), ("AP",), ((0.3,), (0.4,)), (((),), ((0,),)), 50, "t-test")
    >>> print(render_markdown(found).partition("|")[1] + render_markdown(found).partition("|")[2])
    |  | System | AP |
    |:--|:--|--:|
    | a | bm25 | 0.3000 |
    | b | ql | **0.4000**<sup>a</sup> |
    """
    shown = typeset(table)
    head = [SYSTEM_HEADING, *map(escape_markdown, shown.measures)]
    rows = [
        [escape_markdown(name), *(_mark_cell(column[i], "**{}**", "<sup>{}</sup>") for column in shown.columns)]
        for i, name in enumerate(shown.systems)
    ]
    rule = [":--", *("--:" for _ in shown.measures)]
    if shown.letters:
        head, rule = ["", *head], [":--", *rule]
        rows = [[letter, *row] for letter, row in zip(shown.letters, rows, strict=True)]
    lines = [f"| {' | '.join(head)} |", f"|{'|'.join(rule)}|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join([escape_markdown(shown.caption), "", *lines])


def _mark_cell(cell: Cell, bold: str, superscript: str) -> str:
    text = bold.format(cell.text) if cell.is_best else cell.text
    return text + (superscript.format(cell.letters) if cell.letters else "")


def render_latex(table: SystemTable, number: int = 1) -> str:
    """Render a table for the LaTeX package booktabs, with a caption and the label tab:systems.

    Each measure has two columns, numbers and superscripts, so that the numbers are aligned. A `number` above 1
    distinguishes the labels of several tables in one file.
    """
    shown = typeset(table)
    head = [SYSTEM_HEADING, *(rf"\multicolumn{{2}}{{c}}{{{escape_latex(name)}}}" for name in shown.measures)]
    rows = []
    for i, name in enumerate(shown.systems):
        row = [escape_latex(name)]
        for cell in (column[i] for column in shown.columns):
            value = escape_latex(cell.text)
            row.append(rf"\textbf{{{value}}}" if cell.is_best else value)
            row.append(rf"\textsuperscript{{{cell.letters}}}" if cell.letters else "")
        rows.append(row)
    columns = "l" + "r@{}l" * len(shown.measures)
    caption = re.sub(r"\bp \\textless\{\} ([\d.]+)", r"$p < \1$", escape_latex(shown.caption))
    if shown.letters:
        head, columns = ["", *head], f"l{columns}"
        rows = [[letter, *row] for letter, row in zip(shown.letters, rows, strict=True)]
    return "\n".join(
        [
            r"\begin{table}[t] % needs \usepackage{booktabs}",
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\label{{tab:systems{f'-{number}' if number > 1 else ''}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            rf"{' & '.join(head)} \\",
            r"\midrule",
            *(rf"{' & '.join(row)} \\" for row in rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def render_html(table: SystemTable) -> Markup:
    """Render a table for the page, with its LaTeX source; numbers and superscripts have their own columns."""
    shown = typeset(table)
    corner = Markup("<th></th>" if shown.letters else "")
    head = Markup("").join(
        Markup('<th class="n" colspan="2" scope="colgroup">{}</th>').format(name) for name in shown.measures
    )
    rows = []
    for i, name in enumerate(shown.systems):
        letter = Markup('<td class="letter">{}</td>').format(shown.letters[i]) if shown.letters else Markup("")
        cells = Markup("").join(_render_html_cell(column[i]) for column in shown.columns)
        rows.append(Markup('<tr>{}<th scope="row">{}</th>{}</tr>\n').format(letter, name, cells))
    return Markup(
        '<p class="caption">{}</p>\n<div class="wide" tabindex="0"><table class="systems">\n'
        '<thead><tr>{}<th scope="col">{}</th>{}</tr></thead>\n<tbody>\n{}</tbody>\n</table></div>\n'
        '<details class="latex"><summary>LaTeX</summary><pre>{}</pre></details>'
    ).format(shown.caption, corner, SYSTEM_HEADING, head, Markup("").join(rows), render_latex(table))


def _render_html_cell(cell: Cell) -> Markup:
    value = Markup("<b>{}</b>").format(cell.text) if cell.is_best else cell.text
    marks = Markup('<sup title="{}">{}</sup>').format(f"better than {', '.join(cell.beaten)}", cell.letters)
    return Markup('<td class="n">{}</td><td>{}</td>').format(value, marks if cell.letters else "")
