"""Defaults of commands, public functions and registry entries, and the traits of the entries.

Results depend on them, so no change goes unnoticed.

tests/defaults.json has all of them. After an intended change, `python -m tests.test_defaults` writes it again.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import shaketable as st
from shaketable import testing
from shaketable.cli.app import app
from shaketable.core import registries
from shaketable.core.registry import Registry, list_fields

STORED = Path(__file__).with_name("defaults.json")
REGISTRIES = {name.lower(): one for name, one in vars(registries).items() if isinstance(one, Registry)}


def describe_value(value: object) -> str:
    """Return the text of a default that is the same in each process."""
    if inspect.isroutine(value) or inspect.isclass(value):
        return f"{value.__module__}.{value.__qualname__}"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def list_argument_defaults(function: Callable[..., Any]) -> dict[str, str]:
    parameters = inspect.signature(function).parameters.values()
    return {one.name: describe_value(one.default) for one in parameters if one.default is not one.empty}


def list_flag_defaults(command: Callable[..., Any]) -> dict[str, str]:
    """Return the defaults of the flags of a command, with the bounds of numbers."""
    found = list_argument_defaults(command)
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        option = get_args(parameter.annotation)[1]
        if option.min is not None or option.max is not None:
            found[parameter.name] = f"{found.get(parameter.name, 'required')}, from {option.min} to {option.max}"
    return found


def list_field_defaults(make: type[Any]) -> dict[str, str]:
    found = {}
    for field in list_fields(make):
        if field.default_factory is not dataclasses.MISSING:
            found[field.name] = describe_value(field.default_factory())
        elif field.default is not dataclasses.MISSING:
            found[field.name] = describe_value(field.default)
    return found


def list_traits(make: type[Any]) -> dict[str, str]:
    """Return the plain class variables of a class and its bases, such as `needs_judgements`."""
    names = {
        name for base in make.__mro__ for name, hint in vars(base).get("__annotations__", {}).items()
        if "ClassVar" in str(hint)
    }  # fmt: skip
    values = {name: getattr(make, name, None) for name in sorted(names)}
    return {name: repr(value) for name, value in values.items() if isinstance(value, str | bool | int | float | tuple)}


def list_defaults() -> dict[str, dict[str, str]]:
    """Return the defaults of everything that a user can name."""
    found = {}
    for command in app.registered_commands:
        callback = command.callback
        assert callback is not None
        found[f"shaketable {command.name or callback.__name__.replace('_', '-')}"] = list_flag_defaults(callback)
    for name in st.__all__:
        if inspect.isfunction(one := getattr(st, name)):
            found[f"st.{name}"] = list_argument_defaults(one)
        elif dataclasses.is_dataclass(one) and isinstance(one, type):
            found[f"st.{name}"] = list_field_defaults(one)
    for name, one in vars(testing).items():
        if inspect.isfunction(one) and not name.startswith("_") and one.__module__ == testing.__name__:
            found[f"testing.{name}"] = list_argument_defaults(one)
    for kind, registry in REGISTRIES.items():
        for name in registry.builtin_rows:
            make = registry.get_class(name)
            defaults = list_field_defaults(make) if dataclasses.is_dataclass(make) else {}
            found[f"{kind}: {name}"] = defaults | list_traits(make)
    return {name: values for name, values in found.items() if values}


def test_defaults_are_the_stored_ones():
    stored, found = json.loads(STORED.read_text(encoding="utf-8")), list_defaults()
    changed = {name for name in stored.keys() | found.keys() if stored.get(name) != found.get(name)}
    assert not changed, (
        f"defaults differ: {sorted(changed)}; if this is intended, run python -m tests.test_defaults and tell users in "
        "CHANGELOG.md"
    )


def test_public_names_are_listed():
    assert set(dir(st)) >= set(st.__all__)


if __name__ == "__main__":
    STORED.write_text(json.dumps(list_defaults(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
