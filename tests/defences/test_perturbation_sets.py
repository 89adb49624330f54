"""Perturbation sets: by hand, against a slow implementation written apart, and their laws."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.errors import BadInput
from shaketable.core.seeding import make_numpy_rng
from shaketable.defences.perturbation_sets import (
    PerturbationSets,
    all_but_the_top,
    build_from_lists,
    build_from_vectors,
    build_perturbation_sets,
    count_vocabulary,
    find_core_spans,
)
from shaketable.nlp.embedding_neighbours import NeighbourVectors

SIX = ("boat", "ferry", "oar", "sea", "ship", "vessel")
CHAIN = {"boat": ("ship",), "ship": ("vessel",), "vessel": ("ferry",)}
"""boat - ship - vessel - ferry; oar and sea have no synonyms."""


class Given:
    """Lists of synonyms as a source."""

    def __init__(self, lists):
        self.lists = lists

    def lookup(self, word):
        return tuple(self.lists.get(word, ()))


def vectors(words, rows) -> NeighbourVectors:
    return NeighbourVectors(tuple(words), {word: i for i, word in enumerate(words)}, np.asarray(rows, np.float32))


def six_rows() -> np.ndarray:
    """Vectors of the six words whose products are known: with no direction taken away only the mean has to vanish."""
    half = np.array([[1, 0, 0, 0], [0.8, 0.6, 0, 0], [0, 0, 1, 0]])
    return np.concatenate((half, -half))


def test_a_component_that_fits_is_the_set_of_all_its_words():
    sets = build_from_lists(Given(CHAIN), dict.fromkeys(SIX, 2), max_set_words=4)
    assert sets.synonyms == {
        "boat": ("ship",),
        "ferry": ("vessel",),
        "ship": ("vessel", "boat"),
        "vessel": ("ferry", "ship"),
    }
    assert sets.perturbations == dict.fromkeys(CHAIN.keys() | {"ferry"}, ("boat", "ferry", "ship", "vessel"))
    assert sets.overlaps == dict.fromkeys(CHAIN.keys() | {"ferry"}, 1.0)


def test_a_larger_component_is_cut_by_the_order_of_lists():
    sets = build_from_lists(Given(CHAIN), dict.fromkeys(SIX, 2), max_set_words=3)
    assert sets.perturbations == {
        "boat": ("boat", "ship", "vessel"),
        "ship": ("ship", "vessel", "boat"),
        "vessel": ("vessel", "ferry", "ship"),
        "ferry": ("ferry", "vessel", "ship"),
    }
    # |{boat, ship, vessel} ∩ {vessel, ferry, ship}| / 3, where ship and vessel are synonyms
    assert sets.overlaps == {"boat": 1.0, "ship": 2 / 3, "vessel": 2 / 3, "ferry": 1.0}
    assert sets.find_overlaps("Boat, ship ferry. oar (ship)").tolist() == [1, 2 / 3, 1, 1, 1]


def test_words_that_occur_once_have_no_synonyms():
    counts = dict.fromkeys(SIX, 2) | {"vessel": 1}
    assert build_from_lists(Given(CHAIN), counts).perturbations == dict.fromkeys(("boat", "ship"), ("boat", "ship"))


def test_vectors_by_hand():
    """Without directions taken away, the product of boat and ferry is 0.8, and so is that of sea and ship."""
    words = ("boat", "ferry", "oar", "sea", "ship", "vessel")
    sets = build_from_vectors(vectors(words, six_rows()), dict.fromkeys(words, 2), tau=0.79, directions=0)
    assert sets.synonyms == {"boat": ("ferry",), "ferry": ("boat",), "sea": ("ship",), "ship": ("sea",)}
    assert sets.perturbations["sea"] == ("sea", "ship")
    assert (
        build_from_vectors(vectors(words, six_rows()), dict.fromkeys(words, 2), tau=0.81, directions=0).synonyms == {}
    )
    absent = dict.fromkeys(words[:2], 2) | {"unheard": 9}
    assert build_from_vectors(vectors(words[2:], six_rows()[2:]), absent).synonyms == {}


def test_a_word_is_in_its_own_set_though_others_are_nearer_to_it():
    """Vectors less their mean have lengths of their own: b, at -40°, is nearer to a, d and g than to itself."""
    angles = np.radians([-50, -40, 60, -80, 20, 50, -60])
    rows = np.stack((np.cos(angles), np.sin(angles)), axis=1)
    v = all_but_the_top(rows, 0)
    assert sorted(range(7), key=lambda i: -v[1] @ v[i])[3] == 1
    sets = build_from_vectors(
        vectors("abcdefg", rows), dict.fromkeys("abcdefg", 2), tau=0.2, max_set_words=3, directions=0
    )
    assert sets.perturbations["b"] == ("b", "g", "d")
    assert sets.perturbations["c"] == ("c", "e", "f")


def test_the_threshold_is_exact_beyond_32_bits():
    rows = six_rows()
    product = float(np.float32(0.8)) / float(np.linalg.norm(rows[1].astype(np.float32).astype(np.float64)))
    for tau, found in ((product - 1e-9, True), (product + 1e-9, False)):
        sets = build_from_vectors(vectors(SIX, rows), dict.fromkeys(SIX, 2), tau=tau, directions=0)
        assert ("boat" in sets.synonyms) is found


def test_the_projection_that_is_taken_away_is_that_of_the_vectors_before_they_are_centred():
    rows = np.random.default_rng(0).normal(size=(40, 12)) + 0.5
    unit = np.array([row / np.sqrt((row**2).sum()) for row in rows])
    mean = unit.mean(axis=0)
    values, axes = np.linalg.eig(np.cov(unit - mean, rowvar=False))
    first = [axes[:, i] for i in np.argsort(-values)[:8]]
    expected = [x - mean - sum((x @ e) * e for e in first) for x in unit]
    found = all_but_the_top(rows)
    assert np.allclose(found, expected)
    assert not np.allclose(np.linalg.norm(found, axis=1), 1)


def slow(words, rows, counts, tau, most):
    """P_w and q_w, word by word and as the text has it; no line is shared with the package's."""
    table = {w: np.asarray(r, np.float64) / np.linalg.norm(r) for w, r in zip(words, rows, strict=True) if w in counts}
    names = sorted(table)
    mean = sum(table.values()) / len(table)
    covariance = sum(np.outer(x - mean, x - mean) for x in table.values())
    left, _, _ = np.linalg.svd(covariance)
    v = {w: x - mean - sum((x @ left[:, i]) * left[:, i] for i in range(8)) for w, x in table.items()}
    often = [w for w in names if counts[w] > 1]
    near = {w: [u for u in often if u != w and float(v[w] @ v[u]) > tau] for w in often}
    sets = {}
    for w in often:
        component, edge = {w}, {w}
        while edge:
            edge = {u for x in edge for u in near[x]} - component
            component |= edge
        if len(component) > most:
            if len(near[w]) > most:
                raise ValueError(w)
            others = sorted(component - {w}, key=lambda u: (-float(v[w] @ v[u]), u))
            component = {w, *others[: most - 1]}
        sets[w] = component
    shares = {w: min((len(sets[w] & sets[u]) / len(sets[w]) for u in near[w]), default=1.0) for w in often}
    return near, sets, shares


