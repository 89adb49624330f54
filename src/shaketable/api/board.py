"""`board`: many audits on one page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from shaketable.api.audit import DATE_FACT, Audit, read_audit
from shaketable.core.errors import BadInput
from shaketable.report.board import Board, BoardRow
from shaketable.report.verdict import FIRST_STAGE, decide_outcome


def board(audits: str | Path | Audit | Iterable[str | Path | Audit], *, allow_edited: bool = False) -> Board:
    """Return many audits as one board, with a row for each ranker and the trend of rankers with several audits.

    Parameters
    ----------
    audits
        Folders of audits, their results.json, or `Audit`s.
    allow_edited
        If True, read audits whose results.json was edited.

    Returns
    -------
    Board
        The rows; `save(path)` writes a sortable page, and `to_frame()` has the numbers.

    Raises
    ------
    BadInput
        If there is no audit, or one of them cannot be read.

    Examples
    --------
    >>> import shaketable as st
    >>> st.board(["audit-main", "audit-branch"]).save("board.html")  # doctest: +SKIP
    """
    given = [audits] if isinstance(audits, str | Path | Audit) else list(audits)
    if not given:
        raise BadInput("a board needs at least one audit; name the folders that 'shaketable audit' wrote")
    return Board(tuple(row for one in given for row in _build_rows(one, allow_edited)))


def _build_rows(given: str | Path | Audit, allow_edited: bool) -> Iterator[BoardRow]:
    folder = None if isinstance(given, Audit) else Path(given) if Path(given).is_dir() else Path(given).parent
    audit = given if isinstance(given, Audit) else read_audit(given, allow_edited=allow_edited)
    collection = audit.provenance.get("collection") or {}
    name = str(collection.get("name", ""))
    for one in audit.verdict.ranker_verdicts:
        own = [gate for gate in audit.verdict.gate_results if gate.ranker in ("", one.ranker)]
        yield BoardRow(
            audit.title if folder is None else str(folder),
            audit.facts.get(DATE_FACT, ""),
            name,
            str(collection.get("fingerprint", "")) or name,
            one.ranker,
            one.role,
            "" if one.role == FIRST_STAGE else decide_outcome(own),
            one.facet_cells,
            folder,
        )
