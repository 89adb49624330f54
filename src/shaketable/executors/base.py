"""Executors run jobs and return their results in any order.

A job has its subject as an object, to run in this process, and as a spec, from which another process opens an equal
object. `SerialExecutor` and `ThreadExecutor` run jobs in this process; `executors.processes` uses worker processes on
this machine, `executors.ray` uses a Ray cluster.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Protocol, TypeAlias, TypeVar

from shaketable.core.errors import BadInput

Item = TypeVar("Item")
JobQueue: TypeAlias = "SimpleQueue[tuple[Future[Any], Job] | None]"
"""Jobs that wait for a thread; None stops one thread."""


@dataclass(frozen=True)
class RemoteSpec:
    """The specs from which another process opens a ranker or, without a model, the documents alone.

    The fingerprints are those of the objects in this process; "" if there is none. A worker that opens different
    documents or a different ranker refuses the job.
    """

    collection: str
    model: str = ""
    documents_fingerprint: str = ""
    ranker_fingerprint: str = ""


@dataclass(frozen=True)
class Job:
    """A module-level function, its subject and its other arguments."""

    function: Callable[..., Any]
    subject: Any
    arguments: tuple[Any, ...] = ()
    remote_spec: RemoteSpec | None = None
    """None for a subject made in memory; such a job stays in this process."""
    local_arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that exist in this process only, such as a progress bar."""
    resources: Mapping[str, float] = field(default_factory=dict)
    """The required resources under Ray's names: num_cpus and num_gpus."""
    output_folder: Path | None = None
    """A folder that the job writes; the worker must share it with this process."""
    uses_all_cores: bool = False
    """True if the job uses all cores of a machine, so that a second process would not help."""

    def __call__(self) -> Any:
        return self.function(self.subject, *self.arguments, **self.local_arguments)


class Executor(Protocol):
    """A runner of at most `max_concurrency` jobs at a time.

    An executor that sends jobs to other processes has an attribute `cli_option`, its command-line option.
    """

    @property
    def max_concurrency(self) -> int: ...
    def submit(self, job: Job) -> Future[Any]: ...


class SerialExecutor:
    """An executor that runs each job immediately in the calling thread."""

    max_concurrency = 1

    def submit(self, job: Job) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(job())
        except Exception as error:
            future.set_exception(error)
        return future


@dataclass
class ThreadExecutor:
    """An executor with threads, for rankers that wait for a server or release the GIL.

    The program does not wait for these threads at exit.
    """

    max_concurrency: int = 4
    _jobs: JobQueue = field(init=False, repr=False, default_factory=SimpleQueue)
    _workers: list[Thread] = field(init=False, repr=False, default_factory=list)

    def __post_init__(self) -> None:
        if self.max_concurrency < 1:
            raise BadInput(f"the number of concurrent jobs must be at least 1, not {self.max_concurrency}")
        weakref.finalize(self, _stop_threads, self._jobs, self._workers)

    @property
    def max_queued(self) -> int:
        """Jobs to submit beyond the running ones, so that a free thread has its next job immediately."""
        return self.max_concurrency

    def submit(self, job: Job) -> Future[Any]:
        future: Future[Any] = Future()
        self._jobs.put((future, job))
        if len(self._workers) < self.max_concurrency:
            self._workers.append(Thread(target=_run_jobs, args=(self._jobs,), name="shaketable", daemon=True))
            self._workers[-1].start()
        return future


def _run_jobs(jobs: JobQueue) -> None:
    while (entry := jobs.get()) is not None:
        future, job = entry
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(job())
            except BaseException as error:
                future.set_exception(error)
        del entry, future, job  # free the job's objects before waiting for the next job


def _stop_threads(jobs: JobQueue, workers: list[Thread]) -> None:
    for _ in workers:
        jobs.put(None)


def as_completed(executor: Executor, jobs: Iterable[tuple[Item, Job]]) -> Iterator[tuple[Item, Any]]:
    """Yield each item with the result of its job as jobs complete; submit jobs as slots become free.

    If a job fails, no more jobs are submitted, the results of running jobs are yielded, and then its error is raised.
    After a KeyboardInterrupt, finished results are yielded without waiting for running jobs.
    """
    max_pending = executor.max_concurrency + getattr(executor, "max_queued", 0)
    waiting: dict[Future[Any], Item] = {}
    back: SimpleQueue[Future[Any]] = SimpleQueue()
    upcoming = iter(jobs)
    failure: BaseException | None = None
    try:
        while True:
            while failure is None and len(waiting) < max_pending and (entry := next(upcoming, None)):
                future = executor.submit(entry[1])
                waiting[future] = entry[0]
                future.add_done_callback(back.put)
            if not waiting:
                break
            try:
                future = back.get(block=not isinstance(failure, KeyboardInterrupt))
            except KeyboardInterrupt as interrupt:
                failure = interrupt
                continue
            except Empty:
                break
            if future.cancelled():
                continue
            item = waiting.pop(future)
            if error := future.exception():
                failure = failure or error
                _cancel(waiting)
            else:
                yield item, future.result()
    finally:
        _cancel(waiting)
    if failure is not None:
        raise failure


def _cancel(waiting: dict[Future[Any], Any]) -> None:
    """Cancel submitted jobs that have not started."""
    for future in [future for future in waiting if future.cancel()]:
        del waiting[future]
