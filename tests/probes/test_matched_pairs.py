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
from shaketable.datasets.load import load
from shaketable.nlp.analyzer import Analyzer
from shaketable.nlp.rule_based import RuleBasedParser
from shaketable.probes.batch import PairTable, draw_batch
from shaketable.probes.characteristics import MAX_TERMS_IN_PAIRS, build_pools, smallest_window
from shaketable.probes.context import ProbeContext
from shaketable.probes.matched_pairs import MatchedPairs, find_matched_pairs, find_pairs_by_walk
from shaketable.probes.presets import PAPER_CONTROLS
from shaketable.probes.suite import format_probe_name, select_probes


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


def measure(name, **how):
    return build_pools(context(**how))["q"].measure(name)


def test_characteristics_by_hand():
    assert measure("relevance").tolist() == [2, 0, 1, 0, 1]
    assert measure("length").tolist() == [3, 2, 4, 3, 5]
    assert measure("tf").tolist() == [[2, 1], [0, 1], [1, 1], [0, 0], [4, 0]]
    assert measure("sum_tf").tolist() == [3, 1, 2, 0, 4]
    assert measure("overlap").tolist() == pytest.approx([1.0, 0.5, 0.5, np.nan, 0.8], nan_ok=True)
    assert measure("coverage").tolist() == [2, 1, 2, 0, 1]
    assert measure("first_match").tolist() == pytest.approx([0, 0, 0, np.nan, 0], nan_ok=True)
    assert measure("distance").tolist() == pytest.approx([0, np.nan, 0, np.nan, np.nan], nan_ok=True)
    assert measure("window").tolist() == pytest.approx([2, np.nan, 2, np.nan, np.nan], nan_ok=True)
    assert measure("phrase").tolist() == pytest.approx([0, np.nan, 0, np.nan, np.nan], nan_ok=True)
    assert measure("other_words").tolist() == [0, 1, 2, 3, 1]
    assert measure("evenness").tolist() == pytest.approx([-5, -1, -2, np.nan, -16], nan_ok=True)
    idf = np.log([5 / 3, 5 / 3])
    assert measure("rarity")[2] == pytest.approx(idf.mean())
    assert measure("idf_overlap")[0] == pytest.approx((2 * idf[0] + idf[1]) / 3)


def test_readability_and_sentences_by_hand():
    texts = {"d1": ("One short one. Two.", 1), "d2": ("", 0)}
    assert measure("sentences", texts=texts).tolist() == [2, 1]
    grade = 5.88 * 14 / 4 - 29.6 * 2 / 4 - 15.8
    assert measure("reading_grade", texts=texts)[0] == pytest.approx(grade)


def test_synonyms_count_words_that_the_thesaurus_has():
    values = measure("synonyms", query="quick start", texts={"a": ("fast rapid start", 1), "b": ("slow", 0)})
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


@pytest.mark.slow
def test_the_preset_reproduces_the_sample_counts_of_the_paper(shared_data, home):
    """Table 1 of paper 001: Relevance given Length has 19,676 samples, and Length given Relevance 515,401."""
    words = shared_data / "stopwords" / "terrier.txt"
    resources = home / "resources"
    resources.mkdir(parents=True, exist_ok=True)
    (resources / "terrier.txt").write_text(words.read_text())
    probes = {format_probe_name(probe): probe for probe in select_probes(["abnirml"])}
    collection = load(shared_data / "collections" / "dl19")
    judged = tuple(qid for qid in collection.queries if collection.qrels.get(qid))
    here = ProbeContext(collection, judged, RuleBasedParser(), Analyzer())
    counts = {"relevance-given-length": 19_676, "length-given-relevance": 515_401, "tf-given-length": 19_912}
    for name, count in counts.items():
        assert len(draw_batch(probes[f"{name}-walk-terrier"], here, PairTable())) == count
    assert select_probes([f"abnirml(stopwords={str(words)!r})"])[0].terrier_stopwords == str(words)


