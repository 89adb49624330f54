"""Many attacks advance together; their number and order change the batches, not the outcomes."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.attacks.drive import divided, drive
from shaketable.attacks.goals import Demote, Promote, Top
from shaketable.attacks.insertion import QueryInsertion
from shaketable.attacks.target import Target
from shaketable.errors import BadInput, RankerFailed
from shaketable.rankers.lexical import BM25
from shaketable.score.road import Road, settled
from shaketable.types import Ask, Case, Consult, Doc, Failure, Outcome, Slate, ranking
from tests.attacks.rooms import Stretched, bundled, cases_on, knowledge_of, target_for

SAMPLE = bundled()


class AddWords:
    """Appends the query's words, one at a time in random order, and keeps what helps."""

    def steps(self, case, draws):
        doc, places = case.doc, case.places
        for word in draws.shuffled(case.query.split()):
            longer = replace(doc, body=f"{doc.body} {word}")
            (now,) = yield Ask([longer])
            if case.goal.worth(now) > case.goal.worth(places):
                doc, places = longer, now


class LengthAware:
    """A ranker of lists: a text's score is its overlap less the mean of the list. It counts what it is asked for."""

    name = "list"

    def __init__(self):
        self.asked = 0

    def score(self, slates):
        self.asked += sum(len(slate.docs) for slate in slates)
        rows = []
        for slate in slates:
            words = set(slate.query.split())
            overlap = np.array([len(words & set(doc.text.split())) / (5 + len(doc.text.split())) for doc in slate.docs])
            rows.append(overlap - overlap.mean())
        return rows


def started(goal=None, ranker=None, **how):
    target = target_for(ranker or BM25().open(SAMPLE), **how)
    return target, cases_on(SAMPLE, target, goal=goal)


def test_together_alone_and_in_any_order_end_alike():
    target, cases = started()
    together = drive(AddWords(), cases, target)
    backwards = drive(AddWords(), cases[::-1], target)[::-1]
    few = drive(AddWords(), cases, target, together=2)
    alone = [drive(AddWords(), [case], target)[0] for case in cases]
    assert together == backwards == few == alone
    assert any(outcome.after < outcome.before for outcome in together)


def test_places_are_those_of_the_whole_list_ranked_anew():
    target, cases = started()
    ranker = BM25().open(SAMPLE)
    for case, outcome in zip(cases, drive(AddWords(), cases, target), strict=True):
        pool = target.pools[case.lists[0].qid]
        (scores,) = Road().score(ranker, [Slate(case.query, pool.with_text(case.docno, outcome.doc))])
        order = ranking(dict(zip(pool.docnos, scores.tolist(), strict=True)))
        assert (order.index(case.docno) + 1,) == outcome.after
        assert list(case.lists[0].docnos).index(case.docno) + 1 == outcome.before[0]


@given(st.data())
def test_places_of_many_lists_at_once_are_those_of_each(data):
    """Lists of several lengths, scores that tie or nearly do, documents that are in the list or new."""
    noise = data.draw(st.sampled_from([0.0, 1e-6, 0.2]))
    scores = st.sampled_from([0.0, 1.0, 1.0 + 5e-7, 1.1, 1.25, 3.0, -2.0])
    target = Target(lambda slates: [np.array([float(slate.docs[0].body)]) for slate in slates], True, noise)
    trials, expected = [], []
    for q in range(data.draw(st.integers(1, 4))):
        docnos = data.draw(st.lists(st.sampled_from("abcdefgh"), min_size=1, unique=True))
        known = dict.fromkeys(docnos, 0.0) | {docno: data.draw(scores) for docno in docnos}
        docs = tuple(Doc(repr(score)) for score in known.values())
        target.read({f"q{q}": (Slate("", docs), docnos)})
        for docno in data.draw(st.lists(st.sampled_from("abcdefgh"), max_size=3, unique=True)):
            score = data.draw(scores)
            listing = target.pools[f"q{q}"].listing
            trials.append((Case(docno, Doc(""), (listing,), Promote(), ()), Doc(repr(score))))
            after = known | {docno: score}
            even = settled(np.array(list(after.values())), noise).tolist()
            expected.append((ranking(dict(zip(after, even, strict=True))).index(docno) + 1,))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shaketable.attacks.target.AT_ONCE", data.draw(st.sampled_from([1, 10, 1000])))
        assert target.places(trials) == expected


