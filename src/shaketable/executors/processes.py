"""Worker processes on this machine; each opens the subjects of jobs from their specs and keeps them open."""

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
"""Environment variables that set the number of threads of libraries."""


@dataclass
class ProcessExecutor:
    """An executor with worker processes, which start on demand and end with this process.

    If a worker dies, a new worker retries its job. A job runs in this process if it has no remote spec, cannot be
    pickled or uses all cores. Each worker uses its share of the cores for libraries such as torch.
    """

    max_concurrency: int = 2
    _idle_workers: SimpleQueue[_Worker] = field(init=False, repr=False, default_factory=SimpleQueue)
    _lock: Lock = field(init=False, repr=False, default_factory=Lock)
    cli_option = "--jobs"

    def __post_init__(self) -> None:
        if self.max_concurrency < 1:
            raise BadInput(f"the number of concurrent jobs must be at least 1, not {self.max_concurrency}")
        self._threads = ThreadExecutor(self.max_concurrency)
        share = max(1, count_cores() // self.max_concurrency)
        for _ in range(self.max_concurrency):
            self._idle_workers.put(_Worker(share))

    @property
    def max_queued(self) -> int:
        """Jobs to submit beyond the running ones: see `ThreadExecutor`."""
        return self.max_concurrency

    def submit(self, job: Job) -> Future[Any]:
        parcel = None if job.uses_all_cores else pack_job(job)
        if parcel is None:
            return SerialExecutor().submit(job)
        return self._threads.submit(Job(self._run_in_worker, job, (parcel,)))

    def _run_in_worker(self, job: Job, message: JobMessage) -> Any:
        """Run a job in an idle worker and return its result; called in a thread."""
        worker = self._idle_workers.get()
        try:
            reply = worker.run_job(message)
        finally:
            self._idle_workers.put(worker)
        with self._lock:
            return reply.unwrap(job)


@dataclass(eq=False)
class _Worker:
    """A worker process with its connection, started on first use and restarted if it died."""

    threads: int
    shutdown_event: Event = field(default_factory=Event)
    """Set at exit, so that no worker is restarted."""
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
                stdout=2,  # keep stdout for the output of this process
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
    """Stop a worker process and close its connection."""
    connection.close()
    process.terminate()
    process.wait()


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
