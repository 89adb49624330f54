"""Two lists of documents side by side, with the documents that moved marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shaketable.report import format_cell


@dataclass(frozen=True)
class ListRow:
    """A document of a list: `mark` says how it moved, and `style` is its CSS class: new, gone, up or down."""

    docno: str
    text: str
    mark: str = ""
    style: str = ""


@dataclass(frozen=True)
class DocumentList:
    """A list of documents with a title."""

    title: str
    rows: tuple[ListRow, ...]


def compare_lists(
    before: Sequence[str], after: Sequence[str], titles: tuple[str, str], excerpts: Mapping[str, str]
) -> tuple[DocumentList, DocumentList]:
    """Return two lists, with the documents marked that are in one of them only or have another rank.

    >>> old, new = compare_lists(["a", "b"], ["b", "c"], ("before", "after"), {})
    >>> [row.mark for row in old.rows], [row.mark for row in new.rows]
    (['not in the other list', ''], ['1 up', 'new'])

    The left list has no marks on documents that both lists have, because the right list has them.
    """
    old, new = list(before), list(after)
    left = [
        _build_row(docno, excerpts, *(("", "") if docno in new else ("not in the other list", "gone"))) for docno in old
    ]
    right = [_build_row(docno, excerpts, *_describe_move(docno, rank, old)) for rank, docno in enumerate(new)]
    return DocumentList(titles[0], tuple(left)), DocumentList(titles[1], tuple(right))


def _describe_move(docno: str, rank: int, before: Sequence[str]) -> tuple[str, str]:
    if docno not in before:
        return "new", "new"
    rise = before.index(docno) - rank
    if not rise:
        return "", ""
    return (f"{rise} up", "up") if rise > 0 else (f"{-rise} down", "down")


def _build_row(docno: str, excerpts: Mapping[str, str], mark: str, style: str) -> ListRow:
    return ListRow(format_cell(docno), format_cell(excerpts.get(docno, "")), mark, style)
