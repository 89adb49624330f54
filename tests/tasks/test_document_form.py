"""Document form: planted flaws are named by their test, a sound ranker keeps every rank, and ranks are as by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shaketable.core.documents import Collection, Doc, Query
from shaketable.core.errors import BadInput, NotApplicable
from shaketable.core.registries import RANKERS
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.experiment import Experiment
from shaketable.measures.facets import DOCUMENT_FORM, FALLS_OUT, JUMPS_IN, find_test, get_facet, name_test
from shaketable.measures.status import FAIL, PASS, STATUSES_WORST_FIRST, classify_findings
from shaketable.tasks._form_tables import excerpt_difference
from shaketable.tasks.document_form import DocumentForm
from shaketable.tasks.runner import list_default_tasks
from shaketable.transforms.document_form import FORM_CHANGES
from tests.tasks.flaws import PENALTY, Planted, experiment, normalise, recognise, sample

WARN_THRESHOLD = 10.0
LISTS = 49
"""The test queries of the sample with more than ten candidates; one has fewer."""


def fear_capitals(query: str, text: str, score: float) -> float:
    return score - PENALTY * text.isupper()


def fear_accents(query: str, text: str, score: float) -> float:
    return score - PENALTY * any(letter in text for letter in "áéíóú")


def read_the_lead(query: str, text: str, score: float) -> float:
    known, shown = (normalise(" ".join(one.split()[:30])) for one in (sample().docs[recognise(text)].text, text))
    return score - PENALTY * (len(known & shown) < len(known) / 2)


def love_boilerplate(query: str, text: str, score: float) -> float:
    return score + PENALTY * ("privacy" in text.lower())


def love_short_texts(query: str, text: str, score: float) -> float:
    return score + PENALTY * max(0.0, 1 - len(text.split()) / 50)


def love_recent_dates(query: str, text: str, score: float) -> float:
    return score + PENALTY * ("2026" in text) - PENALTY * ("1996" in text)


def fear_tags(query: str, text: str, score: float) -> float:
    return score - PENALTY * ("<p>" in text)


def fear_odd_characters(query: str, text: str, score: float) -> float:
    return score - PENALTY * any(letter in text for letter in "\u00a0\ufb01\ufb02")


FLAWS = [
    (fear_capitals, {name_test(FALLS_OUT, "upper_case")}),
    (fear_accents, {name_test(FALLS_OUT, "accents")}),
    (
        read_the_lead,
        {name_test(FALLS_OUT, test) for test in ("prepend_boilerplate", "reverse_sentences", "bury_answer")},
    ),
    (love_boilerplate, {name_test(JUMPS_IN, f"{end}pend_boilerplate") for end in ("ap", "pre")}),
    (love_short_texts, {name_test(JUMPS_IN, "unrelated_sentence")}),
    (love_recent_dates, {name_test(JUMPS_IN, "recent_date"), name_test(FALLS_OUT, "old_date")}),
    (fear_tags, {name_test(FALLS_OUT, "paragraph_tags")}),
    (fear_odd_characters, {name_test(FALLS_OUT, "non_breaking_spaces"), name_test(FALLS_OUT, "compatible_forms")}),
]


def measure(ranker: Planted, **settings):
    result = DocumentForm(**settings).run(experiment(ranker))
    return result, {one.name: one for one in result.findings}


def statuses(found) -> dict[str, str]:
    graded = classify_findings(list(found.values()), get_facet(DOCUMENT_FORM))
    return {one.finding.name: one.status for one in graded if one.finding.n >= 20}


class TestPlantedFlaws:
    @pytest.mark.parametrize(("flaw", "names"), FLAWS, ids=[flaw.__name__ for flaw, _ in FLAWS])
    def test_a_flaw_is_named(self, flaw, names):
        result, found = measure(Planted(flaw))
        failed = {name for name, status in statuses(found).items() if status == FAIL}
        assert failed
        assert failed <= names
        worst = max(found.values(), key=lambda one: one.value)
        assert worst.value > 80
        shown = {one.change for one in result.examples}
        assert {find_test(name) for name in failed} <= shown, "each has an example"
        for example in result.examples:
            assert example.before != example.after
            assert (example.rank_before <= 10) != (example.rank_after <= 10)

    @pytest.mark.parametrize(("flaw", "names"), FLAWS, ids=[flaw.__name__ for flaw, _ in FLAWS])
    def test_a_flaw_on_a_quarter_of_the_queries(self, flaw, names):
        _, found = measure(Planted(flaw, 0.25))
        worst = max((one for one in found.values() if one.n >= 20), key=lambda one: one.value)
        assert worst.name in names
        assert worst.value >= WARN_THRESHOLD
        assert statuses(found)[worst.name] in STATUSES_WORST_FIRST[:2]

    @pytest.mark.parametrize("pointwise", [True, False])
    def test_a_sound_ranker(self, pointwise):
        result, found = measure(Planted(pointwise=pointwise), listwise_queries=0)
        assert {one.value for one in found.values()} == {0.0}
        assert set(statuses(found).values()) == {PASS}
        assert not result.examples

    @pytest.mark.slow
    def test_both_ways_of_scoring_agree(self):
        """A pointwise ranker that is said to be listwise has the same rates: the two changed documents do not mix."""
        for flaw in (read_the_lead, love_short_texts, fear_capitals):
            _, alone = measure(Planted(flaw))
            _, whole = measure(Planted(flaw, pointwise=False), listwise_queries=0)
            assert {n: one.values for n, one in alone.items()} == {n: one.values for n, one in whole.items()}


class Counting:
    """A ranker that counts a letter in the body: all ranks are known by hand."""

    name = "counting"
    pointwise = True

    def __init__(self, score):
        self._score = score

    def open(self, collection):
        return self

    def score(self, slates):
        return [np.array([self._score(doc.body) for doc in slate.docs], dtype=float) for slate in slates]


def letters(count: int, ranker, grades=None) -> Experiment:
    """One query and a list whose documents have 100, 99, ... times the letter x."""
    docs = {f"d{i:02}": Doc(f"{'x' * (100 - i)} Aa. Bb.") for i in range(count)}
    candidates = {"q": {docno: float(-i) for i, docno in enumerate(docs)}}
    collection = Collection(
        "letters", MemoryCorpus(docs), {"q": Query("cc")}, {"q": grades} if grades else {}, candidates=candidates
    )
    return Experiment(collection, {"counting": ranker})


class TestByHand:
    def test_case(self):
        found = DocumentForm().run(letters(15, Counting(lambda body: body.count("x")))).tables["documents"]
        upper = found[found["test"] == "upper_case"]
        assert upper["rank before"].tolist()[0] == 1
        assert 11 <= upper["rank before"].tolist()[1] <= 15
        assert upper["rank after"].tolist()[0] == 14, "below the others, but for the second changed document"
        assert upper["moved"].tolist() == [True, False]

    def test_a_rise(self):
        ranker = Counting(lambda body: body.count("x") + 1000 * body.isupper())
        found = DocumentForm().run(letters(15, ranker)).tables["documents"]
        upper = found[found["test"] == "upper_case"]
        assert upper["rank after"].tolist() == [1, 2]
        assert upper["moved"].tolist() == [False, True]

    def test_ties_count_as_staying(self):
        """Upper case gives the score of the tenth document, so either order would be right."""
        ranker = Counting(
            lambda body: 90.5 if body.isupper() else max(90.5, body.count("x")) if body.count("x") > 88 else 0
        )
        found = DocumentForm().run(letters(20, ranker)).tables["documents"]
        assert not found[found["test"] == "upper_case"]["moved"].any()

    def test_relevant_documents_are_preferred_and_spared(self):
        grades = {"d01": 1, **{f"d{i}": 1 for i in range(10, 14)}}
        found = DocumentForm().run(letters(15, Counting(lambda body: body.count("x")), grades)).tables["documents"]
        assert set(found["document"]) == {"d01", "d14"}

    def test_a_change_takes_the_first_document_to_which_it_applies(self):
        one = letters(40, Counting(lambda body: body.count("x")))
        docs = dict(one.collection.docs.items())
        for docno in ("d02", "d25", "d35"):
            docs[docno] = Doc(f"{docs[docno].body} In 1912.")
        found = DocumentForm().run(Experiment(replace(one.collection, docs=MemoryCorpus(docs)), one.models))
        table = found.tables["documents"]
        years = table[table["test"] == "later_years"]
        assert years["document"].tolist() == ["d02", "d25"], "of the first three, and of ranks 11 to 30"
        assert years["rank after"].tolist() == years["rank before"].tolist() == [3, 26]

    def test_short_lists_and_constant_scores(self):
        with pytest.raises(NotApplicable, match="more than 10 documents"):
            DocumentForm().run(letters(10, Counting(lambda body: body.count("x"))))
        with pytest.raises(NotApplicable, match="more than 10 documents"):
            DocumentForm().run(letters(15, Counting(lambda body: 1)))


class TestRunning:
    def test_values_counts_and_changes_that_do_not_apply(self):
        result, found = measure(Planted(fear_capitals, 0.25))
        for one in found.values():
            assert np.mean(list(one.values.values())) == pytest.approx(one.value)
            assert set(one.values.values()) <= {0.0, 100.0}
            assert one.low <= one.value <= one.high
            assert one.n == len(one.values)
            assert one.against
        table = result.tables["form"].set_index("test")
        assert list(table.index) == [change.name for change in FORM_CHANGES]
        years = table.loc["later_years"]
        assert years["out not applicable"] == LISTS - found[name_test(FALLS_OUT, "later_years")].n > 0
        assert name_test(JUMPS_IN, "duplicate") not in found
        assert name_test(FALLS_OUT, "unrelated_sentence") not in found
        one = found[name_test(FALLS_OUT, "upper_case")]
        assert table.loc["upper_case", "out of"] == f"{round(one.value * one.n / 100)} of {one.n}"

    def test_queries_are_nested_and_repeatable(self):
        name = name_test(FALLS_OUT, "upper_case")
        drawn = [set(measure(Planted(), queries=count)[1][name].values) for count in (5, 20, 0)]
        assert [len(one) for one in drawn] == [5, 20, LISTS]
        assert drawn[0] < drawn[1] < drawn[2]
        assert len(measure(Planted(pointwise=False))[1][name].values) == 25

    def test_lexical_rankers_pass_without_judgements(self):
        models = {name: RANKERS.build(name) for name in ("bm25", "ql")}
        unjudged = Experiment(replace(sample(), qrels={}), models, limit=50)
        result = DocumentForm().run(unjudged)
        assert {one.ranker for one in result.findings} == {"bm25", "ql"}
        assert max(one.value for one in result.findings) < WARN_THRESHOLD
        assert any("query-document pairs for bm25" in note for note in result.notes)

    def test_settings(self):
        with pytest.raises(BadInput, match="listwise_queries"):
            DocumentForm(listwise_queries=-1)
        assert "document_form" in list_default_tasks()


def test_excerpts_show_the_difference():
    long = "word " * 500
    before, after = excerpt_difference(long, long + "END", 400)
    assert "END" in after
    assert "END" not in before
    assert excerpt_difference("a", "b") == ("a", "b")
