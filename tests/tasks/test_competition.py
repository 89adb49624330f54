"""The competition: numbers by hand on a tiny one, whose statistics are used, and the one of the sample."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from shaketable.core.documents import Collection, Slate
from shaketable.core.errors import BadInput, NotApplicable, RankerFailed
from shaketable.core.registries import RANKERS, TASKS
from shaketable.datasets.competition import read_competition
from shaketable.datasets.load import load
from shaketable.experiment import Experiment
from shaketable.measures.paired_comparison import query_means
from shaketable.measures.significance import bootstrap_interval
from shaketable.report.page import render_page
from shaketable.scoring.engine import ScoringEngine
from shaketable.tasks.competition import RankCompetition
from shaketable.tasks.runner import run_tasks


@dataclass
class Longer:
    """Prefers the longer text."""

    name: str = "longer"
    pointwise: bool = True

    def open(self, collection):
        return self

    def score(self, slates):
        return [np.array([float(len(doc.text.split())) for doc in slate.docs]) for slate in slates]


@dataclass
class Constant(Longer):
    name: str = "constant"

    def score(self, slates):
        return [np.zeros(len(slate.docs)) for slate in slates]


@dataclass
class Failing(Longer):
    """Fails on a text of one word."""

    name: str = "failing"
    pointwise: bool = False

    def score(self, slates):
        if any(len(doc.text.split()) == 1 for slate in slates for doc in slate.docs):
            raise ValueError("too short")
        return super().score(slates)


LENGTHS = {
    "q1": [{"z": 9}, {"a": 3, "b": 2, "c": 1}, {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 3, "c": 4}],
    "q2": [{"z": 9}, {"a": 2, "b": 2, "c": 1}, {"a": 3, "b": 2, "c": 1}, {"a": 3, "b": 2, "c": 4}],
}
"""query -> rounds -> author -> words. Orders: q1 abc, cba, cba; q2 bac (a tie), abc, cab. In round 0 z is alone."""
GRADES = ["q1 1 a 1", "q1 1 b 0", "q1 2 a 1", "q2 3 b 2", "q2 3 c 0", "q1 0 z 3"]


def write(folder: Path, rounds: Mapping[str, list[Mapping[str, int]]], grades: list[str], text: str = "oak") -> str:
    folder.mkdir(parents=True)
    with (folder / "documents.jsonl").open("w") as out:
        for qid, turns in rounds.items():
            for turn, docs in enumerate(turns):
                for author, words in docs.items():
                    row = {"_id": f"{qid}-{turn}-{author}", "round": turn, "query_id": qid, "author": author}
                    out.write(json.dumps(row | {"text": " ".join([text] * words)}) + "\n")
    (folder / "queries.jsonl").write_text("".join(f'{{"_id": "{qid}", "text": "oak tree"}}\n' for qid in rounds))
    if grades:
        rows = [row.split() for row in grades]
        lines = [f"{qid}\t{qid}-{turn}-{author}\t{grade}\n" for qid, turn, author, grade in rows]
        (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    return str(folder)


@pytest.fixture
def tiny(tmp_path) -> str:
    return write(tmp_path / "tiny", LENGTHS, GRADES)


@pytest.fixture
def longer(collection) -> Experiment:
    return Experiment(collection, {"longer": Longer(), "constant": Constant()})


def rows(result, table: str, *keys: str) -> dict:
    return {tuple(row[key] for key in keys): row for row in result.tables[table].to_dict("records")}


class TestByHand:
    def test_tc_and_kt(self, longer, tiny):
        result = RankCompetition(tiny).run(longer)
        steps = rows(result, "per query", "ranker", "query", "round")
        found = {key[1:]: (row["TC"], row["KT"]) for key, row in steps.items() if key[0] == "longer"}
        assert found == {
            ("q1", 1): (1, 1),  # abc to cba: all three pairs
            ("q1", 2): (0, 0),
            ("q2", 1): (1, 0),  # a and b tied, so their pair has not changed; b stood first by name
            ("q2", 2): (1, pytest.approx(2 / 3)),  # c passes a and b
        }
        row = rows(result, "competition", "ranker")["longer",]
        assert row["TC"] == pytest.approx(3 / 4)
        assert row["KT"] == pytest.approx((1 / 2 + 1 / 3) / 2)
        assert (row["queries"], row["pairs of rounds"]) == (2, 4)
        assert {step["round"] for step in steps.values()} == {1, 2}, "the round of one document is left out"
        assert any("2 documents were alone in their round" in note for note in result.notes)

    def test_effectiveness_is_over_all_judged_rounds(self, longer, tiny):
        row = rows(RankCompetition(tiny).run(longer), "competition", "ranker")["longer",]
        # q1: a first, then third; q2: b third of round 3
        assert row["MAP"] == pytest.approx(((1 + 1 / 3) / 2 + 1 / 3) / 2)
        assert row["nDCG@5"] == pytest.approx(((1 + 1 / 2) / 2 + 1 / 2) / 2)

    def test_a_constant_ranker_is_perfectly_stable(self, longer, tiny):
        row = rows(RankCompetition(tiny).run(longer), "competition", "ranker")["constant",]
        assert row["TC"] == row["KT"] == row["TC high"] == row["KT high"] == 0

    def test_by_round(self, longer, tiny):
        found = rows(RankCompetition(tiny).run(longer), "by round", "ranker", "round")
        assert (found["longer", 2]["TC"], found["longer", 2]["KT"]) == (1, 0.5)
        assert (found["longer", 3]["TC"], found["longer", 3]["KT"]) == (0.5, pytest.approx(1 / 3))
        assert found["longer", 3]["MAP"] == pytest.approx(1 / 3)

    def test_rank_gains_of_rewritten_documents(self, longer, tiny):
        found = rows(RankCompetition(tiny).run(longer), "rewritten documents", "ranker", "documents")
        new, old = found["longer", "rewritten"], found["longer", "left as they were"]
        # q1: a 1 to 3, c 3 to 1, b 2 to 2, c 1 to 1; q2: a 2 to 1, c 3 to 1
        assert (new["number"], new["ranks gained"]) == (6, (0 + 1.5) / 2)
        assert (new["rose %"], new["fell %"]) == ((25 + 100) / 2, (25 + 0) / 2)
        assert (new["rank before"], new["rank after"]) == ((7 / 4 + 5 / 2) / 2, (7 / 4 + 1) / 2)
        # q1: b 2 to 2, a 3 to 3; q2: b 1 to 2, c 3 to 3, a 1 to 2, b 2 to 3
        assert (old["number"], old["ranks gained"]) == (6, (0 - 3 / 4) / 2)

    def test_authors(self, longer, tiny):
        found = rows(RankCompetition(tiny).run(longer), "authors", "ranker", "author")
        assert (found["longer", "c"]["first %"], found["longer", "c"]["mean rank"]) == (
            50,
            (3 + 1 + 1 + 3 + 3 + 1) / 6,
        )
        assert found["longer", "a"]["mean grade"] == 1
        assert ("longer", "z") not in found

    def test_authors_at_the_first_rank(self, longer, tiny):
        examples = [e for e in RankCompetition(tiny).run(longer).examples if e.ranker == "longer"]
        assert [(e.document, e.change, e.rank_before, e.rank_after) for e in examples] == [
            ("c", "round 1 to 2", 3, 1),
            ("c", "round 2 to 3", 3, 1),
            ("a", "round 1 to 2", 2, 1),
        ]
        assert (examples[0].before, examples[0].after, examples[0].query) == ("oak", "oak oak oak", "oak tree")
        assert np.isnan(examples[0].value_before)

    def test_without_judgements(self, longer, tmp_path):
        result = RankCompetition(write(tmp_path / "unjudged", LENGTHS, [])).run(longer)
        assert "MAP" not in result.tables["competition"]
        assert {f.name for f in result.findings} == {"TC", "KT", "difference of TC", "difference of KT"}
        assert rows(result, "competition", "ranker")["longer",]["TC"] == 0.75

    def test_findings(self, longer, tiny):
        findings = {(f.ranker, f.name): f for f in RankCompetition(tiny).run(longer).findings}
        assert findings["longer", "TC"].value == 0.75
        assert findings["longer", "TC"].better == findings["longer", "KT"].better == "lower"
        assert findings["longer", "competition MAP"].better == "higher"
        assert findings["longer", "TC"].n == 2
        assert findings["longer", "difference of TC"].against == "constant"

    def test_limit_and_authors_who_leave(self, collection, tmp_path):
        rounds = {"q1": [{"a": 2, "b": 1}, {"a": 1, "c": 2}, {"c": 2, "a": 3}], "q2": LENGTHS["q2"]}
        data = write(tmp_path / "leaving", rounds, [])
        result = RankCompetition(data).run(Experiment(collection, {"longer": Longer()}, limit=1))
        (step,) = result.tables["per query"].to_dict("records")
        assert (step["query"], step["round"], step["TC"], step["KT"]) == ("q1", 1, 1, 1)
        assert "longer: 1 pairs of rounds could not be compared." in result.notes
        assert "pairs of rankers" not in result.tables


class TestOrders:
    def race(self, tmp_path: Path, queries: int) -> str:
        return write(tmp_path / "race", {f"q{i}": LENGTHS["q1"] for i in range(queries)}, [])

    @pytest.mark.parametrize(("queries", "order"), [(20, "constant is more stable"), (19, "no significant difference")])
    def test_one_is_claimed_of_enough_queries(self, longer, tmp_path, queries, order):
        result = RankCompetition(self.race(tmp_path, queries)).run(longer)
        assert set(result.tables["pairs of rankers"]["order"]) == {order}
        assert set(result.tables["pairs of rankers"]["difference"]) == {0.5}

    def test_and_where_the_interval_leaves_out_nothing(self, collection, tmp_path):
        experiment = Experiment(collection, {"one": Longer(), "same": Longer()})
        result = RankCompetition(self.race(tmp_path, 25)).run(experiment)
        assert set(result.tables["pairs of rankers"]["order"]) == {"no significant difference"}

    def test_intervals_draw_queries_and_not_pairs_of_rounds(self, longer, tiny):
        result = RankCompetition(tiny).run(replace(longer, seed=5))
        frame = result.tables["per query"].query("ranker == 'longer'")
        means = query_means(list(frame["query"]), list(frame["KT"]))
        low, high = bootstrap_interval(list(means.values()), 5)
        row = rows(result, "competition", "ranker")["longer",]
        assert (row["KT low"], row["KT high"]) == (low, high)
        drawn = rows(result, "TC and KT", "ranker", "measure")["longer", "KT"]
        assert (drawn["share"], drawn["low"], drawn["high"]) == (row["KT"], low, high)


class TestStatistics:
    def test_are_those_of_the_collection(self, collection, tmp_path):
        """Other documents of a competition change no score: idf and lengths come from the collection."""
        lists = {"q1": [{"a": 3, "b": 2}, {"a": 1, "b": 2}, {"a": 2, "b": 5}]}
        alone = write(tmp_path / "alone", lists, [])
        crowded = write(tmp_path / "crowded", lists | {f"z{i}": [{"a": 90, "b": 80}] * 3 for i in range(30)}, [])
        orders = []
        for data in (alone, crowded):
            experiment = Experiment(collection, {name: RANKERS.build(name) for name in ("bm25", "ql")})
            frame = RankCompetition(data).run(experiment).tables["per query"].query("query == 'q1'")
            orders.append(frame.reset_index(drop=True))
        assert orders[0].equals(orders[1])

    def test_scores_are_those_of_the_ranker_opened_on_the_collection(self, monkeypatch):
        sample = load("sample")
        experiment = Experiment(sample, {"bm25": RANKERS.build("bm25")})
        asked: list[Slate] = []
        score = experiment.engine.score

        def listen(ranker, slates, *rest):
            asked.extend(slates)
            assert ranker is experiment.get_ranker("bm25")
            return score(ranker, slates, *rest)

        monkeypatch.setattr(experiment.engine, "score", listen)
        result = RankCompetition().run(experiment)
        race = read_competition("sample")
        assert len(asked) == 4 * len(race.queries)
        opened = RANKERS.build("bm25").open(sample)
        docs = race.rounds[1]["q029"]
        (expected,) = opened.score([Slate(race.queries["q029"].text, tuple(docs.values()))])
        best = max(zip(expected, docs, strict=True))[1]
        assert rows(result, "per query", "ranker", "query", "round")["bm25", "q029", 1]["first before"] == best


@pytest.fixture
def result():
    models = {name: RANKERS.build(name) for name in ("bm25", "ql")} | {"constant": Constant()}
    return RankCompetition().run(Experiment(load("sample"), models))


class TestTheSample:
    def test_numbers_make_sense(self, result):
        found = rows(result, "competition", "ranker")
        for name in ("bm25", "ql"):
            row = found[name,]
            assert 0.1 < row["TC low"] < row["TC"] < row["TC high"] < 0.9
            assert 0.05 < row["KT"] < 0.5
            assert (row["queries"], row["pairs of rounds"]) == (12, 36)
        assert found["constant",]["TC"] == found["constant",]["KT"] == 0
        authors = rows(result, "authors", "ranker", "author")
        assert max(authors, key=lambda key: authors[key]["first %"])[1] == "stuffer"
        assert set(result.tables["pairs of rankers"]["order"]) == {"no significant difference"}, (
            "twelve queries are few"
        )

    def test_it_can_be_drawn_and_read(self, result):
        assert result.examples
        for example in result.examples:
            assert example.before != example.after
            assert example.rank_after == 1 < example.rank_before
        html = render_page("A competition", {}, [result], {})
        assert html.count("<svg") >= len(result.figures) == 4
        assert "<ins>" in html

    def test_its_rankers_may_fail_on_some_lists(self, collection, tmp_path):
        short = {"a": 1, "b": 2}
        rounds = {"q1": [{"a": 2, "b": 3}, {"a": 3, "b": 2}, short, {"a": 2, "b": 3}], "q2": [short, short]}
        experiment = Experiment(collection, {"failing": Failing()}, ScoringEngine(keep_going=True))
        (result,), _ = run_tasks(experiment, [RankCompetition(write(tmp_path / "race", rounds, []))])
        (step,) = result.tables["per query"].to_dict("records")
        assert (step["query"], step["round"], step["next"]) == ("q1", 0, 1), "a round that failed is not stepped over"
        assert "failing: 3 pairs of rounds could not be compared." in result.notes
        assert {failure.ranker for failure in result.failures} == {"failing"}
        none = RankCompetition(write(tmp_path / "short", {"q": [{"a": 1, "b": 1}] * 2}, []))
        with pytest.raises(RankerFailed, match=r"ranked no two consecutive rounds of the 1 queries.*too short"):
            none.run(experiment)


def test_it_is_left_out_where_there_is_none(experiment, tiny):
    results, skipped = run_tasks(experiment, [TASKS.build("agreement"), TASKS.build("competition")])
    assert [result.task for result in results] == ["agreement"]
    assert skipped["competition"].startswith(
        "it needs the documents of a competition, written in rounds; name their folder"
    )
    with pytest.raises(NotApplicable, match="data='sample'"):
        run_tasks(experiment, [TASKS.build("competition")])
    with pytest.raises(BadInput, match="there is no competition 'nowhere'"):
        run_tasks(experiment, [TASKS.build("competition(data='nowhere')")])
    (result,), _ = run_tasks(experiment, [TASKS.build(f"competition(data={tiny!r})")])
    assert {finding.task for finding in result.findings} == {f"competition(data={tiny!r})"}


def test_the_sample_in_part_has_it_too(collection: Collection):
    part = load("sample?split=test")
    assert RankCompetition().run(Experiment(part, {"longer": Longer()})).task == "competition"


def test_asrc_with_word_statistics_of_another_collection(shared_data):
    data = str(shared_data / "competition" / "asrc")
    experiment = Experiment(load("sample"), {"bm25": RANKERS.build("bm25")})
    row = rows(RankCompetition(data).run(experiment), "competition", "ranker")["bm25",]
    assert (row["queries"], row["pairs of rounds"]) == (31, 31 * 7)
    assert 0.2 < row["TC"] < 0.5
    assert 0.1 < row["KT"] < 0.3
