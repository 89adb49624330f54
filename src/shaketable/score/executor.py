"""Who does the work: jobs go in, and come back in any order.

A job names what it is about twice: as the object at hand, for whoever runs it in this process, and as the texts from
which another process can open an equal one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from shaketable.errors import BadInput

Item = TypeVar("Item")


@dataclass(frozen=True)
class Origin:
    """The texts from which a ranker (or, without a model, the collection alone) can be opened anywhere."""

    collection: str
    model: str = ""


@dataclass(frozen=True)
class Job:
    """A function of the module level, what it is about, and its other arguments."""

    function: Callable[..., Any]
    subject: Any
    arguments: tuple[Any, ...] = ()
    origin: Origin | None = None
    """None for what was made in memory: such a job stays in this process."""

    def __call__(self) -> Any:
        return self.function(self.subject, *self.arguments)


class Executor(Protocol):
    """Runs jobs, `in_flight` of them at a time at most."""

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
    """Runs jobs in threads of this process: for rankers that wait for others, or that release the lock."""

    in_flight: int = 4
    _pool: ThreadPoolExecutor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.in_flight < 1:
            raise BadInput(f"at least one job must be in flight, not {self.in_flight}")
        self._pool = ThreadPoolExecutor(self.in_flight, thread_name_prefix="shaketable")

    def submit(self, job: Job) -> Future[Any]:
        return self._pool.submit(job)


def completed(executor: Executor, jobs: Iterable[tuple[Item, Job]]) -> Iterator[tuple[Item, Any]]:
    """Each item with what its job returned, as they come; a job is submitted when there is room for it.

    If one fails, those under way are waited for and handed out, and no more are begun; then its error is raised.
    """
    waiting: dict[Future[Any], Item] = {}
    upcoming = iter(jobs)
    failure: BaseException | None = None
    while True:
        while failure is None and len(waiting) < executor.in_flight and (entry := next(upcoming, None)):
            waiting[executor.submit(entry[1])] = entry[0]
        if not waiting:
            break
        for future in wait(waiting, return_when=FIRST_COMPLETED).done:
            item = waiting.pop(future)
            if error := future.exception():
                failure = failure or error
            else:
                yield item, future.result()
    if failure is not None:
        raise failure