@given(seed=st.integers(0, 10_000), tau=st.sampled_from([0.1, 0.3, 0.5]), most=st.integers(5, 12))
def test_agrees_with_a_slow_implementation(seed, tau, most):
    rng = np.random.default_rng(seed)
    words = [f"w{i:02}" for i in range(36)]
    centres = rng.normal(size=(9, 14))
    rows = (centres[rng.integers(9, size=36)] + 0.5 * rng.normal(size=(36, 14))).astype(np.float32)
    counts = {word: int(rng.integers(1, 4)) for word in words[:30]}
    try:
        near, expected, shares = slow(words, rows, counts, tau, most)
    except ValueError:
        with pytest.raises(BadInput, match="synonyms, and a perturbation set has"):
            build_from_vectors(vectors(words, rows), counts, tau, most)
        return
    sets = build_from_vectors(vectors(words, rows), counts, tau, most)
    for word in near:
        assert sorted(sets.synonyms.get(word, ())) == near[word]
        assert set(sets.perturbations.get(word, (word,))) == expected[word]
        assert sets.overlaps.get(word, 1.0) == pytest.approx(shares[word])
    assert sets.perturbations.keys() == sets.synonyms.keys() == sets.overlaps.keys()


LISTED = st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.sampled_from("abcdefgh"), max_size=3))


