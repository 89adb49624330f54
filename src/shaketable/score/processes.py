"""Other processes of this machine: each opens what a job is about from its texts, and keeps it."""

from __future__ import annotations

import os
import subprocess
import sys
import weakref
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Event, Lock
from typing import Any

from shaketable.errors import BadInput
from shaketable.score.executor import Here, Job, Threads
from shaketable.score.worker import AGAIN, Parcel, Reply, died, packed

LIBRARIES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
"""What libraries read to know how many threads to take."""


@dataclass
class Processes:
    """Runs jobs in so many processes, which are started when they are needed and end with this one.

    A process that dies is replaced, and its job given to another. What has no origin, or cannot travel, is done here;
    so is what uses the cores by itself. Each process takes its share of the cores for torch and the like.
    """

    in_flight: int = 2
    _free: SimpleQueue[_Worker] = field(init=False, repr=False, default_factory=SimpleQueue)
    _lock: Lock = field(init=False, repr=False, default_factory=Lock)
    elsewhere = "--jobs"

    def __post_init__(self) -> None:
        if self.in_flight < 1:
            raise BadInput(f"at least one job must be in flight, not {self.in_flight}")
        self._threads = Threads(self.in_flight)
        share = max(1, cores() // self.in_flight)
        for _ in range(self.in_flight):
            self._free.put(_Worker(share))

    @property
    def ahead(self) -> int:
        """Jobs to hand in beyond those in flight: see `Threads`."""
        return self.in_flight

    def submit(self, job: Job) -> Future[Any]:
        parcel = None if job.threaded else packed(job)
        if parcel is None:
            return Here().submit(job)
        return self._threads.submit(Job(self._done, job, (parcel,)))

    def _done(self, job: Job, parcel: Parcel) -> Any:
        """In a thread that waits for a process."""
        worker = self._free.get()
        try:
            reply = worker.ask(parcel)
        finally:
            self._free.put(worker)
        with self._lock:
            return reply.result(job)


@dataclass(eq=False)
class _Worker:
    """A process at the other end of a line, started when it is first asked, and again when it has died."""

    threads: int
    over: Event = field(default_factory=Event)
    """The program ends: nobody is started again."""
    process: subprocess.Popen[bytes] | None = None
    line: Connection[Any, Any] | None = None

    def ask(self, parcel: Parcel) -> Reply:
        for _ in range(AGAIN + 1):
            if self.over.is_set():
                break
            if self.line is None:
                self._start()
            assert self.line is not None
            with suppress(EOFError, OSError):  # it died
                self.line.send(parcel)
                reply: Reply = self.line.recv()
                return reply
            self._end()
        raise died(parcel.origin.model or "a training")

    def _start(self) -> None:
        mine, theirs = Pipe()
        settings = {name: str(self.threads) for name in LIBRARIES if name not in os.environ}
        path = os.pathsep.join(entry for entry in sys.path if entry)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "shaketable.score.worker", str(theirs.fileno())],
                env={"TOKENIZERS_PARALLELISM": "false"} | os.environ | settings | {"PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                stdout=2,  # what goes to stdout is ours to say
                pass_fds=[theirs.fileno()],
            )
        self.line = mine
        weakref.finalize(self, _end_for_good, self.over, mine, self.process)

    def _end(self) -> None:
        if self.line is not None and self.process is not None:
            _hang_up(self.line, self.process)
        self.line = self.process = None


def _end_for_good(over: Event, line: Connection[Any, Any], process: subprocess.Popen[bytes]) -> None:
    over.set()
    _hang_up(line, process)


def _hang_up(line: Connection[Any, Any], process: subprocess.Popen[bytes]) -> None:
    """A worker that nobody can ask any more has nothing to do."""
    line.close()
    process.terminate()
    process.wait()


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
