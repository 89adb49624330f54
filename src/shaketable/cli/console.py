"""Output of commands: results go to stdout, messages to stderr."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from shaketable.core.errors import BadInput
from shaketable.core.redaction import redact
from shaketable.files.atomic import atomic_write
from shaketable.report import clean, escape_controls, format_cell

if TYPE_CHECKING:
    from shaketable.api.audit import Audit
    from shaketable.api.dry_run import DryRun
    from shaketable.api.options import CollectionLike, CollectionOptions
    from shaketable.api.ranker_names import Rankers
    from shaketable.api.training_result import TrainedWriter, TrainingResult
    from shaketable.cli.options.output import BuildServerFlags, ReportFlags, TableFlags, VerdictFlags
    from shaketable.core.protocols import Task
    from shaketable.report.comparison import AuditComparison
    from shaketable.report.gates import GateResult


MAX_SYSTEMS_SHOWN = 12
"""The number of systems up to which an evaluation prints its table of systems without --tables."""


def open_console(json_target: str | None = None) -> Console:
    """Return the console for tables: stderr if JSON goes to stdout."""
    return Console(stderr=json_target == "-", highlight=False)


_quiet = False


def is_quiet() -> bool:
    """Return True if --quiet is set."""
    return _quiet


@contextmanager
def set_verbosity(quiet: bool, verbose: bool) -> Iterator[None]:
    """Show only results and errors (quiet), or also log messages (verbose)."""
    global _quiet
    if quiet and verbose:
        raise BadInput("--quiet and --verbose contradict each other; give one of them")
    log, teller = logging.getLogger("shaketable"), _LogHandler(logging.INFO)
    before, _quiet = _quiet, quiet
    level = log.level
    if verbose:
        log.setLevel(logging.INFO)
        log.addHandler(teller)
    try:
        yield
    finally:
        _quiet = before
        log.removeHandler(teller)
        log.setLevel(level)


class _LogHandler(logging.Handler):
    """A log handler that shows messages on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        notify(record.getMessage())


def notify(message: str, *, always: bool = False) -> None:
    """Print a message on one line of stderr, without control sequences: attackers write some texts.

    With `always`, --quiet does not hide the message.
    """
    if always or not _quiet:
        print(" ".join(clean(message).splitlines()), file=sys.stderr)


def show_audit(done: Audit, json_target: str | None) -> None:
    """Print all tables of an audit, the skipped tasks with reasons, and the remarks on rankers."""
    from shaketable.report.terminal import show_result

    console = open_console(json_target)
    for result in done.results:
        show_result(console, result)
    for task, reason in done.skipped.items():
        console.print(format_cell(f"The task {task} was skipped: {reason}."), markup=False)
    for name, remark in done.remarks.items():
        console.print(format_cell(f"{name}: {remark}"), markup=False)


def show_verdict(
    done: Audit,
    json_target: str | None,
    tables: bool = False,
    table: list[str] | None = None,
    enforced: bool = True,
    remedy: str = "add --gate",
) -> None:
    """Print the verdict of an audit, after all tables or the named tables."""
    from shaketable.report.files import SYSTEMS
    from shaketable.report.terminal import show_system_table, show_table
    from shaketable.report.terminal_summary import print_verdict

    found = done.verdict
    console = open_console(json_target)
    system_tables = [one.system_table for one in done.results if one.system_table and SYSTEMS in (table or ())]
    named = [done.find_table(name) for name in table or () if not (system_tables and name == SYSTEMS)]
    has_verdict = found.facets or done.gate_results or any(result.conclusions for result in done.results)
    if tables or not (named or system_tables or has_verdict):
        show_audit(done, json_target)
    for compared in system_tables:
        show_system_table(console, compared)
    for name, frame in named:
        show_table(console, name, frame)
    print_verdict(console, found, enforced=enforced, remedy=remedy)


def show_dry_run(dry_run: DryRun, json_target: str | None) -> None:
    """Print the cost of an audit for each ranker, the tasks without a count with reasons, and the total."""
    from shaketable.report.terminal import show_table

    console = open_console(json_target)
    show_table(console, "dry run", dry_run.to_frame())
    show_table(console, "pairs by facet", dry_run.count_by_facet())
    for note in dry_run.notes:
        console.print(format_cell(note), markup=False)
    for task, reason in dry_run.skipped.items():
        console.print(format_cell(f"The task {task} cannot be counted: {reason}."), markup=False)
    console.print(format_cell(str(dry_run)), markup=False)
    if json_target:
        emit_json(dry_run.to_dict(), json_target)


def open_report(
    flags: ReportFlags, out: Path, data: CollectionLike, rankers: Rankers, task: Task, options: CollectionOptions
) -> Callable[[Audit], bool]:
    """Check the gates and the folder, and return a function that writes and shows an audit and evaluates its gates."""
    from shaketable.api.gates import check_gate_findings, read_gates, save_with_gates
    from shaketable.report.audit_folder import check_writable
    from shaketable.report.gates import has_passed

    gates = read_gates(flags.require or [], rankers)
    check_writable(out)
    check_gate_findings(gates, data, rankers, [task], **options)

    def finish(done: Audit) -> bool:
        done = save_with_gates(done, out, gates, {"require": flags.require})
        if flags.json_to:
            emit_texts(map(escape_controls, done.iterate_json()), flags.json_to)
        enforced = not has_passed(done.gate_results)
        show_verdict(done, flags.json_to, flags.tables, flags.table, enforced, "'shaketable audit --gate' enforces it")
        for result in done.gate_results:
            notify(str(result), always=True)
        notify(f"The report is {out / 'report.html'}; the tables are in {out / 'tables'}.")
        return has_passed(done.gate_results)

    return finish


