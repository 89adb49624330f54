"""`shaketable gate`: gates on a saved audit."""

from __future__ import annotations

import typer

from shaketable.cli.options.gates import GateFlags
from shaketable.cli.options.output import AuditFolder, BuildServerFlags


def gate(audit: AuditFolder, gates: GateFlags, build: BuildServerFlags) -> None:
    """Check a saved audit against gates, or against the default gate. The exit code is 1 if a gate fails."""
    import shaketable as st
    from shaketable.cli.console import emit_gate_results, notify
    from shaketable.report.rules import parse_gates

    rules = parse_gates(gates.list_rules())
    done = st.read_audit(audit)
    found = done.evaluate_gates(*rules) if rules else list(done.verdict().gate_results)
    for result in found:
        notify(str(result), always=True)
    if not emit_gate_results(done, found, build):
        raise typer.Exit(1)
