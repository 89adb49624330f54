"""The Typer application with all commands; each command has its own module."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from shaketable import __version__
from shaketable.cli.attack import attack
from shaketable.cli.audit import audit
from shaketable.cli.board import board
from shaketable.cli.command import GroupedCommand
from shaketable.cli.compare import compare
from shaketable.cli.demo import demo
from shaketable.cli.doctor import doctor
from shaketable.cli.evaluate import evaluate
from shaketable.cli.gate import gate
from shaketable.cli.help import prepare_help
from shaketable.cli.listing import list_
from shaketable.cli.options.groups import expand_groups
from shaketable.cli.options.output import Quiet, Verbose
from shaketable.cli.parity import parity
from shaketable.cli.probe import probe
from shaketable.cli.rank import rank
from shaketable.cli.report import report
from shaketable.cli.train import train
from shaketable.cli.vary import vary
from shaketable.cli.view import view
from shaketable.cli.watch import watch
from shaketable.core.errors import BadInput, Interrupted


class Commands(TyperGroup):
    """A command group that turns interrupts and exits of user code into error messages."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        prepare_help(self, ctx)
        super().format_help(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:  # the engine reports the cached work
            raise Interrupted(str(stop) or "stopped") from stop
        except SystemExit as end:  # from user code: commands return
            if isinstance(end.__context__, BrokenPipeError):  # from typer: the reader closed the output
                raise
            raise BadInput("a ranker or another object of yours called sys.exit") from end


class App(typer.Typer):
    """A Typer whose commands accept groups of flags, --quiet and --verbose."""

    def command(  # type: ignore[override]
        self, name: str | None = None, **how: Any
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        add = super().command(name, cls=GroupedCommand, **how)
        return lambda command: add(_add_verbosity_flags(expand_groups(command)))


def _add_verbosity_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command with the flags --quiet and --verbose."""

    @wraps(command)
    def run(*, quiet: bool, verbose: bool, **given: Any) -> Any:
        from shaketable.cli.console import set_verbosity
        from shaketable.cli.supervision import needs_supervision, run_supervised

        with set_verbosity(quiet, verbose):
            if needs_supervision(given):
                raise typer.Exit(run_supervised())
            return command(**given)

    own = signature(command)
    added = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=False, annotation=annotation)
        for name, annotation in (("quiet", Quiet), ("verbose", Verbose))
    ]
    run.__signature__ = own.replace(parameters=[*own.parameters.values(), *added])  # type: ignore[attr-defined]
    return run


app = App(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)
app.command()(audit)
app.command()(compare)
app.command()(board)
app.command()(gate)
app.command()(report)
app.command()(evaluate)
app.command()(probe)
app.command()(parity)
app.command()(attack)
app.command()(rank)
app.command()(view)
app.command()(vary)
app.command()(train)
app.command(name="list")(list_)
app.command()(doctor)
app.command()(watch)


def _print_version(wanted: bool) -> None:
    if wanted:
        from platform import python_version

        from shaketable.core.extras import installed_version
        from shaketable.core.provenance import VERSIONED_LIBRARIES

        found = ((name, installed_version(name)) for name in VERSIONED_LIBRARIES)
        typer.echo(f"shaketable {__version__}")
        typer.echo(", ".join([f"Python {python_version()}", *(f"{name} {known}" for name, known in found if known)]))
        raise typer.Exit


@app.callback()
def shaketable(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Measure, probe, attack and harden the robustness of search rankers."""
