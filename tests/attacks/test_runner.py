"""Many attacks advance together; their number and order change the batches, not the outcomes."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.attacks.goals import Demote, Promote, Top
from shaketable.attacks.insertion import QueryInsertion
from shaketable.attacks.runner import run_attacks, split_budget
from shaketable.attacks.target import Target
from shaketable.core.attack_types import AttackCase, AttackOutcome, ModelQuery, RankQuery
from shaketable.core.documents import Doc, Slate, rank_docnos
from shaketable.core.errors import BadInput, RankerFailed
from shaketable.core.results import Failure
from shaketable.rankers.lexical import BM25
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.validation import collapse_ties
from tests.attacks.setups import Stretched, cases_on, knowledge_of, load_sample, target_for

SAMPLE = load_sample()


class AddWords:
    """Appends the query's words, one at a time in random order, and keeps changes that help."""

    def steps(self, case, draws):
        doc, places = case.doc, case.ranks
        for word in draws.permutation(case.query.split()):
            longer = replace(doc, body=f"{doc.body} {word}")
            (now,) = yield RankQuery([longer])
            if case.goal.utility(now) > case.goal.utility(places):
                doc, places = longer, now


class LengthAware:
    """A ranker of lists: a text's score is its overlap less the mean of the list. It counts its requests."""

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


def start_attack(goal=None, ranker=None, **how):
    target = target_for(ranker or BM25().open(SAMPLE), **how)
    return target, cases_on(SAMPLE, target, goal=goal)


def test_together_alone_and_in_any_order_end_alike():
    target, cases = start_attack()
    together = run_attacks(AddWords(), cases, target)
    backwards = run_attacks(AddWords(), cases[::-1], target)[::-1]
    few = run_attacks(AddWords(), cases, target, max_concurrent=2)
    alone = [run_attacks(AddWords(), [case], target)[0] for case in cases]
    assert together == backwards == few == alone
    assert any(outcome.ranks_after < outcome.ranks_before for outcome in together)


def test_ranks_equal_those_of_the_whole_list_ranked_again():
    target, cases = start_attack()
    ranker = BM25().open(SAMPLE)
    for case, outcome in zip(cases, run_attacks(AddWords(), cases, target), strict=True):
        pool = target.target_lists[case.lists[0].qid]
        (scores,) = ScoringEngine().score(ranker, [Slate(case.query, pool.replace_text(case.docno, outcome.doc))])
        order = rank_docnos(dict(zip(pool.docnos, scores.tolist(), strict=True)))
        assert (order.index(case.docno) + 1,) == outcome.ranks_after
        assert list(case.lists[0].docnos).index(case.docno) + 1 == outcome.ranks_before[0]


@given(st.data())
def test_ranks_of_many_lists_at_once_equal_those_of_each(data):
    """Lists of several lengths, scores that tie or nearly do, documents that are in the list or new."""
    noise = data.draw(st.sampled_from([0.0, 1e-6, 0.2]))
    scores = st.sampled_from([0.0, 1.0, 1.0 + 5e-7, 1.1, 1.25, 3.0, -2.0])
    target = Target(lambda slates: [np.array([float(slate.docs[0].body)]) for slate in slates], True, noise)
    trials, expected = [], []
    for q in range(data.draw(st.integers(1, 4))):
        docnos = data.draw(st.lists(st.sampled_from("abcdefgh"), min_size=1, unique=True))
        known = dict.fromkeys(docnos, 0.0) | {docno: data.draw(scores) for docno in docnos}
        docs = tuple(Doc(repr(score)) for score in known.values())
        target.read_lists({f"q{q}": (Slate("", docs), docnos)})
        for docno in data.draw(st.lists(st.sampled_from("abcdefgh"), max_size=3, unique=True)):
            score = data.draw(scores)
            listing = target.target_lists[f"q{q}"].target_ranking
            trials.append((AttackCase(docno, Doc(""), (listing,), Promote(), ()), Doc(repr(score))))
            after = known | {docno: score}
            even = collapse_ties(np.array(list(after.values())), noise).tolist()
            expected.append((rank_docnos(dict(zip(after, even, strict=True))).index(docno) + 1,))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shaketable.attacks.target.MAX_SCORES_PER_BATCH", data.draw(st.sampled_from([1, 10, 1000])))
        assert target.rank_trials(trials) == expected


