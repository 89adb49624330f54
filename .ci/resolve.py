"""Resolve the core and each extra with pip without constraints.txt, and install nothing.

    python .ci/resolve.py [EXTRA ...] [--quick]

torch is pinned, because pip downloads each version that it tries, and a version has gigabytes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PINS = "torch==2.13.0\n"
TIMEOUT_S = 600


def resolve(extra: str, pins: Path) -> str:
    """Return the number of packages that pip would install, or the last line of its error."""
    target = f"{ROOT}[{extra}]" if extra else str(ROOT)
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--dry-run", "--ignore-installed"]
    command += ["--quiet", "--report", "-", "--constraint", str(pins), target]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"FAILED: no answer in {TIMEOUT_S} s"
    if done.returncode:
        return f"FAILED: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"
    return f"{len(json.loads(done.stdout)['install'])} packages"


def main() -> int:
    """Resolve the core and each extra, print the results, and return the exit code."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    selected = [word for word in sys.argv[1:] if word != "--quick"]
    names = selected or ([""] if "--quick" in sys.argv else ["", *extras])
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        pins = Path(folder) / "pins.txt"
        pins.write_text(PINS)
        for name in names:
            found = resolve(name, pins)
            failed |= found.startswith("FAILED")
            print(f"{name or 'core':10} {found}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
