"""The tables of the benchmark, and its limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, median

from benchmarks.planted.audits import AuditRow
from benchmarks.planted.bases import Calibration
from benchmarks.planted.design import STRENGTHS
from benchmarks.planted.equal_rankers import EqualRankersRate
from benchmarks.planted.flaws import FLAWS
from benchmarks.planted.intervals import Coverage, Power
from benchmarks.planted.reading import Outcome

OUTCOMES: tuple[Outcome, ...] = ("named", "misnamed", "silent")
HEADLINES = ("PASSED", "PASSED with warnings", "INCONCLUSIVE", "FAILED")
DEVELOPMENT, HELD_OUT = "development", "held-out"
MIN_NAMED_PERCENT = {"full": 95.0, "quarter": 60.0}
MIN_FOUND_WORSE_PERCENT = 95.0
MAX_FALSE_ALARMS, MIN_PASSED_SHARE = 1, 12 / 15
MAX_GATE_FAILURES_PERCENT = 5.0
MIN_COVERAGE, MIN_MEAN_COVERAGE = 0.90, 0.94


@dataclass(frozen=True)
class Limit:
    """A limit of the benchmark, and whether a run meets it."""

    text: str
    is_met: bool

    def __str__(self) -> str:
        return f"{'ok  ' if self.is_met else 'MISS'} {self.text}"


def judge_row(row: AuditRow) -> Outcome:
    """Return whether the verdict of an audit names the planted flaw."""
    flaw = FLAWS[row.point.ranker]
    return row.reading.judge(flaw.expected, flaw.gate_rules)


def format_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield the lines of a table with aligned columns."""
    texts = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for row in texts:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def describe_bases(calibrations: dict[str, Calibration]) -> Iterator[str]:
    """Yield nDCG@10 of the bases beside BM25."""
    yield "nDCG@10 of the bases, beside BM25 and a perfect order of its lists"
    yield from format_table(
        ("collection", "queries", "BM25", "low", "mediocre", "good", "perfect"),
        [
            (name, len(one.qids), *(f"{value:.3f}" for value in (one.bm25, *one.reached.values(), one.perfect)))
            for name, one in calibrations.items()
        ],
    )


def describe_flawed(rows: Sequence[AuditRow]) -> Iterator[str]:
    """Yield the confusion table by strength and half, by facet, and the flaws that are not named."""
    yield "Planted flaws: does the verdict name them?"
    groups: list[tuple[str, Callable[[AuditRow], str]]] = [
        ("half", lambda row: HELD_OUT if FLAWS[row.point.ranker].is_held_out else DEVELOPMENT),
        ("base", lambda row: row.point.level),
        ("collection", lambda row: row.point.collection),
        ("facet", lambda row: next(iter(FLAWS[row.point.ranker].expected), "gate")),
    ]
    for heading, group in groups:
        yield from format_table((heading, "strength", "audits", *OUTCOMES, "found by compare"), _count(rows, group))
        yield ""
    yield "Flaws that are not named"
    missed = [row for row in rows if judge_row(row) != "named"]
    yield from format_table(
        ("flaw", "half", "strength", "base", "collection", "outcome", "alarms"),
        [
            (
                row.point.ranker,
                HELD_OUT if FLAWS[row.point.ranker].is_held_out else DEVELOPMENT,
                row.point.strength,
                row.point.level,
                row.point.collection,
                judge_row(row),
                ", ".join(f"{facet} ({row.reading.cells[facet][1]})" for facet in row.reading.alarms),
            )
            for row in sorted(missed, key=lambda row: row.point)
        ],
    )


def _count(rows: Sequence[AuditRow], group: Callable[[AuditRow], str]) -> Iterator[tuple[object, ...]]:
    for strength in STRENGTHS:
        for name in sorted({group(row) for row in rows}):
            some = [row for row in rows if row.point.strength == strength and group(row) == name]
            if some:
                counts = Counter(map(judge_row, some))
                shares = [f"{counts[o]} ({100 * counts[o] / len(some):.0f} %)" for o in OUTCOMES]
                yield name, strength, len(some), *shares, f"{100 * mean(bool(row.found_worse) for row in some):.0f} %"


def check_flawed(rows: Sequence[AuditRow]) -> Iterator[Limit]:
    """Yield the limits of the flawed rankers, for both halves."""
    for strength in STRENGTHS:
        for half, is_held_out in ((DEVELOPMENT, False), (HELD_OUT, True)):
            some = [
                row
                for row in rows
                if row.point.strength == strength and FLAWS[row.point.ranker].is_held_out == is_held_out
            ]
            if some:
                named = 100 * mean(judge_row(row) == "named" for row in some)
                least = MIN_NAMED_PERCENT[strength]
                yield Limit(f"{half} flaws, {strength}: {named:.0f} % named (at least {least:.0f} %)", named >= least)
    if strong := [row for row in rows if row.point.strength == "full"]:
        found = 100 * mean(bool(row.found_worse) for row in strong)
        yield Limit(
            f"compare finds {found:.0f} % of the strong flaws (at least {MIN_FOUND_WORSE_PERCENT:.0f} %)",
            found >= MIN_FOUND_WORSE_PERCENT,
        )


