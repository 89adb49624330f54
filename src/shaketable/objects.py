"""Objects of the user's, named MODULE:OBJECT or FILE.py:OBJECT, perhaps with parameters: package.module:Class(k=2)."""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

from shaketable.errors import BadInput, users_code

OBJECT = r"(?:[A-Za-z_][\w.]*|[^:()\n]*\.py):[A-Za-z_][\w.]*(?:\(.*\))?"
"""How such a text looks."""


def located(target: str) -> Any:
    """The object that "module:object" or "module:object.attribute" names; with parentheses, what calling it gives.

    >>> located("fractions:Fraction(1, denominator=2)")
    Fraction(1, 2)

    The module is looked for in the current folder, then among what is installed; a name that ends in .py is a file.
    Parameters are literals.
    """
    name, _, parameters = target.partition("(")
    module, _, path = name.partition(":")
    if not module or not path:
        raise BadInput(f"{target!r} does not name a Python object: write MODULE:OBJECT")
    if not {"", os.getcwd()} & set(sys.path):  # a console script, unlike `python -m`, does not look here by itself
        sys.path.insert(0, os.getcwd())
    try:
        with users_code(f"{target}: importing {module} failed", passing=(ModuleNotFoundError,)):
            thing: Any = _file(module) if module.endswith(".py") else importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and f"{module}.".startswith(f"{error.name}."):
            raise BadInput(f"{target}: there is no module {error.name!r} in {os.getcwd()} or installed") from error
        raise BadInput(f"{target}: importing {module} failed: {error}") from error
    for part in path.split("."):
        if not hasattr(thing, part):
            public = [known for known in dir(thing) if not known.startswith("_")]
            near = difflib.get_close_matches(part, public, n=3) or public[:8]
            raise BadInput(f"{target}: there is no {part!r} in {module}; it has {', '.join(near) or 'nothing'}")
        thing = getattr(thing, part)
    return _call(thing, target) if parameters else thing


def _file(path: str) -> Any:
    """The module in a file, imported once, under its path; it finds what stands beside it, as if it were run."""
    place = Path(path).resolve()
    name = str(place)
    if name in sys.modules:
        return sys.modules[name]
    plan = importlib.util.spec_from_file_location(name, place)
    if not place.is_file() or plan is None or plan.loader is None:
        raise BadInput(f"there is no file {place}", path)
    if str(place.parent) not in sys.path:
        sys.path.insert(0, str(place.parent))
    module = sys.modules[name] = importlib.util.module_from_spec(plan)
    try:
        plan.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _call(thing: Any, target: str) -> Any:
    args, named = _literals(target)
    with users_code(f"{target} cannot be made with these parameters"):
        return thing(*args, **named)


def _literals(target: str) -> tuple[list[Any], dict[str, Any]]:
    """The parameters of a call: literals, nothing that could run."""
    try:
        call = ast.parse("f(" + target.partition("(")[2], mode="eval").body
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and all(k.arg for k in call.keywords):
            named = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
            return [ast.literal_eval(argument) for argument in call.args], named
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        pass
    raise BadInput(f"cannot read the parameters of {target[:200]!r}: they are numbers, texts and the like, name=value")
