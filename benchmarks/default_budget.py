"""Time and decided facets of a default audit of a 12-layer cross-encoder, against a limit of 11 minutes.

    make models && python -m benchmarks.default_budget [--quick]

The ranker is ms-marco-MiniLM-L-12-v2 (int8 weights, float32 arithmetic). The audit runs on the bundled sample from the
command line, with an empty cache. Limits: 11 minutes on two cores with no other load, and every facet of the verdict is
pass, warn, fail, or inconclusive with a reason. With `--quick` the budget is one minute instead of the default, and the
limit is two minutes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from weights import MINILM_L12, find_model

import shaketable as st

RANKER = "MiniLM-L12-int8"
LIMIT_S = {"auto": 11 * 60, "1m": 2 * 60}
"""The limit of the whole command by its budget: start, pilot, lexical rankers, statistics and page included."""


def run_audit(folder: Path, budget: str, model: Path) -> float:
    """Run the command, print its output, and return its duration in seconds."""
    command = [sys.executable, "-c", "from shaketable.cli import main; main()", "audit"]
    command += ["--ranker", f"{RANKER}=hf:{model}", "--budget", budget, "--out", str(folder / "audit")]
    started = time.perf_counter()
    done = subprocess.run(command, env=os.environ | {"SHAKETABLE_HOME": str(folder / "home")})
    seconds = time.perf_counter() - started
    if done.returncode:
        sys.exit(f"the audit ended with exit code {done.returncode}")
    return seconds


def list_facets(folder: Path) -> list[tuple[str, str, str]]:
    """Return facet, status and reason of each cell of the ranker, and the facets that were not tested."""
    verdict = st.read_audit(folder / "audit").verdict
    (tested,) = (one for one in verdict.ranker_verdicts if one.ranker == RANKER)
    cells = [(name, cell.status, cell.about) for name, cell in tested.facet_cells.items()]
    return [*cells, *(("not tested", "not tested", sentence) for sentence in verdict.untested)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a budget of one minute")
    budget = "1m" if parser.parse_args().quick else "auto"
    model = find_model(MINILM_L12)
    if model is None:
        print(f"not measured: {MINILM_L12} is not built (make models)")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        seconds = run_audit(Path(folder), budget, model)
        facets = list_facets(Path(folder))
    print()
    for name, status, about in facets:
        print(f"{name:16} {status:13} {about}")
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    unexplained = [name for name, status, about in facets if status == "inconclusive" and not about]
    untested = [about for _, status, about in facets if status == "not tested" and "budget" in about]
    missing = [about for about in untested if "it has no facet" not in about]
    decided = sum(status in ("pass", "warn", "fail") for _, status, _ in facets)
    limit = LIMIT_S[budget]
    print(
        f"\nbudget {budget}: {seconds / 60:.1f} min (limit {limit / 60:.0f} min), ratio {seconds / limit:.2f}, ", end=""
    )
    print(f"load {load:.1f}; {decided} facets decided, {len(facets) - decided} undecided; without a reason: ", end="")
    print(", ".join([*unexplained, *missing]) or "none")
    return int(seconds > limit or bool(unexplained) or bool(missing) or not decided)


if __name__ == "__main__":
    sys.exit(main())
