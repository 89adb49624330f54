"""Consistency: computed by hand on a small list, found in rankers with planted flaws, and absent from sound ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from shaketable.core.documents import Collection, Doc, Query
from shaketable.core.errors import BadInput, NotApplicable
from shaketable.core.registries import RANKERS
from shaketable.core.seeding import make_item_rng
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.experiment import Experiment
from shaketable.measures.facets import (
    CHANGED_ANSWERS,
    FAILED_OPEN,
    INPUT_RETURNED,
    ORDER_SENSITIVITY,
    TIED_NEIGHBOURS,
    get_facet,
)
from shaketable.measures.status import FAIL, PASS, classify_findings
from shaketable.tasks.consistency import Consistency
from shaketable.tasks.runner import list_default_tasks
from tests.tasks.flaws import ListNormalised, Noisy, OrderBiased, Planted, Saturated, experiment

WARN_THRESHOLDS = {CHANGED_ANSWERS: 5.0, ORDER_SENSITIVITY: 0.1, TIED_NEIGHBOURS: 20.0}


def measure(ranker: Planted, **more):
    result = Consistency(**more).run(experiment(ranker))
    return result, {one.name: one for one in result.findings}


def status(finding) -> str:
    return classify_findings([finding], get_facet(finding.facet))[0].status


@dataclass
class Scripted:
    """A ranker that gives a number of its own to each call and list."""

    make: object
    noise: float = 0.0
    pointwise: bool = False
    name: str = "scripted"
    calls: int = 0

    def open(self, collection):
        return self

    def score(self, slates):
        self.calls += 1
        return [np.array(self.make(self.calls, [doc.body for doc in slate.docs]), dtype=float) for slate in slates]


def tiny(ranker, bodies="abc", queries=1) -> Experiment:
    docs = {f"d{body}": Doc(body) for body in bodies}
    candidates = {docno: float(-i) for i, docno in enumerate(docs)}
    asked = {f"q{i}": Query(f"query {i}") for i in range(queries)}
    collection = Collection("tiny", MemoryCorpus(docs), asked, candidates=dict.fromkeys(asked, candidates))
    return Experiment(collection, {"scripted": ranker})


def find(experiment: Experiment, name: str):
    return next(one for one in Consistency().run(experiment).findings if one.name == name)


class TestByHand:
    def test_a_list_that_changes_when_asked_again(self):
        # call 1 is the first answer, call 2 has the second answer and the other orders, call 3 is the run
        flip = Scripted(lambda call, bodies: [(ord(body) if call == 1 else -ord(body)) for body in bodies])
        found = find(tiny(flip), CHANGED_ANSWERS)
        assert (found.value, found.n, found.values) == (100.0, 1, {"q0": 100.0})

    def test_a_change_within_the_noise_is_none(self):
        def make(call, bodies):
            return [1 + (0.001 if body == ("a" if call == 1 else "b") else 0) for body in bodies]

        assert find(tiny(Scripted(make)), CHANGED_ANSWERS).value == 100.0
        assert find(tiny(Scripted(make, noise=0.01)), CHANGED_ANSWERS).value == 0.0

    def test_a_ranker_that_returns_its_input(self):
        echo = Scripted(lambda call, bodies: [-i for i in range(len(bodies))])
        result = Consistency(shuffles=0).run(tiny(echo))
        row = result.tables["consistency"].iloc[0]
        assert row[ORDER_SENSITIVITY] == 1.0, "the reversed input reverses every pair"
        assert row["position weight"] == 1.0
        example = next(one for one in result.examples if one.change == "input reversed")
        assert abs(example.rank_before - example.rank_after) == 2

    def test_ties(self):
        tied = Scripted(lambda call, bodies: [2.0 if body in "ab" else ord(body) for body in bodies])
        found = find(tiny(tied, "abcd"), TIED_NEIGHBOURS)
        assert found.value == pytest.approx(100 / 3), "one of three neighbours"
        constant = find(tiny(Scripted(lambda call, bodies: [1.0] * len(bodies)), "abcd"), TIED_NEIGHBOURS)
        assert constant.value == 100.0

    def test_every_list_is_scored_whole_and_twice(self):
        lengths = []

        def make(call, bodies):
            lengths.append(len(bodies))
            return [ord(body) for body in bodies]

        tiny_experiment = tiny(Scripted(make, pointwise=True), "abcdefghijkl")
        tiny_experiment.get_run("scripted")
        lengths.clear()
        Consistency().run(tiny_experiment)
        assert sorted(lengths) == [10, *[12] * 5], "five orders, and the first ten alone"


class TestPlantedFlaws:
    @pytest.mark.parametrize(
        ("ranker", "name"),
        [(OrderBiased, ORDER_SENSITIVITY), (Noisy, CHANGED_ANSWERS), (Saturated, TIED_NEIGHBOURS)],
    )
    @pytest.mark.parametrize("pointwise", [True, False])
    def test_a_flaw_is_found(self, ranker, name, pointwise):
        result, found = measure(ranker(pointwise=pointwise))
        assert status(found[name]) == FAIL
        assert [other for other in found if status(found[other]) != PASS] == [name], "and no other"
        assert any(one.ranker == "planted" for one in result.examples)
        _, found = measure(ranker(share=0.25, pointwise=pointwise))
        assert found[name].value >= WARN_THRESHOLDS[name]
        assert found[name].low > 0

    @pytest.mark.parametrize("pointwise", [True, False])
    def test_a_sound_ranker(self, pointwise):
        result, found = measure(Planted(pointwise=pointwise))
        assert {name: one.value for name, one in found.items()} == dict.fromkeys(WARN_THRESHOLDS, 0.0)
        assert {status(one) for one in found.values()} == {PASS}
        assert not result.examples
        assert not any("planted says" in note or "saturated" in note for note in result.notes)

    def test_a_wrong_claim_is_named(self):
        for ranker in (OrderBiased(), ListNormalised()):
            result, _ = measure(ranker)
            assert any("planted declares itself pointwise, but it is not" in note for note in result.notes)
        result, _ = measure(OrderBiased(pointwise=False))
        assert not any("declares itself pointwise" in note for note in result.notes)

    def test_saturation_is_named(self):
        result, _ = measure(Saturated())
        assert any("planted is saturated" in note and "score, 1," in note for note in result.notes)


class FailsOpen(Planted):
    """The input order, or one score for all texts, in a tenth of the answers."""

    one_score, calls = False, 0

    def adjust(self, query, scores):
        self.calls += 1
        if make_item_rng(self.calls, "fails open").random() >= 0.1:
            return scores
        return np.zeros(len(scores)) if self.one_score else -np.arange(len(scores), dtype=float)


@pytest.mark.parametrize("one_score", [True, False])
def test_a_ranker_that_fails_open_does_not_pass(one_score):
    ranker = FailsOpen(pointwise=False)
    ranker.one_score = one_score
    result, found = measure(ranker)
    assert 3 <= found[FAILED_OPEN].value <= 15
    assert status(found[FAILED_OPEN]) == FAIL
    assert (status(found[INPUT_RETURNED]) == FAIL) is not one_score
    assert found[FAILED_OPEN].facet == found[CHANGED_ANSWERS].facet
    way = "with the score 0 for all texts" if one_score else "in input order"
    assert any("planted fails open: " in note and way in note for note in result.notes)


class TestRunning:
    def test_values_and_intervals(self):
        _, found = measure(OrderBiased(share=0.25))
        for one in found.values():
            assert np.mean(list(one.values.values())) == pytest.approx(one.value)
            assert one.low <= one.value <= one.high
            assert one.n == len(one.values)

    def test_lists_are_nested_and_repeatable(self):
        drawn = [set(measure(Planted(), queries=count)[1][CHANGED_ANSWERS].values) for count in (5, 40, 0)]
        assert [len(one) for one in drawn] == [5, 40, 50]
        assert drawn[0] < drawn[1] < drawn[2]
        assert measure(OrderBiased())[1] == measure(OrderBiased())[1]

    def test_lexical_rankers_without_judgements(self, collection):
        models = {name: RANKERS.build(name) for name in ("bm25", "ql")}
        result = Consistency().run(Experiment(replace(collection, qrels={}), models))
        values = {(one.ranker, one.name): one.value for one in result.findings}
        for name in models:
            assert values[name, CHANGED_ANSWERS] == values[name, ORDER_SENSITIVITY] == 0

    def test_failed_lists_are_left_out_and_named(self):
        def fail_on_q0(call, bodies):
            return [ord(body) for body in bodies]

        class Failing(Scripted):
            def score(self, slates):
                if any(slate.query == "query 0" for slate in slates):
                    raise ValueError("no")
                return super().score(slates)

        failing = tiny(Failing(fail_on_q0), queries=3)
        failing.engine.keep_going = True
        result = Consistency().run(failing)
        assert next(one for one in result.findings if one.name == CHANGED_ANSWERS).n == 2
        assert any("failed on 1 of the 3 lists" in note for note in result.notes)

    def test_where_it_does_not_apply(self):
        with pytest.raises(NotApplicable, match="no list has two documents"):
            Consistency().run(tiny(Planted(), "a"))
        with pytest.raises(BadInput, match="queries"):
            Consistency(queries=-1)
        assert "consistency" in list_default_tasks()
