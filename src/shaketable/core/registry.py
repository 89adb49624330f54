"""Registries: conversion between spec texts and objects.

The command line reads, results store and tables show the same spec. A registry maps names to "module:Class" texts, so
listing names imports nothing. Specs such as "rm3(base=ql(mu=500), docs=10)" are parsed with `ast` and may contain only
registry names and Python literals. A class outside the registries is written with its module,
"package.module:Class(k=2)", or its file, "my.py:Class(k=2)".
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import os
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from shaketable.core.deprecation import resolve_name
from shaketable.core.errors import BadInput, UnknownName, explain_user_errors
from shaketable.core.home import home_folder
from shaketable.core.import_object import OBJECT_PATTERN, import_object

MAX_SPEC_CHARS = 10_000
"""Maximum length of a spec; Python's parser fails on much longer texts."""
QUOTED_STRING_PATTERN = re.compile(r"""'(?:[^'\\]|\\.)*+(?:'|\\?\Z)|"(?:[^"\\]|\\.)*+(?:"|\\?\Z)""", re.DOTALL)
"""A quoted string inside a spec; one without an end reaches to the end of the text, so that the search is linear."""


@dataclass(frozen=True)
class Registry:
    """The names, classes and shorthands of all objects of one kind, such as rankers.

    Entry points of installed packages add rows (`entry_point_group`).

    Parameters
    ----------
    kind
        The noun for an object in messages, such as "ranker".
    builtin_rows
        For each name, the class as "module:Class".
    shorthands
        For each pattern, a name; the group of the pattern becomes the first parameter.
    modules
        Modules whose public classes with a `kind` are rows under that name.
    function_adapter
        The class, as "module:Class", that wraps a plain function, or an object without `required_method`.
    required_method
        The method that an object of an installed package must have to need no adapter.
    """

    kind: str
    builtin_rows: dict[str, str]
    shorthands: dict[str, str] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    function_adapter: str = ""
    required_method: str = ""

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    @property
    def entry_point_group(self) -> str:
        """The entry point group of the rows: the plural of the kind, as in "shaketable.synonym_sources"."""
        return f"shaketable.{self.kind.replace(' ', '_')}s"

    @cached_property
    def rows(self) -> dict[str, str]:
        """The class of each name, as "module:Class"; built-in rows take precedence over those of installed packages."""
        from importlib.metadata import entry_points

        rows = dict(self.builtin_rows)
        for module in self.modules:
            classes = [c for c in vars(importlib.import_module(module)).values() if inspect.isclass(c)]
            rows |= {vars(c)["kind"]: f"{module}:{c.__name__}" for c in classes if "kind" in vars(c)}
        others = {point.name: point.value for point in entry_points(group=self.entry_point_group)}
        return others | rows

    def get_class(self, name: str) -> type[Any]:
        """Return the class of a name."""
        if target := self.builtin_rows.get(name):
            return _import_class(target)
        if name not in self.rows:
            if (current := resolve_name(self.kind, name)) != name:
                return self.get_class(current)
            raise UnknownName(self.kind, name, self.rows)
        return _import_class(self.rows[name])

    def summary(self, name: str) -> str:
        """Return the first line of the class's docstring, or the error if the class cannot be imported."""
        try:
            return (self.get_class(name).__doc__ or "").strip().partition("\n")[0]
        except BadInput as error:
            return str(error)

    def build(self, text: str) -> Any:
        """Build the object that a spec describes; `spec` is the inverse."""
        text = text.strip()
        if len(text) > MAX_SPEC_CHARS:
            raise BadInput(
                f"the text of one {self.kind} has at most {MAX_SPEC_CHARS:,} characters; this one has {len(text):,}"
            )
        for pattern, name in self.shorthands.items():
            if match := re.fullmatch(pattern, text):
                return self._build_row(name, [match.group(1)], {}, text)
        if re.fullmatch(OBJECT_PATTERN, text, re.DOTALL):
            return self._import_foreign(text)
        text = re.sub(r"^[\w-]+", lambda name: name.group().replace("-", "_"), text)  # accept query-typos
        try:
            return self._parse_value(ast.parse(text, mode="eval").body, text)
        except (SyntaxError, ValueError) as error:
            if near := re.match(r"\w+(?![\w.:])", text):
                self.get_class(near.group())
            raise self._make_unreadable_error(text) from error
        except (RecursionError, MemoryError) as error:
            raise BadInput(f"the {self.kind} {text[:60]!r}... is nested too deeply to be read") from error

    def spec(self, thing: Any, *, paths: bool = False) -> str:
        """Return the spec that builds an equal object: the name and the parameters that differ from the default.

        An object outside the registries is written with its module and parameters, so different objects have different
        specs. A module file is written by its base name, because the spec is shown and seeds random numbers; with
        `paths`, it is written with its full path and can be imported from anywhere.
        """
        name = self.get_name(thing, paths=paths)
        parameters = _list_changed_parameters(thing)
        given = [f"{key}={self._format_literal(value, paths)}" for key, value in parameters.items()]
        if len(given) == 1 and name in self.rows and (short := self._find_shorthand(name, thing)):
            return short
        return f"{name}({', '.join(given)})" if given else name

    def get_name(self, thing: Any, *, paths: bool = False) -> str:
        """Return the registry name of an object, or "module:Class" if it has none."""
        target = _format_target(type(thing), paths)
        return next((name for name, row in self.rows.items() if row == target), target)

    def _find_shorthand(self, name: str, thing: Any) -> str | None:
        """Return the shorthand of an object that is fully described by its first parameter."""
        if not dataclasses.is_dataclass(thing):
            return None
        first = getattr(thing, dataclasses.fields(thing)[0].name)
        target, parenthesis, parameters = str(first).partition("(")
        for row in (row for row, value in self.rows.items() if name == self.function_adapter and value == target):
            if self.build(text := row + parenthesis + parameters) == thing:
                return text
        for pattern, stands_for in self.shorthands.items():
            text = pattern.partition("(")[0] + str(first)
            if stands_for == name and re.fullmatch(pattern, text) and self.build(text) == thing:
                return text
        if name == self.function_adapter and re.fullmatch(OBJECT_PATTERN, str(first)):
            return str(first)
        return None

    def _format_literal(self, value: Any, paths: bool) -> str:
        if dataclasses.is_dataclass(value) and not inspect.isclass(value):
            return self.spec(value, paths=paths)
        if isinstance(value, tuple):
            parts = ", ".join(self._format_literal(part, paths) for part in value)
            return f"({parts}{',' if len(value) == 1 else ''})"
        if inspect.isroutine(value) or inspect.isclass(value):
            return _format_target(value, paths)
        text = repr(value)
        return self.spec(value, paths=paths) if " at 0x" in text else text  # a memory address is no literal

    def _parse_value(self, node: ast.expr, text: str) -> Any:
        match node:
            case ast.Name(id=name):
                return self._build_row(name, [], {}, text)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
                named = {k.arg: self._parse_parameter(k.value, text) for k in keywords if k.arg}
                if len(named) == len(keywords):
                    return self._build_row(name, [self._parse_parameter(a, text) for a in args], named, text)
        raise self._make_unreadable_error(text)

    def _parse_parameter(self, node: ast.expr, text: str) -> Any:
        try:
            value = ast.literal_eval(node)
            repr(value)  # raises ValueError for a hexadecimal number that is too long for Python to print
            return value
        except (ValueError, TypeError):
            if isinstance(node, ast.Tuple | ast.List):
                return tuple(self._parse_parameter(item, text) for item in node.elts)
            return self._parse_value(node, text)

    def _build_row(self, name: str, args: list[Any], named: dict[str, Any], text: str) -> Any:
        make = self.get_class(name)
        if name not in self.builtin_rows and name in self.rows and self._needs_adapter(make):
            inside = ", ".join([*map(repr, args), *(f"{key}={value!r}" for key, value in named.items())])
            return self.get_class(self.function_adapter)(self.rows[name] + (f"({inside})" if inside else ""))
        if not dataclasses.is_dataclass(make):  # a class of an installed package
            return _call_constructor(make, args, named, f"{self.kind} {name}")
        fields = list_fields(make)
        known = [f.name for f in fields]
        plain = [f.name for f in fields if not f.kw_only]
        takes = f"it takes: {', '.join(known) or 'none'}"
        if len(args) > len(plain) or named.keys() - set(known) or named.keys() & set(plain[: len(args)]):
            raise BadInput(f"{self.kind} {text[:200]!r}: wrong parameters for {name}; {takes}")
        given = dict(zip(plain, args, strict=False)) | named
        if lacking := [f.name for f in fields if f.name not in given and _is_required(f)]:
            raise BadInput(f"{self.kind} {text[:200]!r}: {name} needs {', '.join(lacking)}; {takes}")
        hints = _get_type_hints(make)
        for key, value in given.items():
            if not matches_type(value, hints.get(key, Any)):
                should = describe_type(hints[key])
                raise BadInput(f"{self.kind} {name}: {key} should be {should}, not {_format_value(value)}")
            given[key] = _coerce_to_tuple(value, hints.get(key, Any))
        return make(**given)

    def _needs_adapter(self, thing: Any) -> bool:
        """Return True if an object of an installed package needs the function adapter."""
        lacks_method = bool(self.required_method) and not hasattr(thing, self.required_method)
        return bool(self.function_adapter) and (lacks_method or inspect.isroutine(thing))

    def _import_foreign(self, text: str) -> Any:
        """Return the object that "module:object" names: an object, an instance of a class, or an adapted function."""
        thing = import_object(text)
        if inspect.isclass(thing):
            thing = _call_constructor(thing, [], {}, text)
        if inspect.isroutine(thing) and self.function_adapter:
            return self.get_class(self.function_adapter)(text)
        return thing

    def _make_unreadable_error(self, text: str) -> BadInput:
        return BadInput(f"cannot read the {self.kind} {text[:200]!r}: write NAME or NAME(parameter=value)")


