"""Attacks on documents: every number computed again, on rankers whose answers are known."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import ir_measures
import numpy as np
import pytest

import shaketable
from shaketable.api.ranker_names import build_models
from shaketable.attacks.detectors import compute_alarm_threshold
from shaketable.core.attack_types import RankQuery
from shaketable.core.documents import Collection, Doc, Query, Scores, Slate
from shaketable.core.errors import BadInput, NotApplicable, RankerFailed
from shaketable.core.results import Result
from shaketable.datasets.adversarial_documents import read_adversarial_documents, write_adversarial_documents
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.experiment import Experiment
from shaketable.measures.facets import INTO_TOP_TEN, LOSS_UNDER_ATTACK, name_test
from shaketable.measures.ranking_error import ranking_error
from shaketable.report.gates import GateInput, Threshold
from shaketable.scoring.engine import ScoringEngine
from shaketable.tasks import _attack_run
from shaketable.tasks._attack_notes import MIN_CLEAN_TEXTS
from shaketable.tasks.agreement import Agreement
from shaketable.tasks.document_attack import DocumentAttack
from shaketable.tasks.runner import run_tasks
from tests.toys import text

pytestmark = pytest.mark.slow

DOCS, PUSH = 127, 5.5


def value(query: str, body: str) -> float:
    """Return a distinct score for each of 127 documents; each "up" adds 5.5 ranks, each "down" removes as many."""
    asked, number = re.search(r"\d+", query), re.search(r"number (\d+)", body)
    place = int(number[1]) * (int(asked[0]) + 2 if asked else 1) % DOCS if number else 0
    words = body.split()
    return place + PUSH * (words.count("up") - words.count("down"))


@dataclass
class Numbers:
    """A text's score is its value, for itself."""

    name: str = "numbers"
    pointwise: bool = True
    sign: int = 1
    """-1 likes what others dislike."""
    asked: int = 0

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        self.asked += sum(len(slate.docs) for slate in slates)
        return [np.array([self.sign * value(slate.query, doc.text) for doc in slate.docs]) for slate in slates]


@dataclass
class Standing(Numbers):
    """A text's score is its standing in the list: the same order, but nothing can be scored by itself."""

    name: str = "standing"
    pointwise: bool = False

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        return [np.argsort(np.argsort(scores)) / len(scores) for scores in super().score(slates)]


class Constant:
    name, pointwise = "constant", True

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        return [np.ones(len(slate.docs)) for slate in slates]


class Choosy(Numbers):
    """Fails on changed texts for one of the queries."""

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        for slate in slates:
            if slate.query == "query 2" and any("up" in doc.text.split() for doc in slate.docs):
                raise ValueError("no ups for query 2")
        return super().score(slates)


class Broken:
    name, pointwise = "broken", True

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        raise ValueError("never works")


@dataclass(frozen=True)
class Put:
    """A recipe that puts a word before the body, as often as each of the numbers says."""

    word: str = "up"
    times: tuple[int, ...] = (1, 3)

    def open(self, knowledge):
        return self

    def steps(self, case, draws):
        yield RankQuery([replace(case.doc, body=f"{self.word} " * n + case.doc.body) for n in self.times])


PUT = f"{__name__}:Put"
DOWN = f"{__name__}:Put(word='down')"
ONLY_DOWN = f"{__name__}:Put(word='down', times=(2,))"


@pytest.fixture(autouse=True)
def no_encoder(monkeypatch):
    """Similarities are measured elsewhere, and an encoder takes seconds to open."""
    monkeypatch.setattr(_attack_run, "make_encoder", lambda: None)


@pytest.fixture
def numbers() -> Collection:
    """Documents with numbers, a list of the last hundred of them for each of six queries; a third is relevant."""
    docs = {f"d{i:03}": Doc(f"number {i} {text(i, 5)}") for i in range(DOCS)}
    queries = {f"q{n}": Query(f"query {n}") for n in range(6)}
    listed = {docno: float(i) for i, docno in enumerate(docs) if i >= DOCS - 100}
    qrels = {
        qid: {docno: int((i + n) % 3 == 0) for i, docno in enumerate(docs) if (i + n) % 3 < 2}
        for n, qid in enumerate(queries)
    }
    return Collection("numbers", MemoryCorpus(docs), queries, qrels, candidates=dict.fromkeys(queries, listed))


