"""`shaketable list`: what there is."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from shaketable.cli.options import Json


class Kind(StrEnum):
    """What can be listed."""

    rankers = "rankers"
    tasks = "tasks"
    edits = "edits"
    learners = "learners"
    probes = "probes"
    measures = "measures"
    data = "data"
    resources = "resources"


def list_(
    kind: Annotated[Kind, typer.Argument(help="What to list.")],
    json_to: Json = None,
) -> None:
    """List what there is of a kind, each with a line on what it is."""
    from shaketable.cli.console import emit_json, stdout

    rows = _rows(kind)
    if json_to:
        emit_json({"schema": "shaketable.list/1", "kind": kind.value, "rows": rows}, json_to)
        return
    from rich.markup import escape
    from rich.table import Table

    from shaketable.report import cell

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for name, summary in rows.items():
        table.add_row(escape(cell(name)), escape(cell(summary)))
    stdout().print(table)


def _rows(kind: Kind) -> dict[str, str]:
    """name -> a line on what it is."""
    from shaketable.registry import EDITS, LEARNERS, MEASURES, PROBES, RANKERS, TASKS

    if kind is Kind.data:
        from shaketable.data.load import SOURCES

        return dict(SOURCES)
    if kind is Kind.resources:
        from shaketable.text.resources import resources

        return {r.name: f"found at {r.where}" if r.found else f"not at {r.where}; {r.advice}" for r in resources()}
    catalogues = {
        Kind.rankers: RANKERS,
        Kind.learners: LEARNERS,
        Kind.tasks: TASKS,
        Kind.edits: EDITS,
        Kind.probes: PROBES,
        Kind.measures: MEASURES,
    }
    rows = {name: catalogues[kind].summary(name) for name in catalogues[kind]}
    if kind is Kind.measures:
        from shaketable.door.catalogue import MEASURE_EXAMPLES

        return {**MEASURE_EXAMPLES, **rows}
    return rows