def _format_target(thing: Any, paths: bool) -> str:
    """Return "module:Class"; a module file goes by its base name unless two imported files share it."""
    module = str(thing.__module__)
    if module.endswith(".py") and not paths:
        name = os.path.basename(module)
        module = module if sum(other.endswith(os.sep + name) for other in [*sys.modules]) > 1 else name
    return f"{module}:{thing.__qualname__}"


def _import_class(target: str) -> type[Any]:
    module, _, name = target.partition(":")
    try:
        thing: type[Any] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        if target.startswith("shaketable."):
            raise
        raise BadInput(f"{target} of an installed package cannot be imported ({error})") from error
    return thing


def _call_constructor(make: Any, args: Sequence[Any], named: Mapping[str, Any], what: str) -> Any:
    with explain_user_errors(f"{what} cannot be created with these parameters"):
        return make(*args, **named)


def list_fields(make: type[Any]) -> list[dataclasses.Field[Any]]:
    """Return the fields that a dataclass is created with, in the order of its signature."""
    return sorted((field for field in dataclasses.fields(make) if field.init), key=lambda field: bool(field.kw_only))


def _list_changed_parameters(thing: Any) -> dict[str, Any]:
    """Return the parameters that differ from the default: dataclass fields or constructor arguments."""
    if dataclasses.is_dataclass(thing):
        values = ((f.name, getattr(thing, f.name), _get_default(f)) for f in list_fields(type(thing)))
    else:
        try:
            taken = inspect.signature(type(thing)).parameters.values()
        except (TypeError, ValueError):
            return {}
        values = ((p.name, getattr(thing, p.name, p.default), p.default) for p in taken)
    return {name: value for name, value, default in values if not _is_same(value, default)}


