"""Minimal pairs: both directions, and what rankers that look at one thing alone make of them."""

from __future__ import annotations

import json
from collections import Counter
from math import isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.documents import Doc
from shaketable.core.errors import BadInput
from shaketable.core.protocols import TextPair
from shaketable.core.registries import PROBES
from shaketable.core.seeding import make_item_rng
from shaketable.datasets.pairs import CrossedPair
from shaketable.measures.preference import both_right_share, measure_preference
from shaketable.probes.minimal_pairs import Negation, SourceBias, make_both_directions
from tests.probes.tool import context

NAMES = [name for name, row in PROBES.builtin_rows.items() if ".minimal_pairs:" in row]
CROSSED = ("negation", "exclusion", "number", "date", "entity")


def differences(contrasts, score):
    return [score(c.query, c.first.text) - score(c.query, c.second.text) for c in contrasts]


def test_a_pair_is_asked_in_both_directions():
    pair = CrossedPair("p", "is open", "is closed", "it is open", "it is not open")
    one, other = Doc("it is open"), Doc("it is not open")
    assert list(make_both_directions(pair)) == [
        TextPair("is open", one, other, qid="p"),
        TextPair("is closed", other, one, qid="p"),
    ]


def test_both_right_by_hand():
    assert both_right_share([("a", 1.0), ("b", 1.0), ("a", 2.0), ("b", -1.0)]) == 0.5
    assert both_right_share([("a", 0.0), ("a", 0.0)]) == 0.0
    assert isnan(both_right_share([]))


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=30))
def test_a_ranker_that_looks_at_texts_alone_has_no_pair_right(values):
    """Its two differences are each other's negatives."""
    preferences = [(str(i), sign * value) for i, value in enumerate(values) for sign in (1, -1)]
    assert both_right_share(preferences) == 0


def test_a_coin_has_a_quarter_right():
    preferences = [(str(i), make_item_rng(0, "coin", i, j).random() - 0.5) for i in range(4000) for j in range(2)]
    assert abs(both_right_share(preferences) - 0.25) < 0.02


@pytest.mark.parametrize("name", NAMES)
def test_every_probe_has_bundled_pairs_and_keeps_the_laws(name):
    probe = PROBES.build(name)
    assert (probe.strategy, probe.symmetric, probe.unavailable_reason(context())) == ("minimal pair", False, "")
    contrasts = list(probe.draw_pairs(context()))
    counts = set(Counter(c.qid for c in contrasts).values())
    assert counts == ({2} if name in CROSSED else {1})
    assert len(contrasts) >= (80 if name in CROSSED else 40)
    qids = [c.qid for c in contrasts]
    assert measure_preference(differences(contrasts, lambda query, text: 1.0), qids).s == 0

    def overlap(query: str, text: str) -> float:
        return len(set(query.split()) & set(text.lower().split()))

    there = differences(contrasts, overlap)
    back = differences([TextPair(c.query, c.second, c.first, qid=c.qid) for c in contrasts], overlap)
    assert measure_preference(there, qids).s == -measure_preference(back, qids).s
    np.testing.assert_array_equal(there, -np.array(back))
    if name in CROSSED:
        length = differences(contrasts, lambda query, text: len(text))
        assert both_right_share(zip(qids, length, strict=True)) == 0
        assert measure_preference(length, qids).s == 0


@pytest.mark.parametrize("name", ["number", "date"])
def test_a_ranker_that_matches_words_can_tell_the_bundled_numbers_apart(name):
    """Most of them stand in the query as they stand in the text, so the pairs are not beyond reach."""
    contrasts = list(PROBES.build(name).draw_pairs(context()))

    def overlap(query: str, text: str) -> float:
        return sum(f" {word} " in f" {text.lower().replace(',', '').replace('.', '')} " for word in set(query.split()))

    found = both_right_share((c.qid, d) for c, d in zip(contrasts, differences(contrasts, overlap), strict=True))
    assert found > 0.4


@pytest.mark.parametrize("name", NAMES)
def test_every_probe_names_its_missing_data(name, tmp_path):
    probe = PROBES.build(f"{name}(path={str(tmp_path / 'nowhere.jsonl')!r})")
    assert "nowhere.jsonl" in probe.unavailable_reason(context())
    with pytest.raises(BadInput, match="is not at"):
        list(probe.draw_pairs(context()))


def test_files_of_a_folder_may_use_the_same_ids(tmp_path):
    row = {"id": "1", "q1": "a", "q2": "b", "doc1": "c", "doc2": "d"}
    for name in ("test", "train"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    assert [c.qid for c in Negation(str(tmp_path)).draw_pairs(context())] == ["test-1"] * 2 + ["train-1"] * 2
    assert [c.qid for c in Negation(str(tmp_path / "test.jsonl")).draw_pairs(context())] == ["1"] * 2


def test_the_real_negations(shared_data):
    contrasts = list(Negation(str(shared_data / "pairs" / "negation" / "answers.jsonl")).draw_pairs(context()))
    assert len(contrasts) == 2 * 186
    assert set(Counter(c.qid for c in contrasts).values()) == {2}


def test_the_real_rewrites_have_their_grades(shared_data):
    contrasts = list(SourceBias(str(shared_data / "pairs" / "source-bias")).draw_pairs(context()))
    assert Counter(c.grade for c in contrasts) == {0: 503, 1: 94, 2: 203}
    assert contrasts[0].first.text.startswith("The NBA's inaugural in-season tournament")


def test_a_title_belongs_to_both_texts(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps({"query": "boats", "a": "old ones", "b": "new ones", "title": "Boats"}))
    (pair,) = SourceBias(str(path)).draw_pairs(context())
    assert [doc.text for doc in (pair.first, pair.second)] == ["Boats old ones", "Boats new ones"]
