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
    measures = "measures"
    data = "data"


def list_(
    kind: Annotated[Kind, typer.Argument(help="What to list.")],
    json_to: Json = None,
) -> None:
    """List rankers, tasks, measures or data, each with a line on what it is."""
    from shaketable.cli.console import emit_json, stdout
    from shaketable.registry import MEASURES, RANKERS, TASKS

    catalogues = {Kind.rankers: RANKERS, Kind.tasks: TASKS, Kind.measures: MEASURES}
    if kind is Kind.data:
        from shaketable.data.load import SOURCES

        rows = dict(SOURCES)
    else:
        rows = {name: catalogues[kind].summary(name) for name in catalogues[kind]}
    if kind is Kind.measures:
        from shaketable.measure.effectiveness import EXAMPLES

        rows = {**EXAMPLES, **rows}
    if json_to:
        emit_json({"schema": "shaketable.list/1", "kind": kind.value, "rows": rows}, json_to)
        return
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for name, summary in rows.items():
        table.add_row(name.replace("[", r"\["), summary.replace("[", r"\["))
    stdout().print(table)
