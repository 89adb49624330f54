"""Processor time of a default audit of bm25 and ql on the bundled sample, against a limit of 20 seconds.

    python benchmarks/lexical_audit.py [--quick]

The audit runs from the command line with empty caches. The time is that of all threads, including the report. The
script also prints the wall time of the slowest tasks, and the processor time of a second audit with the caches of the
first.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile

LIMIT_S = 20.0
MAX_PRINTED_TASKS = 6
QUICK_TASKS, QUICK_QUERIES = ("effectiveness", "consistency"), 5
TASK_TIME = re.compile(r"The task (\S.*?) took ([\d.]+) seconds")


def run_audit(folder: str, quick: bool) -> tuple[float, dict[str, float]]:
    """Return the processor time of an audit and the wall time of its tasks, in seconds."""
    command = [sys.executable, "-c", "from shaketable.cli import main; main()", "audit", "--verbose"]
    command += ["--ranker", "bm25", "--ranker", "ql"]
    if quick:
        command += [*(f"--task={task}" for task in QUICK_TASKS), f"--max-queries={QUICK_QUERIES}"]
    env = os.environ | {"SHAKETABLE_HOME": f"{folder}/home"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, {name: float(seconds) for name, seconds in TASK_TIME.findall(done.stderr)}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two tasks and few queries; the limit is not judged")
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory() as folder:
        cold, tasks = run_audit(folder, quick)
        warm, _ = run_audit(folder, quick)
    for name, seconds in sorted(tasks.items(), key=lambda one: -one[1])[:MAX_PRINTED_TASKS]:
        print(f"{seconds:6.1f} s wall time, task {name}")
    print(f"{warm:6.1f} s processor time, audit with filled caches")
    result = "not judged with two tasks" if quick else "ok" if cold <= LIMIT_S else "MISS"
    print(f"{cold:6.1f} s processor time, audit with empty caches (limit {LIMIT_S:g} s): {result}")
    return int(not quick and cold > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
