"""Many attacks advance together; their number and order change the batches, not the outcomes."""

from __future__ import annotations

from shaketable.attacks.lockstep import drive
from shaketable.chance import rng_for
from shaketable.errors import RankerFailed
from shaketable.score.road import Road
from shaketable.types import Doc, Failure, Outcome, Slate
from tests.toys import Overlap, slates


def add_query_words(slate: Slate, target: int, rng, budget: int = 3):
    """A toy attack: append one of the query's words at a time, keep what raises the target's rank."""
    cost, edits = 1, []
    scores = yield slate
    best = int((scores > scores[target]).sum())
    body = slate.docs[target].body
    for _ in range(budget):
        word = rng.choice(slate.query.split())
        docs = list(slate.docs)
        docs[target] = Doc(f"{body} {word}")
        scores = yield Slate(slate.query, tuple(docs))
        cost += 1
        rank = int((scores > scores[target]).sum())
        if rank < best:
            best, body = rank, docs[target].body
            edits.append(str(word))
        if best == 0:
            break
    return Outcome(body, tuple(edits), cost)


def attacks(given):
    return [add_query_words(s, len(s.docs) - 1, rng_for(3, "toy", s.query)) for s in given]


def test_together_and_alone_end_alike():
    given = slates(20)
    road, ranker = Road(), Overlap()
    calls = []

    def score(batch):
        calls.append(len(batch))
        return road.score(ranker, batch)

    together = drive(attacks(given), score)
    alone = [drive([a], lambda batch: Road().score(Overlap(), batch))[0] for a in attacks(given)]
    assert together == alone
    assert calls[0] == 20, "the first round scores all attacks in one call"
    assert len(calls) == max(outcome.cost for outcome in together)
    assert any(outcome.edits for outcome in together)


def test_an_attack_that_ends_at_once():
    def nothing():
        return Outcome("unchanged")
        yield  # a generator all the same

    assert drive([nothing()], lambda batch: []) == [Outcome("unchanged")]


def test_a_slate_without_scores_is_raised_inside_its_attack():
    def careful():
        try:
            yield Slate("q", (Doc("d"),))
        except RankerFailed as reason:
            return Outcome("gave up: " + str(reason))
        return Outcome("never")

    def careless():
        yield Slate("q", (Doc("d"),))
        return Outcome("never")

    def broken():
        yield Slate("q", (Doc("d"),))
        raise ValueError("a mistake in the attack")

    def empty_handed():
        yield Slate("q", (Doc("d"),))

    first, second = drive([careful(), careless()], lambda batch: [None] * len(batch))
    assert first.text.startswith("gave up: no scores for the query 'q'")
    assert isinstance(second, Failure)
    assert "RankerFailed" in second.reason
    some = [broken(), add_query_words(slates(1)[0], 9, rng_for(3, "toy")), empty_handed()]
    outcomes = drive(some, lambda batch: Road().score(Overlap(), batch))
    assert [type(outcome) for outcome in outcomes] == [Failure, Outcome, Failure], "each in its place, and alone"
    assert "a mistake in the attack" in outcomes[0].reason
