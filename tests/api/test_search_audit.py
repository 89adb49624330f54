"""Audits of search engines from a URL and a query log: what is measured, what it costs, and what is not tested."""

from __future__ import annotations

import json

import pytest

import shaketable as st
from shaketable.api.dry_run import dry_run
from shaketable.core.errors import BadInput
from shaketable.measures.facets import CHANGED_ANSWERS
from tests.search_engines import running, serve_sample

pytestmark = pytest.mark.slow
QUERIES = 24


@pytest.fixture(scope="module")
def engine():
    with running(serve_sample()) as engine:
        yield engine


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.jsonl"
    queries = list(st.load("sample?split=test").queries.items())[:QUERIES]
    path.write_text("".join(json.dumps({"qid": qid, "query": query.text}) + "\n" for qid, query in queries))
    return f"files?queries={path}"


def spec(engine) -> str:
    return f"search:{engine.root}/v1/sample"


def test_a_dry_run_counts_searches_and_sends_nothing(engine, log):
    before = len(engine.requests)
    counted = dry_run(log, {"mine": spec(engine)}, ("consistency(queries=5)", "query_typos(draws=1)"))
    assert len(engine.requests) == before
    by_task = {row.task: (row.pairs, row.requests) for row in counted.rows}
    assert by_task["consistency(queries=5)"] == (10 + QUERIES, 10 + QUERIES)  # five lists twice, and all lists once
    assert all(pairs == requests for pairs, requests in by_task.values())
    assert any("counts as one pair and one request" in note for note in counted.notes)


def test_a_budget_limits_the_searches(engine, log):
    before, said = len(engine.requests), []
    audit = st.audit(log, {"mine": spec(engine)}, budget=400, notify=said.append)
    assert len(engine.requests) - before <= 400 + 10  # and those of the handshake
    assert audit.provenance["plan"]["used pairs"] <= 400
    assert "The plan for 400 pairs" in " ".join(said)
    assert "not in its index" in audit.skipped["probes"]
    assert {one.facet for one in audit.findings if one.facet} >= {"query typos", "query wording", "repeatability"}


def test_the_results_do_not_depend_on_the_number_of_concurrent_searches(engine, log, tmp_path):
    url = f"{engine.root}/v1/sample"
    one, many = (
        st.audit(log, {"mine": f"search(url='{url}', concurrency={n}, revision='{n}')"}, "query_typos(draws=1)")
        for n in (1, 8)
    )
    assert one.findings == many.findings
    assert one.runs == many.runs
    one.save(tmp_path / "old")
    many.save(tmp_path / "new")
    assert st.compare(tmp_path / "old", tmp_path / "new").outcome == "not worse"


def test_an_engine_that_changes_its_mind_is_named(log):
    with running(serve_sample(swapped_share=0.5)) as engine:
        audit = st.audit(log, {"mine": spec(engine)}, "consistency")
    (found,) = (one for one in audit.findings if one.name == CHANGED_ANSWERS)
    assert found.value > 20
    (cell,) = (cell for one in audit.verdict.ranker_verdicts for cell in one.facet_cells.values())
    assert (cell.facet, cell.status) == ("repeatability", "fail")


def test_two_engines_are_both_under_test(engine, log):
    audit = st.audit(log, {"old": spec(engine), "new": spec(engine)}, ("agreement", "parity"))
    assert audit.provenance["baseline"] == ""
    assert {one.value for one in audit.findings if one.name == "parity"} == {0.0}


def test_documents_of_a_corpus_and_an_engine_together(engine):
    tasks = (
        "effectiveness",
        "first_stage",
        "query_typos(draws=1, transforms=('char_noise',))",
        "probes(probes=('fold_case',))",
    )
    audit = st.audit("sample", {"bm25": "bm25", "mine": spec(engine)}, tasks, max_queries=20)
    assert audit.provenance["baseline"] == "bm25"
    assert {one.ranker for one in audit["probes"].findings} == {"bm25"}
    assert {one.ranker for one in audit["query-typos"].findings} == {"bm25", "mine"}
    values = {one.ranker: one.value for one in audit["effectiveness"].findings if one.name == "nDCG@10"}
    assert values["mine"] == pytest.approx(values["bm25"])


def test_an_engine_alone_cannot_be_attacked(engine, log):
    with pytest.raises(BadInput, match="a search engine cannot score a text that is not in its index"):
        st.attack(log, spec(engine), "query_insertion")


def test_bad_input_ends_with_exit_code_2(engine, log, tmp_path, capsys):
    from shaketable.cli import main

    path = log.removeprefix("files?queries=")
    for ranker, said in (
        (f"search:{engine.root}", "names no index: write search:"),
        (f"search(url='{engine.root}/v1/sample', text='title')", "no field 'title'"),
        (f"search(url='{engine.root}/v1/sample', hits='$.hits[*]')", "matches nothing in the answer"),
        (f"search(url='{engine.root}/v1/sample', dialect='json')", "needs {query} in the URL"),
        (f"{engine.root}/v1/sample/search", "is a search engine, not a rerank endpoint: write search:"),
        ("search:http://localhost:1/x", "cannot be reached"),
    ):
        spec = ranker if "localhost:1" not in ranker else "search(url='http://localhost:1/x', retries=0)"
        with pytest.raises(SystemExit) as end:
            main(["audit", "--queries", path, "--ranker", spec, "--out", str(tmp_path / "out")])
        error = capsys.readouterr().err
        assert end.value.code == 2, error
        assert said in " ".join(error.split()), error
        assert "Traceback" not in error