def write_evaluation(done: Audit, flags: TableFlags) -> None:
    """Print the verdict of an evaluation after the table of systems, and write its tables in the requested formats."""
    from shaketable.report.files import SYSTEMS, write_per_query, write_tables

    if flags.csv_to:
        write_tables(flags.csv_to, done.results)
    write_typeset_tables(done, flags)
    if flags.per_query_to:
        write_per_query(flags.per_query_to, done["effectiveness"])
    if flags.html_to:
        emit_text(done.to_html(), str(flags.html_to))
    if flags.json_to:
        emit_texts(map(escape_controls, done.iterate_json()), flags.json_to)
    header = "; ".join(f"{name}: {value}" for name, value in done.facts.items())
    open_console(flags.json_to).print(format_cell(header), markup=False)
    systems = done["effectiveness"].system_table
    is_short = systems is not None and len(systems.systems) <= MAX_SYSTEMS_SHOWN
    shown = flags.table or ([SYSTEMS] if is_short and not flags.tables else None)
    show_verdict(done, flags.json_to, flags.tables, shown)


def write_typeset_tables(done: Audit, flags: TableFlags | VerdictFlags) -> None:
    """Write the table of systems to a file of LaTeX or Markdown, or every table to a folder."""
    from shaketable.report.files import write_tables
    from shaketable.report.tables import TABLE_FORMATS

    wanted = (("latex", flags.latex_to, done.to_latex), ("markdown", flags.markdown_to, done.to_markdown))
    for form, path, render in wanted:
        if path and path.suffix != TABLE_FORMATS[form][0]:
            write_tables(path, done.results, form)
        elif path and (text := render()):
            emit_text(f"{text}\n", str(path))
        elif path:
            notify(f"{path} is not written: only the task effectiveness has a table of systems", always=True)


def show_comparison(found: AuditComparison, target: str | None) -> None:
    """Print a comparison of two audits: the verdict, and the findings and queries that became worse or better."""
    from shaketable.report.comparison import FINDINGS_TABLE_NOTE
    from shaketable.report.terminal import show_table

    console = open_console(target)
    console.print(format_cell(found.summary), markup=False, style="bold")
    changed = {status: found.to_brief_frame(status) for status in ("worse", "better")}
    for status, table in changed.items():
        if len(table):
            show_table(console, f"what became {status}", table)
    if any(map(len, changed.values())):
        console.print(format_cell(FINDINGS_TABLE_NOTE), markup=False, style="dim")
    for title, table in found.find_worst_queries().items():
        show_table(console, title, table)
    for failure in found.failures:
        console.print(
            format_cell(f"new failure: {failure.ranker} on {failure.query!r}: {failure.reason}"), markup=False
        )
    for line in (*(f"worse status: {change}" for change in found.verdict_changes), *found.remarks):
        console.print(format_cell(line), markup=False)


def finish_audit(done: Audit, out: Path, gate: bool, shown: VerdictFlags, build: BuildServerFlags) -> bool:
    """Print the verdict of an audit, write the requested files, and return True if all gates pass."""
    from shaketable.report.gates import has_passed

    if shown.json_to:
        emit_texts(map(escape_controls, done.iterate_json()), shown.json_to)
    target = "-" if "-" in (shown.json_to, build.summary_to) else None
    enforced = gate or not has_passed(done.gate_results)
    show_verdict(done, target, shown.tables, shown.table, enforced=enforced)
    write_typeset_tables(done, shown)
    notify(f"The report is {out / 'report.html'}; the tables and the runs are in {out}.")
    return emit_gate_results(done, done.verdict.gate_results if gate else done.gate_results, build)


def emit_gate_results(done: Audit, gate_results: Sequence[GateResult], build: BuildServerFlags) -> bool:
    """Write gate results for build servers, pull requests and badges, and return True if all gates pass."""
    from shaketable.report.ci import build_badge, render_junit, render_summary
    from shaketable.report.gates import has_passed

    if build.junit_to:
        emit_text(render_junit(gate_results, done.title), str(build.junit_to))
    if build.summary_to:
        emit_text(render_summary(done.title, done.verdict, gate_results), build.summary_to)
    if build.badge_to:
        emit_json(build_badge(gate_results), str(build.badge_to))
    return has_passed(gate_results)


def show_training(done: TrainingResult | TrainedWriter, json_target: str | None, page: Path | None) -> None:
    """Print the tables of a training, and write its page and its JSON if requested."""
    from shaketable.report.page import write_page
    from shaketable.report.terminal import show_table

    for title, table in done.build_tables().items():
        show_table(open_console(json_target), title, table.head(10) if title != "the course of training" else table)
    for note in done.card.get("notes", ()):
        notify(note)
    notify(str(done))
    if page:
        write_page(page, str(done), {}, [done.to_result()], done.to_dict())
    if json_target:
        emit_json(done.to_dict(), json_target)


def emit_json(data: Mapping[str, Any], target: str) -> None:
    """Write strict JSON to a file, atomically, or to stdout."""
    emit_text(escape_controls(json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)) + "\n", target)


def emit_text(text: str, target: str) -> None:
    """Write a text to a file, atomically, or to stdout, without API keys."""
    emit_texts([text], target)


def emit_texts(texts: Iterable[str], target: str) -> None:
    """Write the parts of a text to a file, atomically, or to stdout, without API keys."""
    if target == "-":
        for text in texts:
            print(redact(text), end="")
        return
    with atomic_write(Path(target)) as out:
        out.writelines(texts)