def experiment(collection: Collection, *rankers: object, **settings) -> Experiment:
    return Experiment(collection, build_models(rankers or [Numbers()]), **settings)


def attack(on: Experiment, **settings) -> Result:
    return DocumentAttack(**{"recipes": (PUT,), "targets": 9, "queries": 0, "detectors": ()} | settings).run(on)


def order(query: str, texts: Mapping[str, str], sign: int = 1) -> list[str]:
    """Sort by value, then by docno, both descending."""
    return sorted(texts, key=lambda docno: (sign * value(query, texts[docno]), docno), reverse=True)


def list_texts(collection: Collection, qid: str) -> dict[str, str]:
    return {docno: collection.docs[docno].text for docno in collection.candidates[qid]}


def compute_rank(collection: Collection, qid: str, docno: str, body: str, sign: int = 1) -> int:
    """Return the rank of a document with this text in the list of a query."""
    texts = list_texts(collection, qid) | {docno: body}
    return 1 + order(collection.queries[qid].text, texts, sign).index(docno)


class TestTargets:
    def test_one_from_each_range_of_the_rankers_own_list(self, numbers):
        targets = attack(experiment(numbers)).tables["targets"]
        assert len(targets) == 9 * 6
        wanted = [f"{first}-{first + 9}" for first in range(11, 100, 10)]
        for qid, some in targets.groupby("query"):
            assert list(some["range"]) == wanted
            for row in some.to_dict("records"):
                first, last = map(int, row["range"].split("-"))
                assert first <= row["before"] <= last
                assert row["before"] == compute_rank(numbers, qid, row["document"], numbers.docs[row["document"]].text)

    def test_none_is_relevant_unless_any_may_be(self, numbers):
        def grades(result: Result) -> set[int | None]:
            rows = result.tables["targets"].to_dict("records")
            return {numbers.qrels[row["query"]].get(row["document"]) for row in rows}

        assert grades(attack(experiment(numbers))) == {0, None}
        assert grades(attack(experiment(numbers), any_grade=True)) == {0, 1, None}

    def test_ranges_without_a_document_that_may_be_attacked(self, numbers):
        grades = dict.fromkeys(order("query 0", list_texts(numbers, "q0"))[10:30], 1)
        result = attack(experiment(replace(numbers, qrels={"q0": grades})))
        assert result.tables["targets"]["range"].iloc[0] == "31-40"
        assert len(result.tables["targets"]) == 7
        said = (
            "7 documents were attacked in 1 lists, where 9 were requested: of the rank ranges, "
            "2 have relevant documents only."
        )
        assert f"numbers: {said}" in result.notes

    def test_lists_that_are_shorter_than_the_ranges(self, numbers):
        short = dict(list(numbers.candidates["q0"].items())[:25])
        result = attack(experiment(replace(numbers, candidates=numbers.candidates | {"q0": short}, qrels={})))
        sizes = result.tables["targets"]["query"].value_counts()
        assert sizes["q0"] == 2
        assert set(sizes.drop("q0")) == {9}
        said = (
            "47 documents were attacked in 6 lists, where 54 were requested: of the rank ranges, "
            "7 are beyond the end of their list."
        )
        assert f"numbers: {said}" in result.notes

    def test_lists_that_are_too_short_for_any(self, numbers):
        with pytest.raises(BadInput, match="9 ranges of ranks from 11 on do not fit into lists of 15 documents"):
            attack(experiment(numbers, depth=15))
        few = {qid: dict(list(scores.items())[:10]) for qid, scores in numbers.candidates.items()}
        with pytest.raises(
            BadInput, match=r"there is no document to attack: numbers: 0 documents were attacked in 6 lists.*list$"
        ):
            attack(experiment(replace(numbers, candidates=few)))

    def test_queries_are_drawn_by_the_seed(self, numbers):
        drawn = [set(attack(experiment(numbers, seed=seed), queries=2).tables["targets"]["query"]) for seed in range(6)]
        assert all(len(some) == 2 for some in drawn)
        assert len(set(map(frozenset, drawn))) > 2

    def test_the_same_seed_gives_the_same_result(self, numbers):
        once, again = (attack(experiment(numbers, seed=3), queries=3) for _ in range(2))
        assert once.attacked == again.attacked
        for name, table in once.tables.items():
            assert table.equals(again.tables[name]), name
        other = attack(experiment(numbers, seed=4), queries=3)
        assert set(other.tables["targets"]["document"]) != set(once.tables["targets"]["document"])


