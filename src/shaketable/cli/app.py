"""All commands in one place; each lives in its own file."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
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
from shaketable.cli.options import Quiet, Verbose
from shaketable.cli.parity import parity
from shaketable.cli.probe import probe
from shaketable.cli.rank import rank
from shaketable.cli.report import report
from shaketable.cli.train import train
from shaketable.cli.train_kinds import train_kinds
from shaketable.cli.vary import vary
from shaketable.errors import BadInput, Stopped


class Commands(TyperGroup):
    """The commands. A stop, from the keyboard or by code that a user named, is an error with a sentence of its own."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:  # the road says what is done, and what of it is kept
            raise Stopped(str(stop) or "stopped") from stop
        except SystemExit as end:  # not ours: commands return
            if isinstance(end.__context__, BrokenPipeError):  # where nobody reads on, typer leaves like this
                raise
            raise BadInput("code that you named tried to end the program") from end


class App(typer.Typer):
    """A Typer all of whose commands take --quiet and --verbose."""

    def command(  # type: ignore[override]
        self, name: str | None = None, **how: Any
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        add = super().command(name, **how)
        return lambda command: add(_heard(command))


def _heard(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same command, with options for how much it says."""

    @wraps(command)
    def heard(*, quiet: bool, verbose: bool, **given: Any) -> Any:
        from shaketable.cli.console import loudness

        with loudness(quiet, verbose):
            return command(**given)

    own = signature(command, eval_str=True)
    added = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=False, annotation=annotation)
        for name, annotation in (("quiet", Quiet), ("verbose", Verbose))
    ]
    heard.__signature__ = own.replace(parameters=[*own.parameters.values(), *added])  # type: ignore[attr-defined]
    return heard


app = App(
    cls=Commands,
    no_args_is_help=True,
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
    """Measure how robust search rankers are, find where they break, attack them, and harden them."""
