"""The architecture as tests: layers, names, and imports that do nothing."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import textwrap
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

import shaketable
from shaketable.core import registries
from shaketable.core.registry import Registry
from shaketable.testing import check_registry
from tests.cases import check_each

SOURCE = Path(shaketable.__file__).parent
MODULES = [path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py"]
BY_NAME = {str(path.relative_to(SOURCE)): path for path in MODULES}
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
REGISTRIES = {name: thing for name, thing in vars(registries).items() if isinstance(thing, Registry)}

# A package imports only from lower layers; packages of one layer do not import each other.
LAYERS = [
    {"cli", "pytest_plugin", "testing"},
    {"api"},
    {"tasks", "report"},
    {"defences"},
    {"attacks", "probes"},
    {"experiment"},
    {"training"},
    {"rankers"},
    {"retrieval", "transforms", "measures", "scoring"},
    {"executors"},
    {"datasets", "nlp"},
    {"files"},
    {"core"},
]
HEIGHT = {package: height for height, packages in enumerate(reversed(LAYERS)) for package in packages}

NAMES_OF_HIGHER_LAYERS = {"core/registries.py"}
"""Modules that may name classes of higher layers in strings: a registry row is imported when it is used."""

OLD_NAMES = {
    "bench",
    "chance",
    "data",
    "defend",
    "door",
    "edit",
    "index",
    "learners",
    "measure",
    "objects",
    "score",
    "task",
    "text",
    "types",
}


def heavy_modules_loaded_by(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in out.stdout.splitlines()} & HEAVY


def write_commands(*commands: list[str]) -> str:
    calls = "\n".join(f"try: main({words})\nexcept SystemExit: pass" for words in commands)
    return f"from shaketable.cli import main\n{calls}"


def test_importing_and_help_load_nothing():
    assert heavy_modules_loaded_by(f"import shaketable\n{write_commands(['--help'], ['audit', '--help'])}") == set()


def test_listing_loads_nothing_heavy():
    kinds = ("rankers", "learners", "tasks", "measures", "transforms", "data")
    assert heavy_modules_loaded_by(write_commands(*(["list", kind] for kind in kinds))) <= {"numpy"}


def test_core_loads_no_pandas():
    names = [path.stem for path in (SOURCE / "core").glob("*.py") if path.stem != "__init__"]
    code = "\n".join(f"import shaketable.core.{name}" for name in names)
    assert heavy_modules_loaded_by(code) <= {"numpy"}


def test_every_public_name_is_there_and_no_other():
    for name in shaketable.__all__:
        assert getattr(shaketable, name) is not None, name
    assert dir(shaketable) == shaketable.__all__
    with pytest.raises(AttributeError, match="no 'nothing'"):
        _ = shaketable.nothing


def test_no_package_has_the_name_of_a_public_function():
    packages = {path.stem for path in SOURCE.iterdir() if path.suffix in ("", ".py")}
    assert packages & set(shaketable.__all__) == set(), "importing the package would shadow the function"


def package_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def drop_type_checking(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    return tree


def docstrings(tree: ast.Module) -> set[int]:
    """Return the ids of string nodes that are statements: docstrings and comments on constants."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def packages_named_by(tree: ast.Module) -> set[str]:
    """Return our packages that a module imports anywhere or names in a string."""
    drop_type_checking(tree)
    skipped = docstrings(tree)
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module="shaketable", names=aliases):
                names |= {f"shaketable.{alias.name}" for alias in aliases}
            case ast.ImportFrom(module=str(module)):
                names.add(module)
            case ast.Import(names=aliases):
                names |= {alias.name for alias in aliases}
            case ast.Constant(value=str(text)) if id(node) not in skipped:
                names |= set(re.findall(r"shaketable\.[a-z_]+(?=[.:])", text))
    found = {name.split(".")[1] for name in names if name.startswith("shaketable.")}
    return {name for name in found if name in HEIGHT}


def test_a_package_names_only_lower_layers():
    def check(path: Path) -> None:
        package = package_of(path)
        for other in packages_named_by(parse(path)):
            assert other == package or HEIGHT[other] < HEIGHT[package], f"{package} must not name {other}"

    check_each({name: path for name, path in BY_NAME.items() if name not in NAMES_OF_HIGHER_LAYERS}, check)


def test_every_package_has_a_layer():
    assert {package_of(path) for path in MODULES} == set(HEIGHT)


def test_the_layer_test_sees_every_way_to_import():
    code = """
        from shaketable import rankers
        from shaketable.scoring import engine
        import shaketable.datasets.load
        import_module("shaketable.training.loop")
        import_module(f"shaketable.tasks.{name}")
        ROW = "shaketable.probes.axioms:TFC1"
    """
    found = packages_named_by(ast.parse(textwrap.dedent(code)))
    assert found == {"rankers", "scoring", "datasets", "training", "tasks", "probes"}


def test_no_module_has_an_old_name():
    assert {package_of(path) for path in MODULES} & OLD_NAMES == set()


def test_public_class_names_are_unique():
    homes: dict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        for node in parse(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(SOURCE)))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
NOT_PARTICIPLES = {"embed", "feed", "need", "seed", "speed"}


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def functions(tree: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def test_files_and_functions_stay_short():
    def check(path: Path) -> None:
        length = len(path.read_text().splitlines())
        assert length <= MAX_FILE_LINES, f"it has {length} lines"
        for node in functions(parse(path)):
            compiled = any("compile" in ast.unparse(decorator) for decorator in node.decorator_list)
            length = node.end_lineno - node.lineno + 1 - (ast.get_docstring(node, clean=False) or "").count("\n")
            assert compiled or length <= MAX_FUNCTION_LINES, f"{node.name} has {length} lines without its docstring"

    check_each(BY_NAME, check)


def test_functions_are_not_participles():
    def check(path: Path) -> None:
        for node in functions(parse(path)):
            is_property = any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
            word = node.name.strip("_")
            assert is_property or "_" in word or not word.endswith("ed") or word in NOT_PARTICIPLES, node.name

    check_each(BY_NAME, check)


COMMANDS = sorted((SOURCE / "cli").rglob("*.py"))


@pytest.mark.parametrize("path", COMMANDS, ids=lambda p: str(p.relative_to(SOURCE)))
def test_commands_parse_call_and_print(path):
    tree = ast.parse(path.read_text())
    forbidden = {"training", "rankers", "scoring", "measures", "experiment", "tasks", "attacks", "defences", "probes"}
    assert packages_named_by(tree) & forbidden == set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            lines = node.end_lineno - node.body[0].lineno + 1
            assert lines <= 25, f"{node.name} has {lines} lines below its signature"


@pytest.mark.parametrize("registry", REGISTRIES.values(), ids=list(REGISTRIES))
def test_every_row_loads_documents_itself_and_round_trips(registry):
    check_registry(registry)