@given(lists=LISTED, most=st.integers(2, 8))
def test_laws_of_sets_from_lists(lists, most):
    """Synonyms are symmetric; a set has the word and no more than `most`; a word and its synonyms have sets alike."""
    lists = {word: [other for other in others if other != word] for word, others in lists.items()}
    sets = build_from_lists(Given(lists), dict.fromkeys("abcdefgh", 2), most)
    for word, others in sets.synonyms.items():
        mine = sets.perturbations[word]
        assert word in mine
        assert len(set(mine)) == len(mine) <= most
        for other in others:
            assert word in sets.synonyms[other]
            assert len(sets.perturbations[other]) == len(mine)
        assert sets.overlaps[word] == min(len(set(mine) & set(sets.perturbations[u])) / len(mine) for u in others)


def test_draws_replace_words_and_nothing_else():
    sets = PerturbationSets({}, {"boat": ("boat", "ship"), "ship": ("boat", "ship")}, {})
    text = "A Boat,\t(boat) --  ship?! SHIP. "
    drawn = {body for _, body in sets.sample_texts(("", text), make_numpy_rng(0, "x"), 200)}
    assert drawn == {f"A {a},\t(boat) --  ship?! {b}. " for a in ("boat", "ship") for b in ("boat", "ship")}
    assert (
        sets.sample_texts(("Boat", text), make_numpy_rng(1, "x"), 3)
        == sets.sample_texts(("Boat", text), make_numpy_rng(1, "x"), 9)[:3]
    )
    assert sets.sample_texts(("", "No word, of them…"), make_numpy_rng(0, "x"), 2) == [("", "No word, of them…")] * 2


def test_draws_are_uniform_and_each_for_itself():
    sets = PerturbationSets({}, {"a": ("a", "b", "c")}, {})
    counts = Counter(sets.sample_texts(("a a",), make_numpy_rng(3, "y"), 9000))
    assert len(counts) == 9
    assert all(abs(count - 1000) < 5 * np.sqrt(1000) for count in counts.values())


def test_texts_of_one_pattern_have_the_same_draws():
    sets = build_from_lists(Given(CHAIN), dict.fromkeys(SIX, 2), max_set_words=4)
    a, b = "A Boat, oar vessel.", "A ferry, oar Ship."
    assert sets.compute_pattern(a) == sets.compute_pattern(b) == "A boat, oar boat."
    assert sets.sample_texts((a,), make_numpy_rng(0, "x"), 9) == sets.sample_texts((b,), make_numpy_rng(0, "x"), 9)
    assert sets.has_fixed_pattern(a, b)
    cut = build_from_lists(Given(CHAIN), dict.fromkeys(SIX, 2), max_set_words=3)
    assert cut.compute_pattern(a) == "A boat, oar vessel."
    assert not cut.has_fixed_pattern("oar", a)
    assert cut.has_fixed_pattern("oar, sea")


def test_words_are_cut_at_white_space_and_lose_one_mark():
    text = "don't, stop.. (x) ! 東京。"
    assert [text[a:b] for a, b in find_core_spans(text)] == ["don't", "stop.", "(x", "", "東京。"]
    assert count_vocabulary(["Don't stop", "stop; x-y"]) == {"dont": 1, "stop": 2, "xy": 1}


def test_sources_by_their_texts(tmp_path):
    (tmp_path / "v.txt").write_text(
        "\n".join(f"{w} {' '.join(map(str, r))}" for w, r in zip(SIX, six_rows(), strict=True))
    )
    (tmp_path / "mine.tsv").write_text("boat\tship\nship\tvessel\n")
    texts = ["boat ship vessel ferry oar sea"] * 2
    listed = build_perturbation_sets(texts, f"listed({str(tmp_path / 'mine.tsv')!r})")
    assert listed.perturbations == dict.fromkeys(("boat", "ship", "vessel"), ("boat", "ship", "vessel"))
    # four directions are all that vectors of four numbers have: -μ is left, and μ is 0
    assert build_perturbation_sets(
        texts, f"counterfitted(path={str(tmp_path / 'v.txt')!r})", tau=-0.5
    ).synonyms.keys() == set(SIX)
    assert build_perturbation_sets(texts, f"counterfitted(path={str(tmp_path / 'v.txt')!r})", tau=0.1).synonyms == {}
    assert build_perturbation_sets(["quick fast"] * 2, "thesaurus").synonyms["quick"] == ("fast",)
    assert listed.fingerprint != build_perturbation_sets(texts, "thesaurus").fingerprint
    assert build_perturbation_sets([], "thesaurus").perturbations == {}
