"""Search strategies that recipes `yield from`: try all texts, or search greedily."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from shaketable.core.attack_types import AttackCase, AttackSteps, ConstraintCheck, ModelQuery, RankQuery, Ranks
from shaketable.core.documents import Doc
from shaketable.core.seeding import ItemRandom

State = TypeVar("State")


def filter_allowed(
    checks: Sequence[ConstraintCheck], case: AttackCase, docs: Sequence[Doc]
) -> Generator[ModelQuery, Any, list[Doc]]:
    """Return the distinct texts that pass all constraints, without the original."""
    docs = [doc for doc in dict.fromkeys(docs) if doc != case.doc]
    for check in checks:
        if docs:
            fine = yield ModelQuery(check, (case, docs))
            docs = [doc for doc, good in zip(docs, fine, strict=True) if good]
    return docs


def try_all(
    checks: Sequence[ConstraintCheck], case: AttackCase, docs: Sequence[Doc]
) -> Generator[RankQuery | ModelQuery, Any, list[tuple[Doc, Ranks]]]:
    """Try all allowed texts in one request and return them with their ranks."""
    docs = yield from filter_allowed(checks, case, docs)
    if not docs:
        return []
    ranks = yield RankQuery(docs)
    return list(zip(docs, ranks, strict=True))


@dataclass(frozen=True, eq=False)
class BodyTrials:
    """An attack that tries all bodies of a recipe in one request."""

    make_bodies: Callable[[AttackCase, ItemRandom], Sequence[str]]
    checks: Sequence[ConstraintCheck]

    def steps(self, case: AttackCase, rng: ItemRandom) -> AttackSteps:
        docs = [replace(case.doc, body=body) for body in self.make_bodies(case, rng)]
        yield from try_all(self.checks, case, docs)


def search_greedily(
    checks: Sequence[ConstraintCheck],
    case: AttackCase,
    start: State,
    moves: Iterable[Callable[[State], Sequence[tuple[State, Doc]]]],
    max_moves: int | None = None,
) -> Generator[RankQuery | ModelQuery, Any, State]:
    """Apply the moves in order and return the final state.

    A move maps the current state to new states with their texts. The best text is kept if it beats all earlier ones.
    The search stops after `max_moves` kept moves.
    """
    state, ranks, kept = start, case.ranks, 0
    for move in moves:
        if max_moves is not None and kept >= max_moves:
            break
        offers = move(state)
        trials = yield from try_all(checks, case, [doc for _, doc in offers])
        best = max(trials, key=lambda trial: case.goal.utility(trial[1]), default=None)
        if best is not None and case.goal.utility(best[1]) > case.goal.utility(ranks):
            state = next(new for new, doc in offers if doc == best[0])
            ranks, kept = best[1], kept + 1
    return state
