"""Which mutants are drawn, and which tests are run against each of them."""

from __future__ import annotations

import ast
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from random import Random

from tests.mutants.operators import Mutant, find_mutants

SOURCE = Path("src")
LEAST_PER_PACKAGE = 3
DEFAULTS_FILE = "tests/test_defaults.py"
"""The tests of the defaults of all classes, which call none of their functions."""
FEW_TESTS = 3
"""With fewer tests than this, a function may be one that caches its result."""


def name_module(path: Path) -> str:
    """Return the dotted name of a file of the package, relative to src.

    >>> name_module(Path("shaketable/core/__init__.py")), name_module(Path("shaketable/testing.py"))
    ('shaketable.core', 'shaketable.testing')
    """
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


@cache
def list_mutants(tree: Path) -> dict[str, dict[str, list[Mutant]]]:
    """Return all mutants: package -> file -> mutants."""
    packages: dict[str, dict[str, list[Mutant]]] = defaultdict(dict)
    for path in sorted((tree / SOURCE).glob("*/**/*.py")):
        inside = path.relative_to(tree / SOURCE)
        if found := find_mutants(path.read_text(encoding="utf-8"), str(SOURCE / inside), name_module(inside)):
            packages[inside.parts[1]][str(inside)] = found
    return packages


def draw_mutants(tree: Path, seed: int, count: int) -> list[Mutant]:
    """Draw mutants: a few from each package, the others in proportion to the size of the packages.

    The file is drawn first, in proportion to its mutants, then the operator, then the mutant, so that operators with
    few mutants are drawn too.
    """
    packages = list_mutants(tree)
    rng = Random(seed)
    sizes = {name: sum(map(len, files.values())) for name, files in packages.items()}
    drawn: dict[Mutant, None] = {}
    for name, share in divide(count, sizes).items():
        files, before = packages[name], len(drawn)
        while len(drawn) < before + min(share, sizes[name]):
            file = rng.choices(list(files), [len(found) for found in files.values()])[0]
            operator = rng.choice(sorted({mutant.operator for mutant in files[file]}))
            drawn[rng.choice([mutant for mutant in files[file] if mutant.operator == operator])] = None
    return list(drawn)


def divide(count: int, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return how many mutants to draw from each package.

    >>> divide(20, {"core": 100, "cli": 300})
    {'core': 7, 'cli': 13}
    """
    least = min(LEAST_PER_PACKAGE, count // len(sizes))
    rest, whole = count - least * len(sizes), sum(sizes.values())
    shares = {name: rest * size / whole for name, size in sizes.items()}
    counts = {name: math.floor(share) for name, share in shares.items()}
    for name in sorted(shares, key=lambda name: counts[name] - shares[name])[: rest - sum(counts.values())]:
        counts[name] += 1
    return {name: least + number for name, number in counts.items()}


@dataclass(frozen=True)
class RecordedTest:
    """A test, its time, and the functions of the package that it calls."""

    name: str
    seconds: float
    calls: frozenset[str]

    @property
    def file(self) -> str:
        return self.name.partition("::")[0]


def read_calls(folder: Path) -> list[RecordedTest]:
    """Read what the plugin `tests.mutants.calls` wrote; tests that did not pass are left out."""
    lines = [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text(encoding="utf-8").splitlines()]
    rows = map(json.loads, lines)
    return [RecordedTest(row["test"], row["seconds"], frozenset(row["calls"])) for row in rows if row["passed"]]


@dataclass(frozen=True)
class TestMap:
    """The tests that cover each function and each module."""

    __test__ = False

    tests: list[RecordedTest]
    tree: Path
    max_seconds: float = 45.0
    """The recorded time of the tests that one mutant is run against, at most."""

    @cached_property
    def by_function(self) -> dict[str, list[RecordedTest]]:
        found: dict[str, list[RecordedTest]] = defaultdict(list)
        for test in self.tests:
            for name in test.calls:
                found[name].append(test)
        return found

    @cached_property
    def importers(self) -> dict[str, set[str]]:
        """The modules that import each module."""
        found: dict[str, set[str]] = defaultdict(set)
        for path in (self.tree / SOURCE).rglob("*.py"):
            name = name_module(path.relative_to(self.tree / SOURCE))
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and node.module:
                    found[node.module].add(name)
                    for alias in node.names:
                        found[f"{node.module}.{alias.name}"].add(name)
        return found

    def select(self, mutant: Mutant) -> tuple[list[str], float]:
        """Return the tests to run against a mutant, and the time that they took when they were recorded.

        These are the tests that call its function, and those in a file with the name of its module, which may call it
        in another process. Constants of a module and compiled functions have no calls of their own, and a function with
        a cache is recorded for its first caller alone; for them all tests count that call the module or, for constants,
        a module that imports it.
        """
        module = name_module(Path(mutant.path).relative_to(SOURCE))
        stem = module.rpartition(".")[2].strip("_")
        covering = list(self.by_function.get(mutant.place, []))
        callers = {test.name for test in covering}
        if len(covering) < FEW_TESTS:
            covering += self._list_module_tests([module])
        if not covering or mutant.place == module:
            covering += self._list_module_tests(self.importers[module])
        own = [f"/test_{stem}.py", *([DEFAULTS_FILE] if mutant.operator == "default" else [])]
        covering += [test for test in self.tests if test.file.endswith(tuple(own))]
        return _take_within(covering, callers, stem, self.max_seconds)

    def _list_module_tests(self, modules: Iterable[str]) -> list[RecordedTest]:
        prefixes = tuple(f"{module}." for module in modules)
        found = [test for name, tests in self.by_function.items() if name.startswith(prefixes) for test in tests]
        return list({test.name: test for test in found}.values())


def _take_within(
    covering: list[RecordedTest], callers: Set[str], stem: str, max_seconds: float
) -> tuple[list[str], float]:
    """Take tests until the time is used up: those of the module's own file first, then those that call the function.

    Quick tests come first, and the others are taken from all files in turn.
    """
    by_file: dict[str, list[RecordedTest]] = defaultdict(list)
    for test in sorted({test.name: test for test in covering}.values(), key=lambda test: (test.seconds, test.name)):
        by_file[test.file].append(test)
    ranked = []
    for file, tests in by_file.items():
        own = file.endswith(f"/test_{stem}.py")
        for number, test in enumerate(tests):
            ranked.append((not own, test.name not in callers, 0 if own else number, test.seconds, test.name))
    chosen, seconds = [], 0.0
    for *_, cost, name in sorted(ranked):
        if chosen and seconds + cost > max_seconds:
            continue
        chosen.append(name)
        seconds += cost
    return chosen, seconds
