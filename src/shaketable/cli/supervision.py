"""A gated command runs in a child process, so that no gate passes without a result.

User code can end its process at any moment, for example with `os._exit(0)`, and exit code 0 means that all gates pass.
The parent process therefore believes only the exit code that the child writes to a pipe as its last act.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from shaketable.cli.signals import STOP_SIGNALS
from shaketable.core.errors import ShaketableError

PIPE_VARIABLE = "SHAKETABLE_EXIT_CODE_PIPE"
"""The environment variable that tells a child process the file descriptor for its exit code."""
GATE_FLAGS = ("gate", "require", "rules", "pairs")
PARENT_CHECK_INTERVAL_S = 1.0


class Unfinished(ShaketableError):
    """A gated command whose process ended without a result."""

    exit_code = 70


class _Killed(ShaketableError):
    """A gated command whose process was ended by a signal."""

    def __init__(self, number: int):
        name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
        super().__init__(f"{name} ended the process; no gate was evaluated; run the command again to resume")
        self.exit_code = 128 + number


class ExitCodePipe:
    """The pipe to the parent process; it has no file descriptor in a process without a supervisor."""

    def __init__(self) -> None:
        self.descriptor: int | None = None
        self.is_program = False
        self.is_written = False

    def open(self, is_program: bool) -> None:
        """Take the pipe from the environment, which other processes of this one do not inherit."""
        self.is_program = is_program
        given = os.environ.pop(PIPE_VARIABLE, "") if is_program else ""
        if given:
            self.descriptor = int(given)
            os.set_inheritable(self.descriptor, False)
            threading.Thread(target=_stop_without_parent, args=(os.getppid(),), daemon=True).start()

    def write(self, exit_code: int) -> None:
        """Tell the parent process that the command is finished; only the first exit code counts."""
        if self.descriptor is not None and not self.is_written:
            self.is_written = True
            with suppress(OSError):
                os.write(self.descriptor, str(exit_code).encode())


PIPE = ExitCodePipe()


def needs_supervision(given: Mapping[str, Any]) -> bool:
    """Return True if these flags of a command have a gate on rankers, and no supervisor started this process."""
    gated = "ranker" in given and any(given.get(flag) for flag in GATE_FLAGS) and not given.get("dry_run")
    return gated and PIPE.is_program and PIPE.descriptor is None and os.name == "posix"


def run_supervised() -> int:
    """Run this program's command line in a child process and return the exit code that it reports."""
    source, target = os.pipe()
    code = "from shaketable.cli import main; main()"
    with os.fdopen(source, "rb") as pipe:
        with _forward_signals() as children:
            child = subprocess.Popen(
                [sys.executable, *subprocess._args_from_interpreter_flags(), "-c", code, *sys.argv[1:]],  # type: ignore[attr-defined]
                env={**os.environ, PIPE_VARIABLE: str(target)},
                pass_fds=[target],
            )
            children.append(child)
            os.close(target)
            status = child.wait()
        os.set_blocking(source, False)  # a process that user code left behind may hold the other end
        said = pipe.read() or b""
    if said.isdigit():
        return int(said)
    if status < 0:
        raise _Killed(-status)
    raise Unfinished(
        f"the process ended with exit code {status} before it had a result, as os._exit does in code that you named; "
        "no gate was evaluated"
    )


@contextmanager
def _forward_signals() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Pass signals on to the child processes in the list, which end with a message of their own."""
    children: list[subprocess.Popen[bytes]] = []

    def forward(number: int, frame: FrameType | None) -> None:
        for child in children:
            if number != signal.SIGINT or not _is_foreground():  # a terminal sends Ctrl-C to both processes
                child.send_signal(number)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *STOP_SIGNALS)}
    handled = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in handled:
        signal.signal(number, forward)
    try:
        yield children
    finally:
        for number in handled:
            signal.signal(number, before[number])


def _is_foreground() -> bool:
    """Return True if this process belongs to the foreground of a terminal."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def _stop_without_parent(parent: int) -> None:
    """Interrupt this process when its parent process has died."""
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_INTERVAL_S)
    os.kill(os.getpid(), signal.SIGTERM)
