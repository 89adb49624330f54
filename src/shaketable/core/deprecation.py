"""Old names that still work and warn; docs/releases.md says for how long."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import NamedTuple

PYTHON_NAME = "name of the package"


class DeprecatedNameWarning(FutureWarning):
    """The warning on an old name; Python shows a FutureWarning to every user, unlike a DeprecationWarning."""


class Renaming(NamedTuple):
    """The new name of something, and the version that no longer accepts the old name."""

    new: str
    removed_in: str


RENAMED: Mapping[str, Mapping[str, Renaming]] = {}
"""For each kind of name, the old names: `PYTHON_NAME`, "flag of audit", or the kind of a registry, such as "ranker"."""


def resolve_name(kind: str, name: str) -> str:
    """Return the current name of something; warn if `name` is an old one."""
    renaming = RENAMED.get(kind, {}).get(name)
    if renaming is None:
        return name
    message = f"{name!r} ({kind}) is now {renaming.new!r}; version {renaming.removed_in} no longer accepts the old name"
    warnings.warn(message, DeprecatedNameWarning, stacklevel=3)
    return renaming.new
