"""The word substitution ranking attack: its laws, its surrogate, and who may see what."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shaketable.attacks.drive import drive
from shaketable.attacks.goals import Demote, Promote
from shaketable.attacks.surrogate import surrogate
from shaketable.attacks.triggers import HotFlip
from shaketable.attacks.wording import Wording
from shaketable.attacks.wsra import WSRA, WhiteWSRA
from shaketable.bench import Bench
from shaketable.data.sample import read_sample
from shaketable.door.names import named_models
from shaketable.errors import BadInput
from shaketable.learners.plan import Imitated
from shaketable.measure.wording import words_changed
from shaketable.registry import SYNONYMS
from shaketable.task.campaign import aims, knowledge, open_target, opened, ranges
from shaketable.testing import check_attack
from shaketable.types import Outcome, WhiteBox

pytest.importorskip("torch")

SMALL = "knrm(steps=20, dim=16)"


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """A small net that learned from the sample, as the target, and BM25."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHAKETABLE_HOME", str(tmp_path_factory.mktemp("home")))
        collection = read_sample()
        whole = Bench(collection, named_models(["bm25"]), split="test", limit=6)
        yield replace(whole, models={**whole.models, "knrm": whole.fit("knrm(steps=60)", "train")})


def cases_of(bench, name, goal, count=3):
    target = open_target(bench, name, bench.texts, bench.candidates)
    drawn = [aim for pool in target.pools.values() for aim in aims(pool.listing, {}, ranges(count, 40), 0, True)]
    return target, target.cases([(aim.docno, aim.doc, [aim.qid]) for aim in drawn], goal)


@pytest.fixture(scope="module")
def known(bench):
    return knowledge(bench, "knrm", list(bench.texts))


@pytest.mark.parametrize("goal", [Promote(), Demote()])
@pytest.mark.parametrize("words", [1, 3, 20])
def test_the_laws_of_the_attack(bench, known, goal, words):
    target, cases = cases_of(bench, "knrm", goal)
    attack = opened(bench, "knrm", WSRA(words=words, surrogate=SMALL), known)
    source = SYNONYMS.build("thesaurus")
    outcomes = drive(attack, cases, target)
    assert any(outcome.after != outcome.before for outcome in outcomes) or words == 1
    for case, outcome in zip(cases, outcomes, strict=True):
        assert isinstance(outcome, Outcome)
        assert words_changed(case.doc, outcome.doc) <= words
        before, after = Wording(case.doc).words, Wording(outcome.doc).words
        assert len(before) == len(after)
        for old, new in zip(before, after, strict=True):
            assert old == new or new.lower() in source.of(old.lower())
        assert goal.worth(outcome.after) >= goal.worth(outcome.before)
        assert (outcome.doc == case.doc) == (outcome.after == outcome.before)


@pytest.mark.parametrize("recipe", [WSRA(words=5, surrogate=SMALL), HotFlip(length=2, rounds=1, surrogate=SMALL)])
def test_contract(bench, known, recipe):
    target, cases = cases_of(bench, "knrm", Promote(), 2)
    check_attack(recipe.open(known), cases, target)


def test_who_holds_the_net_does_no_worse_and_says_so_in_its_type(bench, known):
    target, cases = cases_of(bench, "knrm", Promote())
    assert isinstance(WhiteWSRA(), WhiteBox)
    assert not isinstance(WSRA(), WhiteBox)
    attack = opened(bench, "knrm", WhiteWSRA(), known)
    check_attack(attack, cases, target)
    outcomes = drive(attack, cases, target)
    assert sum(o.after < o.before for o in outcomes) >= 1
    with pytest.raises(BadInput, match="bm25 has no net to open"):
        opened(bench, "bm25", WhiteWSRA(), known)


def test_a_black_box_is_given_neither_scores_nor_nets(bench):
    """All that a recipe is opened with: no query under attack, no judgement, lists in an order without their scores."""
    known = knowledge(bench, "knrm", list(bench.texts))
    asked = known.asked()
    attacked = {text.casefold() for text in bench.texts.values()}
    assert not attacked & {query.text.casefold() for query in asked.queries.values()}
    assert not asked.qrels
    run = bench.rerank(
        "knrm",
        {q: x.text for q, x in asked.queries.items()},
        bench.first_stage_finds({q: x.text for q, x in asked.queries.items()}),
    )
    for qid, places in asked.candidates.items():
        assert list(places.values()) == [float(-i) for i in range(1, len(places) + 1)]
        assert sorted(run[qid], key=lambda d: -run[qid][d])[:1] == list(places)[:1]


def test_the_surrogate_learns_the_order_and_is_learned_once(bench):
    known = knowledge(bench, "bm25", list(bench.texts))
    found = surrogate(known, "knrm(steps=150)", Imitated())
    untrained = surrogate(known, "knrm(steps=1)", Imitated())
    assert found.agreement > untrained.agreement
    assert surrogate(known, "knrm(steps=150)", Imitated()) is found
    assert found.pairs == sum(map(len, known.asked().candidates.values()))
    with pytest.raises(BadInput, match="bm25 learns from judgements alone"):
        surrogate(known, "bm25", Imitated())


def test_pairs_within_the_first_places_are_another_way_to_learn(bench):
    known = knowledge(bench, "bm25", list(bench.texts))
    assert surrogate(known, "knrm(steps=150)", Imitated(29, pairs=True)).agreement > 0.3


def test_settings_of_both_papers_on_vectors_of_a_file(bench, known, tmp_path):
    words = sorted(
        {w.lower() for case in cases_of(bench, "knrm", Promote())[1] for w in Wording(case.doc).words if w.isalpha()}
    )
    rng = np.random.default_rng(0)
    lines = [f"{word} {' '.join(f'{x:.3f}' for x in rng.normal(size=4))}" for word in words]
    (tmp_path / "vectors.txt").write_text("\n".join(lines))
    target, cases = cases_of(bench, "knrm", Promote())
    for words_, threshold, count in ((20, 0.5, 40), (10, 0.7, 50)):
        source = f"counterfitted(threshold={threshold}, count={count}, path={str(tmp_path / 'vectors.txt')!r})"
        outcomes = drive(WSRA(words=words_, synonyms=source, surrogate=SMALL).open(known), cases, target)
        assert any(o.after < o.before for o in outcomes)
        assert all(words_changed(c.doc, o.doc) <= words_ for c, o in zip(cases, outcomes, strict=True))


def test_bad_input(bench, known, tmp_path):
    (tmp_path / "synonyms.tsv").write_text("alone\n")
    with pytest.raises(BadInput, match=r"synonyms\.tsv"):
        drive_one(bench, WSRA(synonyms=f"listed({str(tmp_path / 'synonyms.tsv')!r})", surrogate=SMALL).open(known))
    with pytest.raises(BadInput, match="words should be between 1"):
        WSRA(words=0)
    with pytest.raises(BadInput, match="do not fit into lists of 12"):
        ranges(9, 12)


def drive_one(bench, attack):
    target, cases = cases_of(bench, "knrm", Promote(), 1)
    (outcome, *_) = drive(attack, cases, target)
    if not isinstance(outcome, Outcome):
        raise BadInput(outcome.reason)
