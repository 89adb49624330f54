"""The processor time of a default audit of bm25 and ql on the bundled sample, by the command line.

    python benchmarks/lexical_audit.py [--quick]

Limit: 20 seconds with empty caches, of all threads and with writing the report. The parts are the seconds by the clock
of the tasks that take longest. A second audit, with the caches of the first, is shown beside it.
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
SHOWN_TASKS = 6
QUICK_TASKS = ("effectiveness", "consistency")
TASK_TIME = re.compile(r"The task (\S.*?) took ([\d.]+) seconds")


def audit(folder: str, tasks: tuple[str, ...]) -> tuple[float, dict[str, float]]:
    """Return the processor seconds of an audit, and the seconds of its tasks."""
    command = [sys.executable, "-c", "from shaketable.cli import main; main()", "audit", "--verbose"]
    command += ["--ranker", "bm25", "--ranker", "ql", *(word for task in tasks for word in ("--task", task))]
    env = os.environ | {"SHAKETABLE_HOME": f"{folder}/home"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, {name: float(seconds) for name, seconds in TASK_TIME.findall(done.stderr)}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two tasks only; the limit is not judged")
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory() as folder:
        spent, tasks = audit(folder, QUICK_TASKS if quick else ())
        again, _ = audit(folder, QUICK_TASKS if quick else ())
    for name, seconds in sorted(tasks.items(), key=lambda one: -one[1])[:SHOWN_TASKS]:
        print(f"{seconds:6.1f} s  {name}")
    print(f"{again:6.1f} s of processor time for a second audit")
    judged = "not judged with two tasks" if quick else "ok" if spent <= LIMIT_S else "MISS"
    print(f"{spent:6.1f} s of processor time, limit {LIMIT_S:g}: {judged}")
    return int(not quick and spent > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
