"""`shaketable list`: names and parameters of rankers, tasks, transforms and other entries."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from shaketable.cli import completion
from shaketable.cli.options.output import Json


class Listable(StrEnum):
    """The kinds of entries that `shaketable list` shows."""

    rankers = "rankers"
    tasks = "tasks"
    transforms = "transforms"
    learners = "learners"
    probes = "probes"
    recipes = "recipes"
    goals = "goals"
    constraints = "constraints"
    detectors = "detectors"
    defences = "defences"
    synonyms = "synonyms"
    measures = "measures"
    data = "data"
    resources = "resources"


def list_(
    kind: Annotated[Listable, typer.Argument(metavar="KIND", help=f"One of {', '.join(Listable)}.")],
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="The name of an entry, to list its parameters, for example: shaketable list rankers http",
            autocompletion=completion.complete_entries,
        ),
    ] = None,
    json_to: Json = None,
) -> None:
    """List rankers, tasks, transforms and other entries by name, or the parameters of one entry."""
    from shaketable.api.listing import list_entries, list_parameters
    from shaketable.cli.console import emit_json, open_console

    rows = list_entries(kind.value) if name is None else list_parameters(kind.value, name)
    if json_to:
        emit_json({"schema": "shaketable.list/1", "kind": kind.value, "rows": rows}, json_to)
        return
    from rich.markup import escape
    from rich.table import Table

    from shaketable.report import format_cell

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for name, summary in rows.items():
        table.add_row(escape(format_cell(name)), escape(format_cell(summary)))
    open_console().print(table)
