"""Neutralisation of workflow commands: GitHub's runner obeys lines such as `::add-mask::x` in the output of a step."""

from __future__ import annotations

import os
import re
import sys
from typing import Any, TextIO

ZERO_WIDTH_SPACE = "\u200b"
_COMMAND = re.compile(r"(?<![^\r\n])[^\S\r\n]*+:(?=:)|##(?=\[)")
"""The part before the last sign of `::` at the start of a line, after blanks, and of `##[` anywhere in a line."""
_OPEN_LINE = re.compile(r"[^\S\r\n]*+:?")


class NeutralisedStream:
    """A text stream in which no line is a workflow command; a space of no width separates the signs of a command."""

    def __init__(self, stream: TextIO):
        self._stream = stream
        self._line = ""

    def write(self, text: str) -> int:
        """Write a text; a command may be spread over several calls."""
        whole = self._line + text
        self._stream.write(_COMMAND.sub(rf"\g<0>{ZERO_WIDTH_SPACE}", whole)[len(self._line) :])
        line = re.split(r"[\r\n]", whole)[-1]
        # of a line that cannot become a command, only the last two signs matter; the x stands for those before them
        self._line = line if _OPEN_LINE.fullmatch(line) else f"x{line[-2:]}"
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def neutralise_workflow_commands() -> None:
    """Wrap stdout and stderr if this process runs in a step of GitHub Actions."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    for name in ("stdout", "stderr"):
        if not isinstance(getattr(sys, name), NeutralisedStream):
            setattr(sys, name, NeutralisedStream(getattr(sys, name)))
