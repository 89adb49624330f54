"""Progress of a command: bars on a terminal, otherwise lines on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

from shaketable.cli import console
from shaketable.report import format_cell

REPORT_INTERVAL_S = 30.0
"""Seconds between two progress lines if stderr is not a terminal."""


@dataclass
class ProgressBar:
    """The state of one step: its label, its count, and a status that is computed when the bar is drawn."""

    label: str
    total: int
    unit: str
    done: int = 0
    started: float = field(default_factory=time.monotonic)
    describe_status: Callable[[], str] = str

    def __call__(self, done: int) -> None:
        self.done += done

    def set_status(self, describe_status: Callable[[], str]) -> None:
        self.describe_status = describe_status

    def describe(self) -> str:
        """Return the label, with the status if there is one.

        >>> bar = ProgressBar("scoring with mine", 300, "query-document pairs")
        >>> bar.set_status(lambda: "3 retries")
        >>> bar.describe()
        'scoring with mine (3 retries)'
        """
        said = self.describe_status()
        return format_cell(f"{self.label} ({said})" if said else self.label)

    def format_count(self) -> str:
        """Return the number of units done and their total.

        >>> ProgressBar("scoring with mine", 40_000, "query-document pairs", done=1_200).format_count()
        '1,200 of 40,000 query-document pairs'
        """
        return f"{self.done:,} of {self.total:,} {self.unit}"

    def format_share(self) -> str:
        return f"{self.done / self.total:.1%}".replace("%", " %")

    def estimate_seconds_left(self) -> float | None:
        """Return the estimated seconds to the end; None if nothing is done yet."""
        return (time.monotonic() - self.started) * (self.total - self.done) / self.done if self.done else None


OPEN_BARS: list[ProgressBar] = []
"""The open bars; each is a part of the previous bar."""


@contextmanager
def show_progress(what: str, total: int, unit: str) -> Iterator[Callable[[int], None]]:
    """Show the progress of a step (a `ProgressFactory`), unless there is nothing to do or --quiet is set.

    On a terminal, each bar is below its parent bar. Otherwise, stderr gets a line every `REPORT_INTERVAL_S` seconds.
    """
    if total == 0 or console.is_quiet():
        yield lambda done: None
        return
    bar = ProgressBar(what, total, unit)
    OPEN_BARS.append(bar)
    try:
        with nullcontext() if len(OPEN_BARS) > 1 else _open_display():
            yield bar
    finally:
        OPEN_BARS.remove(bar)


def describe_progress() -> str:
    """Return one line on all open bars: their counts, the elapsed time, and the time left for the last bar."""
    bars = tuple(OPEN_BARS)
    if not bars:
        return ""
    parts = "; ".join(f"{bar.describe()}: {bar.format_count()}, {bar.format_share()}" for bar in bars)
    left = bars[-1].estimate_seconds_left()
    part = " for this part" if bars[1:] else ""
    ahead = "" if left is None else f", about {format_duration(left)} left{part}"
    return f"{parts}; {format_duration(time.monotonic() - bars[0].started)} so far{ahead}"


def format_duration(seconds: float) -> str:
    """Return a duration in words.

    >>> format_duration(8.4), format_duration(90), format_duration(7_500)
    ('8 s', '1 min 30 s', '2 h 5 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes else f"{rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def _open_display() -> AbstractContextManager[Any]:
    return _draw_bars() if sys.stderr.isatty() else _report_lines()


@contextmanager
def _report_lines() -> Iterator[None]:
    """Write progress lines from a thread, so that a long step does not delay them."""
    over = Event()

    def tell() -> None:
        while not over.wait(REPORT_INTERVAL_S):
            if line := describe_progress():
                console.notify(line)

    teller = Thread(target=tell, name="progress", daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def _draw_bars() -> AbstractContextManager[Any]:
    """Return a display of the bars that is refreshed several times a second and removed at the end."""
    from rich.console import Console
    from rich.live import Live
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    def drawing() -> Table:
        table = Table.grid(padding=(0, 1))
        bars = tuple(OPEN_BARS)
        for bar in bars:
            left = bar.estimate_seconds_left() if bar is bars[-1] else None
            ahead = "" if left is None else f"{format_duration(left)} left"
            drawn = ProgressBar(total=bar.total, completed=bar.done, width=12)
            table.add_row(Text(bar.describe()), drawn, Text(bar.format_count()), Text(ahead))
        return table

    return Live(get_renderable=drawing, console=Console(stderr=True), refresh_per_second=4, transient=True)