def best(numbers: Collection, qid: str, docno: str, word: str = "up", times: Sequence[int] = (1, 3)) -> int:
    body = numbers.docs[docno].text
    ends = [compute_rank(numbers, qid, docno, f"{word} " * n + body) for n in times]
    return min(ends) if word == "up" else max(ends)


class TestNumbers:
    def test_ranks_equal_those_of_lists_ranked_again(self, numbers):
        for ranker in (Numbers(), Standing()):
            targets = attack(experiment(numbers, ranker)).tables["targets"]
            assert len(targets) == 54
            for row in targets.to_dict("records"):
                assert row["after"] == best(numbers, row["query"], row["document"])
                assert row["gain"] == row["before"] - row["after"]
                assert row["success"] == (row["after"] < row["before"])
                assert row["changed"] == 3
                assert row["words"] == 7
                assert row["trials"] == 2
                assert row["pairs"] == (3 if ranker.pointwise else 300), "two trials, and the final text once more"

    def test_the_summary_by_the_targets(self, numbers):
        result = attack(experiment(numbers))
        targets, (row,) = result.tables["targets"], result.tables["attack in full"].to_dict("records")
        moves = targets["before"] - targets["after"]
        assert (moves > 0).all(), "three ups are worth sixteen places"
        assert row["targets"] == len(targets)
        assert row["queries"] == 6
        assert row["success %"] == 100 * np.mean(moves > 0)
        assert row["boost"] == pytest.approx(moves.mean())
        assert row["into top 10 %"] == pytest.approx(100 * np.mean(targets["after"] <= 10))
        assert 0 < row["into top 10 %"] < 100
        assert row["top 5 %"] == pytest.approx(100 * np.mean(targets["after"] <= 5))
        assert row["words changed %"] == pytest.approx(100 * 3 / 7)
        assert row["trials"] == 2
        brief = result.tables["attack"].to_dict("records")[0]
        assert brief == {key: row[key] for key in brief}
        parts = result.tables["success by rank"]
        assert list(parts["ranks"]) == [f"{first}-{first + 9}" for first in range(11, 100, 10)]
        assert (parts["targets"] == 6).all()
        assert list(result.tables["success by cost"]["trials"]) == [0, 1]
        assert list(result.tables["success by cost"]["success %"]) == [0, 100]

    def test_an_attack_that_fails_leaves_the_document_alone(self, numbers):
        result = attack(experiment(numbers), recipes=(ONLY_DOWN,))
        assert (result.tables["targets"]["before"] == result.tables["targets"]["after"]).all()
        assert (result.tables["targets"]["changed"] == 0).all()
        assert result.tables["attack"]["success %"].tolist() == [0]
        assert result.attacked == ()
        assert result.examples == ()
        assert result.tables["damage in full"]["LSD"].tolist() == [0]

    @pytest.mark.parametrize("ranker", [Numbers(), Standing()], ids=lambda ranker: ranker.name)
    def test_damage_with_all_changed_documents_at_once(self, numbers, ranker):
        result = attack(experiment(numbers, ranker))
        changed: dict[str, dict[str, str]] = {}
        for one in result.attacked:
            (qid,) = one.queries
            changed.setdefault(qid, {})[one.docno] = one.doc.text
        assert all(len(docs) == 9 for docs in changed.values())
        before, after = {}, {}
        for qid, query in numbers.queries.items():
            before[qid] = order(query.text, list_texts(numbers, qid))
            after[qid] = order(query.text, list_texts(numbers, qid) | changed[qid])
        (row,) = result.tables["damage in full"].to_dict("records")
        wanted = [ir_measures.parse_measure(name) for name in ("RR@10", "RR@100", "nDCG@10")]
        for kind, orders in (("clean", before), ("robust", after)):
            run = {qid: {d: -float(at) for at, d in enumerate(some)} for qid, some in orders.items()}
            means = ir_measures.calc_aggregate(wanted, numbers.qrels, run)
            for measure, mean in means.items():
                assert row[f"{kind} {measure}"] == pytest.approx(mean), (kind, measure)
        assert row["robust nDCG@10"] < row["clean nDCG@10"]
        moves = {
            qid: np.array([at - after[qid].index(docno) for at, docno in enumerate(before[qid])]) for qid in before
        }
        assert row["LSD"] == pytest.approx(np.mean([np.mean(some**2) for some in moves.values()]))
        assert row["LMD"] == pytest.approx(np.mean([np.mean(abs(some)) for some in moves.values()]))
        assert row["top change"] == np.mean([before[qid][0] != after[qid][0] for qid in before])
        turned = [
            np.mean([after[qid].index(a) > after[qid].index(b) for a, b in combinations(before[qid], 2)])
            for qid in before
        ]
        assert row["Kendall"] == pytest.approx(np.mean(turned))
        errors = [
            ranking_error(
                before[qid],
                numbers.qrels[qid],
                {d: [compute_rank(numbers, qid, d, body)] for d, body in changed[qid].items()},
            )
            for qid in before
        ]
        for kind in ("natural", "boundary", "robust"):
            assert row[f"{kind} ranking error"] == pytest.approx(np.mean([getattr(error, kind) for error in errors]))
        assert row["queries"] == 6

    def test_another_measure_of_the_damage(self, numbers):
        damage = attack(experiment(numbers), measure="AP").tables["damage"]
        assert {"clean AP", "robust AP", "clean RR@10"} <= set(damage)

    def test_the_budget_is_for_all_targets_together(self, numbers):
        ranker = Numbers()
        many = f"{__name__}:Put(times=(1, 2, 3, 4, 5))"
        for budget, spent in ((54 * 5 + 1, 54 * 5), (100, 100), (7, 7)):
            targets = attack(experiment(numbers, ranker), recipes=(many,), max_trials=budget).tables["targets"]
            assert targets["trials"].sum() == spent
            assert (targets["trials"] <= 1 + budget // 54).all()
        result = attack(experiment(numbers, ranker), max_trials=7)
        assert any("with 7 trials for each recipe and ranker" in note for note in result.notes)
        for bad in (0, -5):
            with pytest.raises(BadInput, match="max_trials should be 1 or more, or None"):
                DocumentAttack(max_trials=bad)


class TestGoals:
    def test_demotion(self, numbers):
        result = attack(experiment(numbers), recipes=(DOWN,), goal="demote")
        targets = result.tables["targets"]
        for row in targets.to_dict("records"):
            assert row["after"] == best(numbers, row["query"], row["document"], "down")
            assert row["gain"] == row["after"] - row["before"]
        (row,) = result.tables["attack"].to_dict("records")
        assert row["boost"] < 0
        assert row["success %"] == 100 * (targets["after"] > targets["before"]).mean()
        assert any("the percentage of targets that rank strictly lower than before" in note for note in result.notes)
        better = {finding.name: finding.better for finding in result.findings}
        assert better["attack success %"] == "lower"
        assert better["attack boost"] == "higher", "the deeper documents fall, the worse"

    def test_the_first_five(self, numbers):
        """An attack stops at its goal and uses no more trials than it needs."""
        step = f"{__name__}:Stepwise"
        result = attack(experiment(numbers), recipes=(step,), goal="top(k=5)")
        for row in result.tables["targets"].to_dict("records"):
            body = numbers.docs[row["document"]].text
            ends = [compute_rank(numbers, row["query"], row["document"], "up " * n + body) for n in range(1, 31)]
            needed = next((n for n, end in enumerate(ends, 1) if end <= 5), 30)
            assert row["trials"] == needed
            assert row["after"] == ends[needed - 1]
        assert (result.tables["targets"]["after"] <= 5).all()
        assert any(
            "the percentage of targets that rank better for the goal than before" in note for note in result.notes
        )

    def test_one_text_for_several_queries_is_a_new_document(self, numbers):
        result = attack(experiment(numbers), group=2, targets=4)
        targets = result.tables["targets"]
        assert len(targets) == 3 * 4 * 2
        for docno, some in targets.groupby("document", sort=False):
            rows = some.to_dict("records")
            for first, second in zip(rows[::2], rows[1::2], strict=True):
                pair = first["query"], second["query"]
                assert pair in {("q0", "q1"), ("q2", "q3"), ("q4", "q5")}
                assert all(docno not in numbers.candidates[qid] for qid in pair)
                body = numbers.docs[docno].text
                assert [first["before"], second["before"]] == [compute_rank(numbers, qid, docno, body) for qid in pair]
                ends = [[compute_rank(numbers, qid, docno, "up " * n + body) for qid in pair] for n in (1, 3)]
                assert [first["after"], second["after"]] == min(ends, key=sum)
        (one, *_) = result.attacked
        assert len(one.queries) == len(one.ranks_before) == len(one.ranks_after) == 2
        assert "robust ranking error" not in result.tables["damage"]
        (row,) = result.tables["damage in full"].to_dict("records")
        robust = {}
        for qid, query in numbers.queries.items():
            new = {one.docno: one.doc.text for one in result.attacked if qid in one.queries}
            new |= {d: numbers.docs[d].text for d in targets[targets["query"] == qid]["document"] if d not in new}
            texts = list_texts(numbers, qid) | new
            robust[qid] = {d: -float(at) for at, d in enumerate(order(query.text, texts))}
            assert len(robust[qid]) == 104
        (mean,) = ir_measures.calc_aggregate([ir_measures.nDCG @ 10], numbers.qrels, robust).values()
        assert row["robust nDCG@10"] == pytest.approx(mean)

    def test_a_text_is_made_for_one_query_by_default(self):
        assert DocumentAttack().group == inspect.signature(shaketable.attack).parameters["group"].default == 1

    def test_groups_that_cannot_be(self, numbers):
        with pytest.raises(BadInput, match="one text for 7 queries needs at least 7 attacked queries; there are 6"):
            attack(experiment(numbers), group=7)
        with pytest.raises(BadInput, match="no document can be added"):
            attack(experiment(numbers), group=2, targets=28)


@dataclass(frozen=True)
class Stepwise:
    """One "up" more with each trial."""

    def open(self, knowledge):
        return self

    def steps(self, case, draws):
        for n in range(1, 31):
            yield RankQuery([replace(case.doc, body="up " * n + case.doc.body)])


class TestRankers:
    def test_one_that_ranks_nothing_is_left_out(self, numbers):
        result = attack(experiment(numbers, Constant(), Numbers()))
        assert set(result.tables["targets"]["ranker"]) == {"numbers"}
        told = [note for note in result.notes if note.startswith("constant")]
        assert len(told) == 1
        assert "gives all documents the same score in 6 of 6 lists" in told[0]

    def test_alone_it_is_one_sentence(self, numbers):
        with pytest.raises(
            BadInput, match="there is no document to attack: constant gives all documents the same"
        ) as e:
            attack(experiment(numbers, Constant()))
        assert "\n" not in str(e.value)

    def test_a_run_file_takes_no_part(self, numbers, tmp_path):
        rows = [f"{q} Q0 {d} 1 {s} old\n" for q, scores in numbers.candidates.items() for d, s in scores.items()]
        (tmp_path / "old.run").write_text("".join(rows))
        result = attack(experiment(numbers, f"old=run:{tmp_path / 'old.run'}", Numbers()))
        assert set(result.tables["attack"]["ranker"]) == {"numbers"}
        with pytest.raises(BadInput, match="it needs new scores, and run files have none"):
            run_tasks(experiment(numbers, f"old=run:{tmp_path / 'old.run'}"), [DocumentAttack()])

    def test_failures_are_counted_with_keep_going(self, numbers):
        result = attack(experiment(numbers, Choosy("choosy"), Numbers(), engine=ScoringEngine(keep_going=True)))
        sizes = result.tables["attack"].set_index("ranker")["targets"].to_dict()
        assert sizes == {"choosy": 45, "numbers": 54}
        mine = [failure for failure in result.failures if failure.ranker == "choosy"]
        assert len(mine) == 9
        assert {failure.query for failure in mine} == {"query 2"}
        assert set(result.tables["targets"].query("ranker == 'choosy'")["query"]) == set(numbers.queries) - {"q2"}
        with pytest.raises(RankerFailed, match="no ups for query 2"):
            attack(experiment(numbers, Choosy("choosy")))

    def test_one_that_always_fails(self, numbers):
        for settings in ({}, {"group": 2}):
            result = attack(experiment(numbers, Broken(), Numbers(), engine=ScoringEngine(keep_going=True)), **settings)
            assert set(result.tables["attack"]["ranker"]) == {"numbers"}
        with pytest.raises(BadInput, match=r"there is no document to attack: .*never works"):
            attack(experiment(numbers, Broken(), engine=ScoringEngine(keep_going=True)))

    def test_without_judgements(self, numbers):
        result = attack(experiment(replace(numbers, qrels={})))
        assert len(result.tables["targets"]) == 54
        assert not [column for column in result.tables["damage in full"] if "RR" in column or "nDCG" in column]
        assert {finding.name for finding in result.findings} == {
            "attack success %",
            "attack boost",
            name_test(INTO_TOP_TEN, PUT),
            name_test(LOSS_UNDER_ATTACK, PUT),
        }
        assert any("There are no judgements" in note for note in result.notes)

    def test_a_recipe_that_is_named_twice_is_used_once(self, numbers):
        assert attack(experiment(numbers), recipes=(PUT, PUT)).tables["attack"]["targets"].tolist() == [54]


class TestWhatIsLeft:
    def test_gates_read_the_findings(self, numbers):
        result = attack(experiment(numbers, Numbers(), Numbers("other", sign=-1)))
        rules = ("numbers.attack success %<=50", "attack boost < 1000", "robust RR@10>=0", "robust nDCG@10 >= 0")
        held = [
            [r.status == "pass" for r in Threshold.parse(rule).evaluate(GateInput.from_results([result]))]
            for rule in rules
        ]
        assert held == [[False], [True, True], [True, True], [True, True]]
        found = {(f.ranker, f.name): f for f in result.findings}
        (row,) = result.tables["attack in full"].query("ranker == 'numbers'").to_dict("records")
        one = found["numbers", "attack success %"]
        assert (one.value, one.low, one.high) == tuple(row[f"success %{end}"] for end in ("", " low", " high"))
        assert one.n == 6
        assert one.where == ""

    def test_findings_name_the_recipe_where_there_are_several(self, numbers):
        result = attack(experiment(numbers), recipes=(PUT, ONLY_DOWN))
        assert {finding.where for finding in result.findings if not finding.against} == {PUT, ONLY_DOWN}
        assert {(finding.where, finding.against) for finding in result.findings if finding.against} == {
            ("", PUT),
            ("", ONLY_DOWN),
        }
        ruled = Threshold.parse("attack success %<=50").evaluate(GateInput.from_results([result]))
        (worst,) = [ruling for ruling in ruled if ruling.status == "fail"]
        assert f"({PUT})" in worst.message

    def test_examples_have_both_texts(self, numbers):
        result = attack(experiment(numbers))
        assert len(result.examples) == 3
        targets = result.tables["targets"]
        for example in result.examples:
            assert example.before == numbers.docs[example.document].text
            assert example.after in {f"{'up ' * n}{example.before}" for n in (1, 3)}
            assert example.rank_before - example.rank_after == targets["gain"].max()

    def test_documents_for_others(self, numbers):
        result = attack(experiment(numbers))
        assert len(result.attacked) == 54
        for one in result.attacked:
            assert one.original == numbers.docs[one.docno]
            ((qid, query),) = one.queries.items()
            assert query == numbers.queries[qid].text
            assert one.ranks_after == (compute_rank(numbers, qid, one.docno, one.doc.text),)


class TestDetection:
    def test_filters_by_hand(self, numbers):
        result = attack(experiment(numbers), detectors=("spamicity", "glyphs"))
        rows = result.tables["detection in full"].set_index("detector")
        assert (rows["clean texts"] == 100).all()
        assert (rows["texts"] == 54).all()
        assert rows.loc["glyphs", "caught %"] == 0
        assert (rows["false alarms %"] <= 1).all()
        wide = result.tables["detection"].iloc[0]
        assert wide["spamicity"] == rows.loc["spamicity", "caught %"]
        assert not any("too few" in note for note in result.notes)

    def test_too_few_clean_texts_are_mentioned(self, numbers):
        assert np.isinf(compute_alarm_threshold(range(MIN_CLEAN_TEXTS - 1)))
        assert np.isfinite(compute_alarm_threshold(range(MIN_CLEAN_TEXTS)))
        result = attack(experiment(numbers, Numbers(), Standing(), depth=50), targets=4, detectors=("spamicity",))
        assert (result.tables["detection in full"]["caught %"] == 0).all()
        (note,) = [note for note in result.notes if "too few" in note]
        assert note.startswith(f"numbers, standing: the lists have fewer than {MIN_CLEAN_TEXTS} clean texts")


class TestTextsOfOthers:
    @pytest.fixture
    def file(self, numbers, tmp_path):
        """The texts of an attack on a ranker that prefers "up"."""
        path = tmp_path / "attacked.jsonl"
        write_adversarial_documents(attack(experiment(numbers)).attacked, path)
        return path

    def test_they_are_tried_as_they_are(self, numbers, file):
        """A ranker that dislikes "up" ranks all of them lower, and the findings report it."""
        result = attack(experiment(numbers, Numbers("other", sign=-1)), adversarial_documents=str(file), recipes=())
        targets = result.tables["targets"]
        wanted = {(one.docno, *one.queries): one.doc.text for one in read_adversarial_documents(file)}
        assert {(row["document"], row["query"]) for row in targets.to_dict("records")} == wanted.keys()
        for row in targets.to_dict("records"):
            body = numbers.docs[row["document"]].text
            assert row["before"] == compute_rank(numbers, row["query"], row["document"], body, sign=-1)
            changed = wanted[row["document"], row["query"]]
            assert row["after"] == compute_rank(numbers, row["query"], row["document"], changed, sign=-1)
        assert (targets["after"] > targets["before"]).sum() > 40
        assert (targets["trials"] == 1).all()
        assert result.tables["attack"]["success %"].tolist() == [0]
        assert result.tables["attack"]["boost"].iloc[0] < 0
        assert result.tables["damage in full"]["LSD"].iloc[0] > 0
        assert {one.doc.text for one in result.attacked} == set(wanted.values())
        assert {one.ranker for one in result.attacked} == {"other"}

    def test_against_the_same_ranker_nothing_is_new(self, numbers, file):
        again = attack(experiment(numbers), adversarial_documents=str(file)).tables
        first = attack(experiment(numbers)).tables
        for column in ("document", "query", "before", "after", "gain", "changed"):
            assert again["targets"][column].tolist() == first["targets"][column].tolist()
        measured = ["clean RR@10", "robust RR@10", "robust nDCG@10", "LSD", "Kendall"]
        assert again["damage in full"][measured].equals(first["damage in full"][measured])

    def test_texts_of_one_document_are_separated_by_ranker(self, numbers, tmp_path):
        """The same recipe, document and query, and another text for each ranker."""
        path, rows = tmp_path / "two.jsonl", []
        for ranker, n in (("one", 1), ("two", 4)):
            body = "up " * n + numbers.docs["d050"].text
            common = {"queries": {"q1": "query 1"}, "docno": "d050", "recipe": "r", "ranker": ranker}
            rows.append(common | {"text": body})
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        result = attack(experiment(numbers), adversarial_documents=str(path))
        targets = result.tables["targets"].set_index("recipe")["after"].to_dict()
        base = numbers.docs["d050"].text
        assert targets == {
            f"r against {ranker}": compute_rank(numbers, "q1", "d050", "up " * n + base)
            for ranker, n in (("one", 1), ("two", 4))
        }
        assert len(set(targets.values())) == 2
        damage = result.tables["damage in full"].set_index("recipe")["LSD"]
        assert damage["r against two"] > damage["r against one"] > 0

    def test_two_texts_of_one_document_by_one_recipe(self, numbers, tmp_path):
        path = tmp_path / "two.jsonl"
        bodies = ["up " * n + numbers.docs["d050"].text for n in (1, 4)]
        rows = [{"queries": {"q1": "query 1"}, "docno": "d050", "text": body} for body in bodies]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        result = attack(experiment(numbers), adversarial_documents=str(path))
        assert result.tables["targets"]["after"].tolist() == [
            compute_rank(numbers, "q1", "d050", body) for body in bodies
        ]
        assert any(
            "1 texts are further texts" in note and "with the last text of each document" in note
            for note in result.notes
        )

    def test_texts_for_unknown_queries(self, numbers, tmp_path):
        """The first stage finds a list for the query, the text is added to it; a query without a list is mentioned."""
        path = tmp_path / "own.jsonl"
        rows = [{"query": "number oak", "text": "number 126 up"}, {"query": "zzzz", "text": "x"}]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        result = attack(experiment(numbers, depth=20), adversarial_documents=str(path))
        (row,) = result.tables["targets"].to_dict("records")
        assert row["query"] == "line-1"
        assert row["after"] == 1, "no document has a higher number"
        assert row["before"] > 1, "an empty text has none"
        assert any("1 of the 2 documents of" in note and "no list" in note for note in result.notes)
        assert any("is compared with the rank of an empty text" in note for note in result.notes)
        assert "clean RR@10" not in result.tables["damage in full"]

    def test_a_file_for_other_data(self, numbers, file):
        queries = numbers.queries | {"q3": Query("something else 3")}
        with pytest.raises(BadInput, match="the query q3 is 'query 3' in this file and 'something else 3' in numbers"):
            attack(experiment(replace(numbers, queries=queries)), adversarial_documents=str(file))

    def test_a_document_that_is_not_in_the_list_is_added(self, numbers, tmp_path):
        path = tmp_path / "own.jsonl"
        row = {
            "queries": {"q1": "query 1"},
            "docno": "d003",
            "text": "up up number 3",
            "original": {"text": "number 3"},
        }
        path.write_text(json.dumps(row) + "\n")
        (row,) = attack(experiment(numbers), adversarial_documents=str(path)).tables["targets"].to_dict("records")
        assert row["before"] == compute_rank(numbers, "q1", "d003", "number 3")
        assert row["after"] == compute_rank(numbers, "q1", "d003", "up up number 3")


class TestAudits:
    def test_an_audit_goes_on_where_nothing_can_be_attacked(self, numbers):
        """Lists of ten have no rank 11; the other tasks still run."""
        there = experiment(numbers, Numbers(), Numbers("other", sign=-1), depth=10)
        results, skipped = run_tasks(there, [Agreement(), DocumentAttack()])
        assert [result.task for result in results] == ["agreement"]
        ((task, reason),) = skipped.items()
        assert task.startswith("document_attack")
        assert "do not fit into lists of 10 documents" in reason
        with pytest.raises(NotApplicable, match="do not fit"):
            run_tasks(there, [DocumentAttack()])
        with pytest.raises(BadInput, match=r"no task applies: document_attack.*; document_attack"):
            run_tasks(there, [DocumentAttack(), DocumentAttack(goal="demote")])


def test_invalid_settings_are_refused():
    for settings, said in (
        ({"targets": 0}, "targets should be 1 or more"),
        ({"queries": -1}, "queries should be 0 or more"),
        ({"group": 0}, "group should be 1 or more"),
        ({"recipes": ()}, "recipes should be one or more"),
        ({"recipes": ("nonsense",)}, "no recipe is called"),
        ({"goal": "win"}, "no goal is called"),
        ({"goal": "top(k=0)"}, "k should be 1 or more"),
        ({"detectors": ("nose",)}, "no detector is called"),
    ):
        with pytest.raises(Exception, match=re.escape(said)):
            DocumentAttack(**settings)


def test_similarities_where_an_encoder_is_installed(numbers, monkeypatch, tmp_path):
    pytest.importorskip("torch")
    from shaketable.rankers.similarity import make_encoder

    monkeypatch.setattr(_attack_run, "make_encoder", make_encoder)
    if make_encoder() is None:
        pytest.skip("no encoder is installed")
    (tmp_path / "own.jsonl").write_text('{"query": "number oak", "text": "number 126 up"}\n')
    new = attack(experiment(numbers), adversarial_documents=str(tmp_path / "own.jsonl"), similarity=True)
    assert new.tables["targets"]["similarity"].isna().all(), "the original text is unknown"
    result = attack(experiment(numbers), queries=1, targets=2, similarity=True)
    targets = result.tables["targets"]
    assert targets["similarity"].between(0, 1).all()
    assert (targets["similarity"] < 1).all()
    assert result.tables["attack"]["similarity"].iloc[0] == pytest.approx(targets["similarity"].mean())
    assert "similarity" not in attack(experiment(numbers), queries=1, targets=2, similarity=False).tables["attack"]
