"""Tables for the terminal, readable at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shaketable.report import format_cell, format_frame
from shaketable.report.system_table import LETTERS, SYSTEM_HEADING, Cell, typeset

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.core.results import Result, SystemTable

MAX_ROWS = 40
MAX_COLUMN_WIDTH = 36
"""The maximum width of a table column in characters; longer texts are shortened."""
COLUMN_GAP = 3
BEST_MARK = "◂"
SUPERSCRIPTS = str.maketrans(LETTERS, "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ")


@dataclass(frozen=True)
class _TerminalColumn:
    title: Text
    cells: tuple[Text, ...]
    numeric: bool
    is_padded: bool = False
    """True if all cells have the same width, so that the column needs no alignment."""

    @property
    def width(self) -> int:
        """The width of the widest cell or title word; a title may wrap between words."""
        words = max((cell_len(word) for word in self.title.plain.split()), default=1)
        return min(MAX_COLUMN_WIDTH, max([words, *(text.cell_len for text in self.cells)]))


def show_result(console: Console, result: Result) -> None:
    """Print the brief tables of a result, or else its first table and all short ones, with notes and failures."""
    console.rule(Text(format_cell(result.question), style="bold"), align="left", style="dim")
    shown = [
        (name, frame)
        for position, (name, frame) in enumerate(result.tables.items())
        if (name in result.brief if result.brief else position == 0 or len(frame) <= MAX_ROWS)
    ]
    if result.system_table:
        show_system_table(console, result.system_table)
    for name, frame in shown:
        show_table(console, name, frame)
    for note in result.notes:
        console.print(Text(format_cell(note), style="dim"))
    if result.failures:
        first = result.failures[0]
        many = f"{len(result.failures)} queries failed, for example {first.ranker} on {first.query!r}: {first.reason}"
        console.print(Text(format_cell(many), style="red"))
    console.print()


def show_table(console: Console, title: str, frame: pd.DataFrame, notes: Sequence[str] = ()) -> None:
    """Print a frame as one table, or as several below each other if it is wider than the screen."""
    console.print(Text(format_cell(title), style="bold"))
    if frame.empty:
        console.print(Text("  (no rows)", style="dim"))
    else:
        columns = format_frame(frame.iloc[:MAX_ROWS])
        _print_columns(
            console,
            [_TerminalColumn(Text(name), tuple(map(Text, texts)), numeric) for name, numeric, texts in columns],
        )
    if len(frame) > MAX_ROWS:
        console.print(Text(f"… and {len(frame) - MAX_ROWS} more rows in the files", style="dim"))
    for note in notes:
        console.print(Text(format_cell(note), style="dim"))
    console.print()


def show_system_table(console: Console, table: SystemTable) -> None:
    """Print systems by measures, with the best value in bold; in a file, where nothing is bold, an arrow marks it."""
    shown = typeset(table, "" if console.is_terminal else BEST_MARK)
    columns = [_TerminalColumn(Text(SYSTEM_HEADING), tuple(map(Text, shown.systems)), numeric=False)]
    if shown.letters:
        columns.insert(0, _TerminalColumn(Text(""), tuple(map(Text, shown.letters)), numeric=False))
    for measure, cells in zip(shown.measures, shown.columns, strict=True):
        texts = tuple(_build_system_cells(cells, console.is_terminal))
        columns.append(_TerminalColumn(Text(measure), texts, numeric=True, is_padded=True))
    _print_columns(console, columns)
    console.print(Text(shown.caption, style="dim"))
    console.print()


def _build_system_cells(cells: Sequence[Cell], has_bold: bool) -> Iterator[Text]:
    """Yield texts with aligned numbers, and superscripts to the right of them."""
    marks = [
        cell.letters.translate(SUPERSCRIPTS) + (f" {BEST_MARK}" if cell.is_best and not has_bold else "")
        for cell in cells
    ]
    width, after = max(len(cell.text) for cell in cells), max(map(len, marks))
    for cell, mark in zip(cells, marks, strict=True):
        number = Text(cell.text.rjust(width), style="bold" if cell.is_best else "")
        yield Text.assemble(number, mark.ljust(after))


def _print_columns(console: Console, columns: Sequence[_TerminalColumn]) -> None:
    """Print columns as one table, or as several below each other if they are wider than the screen."""
    for i, part in enumerate(_split_columns(columns, console.width)):
        if i:
            console.print()
        console.print(_build_table(part, console.width))


def _split_columns(columns: Sequence[_TerminalColumn], width: int) -> Iterator[list[_TerminalColumn]]:
    """Yield groups of columns that fit the width; each group starts with the columns that name the rows."""
    names = 0
    while (
        names < len(columns) - 1 and not columns[names].numeric and _compute_width(columns[: names + 1]) <= 0.62 * width
    ):
        names += 1
    keys = list(columns[:names])
    part = list(keys)
    for column in columns[names:]:
        if len(part) > len(keys) and _compute_width([*part, column]) > width:
            yield part
            part = list(keys)
        part.append(column)
    yield part


def _compute_width(columns: Sequence[_TerminalColumn]) -> int:
    return sum(column.width for column in columns) + COLUMN_GAP * (len(columns) - 1)


def _build_table(columns: Sequence[_TerminalColumn], width: int) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold", padding=(0, 1))
    narrow = max(8, (width - COLUMN_GAP * (len(columns) - 1)) // len(columns))
    fits = _compute_width(columns) <= width
    for column in columns:
        table.add_column(
            column.title,
            justify="right" if column.numeric and not column.is_padded else "left",
            vertical="bottom",
            width=column.width if fits else min(column.width, narrow),
        )
    cells = (_shorten_cells(column.cells, column.width if fits else narrow) for column in columns)
    for row in zip(*cells, strict=True):
        table.add_row(*row)
    return table


def _shorten_cells(texts: Sequence[Text], width: int) -> list[Text]:
    """Cut texts to a width at the end, or in the middle if different texts would look the same.

    If they still look the same, none is cut, and the table breaks them into lines.
    """
    if all(text.cell_len <= width for text in texts):
        return list(texts)
    count = len({text.plain for text in texts})
    for cut in (_cut_end, _cut_middle):
        shortened = [cut(text, width) if text.cell_len > width else text for text in texts]
        if len({text.plain for text in shortened}) == count:
            return shortened
    return [Text(text.plain, overflow="fold") for text in texts]


def _cut_end(text: Text, width: int) -> Text:
    text = text.copy()
    text.truncate(width, overflow="ellipsis")
    return text


def _cut_middle(text: Text, width: int) -> Text:
    """Replace the middle of a text by an ellipsis."""
    start = set_cell_size(text.plain, (width - 1) // 2)
    end = ""
    for letter in reversed(text.plain):
        if cell_len(start) + cell_len(letter + end) > width - 1:
            break
        end = letter + end
    return Text(f"{start}…{end}")
