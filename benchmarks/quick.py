"""The option --quick, which every benchmark has: a small size, to see that the script works.

Limits hold at full size. At the small size they are printed and not judged, and the exit code is 0.
"""

from __future__ import annotations

import argparse


def make_parser(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small size, to see that it works")
    return parser


def parse_quick(description: str | None) -> bool:
    return bool(make_parser(description).parse_args().quick)


def judge_limits(are_met: bool, quick: bool) -> int:
    """Return the exit code of a benchmark."""
    if quick:
        print("limits are not judged at this size")
    return int(not quick and not are_met)
