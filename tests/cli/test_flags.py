"""Flags: one flag has one meaning in all commands."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from types import UnionType
from typing import Annotated, get_args, get_origin

import pytest
import typer

from shaketable.cli.app import app
from shaketable.cli.options.groups import REPEATABLE_NOTE, expand_groups
from tests.cases import check_each

DIFFERENT_HELP = {
    ("audit", "--data"): "only an audit takes several collections, for the task corpus-shift",
}
"""The only flags whose help differs from that of other commands, with the reason."""


@dataclass(frozen=True)
class Flag:
    """A flag: the name and the type of its value, and its help."""

    metavar: str | None
    value_type: type
    help: str


def value_type(annotation: object) -> type:
    """Return the type of one value: `str` for `str`, `str | None` and `list[str] | None`."""
    if isinstance(annotation, UnionType):
        (annotation,) = [part for part in get_args(annotation) if part is not type(None)]
    return get_args(annotation)[0] if get_origin(annotation) is list else annotation


def flags_of(command) -> dict[str, Flag]:
    found = {}
    for parameter in signature(command, eval_str=True).parameters.values():
        assert get_origin(parameter.annotation) is Annotated, f"{parameter.name} has no description"
        annotation, option = get_args(parameter.annotation)
        if isinstance(option, typer.models.OptionInfo):
            said = option.help.removesuffix(f" {REPEATABLE_NOTE}")
            found[option.default] = Flag(option.metavar, value_type(annotation), said)
    return found


COMMANDS = {
    command.name or command.callback.__name__.replace("_", "-"): flags_of(command.callback)
    for command in app.registered_commands
}


def test_all_commands_are_looked_at():
    assert {"audit", "attack", "probe", "parity", "rank", "vary", "train", "list"} <= set(COMMANDS)
    assert {"--data", "--queries", "--max-queries", "--require", "--jobs", "--quiet"} <= set(COMMANDS["attack"])


def test_one_meaning_per_flag():
    meanings = defaultdict(lambda: defaultdict(set))
    for command, flags in COMMANDS.items():
        for name, flag in flags.items():
            said = "" if (command, name) in DIFFERENT_HELP else flag.help
            meanings[name][flag.metavar, flag.value_type].add(said)
    for name, found in meanings.items():
        assert len(found) == 1, f"{name} takes different values: {list(found)}"
        (texts,) = found.values()
        assert len(texts - {""}) <= 1, f"{name} is described in different words: {texts}"


@pytest.mark.parametrize(("command", "flag"), DIFFERENT_HELP)
def test_exceptions_are_needed(command, flag):
    others = {flags[flag].help for name, flags in COMMANDS.items() if flag in flags and name != command}
    assert COMMANDS[command][flag].help not in others


def test_no_flag_means_a_file_here_and_a_folder_there():
    assert COMMANDS["audit"]["--out"].metavar == COMMANDS["attack"]["--out"].metavar == "FOLDER"
    assert all(flags["--out"].metavar == "FOLDER" for flags in COMMANDS.values() if "--out" in flags)


@dataclass(frozen=True)
class Pair:
    first: Annotated[str, typer.Option("--first")] = "a"
    second: Annotated[Path | None, typer.Option("--second")] = None


def test_a_group_becomes_flags_and_reaches_the_command():
    def command(*, pair: Pair, third: Annotated[int, typer.Option("--third")]) -> tuple[Pair, int]:
        return pair, third

    command.__annotations__ |= {"pair": Pair, "third": Annotated[int, typer.Option("--third")]}
    expanded = expand_groups(command)
    assert list(signature(expanded).parameters) == ["first", "second", "third"]
    assert signature(expanded).parameters["first"].default == "a"
    assert expanded(first="b", second=None, third=3) == (Pair("b"), 3)


NUMBER_FLAGS = [
    (command, name)
    for command, flags in COMMANDS.items()
    for name, flag in flags.items()
    if flag.value_type in (int, float)
]


def test_there_are_flags_of_both_types_of_number():
    assert {("audit", "--depth"), ("evaluate", "--alpha")} <= set(NUMBER_FLAGS)


ODD_NUMBERS = ["1_5", "\u0661\u0662", " 3", "\uff13"]  # an underscore, Arabic digits, a blank, a wide digit


def test_numbers_are_plain_ascii_digits(shaketable):
    """Each flag refuses one odd number, and a flag of either type refuses all of them."""

    def check(case: tuple[str, str, str]) -> None:
        command, flag, text = case
        ended = shaketable(command, flag, text)
        assert ended.code == 2
        assert "number" in ended.err
        assert f"'{flag}'" in ended.err

    cases = [(*flag, ODD_NUMBERS[i % len(ODD_NUMBERS)]) for i, flag in enumerate(NUMBER_FLAGS)]
    cases += [(*flag, text) for flag in (("audit", "--depth"), ("evaluate", "--alpha")) for text in ODD_NUMBERS]
    check_each({" ".join(map(repr, case)): case for case in cases}, check)