def describe_sound(rows: Sequence[AuditRow]) -> Iterator[str]:
    """Yield the headlines of sound rankers, and their false alarms."""
    yield "Sound rankers: does the verdict pass them?"
    collections = sorted({row.point.collection for row in rows})
    counts = {where: Counter(r.reading.headline for r in rows if r.point.collection == where) for where in collections}
    yield from format_table(
        ("collection", *HEADLINES), [(where, *(counts[where][one] for one in HEADLINES)) for where in collections]
    )
    yield ""
    yield from format_table(
        ("sound ranker", "collection", "headline", "false alarms", "undecided"),
        [
            (
                row.point.ranker,
                row.point.collection,
                row.reading.headline,
                ", ".join(f"{f} ({row.reading.cells[f][1]} {row.reading.cells[f][2]})" for f in row.reading.alarms),
                ", ".join(facet for facet, cell in row.reading.cells.items() if cell[0] == "inconclusive"),
            )
            for row in sorted(rows, key=lambda row: row.point)
        ],
    )


def check_sound(rows: Sequence[AuditRow]) -> Iterator[Limit]:
    """Yield the limits of the sound rankers, for each collection."""
    for where in sorted({row.point.collection for row in rows}):
        some = [row for row in rows if row.point.collection == where]
        alarmed = sum(bool(row.reading.alarms or row.reading.failures) for row in some)
        passed = sum(row.reading.headline.startswith("PASSED") for row in some)
        yield Limit(
            f"{where}: {alarmed} of {len(some)} sound rankers with a false alarm (at most {MAX_FALSE_ALARMS})",
            alarmed <= MAX_FALSE_ALARMS,
        )
        least = MIN_PASSED_SHARE * len(some)
        yield Limit(f"{where}: {passed} of {len(some)} sound rankers PASSED (at least {least:.0f})", passed >= least)


def describe_costs(rows: Sequence[AuditRow]) -> Iterator[str]:
    """Yield the pairs that the ranker under test scores, and the seconds of an audit."""
    yield "Cost of an audit: pairs of query and text that the ranker under test scores, and seconds"
    collections = sorted({row.point.collection for row in rows})
    some = {where: [row for row in rows if row.point.collection == where] for where in collections}
    yield from format_table(
        ("collection", "audits", "pairs, median", "pairs, largest", "seconds, median", "seconds, largest"),
        [
            (
                where,
                len(of),
                f"{median(row.pairs for row in of):,.0f}",
                f"{max(row.pairs for row in of):,}",
                f"{median(row.seconds for row in of):.1f}",
                f"{max(row.seconds for row in of):.1f}",
            )
            for where, of in some.items()
        ],
    )


def describe_equal_rankers(rates: Sequence[EqualRankersRate]) -> Iterator[str]:
    """Yield the failure rate of the gate for equal rankers."""
    yield "Equal rankers (A/A): failures of the default gate"
    yield from format_table(
        ("base", "pairs", "failed", "95 % interval", "inconclusive", "reasons"),
        [
            (
                one.level,
                one.trials,
                f"{100 * one.failed / one.trials:.1f} %",
                "[{:.1f}, {:.1f}] %".format(*(100 * end for end in one.interval)),
                f"{100 * one.inconclusive / one.trials:.1f} %",
                ", ".join(f"{reason} {count}" for reason, count in one.reasons.items()),
            )
            for one in rates
        ],
    )


def check_equal_rankers(rates: Sequence[EqualRankersRate]) -> Iterator[Limit]:
    """Yield the limit of gate failures at each base level."""
    for one in rates:
        percent = 100 * one.failed / one.trials
        yield Limit(
            f"equal rankers, {one.level}: {percent:.1f} % fail (at most {MAX_GATE_FAILURES_PERCENT:.0f} %)",
            percent <= MAX_GATE_FAILURES_PERCENT,
        )


def describe_coverage(coverages: Sequence[Coverage]) -> Iterator[str]:
    """Yield the coverage of 95 % intervals by truth and number of queries."""
    yield "Coverage of 95 % intervals"
    sizes = sorted({one.n for one in coverages})
    rows: dict[tuple[str, str, float], dict[int, float]] = {}
    for one in coverages:
        rows.setdefault((one.number, one.setting, one.truth), {})[one.n] = one.covered
    yield from format_table(
        ("number", "setting", "truth", *(f"{n} queries" for n in sizes)),
        [
            (number, setting, f"{truth:.1f}", *(f"{100 * covered[n]:.1f} %" for n in sizes))
            for (number, setting, truth), covered in rows.items()
        ],
    )


def check_coverage(coverages: Sequence[Coverage]) -> Iterator[Limit]:
    """Yield the limits of the coverage, for each kind of number."""
    for number in sorted({one.number for one in coverages}):
        some = [one.covered for one in coverages if one.number == number]
        least, average = min(some), mean(some)
        yield Limit(f"{number}: least coverage {100 * least:.1f} % (at least 90 %)", least >= MIN_COVERAGE)
        yield Limit(f"{number}: mean coverage {100 * average:.1f} % (at least 94 %)", average >= MIN_MEAN_COVERAGE)


def describe_power(powers: Sequence[Power]) -> Iterator[str]:
    """Yield the losses that are found in 80 % of the cases."""
    yield "Power: the smallest loss or rate that warns or fails in 80 % of the cases with 50 queries"
    yield from format_table(
        ("facet", "setting", "loss"),
        [
            (one.facet, one.setting, "none" if one.least_loss_percent is None else f"{one.least_loss_percent:.0f} %")
            for one in powers
        ],
    )
