"""`shaketable report`: the page of an audit, made again from its folder."""

from __future__ import annotations

from pathlib import Path

from shaketable.cli import options as o


def report(audit: o.AuditFolder, html_to: o.Html = None) -> None:
    """Make the page of an audit again, from the results that its folder holds."""
    from shaketable.cli.console import say
    from shaketable.door.audit import read_audit, renew_page
    from shaketable.files import written_whole

    done = read_audit(audit)
    if html_to:
        with written_whole(html_to) as out:
            out.write(done.report())
    else:
        renew_page(audit, done)
    say(f"The report is {html_to or Path(audit) / 'report.html'}.")
