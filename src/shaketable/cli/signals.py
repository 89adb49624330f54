"""Signals that end a program: SIGTERM and SIGHUP interrupt a command as Ctrl-C does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))

_received: list[int] = []
"""The stop signals that arrived while a command ran."""


@contextmanager
def interrupt_on_stop_signals() -> Iterator[None]:
    """Raise KeyboardInterrupt on a stop signal, so that the command says what is cached, and restore the handlers.

    A signal that is ignored, as SIGHUP is under nohup, stays ignored, and a handler of an embedding program stays.
    """
    _received.clear()
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    replaced = [number for number in STOP_SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in replaced:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in replaced:
            signal.signal(number, signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    raise KeyboardInterrupt


def get_interrupt_exit_code() -> int:
    """Return the conventional exit code of an interrupted program: 128 + signal, 130 after Ctrl-C."""
    return 128 + (_received[0] if _received else signal.SIGINT)
