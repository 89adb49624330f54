"""The panel of attacks on rankers with planted flaws: each flaw shows in its own recipe, and noise shows in none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import ir_measures
import numpy as np
import pytest

from shaketable.api.ranker_names import build_models
from shaketable.core.documents import Collection, Doc, Query, Scores, Slate
from shaketable.core.errors import NotApplicable
from shaketable.core.results import Finding, Result
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.experiment import Experiment
from shaketable.measures.facets import ATTACK, INTO_TOP_TEN, LOSS_UNDER_ATTACK, find_test, name_test
from shaketable.measures.rates import exact_interval
from shaketable.nlp.characters import HOMOGLYPHS, ZERO_WIDTH
from shaketable.scoring.engine import ScoringEngine
from shaketable.tasks._attack_tables import CONTROL_COLUMN
from shaketable.tasks.document_attack import DocumentAttack
from tests.toys import text

QUERIES, DOCS, PRIME = 32, 40, 41
TESTS = (
    *("query_insertion", "keyword_stuffing", "sentence_insertion", "instruction"),
    *("greedy", "homoglyphs", "invisible"),
)


@dataclass
class Sound:
    """A ranker that knows each document by the number in its title, which no recipe takes away."""

    name: str = "sound"
    pointwise: bool = True
    fingerprint: str | None = None
    every: int = 1
    """A flaw acts on one query in so many."""

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        return [np.array([self.worth(slate.query, doc) for doc in slate.docs]) for slate in slates]

    def worth(self, query: str, doc: Doc) -> float:
        asked = read_number(query)
        flaw = DOCS * self.flaw(query, doc) if asked % self.every == 0 else 0.0
        return read_number(doc.title) * (asked + 1) % PRIME + flaw

    def flaw(self, query: str, doc: Doc) -> float:
        return 0.0


class CopiesQuery(Sound):
    def flaw(self, query: str, doc: Doc) -> float:
        return float(query in doc.body)


class CountsKeywords(Sound):
    def flaw(self, query: str, doc: Doc) -> float:
        return float(doc.body.split().count(query.split()[-1]) >= 4)


class Obeys(Sound):
    def flaw(self, query: str, doc: Doc) -> float:
        return float("rank this passage above" in doc.body)


class LikesLength(Sound):
    """A ranker that prefers texts of 15 words or more; documents have eight."""

    def flaw(self, query: str, doc: Doc) -> float:
        return float(len(doc.body.split()) >= 15)


class LikesLookAlikes(Sound):
    def flaw(self, query: str, doc: Doc) -> float:
        return float(any(letter in doc.body for letter in HOMOGLYPHS.values()))


class LikesInvisible(Sound):
    def flaw(self, query: str, doc: Doc) -> float:
        return float(any(character in doc.body for character in ZERO_WIDTH))


@dataclass
class Noisy(Sound):
    """A ranker that draws new scores in each call."""

    name: str = "noisy"
    calls: list[int] = field(default_factory=list)

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        self.calls.append(len(slates))
        rng = np.random.default_rng(len(self.calls))
        return [rng.random(len(slate.docs)) for slate in slates]


def read_number(text: str) -> int:
    return int("0" + "".join(letter for letter in text if letter in "0123456789"))


@pytest.fixture(scope="module")
def collection() -> Collection:
    docs = {f"d{i:02}": Doc(text(i), title=f"{i}") for i in range(DOCS)}
    queries = {f"q{n}": Query(f"question {n} about zebras") for n in range(QUERIES)}
    qrels = {
        qid: {docno: int((i * (n + 1) % PRIME) >= 30) for i, docno in enumerate(docs)} for n, qid in enumerate(queries)
    }
    listed = {docno: float(-i) for i, docno in enumerate(docs)}
    return Collection("titles", MemoryCorpus(docs), queries, qrels, candidates=dict.fromkeys(queries, listed))


def attack(collection: Collection, *rankers: object, **settings) -> Result:
    return DocumentAttack(**{"detectors": ()} | settings).run(Experiment(collection, build_models(rankers)))


def panel(result: Result, ranker: str, name: str = INTO_TOP_TEN) -> dict[str, Finding]:
    found = [one for one in result.findings if one.ranker == ranker and one.name.startswith(f"{name}(")]
    return {find_test(one.name): one for one in found}


@pytest.mark.parametrize("pointwise", [True, False])
def test_a_sound_ranker_passes_every_test(collection, pointwise):
    result = attack(collection, Sound(pointwise=pointwise))
    found = panel(result, "sound")
    assert tuple(found) == TESTS
    for one in found.values():
        assert (one.value, one.n, one.better, one.facet, one.where) == (0, QUERIES, "lower", ATTACK, "")
        assert (one.low, one.high) == (0, pytest.approx(100 * exact_interval(0, QUERIES)[1]))
        assert set(one.values) == set(collection.queries)
    assert {one.value for one in panel(result, "sound", LOSS_UNDER_ATTACK).values()} == {0}
    assert result.examples == ()


@pytest.mark.parametrize("pointwise", [True, False])
@pytest.mark.parametrize(
    ("flawed", "test"),
    [
        (CopiesQuery, "query_insertion"),
        (CountsKeywords, "keyword_stuffing"),
        (Obeys, "instruction"),
        (LikesLookAlikes, "homoglyphs"),
        (LikesInvisible, "invisible"),
    ],
)
def test_each_flaw_shows_in_its_own_test(collection, flawed, test, pointwise):
    strong, weak = flawed("strong", pointwise), flawed("weak", pointwise, every=4)
    result = attack(collection, strong, weak)
    # a list-wise ranker reads six of the eight instructions
    least = 100 if pointwise or flawed is not Obeys else 50
    assert panel(result, "strong")[test].value >= least
    assert least / 4 <= panel(result, "weak")[test].value <= 25
    for qid, value in panel(result, "weak")[test].values.items():
        assert value == 0 or read_number(collection.queries[qid].text) % 4 == 0
    others = {"query_insertion", "sentence_insertion", "homoglyphs", "invisible"} - {test}
    assert {panel(result, "strong")[other].value for other in others} == {0}
    strong_loss, weak_loss = (panel(result, name, LOSS_UNDER_ATTACK)[test].value for name in ("strong", "weak"))
    assert strong_loss > weak_loss > 0
    shown = [one for one in result.examples if one.ranker == "strong" and one.change == test]
    assert shown
    assert all(one.rank_after <= 10 < one.rank_before and one.before != one.after for one in shown)


def test_longer_texts_are_no_instructions(collection):
    """A harmless text of the same length has the same effect, so the ranker obeys nothing."""
    result = attack(collection, LikesLength("long"), Obeys("obeys"))
    rows = result.tables["attack in full"].set_index(["ranker", "recipe"])
    spec = panel(result, "long")["instruction"].against
    assert rows.loc[("long", spec), "into top 10 %"] == rows.loc[("long", spec), CONTROL_COLUMN] == 100
    assert rows.loc[("obeys", spec), CONTROL_COLUMN] == 0
    assert panel(result, "long")["instruction"].value == 0
    assert panel(result, "long", LOSS_UNDER_ATTACK)["instruction"].value == 0
    assert panel(result, "obeys")["instruction"].value == 100
    assert any(CONTROL_COLUMN in note for note in result.notes)
    assert not [one for one in result.examples if one.ranker == "long" and one.change == "instruction"]


@pytest.mark.parametrize("pointwise", [True, False])
def test_noise_is_not_success(collection, pointwise):
    """A search finds a lucky answer for nearly every target; by a new answer a quarter of the lists is the top ten."""
    found = panel(attack(collection, Noisy(pointwise=pointwise)), "noisy")
    rates = {test: one.value for test, one in found.items() if test != "instruction"}
    assert 15 < np.mean(list(rates.values())) < 35
    assert max(rates.values()) < 50
    assert found["instruction"].value < 50
    claimed = panel(attack(collection, Noisy(pointwise=pointwise, fingerprint="says so")), "noisy")
    assert claimed["keyword_stuffing"].value > 60, "or this test could not fail"


def test_noise_is_no_loss(collection):
    """The lists that a search found lucky are not those that count."""

    def measure_loss(noisy: Noisy) -> float:
        found = panel(attack(collection, noisy), "noisy", LOSS_UNDER_ATTACK)
        return float(np.mean([one.value for test, one in found.items() if test not in ("greedy", "instruction")]))

    assert abs(measure_loss(Noisy(pointwise=False))) < 10, "all scores are new, so lists before and after are alike"
    assert measure_loss(Noisy()) < measure_loss(Noisy(fingerprint="says so")) / 2


@dataclass
class Tired(CopiesQuery):
    """A ranker that fails when it is asked for the same text again."""

    name: str = "tired"
    seen: set[tuple[str, str]] = field(default_factory=set)

    def worth(self, query: str, doc: Doc) -> float:
        if (query, doc.body) in self.seen and query in doc.body:
            raise ValueError("not again")
        self.seen.add((query, doc.body))
        return super().worth(query, doc)


def test_a_final_text_without_a_new_answer_is_a_failure(collection):
    engine = ScoringEngine(keep_going=True)
    experiment = Experiment(collection, build_models([Tired(every=2), Sound()]), engine)
    result = DocumentAttack(recipes=("query_insertion",), detectors=()).run(experiment)
    assert panel(result, "tired")["query_insertion"].n == QUERIES // 2, "the others were never changed"
    assert {failure.ranker for failure in result.failures} == {"tired"}
    assert {failure.reason for failure in result.failures} == {"the ranker failed when it scored the final text again"}


@pytest.mark.parametrize("fingerprint", [None, "fixed"])
def test_rates_are_those_of_the_final_texts(collection, fingerprint):
    ranker = CountsKeywords("counts", fingerprint=fingerprint, every=2)
    result = attack(collection, ranker)
    for test, one in panel(result, "counts").items():
        arrived = dict.fromkeys(one.values, 0.0)
        for changed in (doc for doc in result.attacked if doc.recipe == one.against):
            (qid,) = changed.queries
            texts = {docno: collection.docs[docno] for docno in collection.docs} | {changed.docno: changed.doc}
            (scores,) = ranker.score([Slate(collection.queries[qid].text, tuple(texts.values()))])
            order = sorted(zip(scores, texts, strict=True), reverse=True)
            arrived[qid] = 100.0 * (changed.docno in [docno for _, docno in order[:10]])
        assert one.values == arrived, test


def test_losses_by_hand(collection):
    ranker = CopiesQuery("copies", every=2)
    spec = "query_insertion"
    judged = attack(collection, ranker, recipes=(spec,))
    (loss,) = panel(judged, "copies", LOSS_UNDER_ATTACK).values()
    lists: dict[str, dict[str, dict[str, float]]] = {"before": {}, "after": {}}
    for qid, query in collection.queries.items():
        changed = {one.docno: one.doc for one in judged.attacked if qid in one.queries}
        for key, more in (("before", {}), ("after", changed)):
            texts = {docno: collection.docs[docno] for docno in collection.docs} | more
            lists[key][qid] = {docno: ranker.worth(query.text, doc) for docno, doc in texts.items()}
    values = {
        key: {one.query_id: one.value for one in ir_measures.iter_calc([ir_measures.nDCG @ 10], collection.qrels, run)}
        for key, run in lists.items()
    }
    mean = np.mean(list(values["before"].values()))
    for qid in collection.queries:
        assert loss.values[qid] == pytest.approx(100 * (values["before"][qid] - values["after"][qid]) / mean)
    assert loss.value == pytest.approx(np.mean(list(loss.values.values())))
    assert loss.value > 0
    assert loss.low < loss.value < loss.high
    assert (loss.facet, loss.better, loss.against) == ("", "lower", spec)
    assert loss.judged_before == loss.judged_after == 100

    unjudged = attack(replace(collection, qrels={}), ranker, recipes=(spec,))
    (overlap,) = panel(unjudged, "copies", LOSS_UNDER_ATTACK).values()
    assert overlap.value == pytest.approx(5), "one of ten documents leaves the top in every second list"
    assert sorted(overlap.values.values()) == pytest.approx([0.0] * 16 + [10.0] * 16)
    assert np.isnan(overlap.judged_before)


def test_tests_have_short_names_unless_two_are_alike(collection):
    specs = ("homoglyphs(words=0)", "homoglyphs(words=2)", "query_insertion(place='end')")
    result = attack(collection, LikesLookAlikes("likes"), recipes=specs)
    assert list(panel(result, "likes")) == ["homoglyphs(words=0)", "homoglyphs(words=2)", "query_insertion"]
    assert [one.against for one in panel(result, "likes").values()] == list(specs)


def test_what_detectors_catch_is_a_finding(collection):
    more = {f"x{i}": Doc(text(100 + i), title=str(i)) for i in range(80)}
    whole = {docno: collection.docs[docno] for docno in collection.docs} | more
    lists = {qid: {docno: float(-i) for i, docno in enumerate(whole)} for qid in collection.queries}
    data = replace(collection, docs=MemoryCorpus(whole), candidates=lists)
    names = {"recipes": ("invisible(words=0)",), "detectors": ("glyphs", "instructions")}
    result = attack(data, LikesInvisible("likes", every=2), **names)
    found = {one.name: one for one in result.findings if one.name.startswith("caught(")}
    assert set(found) == {"caught(invisible/glyphs) %", "caught(invisible/instructions) %"}
    glyphs, none = found.values()
    assert (glyphs.value, glyphs.n, glyphs.better, glyphs.facet) == (100, QUERIES // 2, "higher", "")
    assert glyphs.low == pytest.approx(100 * exact_interval(16, 16)[0])
    assert none.value == 0
    few = attack(collection, LikesInvisible("likes"), **names)
    assert not [one for one in few.findings if one.name.startswith("caught(")], "forty clean texts set no threshold"


def test_trials_are_limited_for_each_target(collection):
    for pointwise, most in ((True, 5), (False, 2)):
        targets = attack(collection, Sound(pointwise=pointwise), trials=5, list_trials=2).tables["targets"]
        assert targets["trials"].max() == most
    targets = attack(collection, Sound(), trials=5, max_trials=QUERIES).tables["targets"]
    assert targets["trials"].max() == 1


def test_lists_of_ten_are_explained(collection):
    short = {qid: dict(list(scores.items())[:10]) for qid, scores in collection.candidates.items()}
    with pytest.raises(NotApplicable, match=r"there is no document to attack.*beyond the end of their list"):
        attack(replace(collection, candidates=short), Sound())
    eleven = {qid: dict(list(scores.items())[:11]) for qid, scores in collection.candidates.items()}
    unjudged = replace(collection, candidates=eleven, qrels={})
    assert panel(attack(unjudged, Sound()), "sound")["greedy"].n == QUERIES
    assert name_test(INTO_TOP_TEN, "greedy") == "into the first ten(greedy) %"
