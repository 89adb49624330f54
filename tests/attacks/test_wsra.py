"""The word substitution ranking attack: its laws, its surrogate, and the knowledge of each variant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shaketable.api.ranker_names import build_models
from shaketable.attacks.goals import Demote, Promote
from shaketable.attacks.hotflip import HotFlip
from shaketable.attacks.runner import run_attacks
from shaketable.attacks.setup import build_attacker_knowledge, draw_targets, open_recipe, open_target, split_rank_range
from shaketable.attacks.surrogate import train_surrogate
from shaketable.attacks.tokenized_document import TokenizedDocument
from shaketable.attacks.wsra import WSRA, WhiteWSRA
from shaketable.core.attack_types import AttackOutcome, WhiteBoxRecipe
from shaketable.core.errors import BadInput
from shaketable.core.registries import SYNONYMS
from shaketable.datasets.sample import read_sample
from shaketable.experiment import Experiment
from shaketable.measures.text_change import count_changed_words
from shaketable.testing import check_attack
from shaketable.training.plan import ImitationSource

pytest.importorskip("torch")

pytestmark = pytest.mark.slow

SMALL = "knrm(steps=20, dim=16)"


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    """A small net that learned from the sample, as the target, and BM25."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHAKETABLE_HOME", str(tmp_path_factory.mktemp("home")))
        collection = read_sample()
        whole = Experiment(collection, build_models(["bm25"]), split="test", limit=6)
        yield replace(whole, models={**whole.models, "knrm": whole.fit("knrm(steps=60)", "train")})


def cases_of(experiment, name, goal, count=3):
    target = open_target(experiment, name, experiment.texts, experiment.candidates)
    drawn = [
        aim
        for pool in target.target_lists.values()
        for aim in draw_targets(pool.target_ranking, {}, split_rank_range(count, 40), 0, True)
    ]
    return target, target.build_cases([(aim.docno, aim.doc, [aim.qid]) for aim in drawn], goal)


@pytest.fixture(scope="module")
def known(experiment):
    return build_attacker_knowledge(experiment, "knrm", list(experiment.texts))


@pytest.mark.parametrize("goal", [Promote(), Demote()])
@pytest.mark.parametrize("words", [1, 3, 20])
def test_the_laws_of_the_attack(experiment, known, goal, words):
    target, cases = cases_of(experiment, "knrm", goal)
    attack = open_recipe(experiment, "knrm", WSRA(words=words, surrogate=SMALL), known)
    source = SYNONYMS.build("thesaurus")
    outcomes = run_attacks(attack, cases, target)
    assert any(outcome.ranks_after != outcome.ranks_before for outcome in outcomes) or words == 1
    for case, outcome in zip(cases, outcomes, strict=True):
        assert isinstance(outcome, AttackOutcome)
        assert count_changed_words(case.doc, outcome.doc) <= words
        before, after = TokenizedDocument(case.doc).words, TokenizedDocument(outcome.doc).words
        assert len(before) == len(after)
        for old, new in zip(before, after, strict=True):
            assert old == new or new.lower() in source.lookup(old.lower())
        assert goal.utility(outcome.ranks_after) >= goal.utility(outcome.ranks_before)
        assert (outcome.doc == case.doc) == (outcome.ranks_after == outcome.ranks_before)


@pytest.mark.parametrize("recipe", [WSRA(words=5, surrogate=SMALL), HotFlip(length=2, rounds=1, surrogate=SMALL)])
def test_contract(experiment, known, recipe):
    target, cases = cases_of(experiment, "knrm", Promote(), 2)
    check_attack(recipe.open(known), cases, target)


def test_the_white_box_attack_uses_the_gradients_of_the_ranker(experiment, known):
    target, cases = cases_of(experiment, "knrm", Promote())
    assert isinstance(WhiteWSRA(), WhiteBoxRecipe)
    assert not isinstance(WSRA(), WhiteBoxRecipe)
    attack = open_recipe(experiment, "knrm", WhiteWSRA(), known)
    check_attack(attack, cases, target)
    outcomes = run_attacks(attack, cases, target)
    assert sum(o.ranks_after < o.ranks_before for o in outcomes) >= 1
    with pytest.raises(BadInput, match="bm25 has no gradients"):
        open_recipe(experiment, "bm25", WhiteWSRA(), known)