def _is_same(value: Any, default: Any) -> bool:
    try:
        return bool(value == default)
    except Exception:  # arrays compare element by element
        return value is default


def _get_default(f: dataclasses.Field[Any]) -> Any:
    return f.default if f.default_factory is dataclasses.MISSING else f.default_factory()


def _is_required(f: dataclasses.Field[Any]) -> bool:
    return f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING


def _get_type_hints(make: type[Any]) -> dict[str, Any]:
    """Return the types of a class's fields; empty if a type is imported only for type checking."""
    try:
        return typing.get_type_hints(make)
    except NameError:
        return {}


def matches_type(value: Any, hint: Any) -> bool:
    """Return True if a value has the declared type of a field.

    >>> matches_type(2, float), matches_type(True, int), matches_type("x", float)
    (True, False, False)
    >>> matches_type((1, 2), tuple[float, ...]), matches_type(None, int | None)
    (True, True)
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(matches_type(value, one) for one in arguments)
    if origin is typing.Literal:
        return value in arguments
    if hint is None or hint is type(None):
        return value is None
    if hint in (int, float):
        return isinstance(value, int if hint is int else int | float) and not isinstance(value, bool)
    if origin is tuple:
        items = isinstance(value, tuple | list)
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return items and all(matches_type(item, arguments[0]) for item in value)
        return items and len(value) == len(arguments) and all(map(matches_type, value, arguments))
    try:
        return not inspect.isclass(origin or hint) or isinstance(value, origin or hint)
    except TypeError:  # a protocol without runtime checks
        return True


def describe_type(hint: Any) -> str:
    """Describe a field's type in words.

    >>> describe_type(int), describe_type(tuple[str, ...]), describe_type(str | None)
    ('a whole number', 'texts in parentheses, such as ("a", "b")', 'a text or None')
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(describe_type(one) for one in arguments)
    if origin is typing.Literal:
        return " or ".join(map(repr, arguments))
    if origin is tuple:
        words = {str: 'texts in parentheses, such as ("a", "b")', float: "numbers in parentheses, such as (1, 5)"}
        words[int] = "whole numbers in parentheses, such as (1, 5)"
        return words.get(arguments[0], "values in parentheses") if arguments else "values in parentheses"
    words = {int: "a whole number", float: "a number", str: "a text", bool: "True or False", type(None): "None"}
    return words.get(hint, getattr(hint, "__name__", str(hint)))


