"""Certificates: by hand, against every admissible attack on toys, and against chance."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.errors import BadInput
from shaketable.defences.perturbation_sets import build_from_lists
from shaketable.measures.certificates import (
    CERTIFICATE_CONDITIONS,
    CERTIFICATE_CUTOFFS,
    CertifiableList,
    build_certified_rows,
    conditional_success_rates,
    find_certified_queries,
    mask_shift,
    sampled_mask_shift,
    sampling_margin,
    substitution_shift,
)
from tests.defences.test_perturbation_sets import Given

WORDS = "abcdef"
LENGTH = 3


def toy(seed: int, most: int):
    """Return sets over six words, and a ranker with random scores, often 0 or 1, for the 216 texts of three words."""
    rng = np.random.default_rng(seed)
    lists = {word: [o for o in rng.choice(list(WORDS), rng.integers(3)).tolist() if o != word] for word in WORDS}
    sets = build_from_lists(Given(lists), dict.fromkeys(WORDS, 2), most)
    scores = rng.random((len(WORDS),) * LENGTH)
    return sets, np.round(scores) if seed % 2 else scores


def expectation(sets, scores, text: str) -> float:
    """f̄ of a text, by all that can be drawn for it."""
    rows = [[WORDS.index(u) for u in sets.perturbations.get(word, (word,))] for word in text]
    return float(scores[np.ix_(*rows)].mean())


def attacks(sets, text: str, changed: int) -> list[str]:
    """Every text that comes of replacing at most so many words by synonyms."""
    choices = [(word, *sets.synonyms.get(word, ())) for word in text]
    found = ("".join(words) for words in product(*choices))
    return [new for new in found if sum(a != b for a, b in zip(text, new, strict=True)) <= changed]


@given(seed=st.integers(0, 100_000), most=st.integers(2, 6), changed=st.integers(1, LENGTH))
def test_no_substitution_moves_the_expectation_by_more_than_the_shift(seed, most, changed):
    sets, scores = toy(seed, most)
    for text in ("".join(np.random.default_rng(seed + i).choice(list(WORDS), LENGTH)) for i in range(6)):
        before, bound = expectation(sets, scores, text), substitution_shift(sets.find_overlaps(" ".join(text)), changed)
        for new in attacks(sets, text, changed):
            assert abs(expectation(sets, scores, new) - before) <= bound + 1e-12


def a_list(sets, scores, rng, changed: int) -> tuple[list[str], CertifiableList]:
    texts = ["".join(rng.choice(list(WORDS), LENGTH)) for _ in range(4)]
    means = {str(i): expectation(sets, scores, text) for i, text in enumerate(texts)}
    shifts = {str(i): substitution_shift(sets.find_overlaps(" ".join(text)), changed) for i, text in enumerate(texts)}
    order = sorted(range(4), key=lambda i: (-np.float32(means[str(i)]), -i))
    return [texts[i] for i in order], CertifiableList.from_scores(means, shifts)


def test_no_attack_at_all_breaks_a_certified_list():
    """Every document below K and every admissible substitution of it, for several small collections."""
    sure = {"paper": 0, "tight": 0}
    broken = 0
    for seed in range(400):
        sets, scores = toy(seed, most=2 + seed % 4)
        changed = 1 + seed % LENGTH
        texts, one = a_list(sets, scores, np.random.default_rng(seed + 1), changed)
        for k in (1, 2, 3):
            could = any(
                np.float32(expectation(sets, scores, new)) >= np.float32(one.scores[k - 1])
                for text in texts[k:]
                for new in attacks(sets, text, changed)
            )
            broken += could
            for reading in ("paper", "tight"):
                if one.is_certified(k, reading, samples=1):
                    sure[reading] += 1
                    assert not could, f"{reading}: toy {seed}, K = {k}"
    assert sure["tight"] > sure["paper"] > 50
    assert broken > 50


def test_the_shift_is_reached():
    """A ranker that prefers the words of P_ship that P_vessel lacks: the bound is attained."""
    chain = Given({"a": ["b"], "b": ["c"], "c": ["d"]})
    sets = build_from_lists(chain, dict.fromkeys("abcd", 2), max_set_words=3)
    scores = np.zeros((6,) * LENGTH)
    scores[WORDS.index("a")] = 1  # P_b has a, P_c has not
    moved = expectation(sets, scores, "bee") - expectation(sets, scores, "cee")
    assert moved == pytest.approx(substitution_shift(sets.find_overlaps("b e e"))) == pytest.approx(1 / 3)


def test_shifts_by_hand():
    assert substitution_shift(np.array([])) == 0
    assert substitution_shift(np.array([0.5, 1.0, 0.2]), max_changed=1) == pytest.approx(0.8)
    assert substitution_shift(np.array([0.5, 1.0, 0.2]), max_changed=0) == 0
    assert (
        substitution_shift(np.array([0.5, 1.0, 0.2]))
        == substitution_shift(np.array([0.5, 1.0, 0.2]), max_changed=99)
        == pytest.approx(0.9)
    )


def masked_mean(scores, text, kept: int) -> float:
    """g of a text of numbers, by all ways to keep so many of them; what is masked is 0."""
    ways = list(combinations(range(len(text)), kept))
    return float(np.mean([scores[tuple(w if i in way else 0 for i, w in enumerate(text))] for way in ways]))


@given(seed=st.integers(0, 100_000), kept=st.integers(0, 4), changed=st.integers(0, 4))
def test_no_change_of_words_moves_a_masked_mean_by_more_than_the_shift(seed, kept, changed):
    rng = np.random.default_rng(seed)
    scores = np.round(rng.random((4,) * 4))
    text = tuple(rng.integers(1, 4, 4).tolist())
    before, bound = masked_mean(scores, text, kept), mask_shift(4, kept, changed)
    for new in product(range(1, 4), repeat=4):
        if sum(a != b for a, b in zip(text, new, strict=True)) <= changed:
            assert abs(masked_mean(scores, new, kept) - before) <= bound + 1e-12


def test_the_shift_of_masks_is_reached_and_the_product_of_robust_mask_is_no_bound():
    """Theorem 1 of RobustMask has the shift times 1 / C(T, k) times a mean score, which is 1 at most."""
    scores = np.zeros((3,) * 4)
    scores[2] = 1  # all that have 2 as their first word
    moved = masked_mean(scores, (2, 1, 1, 1), kept=2) - masked_mean(scores, (1, 1, 1, 1), kept=2)
    assert moved == mask_shift(4, 2, 1) == 0.5
    assert moved > mask_shift(4, 2, 1) / 6


def test_masks_by_hand():
    assert [mask_shift(10, 10, r) for r in (0, 1)] == [0, 1]
    assert mask_shift(10, 0) == mask_shift(0, 0) == 0
    assert mask_shift(5, 2, 99) == mask_shift(5, 2) == 1
    assert mask_shift(200, 20, 5) == pytest.approx(1 - np.prod([(180 - i) / (200 - i) for i in range(5)]))
    with pytest.raises(BadInput, match="cannot keep 4 of 3 words"):
        mask_shift(3, 4)


ONE = CertifiableList(np.array([0.9, 0.7, 0.4, 0.35]), np.array([1.0, 0.1, 0.15, 0.25]))


def test_margins_by_hand():
    assert [ONE.margin(k) for k in (1, 2, 3, 4)] == pytest.approx([-0.05, 0.05, -0.2, np.inf])
    assert [ONE.tight_margin(k) for k in (1, 2, 3, 4)] == pytest.approx([0.1, 0.1, -0.2, np.inf])
    assert sampling_margin(1000) == pytest.approx(0.0859, abs=5e-5)
    assert sampling_margin(1000, texts=4) == pytest.approx(2 * np.sqrt(np.log(160) / 2000))


@pytest.mark.parametrize(
    ("reading", "samples", "expected"),
    [
        ("paper", 1, [False, True, False, True]),
        ("tight", 1, [True, True, False, True]),
        ("paper, sampled", 1000, [False, False, False, True]),
        ("paper, sampled", 3000, [False, True, False, True]),
        ("tight, sampled", 1000, [True, True, False, True]),
        ("tight, whole list", 1000, [False, False, False, True]),
        ("tight, whole list", 1100, [True, True, False, True]),
    ],
)
def test_readings_by_hand(reading, samples, expected):
    assert [ONE.is_certified(k, reading, samples) for k in (1, 2, 3, 4)] == expected


def test_scores_that_32_bits_do_not_tell_apart_are_not_certified():
    near = CertifiableList(np.array([0.5 + 1e-9, 0.5]), np.zeros(2))
    assert near.tight_margin(1) > 0
    assert not near.is_certified(1, "tight", 1)
    assert not CertifiableList(np.array([0.5 + 1e-4, 0.5]), np.zeros(2)).is_certified(1, "tight", 1, min_margin=1e-3)


def test_rows_over_queries():
    two = CertifiableList(np.array([0.9, 0.1]), np.array([0.5, 0.5]))
    lists = {"q1": ONE, "q2": two}
    first, second, *_ = build_certified_rows(lists, samples=1000)
    assert (
        [row["K"] for row in build_certified_rows(lists, samples=9)]
        == list(CERTIFICATE_CUTOFFS)
        == [*range(1, 11), *range(20, 91, 10)]
    )
    assert (first["queries"], first["short"], second["short"]) == (2, 0, 1)
    assert [first[f"CRQ % ({reading})"] for reading in CERTIFICATE_CONDITIONS] == [50, 50, 100, 100, 50]
    assert find_certified_queries(lists, 1, "paper", samples=1) == ["q2"]
    with pytest.raises(BadInput, match="no list"):
        build_certified_rows({}, samples=1)
    with pytest.raises(BadInput, match="one each"):
        CertifiableList(np.zeros(2), np.zeros(3))


def test_a_list_is_ranked_as_everywhere():
    one = CertifiableList.from_scores({"a": 0.5, "b": 0.5, "c": 0.7}, {"a": 0.1, "b": 0.2, "c": 0.3})
    assert one.scores.tolist() == [0.7, 0.5, 0.5]
    assert one.shifts.tolist() == [0.3, 0.2, 0.1]


def failures(reading, samples: int, documents: int, lists: int = 1500) -> float:
    """Return the share of lists that draws certify at 1 although the expectations have another order.

    All documents have nearly the same expectation and no shift, so that the first document is random.
    """
    rng = np.random.default_rng(documents)
    failed = 0
    for _ in range(lists):
        truth = 0.5 + 1e-4 * rng.permutation(documents)
        means = rng.binomial(samples, truth) / samples
        order = np.argsort(-means, kind="stable")
        one = CertifiableList(means[order], np.zeros(documents))
        failed += one.is_certified(1, reading, samples) and truth[order[0]] != truth.max()
    return failed / lists


def test_chance_breaks_no_more_than_its_share_of_certificates():
    for documents in (2, 20):
        for reading in ("paper, sampled", "tight, sampled", "tight, whole list"):
            assert failures(reading, 30, documents) <= 0.05
        assert failures("tight", 30, documents) > 0.05, "without the allowance it would"


def test_conditional_success_in_each_reading():
    targets = ["a", "a", "b", "b"], np.array([12.0, 30, 8, 15]), np.array([9.0, 20, 3, 15])
    found = conditional_success_rates(*targets, {"b"}, 10)
    assert {name: one.value for name, one in found.items()} == pytest.approx(
        {"CSR@10 %": 100 / 3, "ASR %, certified at 10": 50.0, "CSR@10 %, certified": 0.0}
    )
    assert [one.targets for one in found.values()] == [3, 2, 1]
    assert np.isnan(conditional_success_rates(*targets, (), 10)["ASR %, certified at 10"].value)


@given(seed=st.integers(0, 100_000), changed=st.integers(0, 4))
def test_no_change_of_words_moves_the_mean_over_given_masks_by_more_than_their_shift(seed, changed):
    rng = np.random.default_rng(seed)
    scores = np.round(rng.random((4,) * 4))
    text = tuple(rng.integers(1, 4, 4).tolist())
    masks = rng.random((5, 4)) < rng.random()

    def mean(words) -> float:
        return float(
            np.mean([scores[tuple(w if keep else 0 for w, keep in zip(words, mask, strict=True))] for mask in masks])
        )

    bound = sampled_mask_shift(masks, changed)
    for new in product(range(1, 4), repeat=4):
        if sum(a != b for a, b in zip(text, new, strict=True)) <= changed:
            assert abs(mean(new) - mean(text)) <= bound + 1e-12
    assert sampled_mask_shift(masks) == pytest.approx(masks.any(axis=1).mean())