def test_ties_are_broken_by_docno_as_everywhere():
    class Constant:
        name, pointwise = "constant", True

        def score(self, slates):
            return [np.zeros(len(slate.docs)) for slate in slates]

    _, cases = started(ranker=Constant())
    listing = cases[0].lists[0]
    assert list(listing.docnos) == sorted(listing.docnos, reverse=True)
    assert [case.places for case in cases[:3]] == [(11,), (20,), (30,)]


def test_the_whole_first_round_is_one_batch():
    batches = []
    target, cases = started(count=batches.append)
    batches.clear()
    drive(AddWords(), cases, target)
    assert batches[0] == len(cases)
    assert len(batches) <= max(len(case.query.split()) for case in cases)


def test_a_ranker_of_lists_costs_the_list_and_a_pointwise_one_a_pair():
    ranker = LengthAware()
    target, cases = started(ranker=ranker)
    ranker.asked = 0
    outcomes = drive(AddWords(), cases, target)
    lengths = [len(case.lists[0].docnos) for case in cases]
    assert [o.pairs / o.trials for o in outcomes] == lengths
    assert ranker.asked <= sum(o.pairs for o in outcomes)
    target, cases = started()
    assert {o.pairs / o.trials for o in drive(AddWords(), cases, target)} == {1.0}


def test_the_budget_is_a_total_that_is_divided_by_name():
    target, cases = started()
    for budget in (1, len(cases) + 5, 3 * len(cases)):
        outcomes = drive(AddWords(), cases, target, budget=budget)
        assert sum(o.trials for o in outcomes) <= budget
        assert drive(AddWords(), cases[::-1], target, budget=budget)[::-1] == outcomes
    assert sum(divided(cases, len(cases) + 5)) == len(cases) + 5
    with pytest.raises(BadInput, match="a budget of 0 trials"):
        drive(AddWords(), cases, target, budget=0)


def test_a_batch_that_the_budget_does_not_cover_is_cut():
    class Many:
        def steps(self, case, draws):
            places = yield Ask([replace(case.doc, body=f"{case.query} " * n + case.doc.body) for n in range(1, 9)])
            raise AssertionError(f"an answer of {len(places)} to a question of 8")

    target, cases = started()
    outcomes = drive(Many(), cases, target, budget=3 * len(cases))
    assert {o.trials for o in outcomes} == {3}
    assert any(o.after < o.before for o in outcomes), "what was tried counts"


def test_what_is_only_looked_at_is_never_the_outcome():
    class Look:
        def steps(self, case, draws):
            yield Ask([replace(case.doc, body=f"{case.query} {case.doc.body}")], offered=False)

    target, cases = started()
    for case, outcome in zip(cases, drive(Look(), cases, target), strict=True):
        assert (outcome.doc, outcome.after, outcome.trials) == (case.doc, case.places, 1)


@pytest.mark.parametrize("goal", [Promote(), Demote(), Top(10)])
def test_no_outcome_is_worse_than_the_original(goal):
    class Random:
        def steps(self, case, draws):
            for _ in range(4):
                words = case.doc.body.split()
                yield Ask([replace(case.doc, body=" ".join(draws.shuffled(words)[: 1 + draws.below(len(words))]))])

    target, cases = started(goal)
    for case, outcome in zip(cases, drive(Random(), cases, target), strict=True):
        assert goal.worth(outcome.after) >= goal.worth(outcome.before)
        assert (outcome.doc == case.doc) == (outcome.after == outcome.before)


