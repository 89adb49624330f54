"""`shaketable gate`: gates on a saved audit."""

from __future__ import annotations

import typer

from shaketable.cli.options.gates import GateFlags
from shaketable.cli.options.output import AllowEdited, AuditFolder, BuildServerFlags


def gate(*, audit: AuditFolder, gates: GateFlags, build: BuildServerFlags, allow_edited: AllowEdited = False) -> None:
    """Check a saved audit against gates, or against the default gate. The exit code is 1 if a gate fails."""
    import shaketable as st
    from shaketable.api.gates import apply_accepted
    from shaketable.cli.console import emit_gate_results, notify
    from shaketable.report.rules import parse_gates, read_accepted

    rules = parse_gates(gates.list_rules(), allow_edited=allow_edited)
    accepted = read_accepted(gates.list_rules())
    done = st.read_audit(audit, allow_edited=allow_edited)
    done = apply_accepted(done, accepted) if accepted else done
    found = done.evaluate_gates(*rules)
    found += done.verdict.gate_results if accepted or not rules else ()
    for result in found:
        notify(str(result), always=True)
    if not emit_gate_results(done, found, build):
        raise typer.Exit(1)
