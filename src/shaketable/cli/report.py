"""`shaketable report`: the page of an audit, rendered again from its folder."""

from __future__ import annotations

from pathlib import Path

from shaketable.cli.options.output import AllowEdited, AuditFolder, Html


def report(audit: AuditFolder, html_to: Html = None, allow_edited: AllowEdited = False) -> None:
    """Write the HTML report of a saved audit again, from the results in its folder."""
    from shaketable.api.audit import read_audit, rewrite_page
    from shaketable.cli.console import notify
    from shaketable.files.atomic import atomic_write

    done = read_audit(audit, allow_edited=allow_edited)
    if html_to:
        with atomic_write(html_to) as out:
            out.write(done.to_html())
    else:
        rewrite_page(audit, done)
    notify(f"The report is {html_to or Path(audit) / 'report.html'}.")
