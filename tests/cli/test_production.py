"""Audits without judgements, with your own files; parity of two rankers; the cost of an audit."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import shaketable as st


@pytest.fixture
def files(tmp_path):
    """A query log with counts, and documents, as two CSV files of the sample's texts."""
    sample = st.load("sample?split=test")
    with (tmp_path / "log.csv").open("w", newline="") as out:
        rows = [[query.text, 1 + i % 5] for i, query in enumerate(list(sample.queries.values())[:5])]
        csv.writer(out).writerows([["query", "count"], *rows])
    with (tmp_path / "docs.csv").open("w", newline="") as out:
        csv.writer(out).writerows([["docno", "text"], *([d, doc.text] for d, doc in sample.docs.items())])
    return "--queries", tmp_path / "log.csv", "--docs", tmp_path / "docs.csv"


def test_queries_and_documents_are_enough_for_a_verdict_on_stability(shaketable, files):
    tasks = ("agreement", "query_typos(draws=1)", "query_variation", "fusion", "probes(max_documents=10)")
    tasks += ("document_attack(recipes=('query_insertion',), queries=3)",)
    named = [word for task in tasks for word in ("--task", task)]
    done = shaketable(
        "audit", *files, "--ranker", "bm25", "--ranker", "ql", *named, "--json", "a.json", "--depth", "20"
    )
    assert done.code == 0, done.err
    results = {result["task"]: result for result in json.loads(Path("a.json").read_text())["results"]}
    assert {*results} == {"agreement", "query-typos", "query-variation", "fusion", "probes", "document-attack"}
    for task, names in {
        "agreement": {"overlap(k=10)", "rbo(p=0.9)", "top_change", "kendall"},
        "query-typos": {"overlap(1-char)", "RBO(1-char)", "new first %(1-char)", "Kendall distance(1-char)"},
        "query-variation": {"overlap(misspelling)", "RBO(misspelling)", "Kendall distance(ordering)"},
        "fusion": {"fusion gain of overlap(all)"},
        "document-attack": {"attack success %"},
    }.items():
        found = {f["name"]: f for f in results[task]["findings"]}
        assert names <= found.keys(), task
        for name in names:
            assert found[name]["low"] <= found[name]["value"] <= found[name]["high"], (task, name)
    assert results["probes"]["tables"]["text manipulation"]
    assert " ".join(done.out.split()).count("There are no judgements") == 1
    assert "are weighted by their frequency" in Path("shaketable-audit/report.html").read_text()


def test_rank_and_probe_take_the_files(shaketable, files, tmp_path):
    assert shaketable("rank", *files, "--ranker", "bm25", "--write-run", "a.run").code == 0
    assert len({line.split()[0] for line in (tmp_path / "a.run").read_text().splitlines()}) == 5
    done = shaketable("probe", *files, "--ranker", "bm25", "--probe", "shuffle-words", "--depth", "20", "--tables")
    assert done.code == 0, done.err
    assert "Shuffle words" in done.out
    assert "needs queries" in shaketable("audit", *files[2:], "--ranker", "bm25").complaint()
    assert "there is no such file" in shaketable("audit", "--queries", "gone.csv", *files[2:]).complaint()


def test_parity_has_a_verdict_and_gates(shaketable, files):
    same = ("parity", *files, "--ranker", "a=bm25", "--ranker", "b=bm25", "--depth", "20")
    done = shaketable(*same, "--require", "parity<=0", "--require", "b.overlap@10>=1")
    assert done.code == 0, done.err
    assert "b against a: equal within noise." in " ".join(done.out.split())
    other = ("parity", *files, "--ranker", "a=bm25", "--ranker", "b=bm25(b=0.1)", "--json", "p.json", "--depth", "20")
    done = shaketable(*other, "--require", "parity<=1")
    assert done.code == 1
    assert "fail: parity<=1: b.parity is 3.0000, and should be <= 1" in done.err
    (result,) = json.loads(Path("p.json").read_text())["results"]
    assert {f["name"] for f in result["findings"]} >= {"largest difference", "noise floor", "tied %", "Kendall tau"}
    assert "at least two rankers" in shaketable("parity", "--ranker", "bm25").complaint()
    assert "cannot read the rule" in shaketable(*same, "--require", "parity=0").complaint()


def test_a_plan_is_printed_and_nothing_is_written(shaketable, files, tmp_path):
    endpoint = "srv=http://127.0.0.1:9/rerank?model=m"
    words = (
        "audit",
        *files,
        "--ranker",
        endpoint,
        "--task",
        "query_typos(draws=1)",
        "--dry-run",
        "--price-per-1k",
        "2",
    )
    done = shaketable(*words, "--json", "plan.json")
    assert done.code == 0, done.err
    assert "The dry run sent nothing." in " ".join(done.out.split())
    (line,) = [line for line in done.out.splitlines() if line.startswith("total: ")]
    total = json.loads(Path("plan.json").read_text())["total"]
    assert f"{total['requests']:,} requests" in line
    assert total["money"] == pytest.approx(total["requests"] * 2 / 1000)
    assert not (tmp_path / "shaketable-audit").exists()
    assert "cannot read the rule" in shaketable(*words, "--require", "nonsense").complaint()
    assert "no task" in shaketable("audit", "--dry-run", "--task", "risc").complaint()
