"""Groups of flags: a parameter of a command whose type is a dataclass becomes one flag for each field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import Any, get_type_hints

import typer

from shaketable.cli.help import Panel

REPEATABLE_NOTE = "You can repeat this option."


def make_option(panel: Panel, *names: str, help: str, **how: Any) -> typer.models.OptionInfo:
    """Return an option that help shows in this group."""
    option: typer.models.OptionInfo = typer.Option(*names, help=help, rich_help_panel=panel, **how)
    return option


def make_repeatable(panel: Panel, name: str, *, help: str, **how: Any) -> typer.models.OptionInfo:
    """Return an option that you can give several times."""
    return make_option(panel, name, help=f"{help} {REPEATABLE_NOTE}", **how)


def expand_groups(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with a parameter for each flag, for typer, that passes the groups to the command."""
    own = signature(command, eval_str=True)
    groups: dict[str, Any] = {
        name: parameter.annotation for name, parameter in own.parameters.items() if is_dataclass(parameter.annotation)
    }
    flags = [flag for parameter in own.parameters.values() for flag in _list_flags(parameter)]

    @wraps(command)
    def run(**given: Any) -> Any:
        built = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        return command(**given, **built)

    run.__signature__ = own.replace(parameters=flags)  # type: ignore[attr-defined]
    run.__annotations__ = {flag.name: flag.annotation for flag in flags}
    return run


def _list_flags(parameter: Parameter) -> Iterator[Parameter]:
    """Yield the fields of a group as parameters, or the parameter itself."""
    group = parameter.annotation
    if not is_dataclass(group):
        yield parameter.replace(kind=Parameter.KEYWORD_ONLY)
        return
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        default = Parameter.empty if field.default is MISSING else field.default
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name])
