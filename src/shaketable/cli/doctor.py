"""`shaketable doctor`: what is wrong with a collection, a run, an endpoint, or this installation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shaketable.cli.options import Json

if TYPE_CHECKING:
    from shaketable.data.doctor import Check


def doctor(
    path: Annotated[
        str | None,
        typer.Argument(
            help="A collection ('sample', a folder, irds:ID), a run file, or an endpoint (a URL); none: this machine."
        ),
    ] = None,
    qrels: Annotated[Path | None, typer.Option("--qrels", help="Judgements to hold a run against.")] = None,
    json_to: Json = None,
) -> None:
    """Examine a collection, a run, an endpoint or the installation; the exit code is 2 if it cannot be used."""
    from shaketable.cli.console import emit_json, stdout

    findings = _examine(path, qrels)
    console = stdout(json_to)
    signs = {"ok": "[green]ok[/]", "warning": "[yellow]warning[/]", "error": "[red]broken[/]"}
    from rich.markup import escape
    from rich.table import Table

    from shaketable.report import cell

    table = Table(box=None, pad_edge=False)
    for column in ("", "check", "count", "found", "advice"):
        table.add_column(column, justify="right" if column == "count" else "left", overflow="fold")
    for finding in findings:
        count = f"{finding.count}/{finding.total}" if finding.total else str(finding.count or "")
        examples = escape(cell(", ".join(finding.examples[:3])))
        advice = "" if finding.severity == "ok" else escape(cell(finding.advice))
        table.add_row(signs[finding.severity], escape(cell(finding.check)), count, examples, advice)
    console.print(table)
    if json_to:
        emit_json({"schema": "shaketable.doctor/1", "findings": [vars(f) for f in findings]}, json_to)
    if any(finding.severity == "error" for finding in findings):
        raise typer.Exit(2)


def _examine(path: str | None, qrels: Path | None) -> list[Check]:
    from shaketable.data.doctor import examine_collection, examine_installation, examine_run
    from shaketable.data.load import load
    from shaketable.data.trec import read_qrels, read_run
    from shaketable.door.endpoint import examine_endpoint, is_endpoint
    from shaketable.errors import BadInput

    if path is None:
        return examine_installation()
    if is_endpoint(path):
        return examine_endpoint(path)
    if Path(path).is_file():
        if qrels is None:
            raise BadInput("is a file: give --qrels too, to hold the run against", path)
        return examine_run(read_run(Path(path)), read_qrels(qrels))
    return examine_collection(load(path))
