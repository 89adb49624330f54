"""`shaketable gate`: do the rules hold for an audit that was made before?"""

from __future__ import annotations

import typer

from shaketable.cli import options as o


def gate(
    audit: o.AuditFolder,
    rules: o.RuleFiles = None,
    fail_under: o.Rules = None,
    junit_to: o.Junit = None,
    markdown_to: o.Summary = None,
    badge_to: o.Badge = None,
) -> None:
    """Hold an audit against rules; without any, against the default gate. The exit code is 1 if a rule fails."""
    from shaketable.cli.console import emit_rulings, say
    from shaketable.door.audit import read_audit
    from shaketable.report.rules import gates_of

    gates = gates_of([*(rules or []), *(fail_under or [])])
    done = read_audit(audit)
    found = done.rulings(*gates) if gates else list(done.answer().rulings)
    for ruling in found:
        say(str(ruling), always=True)
    if not emit_rulings(done, found, junit_to, markdown_to, badge_to):
        raise typer.Exit(1)
