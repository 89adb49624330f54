"""A dry run counts exactly the pairs and requests of the audit, and sends none itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

import shaketable as st
from shaketable.api import gates
from shaketable.api.dry_run import dry_run
from shaketable.api.gates import check_gate_findings
from shaketable.core.documents import Scores, Slate
from shaketable.core.errors import BadInput, RankerFailed, UnknownName
from shaketable.rankers.http.reranker import HttpEndpoint
from shaketable.report.gates import Threshold
from shaketable.scoring.network_guard import block_network
from tests.servers import Server, cohere, running

pytestmark = pytest.mark.slow

TASKS = ("agreement", "query_typos(draws=2)", "query_variation(depths=(10,))", "probes(max_documents=6)")


@dataclass
class Counting:
    """Scores by letters, and counts the pairs that it is asked for."""

    pointwise: bool = True
    name: str = "counting"
    fingerprint: str = "counting 1"
    asked: int = 0
    lists: int = 0
    seen: set = field(default_factory=set)

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        self.asked += sum(len(slate.docs) for slate in slates)
        self.lists += len(slates)
        self.seen |= {(slate.query, doc.text) for slate in slates for doc in slate.docs}
        return [np.array([len(set(slate.query) & set(doc.text)) / 30 for doc in slate.docs]) for slate in slates]


@pytest.mark.parametrize("pointwise", [True, False])
def test_what_is_planned_is_what_is_asked(pointwise):
    options = {"max_queries": 3, "depth": 20}
    planned = Counting(pointwise)
    told = dry_run("sample", {"counting": planned}, TASKS, **options)
    assert planned.asked == 0, "nothing is asked, and so nothing is paid for"
    real = Counting(pointwise)
    st.audit("sample", {"counting": real}, TASKS, **options)
    assert told.pairs == real.asked > 1000
    assert {row.task for row in told.rows} == {"agreement", "query_typos(draws=2)", *TASKS[2:]}
    assert all(row.exact and row.requests == 0 and np.isnan(row.seconds) for row in told.rows)
    again = dry_run("sample", {"counting": Counting(pointwise)}, TASKS, **options)
    assert again.pairs == 0, "all of it is kept now"


class TestRules:
    """Rules without a matching finding: the audit refuses them before it calls a ranker."""

    def make_arguments(self, tasks=("query_typos(draws=1)",), data="sample"):
        self.ranker = Counting(fingerprint="counting rules")
        return data, {"counting": self.ranker}, tasks

    @pytest.mark.parametrize("name", ["overlp(1-char)", "counting.RBO(1-chr)", "drop(wrod).low"])
    def test_a_mistyped_name(self, name):
        with pytest.raises(UnknownName, match="did you mean"):
            check_gate_findings([Threshold.parse(f"{name}>0")], *self.make_arguments(), depth=20)
        assert self.ranker.asked == 0

    @pytest.mark.parametrize("name", ["quite another thing", "other.overlap(1-char)", "dorp(*)", "zzz*"])
    def test_a_name_that_no_task_reports(self, name):
        with pytest.raises(UnknownName, match="no finding is called"):
            check_gate_findings([Threshold.parse(f"{name}>0")], *self.make_arguments(), depth=20, max_queries=8)
        assert self.ranker.asked == 0

    @pytest.mark.parametrize("name", ["overlap(1-char)", "counting.overlap(1-char)", "drop(word).low", "drop(*)"])
    def test_names_that_come_up(self, name):
        check_gate_findings([Threshold.parse(f"{name}>0")], *self.make_arguments(), depth=20)
        assert self.ranker.asked == 0

    def test_names_that_come_up_with_more_queries(self):
        task = "probes(probes=('delete-punctuation',))"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gates, "REHEARSAL_QUERIES", 1)
            check_gate_findings(
                [Threshold.parse("delete-punctuation.s>0")], *self.make_arguments([task]), max_queries=30
            )

    def test_a_task_that_trains_may_report_any_name(self):
        tasks = ["defence"]
        check_gate_findings([Threshold.parse("quite another thing>0")], *self.make_arguments(tasks))

    def test_measures(self):
        check_gate_findings([Threshold.parse("nDCG@10>0")], *self.make_arguments(["effectiveness"]))
        with pytest.raises(UnknownName, match="did you mean nDCG@10"):
            check_gate_findings([Threshold.parse("nDGC@10>0")], *self.make_arguments(["effectiveness"]), depth=20)

    def test_what_only_judgements_can_tell(self, tmp_path):
        (tmp_path / "queries.tsv").write_text("q1\toak\n")
        (tmp_path / "docs.tsv").write_text("d1\tan oak\nd2\tan ash\n")
        files = f"files?queries={tmp_path}/queries.tsv&docs={tmp_path}/docs.tsv"
        for name in ("nDCG@10", "counting.nDCG@10"):
            with pytest.raises(BadInput, match="which needs judgements"):
                check_gate_findings([Threshold.parse(f"{name}>0")], *self.make_arguments(["agreement"], files))


def test_made_up_scores_are_not_cached():
    dry_run("sample", {"counting": Counting(fingerprint="counting 2")}, ["agreement"], max_queries=5, depth=20)
    real = Counting(fingerprint="counting 2")
    run = st.audit("sample", {"counting": real}, ["agreement"], max_queries=5, depth=20).runs["counting"]
    assert real.asked > 0
    assert {score for scores in run.values() for score in scores.values()} <= {i / 30 for i in range(31)}


def test_requests_to_an_endpoint_are_those_that_it_then_gets():
    with running(Server(cohere)) as server:
        model = HttpEndpoint(server.url, model="m", batch=8)
        told = dry_run(
            "sample", {"srv": model}, TASKS[:2], max_queries=6, depth=20, price_per_1k=4, seconds_per_request=0.5
        )
        assert not server.asked, "nothing was sent"
        st.audit("sample", {"srv": model}, TASKS[:2], max_queries=6, depth=20)
        assert told.requests == len(server.lists) > 50
        assert told.pairs == sum(len(body["documents"]) for body in server.lists)
    assert told.money == pytest.approx(told.requests * 4 / 1000)
    assert told.minutes == pytest.approx(told.requests * 0.5 / model.concurrency / 60)
    assert "4 for 1,000 requests" in " ".join(told.notes)
    assert json.loads(json.dumps(told.to_dict(), allow_nan=False))["total"]["requests"] == told.requests


def test_requests_in_a_dry_run_are_refused():
    with running(Server(cohere)) as server:
        with block_network(), pytest.raises(RankerFailed, match="a dry run sends no requests"):
            _ = HttpEndpoint(server.url, model="m").open(st.load("sample")).fingerprint
        mixed = f"guarded({f'http({server.url!r}, model={chr(34)}m{chr(34)})'!r})"
        told = dry_run("sample", {"mixed": mixed, "bm25": "bm25"}, ["agreement"], max_queries=4, depth=20)
        assert not server.asked
    assert {row.ranker for row in told.rows} >= {"mixed"}


def test_attacks_are_estimates_and_trainings_are_not_planned():
    told = dry_run(
        "sample", {"counting": Counting(fingerprint="3")}, ["document-attack", "defence"], max_queries=4, depth=30
    )
    assert not any(row.exact for row in told.rows if row.task == "document-attack")
    assert any("estimate" in note for note in told.notes)
    assert "defence" in told.skipped
    assert "estimate" in told.to_frame()[""].tolist()


def test_a_mistyped_name_is_found_before_anything():
    with pytest.raises(UnknownName, match="risc"):
        dry_run("sample", "bm25", ["risc"])
    assert "minutes" in str(dry_run("sample", "bm25", ["agreement"], max_queries=3))
