"""The option --quick of all benchmarks: a small size, which checks that a script works.

Limits hold at full size. At the small size a script prints them without judging them, and its exit code is 0.
"""

from __future__ import annotations

import argparse


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the option --quick."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small size, to check that the script works")
    return parser


def parse_quick(description: str | None) -> bool:
    """Parse the command line of a script without other options, and return True for --quick."""
    return bool(make_parser(description).parse_args().quick)


def judge_limits(are_met: bool, quick: bool) -> int:
    """Return the exit code of a benchmark."""
    if quick:
        print("limits are not judged at this size")
    return int(not quick and not are_met)
