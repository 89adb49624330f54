"""Put small faults into copies of the package, one at a time, and run the tests that cover each.

A coverage map is made first: all tests run once, and each records the functions that it calls. The faults are drawn
with a seed and spread over all packages. A fault that no test notices is listed; accepted.toml has reasons.
The exit code is 1 if less than 90 % of the others are noticed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.calls import CALLS_FOLDER
from tests.mutants.operators import Mutant
from tests.mutants.selection import TestMap, draw_mutants, list_mutants, read_calls

ROOT = Path(__file__).resolve().parents[2]
ACCEPTED = Path(__file__).with_name("accepted.toml")
LEAST_KILLED = 0.9
GRACE_SECONDS = 120.0
"""A mutant has this much time and three times what its tests took. Longer counts as noticed: a loop has no end."""
KILLED, TIMED_OUT, SURVIVED, UNCOVERED, ACCEPTED_SURVIVOR = "killed", "timed out", "survived", "not covered", "accepted"
_TIMES = count(1_000_000_000)


@dataclass(frozen=True)
class Outcome:
    mutant: Mutant
    status: str
    tests: int
    seconds: float

    def __str__(self) -> str:
        where = f"{self.mutant.path}:{self.mutant.line} {self.mutant.operator}"
        return f"{self.status:11} {self.seconds:5.0f} s {self.tests:4} tests  {where}\n    {self.mutant.key}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=120, help="the number of mutants")
    parser.add_argument(
        "--match", default="", help="a regular expression: all mutants whose path or key it finds, instead of a sample"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="mutants at the same time")
    parser.add_argument("--seconds", type=float, default=45.0, help="the time of the tests of one mutant, at most")
    parser.add_argument("--calls", type=Path, help="a folder with the coverage map of an earlier run, or for this one")
    options = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as name, ThreadPoolExecutor(options.workers) as pool:
        folder = Path(name)
        if (shared := ROOT.parent / "shared").exists():
            (folder / "shared").symlink_to(shared)  # the real collections, where tests look for them
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(options.workers):
            trees.put(copy_tree(folder / f"tree{number}"))
        calls = options.calls or folder / "calls"
        if not any(calls.glob("*.jsonl")):
            calls.mkdir(exist_ok=True)
            record_calls(folder / "tree0", calls, options.workers)
            print(f"coverage map: {time.monotonic() - started:.0f} s", flush=True)
        tests = TestMap(read_calls(calls), folder / "tree0", options.seconds)
        if options.match:
            every = (
                mutant
                for files in list_mutants(folder / "tree0").values()
                for found in files.values()
                for mutant in found
            )
            mutants = [
                mutant for mutant in every if re.search(options.match, f"{mutant.path}:{mutant.line} {mutant.key}")
            ]
        else:
            mutants = draw_mutants(folder / "tree0", options.seed, options.count)
        outcomes = []
        for outcome in pool.map(lambda mutant: try_mutant(mutant, tests, trees), mutants):
            print(outcome, flush=True)
            outcomes.append(outcome)
    return report(outcomes, options.seed, time.monotonic() - started)


def copy_tree(target: Path) -> Path:
    """Copy the files that git tracks, as they are in the working tree."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    for name in filter(None, listing.split("\0")):
        if (source := ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)
    return target


def record_calls(tree: Path, calls: Path, workers: int) -> None:
    """Run all tests once; those that fail are not used."""
    command = ["-q", "--numprocesses", str(workers), "--dist", "worksteal", "-p", "tests.mutants.calls"]
    run_pytest(tree, command, None, {CALLS_FOLDER: str(calls.resolve())})


def run_pytest(tree: Path, arguments: list[str], timeout: float | None, settings: dict[str, str] | None = None) -> int:
    """Return pytest's exit code; all output is dropped. A process that takes too long is ended with its children."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", **(settings or {})}
    environment["PYTHONPATH"] = str(tree / "src")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    with subprocess.Popen(
        command,
        cwd=tree,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            raise


@contextmanager
def apply_mutant(mutant: Mutant, tree: Path) -> Iterator[None]:
    """Change one file of a tree. Each version has a time of its own, so that Python never reads stale bytecode."""
    path = tree / mutant.path
    source = path.read_bytes()
    path.write_bytes(mutant.apply(source.decode()).encode())
    os.utime(path, (next(_TIMES),) * 2)
    try:
        yield
    finally:
        path.write_bytes(source)
        os.utime(path, (next(_TIMES),) * 2)


def try_mutant(mutant: Mutant, tests: TestMap, trees: SimpleQueue[Path]) -> Outcome:
    names, seconds = tests.select(mutant)
    if mutant.key in read_accepted():
        return Outcome(mutant, ACCEPTED_SURVIVOR, len(names), 0.0)
    if not names:
        return Outcome(mutant, UNCOVERED, 0, 0.0)
    tree = trees.get()
    started = time.monotonic()
    try:
        chosen = tree / "chosen-tests.txt"
        chosen.write_text("\n".join(names) + "\n", encoding="utf-8")
        with apply_mutant(mutant, tree), tempfile.TemporaryDirectory() as compiled:
            # numba notices a change of a kernel, but not of the kernels that it calls from other files
            settings = {"NUMBA_CACHE_DIR": compiled} if "compile_kernel" in (tree / mutant.path).read_text() else {}
            code = run_pytest(tree, ["-x", "-q", f"@{chosen}"], GRACE_SECONDS + 3 * seconds, settings)
        status = SURVIVED if code == 0 else KILLED
    except subprocess.TimeoutExpired:
        status = TIMED_OUT
    finally:
        trees.put(tree)
    return Outcome(mutant, status, len(names), time.monotonic() - started)


def read_accepted() -> dict[str, str]:
    """Return the reason for each survivor that no test can or should notice."""
    rows = tomllib.loads(ACCEPTED.read_text(encoding="utf-8")).get("survivor", [])
    return {row["mutant"]: row["reason"] for row in rows}


def report(outcomes: list[Outcome], seed: int, seconds: float) -> int:
    counts = Counter(outcome.status for outcome in outcomes)
    killed = counts[KILLED] + counts[TIMED_OUT]
    decided = len(outcomes) - counts[ACCEPTED_SURVIVOR]
    print(
        f"\nseed {seed}: {killed} of {decided} mutants killed ({killed / decided:.0%}), in {seconds / 60:.0f} minutes"
    )
    print(", ".join(f"{number} {status}" for status, number in counts.items()))
    reasons = read_accepted()
    for outcome in outcomes:
        if outcome.status in (SURVIVED, UNCOVERED):
            print(outcome)
        elif outcome.status == ACCEPTED_SURVIVOR:
            print(f"{outcome}\n    {reasons[outcome.mutant.key]}")
    return int(killed < LEAST_KILLED * decided)


if __name__ == "__main__":
    sys.exit(main())
