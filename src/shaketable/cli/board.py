"""`shaketable board`: many audits on one page."""

from __future__ import annotations

from pathlib import Path

from shaketable.cli.options.output import AllowEdited, AuditFolders, Html

BOARD_FILE = "shaketable-board.html"
"""The page that is written without --html."""


def board(audits: AuditFolders, html_to: Html = None, allow_edited: AllowEdited = False) -> None:
    """Write a page of many audits, by default shaketable-board.html: a sortable table of scorecards, and trends."""
    import shaketable as st
    from shaketable.cli.console import notify

    out = html_to or Path(BOARD_FILE)
    st.board(audits, allow_edited=allow_edited).save(out)
    notify(f"The board is {out}.")
