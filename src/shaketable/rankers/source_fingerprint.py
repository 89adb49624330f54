"""Fingerprints of a user's Python objects: a hash of the source file and of the local modules that it imports.

A module is local unless it belongs to the standard library, to an installed package or to Shaketable. Files that the
code reads, such as weights, are not seen; the option `revision` stands for those.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
import sysconfig
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from operator import attrgetter
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import shaketable

INSTALLED_FOLDERS = ("site-packages", "dist-packages")
STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib")).resolve()

_digests: dict[Path, bytes] = {}
"""The digests of source files as they were when this process imported them."""


class SourceUnknown(Exception):
    """The reason why an object has no fingerprint: a clause that follows "because"."""


def find_module(thing: Any) -> ModuleType:
    """Return the module of a function or class that its source file alone defines."""
    if not isinstance(thing, FunctionType | type):
        raise SourceUnknown("it is an object in memory")
    if isinstance(thing, FunctionType) and thing.__name__ == "<lambda>":
        raise SourceUnknown("it is a lambda")
    if "<locals>" in thing.__qualname__ or getattr(thing, "__closure__", None):
        raise SourceUnknown("it is defined inside a function")
    module = sys.modules.get(thing.__module__)
    with suppress(AttributeError):
        if module is not None and attrgetter(thing.__qualname__)(module) is thing:
            return module
    raise SourceUnknown(f"its module has another object of the name {thing.__qualname__}")


def fingerprint_module(module: ModuleType, new_modules: Collection[str] = ()) -> str:
    """Return a hash of the source of a module and of the local modules that it imports.

    The names of modules that were imported just now are `new_modules`; any other module may be older than its file.
    """
    file = _find_source(module)
    if not _is_local(file):
        raise SourceUnknown("it comes from an installed package")
    new_files = _list_files([sys.modules[name] for name in new_modules])
    loaded = _list_files([*sys.modules.values()])
    whole = blake2b(digest_size=16)
    for path in sorted(_list_local_files(file), key=lambda path: (path != file, path.name, str(path))):
        whole.update(_digest_file(path, is_new=path in new_files or path not in loaded))
    return whole.hexdigest()


def _list_files(modules: Iterable[ModuleType]) -> set[Path]:
    return {_resolve_path(path) for module in modules if (path := getattr(module, "__file__", None))}


@cache
def _resolve_path(path: str) -> Path:
    """Return a path without links; cached, because a process with torch has thousands of modules."""
    return Path(path).resolve()


def _find_source(module: ModuleType) -> Path:
    file = getattr(module, "__file__", None)
    if file is None:
        raise SourceUnknown("it is not defined in a file")
    if not file.endswith(".py") or not Path(file).is_file():
        raise SourceUnknown(f"its module {module.__name__} has no Python source")
    return Path(file).resolve()


def _is_local(file: Path) -> bool:
    """Return True for a user's own file."""
    if any(part in INSTALLED_FOLDERS for part in file.parts):
        return False
    return not file.is_relative_to(STANDARD_LIBRARY) and not file.is_relative_to(Path(shaketable.__file__).parent)


def _digest_file(path: Path, is_new: bool) -> bytes:
    """Return the digest of a source file as it was imported; an edit after the import is an error."""
    if is_new or path not in _digests:
        if not is_new and path.stat().st_mtime > shaketable.IMPORT_TIME_S:
            raise SourceUnknown(f"{path.name} may have changed since it was imported")
        _digests[path] = blake2b(path.read_bytes(), digest_size=16).digest()
    return _digests[path]


def _list_local_files(start: Path) -> set[Path]:
    """Return a file and the local files that it imports, directly or indirectly."""
    found, todo = {start}, [start]
    while todo:
        for path in _list_imports(todo.pop()):
            if path not in found:
                found.add(path)
                todo.append(path)
    return found


def _list_imports(file: Path) -> Iterator[Path]:
    """Yield the local files that the import statements of a file name."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        raise SourceUnknown(f"{file.name} cannot be read") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _resolve(_find_root(alias.name, file), alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            names = node.module.split(".") if node.module else []
            root = file.parents[node.level - 1] if node.level else _find_root(names[0], file)
            for alias in node.names:
                yield from _resolve(root, [*names, alias.name])


def _find_root(name: str, file: Path) -> Path | None:
    """Return the folder of a top-level module that is local; None for all others."""
    top = name.partition(".")[0]
    for folder in (file.parent / f"{top}.py", file.parent / top / "__init__.py"):
        if folder.is_file():
            return file.parent
    with suppress(ImportError, ValueError, AttributeError):
        spec = importlib.util.find_spec(top)
        places = (
            [spec.origin] if spec and spec.has_location else [*(spec.submodule_search_locations or ())] if spec else []
        )
        for place in filter(None, places):
            path = Path(place).resolve()
            if _is_local(path):
                return path.parents[1] if path.name == "__init__.py" else path.parent
    return None


def _resolve(root: Path | None, names: list[str]) -> Iterator[Path]:
    """Yield the files of a dotted name below a folder; the last parts may be objects of a module."""
    if root is None:
        return
    for i in range(1, len(names) + 1):
        place = root.joinpath(*names[:i])
        for path in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
            if path.is_file() and _is_local(path.resolve()):
                yield path.resolve()
