"""Old names work and warn: names of the package, of registries and of flags, as docs/releases.md promises."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import shaketable
from shaketable.core import deprecation
from shaketable.core.deprecation import PYTHON_NAME, DeprecatedNameWarning, Renaming
from shaketable.core.errors import UnknownName
from shaketable.core.registries import RANKERS

ROOT = Path(__file__).resolve().parents[2]
RENAMED = {
    PYTHON_NAME: {"workers": Renaming("make_executor", "9.9")},
    "ranker": {"okapi": Renaming("bm25", "9.9")},
    "flag of list": {"--to-json": Renaming("--json", "9.9")},
}
COMMAND = """
from shaketable.core import deprecation
from shaketable.core.deprecation import Renaming
deprecation.RENAMED = {"flag of list": {"--to-json": Renaming("--json", "9.9")}}
from shaketable.cli import main
main()
"""


@pytest.fixture
def renamed(monkeypatch):
    monkeypatch.setattr(deprecation, "RENAMED", RENAMED)


def test_a_name_of_the_package(renamed):
    message = r"^'workers' \(name of the package\) is now 'make_executor'; version 9\.9 no longer accepts the old name$"
    with pytest.warns(DeprecatedNameWarning, match=message) as caught:
        assert shaketable.workers is shaketable.make_executor
    assert caught[0].filename == __file__, "the warning names the line of the user"
    with pytest.raises(AttributeError, match="no 'nothing'"):
        _ = shaketable.nothing


def test_a_name_of_a_registry(renamed):
    with pytest.warns(DeprecatedNameWarning, match=r"'okapi' \(ranker\) is now 'bm25'"):
        assert RANKERS.build("okapi(k1=1.2)") == RANKERS.build("bm25(k1=1.2)")
    assert "okapi" not in RANKERS
    with pytest.raises(UnknownName):
        RANKERS.build("okapis")


def test_a_flag_on_the_command_line(tmp_path):
    command = [sys.executable, "-c", COMMAND, "list", "rankers", "--to-json=-"]
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        "shaketable: '--to-json' (flag of list) is now '--json'; version 9.9 no longer accepts the old name"
    ]
    assert '"shaketable.list/1"' in done.stdout


def test_an_unknown_flag_stays_unknown(tmp_path):
    command = [sys.executable, "-c", COMMAND, "list", "rankers", "--too-json"]
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    assert subprocess.run(command, capture_output=True, cwd=tmp_path, env=env).returncode == 2


def test_no_current_name_is_an_old_one():
    python_names = deprecation.RENAMED.get(PYTHON_NAME, {})
    assert not set(python_names) & set(shaketable.__all__)
    assert all(renaming.new in shaketable.__all__ for renaming in python_names.values())
