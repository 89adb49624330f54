"""The file of settings: its values become what a flag is where the command line does not say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from shaketable.door.settings import Flag

KINDS = {
    "integer": "a whole number",
    "integer range": "a whole number",
    "float": "a number",
    "float range": "a number",
    "boolean": "true or false",
}
"""What the values of typer's types are; of all others, texts."""


def take(ctx: typer.Context, path: Path | None) -> Path | None:
    """Read the file that is named, or the one in this folder, before any other flag is looked at."""
    from shaketable.door.settings import SETTINGS, read_settings

    if ctx.resilient_parsing or (path is None and not Path(SETTINGS).is_file()):
        return path
    from shaketable.cli.console import say

    found = path or Path(SETTINGS)
    options = {_flag(option): option for option in ctx.command.params if option.name not in ("config", "help")}
    given = read_settings(found, {name: _kind(option) for name, option in options.items()})
    ctx.default_map = {str(options[name].name): value for name, value in given.items()}
    say(f"settings: {found}")
    return found


Config = Annotated[
    Path | None,
    typer.Option("--config", is_eager=True, callback=take, help="A file of settings, in which each flag of this "
                 "command can be set; flags on the command line win. By default, shaketable.toml in the folder where "
                 "you are, if there is one."),
]  # fmt: skip


def _flag(option: Any) -> str:
    """The name of an option as it is written, without dashes."""
    return str(max(option.opts, key=len)).lstrip("-")


def _kind(option: Any) -> Flag:
    from shaketable.door.settings import Flag

    return Flag(KINDS.get(option.type.name, "a text"), option.multiple)
