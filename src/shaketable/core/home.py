"""The home folder, where scores, indexes and models are stored."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


def home_folder() -> Path:
    """Return the folder for scores, indexes and models: $SHAKETABLE_HOME, or ~/.cache/shaketable."""
    return Path(os.environ.get("SHAKETABLE_HOME") or Path.home() / ".cache" / "shaketable")
