"""New cases for as long as there is time: each ends in a value or in a sentence, or is shown with how to repeat it."""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections import Counter
from itertools import count
from pathlib import Path

from tests.fuzz.cases import outcome
from tests.fuzz.targets import TARGETS

MEMORY = 8 << 30  # bytes; a reader that needs more trusts a number in a file


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--target", action="append", choices=list(TARGETS), help="one of them only; repeat it")
    parser.add_argument("--seed", type=int, default=1, help="where to begin; 0 is what the tests do")
    parser.add_argument("--number", type=int, help="one case only, of that target and seed")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    wanted = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    targets = [TARGETS[name] for name in wanted.target or TARGETS]
    end = time.monotonic() + wanted.seconds
    done: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for number in [wanted.number] if wanted.number is not None else count(wanted.first):
            for target in targets:
                done[target.name] += 1
                if failure := outcome(target, wanted.seed, number, Path(folder)):
                    failed[target.name] += 1
                    if failed[target.name] <= 3:
                        again = f"python -m tests.fuzz --target {target.name!r} --seed {wanted.seed} --number {number}"
                        print(f"{again}\n{failure.what}", file=sys.stderr)
            if time.monotonic() > end:
                break
    for name, cases in done.items():
        print(f"{name:24} {cases:8} cases, {failed[name]} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
