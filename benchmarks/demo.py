"""The first run: `shaketable demo` in a new home and an empty folder, as after an installation.

    python benchmarks/demo.py [--quick]

Wall: from the start of the program to its end. Limit: 30 s, on a machine that does nothing else. Processor: the time of
all its threads. First: with an empty compiler cache of numba, so that the time includes compiling. Later: with compiled
kernels, but without scores and indexes.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from quick import judge_limits, parse_quick

LIMIT_S = 30.0
PROGRAM = (sys.executable, "-c", "from shaketable.cli import main; main()")
DEMO = ("demo", "--quiet")
QUICK_COMMAND = ("list", "rankers")
"""A command that compiles nothing, in place of the demo, which has no smaller size."""
RUNS = ("first", "later")


def main() -> int:
    quick = parse_quick(__doc__)
    words = QUICK_COMMAND if quick else DEMO
    slowest = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for name in RUNS:
            wall, processor = time_program(words, Path(folder), name)
            slowest = max(slowest, wall)
            print(
                f"{name:6} {wall:6.1f} s wall, limit {LIMIT_S:.0f} s ({processor:.1f} s of the processor)", flush=True
            )
    return judge_limits(slowest <= LIMIT_S, quick)


def time_program(words: tuple[str, ...], folder: Path, name: str) -> tuple[float, float]:
    """Run the program in an empty folder with a home of its own; return its wall-clock and its processor time."""
    empty = folder / name
    empty.mkdir()
    env = os.environ | {"SHAKETABLE_HOME": str(empty / "home"), "NUMBA_CACHE_DIR": str(folder / "kernels")}
    used, started = count_processor_seconds(), time.perf_counter()
    subprocess.run([*PROGRAM, *words], cwd=empty, env=env, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started, count_processor_seconds() - used


def count_processor_seconds() -> float:
    """Return the processor time of all programs that this one started and that ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    sys.exit(main())
