"""Progress displays, which callers may pass to anything that takes long."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class ProgressFactory(Protocol):
    """A function that opens a progress display for (what, how many, of what: "queries"); it returns what advances it.

    One that is opened while another is open is a part of the other. What advances it may have a method
    `set_status(notify)`: `notify()` is a text to show beside the bar, asked for whenever the bar is drawn.
    """

    def __call__(self, what: str, total: int, unit: str, /) -> AbstractContextManager[Callable[[int], None]]: ...


def no_progress(what: str, total: int, unit: str) -> AbstractContextManager[Callable[[int], None]]:
    """Show nothing."""
    return nullcontext(lambda done: None)


def set_status(advance: Callable[[int], None], notify: Callable[[], str]) -> None:
    """Let a progress display that can (see `ProgressFactory`) show what `notify` returns beside its bar."""
    if callable(show := getattr(advance, "set_status", None)):
        show(notify)
