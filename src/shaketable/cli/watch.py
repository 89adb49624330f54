"""`shaketable watch`: a check whether a ranker still gives the scores that it gave at first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from shaketable.cli.help import Panel
from shaketable.cli.options.groups import make_option
from shaketable.cli.options.output import Json
from shaketable.cli.options.rankers import WatchedRanker

StateFile = Annotated[
    Path | None,
    make_option(Panel.DATA, "--state", metavar="FILE",
        help="The file that holds the baseline and the evidence of drift. By default, it is in $SHAKETABLE_HOME/watch, "
             "named by the text of the ranker."),
]  # fmt: skip
Reset = Annotated[
    bool,
    make_option(Panel.DATA, "--reset",
        help="Record a new baseline, for example after you have changed the model on purpose."),
]  # fmt: skip


def watch(*, ranker: WatchedRanker, state: StateFile = None, reset: Reset = False, json_to: Json = None) -> None:
    """Check whether a ranker has changed since the first call. The exit code is 1 if it has."""
    from shaketable.api.watch import watch as api
    from shaketable.cli.console import emit_text, open_console
    from shaketable.report import escape_controls, format_cell

    look = api(ranker, state, reset=reset)
    open_console(json_to).print(format_cell(look.summary), markup=False, soft_wrap=True)
    if json_to:
        emit_text(escape_controls(json.dumps(look.to_dict(), ensure_ascii=False, allow_nan=False)) + "\n", json_to)
    if look.drift:
        raise typer.Exit(1)
