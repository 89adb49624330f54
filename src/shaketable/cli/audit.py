"""`shaketable audit`: all applicable tasks, a table, a report page and an exit code."""

from __future__ import annotations

from pathlib import Path

import typer

from shaketable.cli.config import Config
from shaketable.cli.options.data import CollectionFlags, Collections, FileFlags, QueryTypes
from shaketable.cli.options.gates import DefaultGate, GateFlags
from shaketable.cli.options.output import BuildServerFlags, OutFolder, VerdictFlags
from shaketable.cli.options.performance import CostFlags, RunFlags
from shaketable.cli.options.rankers import Rankers
from shaketable.cli.options.tasks import Languages, Tasks


def audit(
    *,
    data: Collections = None,
    files: FileFlags,
    ranker: Rankers = None,
    task: Tasks = None,
    languages: Languages = "",
    out: OutFolder = Path("shaketable-audit"),
    gates: GateFlags,
    gate: DefaultGate = False,
    shown: VerdictFlags,
    build: BuildServerFlags,
    query_types: QueryTypes = None,
    collection: CollectionFlags,
    run: RunFlags,
    cost: CostFlags,
    config: Config = None,
) -> None:
    """Audit rankers: run all robustness tasks that apply, print a verdict and write a report."""
    import shaketable as st
    from shaketable.api.dry_run import dry_run
    from shaketable.api.gates import check_gate_findings, read_gates, save_with_gates
    from shaketable.api.options import WorkOptions
    from shaketable.cli.console import finish_audit, notify, show_dry_run
    from shaketable.cli.progress import show_progress
    from shaketable.report.audit_folder import check_writable

    rules = read_gates(gates.list_rules(), ranker or ())  # fail before the audit, not after it
    check_writable(out)
    given = (files.select_source(data or ["sample"]), ranker or (), task or (), languages)
    where = collection.to_options(query_types)
    check_gate_findings(rules, *given, **where)
    if cost.dry_run:
        shown_to: WorkOptions = {"progress": show_progress, "notify": notify}
        counted = dry_run(*given, **cost.to_dry_run_options(), **where, **shown_to)
        return show_dry_run(counted, shown.json_to)
    done = st.audit(*given, **where, **run.to_options(), **cost.to_options(), gated=gate)
    done = save_with_gates(done, out, rules, {"require": gates.require, "rules": gates.rules, "gate": gate})
    if not finish_audit(done, out, gate, shown, build):
        raise typer.Exit(1)
    return None
