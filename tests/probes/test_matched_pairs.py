"""Measure and match: the sampler equals a comparison of all pairs, and the characteristics are what they say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shaketable.core.documents import Collection, Doc, Query
from shaketable.core.errors import BadInput, UnknownName
from shaketable.core.registries import PROBES
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.nlp.analyzer import Analyzer
from shaketable.probes.batch import PairTable, draw_batch
from shaketable.probes.characteristics import build_pools, smallest_window
from shaketable.probes.context import ProbeContext
from shaketable.probes.matched_pairs import MatchedPairs, find_matched_pairs, find_pairs_by_walk


def all_pairs(variable, controls, tolerances):
    """Every ordered pair, one by one: what the sampler must come to."""
    whole = np.column_stack([variable, *controls])
    found = []
    for a in range(len(whole)):
        for b in range(len(whole)):
            if np.isnan(whole[a]).any() or np.isnan(whole[b]).any():
                continue
            alike = all(
                all(abs(x - y) <= spread for x, y in zip(c[a], c[b], strict=True))
                for c, spread in zip(controls, tolerances, strict=True)
            )
            d = variable[a] - variable[b]
            if alike and (d >= 0).all() and (d > 0).any():
                found.append((a, b))
    return found


def arrays(draw, rows, columns, hole=True):
    value = (
        st.one_of(st.integers(0, 4).map(float), st.sampled_from([0.25, 0.5]))
        if columns == 1
        else st.integers(0, 2).map(float)
    )
    values = [[draw(value) for _ in range(columns)] for _ in range(rows)]
    if hole and rows and draw(st.booleans()):
        values[0][0] = float("nan")
    return np.array(values, dtype=float).reshape(rows, columns)


@st.composite
def cases(draw):
    rows = draw(st.integers(0, 12))
    variable = arrays(draw, rows, draw(st.integers(1, 3)))
    controls = [arrays(draw, rows, draw(st.integers(1, 3))) for _ in range(draw(st.integers(1, 2)))]
    return variable, controls, [draw(st.sampled_from([0.0, 0.25, 1.0])) for _ in controls]


@given(cases())
@settings(max_examples=300, deadline=None)
def test_the_sampler_finds_the_pairs_that_comparing_all_of_them_finds(case):
    first, second = find_matched_pairs(*case)
    assert sorted(zip(first.tolist(), second.tolist(), strict=True)) == all_pairs(*case)
    assert first.tolist() == sorted(first.tolist())


@given(cases(), st.integers(1, 5))
@settings(max_examples=100, deadline=None)
def test_a_cap_leaves_some_of_the_same_pairs(case, most):
    first, second = find_matched_pairs(*case, max_pairs=most, rng=np.random.default_rng(1))
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    assert len(pairs) <= most
    assert set(pairs) <= set(all_pairs(*case))
    assert len(set(pairs)) == len(pairs)


def test_the_walk_misses_some_pairs_and_repeats_others():
    tf = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])  # one sum: the walk stops between the two that are equal
    length = np.array([[5.0], [6.0], [7.0]])
    assert find_matched_pairs(length, [tf], [0.0])[0].tolist() == [2]
    # from the first document the walk to the left begins at the end, where the last one matches; from there, it stops
    assert [part.tolist() for part in find_pairs_by_walk(length, tf, 0.0)] == [[], []]
    same = np.ones((3, 1))
    first, second = find_pairs_by_walk(length[::-1].copy(), same, 0.0)
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    assert sorted(set(pairs)) == [(0, 1), (0, 2), (1, 2)]
    assert sorted(pairs) == [(0, 1), (0, 1), (0, 2), (0, 2), (1, 2)]


TEXTS = {
    "d1": ("oak tree oak", 2),
    "d2": ("a tree of winter", 0),
    "d3": ("the oak by a tree in winter ships", 1),
    "d4": ("ships winter sails", 0),
    "d5": ("oak oak oak oak ships", 1),
}


def context(query="oak tree", texts=TEXTS, **how) -> ProbeContext:
    docs = {docno: Doc(text) for docno, (text, _) in texts.items()}
    grades = {docno: grade for docno, (_, grade) in texts.items()}
    collection = Collection("trees", MemoryCorpus(docs), {"q": Query(query)}, {"q": grades})
    return ProbeContext(collection, ("q",), Sentences(), Analyzer(stemmer="none"), **how)


class Sentences:
    """A linguistic tool that knows full stops."""

    name = "full stops"

    def parse(self, texts):
        from shaketable.nlp.parser import Parsed, Span, Token

        parsed = []
        for text in texts:
            words = text.replace(".", " .").split()
            ends = [i + 1 for i, word in enumerate(words) if word == "."] or [len(words)]
            spans = tuple(Span(a, b) for a, b in zip([0, *ends], ends, strict=False))
            parsed.append(Parsed(tuple(Token(word, word, "X") for word in words), spans, ()))
        return parsed


def measured(name, **how):
    return build_pools(context(**how))["q"].measure(name)


def test_characteristics_by_hand():
    assert measured("relevance").tolist() == [2, 0, 1, 0, 1]
    assert measured("length").tolist() == [3, 2, 4, 3, 5]
    assert measured("tf").tolist() == [[2, 1], [0, 1], [1, 1], [0, 0], [4, 0]]
    assert measured("sum_tf").tolist() == [3, 1, 2, 0, 4]
    assert measured("overlap").tolist() == pytest.approx([1.0, 0.5, 0.5, np.nan, 0.8], nan_ok=True)
    assert measured("coverage").tolist() == [2, 1, 2, 0, 1]
    assert measured("first_match").tolist() == pytest.approx([0, 0, 0, np.nan, 0], nan_ok=True)
    assert measured("distance").tolist() == pytest.approx([0, np.nan, 0, np.nan, np.nan], nan_ok=True)
    assert measured("window").tolist() == pytest.approx([2, np.nan, 2, np.nan, np.nan], nan_ok=True)
    assert measured("phrase").tolist() == pytest.approx([0, np.nan, 0, np.nan, np.nan], nan_ok=True)
    assert measured("other_words").tolist() == [0, 1, 2, 3, 1]
    assert measured("evenness").tolist() == pytest.approx([-5, -1, -2, np.nan, -16], nan_ok=True)
    idf = np.log([5 / 3, 5 / 3])
    assert measured("rarity")[2] == pytest.approx(idf.mean())
    assert measured("idf_overlap")[0] == pytest.approx((2 * idf[0] + idf[1]) / 3)


def test_readability_and_sentences_by_hand():
    texts = {"d1": ("One short one. Two.", 1), "d2": ("", 0)}
    assert measured("sentences", texts=texts).tolist() == [2, 1]
    grade = 5.88 * 14 / 4 - 29.6 * 2 / 4 - 15.8
    assert measured("reading_grade", texts=texts)[0] == pytest.approx(grade)


def test_synonyms_count_words_that_the_thesaurus_has():
    values = measured("synonyms", query="quick start", texts={"a": ("fast rapid start", 1), "b": ("slow", 0)})
    assert values.tolist() == [2, 0]


def test_the_smallest_window_is_that_of_trying_all():
    rng = np.random.default_rng(3)
    for _ in range(50):
        places = {term: sorted(rng.choice(30, rng.integers(1, 5), replace=False).tolist()) for term in "abc"}
        every = [max(p) - min(p) + 1 for p in np.array(np.meshgrid(*places.values())).reshape(3, -1).T]
        assert smallest_window(places) == min(every)


def test_more_of_the_variable_is_first_and_fewer_turns_it_round():
    one = MatchedPairs("length", "coverage")
    pairs = [(c.first.body, c.second.body) for c in one.draw_pairs(context())]
    assert pairs == [(TEXTS["d3"][0], TEXTS["d1"][0]), (TEXTS["d5"][0], TEXTS["d2"][0])]
    turned = [
        (c.second.body, c.first.body) for c in MatchedPairs("length", "coverage", fewer=True).draw_pairs(context())
    ]
    assert sorted(turned) == sorted(pairs)


@pytest.mark.parametrize("text", ["matched('length', 'coverage')", "prox1", "matched('tf', 'relevance', walk=True)"])
def test_arrays_and_objects_are_the_same_contrasts(text):
    probe, units = PROBES.build(text), PairTable()
    drawn = draw_batch(probe, context(), units)
    arrays_ = [(units.pairs[a], units.pairs[b][1]) for a, b in zip(drawn.first, drawn.second, strict=True)]
    assert arrays_ == [((c.query, c.first), c.second) for c in probe.draw_pairs(context())]
    assert drawn.fingerprint == draw_batch(probe, context(), PairTable()).fingerprint


def test_unjudged_documents_take_part_where_relevance_plays_none():
    lists = {"q": {"d1": 2.0, "d9": 1.0}}
    texts = TEXTS | {"d9": ("oak tree ships ships", 0)}
    with_all = context(texts=texts, first_stage_lists=lists)
    bare = ProbeContext(
        Collection("t", with_all.collection.docs, with_all.collection.queries, {"q": {"d1": 2, "d3": 1}}),
        ("q",), Sentences(), Analyzer(stemmer="none"), first_stage_lists=lists,
    )  # fmt: skip
    assert len(list(MatchedPairs("length", "coverage").draw_pairs(bare))) == 1
    assert len(list(MatchedPairs("length", "coverage", unjudged=True).draw_pairs(bare))) == 2
    assert len(list(MatchedPairs("relevance", "coverage", unjudged=True).draw_pairs(bare))) == 1


def test_a_stop_list_of_the_users_own():
    assert build_pools(context(stopwords=frozenset({"ships"})))["q"].measure("length").tolist() == [3, 4, 7, 2, 4]


def test_invalid_settings_are_refused():
    with pytest.raises(UnknownName, match="characteristic"):
        MatchedPairs("lenght")
    with pytest.raises(BadInput, match="cannot be both the variable and a control"):
        MatchedPairs("length", "length")
    with pytest.raises(BadInput, match="tolerance"):
        MatchedPairs("relevance", "length+tf", tolerance=(1.0,))
    with pytest.raises(BadInput, match="tolerance"):
        MatchedPairs("relevance", "length", tolerance=-1.0)
    assert (
        MatchedPairs().unavailable_reason(context(texts={"a": ("x", 1), "b": ("y", 1)}))
        == "all judged documents have the same grade"
    )
