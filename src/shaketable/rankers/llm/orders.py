"""Prompt schedules: which documents a language model sees in each prompt, and how its answers become a ranking.

A schedule is a generator. It yields the numbers of the documents to show, in that order, and receives the answer:
positions in the shown list, best first. For a question about one winner the answer is its position alone; an unreadable
answer is empty. The generator returns the numbers of all documents, best first. Schedules know neither prompts nor
servers.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TypeAlias

PromptSchedule: TypeAlias = Generator[tuple[int, ...], tuple[int, ...], list[int]]


def slide_windows(count: int, size: int, step: int) -> PromptSchedule:
    """Slide a window from the end of the list to its start; each answer reorders the documents in the window.

    A document can rise from the last rank to the first, but sink by at most one window. The last window always begins
    at the first document.

    Sun, Yan, Ma, Wang, Ren, Chen, Yin, Ren. Is ChatGPT good at search? EMNLP 2023, section 3.2.
    """
    order = list(range(count))
    start = max(0, count - size)
    while count > 1:
        shown = tuple(order[start : start + size])
        answer = yield shown
        order[start : start + size] = [shown[i] for i in answer]
        if start == 0:
            break
        start = max(0, start - step)
    return order


def compare_all_pairs(count: int) -> PromptSchedule:
    """Show every pair in both orders; a document that wins both gets 1 point, otherwise each gets ½.

    Documents with equal points keep the input order.

    Qin, Jagerman, Hui, et al. Large language models are effective text rankers with pairwise ranking prompting. NAACL
    2024 (Findings), section 3.2: PRP-Allpair.
    """
    points = [0.0] * count
    for left in range(count):
        for right in range(left + 1, count):
            winner = yield from _compare_both_orders(left, right)
            for one in (left, right):
                points[one] += 0.5 if winner is None else float(winner == one)
    return sorted(range(count), key=lambda i: -points[i])


def sort_by_pairs(count: int) -> PromptSchedule:
    """Sort the list by pairs, each shown in both orders; if the two answers disagree, the input order stays.

    This is PRP-Sorting of Qin et al. with merge sort, which is stable.
    """

    def sort(numbers: Sequence[int]) -> PromptSchedule:
        if len(numbers) < 2:
            return list(numbers)
        left = yield from sort(numbers[: len(numbers) // 2])
        right = yield from sort(numbers[len(numbers) // 2 :])
        merged: list[int] = []
        while left and right:
            winner = yield from _compare_both_orders(left[0], right[0])
            merged.append((right if winner == right[0] else left).pop(0))
        return merged + left + right

    order = yield from sort(range(count))
    return order


def _compare_both_orders(left: int, right: int) -> Generator[tuple[int, ...], tuple[int, ...], int | None]:
    """Return the winner of a pair in both orders; None if the answers disagree or are unreadable."""
    first = yield (left, right)
    second = yield (right, left)
    if not first or not second or (left, right)[first[0]] != (right, left)[second[0]]:
        return None
    return (left, right)[first[0]]


def sort_by_sets(count: int, size: int, top: int) -> PromptSchedule:
    """Sort with a heap of size - 1 children per node: a prompt shows a node and its children, and the best moves up.

    The best `top` documents are extracted one by one; the others keep the input order. If an answer is unreadable, the
    input order decides.

    Zhuang, Zhuang, Koopman, Zuccon. A setwise approach for effective and highly efficient zero-shot ranking with large
    language models. SIGIR 2024: setwise.heapsort.
    """
    heap = list(range(count))
    for node in reversed(range((count - 2) // (size - 1) + 1 if count > 1 else 0)):
        yield from _sift_down(heap, node, size)
    best: list[int] = []
    while heap and len(best) < top:
        best.append(heap[0])
        last = heap.pop()
        if heap:
            heap[0] = last
            yield from _sift_down(heap, 0, size)
    return best + sorted(heap)


def _sift_down(heap: list[int], node: int, size: int) -> Generator[tuple[int, ...], tuple[int, ...], None]:
    """Move a node down until it is better than its children."""
    while children := range(node * (size - 1) + 1, min(len(heap), node * (size - 1) + size)):
        places = (node, *children)
        answer = yield tuple(heap[i] for i in places)
        best = places[answer[0]] if answer else min(places, key=heap.__getitem__)
        if best == node:
            return
        heap[node], heap[best] = heap[best], heap[node]
        node = best


def run_schedule(schedule: PromptSchedule, answer: Callable[[tuple[int, ...]], tuple[int, ...]]) -> list[int]:
    """Answer every prompt of a schedule with a function; return the ranking.

    >>> run_schedule(slide_windows(4, size=2, step=1), lambda shown: (1, 0))
    [3, 0, 1, 2]
    """
    try:
        shown = next(schedule)
        while True:
            shown = schedule.send(answer(shown))
    except StopIteration as end:
        order: list[int] = end.value
        return order
