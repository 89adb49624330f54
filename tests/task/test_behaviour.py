"""Behaviour: the laws that hold for any ranker whose preferences are known beforehand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from shaketable.bench import Bench
from shaketable.data.sample import read_sample
from shaketable.door.names import named_models
from shaketable.errors import BadInput, UnknownName
from shaketable.measure.preference import FEWEST_SAMPLES
from shaketable.probes.drawn import Units, draw
from shaketable.probes.suite import chosen, name
from shaketable.registry import PROBES
from shaketable.score.road import Road
from shaketable.task.behaviour import OWN, Behaviour, scored
from shaketable.text.tokens import Tokenizer
from shaketable.types import Contrast, Scores, Slate
from tests.toys import Overlap

SHUFFLES = ("shuffle-*", "reverse-*")


@pytest.fixture(scope="module")
def sample():
    return read_sample()


def bench(collection, **models) -> Bench:
    return Bench(collection, named_models(models), split="test", limit=12, depth=20)


@dataclass
class Constant:
    """Likes everything alike."""

    name: str = "constant"
    pointwise: bool = True

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        return [np.zeros(len(slate.docs)) for slate in slates]


@dataclass
class Terms:
    """Counts the terms of a text: it prefers whatever is longer, and knows nothing else."""

    name: str = "terms"
    pointwise: bool = True

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        return [np.array([float(len(Tokenizer()(doc.text))) for doc in slate.docs]) for slate in slates]


@dataclass
class Listwise:
    """The place of a text among the words of its list: what it is worth depends on the others."""

    name: str = "listwise"

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        ranks = []
        for slate in slates:
            shared = [len(set(slate.query.split()) & set(doc.text.lower().split())) for doc in slate.docs]
            ranks.append(np.argsort(np.argsort(shared, kind="stable"), kind="stable").astype(float))
        return ranks


def details(collection, tests, delta=None, **models):
    result = Behaviour(tests=tests, delta=delta, gauge=5).run(bench(collection, **models))
    return result.tables["details"]


def test_a_bag_of_words_is_blind_to_order(sample):
    found = details(sample, SHUFFLES, delta=0.0, bm25="bm25", ql="ql")
    assert set(found["name"]) >= {"shuffle-words", "shuffle-sentences", "shuffle-prepositions"}
    whole = found[found["documents"] == "all"]
    assert (whole["samples"] > FEWEST_SAMPLES / 4).all()
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

        def lacking(self, ground):
            return ""

        def contrasts(self, ground):
            for one in self.probe.contrasts(ground):
                if isinstance(one, Contrast):
                    yield Contrast(one.query, one.second, one.first, one.qid)

    place = bench(sample, bm25="bm25")
    ground, units = Behaviour()._ground(place), Units()
    for text in ("matched('relevance', 'sum_tf')", "prepend_query", "fluency"):
        probe = PROBES.build(text)
        drawn = {"there": draw(probe, ground, units), "back": draw(Turned(probe), ground, units)}
        found = scored(place, "bm25", drawn, units)
        assert found["there"].tolist() == (-found["back"]).tolist()
        assert found["there"].any()


def test_each_distinct_pair_is_asked_for_once(sample):
    ranker = Overlap()
    place = Bench(sample, named_models({"overlap": ranker}), Road(), split="test", limit=6, depth=10)
    Behaviour(tests=("*-given-*", "shuffle-words", "prepend-query"), delta=0.0).run(place)
    ground, units = Behaviour()._ground(place), Units()
    for probe in chosen(("*-given-*", "shuffle-words", "prepend-query")):
        draw(probe, ground, units)
    assert ranker.asked == len(units.pairs)


def test_a_ranker_of_lists_is_shown_the_changed_text_among_the_others(sample):
    place = bench(sample, listwise=Listwise())
    asked: list[Slate] = []

    class Watched(Listwise):
        def score(self, slates):
            asked.extend(slates)
            return super().score(slates)

    place = bench(sample, listwise=Watched())
    task = Behaviour(tests=("prepend-query", "relevance-given-length"), documents=15)
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
    other = Behaviour(tests=("shuffle-words",), gauge=5).run(
        Bench(sample, named_models(["bm25"]), seed=1, split="test", limit=12, depth=20)
    )
    assert set(other.tables["details"]["hash"]) != set(alone)


def test_deltas_are_measured_on_other_queries(sample):
    result = Behaviour(tests=("tf-given-length",)).run(bench(sample, bm25="bm25"))
    assert any("of the split validation, none of them tested here" in note for note in result.notes)
    assert result.tables["details"]["delta"].iloc[0] > 0


def test_grades_are_told_apart_by_the_middle(sample):
    found = details(sample, ("prepend-query",), bm25="bm25")
    parts = set(found["documents"])
    assert "all" in parts
    assert len(parts) == 3
    sizes = found.set_index("documents")["samples"]
    assert sizes["all"] == sizes.drop("all").sum()


def test_slices_of_the_queries_add_up(sample):
    result = Behaviour(tests=("length-given-relevance",), delta=0.0).run(
        Bench(sample, named_models(["bm25"]), split="test", depth=20)
    )
    whole, sliced = result.tables["details"].iloc[0], result.tables["by slice"]
    kinds = sliced[sliced["slice"] == "kind"]
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
    result = Behaviour(pairs=str(path)).run(bench(sample, bm25="bm25"))
    assert result.tables[OWN].set_index("id")["passed"].to_dict() == {"more": True, "wrong": False, "alike": True}
    assert set(result.tables["details"]["strategy"]) == {"own"}


def test_few_samples_claim_nothing(sample):
    result = Behaviour(tests=("fluency", "paraphrase")).run(bench(sample, bm25="bm25"))
    (fluency,) = result.tables["data set transfer"]["bm25"]
    (paraphrase,) = result.tables["tests without a direction"]["bm25"]
    assert fluency.startswith("(")
    assert paraphrase.startswith("(|")
    assert not result.findings


def test_crossed_pairs_must_be_right_both_ways(sample):
    result = Behaviour(tests=("negation",)).run(bench(sample, bm25="bm25", constant=Constant()))
    table = result.tables["both directions right"].set_index("ranker")
    assert table.loc["constant", "both right"] == 0
    assert 0 <= table.loc["bm25", "both right"] <= 1
    assert (table["chance"] == 0.25).all()


def test_without_judgements_lists_take_their_place_where_relevance_plays_no_part(sample):
    from dataclasses import replace

    bare = replace(sample, qrels={}, source="")
    tests = ("relevance-given-length", "tf-given-length", "shuffle-words", "fluency")
    table = bench(bare, bm25="bm25")
    result = Behaviour(tests=tests, documents=0).run(table)
    left = result.tables["left out"].set_index("test")["reason"]
    assert left["relevance-given-length"] == "the collection has no judgements of these queries"
    details = result.tables["details"].set_index("name")
    assert set(details.index) == {"tf-given-length", "shuffle-words", "fluency"}
    first_ten = sum(min(10, len(scores)) for scores in table.candidates.values())
    assert details.loc["shuffle-words", "samples"] == first_ten, "the first ten documents of each list"
    assert details.loc["tf-given-length", "s"] > 0.9, "BM25 counts words"


def test_what_cannot_be():
    with pytest.raises(UnknownName, match="probe"):
        Behaviour(tests=("shufle-*",))
    with pytest.raises(UnknownName, match="shuffle_words"):
        Behaviour(tests=("shuffle_word",))
    with pytest.raises(UnknownName, match="correction"):
        Behaviour(correction="none")
    with pytest.raises(BadInput, match="delta"):
        Behaviour(delta=-1.0)
    assert len({name(probe) for probe in chosen()}) == len(chosen())