def test_ties_are_broken_by_docno_as_everywhere():
    class Constant:
        name, pointwise = "constant", True

        def score(self, slates):
            return [np.zeros(len(slate.docs)) for slate in slates]

    _, cases = start_attack(ranker=Constant())
    listing = cases[0].lists[0]
    assert list(listing.docnos) == sorted(listing.docnos, reverse=True)
    assert [case.ranks for case in cases[:3]] == [(11,), (20,), (30,)]


def test_the_whole_first_round_is_one_batch():
    batches = []
    target, cases = start_attack(count=batches.append)
    batches.clear()
    run_attacks(AddWords(), cases, target)
    assert batches[0] == len(cases)
    assert len(batches) <= max(len(case.query.split()) for case in cases)


def test_a_ranker_of_lists_costs_the_list_and_a_pointwise_one_a_pair():
    ranker = LengthAware()
    target, cases = start_attack(ranker=ranker)
    ranker.asked = 0
    outcomes = run_attacks(AddWords(), cases, target)
    lengths = [len(case.lists[0].docnos) for case in cases]
    assert [o.scored_pairs / o.trials for o in outcomes] == lengths
    assert ranker.asked <= sum(o.scored_pairs for o in outcomes)
    target, cases = start_attack()
    assert {o.scored_pairs / o.trials for o in run_attacks(AddWords(), cases, target)} == {1.0}


def test_the_budget_is_a_total_that_is_divided_by_name():
    target, cases = start_attack()
    for budget in (1, len(cases) + 5, 3 * len(cases)):
        outcomes = run_attacks(AddWords(), cases, target, budget=budget)
        assert sum(o.trials for o in outcomes) <= budget
        assert run_attacks(AddWords(), cases[::-1], target, budget=budget)[::-1] == outcomes
    assert sum(split_budget(cases, len(cases) + 5)) == len(cases) + 5
    with pytest.raises(BadInput, match="the trial budget must be at least 1, not 0"):
        run_attacks(AddWords(), cases, target, budget=0)


def test_a_batch_that_the_budget_does_not_cover_is_cut():
    class Many:
        def steps(self, case, draws):
            places = yield RankQuery(
                [replace(case.doc, body=f"{case.query} " * n + case.doc.body) for n in range(1, 9)]
            )
            raise AssertionError(f"an answer of {len(places)} to a question of 8")

    target, cases = start_attack()
    outcomes = run_attacks(Many(), cases, target, budget=3 * len(cases))
    assert {o.trials for o in outcomes} == {3}
    assert any(o.ranks_after < o.ranks_before for o in outcomes), "what was tried counts"


def test_texts_that_are_only_inspected_are_never_the_outcome():
    class Look:
        def steps(self, case, draws):
            yield RankQuery([replace(case.doc, body=f"{case.query} {case.doc.body}")], may_be_outcome=False)

    target, cases = start_attack()
    for case, outcome in zip(cases, run_attacks(Look(), cases, target), strict=True):
        assert (outcome.doc, outcome.ranks_after, outcome.trials) == (case.doc, case.ranks, 1)


@pytest.mark.parametrize("goal", [Promote(), Demote(), Top(10)])
def test_no_outcome_is_worse_than_the_original(goal):
    class Random:
        def steps(self, case, draws):
            for _ in range(4):
                words = case.doc.body.split()
                yield RankQuery(
                    [replace(case.doc, body=" ".join(draws.permutation(words)[: 1 + draws.randbelow(len(words))]))]
                )

    target, cases = start_attack(goal)
    for case, outcome in zip(cases, run_attacks(Random(), cases, target), strict=True):
        assert goal.utility(outcome.ranks_after) >= goal.utility(outcome.ranks_before)
        assert (outcome.doc == case.doc) == (outcome.ranks_after == outcome.ranks_before)