def test_the_preset_has_the_rows_of_both_tables(home):
    (home / "resources").mkdir(parents=True, exist_ok=True)
    (home / "resources" / "mine.txt").write_text("the\nof\n")
    probes = select_probes(["abnirml(stopwords='mine.txt')"])
    matched = [probe for probe in probes if isinstance(probe, MatchedPairs)]
    assert {(probe.variable, probe.control) for probe in matched} == {
        (v, c) for v, controls in PAPER_CONTROLS.items() for c in controls
    }
    assert all(probe.walk and probe.terrier_stopwords for probe in matched)
    others = [PROBES.spec(probe) for probe in probes if probe not in matched]
    assert len(others) == 9
    assert sum("against='raw'" in spec for spec in others) == 6
    with pytest.raises(BadInput, match=r"stop words are in none of .*resources/terrier\.txt"):
        select_probes(["abnirml"])


def test_terrier_terms_keep_the_stop_words_of_queries_only(tmp_path):
    """Terrier drops "the" from documents; the query keeps it, so its frequency is 0 everywhere."""
    (tmp_path / "stops.txt").write_text("the\n")
    here = context()
    counting = here.count_as_terrier(str(tmp_path / "stops.txt"))
    assert counting.extract_query_terms("the boat") == ["the", "boat"]
    assert counting.extract_terms("the boats, 123456 aaaa") == ["boat"]
    assert here.count_as_terrier(str(tmp_path / "stops.txt")) is counting


@given(st.lists(st.sampled_from("abcx"), min_size=1, max_size=25))
@settings(max_examples=60, deadline=None)
def test_distances_equal_a_comparison_of_all_positions(terms):
    pool = build_term_pool("a b c", [terms, ["a"]])
    here = {term: [i for i, one in enumerate(terms) if one == term] for term in "abc" if term in terms}
    gaps = (
        [min(abs(i - j) - 1 for i in here[s] for j in here[t]) for s, t in ("ab", "ac", "bc")] if len(here) == 3 else []
    )
    nearest = [min(abs(i - j) for t in here if t != s for j in here[t]) for s in here for i in here[s] if len(here) > 1]
    for name, values in (("distance", gaps), ("surroundings", nearest)):
        expected = sum(values) / len(values) if values else np.nan
        assert pool.measure(name)[0] == pytest.approx(expected, nan_ok=True)


def test_queries_of_many_terms_have_no_distance_between_pairs():
    terms = [f"word{i}x" for i in range(MAX_TERMS_IN_PAIRS + 1)]
    assert not np.isnan(build_term_pool(" ".join(terms[1:]), [terms, terms]).measure("distance")).any()
    assert np.isnan(build_term_pool(" ".join(terms), [terms, terms]).measure("distance")).all()


def build_term_pool(query, texts):
    docs = MemoryCorpus({f"d{i}": Doc(" ".join(terms)) for i, terms in enumerate(texts)})
    grades = {"q": dict.fromkeys(docs, 1)}
    plain = Analyzer(stopwords="none", stemmer="none")
    return build_pools(ProbeContext(Collection("x", docs, {"q": Query(query)}, grades), ["q"], Sentences(), plain))["q"]


def test_long_texts_are_left_out(monkeypatch):
    monkeypatch.setattr("shaketable.probes.context.MAX_CHANGED_CHARS", 30)
    docs = MemoryCorpus({"short": Doc("a boat"), "long": Doc("a boat " * 9), "other": Doc("a tree")})
    queries = {"q": Query("boat"), "long": Query("boat " * 9)}
    grades = {qid: dict.fromkeys(docs, 1) for qid in queries}
    given = ProbeContext(Collection("x", docs, queries, grades), [*queries], Sentences(), Analyzer())
    assert {qid: [one.docno for one in some] for qid, some in given.judged_documents.items()} == {
        "q": ["other", "short"]
    }
    assert (given.long_queries, given.long_documents) == (["long"], {"long"})
