"""What holds the house together: importing does nothing, data flows one way, text and object are the same thing."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import shaketable
from shaketable import registry
from shaketable.registry import Catalogue
from shaketable.testing import check_catalogue

SOURCE = Path(shaketable.__file__).parent
HEAVY = {
    "numpy",
    "torch",
    "transformers",
    "lightgbm",
    "ray",
    "altair",
    "matplotlib",
    "pandas",
    "scipy",
    "numba",
    "spacy",
}
CATALOGUES = {name: thing for name, thing in vars(registry).items() if isinstance(thing, Catalogue)}

# A room imports from lines below its own; rooms on one line are strangers.
LINES = [
    {"cli", "testing"},
    {"door"},
    {"task", "report"},
    {"bench"},
    {"defend"},
    {"attacks", "probes"},
    {"learners"},
    {"rankers"},
    {"index", "edit", "measure", "score"},
    {"data", "text"},
    {"registry"},
    {"types"},
    {"files", "chance", "objects", "extras"},
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
        "import shaketable",
        "from shaketable.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass",
        "from shaketable.cli import main\ntry: main(['audit', '--help'])\nexcept SystemExit: pass",
    ],
)
def test_importing_and_help_load_nothing(code):
    assert loaded_by(code) == set()


@pytest.mark.parametrize("kind", ["rankers", "learners", "tasks", "measures", "edits", "data"])
def test_listing_loads_nothing_heavy(kind):
    code = f"from shaketable.cli import main\ntry: main(['list', '{kind}'])\nexcept SystemExit: pass"
    assert loaded_by(code) <= {"numpy"}


def test_every_public_name_is_there_and_no_other():
    for name in shaketable.__all__:
        assert getattr(shaketable, name) is not None, name
    assert dir(shaketable) == shaketable.__all__
    with pytest.raises(AttributeError, match="no 'nothing'"):
        _ = shaketable.nothing


def test_no_room_has_the_name_of_a_function_of_the_door():
    rooms = {path.stem for path in SOURCE.iterdir() if path.suffix in ("", ".py")}
    assert rooms & set(shaketable.__all__) == set(), "importing the room would put it in the place of the function"


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(tree: ast.Module) -> set[str]:
    """Rooms that a module imports, wherever it does so, but for type checking."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module="shaketable", names=aliases):
                names |= {f"shaketable.{alias.name}" for alias in aliases}
            case ast.ImportFrom(module=str(module)):
                names.add(module)
            case ast.Import(names=aliases):
                names |= {alias.name for alias in aliases}
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called), args=[first, *_]) if called in (
                "import_module",
                "_torch",
            ):
                if isinstance(first, ast.JoinedStr):
                    first = first.values[0]
                names |= {first.value} if isinstance(first, ast.Constant) else set()
    return {name.split(".")[1] for name in names if name.startswith("shaketable.")}


@pytest.mark.parametrize(
    "path", [p for p in SOURCE.rglob("*.py") if p.parent != SOURCE or p.stem != "__init__"], ids=lambda p: p.stem
)
def test_data_flows_one_way(path):
    room = room_of(path)
    for other in imports(ast.parse(path.read_text())):
        assert other == room or HEIGHT[other] < HEIGHT[room], f"{room} must not import {other}"


def test_the_house_test_sees_every_way_to_import():
    code = """
        from shaketable import rankers
        from shaketable.score import road
        import shaketable.data.load
        import_module("shaketable.learners.loop")
        import_module(f"shaketable.task.{name}")
    """
    assert imports(ast.parse(textwrap.dedent(code))) == {"rankers", "score", "data", "learners", "task"}


COMMANDS = sorted((SOURCE / "cli").glob("*.py"))


@pytest.mark.parametrize("path", COMMANDS, ids=lambda p: p.stem)
def test_commands_parse_call_and_print(path):
    tree = ast.parse(path.read_text())
    assert imports(tree) & {"learners", "rankers", "score", "measure", "bench", "task"} == set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            lines = node.end_lineno - node.body[0].lineno + 1
            assert lines <= 25, f"{node.name} has {lines} lines below its signature"


@pytest.mark.parametrize("catalogue", CATALOGUES.values(), ids=list(CATALOGUES))
def test_every_row_loads_documents_itself_and_round_trips(catalogue):
    check_catalogue(catalogue)
