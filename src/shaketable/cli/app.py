"""All commands in one place; each lives in its own file."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from shaketable.cli.attack import attack
from shaketable.cli.audit import audit
from shaketable.cli.catalogue import list_
from shaketable.cli.compare import compare
from shaketable.cli.doctor import doctor
from shaketable.cli.evaluate import evaluate
from shaketable.cli.gate import gate
from shaketable.cli.parity import parity
from shaketable.cli.probe import probe
from shaketable.cli.rank import rank
from shaketable.cli.report import report
from shaketable.cli.train import train
from shaketable.cli.train_kinds import train_kinds
from shaketable.cli.vary import vary
from shaketable.errors import Stopped


class Commands(TyperGroup):
    """The commands. A stop from the keyboard is an error with a sentence of its own: typer would say nothing."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:  # the road says what is done, and what of it is kept
            raise Stopped(str(stop) or "stopped") from stop


app = typer.Typer(
    cls=Commands,
    help="Measure, probe, attack and harden the robustness of search rankers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(audit)
app.command()(compare)
app.command()(gate)
app.command()(report)
app.command()(evaluate)
app.command()(probe)
app.command()(parity)
app.command()(attack)
app.command()(rank)
app.command()(vary)
app.command()(train)
app.command()(train_kinds)
app.command(name="list")(list_)
app.command()(doctor)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(version("shaketable"))
        raise typer.Exit


@app.callback()
def shaketable(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Measure, probe, attack and harden the robustness of search rankers."""
