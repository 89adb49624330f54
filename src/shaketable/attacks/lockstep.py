"""Many attacks at once: all advance together, so that their scorings reach the ranker in large batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shaketable.errors import RankerFailed
from shaketable.types import Failure, Outcome, Scores, Slate, Steps

Score = Callable[[Sequence[Slate]], Sequence[Scores | None]]


def drive(attacks: Sequence[Steps], score: Score) -> list[Outcome | Failure]:
    """Run generators to their end, one round of scoring for all that still want one; an outcome in each one's place.

    Each yields a slate and is sent its scores; what it returns is its Outcome. The order and number of attacks change
    nothing but the size of the batches. A slate that could not be scored raises RankerFailed inside the generator,
    which may catch it. Whatever an attack raises ends that attack alone, and stands as a Failure in its place.
    """
    outcomes: list[Outcome | Failure | None] = [None] * len(attacks)
    wanted: dict[int, Slate] = {}

    def advance(i: int, scores: Scores | None) -> None:
        query = wanted[i].query if i in wanted else ""
        try:
            if i not in wanted:
                wanted[i] = next(attacks[i])
            elif scores is None:
                wanted[i] = attacks[i].throw(RankerFailed(f"no scores for the query {query!r}"))
            else:
                wanted[i] = attacks[i].send(scores)
            return
        except StopIteration as end:
            fine = isinstance(end.value, Outcome)
            outcomes[i] = end.value if fine else Failure("", query, f"the attack ended with {end.value!r}, no outcome")
        except Exception as error:
            outcomes[i] = Failure("", query, f"{type(error).__name__}: {error}")
        wanted.pop(i, None)

    for i in range(len(attacks)):
        advance(i, None)
    while wanted:
        running = list(wanted)
        for i, scores in zip(running, score([wanted[i] for i in running]), strict=True):
            advance(i, scores)
    return [outcome for outcome in outcomes if outcome is not None]
