"""Every benchmark runs at its small size."""

from __future__ import annotations

import ast
import os
import runpy
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
SCRIPTS = sorted(path for path in FOLDER.glob("*.py") if '__name__ == "__main__"' in path.read_text(encoding="utf-8"))
PACKAGES = sorted(path.parent for path in FOLDER.glob("*/__main__.py"))
NAMES = [path.name for path in SCRIPTS] + [f"{package.name}/__main__.py" for package in PACKAGES]
MODULES = {path.stem for path in FOLDER.glob("*.py")} | {"benchmarks"}


def list_missing_modules(path: Path, seen: frozenset[str] = frozenset()) -> list[str]:
    """Return the libraries that a script and its neighbours import and that are not installed."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    own = names & MODULES - seen - {"benchmarks"}
    deeper = [name for one in own for name in list_missing_modules(FOLDER / f"{one}.py", seen | own)]
    return sorted({name for name in names - MODULES if find_spec(name) is None}.union(deeper))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """The command line of a benchmark in an empty folder, and the environment and modules as they were afterwards."""
    environment, modules = dict(os.environ), set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(FOLDER))
    yield
    os.environ.clear()
    os.environ.update(environment)
    for name in MODULES & (sys.modules.keys() - modules):
        del sys.modules[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("default")  # a warning of a peer library is not ours
def test_benchmark_runs(name: str, quick: None, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    path = FOLDER / name
    if missing := list_missing_modules(path):
        pytest.skip(f"{', '.join(missing)} not installed: pip install --group bench")
    monkeypatch.setattr(sys, "argv", [str(path), "--quick"])
    code: object = 0
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        code = end.code
    printed = capfd.readouterr()
    assert code in (0, None), printed.out + printed.err
    assert any(character.isdigit() for character in printed.out), "the output has no measured number"
    if "judge_limits" in path.read_text(encoding="utf-8"):
        assert "limits are not judged at this size" in printed.out
