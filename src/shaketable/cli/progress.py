"""How far a command is: bars where somebody watches a terminal, a line every half minute where nobody does."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

from shaketable.cli import console
from shaketable.report import cell

EVERY = 30.0
"""Seconds from one line to the next, off a terminal."""


@dataclass
class Bar:
    """What is under way, how much of it is done, and the words for it; what `beside` is given is asked when drawn."""

    what: str
    total: int
    unit: str
    done: int = 0
    started: float = field(default_factory=time.monotonic)
    said: Callable[[], str] = str

    def __call__(self, done: int) -> None:
        self.done += done

    def beside(self, say: Callable[[], str]) -> None:
        self.said = say

    def text(self) -> str:
        """What is being done and, where somebody has something to say of it, that.

        >>> bar = Bar("scoring with mine", 300, "query-document pairs")
        >>> bar.beside(lambda: "3 tried again")
        >>> bar.text()
        'scoring with mine (3 tried again)'
        """
        said = self.said()
        return cell(f"{self.what} ({said})" if said else self.what)

    def count(self) -> str:
        """How much of it is done.

        >>> Bar("scoring with mine", 40_000, "query-document pairs", done=1_200).count()
        '1,200 of 40,000 query-document pairs'
        """
        return f"{self.done:,} of {self.total:,} {self.unit}"

    def share(self) -> str:
        return f"{self.done / self.total:.1%}".replace("%", " %")

    def left(self) -> float | None:
        """Seconds to the end, if it goes on as it began; None where nothing is done yet."""
        return (time.monotonic() - self.started) * (self.total - self.done) / self.done if self.done else None


UNDER_WAY: list[Bar] = []
"""The bars that are open, each a part of the one before it."""


@contextmanager
def progress(what: str, total: int, unit: str) -> Iterator[Callable[[int], None]]:
    """What a command shows of its progress (a `types.Watch`): nothing where there is nothing to do, or nobody to hear.

    On a terminal each bar stands below the one that it is a part of. Elsewhere a line on stderr says every `EVERY`
    seconds where it is.
    """
    if total == 0 or console.is_quiet():
        yield lambda done: None
        return
    bar = Bar(what, total, unit)
    UNDER_WAY.append(bar)
    try:
        with nullcontext() if len(UNDER_WAY) > 1 else _shown():
            yield bar
    finally:
        UNDER_WAY.remove(bar)


def where() -> str:
    """Where all of it is, in a line: each bar, the time so far, and how long the last of them has to go."""
    bars = tuple(UNDER_WAY)
    if not bars:
        return ""
    parts = "; ".join(f"{bar.text()}: {bar.count()}, {bar.share()}" for bar in bars)
    left = bars[-1].left()
    part = " for this part" if bars[1:] else ""
    ahead = "" if left is None else f", about {spelled(left)} left{part}"
    return f"{parts}; {spelled(time.monotonic() - bars[0].started)} so far{ahead}"


def spelled(seconds: float) -> str:
    """A time in words.

    >>> spelled(8.4), spelled(90), spelled(7_500)
    ('8 s', '1 min 30 s', '2 h 5 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes else f"{rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def _shown() -> AbstractContextManager[Any]:
    return _drawn() if sys.stderr.isatty() else _told()


@contextmanager
def _told() -> Iterator[None]:
    """A line every now and then, by a thread: a long step must not keep it silent."""
    over = Event()

    def tell() -> None:
        while not over.wait(EVERY):
            if line := where():
                console.say(line)

    teller = Thread(target=tell, name="progress", daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def _drawn() -> AbstractContextManager[Any]:
    """Bars that are drawn again several times a second, and gone at the end."""
    from rich.console import Console
    from rich.live import Live
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    def drawing() -> Table:
        table = Table.grid(padding=(0, 1))
        bars = tuple(UNDER_WAY)
        for bar in bars:
            left = bar.left() if bar is bars[-1] else None
            ahead = "" if left is None else f"{spelled(left)} left"
            drawn = ProgressBar(total=bar.total, completed=bar.done, width=12)
            table.add_row(Text(bar.text()), drawn, Text(bar.count()), Text(ahead))
        return table

    return Live(get_renderable=drawing, console=Console(stderr=True), refresh_per_second=4, transient=True)
