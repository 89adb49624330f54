"""The versions of the software that produced a result."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

VERSIONED_LIBRARIES = ("numpy", "scipy", "pandas", "ir-measures", "torch", "transformers", "lightgbm")
"""Libraries on whose versions numbers may depend."""


def collect_versions() -> dict[str, str]:
    """Return the versions of Python, of Shaketable and of the libraries that are loaded."""
    known = {"python": platform.python_version()}
    for name in ("shaketable", *VERSIONED_LIBRARIES):
        if name == "shaketable" or name.replace("-", "_") in sys.modules:
            try:
                known[name] = version(name)
            except PackageNotFoundError:
                continue
    return known
