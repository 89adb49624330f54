"""Code in a process of its own, for what may end it: a kill, a limit, a library that aborts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import shaketable

ROOT = Path(__file__).parents[1]
SOURCE = Path(shaketable.__file__).parents[1]


def in_a_process(code: str, *arguments: object, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run code that may import what tests import, with an empty standard input."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    env = os.environ | {"PYTHONPATH": f"{SOURCE}{os.pathsep}{ROOT}"}
    return subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, encoding="utf-8", errors="replace",
        stdin=subprocess.DEVNULL, timeout=timeout,
    )  # fmt: skip
