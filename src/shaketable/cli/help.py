"""The help of commands: options in groups, and texts that are shown as they are written."""

from __future__ import annotations

from enum import StrEnum
from typing import Any


class Panel(StrEnum):
    """The groups of options, in the order in which help shows them."""

    DATA = "Data"
    RANKERS = "Rankers"
    TASKS = "Tasks"
    EVALUATION = "Evaluation"
    STATISTICS = "Statistics"
    PROBES = "Probes"
    ATTACKS = "Attacks"
    VARIATIONS = "Variations"
    TRAINING = "Training"
    TEXT_ANALYSIS = "Text analysis"
    GATES = "Gates"
    OUTPUT = "Output"
    PERFORMANCE = "Performance"
    GENERAL = "General"


def prepare_help(command: Any, ctx: Any) -> None:
    """Sort the options of a command by group, and prepare all its texts for typer, which reads them as Rich markup.

    Typer builds the command anew for each call, so texts are escaped once.
    """
    from rich.markup import escape

    order = list(Panel)
    command.help = escape(command.help or "")
    for param in command.get_params(ctx):
        param.help = escape(param.help or "")
        if param.param_type_name == "argument":
            param.display_type_rich = lambda ctx: ""  # the help text says what the value is
            continue
        param.rich_help_panel = param.rich_help_panel or Panel.GENERAL
        if param.is_flag:
            param.metavar = ""  # typer shows <bool> otherwise, though a flag takes no value
    command.params.sort(
        key=lambda param: -1 if param.param_type_name == "argument" else order.index(param.rich_help_panel)
    )
