"""The versions of the software that produced a result."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from shaketable import __version__

VERSIONED_LIBRARIES = (
    *("numpy", "scipy", "pandas", "ir-measures", "numba", "torch", "transformers", "lightgbm", "onnxruntime"),
)
"""Libraries whose versions may affect the results; `shaketable --version` prints those that are installed."""


def collect_versions() -> dict[str, str]:
    """Return the versions of Python, Shaketable and the loaded libraries."""
    known = {"python": platform.python_version(), "shaketable": __version__}
    for name in VERSIONED_LIBRARIES:
        if name.replace("-", "_") in sys.modules:
            try:
                known[name] = version(name)
            except PackageNotFoundError:
                continue
    return known