def _coerce_to_tuple(value: Any, hint: Any) -> Any:
    """Convert a list to a tuple where a tuple is declared, because values must be hashable."""
    wants_tuple = any(typing.get_origin(one) is tuple for one in (hint, *typing.get_args(hint)))
    return tuple(value) if isinstance(value, list) and wants_tuple else value


def _format_value(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def find_named_files(text: str) -> list[Path]:
    """Return the existing files that a spec names, directly, after a colon or in a nested spec.

    A folder counts if it is written with a slash, as model folders are; it stands for all files in it.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     source = f"listed({file.name!r})"
    ...     find_named_files(f"da(synonyms={source!r})") == [Path(file.name)]
    True
    """
    words = filter(None, [text, text.partition(":")[2]])
    candidate_paths = [os.path.join(place, word) for word in words for place in ("", home_folder() / "resources")]
    found = {Path(place) for place in candidate_paths if os.path.isfile(place)}
    folders = [Path(place) for place in candidate_paths if "/" in place and os.path.isdir(place)]
    found |= {file for folder in folders for file in folder.rglob("*") if file.is_file()}
    for quoted in QUOTED_STRING_PATTERN.findall(text):
        with suppress(SyntaxError, ValueError):  # a quote may be part of a name
            found |= set(find_named_files(ast.literal_eval(quoted)))
    return sorted(found)
