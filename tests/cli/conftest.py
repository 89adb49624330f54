"""Running commands as a user would, in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from shaketable.cli import main


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    def complaint(self) -> str:
        """The one sentence of a refused input: exit code 2, no traceback."""
        assert self.code == 2, (self.code, self.out, self.err)
        assert "Traceback" not in self.err
        (line,) = [line for line in self.err.splitlines() if line.startswith("shaketable: ")]
        return line.removeprefix("shaketable: ")


@pytest.fixture
def shaketable(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ended]:
    """Call it with words; every command runs in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def call(*words: object) -> Ended:
        capsys.readouterr()
        try:
            main([str(word) for word in words])
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        out, err = capsys.readouterr()
        return Ended(code, out, err)

    return call
