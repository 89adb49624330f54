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

from shaketable.core.errors import BadInput
from shaketable.executors.base import Job, SerialExecutor, ThreadExecutor
from shaketable.executors.worker import MAX_JOB_RETRIES, JobMessage, JobResult, make_crash_error, pack_job

THREAD_COUNT_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
"""What libraries read to know how many threads to take."""


@dataclass
class ProcessExecutor:
    """Runs jobs in so many processes, which are started when they are needed and end with this one.

    A process that dies is replaced, and its job given to another. What has no origin, or cannot travel, is done here;
    so is what uses the cores by itself. Each process takes its share of the cores for torch and the like.
    """

    max_concurrency: int = 2
    _idle_workers: SimpleQueue[_Worker] = field(init=False, repr=False, default_factory=SimpleQueue)
    _lock: Lock = field(init=False, repr=False, default_factory=Lock)
    cli_option = "--jobs"

    def __post_init__(self) -> None:
        if self.max_concurrency < 1:
            raise BadInput(f"at least one job must be in flight, not {self.max_concurrency}")
        self._threads = ThreadExecutor(self.max_concurrency)
        share = max(1, count_cores() // self.max_concurrency)
        for _ in range(self.max_concurrency):
            self._idle_workers.put(_Worker(share))

    @property
    def max_queued(self) -> int:
        """Jobs to hand in beyond those in flight: see `ThreadExecutor`."""
        return self.max_concurrency

    def submit(self, job: Job) -> Future[Any]:
        parcel = None if job.uses_all_cores else pack_job(job)
        if parcel is None:
            return SerialExecutor().submit(job)
        return self._threads.submit(Job(self._run_in_worker, job, (parcel,)))

    def _run_in_worker(self, job: Job, message: JobMessage) -> Any:
        """In a thread that waits for a process."""
        worker = self._idle_workers.get()
        try:
            reply = worker.run_job(message)
        finally:
            self._idle_workers.put(worker)
        with self._lock:
            return reply.unwrap(job)


@dataclass(eq=False)
class _Worker:
    """A process at the other end of a line, started when it is first asked, and again when it has died."""

    threads: int
    shutdown_event: Event = field(default_factory=Event)
    """Set when the program ends: no worker is started again."""
    process: subprocess.Popen[bytes] | None = None
    connection: Connection[Any, Any] | None = None

    def run_job(self, message: JobMessage) -> JobResult:
        for _ in range(MAX_JOB_RETRIES + 1):
            if self.shutdown_event.is_set():
                break
            if self.connection is None:
                self._start()
            assert self.connection is not None
            with suppress(EOFError, OSError):  # it died
                self.connection.send(message)
                reply: JobResult = self.connection.recv()
                return reply
            self._stop()
        raise make_crash_error(message.remote_spec.model or "a training")

    def _start(self) -> None:
        mine, theirs = Pipe()
        settings = {name: str(self.threads) for name in THREAD_COUNT_VARIABLES if name not in os.environ}
        path = os.pathsep.join(entry for entry in sys.path if entry)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "shaketable.executors.worker", str(theirs.fileno())],
                env={"TOKENIZERS_PARALLELISM": "false"} | os.environ | settings | {"PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                stdout=2,  # what goes to stdout is ours to say
                pass_fds=[theirs.fileno()],
            )
        self.connection = mine
        weakref.finalize(self, _shut_down, self.shutdown_event, mine, self.process)

    def _stop(self) -> None:
        if self.connection is not None and self.process is not None:
            _stop_process(self.connection, self.process)
        self.connection = self.process = None


def _shut_down(shutdown_event: Event, connection: Connection[Any, Any], process: subprocess.Popen[bytes]) -> None:
    shutdown_event.set()
    _stop_process(connection, process)


def _stop_process(connection: Connection[Any, Any], process: subprocess.Popen[bytes]) -> None:
    """End a worker that no executor can ask any more."""
    connection.close()
    process.terminate()
    process.wait()


def count_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
