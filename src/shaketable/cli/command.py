"""The class of all commands: help in groups, and one reading of numbers."""

from __future__ import annotations

from inspect import signature
from typing import Any, get_args

import typer
from typer.core import TyperCommand

from shaketable.cli.help import prepare_help
from shaketable.core.deprecation import resolve_name


class GroupedCommand(TyperCommand):
    """A command whose help shows its options in groups, and whose numbers are plain ASCII digits."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        prepare_help(self, ctx)
        super().format_help(ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            args = [_replace_old_flag(self.name, word) for word in args]
            _check_numbers(self, ctx, args)
        return super().parse_args(ctx, args)


def _replace_old_flag(command: str | None, word: str) -> str:
    """Return a word of the command line, with the current name of a flag."""
    flag, equals, value = word.partition("=")
    return f"{resolve_name(f'flag of {command}', flag)}{equals}{value}"


def _check_numbers(command: Any, ctx: Any, args: list[str]) -> None:
    """Refuse numbers that are not plain ASCII, such as 1_5 and Arabic digits, as the readers of files do."""
    from shaketable.files.reading import parse_float, parse_int

    flags = signature(command.callback).parameters
    given, _, _ = command.make_parser(ctx).parse_args(args=list(args))
    for param in (one for one in command.params if one.name in given and one.name in flags):
        types = _list_leaf_types(flags[param.name].annotation)
        if int not in types and float not in types:
            continue
        texts = given[param.name] if isinstance(given[param.name], list) else [given[param.name]]
        for text in (one for one in texts if isinstance(one, str)):
            try:
                parse_int(text) if int in types else parse_float(text)
            except ValueError as error:
                raise typer.BadParameter(f"{error}.", ctx=ctx, param=param) from None


def _list_leaf_types(hint: Any) -> list[Any]:
    """Return the types that a type hint is made of: int and NoneType of `Annotated[int | None, ...]`."""
    parts = get_args(hint)
    return [leaf for part in parts for leaf in _list_leaf_types(part)] if parts else [hint]
