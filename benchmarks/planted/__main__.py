"""Run the benchmark of the verdict and print its tables; the exit code is 1 if a limit is missed."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.planted import __doc__ as description
from benchmarks.planted import tables
from benchmarks.planted.audits import AuditRow, Workers, open_collection, run_points
from benchmarks.planted.bases import BaseRanker, Level
from benchmarks.planted.budgets import QUICK_SHARES, SHARES, check_budgets, describe_budgets, draw_points, limit_points
from benchmarks.planted.design import (
    LEVELS,
    SAMPLE,
    SECOND,
    SECOND_FOLDER,
    Point,
    draw_flawed,
    list_collections,
    list_sound,
    list_twins,
)
from benchmarks.planted.equal_rankers import measure_equal_rankers
from benchmarks.planted.intervals import Population, build_population, cover_drops, cover_rates, measure_power
from benchmarks.planted.tables import Limit
from benchmarks.quick import judge_limits

AUDITS, SOUND, BUDGET, GATE, COVERAGE, POWER = PARTS = ("audits", "sound", "budget", "gate", "coverage", "power")
DEFAULT_SHARE = 0.4
"""The share of the flawed audits that fits into an hour on two cores."""
TRIALS = {GATE: 400, COVERAGE: 2000, POWER: 400}
QUICK_DIVISOR, QUICK_AUDITS, QUICK_TASKS = 200, 1, ("effectiveness", "query_typos(draws=1)")
"""Sizes that show within seconds that the benchmark works."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("benchmarks.planted", description=description.partition("\n")[0])
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS), help="the parts to run")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one audit and few trials of each part, to check that it works",
    )
    parser.add_argument("--share", type=float, default=DEFAULT_SHARE, help="the share of the flawed audits")
    parser.add_argument("--workers", type=int, default=2, help="worker processes")
    parser.add_argument("--out", type=Path, default=Path("shaketable-planted"), help="the folder of results")
    parser.add_argument("--page", type=Path, help="a Markdown file for the tables")
    options = parser.parse_args(arguments)
    started = time.perf_counter()
    with Workers(1 if options.quick else options.workers) as options.workers:
        limits = [limit for part in options.part for limit in RUN_PART[part](options)]
    show(["Limits", *map(str, limits)])
    if options.page:
        write_page(options)
    print(f"{time.perf_counter() - started:.0f} seconds")
    return judge_limits(all(limit.is_met for limit in limits), options.quick)


def write_page(options: argparse.Namespace) -> None:
    """Write all tables to a Markdown page that names the command."""
    command = f"python -m benchmarks.planted --share {options.share:g} --page {options.page}"
    head = [
        "# Benchmark of the verdict",
        f"Made by `{command}`. {' '.join((description or '').split(chr(10) * 2)[-1].split())}",
    ]
    blocks = ["\n".join(["```text", *lines, "```"]) for lines in SHOWN]
    options.page.write_text("\n\n".join([*head, *reversed(blocks[-1:]), *blocks[:-1]]) + "\n", encoding="utf-8")


def run_flawed(options: argparse.Namespace) -> Iterator[Limit]:
    """Audit a share of the flawed rankers, and compare them with their sound twins."""
    collections = _select_collections(options)
    show(tables.describe_bases({name: open_collection(name)[1] for name in collections}))
    twins = _run(list_twins(collections), options)
    rows = _run(draw_flawed(collections, options.share), options)
    show(tables.describe_flawed(rows))
    show(tables.describe_costs([*twins, *rows]))
    yield from tables.check_flawed(rows)


def run_sound(options: argparse.Namespace) -> Iterator[Limit]:
    """Audit the sound rankers."""
    rows = _run(list_sound(_select_collections(options)), options)
    show(tables.describe_sound(rows))
    yield from tables.check_sound(rows)


def run_budget(options: argparse.Namespace) -> Iterator[Limit]:
    """Audit the same rankers exhaustively and with shares of the pairs."""
    collections = _select_collections(options)
    _run(list_twins(collections), options)
    full = _run(draw_points(collections, options.quick), options)
    shares = QUICK_SHARES if options.quick else SHARES
    limited = {share: _run(limit_points(full, share), options) for share in shares}
    show(describe_budgets(full, limited))
    yield from check_budgets(full, limited)


def run_gate(options: argparse.Namespace) -> Iterator[Limit]:
    """Measure the failure rate of the default gate for equal rankers."""
    rates = measure_equal_rankers(_count_trials(GATE, options), options.workers)
    show(tables.describe_equal_rankers(rates))
    yield from tables.check_equal_rankers(rates)


def run_coverage(options: argparse.Namespace) -> Iterator[Limit]:
    """Measure the coverage of intervals; drops have no limit, because few queries may hold the whole loss."""
    trials = _count_trials(COVERAGE, options)
    rates = cover_rates(trials)
    show(tables.describe_coverage(rates))
    show(tables.describe_coverage(cover_drops(_build_populations(), trials // 4)))
    yield from tables.check_coverage(rates)


def run_power(options: argparse.Namespace) -> Iterator[Limit]:
    """Measure the loss that is found in 80 % of the cases."""
    show(tables.describe_power(measure_power(_build_populations(), _count_trials(POWER, options))))
    yield from ()


RUN_PART = {
    AUDITS: run_flawed,
    SOUND: run_sound,
    BUDGET: run_budget,
    GATE: run_gate,
    COVERAGE: run_coverage,
    POWER: run_power,
}


SHOWN: list[list[str]] = []
"""The tables so far, for the page."""


def show(lines: Iterable[str]) -> None:
    """Print a table below an empty line."""
    SHOWN.append(list(lines))
    print("", *SHOWN[-1], sep="\n", flush=True)


def _select_collections(options: argparse.Namespace) -> list[str]:
    if options.quick:
        return [SAMPLE]
    if SECOND not in list_collections():
        print(f"SKIPPED: the collection {SECOND} is not at {SECOND_FOLDER}, so only the sample is tested.")
    return list(list_collections())


def _run(points: list[Point], options: argparse.Namespace) -> list[AuditRow]:
    options.out.mkdir(parents=True, exist_ok=True)
    points = points[:QUICK_AUDITS] if options.quick else points
    tasks = QUICK_TASKS if options.quick else ()
    notify = partial(print, file=sys.stderr, flush=True)
    return list(run_points(points, options.out, options.workers, notify, tasks))


def _count_trials(part: str, options: argparse.Namespace) -> int:
    return TRIALS[part] // (QUICK_DIVISOR if options.quick else 1)


def _build_populations() -> list[Population]:
    known, calibration = open_collection(SAMPLE)
    lists = known.search_bm25(calibration.qids)
    qrels = {qid: known.collection.qrels[qid] for qid in calibration.qids}
    levels: tuple[Level, ...] = LEVELS
    return [build_population(BaseRanker(known, calibration.noise[one]), one, lists, qrels) for one in levels]


if __name__ == "__main__":
    sys.exit(main())
