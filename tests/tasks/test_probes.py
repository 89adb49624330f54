"""Behaviour: the laws that hold for any ranker whose preferences are known beforehand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

from shaketable.api.ranker_names import build_models
from shaketable.core.documents import Scores, Slate
from shaketable.core.errors import BadInput, UnknownName
from shaketable.core.protocols import TextPair
from shaketable.core.registries import PROBES
from shaketable.core.results import MARK_SUFFIX
from shaketable.datasets.sample import read_sample
from shaketable.experiment import Experiment
from shaketable.measures.preference import MIN_SAMPLES
from shaketable.nlp.analyzer import Analyzer
from shaketable.probes.batch import PairTable, draw_batch
from shaketable.probes.suite import format_probe_name, select_probes
from shaketable.scoring.engine import ScoringEngine
from shaketable.tasks._probe_scoring import score_differences
from shaketable.tasks._probe_tables import USER_PAIRS_TABLE
from shaketable.tasks.probes import ProbesTask
from tests.toys import Overlap

SHUFFLES = ("shuffle-*", "reverse-*")


@pytest.fixture(scope="module")
def sample():
    return read_sample()


def experiment(collection, **models) -> Experiment:
    return Experiment(collection, build_models(models), split="test", limit=12, depth=20)


@dataclass
class Constant:
    """Likes everything alike."""

    name: str = "constant"
    pointwise: bool = True

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        return [np.zeros(len(slate.docs)) for slate in slates]


@dataclass
class Terms:
    """Counts the terms of a text: it prefers the longer text."""

    name: str = "terms"
    pointwise: bool = True

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        return [np.array([float(len(Analyzer()(doc.text))) for doc in slate.docs]) for slate in slates]


@dataclass
class Listwise:
    """A score that depends on the other texts of the list."""

    name: str = "listwise"

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        ranks = []
        for slate in slates:
            shared = [len(set(slate.query.split()) & set(doc.text.lower().split())) for doc in slate.docs]
            ranks.append(np.argsort(np.argsort(shared, kind="stable"), kind="stable").astype(float))
        return ranks


def details(collection, tests, delta=None, **models):
    result = ProbesTask(probes=tests, delta=delta, delta_queries=5).run(experiment(collection, **models))
    return result.tables["details"]


def test_a_bag_of_words_is_blind_to_order(sample):
    found = details(sample, SHUFFLES, delta=0.0, bm25="bm25", ql="ql")
    assert set(found["name"]) >= {"shuffle-words", "shuffle-sentences", "shuffle-prepositions"}
    whole = found[found["documents"] == "all"]
    assert (whole["samples"] > MIN_SAMPLES / 4).all()
    assert (found["s"] == 0).all()
    assert (found["mean"] == 0).all()


def test_bm25_always_prefers_more_matches_in_as_many_words(sample):
    found = details(sample, ("tf-given-length",), delta=0.0, bm25="bm25")
    assert found["s"].iloc[0] == 1.0


def test_a_constant_ranker_prefers_nothing(sample):
    found = details(sample, (), constant=Constant())
    assert len(found) > 60
    assert (found["s"] == 0).all()
    assert (found["delta"] == 0).all()
    assert not found["significant"].any()


def test_a_ranker_that_counts_words_shows_the_length_and_nothing_else(sample):
    """Of texts as long as each other it prefers none."""
    tests = ("length-given-*", "*-given-length", *SHUFFLES, "prepend-query")
    found = details(sample, tests, delta=0.0, terms=Terms())
    s = found[found["documents"] == "all"].set_index("name")["s"]
    assert s["prepend-query"] == 1.0
    lengths = [key for key in s.index if key.startswith("length-given")]
    assert (s[lengths] == 1).all()
    others = s.index.difference([*lengths, "prepend-query", "relevance-given-length-within-3"])
    assert len(others) > 12
    assert (s[others] == 0).all()


def test_turning_the_texts_round_negates_s(sample):
    @dataclass(frozen=True)
    class Turned:
        probe: object
        strategy: str = "own"
        symmetric: bool = False

        def unavailable_reason(self, context):
            return ""

        def draw_pairs(self, context):
            for one in self.probe.draw_pairs(context):
                if isinstance(one, TextPair):
                    yield TextPair(one.query, one.second, one.first, one.qid)

    place = experiment(sample, bm25="bm25")
    context, units = ProbesTask()._make_context(place), PairTable()
    for text in ("matched('relevance', 'sum_tf')", "prepend_query", "fluency"):
        probe = PROBES.build(text)
        drawn = {"there": draw_batch(probe, context, units), "back": draw_batch(Turned(probe), context, units)}
        found = score_differences(place, "bm25", drawn, units)
        assert found["there"].tolist() == (-found["back"]).tolist()
        assert found["there"].any()


def test_each_distinct_pair_is_asked_for_once(sample):
    ranker = Overlap()
    place = Experiment(sample, build_models({"overlap": ranker}), ScoringEngine(), split="test", limit=6, depth=10)
    ProbesTask(probes=("*-given-*", "shuffle-words", "prepend-query"), delta=0.0).run(place)
    context, units = ProbesTask()._make_context(place), PairTable()
    for probe in select_probes(("*-given-*", "shuffle-words", "prepend-query")):
        draw_batch(probe, context, units)
    assert ranker.asked == len(units.pairs)


def test_a_ranker_of_lists_is_shown_the_changed_text_among_the_others(sample):
    place = experiment(sample, listwise=Listwise())
    asked: list[Slate] = []

    class Watched(Listwise):
        def score(self, slates):
            asked.extend(slates)
            return super().score(slates)

    place = experiment(sample, listwise=Watched())
    task = ProbesTask(probes=("prepend-query", "relevance-given-length"), max_documents=15)
    result = task.run(place)
    found = result.tables["details"].set_index("name")
    assert (found["delta"] == 0).all(), "ranks: every difference counts"
    sizes = {len(slate.docs) for slate in asked}
    assert 20 in sizes
    assert 2 in sizes
    pairs = [slate for slate in asked if len(slate.docs) == 2]
    assert {Slate(slate.query, slate.docs[::-1]) for slate in pairs} == set(pairs), "in both orders"
    assert found.loc["prepend-query", "s"].max() > 0.5


def test_the_same_samples_have_the_same_name_whatever_is_asked_beside(sample):
    alone = details(sample, ("shuffle-words",), bm25="bm25").set_index("name")["hash"]
    beside = details(sample, ("prepend-query", "shuffle-words"), ql="ql").set_index("name")["hash"]
    assert set(alone["shuffle-words"]) == set(beside["shuffle-words"])
    other = ProbesTask(probes=("shuffle-words",), delta_queries=5).run(
        Experiment(sample, build_models(["bm25"]), seed=1, split="test", limit=12, depth=20)
    )
    assert set(other.tables["details"]["hash"]) != set(alone)


def test_notes_name_the_original_of_each_token_manipulation(sample):
    probes = ("reverse-words", "reverse_words(against='raw')", "prepend-query")
    result = ProbesTask(probes=probes, delta_queries=5, max_documents=20).run(experiment(sample, bm25="bm25"))
    notes = [note for note in result.notes if note.startswith("Compared with")]
    assert [note.partition(": ")[2] for note in notes] == ["Reverse words.", "Reverse words(against=raw)."]
    assert "tokens" in notes[0]
    assert "raw text" in notes[1]


def test_deltas_are_measured_on_the_lists_of_all_tested_queries(sample):
    there = experiment(sample, bm25="bm25")
    result = ProbesTask(probes=("tf-given-length",)).run(there)
    assert any(f"on all {len(there.queries)} tested queries of sample: bm25" in note for note in result.notes)
    tops = [sorted(scores.values(), reverse=True)[:10] for scores in there.get_run("bm25").values()]
    gaps = [high - low for top in tops for high, low in pairwise(top)]
    assert result.tables["details"]["delta"].iloc[0] == pytest.approx(np.median(gaps), rel=1e-5)
    few = ProbesTask(probes=("tf-given-length",), delta_queries=5).run(there)
    assert any(f"on 5 of the {len(there.queries)} tested queries of sample" in note for note in few.notes)


def test_the_delta_of_own_pairs_comes_from_their_own_texts(sample, tmp_path):
    """Ten queries or more: the lists are those of the texts of the pairs, not those of the collection."""
    rows = [
        {"query": f"red boat number{i}", "a": f"a red boat, number{i}", "b": f"a boat of {i} sails", "expect": "a"}
        for i in range(12)
    ]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    there = experiment(sample, bm25="bm25")
    result = ProbesTask(probes=("prepend-query",), pairs=str(path), max_documents=20).run(there)
    (note,) = [note for note in result.notes if "on 12 queries of your pairs, over the texts of the pairs" in note]
    assert f"on all {len(there.queries)} tested queries of sample" in note
    details = result.tables["details"].drop_duplicates("strategy").set_index("strategy")["delta"]
    assert details["own"] != details["manipulation"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows[:9]))
    few = ProbesTask(pairs=str(path)).run(there)
    assert not any("of your pairs" in note for note in few.notes), "nine lists are too few"


def test_documents_are_divided_by_the_middle_grade(sample):
    found = details(sample, ("prepend-query",), bm25="bm25")
    parts = set(found["documents"])
    assert "all" in parts
    assert len(parts) == 3
    sizes = found.set_index("documents")["samples"]
    assert sizes["all"] == sizes.drop("all").sum()


def test_slices_of_the_queries_add_up(sample):
    result = ProbesTask(probes=("length-given-relevance",), delta=0.0).run(
        Experiment(sample, build_models(["bm25"]), split="test", depth=20)
    )
    whole, sliced = result.tables["details"].iloc[0], result.tables["by slice"]
    kinds = sliced[sliced["slice"] == "query type"]
    assert len(kinds) > 1
    assert kinds["samples"].sum() <= whole["samples"]
    if kinds["samples"].sum() == whole["samples"]:
        assert (kinds["s"] * kinds["samples"]).sum() == pytest.approx(whole["s"] * whole["samples"])


def test_own_pairs_pass_or_fail(sample, tmp_path):
    rows = [
        {"id": "more", "query": "oak tree", "a": "oak tree oak", "b": "a pine", "expect": "a"},
        {"id": "wrong", "query": "oak tree", "a": "oak tree", "b": "a pine", "expect": "b"},
        {"id": "alike", "query": "oak tree", "a": "oak tree", "b": "tree oak", "expect": "same"},
    ]
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = ProbesTask(pairs=str(path)).run(experiment(sample, bm25="bm25"))
    assert result.tables[USER_PAIRS_TABLE].set_index("id")["passed"].to_dict() == {
        "more": True,
        "wrong": False,
        "alike": True,
    }
    assert set(result.tables["details"]["strategy"]) == {"own"}


def test_few_samples_claim_nothing(sample):
    result = ProbesTask(probes=("fluency", "paraphrase")).run(experiment(sample, bm25="bm25"))
    for name in ("data set transfer", "tests without a direction"):
        (mark,) = result.tables[name][f"bm25{MARK_SUFFIX}"]
        assert mark == " (few)"
    assert not result.findings


def test_crossed_pairs_must_be_right_both_ways(sample):
    result = ProbesTask(probes=("negation",)).run(experiment(sample, bm25="bm25", constant=Constant()))
    table = result.tables["both directions right"].set_index("ranker")
    assert table.loc["constant", "both right"] == 0
    assert 0 <= table.loc["bm25", "both right"] <= 1
    assert (table["chance"] == 0.25).all()


def test_without_judgements_probes_use_the_top_documents(sample):
    from dataclasses import replace

    bare = replace(sample, qrels={}, source="")
    tests = ("relevance-given-length", "tf-given-length", "shuffle-words", "fluency")
    table = experiment(bare, bm25="bm25")
    result = ProbesTask(probes=tests, max_documents=0).run(table)
    left = result.tables["left out"].set_index("test")["reason"]
    assert left["relevance-given-length"] == "the collection has no judgements of these queries"
    details = result.tables["details"].set_index("name")
    assert set(details.index) == {"tf-given-length", "shuffle-words", "fluency"}
    first_ten = sum(min(10, len(scores)) for scores in table.candidates.values())
    assert details.loc["shuffle-words", "samples"] == first_ten, "the first ten documents of each list"
    assert details.loc["tf-given-length", "s"] > 0.9, "BM25 counts words"


def test_invalid_settings_are_refused():
    with pytest.raises(UnknownName, match="probe"):
        ProbesTask(probes=("shufle-*",))
    with pytest.raises(UnknownName, match="shuffle_words"):
        ProbesTask(probes=("shuffle_word",))
    with pytest.raises(UnknownName, match="correction"):
        ProbesTask(correction="none")
    with pytest.raises(BadInput, match="delta"):
        ProbesTask(delta=-1.0)
    assert len({format_probe_name(probe) for probe in select_probes()}) == len(select_probes())
