"""The optional extras of the package and their libraries, read from the package metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version

CORE_EXTRA = "core"
"""The libraries that are always installed."""
META_EXTRAS = ("all",)
"""Extras that only combine others."""


@cache
def list_extra_libraries() -> dict[str, tuple[str, ...]]:
    """Return extra -> the distribution names of its libraries."""
    brought: dict[str, list[str]] = {CORE_EXTRA: []}
    try:
        requirements = requires("shaketable") or ()
    except PackageNotFoundError:  # a source tree that is not installed: its extras count as absent
        requirements = ()
    for line in requirements:
        name = re.match(r"[\w.-]+", line)
        extra = re.search(r"""extra == ["']([\w-]+)["']""", line)
        if name and not (extra and extra[1] in META_EXTRAS):
            brought.setdefault(extra[1] if extra else CORE_EXTRA, []).append(name[0])
    return {extra: tuple(names) for extra, names in brought.items()}


def installed_version(name: str) -> str | None:
    """Return the version of a library, or None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def has_extra(extra: str) -> bool:
    """Return True if all libraries of an extra are installed.

    >>> has_extra(CORE_EXTRA)
    True

    An extra that is newer than the installed metadata, as in a checkout after a pull, counts as not installed.
    """
    names = list_extra_libraries().get(extra)
    return names is not None and all(map(installed_version, names))


def format_install_command(extra: str) -> str:
    """Return how to install an extra, in the words of all messages.

    >>> format_install_command("neural")
    "pip install -e '.[neural]' in a checkout, or pip install 'shaketable[neural]'"
    """
    return f"pip install -e '.[{extra}]' in a checkout, or pip install 'shaketable[{extra}]'"


@contextmanager
def use_python_strings() -> Iterator[None]:
    """Make pandas store texts as Python strings inside the block.

    pyarrow strings, the default where pyarrow is installed, cannot hold lone surrogates, which some texts contain.
    """
    import pandas as pd

    with pd.option_context("mode.string_storage", "python"):
        yield
