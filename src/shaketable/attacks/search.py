"""Ways to look for a better text, for recipes to `yield from`: ask for all, or keep what helps and go on from there."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, TypeVar

from shaketable.types import Ask, Case, Check, Consult, Doc, Places

State = TypeVar("State")


def allowed(checks: Sequence[Check], case: Case, docs: Sequence[Doc]) -> Generator[Consult, Any, list[Doc]]:
    """Those of the texts that no constraint objects to, none of them the original."""
    docs = [doc for doc in dict.fromkeys(docs) if doc != case.doc]
    for check in checks:
        if docs:
            fine = yield Consult(check, (case, docs))
            docs = [doc for doc, good in zip(docs, fine, strict=True) if good]
    return docs


def try_all(
    checks: Sequence[Check], case: Case, docs: Sequence[Doc]
) -> Generator[Ask | Consult, Any, list[tuple[Doc, Places]]]:
    """Ask about every text that is allowed, all at once: the texts and their places."""
    docs = yield from allowed(checks, case, docs)
    if not docs:
        return []
    places = yield Ask(docs)
    return list(zip(docs, places, strict=True))


def greedy(
    checks: Sequence[Check],
    case: Case,
    start: State,
    moves: Iterable[Callable[[State], Sequence[tuple[State, Doc]]]],
    most: int | None = None,
) -> Generator[Ask | Consult, Any, State]:
    """Make one move after the other: of the texts that a move offers, the best is kept if it beats all before.

    A move gets the state that was reached and offers new states, each with its text. After `most` moves that were kept
    it is over. The state that was reached is what comes back.
    """
    state, places, kept = start, case.places, 0
    for move in moves:
        if most is not None and kept >= most:
            break
        offers = move(state)
        trials = yield from try_all(checks, case, [doc for _, doc in offers])
        best = max(trials, key=lambda trial: case.goal.worth(trial[1]), default=None)
        if best is not None and case.goal.worth(best[1]) > case.goal.worth(places):
            state = next(new for new, doc in offers if doc == best[0])
            places, kept = best[1], kept + 1
    return state
