"""The engine finds out which rankers are pointwise, checks them again, and discards the scores of a list-wise one."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from shaketable.core.documents import Doc, Scores, Slate
from shaketable.core.seeding import make_item_rng
from shaketable.executors.base import ThreadExecutor
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.pointwise import FIRST_CHECK_PAIRS, PointwiseCheck, PointwiseRefuted, detect_pointwise
from shaketable.scoring.store import Store
from shaketable.scoring.uncached import Uncached
from tests.toys import Overlap, slates, text


@dataclass
class Silent:
    """Shared words; it does not say whether it is pointwise, and `change` makes it list-wise."""

    name: str = "silent"
    fingerprint: str | None = None
    asked: int = 0
    calls: list[list[Slate]] = field(default_factory=list, repr=False)

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        self.asked += sum(len(slate.docs) for slate in slates)
        self.calls.append(list(slates))
        return [self.change(slate, scores) for slate, scores in zip(slates, Overlap().score(slates), strict=True)]

    def change(self, slate: Slate, scores: Scores) -> Scores:
        return scores


class Maximum(Silent):
    def change(self, slate: Slate, scores: Scores) -> Scores:
        return scores / max(1e-9, scores.max(initial=0.0))


class LongLists(Silent):
    """Depends on the order in lists of more than five texts."""

    def change(self, slate: Slate, scores: Scores) -> Scores:
        return scores - 1e-3 * np.arange(len(scores)) * (len(scores) > 5)


class SomeQueries(Silent):
    """List-wise for the queries that begin with a late letter."""

    def change(self, slate: Slate, scores: Scores) -> Scores:
        return scores - scores.mean() if slate.query > "o" else scores


class AcrossLists(Silent):
    """Normalises over all lists of a call."""

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        scores = super().score(slates)
        most = max(float(one.max(initial=0.0)) for one in scores)
        return [one / max(1e-9, most) for one in scores]


class Rounded(Silent):
    """Rounds like a net in float32: the length of the list changes the last digits."""

    def change(self, slate: Slate, scores: Scores) -> Scores:
        return scores * (1 + 1e-7 * len(scores))


class Noisy(Silent):
    """Adds noise of a given size to each answer."""

    size = 1e-9

    def change(self, slate: Slate, scores: Scores) -> Scores:
        return scores + self.size * np.array(
            [make_item_rng(0, str(len(self.calls)), str(i)).random_bits() / 2**64 for i in range(len(scores))]
        )


class Random(Noisy):
    size = 1.0


def resolve(ranker: Silent, engine: ScoringEngine | None = None) -> ScoringEngine:
    engine = engine or ScoringEngine()
    engine.resolve_pointwise(ranker, ranker.name, lambda: slates(3))
    return engine


@pytest.mark.parametrize(
    ("make", "pointwise"),
    [
        (Silent, True),
        (Rounded, True),
        (Noisy, True),
        (Maximum, False),
        (LongLists, False),
        (AcrossLists, False),
        (Random, False),
    ],
)
def test_a_ranker_is_tried_on_lists_parts_and_orders(make, pointwise):
    ranker = make()
    traits = resolve(ranker).get_traits(ranker)
    assert (traits.pointwise, traits.detected) == (pointwise, pointwise)


def test_without_the_experiment_a_silent_ranker_gets_whole_lists():
    ranker = Silent()
    engine = ScoringEngine()
    assert not engine.get_traits(ranker).pointwise
    engine.score(ranker, slates())
    assert [len(slate.docs) for call in ranker.calls for slate in call] == [10] * 6


@pytest.mark.parametrize("said", [True, False])
def test_a_declaration_is_not_questioned(said):
    ranker = Overlap(pointwise=said)
    engine = ScoringEngine()
    engine.resolve_pointwise(ranker, "overlap", lambda: pytest.fail("no list is needed"))
    assert engine.get_traits(ranker).pointwise is said
    assert ranker.asked == 0


def test_the_lists_of_the_detection_are_cached_by_text():
    ranker = Silent()
    engine = resolve(ranker)
    assert ranker.asked == 3 * 10 + 10 + 3 * 10 + 3 * 10
    before = ranker.asked
    engine.score(ranker, [Slate(one.query, one.docs[::-1]) for one in slates(3)])
    assert ranker.asked == before
    assert engine.usage["silent"].scored == ranker.asked
    assert "it scores each text alone (checked on 3 lists)" in engine.get_remark(ranker)


def test_rounding_that_depends_on_the_list_makes_near_scores_tie():
    ranker = Rounded()
    assert 0 < resolve(ranker).get_traits(ranker).noise < 1e-5
    exact = Silent()
    assert resolve(exact).get_traits(exact).noise == 0


def test_lists_of_one_text_show_nothing():
    ranker, engine = Silent(), ScoringEngine()
    engine.resolve_pointwise(ranker, "silent", lambda: [Slate("oak", (Doc("an oak"),))])
    assert not engine.get_traits(ranker).pointwise
    assert (ranker.asked, engine.get_remark(ranker)) == (0, "")


def test_a_failure_is_left_to_the_first_use():
    class Fails(Silent):
        def change(self, slate, scores):
            raise ValueError("no")

    ranker = Fails()
    assert not resolve(ranker).get_traits(ranker).pointwise


def test_uncached_lists_are_always_whole():
    ranker = Silent()
    engine = resolve(ranker)
    ranker.calls.clear()
    engine.score(Uncached(ranker), slates())
    assert [len(slate.docs) for call in ranker.calls for slate in call] == [10] * 6


def many(queries: int) -> list[Slate]:
    return [Slate(text(q, 3), tuple(Doc(text(1000 * q + d)) for d in range(20))) for q in range(queries)]


@pytest.mark.parametrize("executor", [None, ThreadExecutor(3)])
def test_a_ranker_that_is_listwise_for_some_queries_is_caught(tmp_path, executor):
    ranker = SomeQueries(fingerprint="some 1")
    lists = [one for one in many(80) if one.query < "o"][:3]
    engine = ScoringEngine(Store(tmp_path / "s.sqlite"), **({"executor": executor} if executor else {}))
    engine.resolve_pointwise(ranker, "silent", lambda: lists)
    assert engine.get_traits(ranker).pointwise
    with pytest.raises(PointwiseRefuted, match="seemed to score each text alone, but for the query"):
        engine.score(ranker, many(80))
    assert not engine.get_traits(ranker).pointwise
    assert not engine._cache, "no score is left in memory"
    (rows,) = sqlite3.connect(tmp_path / "s.sqlite").execute("SELECT count(*) FROM kept").fetchone()
    assert rows == 1, "nothing is left on disk but that it is list-wise"
    np.testing.assert_array_equal(engine.score(ranker, many(80)), SomeQueries().score(many(80)))
    assert "its scores were discarded" in engine.get_remark(ranker)
    again = SomeQueries(fingerprint="some 1")
    later = ScoringEngine(Store(tmp_path / "s.sqlite"))
    later.resolve_pointwise(again, "silent", lambda: pytest.fail("it is known"))
    assert not later.get_traits(again).pointwise


def test_another_object_of_a_refuted_name_is_listwise():
    engine, first, second = ScoringEngine(), SomeQueries(), SomeQueries()
    engine.resolve_pointwise(first, "mine", lambda: [one for one in many(80) if one.query < "o"][:3])
    with pytest.raises(PointwiseRefuted):
        engine.score(first, many(80), "mine")
    engine.resolve_pointwise(second, "mine", lambda: pytest.fail("it is known"))
    assert not engine.get_traits(second, "mine").pointwise


def test_checks_are_rare_and_become_rarer():
    ranker = Silent()
    engine = resolve(ranker)
    asked = ranker.asked
    engine.score(ranker, many(500))
    extra = ranker.asked - asked - len({(s.query, d) for s in many(500) for d in s.docs})
    assert 0 < extra < 0.05 * 500 * 20
    assert [due for _, due in PointwiseCheck(True).split_at_checks(list(range(FIRST_CHECK_PAIRS * 3)))] == [
        True,
        True,
        True,
        False,
    ]


def test_checks_do_not_depend_on_workers():
    lists = []
    for executor in (None, ThreadExecutor(4)):
        ranker = Silent()
        engine = resolve(ranker, ScoringEngine(**({"executor": executor} if executor else {})))
        ranker.calls.clear()
        engine.score(ranker, many(100))
        known = {(s.query, d) for s in many(100) for d in s.docs}
        lists.append([s for call in ranker.calls for s in call if any((s.query, d) not in known for d in s.docs)])
    assert lists[0] == lists[1] != []


def test_noise_that_grows_is_not_taken_for_a_dependence():
    ranker = Noisy()
    engine = resolve(ranker)
    assert engine.get_traits(ranker).pointwise
    ranker.size = 1e-4
    engine.score(ranker, many(60))
    assert engine.get_traits(ranker).pointwise


def test_a_check_compares_another_composition():
    ranker = Silent()
    check, scored = detect_pointwise(ranker.score, many(5))
    assert [slate.query for slate, _ in scored] == [one.query for one in many(5)[:3]]
    ranker.calls.clear()
    pairs = [(s.query, d, float(v)) for s, values in scored for d, v in zip(s.docs, values, strict=True)]
    assert check.find_dependence(ranker.score, pairs) is None
    ((first, *_),) = ranker.calls
    assert first.docs[0] not in scored[0][0].docs, "a text of another query is among them"
    assert check.find_dependence(Maximum().score, [(q, d, v * 2) for q, d, v in pairs]) is not None
