"""What holds the house together: importing does nothing, data flows one way, text and object are the same thing."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import shaketable
from shaketable import registry
from shaketable.registry import Catalogue
from shaketable.testing import check_catalogue

SOURCE = Path(shaketable.__file__).parent
HEAVY = {"torch", "transformers", "lightgbm", "ray", "altair", "matplotlib", "pandas", "scipy", "numba"}
CATALOGUES = {name: thing for name, thing in vars(registry).items() if isinstance(thing, Catalogue)}

# A room imports from lines below its own; rooms on one line are strangers.
LINES = [
    {"cli"},
    {"task", "report", "testing"},
    {"bench"},
    {"attack"},
    {"train"},
    {"rank"},
    {"index", "edit", "measure", "score"},
    {"data", "text"},
    {"registry"},
    {"types"},
    {"files", "chance", "objects"},
    {"errors"},
]
HEIGHT = {room: height for height, rooms in enumerate(reversed(LINES)) for room in rooms}


def loaded_by(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in out.stdout.splitlines()} & HEAVY


@pytest.mark.parametrize(
    "code",
    [
        "import shaketable, shaketable.testing",
        "from shaketable.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass",
        *(
            f"from shaketable.cli import main\ntry: main(['list', '{kind}'])\nexcept SystemExit: pass"
            for kind in ("rankers", "tasks", "measures", "data")
        ),
    ],
)
def test_importing_and_listing_load_nothing_heavy(code):
    assert loaded_by(code) == set()


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(tree: ast.Module) -> set[str]:
    """Rooms that a module imports, wherever it does so, but for type checking."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return {name.split(".")[1] for name in names if name.startswith("shaketable.")}


@pytest.mark.parametrize(
    "path", [p for p in SOURCE.rglob("*.py") if p.parent != SOURCE or p.stem != "__init__"], ids=lambda p: p.stem
)
def test_data_flows_one_way(path):
    room = room_of(path)
    for other in imports(ast.parse(path.read_text())):
        assert other == room or HEIGHT[other] < HEIGHT[room], f"{room} must not import {other}"


@pytest.mark.parametrize("catalogue", CATALOGUES.values(), ids=list(CATALOGUES))
def test_every_row_loads_documents_itself_and_round_trips(catalogue):
    check_catalogue(catalogue)
