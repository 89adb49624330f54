"""The gain of a ranker over its first stage: by definition, for every first stage, and never from run files alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shaketable.core.documents import Query
from shaketable.core.errors import NotApplicable
from shaketable.core.registries import RANKERS, TASKS
from shaketable.core.results import Finding
from shaketable.experiment import Experiment
from shaketable.measures.effectiveness import score_table
from shaketable.measures.facets import GAIN_AT_DOUBLE_LOSSES, GAIN_OVER_FIRST_STAGE, OWN_ORDER_SHARE, UNSERVED_INCREASE
from shaketable.tasks.first_stage import FirstStage
from shaketable.tasks.runner import run_tasks


class Scored:
    """A ranker by a function of the position and the text."""

    def __init__(self, score):
        self._score = score

    def open(self, collection):
        return self

    def score(self, slates):
        return [np.array([self._score(i, doc.text) for i, doc in enumerate(slate.docs)]) for slate in slates]


NOOP, CONSTANT = Scored(lambda place, text: -place), Scored(lambda place, text: 1.0)
BACKWARDS = Scored(lambda place, text: place)


def find_findings(experiment: Experiment, ranker: str) -> dict[str, Finding]:
    return {one.name: one for one in FirstStage().run(experiment).findings if one.ranker == ranker}


def test_numbers_match_their_definitions(experiment):
    values = score_table("nDCG@10", experiment.qrels, experiment.get_runs())
    start, change = values.row("bm25").mean(), values.row("ql") - values.row("bm25")
    success = score_table("Success@10", experiment.qrels, experiment.get_runs())
    one = find_findings(experiment, "ql")
    assert one[GAIN_OVER_FIRST_STAGE].value == pytest.approx(100 * change.mean() / start)
    assert one[GAIN_AT_DOUBLE_LOSSES].value == pytest.approx(
        100 * np.where(change < 0, 2 * change, change).mean() / start
    )
    expected = 100 * ((success.row("ql") == 0).mean() - (success.row("bm25") == 0).mean())
    assert one[UNSERVED_INCREASE].value == pytest.approx(expected)
    for finding in one.values():
        assert np.mean(list(finding.values.values())) == pytest.approx(finding.value)
        assert finding.low <= finding.value <= finding.high
        assert finding.against == "bm25"
    assert not find_findings(experiment, "bm25"), "the first stage is not compared with itself"


def test_weights_count(experiment):
    queries = {
        qid: replace(query, weight=1.0 + i % 3) for i, (qid, query) in enumerate(experiment.collection.queries.items())
    }
    heavy = Experiment(replace(experiment.collection, queries=queries), experiment.models, seed=1)
    values = score_table("nDCG@10", heavy.qrels, heavy.get_runs())
    weights = [heavy.weights[qid] for qid in values.topics]
    before, after = (np.average(values.row(name), weights=weights) for name in ("bm25", "ql"))
    one = find_findings(heavy, "ql")
    assert one[GAIN_OVER_FIRST_STAGE].value == pytest.approx(100 * (after - before) / before)
    added = one[GAIN_OVER_FIRST_STAGE].values
    assert np.average([added[q] for q in values.topics], weights=weights) == pytest.approx(
        one[GAIN_OVER_FIRST_STAGE].value
    )


def test_an_order_of_its_own(collection):
    models = {"noop": NOOP, "constant": CONSTANT, "backwards": BACKWARDS}
    experiment = Experiment(collection, models, seed=1)
    own = {one.ranker: one.value for one in FirstStage().run(experiment).findings if one.name == OWN_ORDER_SHARE}
    assert own == {"noop": 0, "constant": 0, "backwards": 100}
    assert find_findings(experiment, "backwards")[OWN_ORDER_SHARE].against == "bm25", (
        "the first stage need not be among the rankers"
    )
    assert find_findings(experiment, "noop")[GAIN_OVER_FIRST_STAGE].value == 0


@pytest.mark.parametrize(
    ("models", "first_stage", "baseline"),
    [
        ({"ql": "ql", "mine": "bm25()"}, "bm25", "mine"),
        ({"bm25": "bm25(k1=2)"}, "bm25", ""),
        ({"bm25": "bm25", "dirichlet": "ql"}, "ql", "dirichlet"),
        ({"bm25": "bm25"}, "no such thing", ""),
    ],
)
def test_which_ranker_is_the_first_stage(collection, models, first_stage, baseline):
    made = {name: RANKERS.build(text) for name, text in models.items()}
    experiment = Experiment(collection, made, first_stage=first_stage)
    assert experiment.baseline == baseline
    assert experiment.collect_provenance()["baseline"] == baseline


def test_candidates_of_the_collection_are_the_first_stage(collection):
    lists = {qid: {"d03": 2.0, "d01": 1.0} for qid in collection.queries}
    experiment = Experiment(replace(collection, candidates=lists), {"noop": NOOP, "ql": RANKERS.build("ql")})
    assert find_findings(experiment, "noop")[OWN_ORDER_SHARE].value == 0
    assert find_findings(experiment, "ql")[OWN_ORDER_SHARE].against == "the candidates as they came"
    flat = {qid: dict.fromkeys(of, 1.0) for qid, of in lists.items()}
    with pytest.raises(NotApplicable, match="came in no order"):
        FirstStage().run(Experiment(replace(collection, candidates=flat), {"ql": RANKERS.build("ql")}))


def test_without_judgements_only_the_order_is_compared(collection):
    experiment = Experiment(replace(collection, qrels={}), {"noop": NOOP, "backwards": BACKWARDS})
    assert {(one.ranker, one.name, one.value) for one in FirstStage().run(experiment).findings} == {
        ("noop", OWN_ORDER_SHARE, 0.0),
        ("backwards", OWN_ORDER_SHARE, 100.0),
    }


def test_the_first_stage_alone_and_run_files(collection, tmp_path):
    alone = FirstStage().run(Experiment(collection, {"bm25": RANKERS.build("bm25")}))
    assert not alone.findings
    assert "no ranker beside the first stage" in alone.notes[0]
    (tmp_path / "mine.run").write_text("q00 Q0 d01 1 2 m\n")
    recorded = Experiment(collection, {"mine": RANKERS.build(f"run:{tmp_path / 'mine.run'}")})
    results, skipped = run_tasks(recorded, [TASKS.build("first-stage"), TASKS.build("effectiveness")])
    assert [result.task for result in results] == ["effectiveness"]
    assert "run files come without their first stage" in skipped["first_stage"]


def test_examples_are_the_queries_that_lose_most(collection):
    result = FirstStage().run(Experiment(collection, {"backwards": BACKWARDS}))
    losses = [case.value_before - case.value_after for case in result.examples]
    assert losses == sorted(losses, reverse=True)
    assert losses[0] > 0
    for case in result.examples:
        assert collection.qrels[case.query][case.document] > 0
        assert 0 < case.rank_before < case.rank_after
        assert case.before == collection.queries[case.query].text


def test_a_query_that_the_ranker_has_no_list_for_counts_nothing(collection):
    more = {**collection.queries, "q99": Query("zzz")}
    experiment = Experiment(
        replace(collection, queries=more, qrels={**collection.qrels, "q99": {"d00": 1}}), {"noop": NOOP}
    )
    assert find_findings(experiment, "noop")[GAIN_OVER_FIRST_STAGE].value == 0