def test_a_black_box_is_given_neither_scores_nor_nets(experiment):
    """All that a recipe is opened with: no query under attack, no judgement, lists in an order without their scores."""
    known = build_attacker_knowledge(experiment, "knrm", list(experiment.texts))
    asked = known.collect_target_rankings()
    attacked = {text.casefold() for text in experiment.texts.values()}
    assert not attacked & {query.text.casefold() for query in asked.queries.values()}
    assert not asked.qrels
    run = experiment.rerank(
        "knrm",
        {q: x.text for q, x in asked.queries.items()},
        experiment.search_first_stage({q: x.text for q, x in asked.queries.items()}),
    )
    for qid, places in asked.candidates.items():
        assert list(places.values()) == [float(-i) for i in range(1, len(places) + 1)]
        assert sorted(run[qid], key=lambda d: -run[qid][d])[:1] == list(places)[:1]


@pytest.fixture(scope="module")
def known_of_bm25(experiment):
    return build_attacker_knowledge(experiment, "bm25", list(experiment.texts))


def test_the_surrogate_learns_the_order_and_is_learned_once(known_of_bm25):
    known = known_of_bm25
    found = train_surrogate(known, "knrm(steps=60)", ImitationSource())
    untrained = train_surrogate(known, "knrm(steps=1)", ImitationSource())
    assert found.agreement > untrained.agreement
    assert train_surrogate(known, "knrm(steps=60)", ImitationSource()) is found
    assert found.pair_count == sum(map(len, known.collect_target_rankings().candidates.values()))
    with pytest.raises(BadInput, match="bm25 learns from judgements alone"):
        train_surrogate(known, "bm25", ImitationSource())


def test_pairs_within_the_first_places_are_another_way_to_learn(known_of_bm25):
    assert train_surrogate(known_of_bm25, "knrm(steps=150)", ImitationSource(29, pairs=True)).agreement > 0.3


def test_settings_of_both_papers_on_vectors_of_a_file(experiment, known, tmp_path):
    words = sorted(
        {
            w.lower()
            for case in cases_of(experiment, "knrm", Promote())[1]
            for w in TokenizedDocument(case.doc).words
            if w.isalpha()
        }
    )
    rng = np.random.default_rng(0)
    lines = [f"{word} {' '.join(f'{x:.3f}' for x in rng.normal(size=4))}" for word in words]
    (tmp_path / "vectors.txt").write_text("\n".join(lines))
    target, cases = cases_of(experiment, "knrm", Promote())
    for words_, threshold, count in ((20, 0.5, 40), (10, 0.7, 50)):
        source = f"counterfitted(threshold={threshold}, count={count}, path={str(tmp_path / 'vectors.txt')!r})"
        outcomes = run_attacks(WSRA(words=words_, synonyms=source, surrogate=SMALL).open(known), cases, target)
        assert any(o.ranks_after < o.ranks_before for o in outcomes)
        assert all(count_changed_words(c.doc, o.doc) <= words_ for c, o in zip(cases, outcomes, strict=True))


def test_bad_input(experiment, known, tmp_path):
    (tmp_path / "synonyms.tsv").write_text("alone\n")
    with pytest.raises(BadInput, match=r"synonyms\.tsv"):
        drive_one(experiment, WSRA(synonyms=f"listed({str(tmp_path / 'synonyms.tsv')!r})", surrogate=SMALL).open(known))
    with pytest.raises(BadInput, match="words should be between 1"):
        WSRA(words=0)
    with pytest.raises(BadInput, match="do not fit into lists of 12"):
        split_rank_range(9, 12)


def drive_one(experiment, attack):
    target, cases = cases_of(experiment, "knrm", Promote(), 1)
    (outcome, *_) = run_attacks(attack, cases, target)
    if not isinstance(outcome, AttackOutcome):
        raise BadInput(outcome.reason)
