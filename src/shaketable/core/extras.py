"""The extras of the package, as its own metadata lists them: which libraries each brings, and whether they are here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version

CORE_EXTRA = "core"
"""What is installed in any case."""
META_EXTRAS = ("all",)
"""Extras that only name others."""


@cache
def list_extra_libraries() -> dict[str, tuple[str, ...]]:
    """extra -> the names that its libraries are installed under."""
    brought: dict[str, list[str]] = {CORE_EXTRA: []}
    for line in requires("shaketable") or ():
        name = re.match(r"[\w.-]+", line)
        extra = re.search(r"""extra == ["']([\w-]+)["']""", line)
        if name and not (extra and extra[1] in META_EXTRAS):
            brought.setdefault(extra[1] if extra else CORE_EXTRA, []).append(name[0])
    return {extra: tuple(names) for extra, names in brought.items()}


def installed_version(name: str) -> str | None:
    """The version of a library, None if it is not here."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def has_extra(extra: str) -> bool:
    """Are all libraries of an extra here?

    >>> has_extra(CORE_EXTRA)
    True
    """
    return all(installed_version(name) for name in list_extra_libraries()[extra])


@contextmanager
def use_python_strings() -> Iterator[None]:
    """While this lasts, pandas keeps texts as Python does.

    Where pyarrow is installed it would keep them in pyarrow's memory, which has no place for half of a surrogate pair;
    texts come from anybody, so some have one.
    """
    import pandas as pd

    with pd.option_context("mode.string_storage", "python"):
        yield
