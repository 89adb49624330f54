"""A pytest plugin that records which functions of the package each test calls: ``-p tests.mutants.calls``.

Every function of the package starts with a recording call while the plugin is loaded. This costs a few percent of the
time, whereas a trace function would double it. Functions that numba compiles are not changed.
"""

from __future__ import annotations

import ast
import builtins
import json
import os
import sys
import time
from collections.abc import Generator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

CALLS_FOLDER = "SHAKETABLE_CALLS_FOLDER"  # the environment variable that says where the records go
PACKAGE = "shaketable"
COMPILED = ("jit", "kernel", "vectorize")  # parts of the names of decorators that compile a function

_numbers: dict[str, int] = {}
_called: set[int] = set()
_fixture_calls: dict[int, set[int]] = {}
_records: list[dict[str, object]] = []
_failed: set[str] = set()


class Recording(ast.NodeTransformer):
    """A transformer that adds a recording call to each function and keeps all line numbers."""

    def __init__(self, module: str) -> None:
        self.path = [module]

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.path.append(node.name)
        self.generic_visit(node)
        self.path.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self.path.append(node.name)
        if not is_compiled(node):
            self.generic_visit(node)
            number = _numbers.setdefault(".".join(self.path), len(_numbers))
            call = ast.parse(f"__record_call__({number})").body[0]
            for part in ast.walk(call):
                ast.copy_location(part, node.body[0])
            node.body.insert(1 if ast.get_docstring(node, clean=False) is not None else 0, call)
        self.path.pop()
        return node

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815


def is_compiled(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(word in ast.unparse(decorator) for decorator in node.decorator_list for word in COMPILED)


class RecordingLoader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        tree = Recording(fullname).visit(ast.parse(self.get_data(path)))
        return compile(tree, path, "exec", dont_inherit=True)


class RecordingFinder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != PACKAGE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = RecordingLoader(fullname, spec.loader.path)
        return spec


def pytest_configure() -> None:
    builtins.__record_call__ = _called.add  # type: ignore[attr-defined]
    sys.meta_path.insert(0, RecordingFinder())


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
    before = set(_called)
    _called.clear()
    try:
        return (yield)
    finally:
        if fixturedef.scope != "function":
            _fixture_calls[id(fixturedef)] = set(_called)
        _called.update(before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    _called.clear()
    start, used = time.perf_counter(), sum(os.times()[:4])
    try:
        return (yield)
    finally:
        calls = set(_called)
        info = getattr(item, "_fixtureinfo", None)
        for definitions in info.name2fixturedefs.values() if info else ():
            for definition in definitions:
                calls |= _fixture_calls.get(id(definition), set())
        _records.append(
            {
                "test": item.nodeid,
                "seconds": round(time.perf_counter() - start, 4),
                "processor_seconds": round(sum(os.times()[:4]) - used, 3),
                "calls": sorted(calls),
            }
        )


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if not report.passed:
        _failed.add(report.nodeid)


def pytest_sessionfinish() -> None:
    if _records:
        names = {number: name for name, number in _numbers.items()}
        path = Path(os.environ[CALLS_FOLDER]) / f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')}.jsonl"
        with path.open("w") as file:
            for record in _records:
                record["passed"] = record["test"] not in _failed  # neither failed nor skipped
                record["calls"] = [names[number] for number in record["calls"]]  # type: ignore[attr-defined]
                file.write(json.dumps(record) + "\n")
