"""Markdown from texts: escaping, tables, code blocks, and the docstrings of the package."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

SPECIAL_CHARACTERS = re.compile(r"([\\*_\[\]{}#|^~$])")
CODE_SPAN = re.compile(r"(`[^`]+`)")
SECTION = re.compile(r"^(\w+)\n-{3,}$", re.MULTILINE)
NUMPYDOC_ENTRY = re.compile(r"^(\S[^\n]*)\n((?: {4}[^\n]*\n|\n)*)", re.MULTILINE)
ALIGNED_ROW = re.compile(r"^ {0,2}(\w[\w, ]*?)(?: {2,}(\S.*))$")
"""A row such as "goal   promote or demote" of a list of parameters or attributes."""


def escape_text(text: str) -> str:
    """Return a text whose characters Markdown shows as they are; code in backticks stays code.

    >>> escape_text("a_b <c> `d|e`")
    'a\\\\_b &lt;c> `d\\\\|e`'
    """
    parts = CODE_SPAN.split(text)
    for number, part in enumerate(parts):
        if number % 2:
            parts[number] = part.replace("|", "\\|")
        else:
            parts[number] = SPECIAL_CHARACTERS.sub(r"\\\1", part.replace("&", "&amp;").replace("<", "&lt;"))
    return "".join(parts)


def format_code(text: str) -> str:
    """Return a text as code inside a line; a pipe does not end the cell of a table."""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}".replace("|", "\\|")


def format_block(language: str, code: str) -> str:
    """Return a code block."""
    return f"```{language}\n{code.rstrip()}\n```"


def format_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already; "" without rows.

    >>> print(format_table(["name", "value"], [["a", "1"]]))
    | name | value |
    | --- | --- |
    | a | 1 |
    """
    lines = [f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *rows)]
    return "\n".join(lines) if len(lines) > 2 else ""


def join_blocks(*blocks: str) -> str:
    """Join the blocks of a page that are not empty."""
    return "\n\n".join(block.strip("\n") for block in blocks if block.strip())


def split_sections(docstring: str) -> dict[str, str]:
    """Return the numpydoc sections of a docstring by title; the text before the first has the title ""."""
    found = ["", *SECTION.split(docstring)]
    return dict(zip(found[::2], found[1::2], strict=True))


def render_entries(section: str) -> list[tuple[str, str]]:
    """Return the entries of a numpydoc section: the name as it is written, and its description as Markdown."""
    return [
        (name.partition(" : ")[0], escape_text(" ".join(description.split())))
        for name, description in NUMPYDOC_ENTRY.findall(section.strip("\n") + "\n")
    ]


def render_prose(text: str, *, rows: bool = True) -> str:
    """Return the blocks of a docstring as Markdown: paragraphs, examples and lists of rows.

    If `rows` is False, lists of rows are left out: a table of parameters shows them.
    """
    blocks = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        if block.lstrip().startswith(">>> "):
            blocks.append(render_example(block))
            continue
        lines = block.splitlines()
        first = next((number for number, line in enumerate(lines) if ALIGNED_ROW.match(line)), len(lines))
        if block.startswith("    "):
            blocks.append(format_block("text", re.sub(r"^ {4}", "", block, flags=re.MULTILINE)))
            continue
        blocks.append(escape_text(" ".join(" ".join(lines[:first]).split())))
        if rows and first < len(lines):
            blocks.append(_render_rows(lines[first:]))
    return join_blocks(*blocks)


def _render_rows(lines: list[str]) -> str:
    rows: list[list[str]] = []
    for line in lines:
        if row := ALIGNED_ROW.match(line):
            rows.append([row[1], row[2]])
        elif rows:
            rows[-1][1] += f" {line.strip()}"
    return format_table(["name", "meaning"], [[format_code(name), escape_text(text)] for name, text in rows])


def render_example(code: str) -> str:
    """Return a doctest as a code block, without the remarks for doctest."""
    return format_block("pycon", re.sub(r"  # doctest: .*$", "", code.strip(), flags=re.MULTILINE))
