"""`shaketable doctor`: checks of a collection, a run, a ranker, or this installation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shaketable.cli.help import Panel
from shaketable.cli.options.data import QrelsFile
from shaketable.cli.options.groups import make_option
from shaketable.cli.options.output import Json

if TYPE_CHECKING:
    from rich.console import Console

    from shaketable.datasets.validation import CollectionStatistics, ValidationCheck

Lists = Annotated[
    int,
    make_option(Panel.RANKERS, "--lists", metavar="N", min=0,
        help="The number of shuffled lists to ask a ranker for, at least 60. With 0, it is 200 for an endpoint and 60 "
             "for any other ranker."),
]  # fmt: skip


def doctor(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="TARGET",
            help="A collection ('sample', a folder, or irds:ID), a TREC run file (with --qrels), or a ranker (the URL "
            "of an endpoint, hf:FOLDER, ./mine.py:score, bm25, ...). Without a target, this installation is checked.",
        ),
    ] = None,
    qrels: QrelsFile = None,
    lists: Lists = 0,
    json_to: Json = None,
) -> None:
    """Check a collection, a run, a ranker or this installation. The exit code is 2 if a check finds an error."""
    from shaketable.api.endpoint import is_ranker

    if path is not None and is_ranker(path):
        _diagnose(path, lists, json_to)
        return
    from shaketable.cli.console import emit_json, open_console
    from shaketable.report.files import to_plain

    findings, counted = _examine(path, qrels)
    console = open_console(json_to)
    if counted:
        _show_statistics(console, counted)
    _show_findings(console, findings)
    if json_to:
        statistics = {"statistics": to_plain(vars(counted))} if counted else {}
        emit_json({"schema": "shaketable.doctor/1", **statistics, "findings": [vars(f) for f in findings]}, json_to)
    if any(finding.severity == "error" for finding in findings):
        raise typer.Exit(2)


def _diagnose(spec: str, lists: int, json_to: str | None) -> None:
    """Check a ranker: the outcome first, then a line for each check."""
    from shaketable.api.endpoint import examine_ranker
    from shaketable.cli.console import emit_json, open_console
    from shaketable.report import format_cell

    found = examine_ranker(spec, lists=lists)
    console = open_console(json_to)
    console.print(format_cell(found.summary), markup=False, style="bold", soft_wrap=True)
    console.print()
    _show_findings(console, found.checks)
    if json_to:
        faults, findings = [vars(fault) for fault in found.faults], [vars(check) for check in found.checks]
        emit_json(
            {"schema": "shaketable.doctor/1", "summary": found.summary, "faults": faults, "findings": findings}, json_to
        )
    if any(check.severity == "error" for check in found.checks):
        raise typer.Exit(2)


def _show_statistics(console: Console, counted: CollectionStatistics) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for name, number in counted.format_rows().items():
        table.add_row(name, number)
    console.print(table)
    console.print()


def _show_findings(console: Console, findings: Sequence[ValidationCheck]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from shaketable.report import format_cell

    signs = {"ok": "[green]ok[/]", "warning": "[yellow]warning[/]", "error": "[red]broken[/]"}
    table = Table(box=None, pad_edge=False)
    for column in ("result", "check", "count", "examples", "advice"):
        table.add_column(column, justify="right" if column == "count" else "left", overflow="fold")
    for finding in findings:
        count = f"{finding.count:,} of {finding.total:,}" if finding.total else str(finding.count or "")
        examples = escape(format_cell(", ".join(finding.examples[:3])))
        advice = {"ok": "", "error": "see below"}.get(finding.severity, escape(format_cell(finding.advice)))
        table.add_row(signs[finding.severity], escape(format_cell(finding.check)), count, examples, advice)
    console.print(table)
    for finding in findings:
        if finding.severity == "error":  # on its own lines, so that you can copy its advice
            said = f"[red]broken[/]: {escape(format_cell(finding.check))}: {escape(format_cell(finding.advice))}"
            console.print(said, soft_wrap=True, highlight=False)


def _examine(path: str | None, qrels: Path | None) -> tuple[list[ValidationCheck], CollectionStatistics | None]:
    from shaketable.core.errors import BadInput
    from shaketable.datasets.load import load
    from shaketable.datasets.trec import read_qrels, read_run
    from shaketable.datasets.validation import (
        compute_statistics,
        validate_collection,
        validate_installation,
        validate_run,
    )

    if path is None:
        return validate_installation(), None
    if Path(path).is_file():
        if qrels is None:
            raise BadInput("is a file; to check it as a run, add the judgements with --qrels", path)
        return validate_run(read_run(Path(path)), read_qrels(qrels)), None
    collection = load(path)
    return validate_collection(collection), compute_statistics(collection)
