"""The settings file, whose values become the defaults of flags."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer

from shaketable.cli.help import Panel
from shaketable.cli.options.groups import make_option

if TYPE_CHECKING:
    from shaketable.api.settings import FlagType

TYPE_NAMES: Mapping[Any, str] = {int: "a whole number", float: "a number", bool: "true or false"}
"""The names of value types; values of all other types are texts."""


def load_settings(ctx: typer.Context, path: Path | None) -> Path | None:
    """Read the named settings file, or that of the current folder, before all other flags; return its path."""
    from shaketable.api.settings import SETTINGS_FILE, read_settings

    if ctx.resilient_parsing or (path is None and not Path(SETTINGS_FILE).is_file()):
        return path
    from shaketable.cli.audit import audit
    from shaketable.cli.console import notify
    from shaketable.cli.options.groups import expand_groups
    from shaketable.cli.supervision import PIPE

    found = path or Path(SETTINGS_FILE)
    hints = get_type_hints(expand_groups(audit))
    options = {
        _strip_dashes(one): str(one.name) for one in ctx.command.params if one.name in hints and one.name != "config"
    }
    given = read_settings(found, {flag: _make_flag_type(hints[name]) for flag, name in options.items()})
    ctx.default_map = {options[flag]: value for flag, value in given.items()}
    if PIPE.descriptor is None:  # otherwise the supervisor of this process has printed it
        notify(f"Settings from {found}.")
    return found


Config = Annotated[
    Path | None,
    make_option(Panel.GENERAL, "--config", metavar="FILE", is_eager=True, callback=load_settings,
        help="A TOML file of settings, which can set each flag of this command. Flags on the command line take "
             "precedence. By default, it is shaketable.toml in the current folder, if it exists."),
]  # fmt: skip


def _strip_dashes(option: Any) -> str:
    """Return the longest name of an option, without dashes."""
    return str(max(option.opts, key=len)).lstrip("-")


def _make_flag_type(hint: Any) -> FlagType:
    """Return the type of a flag's values: several texts for `list[str] | None`."""
    from shaketable.api.settings import FlagType

    one = next((part for part in get_args(hint) if part is not type(None)), hint) if type(hint) is UnionType else hint
    several = get_origin(one) is list
    return FlagType(TYPE_NAMES.get(get_args(one)[0] if several else one, "a text"), several)
