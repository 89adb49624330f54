"""The versions of the software that produced a result."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

VERSIONED_LIBRARIES = ("numpy", "scipy", "pandas", "ir-measures", "torch", "transformers", "lightgbm")
"""Libraries whose versions may affect the results."""


def collect_versions() -> dict[str, str]:
    """Return the versions of Python, Shaketable and the loaded libraries."""
    known = {"python": platform.python_version()}
    for name in ("shaketable", *VERSIONED_LIBRARIES):
        if name == "shaketable" or name.replace("-", "_") in sys.modules:
            try:
                known[name] = version(name)
            except PackageNotFoundError:
                continue
    return known
