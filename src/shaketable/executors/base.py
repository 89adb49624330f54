"""Executors run jobs: jobs go in, and come back in any order.

A job names what it is about twice: as the object at hand, to run it in this process, and as the texts from which
another process can open an equal one. `SerialExecutor` and `ThreadExecutor` run jobs in this process;
`executors.processes` has other processes of this machine, `executors.ray` those of a Ray cluster.
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
"""Jobs that wait for a thread; None sends one home."""


@dataclass(frozen=True)
class RemoteSpec:
    """The texts from which a ranker (or, without a model, the documents alone) can be opened anywhere.

    The fingerprints are those of what is at hand: a process that opens something else under these texts must not
    answer. "" where there is none.
    """

    collection: str
    model: str = ""
    documents_fingerprint: str = ""
    ranker_fingerprint: str = ""


@dataclass(frozen=True)
class Job:
    """A function of the module level, what it is about, and its other arguments."""

    function: Callable[..., Any]
    subject: Any
    arguments: tuple[Any, ...] = ()
    remote_spec: RemoteSpec | None = None
    """None for what was made in memory: such a job stays in this process."""
    local_arguments: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments that mean something in this process alone, such as a progress display."""
    resources: Mapping[str, float] = field(default_factory=dict)
    """The resources that it takes where these are counted, by Ray's names: num_cpus and num_gpus."""
    output_folder: Path | None = None
    """A folder that it writes: the worker must share the disk with the process that reads it."""
    uses_all_cores: bool = False
    """It uses the cores of a machine by itself: another process beside it would gain nothing."""

    def __call__(self) -> Any:
        return self.function(self.subject, *self.arguments, **self.local_arguments)


class Executor(Protocol):
    """A runner of jobs, `max_concurrency` of them at a time at most.

    One that hands jobs to other processes has the attribute `cli_option`, its flag on the command line.
    """

    @property
    def max_concurrency(self) -> int: ...
    def submit(self, job: Job) -> Future[Any]: ...


class SerialExecutor:
    """Runs each job at once, in this thread."""

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
    """Runs jobs in threads of this process: for rankers that wait for others, or that release the lock.

    The program does not wait for these threads when it ends: late answers of a server are of no use.
    """

    max_concurrency: int = 4
    _jobs: JobQueue = field(init=False, repr=False, default_factory=SimpleQueue)
    _workers: list[Thread] = field(init=False, repr=False, default_factory=list)

    def __post_init__(self) -> None:
        if self.max_concurrency < 1:
            raise BadInput(f"at least one job must be in flight, not {self.max_concurrency}")
        weakref.finalize(self, _stop_threads, self._jobs, self._workers)

    @property
    def max_queued(self) -> int:
        """Jobs to hand in beyond those in flight: a thread that is done need not wait until its answer is put away."""
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
        del entry, future, job  # what a job holds must not live until the next one comes


def _stop_threads(jobs: JobQueue, workers: list[Thread]) -> None:
    for _ in workers:
        jobs.put(None)


def as_completed(executor: Executor, jobs: Iterable[tuple[Item, Job]]) -> Iterator[tuple[Item, Any]]:
    """Each item with what its job returned, as they come; a job is submitted when there is room for it.

    If one fails, those under way are waited for and handed out, and no more are begun; then its error is raised. After
    a KeyboardInterrupt what has come back is handed out, and nothing is waited for.
    """
    room = executor.max_concurrency + getattr(executor, "max_queued", 0)
    waiting: dict[Future[Any], Item] = {}
    back: SimpleQueue[Future[Any]] = SimpleQueue()
    upcoming = iter(jobs)
    failure: BaseException | None = None
    try:
        while True:
            while failure is None and len(waiting) < room and (entry := next(upcoming, None)):
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
    """Take back what was handed in and has not begun."""
    for future in [future for future in waiting if future.cancel()]:
        del waiting[future]
