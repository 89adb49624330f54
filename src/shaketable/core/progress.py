"""The protocol of progress bars for long operations."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class ProgressFactory(Protocol):
    """A function that opens a progress bar for (description, total, unit) and yields the function that advances it.

    A bar opened inside another is a part of it. The advance function may have a method `set_status(notify)`; `notify()`
    returns a text to show beside the bar and is called whenever the bar is drawn.
    """

    def __call__(self, what: str, total: int, unit: str, /) -> AbstractContextManager[Callable[[int], None]]: ...


def no_progress(what: str, total: int, unit: str) -> AbstractContextManager[Callable[[int], None]]:
    """Return a progress bar that shows nothing."""
    return nullcontext(lambda done: None)


def set_status(advance: Callable[[int], None], notify: Callable[[], str]) -> None:
    """Show the text of `notify` beside the bar, if the bar supports it (see `ProgressFactory`)."""
    if callable(show := getattr(advance, "set_status", None)):
        show(notify)
