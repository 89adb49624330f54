"""Who does the work: jobs go in, and come back in any order.

A job names what it is about twice: as the object at hand, for whoever runs it in this process, and as the texts from
which another process can open an equal one. `Here` and `Threads` run jobs in this process; `score.processes` has other
processes of this machine, `score.cluster` those of a Ray cluster.
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

from shaketable.errors import BadInput

Item = TypeVar("Item")
Tray: TypeAlias = "SimpleQueue[tuple[Future[Any], Job] | None]"
"""Jobs that wait for a thread; None sends one home."""


@dataclass(frozen=True)
class Origin:
    """The texts from which a ranker (or, without a model, the documents alone) can be opened anywhere.

    `documents` and `ranker` are the fingerprints of what is at hand: whoever opens something else under these texts
    must not answer. "" where there is none.
    """

    collection: str
    model: str = ""
    documents: str = ""
    ranker: str = ""


@dataclass(frozen=True)
class Job:
    """A function of the module level, what it is about, and its other arguments."""

    function: Callable[..., Any]
    subject: Any
    arguments: tuple[Any, ...] = ()
    origin: Origin | None = None
    """None for what was made in memory: such a job stays in this process."""
    here: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments that mean something in this process alone, such as a progress display."""
    needs: Mapping[str, float] = field(default_factory=dict)
    """The resources that it takes where these are counted, by Ray's names: num_cpus and num_gpus."""
    leaves: Path | None = None
    """A folder that it writes: who does it must share the disk with whoever reads that."""
    threaded: bool = False
    """It uses the cores of a machine by itself: another process beside it would gain nothing."""

    def __call__(self) -> Any:
        return self.function(self.subject, *self.arguments, **self.here)


class Executor(Protocol):
    """Runs jobs, `in_flight` of them at a time at most.

    One that hands jobs to other processes has the attribute `elsewhere`, which says to whom, in words.
    """

    @property
    def in_flight(self) -> int: ...
    def submit(self, job: Job) -> Future[Any]: ...


class Here:
    """Runs each job at once, in this thread."""

    in_flight = 1

    def submit(self, job: Job) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(job())
        except Exception as error:
            future.set_exception(error)
        return future


@dataclass
class Threads:
    """Runs jobs in threads of this process: for rankers that wait for others, or that release the lock.

    Nobody waits for these threads when the program ends: what a server has not answered by then, nobody wants.
    """

    in_flight: int = 4
    _jobs: Tray = field(init=False, repr=False, default_factory=SimpleQueue)
    _workers: list[Thread] = field(init=False, repr=False, default_factory=list)

    def __post_init__(self) -> None:
        if self.in_flight < 1:
            raise BadInput(f"at least one job must be in flight, not {self.in_flight}")
        weakref.finalize(self, _send_home, self._jobs, self._workers)

    @property
    def ahead(self) -> int:
        """Jobs to hand in beyond those in flight: a thread that is done need not wait until its answer is put away."""
        return self.in_flight

    def submit(self, job: Job) -> Future[Any]:
        future: Future[Any] = Future()
        self._jobs.put((future, job))
        if len(self._workers) < self.in_flight:
            self._workers.append(Thread(target=_work, args=(self._jobs,), name="shaketable", daemon=True))
            self._workers[-1].start()
        return future


def _work(jobs: Tray) -> None:
    while (entry := jobs.get()) is not None:
        future, job = entry
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(job())
            except BaseException as error:
                future.set_exception(error)
        del entry, future, job  # what a job holds must not live until the next one comes


def _send_home(jobs: Tray, workers: list[Thread]) -> None:
    for _ in workers:
        jobs.put(None)


def completed(executor: Executor, jobs: Iterable[tuple[Item, Job]]) -> Iterator[tuple[Item, Any]]:
    """Each item with what its job returned, as they come; a job is submitted when there is room for it.

    If one fails, those under way are waited for and handed out, and no more are begun; then its error is raised. After
    a KeyboardInterrupt what has come back is handed out, and nothing is waited for.
    """
    room = executor.in_flight + getattr(executor, "ahead", 0)
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
