"""Help: options in groups, no type names of Python, and texts as they are written."""

from __future__ import annotations

import re

import pytest

from shaketable.cli.app import app
from shaketable.cli.help import Panel

COMMANDS = [command.name or command.callback.__name__ for command in app.registered_commands]


@pytest.fixture(params=["80", "120"])
def columns(request, monkeypatch):
    monkeypatch.setenv("COLUMNS", request.param)
    return int(request.param)


def find_panels(help_text: str) -> list[str]:
    return [
        name for name in re.findall(r"^╭─ (.+?) ─", help_text, re.MULTILINE) if name not in ("Arguments", "Commands")
    ]


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_options_are_in_groups_and_no_type_is_shown(shaketable, columns, command):
    found = shaketable(*filter(None, [command]), "--help").out
    assert not re.search(r"<(bool|str|path|int|float)>", found)
    panels = find_panels(found)
    assert panels
    assert panels == [panel for panel in Panel if panel in panels]  # known, each once, in order
    assert max(map(len, found.splitlines())) <= columns


def test_the_groups_of_an_audit(shaketable):
    wanted = ["Data", "Rankers", "Tasks", "Gates", "Output", "Performance", "General"]
    assert find_panels(shaketable("audit", "--help").out) == wanted


def test_brackets_are_shown(shaketable, columns):
    assert "[[fail_if]]" in shaketable("audit", "--help").out
    assert "[[fail_if]]" in shaketable("gate", "--help").out


def test_help_can_be_shown_twice_in_one_process(shaketable):
    assert shaketable("gate", "--help").out == shaketable("gate", "--help").out
