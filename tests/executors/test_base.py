"""Jobs come back in any order; an interrupt returns the finished jobs and waits for no others."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

from shaketable.executors.base import Job, SerialExecutor, ThreadExecutor, as_completed


def double(number: int) -> int:
    return 2 * number


@pytest.mark.parametrize("executor", [SerialExecutor(), ThreadExecutor(1), ThreadExecutor(4), ThreadExecutor(64)])
def test_every_job_comes_back_with_its_item(executor):
    jobs = ((i, Job(double, i)) for i in range(500))
    assert sorted(as_completed(executor, jobs)) == [(i, 2 * i) for i in range(500)]


def test_no_more_jobs_are_under_way_than_the_limit():
    lock, inside, most = threading.Lock(), [0], [0]
    together = threading.Barrier(5, timeout=20)

    def meet(_: object) -> None:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        together.wait()
        with lock:
            inside[0] -= 1

    assert len(list(as_completed(ThreadExecutor(5), ((i, Job(meet, i)) for i in range(50))))) == 50
    assert most[0] == 5


def test_after_an_interrupt_what_has_come_is_handed_out_and_nothing_is_waited_for():
    """The third job raises KeyboardInterrupt; the fourth never ends."""
    ended, never = threading.Event(), threading.Event()

    def work(number: int) -> int:
        if number == 3:
            never.wait(60)
        if number == 2:
            ended.wait(20)
            raise KeyboardInterrupt
        return number

    came: list[int] = []

    def gather() -> None:
        for item, _ in as_completed(ThreadExecutor(4), ((i, Job(work, i)) for i in range(100))):
            came.append(item)
            if len(came) == 2:
                ended.set()

    with pytest.raises(KeyboardInterrupt):
        gather()
    assert {0, 1} <= set(came)
    assert 3 not in came
    never.set()


def test_threads_end_when_they_are_not_needed():
    threads = ThreadExecutor(3)
    assert len(list(as_completed(threads, ((i, Job(double, i)) for i in range(9))))) == 9
    workers = list(threads._workers)
    gone = weakref.ref(threads)
    del threads
    gc.collect()
    assert gone() is None
    for worker in workers:
        worker.join(20)
        assert not worker.is_alive()
