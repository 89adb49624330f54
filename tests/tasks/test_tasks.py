"""Variance, risk and agreement on a small experiment, and tasks that do not apply."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shaketable.core.documents import Slate
from shaketable.core.errors import BadInput, RankerFailed
from shaketable.core.registries import TASKS
from shaketable.core.results import ScoreTable
from shaketable.experiment import Experiment
from shaketable.measures.effectiveness import score_table
from shaketable.measures.facets import INTO_TOP_TEN, name_test
from shaketable.report.gates import GateInput, Threshold
from shaketable.scoring.engine import ScoringEngine
from shaketable.tasks import risk, variance
from shaketable.tasks.agreement import Agreement
from shaketable.tasks.runner import run_tasks
from tests.toys import Normalised


class Given:
    def __init__(self, ranker):
        self.ranker = ranker

    def open(self, collection):
        return self.ranker


def test_variance_is_on_average_precision(experiment):
    result = variance.Variance().run(experiment)
    table = result.tables["variance"]
    ap = score_table("AP", experiment.qrels, experiment.get_runs())
    assert table["AP"].tolist() == pytest.approx(ap.values.mean(axis=1).tolist())
    row = ap.row("bm25")
    assert table["VNAP"][0] == pytest.approx(row.var() / row.mean() ** 2)
    assert table["variance of AP"][0] == pytest.approx(((row - row.mean()) ** 2).mean())
    drawn = {(figure.kind, figure.x, figure.y) for figure in result.figures}
    assert {("scatter", "AP", "gMAP"), ("scatter", "AP", "%no@10")} <= drawn  # paper 000, Fig. 3
    assert any(note.startswith("'variance of AP' is ") for note in result.notes)
    assert len(result.tables["per query"]) == 3 * 24
    (finding,) = [f for f in result.findings if (f.ranker, f.name) == ("bm25", "AP")]
    assert finding.value == pytest.approx(row.mean())
    assert set(result.tables["AP against bm25"]["ranker"]) == {"ql", "rm3"}


def test_risk_names_its_baseline(experiment):
    result = risk.Risk(baseline="ql", alphas=(0.0, 2.0)).run(experiment)
    table = result.tables["risk"]
    assert table[table["ranker"] == "ql"]["URisk"].isna().all()
    values = score_table("nDCG@10", experiment.qrels, experiment.get_runs())
    expected = (values.row("bm25") - values.row("ql")).mean()
    row = table[(table["ranker"] == "bm25") & (table["alpha"] == "0")].iloc[0]
    assert row["URisk"] == pytest.approx(expected)
    wins = result.tables["against ql"].set_index("ranker").loc["bm25"]
    assert wins["wins"] + wins["losses"] + wins["ties"] == 24


def test_letters_show_which_rankers_may_be_compared_by_risk():
    rng = np.random.default_rng(1)
    base = rng.uniform(0.4, 0.6, 40)
    values = np.stack([base, base + rng.normal(0, 0.05, 40), base / 4])
    table = ScoreTable("score", ("one", "like it", "far below"), tuple(map(str, range(40))), values)
    result = risk.build_risk_from_scores(table, ["one"], (0.0, 5.0), 0)
    letters = result.tables["risk"].drop_duplicates("ranker").set_index("ranker")["same mean"]
    assert set(letters["one"]) & set(letters["like it"])
    assert not set(letters["one"]) & set(letters["far below"])
    assert any("Do not read a difference in risk" in note for note in result.notes)
    assert result.sources == {"risk": "Dinçer et al. 2016, Table 6", "against one": "Dinçer et al. 2016, Table 7"}


def test_several_baselines_are_averaged(experiment):
    result = risk.Risk(baseline=("bm25", "ql")).run(experiment)
    averaged = result.tables["against 2 baselines, averaged"].set_index("ranker").loc["rm3"]
    each = [result.tables[f"against {name}"].set_index("ranker").loc["rm3"] for name in ("bm25", "ql")]
    for column in ("reward", "risk", "wins", "losses"):
        assert averaged[column] == pytest.approx(np.mean([of[column] for of in each]))


def test_one_system_alone_has_no_risk():
    table = ScoreTable("score", ("only",), ("a", "b"), np.array([[0.2, 0.4]]))
    result = risk.build_risk_from_scores(table, ["mean"], (0.0, 5.0), 0)
    assert result.tables["risk"]["ZRisk"].tolist() == [0.0, 0.0]
    assert variance.build_variance_from_scores(table, 0).tables["variance"]["VNAP"][0] == pytest.approx(1 / 9)


def test_agreement_of_a_ranker_with_itself(experiment, collection):
    same = Experiment(collection, {"a": experiment.models["bm25"], "b": experiment.models["bm25"]})
    (row,) = Agreement().run(same).tables["agreement"].to_dict("records")
    assert row["top_change"] == row["kendall"] == 0
    assert row["overlap(k=10)"] == pytest.approx(1)
    assert row["rbo(p=0.9)"] == pytest.approx(1)


def test_a_re_ranker_ranks_the_list_of_the_first_stage(collection):
    experiment = Experiment(collection, {"normalised": Given(Normalised())}, depth=7)
    run = experiment.get_run("normalised")
    assert all(run[qid].keys() == experiment.candidates[qid].keys() for qid in run)
    assert max(map(len, run.values())) == 7


def test_tasks_that_need_judgements_are_left_out_and_named(collection, experiment):
    unjudged = Experiment(replace(collection, qrels={}), experiment.models)
    results, skipped = run_tasks(unjudged, [TASKS.build(name) for name in TASKS])
    tasks = {r.task: r for r in results}
    assert list(tasks) == [
        *(
            "first-stage",
            "agreement",
            "consistency",
            "query-typos",
            "query-variation",
            "fusion",
            "document-form",
            "probes",
            "document-attack",
            "parity",
        ),
    ]
    assert skipped.keys() >= {"effectiveness", "variance", "risk", "competition", "defence"}
    attacked = {f.name for f in tasks["document-attack"].findings}
    assert {"attack success %", "attack boost", name_test(INTO_TOP_TEN, "query_insertion")} <= attacked
    assert not {name for name in attacked if "nDCG" in name or "RR" in name}
    for task, name in (
        ("agreement", "rbo(p=0.9)"),
        ("query-typos", "RBO(word)"),
        ("query-variation", "RBO(ordering)"),
    ):
        found = [f for f in tasks[task].findings if f.name == name]
        assert found, task
        assert all(f.low <= f.value <= f.high for f in found)
    assert all(f.name.startswith("fusion gain of overlap(") for f in tasks["fusion"].findings)
    assert "text manipulation" in tasks["probes"].tables, "the first documents of lists are manipulated"
    with pytest.raises(BadInput, match="no task applies"):
        run_tasks(unjudged, [TASKS.build("risk")])


class Broken:
    name = "broken"

    def score(self, slates: list[Slate]):
        raise ValueError("never works")


def test_a_task_never_succeeds_when_every_query_failed(collection):
    experiment = Experiment(collection, {"broken": Given(Broken())}, ScoringEngine(keep_going=True))
    with pytest.raises(RankerFailed, match=r"ranked none of the 24 queries.*never works"):
        run_tasks(experiment, [TASKS.build("variance")])


def test_limit_takes_the_first_queries(collection, experiment):
    few = Experiment(collection, experiment.models, limit=5)
    assert list(few.queries) == list(collection.queries)[:5]
    notes = variance.Variance().run(few).notes
    assert any("There are fewer than 20 queries" in note for note in notes)
    assert any("over 5 queries" in note for note in notes)


def test_gates_look_at_headline_numbers(experiment):
    seen = GateInput.from_results([variance.Variance().run(experiment)])
    assert [ruling.status for ruling in Threshold.parse("nDCG@10 >= 0").evaluate(seen)] == ["pass"] * 3
    (one,) = Threshold.parse("bm25.VNAP<0").evaluate(seen)
    assert str(one).startswith("fail: bm25.VNAP<0: bm25.VNAP is ")


def test_queries_weigh_as_often_as_they_were_asked(collection, experiment):
    weights = {qid: float(1 + i % 5) for i, qid in enumerate(collection.queries)}
    asked = {qid: replace(query, weight=weights[qid]) for qid, query in collection.queries.items()}
    heavy = Experiment(replace(collection, queries=asked), experiment.models)
    assert heavy.collection.fingerprint == collection.fingerprint, "no ranker sees how often a query was asked"
    table = score_table("nDCG@10", heavy.qrels, heavy.get_runs())
    result = TASKS.build("effectiveness").run(heavy)
    rows = result.tables["nDCG@10"].set_index("ranker")
    each = [weights[qid] for qid in table.topics]
    for name in table.systems:
        assert rows.loc[name, "mean"] == pytest.approx(np.average(table.row(name), weights=each))
        assert rows.loc[name, "low"] <= rows.loc[name, "mean"] <= rows.loc[name, "high"]
    assert rows.loc["ql", "difference"] == pytest.approx(np.average(table.row("ql") - table.row("bm25"), weights=each))
    assert any("are weighted by their frequency" in note for note in result.notes)
    agreed = Agreement().run(heavy)
    per_query = agreed.tables["per query"]
    some = per_query[(per_query["ranker"] == "bm25") & (per_query["other"] == "ql")]
    expected = np.average(some["rbo(p=0.9)"], weights=[weights[qid] for qid in some["query"]])
    assert agreed.tables["agreement"]["rbo(p=0.9)"][0] == pytest.approx(expected)
    plain = TASKS.build("effectiveness").run(experiment).tables["nDCG@10"].set_index("ranker")
    assert plain.loc["bm25", "mean"] == pytest.approx(table.row("bm25").mean())


def test_without_judgements_fusion_is_compared_with_the_original_list(collection, experiment):
    unjudged = Experiment(replace(collection, qrels={}), {"bm25": experiment.models["bm25"]})
    task = TASKS.build("fusion(transforms=('char_noise', 'char_noise(edits=2)', 'word_noise'), invalid=True)")
    (row,) = [r for r in task.run(unjudged).tables["steadiness"].to_dict("records") if r["lists of"] == "all"]
    assert row["gain"] == pytest.approx(row["fused"] - row["one variation"])
    assert 0 < row["one variation"] < 1
    assert row["low"] <= row["gain"] <= row["high"]
