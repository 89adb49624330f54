"""A folder that replaces the home folder where that cannot be written; it is removed when the process ends."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path


def find_writable_path(path: Path) -> tuple[Path, str]:
    """Return a path in the home folder, or one in the scratch folder and a remark if the home folder is not writable.

    The path is FOLDER/NAME, such as models/0123; the scratch folder has the same folders.
    """
    try:
        there = next(parent for parent in path.absolute().parents if parent.exists())
        with tempfile.TemporaryFile(dir=there):
            return path, ""
    except OSError as error:
        remark = f"{path.parent} cannot be written ({error.strerror}), so a later run must compute {path.name} again"
        return Path(_open_scratch_folder().name) / path.parent.name / path.name, remark


@cache
def _open_scratch_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="shaketable-", ignore_cleanup_errors=True)
