"""Many attacks at once: all advance together, so that their scorings reach the ranker in large batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shaketable.errors import RankerFailed
from shaketable.types import Outcome, Scores, Slate, Steps

Score = Callable[[Sequence[Slate]], Sequence[Scores | None]]


def drive(attacks: Sequence[Steps], score: Score) -> list[Outcome]:
    """Run generators to their end, one round of scoring for all that still want one.

    Each yields a slate and is sent its scores; what it returns is its Outcome. The order and number of attacks
    change nothing but the size of the batches. A slate that could not be scored ends its attack with RankerFailed,
    raised inside the generator, which may catch it.
    """
    outcomes: list[Outcome | None] = [None] * len(attacks)
    wanted: dict[int, Slate] = {}

    def advance(i: int, scores: Scores | None) -> None:
        try:
            if i not in wanted:
                wanted[i] = next(attacks[i])
            elif scores is None:
                wanted[i] = attacks[i].throw(RankerFailed(f"no scores for the query {wanted[i].query!r}"))
            else:
                wanted[i] = attacks[i].send(scores)
        except StopIteration as end:
            outcomes[i] = end.value
            wanted.pop(i, None)

    for i in range(len(attacks)):
        advance(i, None)
    while wanted:
        running = list(wanted)
        for i, scores in zip(running, score([wanted[i] for i in running]), strict=True):
            advance(i, scores)
    return [outcome for outcome in outcomes if outcome is not None]
