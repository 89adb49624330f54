"""`shaketable list`: what there is."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from shaketable.cli import complete
from shaketable.cli.options import Json


class Kind(StrEnum):
    """What can be listed."""

    rankers = "rankers"
    tasks = "tasks"
    edits = "edits"
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
    kind: Annotated[Kind, typer.Argument(help="The kind of thing to list, for example rankers.")],
    name: Annotated[
        str | None,
        typer.Argument(
            help="The name of one of them, to see its parameters, for example: shaketable list rankers http",
            autocompletion=complete.listed,
        ),
    ] = None,
    json_to: Json = None,
) -> None:
    """List the names of a kind of thing, each with a line that says what it is; with a name, list its parameters."""
    from shaketable.cli.console import emit_json, stdout
    from shaketable.door.catalogue import listed, parameters

    rows = listed(kind.value) if name is None else parameters(kind.value, name)
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