def test_an_attack_ends_where_its_goal_is_reached():
    class Endless:
        def steps(self, case, draws):
            for times in range(1, 1000):
                yield RankQuery([Doc(f"{case.query} " * times)])

    target, cases = start_attack(Top(30))
    assert all(o.trials == 1 for o in run_attacks(Endless(), cases, target) if o.ranks_before <= (30,))


def test_one_failure_does_not_affect_other_cases():
    class Some:
        def __init__(self, bad):
            self.bad = bad

        def steps(self, case, draws):
            if case is self.bad:
                raise ZeroDivisionError("nothing")
            yield from AddWords().steps(case, draws)

    target, cases = start_attack()
    outcomes = run_attacks(Some(cases[2]), cases, target)
    assert outcomes[2] == Failure("", cases[2].query, "ZeroDivisionError: nothing")
    fine = run_attacks(AddWords(), cases, target)
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
                yield RankQuery([Doc("poison")])
            except RankerFailed:
                yield RankQuery([replace(case.doc, body=case.doc.body + " and more" * 99)])

    target, cases = start_attack(ranker=Picky(), engine=ScoringEngine(keep_going=True))
    assert all(
        isinstance(o, AttackOutcome) and o.ranks_after < o.ranks_before for o in run_attacks(Poison(), cases, target)
    )


def test_attacks_consult_a_source_together_and_each_fails_for_itself():
    sizes = []

    def source(questions):
        sizes.append(len(questions))
        if "bad" in questions:
            raise ValueError("a bad question")
        return [question.upper() for question in questions]

    class Curious:
        def steps(self, case, draws):
            question = "bad" if case.ranks == (20,) else case.docno
            answer = yield ModelQuery(source, question)
            yield RankQuery([replace(case.doc, body=f"{answer} {case.query}")])

    target, cases = start_attack()
    outcomes = run_attacks(Curious(), cases, target)
    assert sizes[0] == len(cases)
    assert [isinstance(o, Failure) for o in outcomes] == [case.ranks == (20,) for case in cases]


def test_an_attack_depends_on_ranks_alone():
    """A monotone function of the scores gives the same ranks, so a different outcome would have used the scores."""
    plain, bent = (
        run_attacks(AddWords(), *start_attack(ranker=r)[::-1])
        for r in (BM25().open(SAMPLE), Stretched(BM25().open(SAMPLE)))
    )
    assert plain == bent


def test_a_new_document_is_added_to_every_list():
    target, _ = start_attack()
    qids = list(target.target_lists)
    case, *others = target.build_cases([("new", Doc("zzz"), qids)], Promote())
    assert not others
    assert case.ranks == tuple(len(listing.docnos) + 1 for listing in case.lists)
    (outcome,) = run_attacks(QueryInsertion().open(knowledge_of(SAMPLE)), [case], target)
    assert all(after < before for after, before in zip(outcome.ranks_after, case.ranks, strict=True))
    assert outcome.scored_pairs == len(qids)


def test_an_unlisted_query_is_an_error():
    target, _ = start_attack()
    with pytest.raises(BadInput, match="no list for the query 'nowhere'"):
        target.build_cases([("d", Doc("x"), ["nowhere"])], Promote())


def test_generators_are_closed_and_forgotten():
    class Held:
        pass

    refs = []

    class Holding:
        def steps(self, case, draws):
            held = Held()
            refs.append(weakref.ref(held))
            while True:
                yield RankQuery([replace(case.doc, body=case.doc.body + "!")])

    target, cases = start_attack()
    run_attacks(Holding(), cases, target, budget=2 * len(cases))
    gc.collect()
    assert not any(ref() for ref in refs)
