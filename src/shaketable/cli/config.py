"""The file of settings: its values become what a flag is where the command line does not say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer

if TYPE_CHECKING:
    from shaketable.door.settings import Flag

KINDS: Mapping[Any, str] = {int: "a whole number", float: "a number", bool: "true or false"}
"""What values of a type are called; those of all others are texts."""


def take(ctx: typer.Context, path: Path | None) -> Path | None:
    """Read the file that is named, or the one in this folder, before any other flag of an audit is looked at."""
    from shaketable.door.settings import SETTINGS, read_settings

    if ctx.resilient_parsing or (path is None and not Path(SETTINGS).is_file()):
        return path
    from shaketable.cli.audit import audit
    from shaketable.cli.console import say

    found = path or Path(SETTINGS)
    hints = get_type_hints(audit)
    options = {_flag(one): str(one.name) for one in ctx.command.params if one.name in hints and one.name != "config"}
    given = read_settings(found, {flag: _kind(hints[name]) for flag, name in options.items()})
    ctx.default_map = {options[flag]: value for flag, value in given.items()}
    say(f"The settings are those of {found}.")
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


def _kind(hint: Any) -> Flag:
    """What values a flag of such a type takes: of `list[str] | None`, several texts."""
    from shaketable.door.settings import Flag

    one = next((part for part in get_args(hint) if part is not type(None)), hint) if type(hint) is UnionType else hint
    several = get_origin(one) is list
    return Flag(KINDS.get(get_args(one)[0] if several else one, "a text"), several)