def test_an_attack_ends_where_its_goal_is_reached():
    class Endless:
        def steps(self, case, draws):
            for times in range(1, 1000):
                yield Ask([Doc(f"{case.query} " * times)])

    target, cases = started(Top(30))
    assert all(o.trials == 1 for o in drive(Endless(), cases, target) if o.before <= (30,))


def test_one_failure_stays_in_its_place():
    class Some:
        def __init__(self, bad):
            self.bad = bad

        def steps(self, case, draws):
            if case is self.bad:
                raise ZeroDivisionError("nothing")
            yield from AddWords().steps(case, draws)

    target, cases = started()
    outcomes = drive(Some(cases[2]), cases, target)
    assert outcomes[2] == Failure("", cases[2].query, "ZeroDivisionError: nothing")
    fine = drive(AddWords(), cases, target)
    assert outcomes[:2] + outcomes[3:] == fine[:2] + fine[3:]


def test_a_text_that_cannot_be_scored_raises_in_its_attack_alone():
    class Picky:
        name, pointwise = "picky", True

        def score(self, slates):
            if any("poison" in doc.text for slate in slates for doc in slate.docs):
                raise ValueError("no poison")
            return [np.array([float(len(doc.text)) for doc in slate.docs]) for slate in slates]

    class Poison:
        def steps(self, case, draws):
            try:
                yield Ask([Doc("poison")])
            except RankerFailed:
                yield Ask([replace(case.doc, body=case.doc.body + " and more" * 99)])

    target, cases = started(ranker=Picky(), road=Road(go_on=True))
    assert all(isinstance(o, Outcome) and o.after < o.before for o in drive(Poison(), cases, target))


def test_attacks_consult_a_source_together_and_each_fails_for_itself():
    sizes = []

    def source(questions):
        sizes.append(len(questions))
        if "bad" in questions:
            raise ValueError("a bad question")
        return [question.upper() for question in questions]

    class Curious:
        def steps(self, case, draws):
            question = "bad" if case.places == (20,) else case.docno
            answer = yield Consult(source, question)
            yield Ask([replace(case.doc, body=f"{answer} {case.query}")])

    target, cases = started()
    outcomes = drive(Curious(), cases, target)
    assert sizes[0] == len(cases)
    assert [isinstance(o, Failure) for o in outcomes] == [case.places == (20,) for case in cases]


def test_what_an_attack_does_depends_on_places_alone():
    """Scores through a monotone function give the same places; an outcome that differed would have seen a score."""
    plain, bent = (
        drive(AddWords(), *started(ranker=r)[::-1]) for r in (BM25().open(SAMPLE), Stretched(BM25().open(SAMPLE)))
    )
    assert plain == bent


def test_a_new_document_is_added_to_every_list():
    target, _ = started()
    qids = list(target.pools)
    case, *others = target.cases([("new", Doc("zzz"), qids)], Promote())
    assert not others
    assert case.places == tuple(len(listing.docnos) + 1 for listing in case.lists)
    (outcome,) = drive(QueryInsertion().open(knowledge_of(SAMPLE)), [case], target)
    assert all(after < before for after, before in zip(outcome.after, case.places, strict=True))
    assert outcome.pairs == len(qids)


def test_an_unlisted_query_is_an_error():
    target, _ = started()
    with pytest.raises(BadInput, match="no list for the query 'nowhere'"):
        target.cases([("d", Doc("x"), ["nowhere"])], Promote())


def test_generators_are_closed_and_forgotten():
    class Held:
        pass

    refs = []

    class Holding:
        def steps(self, case, draws):
            held = Held()
            refs.append(weakref.ref(held))
            while True:
                yield Ask([replace(case.doc, body=case.doc.body + "!")])

    target, cases = started()
    drive(Holding(), cases, target, budget=2 * len(cases))
    gc.collect()
    assert not any(ref() for ref in refs)
