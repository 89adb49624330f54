"""Import of user objects: MODULE:OBJECT or FILE.py:OBJECT, with optional parameters: package.module:Class(k=2)."""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from shaketable.core.errors import BadInput, explain_user_errors

OBJECT_PATTERN = r"(?:[A-Za-z_][\w.]*|[^:()\n]*\.py):[A-Za-z_][\w.]*(?:\(.*\))?"
"""The pattern of such a text."""


def import_object(target: str) -> Any:
    """Return the object that "module:object" or "module:object.attribute" names; with parentheses, call it.

    >>> import_object("fractions:Fraction(1, denominator=2)")
    Fraction(1, 2)

    The module is searched in the current folder, then among installed packages; a name that ends in .py is a file.
    Parameters must be literals.
    """
    thing = locate_object(target)[1]
    arguments = parse_arguments(target)
    return thing if arguments is None else call_with_arguments(thing, target, *arguments)


def locate_object(target: str) -> tuple[ModuleType, Any]:
    """Return the module and the object that a text names, without calling it."""
    module, _, path = target.partition("(")[0].partition(":")
    if not module or not path:
        raise BadInput(f"{target!r} does not name a Python object: write MODULE:OBJECT")
    if not {"", os.getcwd()} & set(sys.path):  # a console script, unlike `python -m`, does not add the current folder
        sys.path.insert(0, os.getcwd())
    try:
        with explain_user_errors(f"{target}: importing {module} failed", passed_errors=(ModuleNotFoundError,)):
            imported = _import_file(module) if module.endswith(".py") else importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and f"{module}.".startswith(f"{error.name}."):
            raise BadInput(f"{target}: there is no module {error.name!r} in {os.getcwd()} or installed") from error
        raise BadInput(f"{target}: importing {module} failed: {error}") from error
    thing: Any = imported
    for part in path.split("."):
        if not hasattr(thing, part):
            public = [known for known in dir(thing) if not known.startswith("_")]
            near = difflib.get_close_matches(part, public, n=3) or public[:8]
            raise BadInput(f"{target}: there is no {part!r} in {module}; it has {', '.join(near) or 'nothing'}")
        thing = getattr(thing, part)
    return imported, thing


def _import_file(path: str) -> ModuleType:
    """Import a module file once, under its path; it can import modules from its own folder."""
    resolved_path = Path(path).resolve()
    name = str(resolved_path)
    if name in sys.modules:
        return sys.modules[name]
    plan = importlib.util.spec_from_file_location(name, resolved_path)
    if not resolved_path.is_file() or plan is None or plan.loader is None:
        raise BadInput(f"there is no file {resolved_path}", path)
    if str(resolved_path.parent) not in sys.path:
        sys.path.insert(0, str(resolved_path.parent))
    module = sys.modules[name] = importlib.util.module_from_spec(plan)
    try:
        plan.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def call_with_arguments(thing: Any, target: str, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Return the result of a call; an error names the target."""
    with explain_user_errors(f"{target} cannot be created with these parameters"):
        return thing(*args, **named)


def parse_arguments(target: str) -> tuple[list[Any], dict[str, Any]] | None:
    """Return the arguments of a call, None without parentheses; only literals are accepted, so no code runs."""
    if "(" not in target:
        return None
    try:
        call = ast.parse("f(" + target.partition("(")[2], mode="eval").body
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and all(k.arg for k in call.keywords):
            named = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
            return [ast.literal_eval(argument) for argument in call.args], named
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        pass
    raise BadInput(f"cannot read the parameters of {target[:200]!r}: write literals as name=value")
