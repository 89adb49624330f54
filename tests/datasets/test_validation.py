"""Validation: each fault is found, counted and named; valid data has none."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.documents import Collection, Doc, Query
from shaketable.datasets.beir import read_beir
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.datasets.validation import ValidationCheck, compute_statistics, validate_collection, validate_run

HEALTHY = Collection(
    "healthy",
    MemoryCorpus({"d1": Doc("a boat"), "d2": Doc("a train")}),
    {"q1": Query("boat"), "q2": Query("train")},
    {"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 0, "d2": 2}},
    candidates={"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d2": 3.0, "d1": 1.0}},
)


def find_check(findings: list[ValidationCheck], check: str) -> ValidationCheck:
    (finding,) = (f for f in findings if f.check == check)
    return finding


def outcome(finding: ValidationCheck) -> tuple[str, int, int, tuple[str, ...]]:
    assert bool(finding.advice) == (finding.severity != "ok")
    return finding.severity, finding.count, finding.total, finding.examples


def test_a_healthy_collection() -> None:
    findings = validate_collection(HEALTHY)
    assert {f.severity for f in findings} == {"ok"}
    assert len({f.check for f in findings}) == len(findings)
    assert outcome(find_check(findings, "documents")) == ("ok", 2, 2, ())


def test_nothing_at_all() -> None:
    findings = validate_collection(Collection("empty", MemoryCorpus({}), {}))
    assert [f.check for f in findings if f.severity == "error"] == ["documents", "queries"]


def test_texts() -> None:
    docs = {
        "a": Doc("same"),
        "b": Doc(" "),
        "c": Doc("", title="same"),
        "d": Doc(""),
        "e": Doc("same "),
        "f": Doc("other"),
    }
    findings = validate_collection(replace(HEALTHY, docs=MemoryCorpus(docs)))
    assert outcome(find_check(findings, "empty documents")) == ("warning", 2, 6, ("b", "d"))
    assert outcome(find_check(findings, "documents with the text of an earlier document")) == (
        "warning",
        2,
        6,
        ("c", "e"),
    )


def test_queries() -> None:
    queries = {"q1": Query("boat"), "q2": Query(" \n"), "q3": Query("plane")}
    qrels = {"q1": {"d1": 0, "d2": -1}, "q2": {"d1": 1}}
    findings = validate_collection(replace(HEALTHY, queries=queries, qrels=qrels))
    assert outcome(find_check(findings, "empty queries")) == ("warning", 1, 3, ("q2",))
    assert outcome(find_check(findings, "queries without judgements")) == ("warning", 1, 3, ("q3",))
    assert outcome(find_check(findings, "judged queries without a relevant document")) == ("warning", 1, 2, ("q1",))


def test_dangling_ids() -> None:
    qrels = {"q1": {"d1": 1, "d8": 1}, "q9": {"d9": 1}}
    candidates = {"Q1": {"D1": 1.0, "D2": 2.0}}
    findings = validate_collection(replace(HEALTHY, qrels=qrels, candidates=candidates))
    assert outcome(find_check(findings, "judged queries that the collection does not have")) == (
        "warning",
        1,
        2,
        ("q9",),
    )
    assert outcome(find_check(findings, "judged documents that the collection does not have")) == (
        "warning",
        2,
        3,
        ("d8", "d9"),
    )
    assert outcome(find_check(findings, "candidate queries that the collection does not have")) == (
        "error",
        1,
        1,
        ("Q1",),
    )
    assert outcome(find_check(findings, "candidate documents that the collection does not have")) == (
        "error",
        2,
        2,
        ("D1", "D2"),
    )
    assert find_check(findings, "candidates: judged queries in the run").severity == "error"


QRELS = {"q1": {"a": 1, "b": 0}, "q2": {"a": 1}, "q3": {"a": 1}}


def test_a_run_and_judgements() -> None:
    run = {"q1": {"a": 3.0, "b": 2.0, "x": 1.0}, "q2": {"a": 1.0}, "q9": {"a": 1.0}, "q3": {}}
    findings = validate_run(run, QRELS)
    assert outcome(find_check(findings, "documents in the run")) == ("ok", 5, 5, ())
    assert outcome(find_check(findings, "judged queries in the run")) == ("ok", 2, 2, ())
    assert outcome(find_check(findings, "judged queries that the run does not have")) == ("warning", 1, 3, ("q3",))
    assert outcome(find_check(findings, "queries of the run that are not judged")) == ("warning", 1, 4, ("q9",))
    assert outcome(find_check(findings, "unjudged documents in the top 10")) == ("warning", 1, 4, ("q1",))


def test_unjudged_counts_the_top_only() -> None:
    judged = {f"d{i}": 20.0 - i for i in range(10)}
    qrels = {"q": dict.fromkeys(judged, 1)}
    deep = {"q": judged | {f"x{i}": -1.0 - i for i in range(50)}}
    assert outcome(find_check(validate_run(deep, qrels), "unjudged documents in the top 10")) == ("ok", 0, 10, ())
    high = {"q": judged | {"x": 99.0}}
    assert outcome(find_check(validate_run(high, qrels), "unjudged documents in the top 10")) == (
        "warning",
        1,
        10,
        ("q",),
    )


def test_ties_and_constant_lists() -> None:
    same = 1.0 + 1e-9  # equal to 1 in 32 bits
    run = {"q1": {"a": 1.0, "b": same, "c": 2.0}, "q2": {"a": 5.0, "b": 5.0}, "q3": {"a": 1.0}}
    findings = validate_run(run, {})
    assert outcome(find_check(findings, "documents with the same score as another document of their list")) == (
        "warning",
        4,
        6,
        ("q2", "q1"),
    )
    assert outcome(find_check(findings, "queries whose documents all have the same score")) == (
        "warning",
        1,
        2,
        ("q2",),
    )


def test_a_few_ties_are_nothing_to_worry_about() -> None:
    run = {"q": {f"d{i}": float(max(i, 1)) for i in range(100)}}
    assert outcome(
        find_check(validate_run(run, {}), "documents with the same score as another document of their list")
    ) == (
        "ok",
        2,
        100,
        ("q",),
    )


def test_a_run_that_ranks_nothing() -> None:
    run = {"q1": {"a": 1.0, "b": 1.0}, "q2": {"a": 0.0, "b": 0.0}}
    assert find_check(validate_run(run, {}), "queries whose documents all have the same score").severity == "error"


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, 1e300])
def test_scores_that_are_not_finite(score: float) -> None:
    findings = validate_run({"q1": {"a": score, "b": 1.0}, "q2": {"a": 1.0, "b": 2.0}}, QRELS)
    assert outcome(find_check(findings, "queries with scores that are not finite")) == ("error", 1, 2, ("q1",))


@pytest.mark.parametrize("run", [{}, {"q1": {}}])
def test_an_empty_run(run: dict[str, dict[str, float]]) -> None:
    findings = validate_run(run, QRELS)
    errors = [f.check for f in findings if f.severity == "error"]
    assert errors == ["documents in the run", "judged queries in the run"]


def test_topics_that_never_meet() -> None:
    findings = validate_run({"301": {"a": 1.0, "b": 2.0}}, QRELS)
    errors = [f.check for f in findings if f.severity == "error"]
    assert errors == ["judged queries in the run"]


ids = st.sampled_from("abcdef")


@given(
    run=st.dictionaries(ids, st.dictionaries(ids, st.floats())),
    qrels=st.dictionaries(ids, st.dictionaries(ids, st.integers(-1, 2))),
    docs=st.dictionaries(ids, st.sampled_from([Doc("x"), Doc(""), Doc("y")])),
    queries=st.dictionaries(ids, st.sampled_from([Query(""), Query("x")])),
)
def test_whatever_comes_is_examined(
    run: dict[str, dict[str, float]], qrels: dict[str, dict[str, int]], docs: dict[str, Doc], queries: dict[str, Query]
) -> None:
    collection = Collection("any", MemoryCorpus(docs), queries, qrels, candidates=run)
    for finding in [*validate_run(run, qrels), *validate_collection(collection)]:
        assert 0 <= finding.count <= finding.total
        assert len(finding.examples) <= min(3, finding.count)
        assert bool(finding.advice) == (finding.severity != "ok")


def test_statistics_by_hand() -> None:
    """Two documents of two words each in `HEALTHY`; q3 is judged and has nothing relevant, q4 is not judged."""
    title = replace(HEALTHY, docs=MemoryCorpus({"d1": Doc("a boat"), "d2": Doc("a  train\nleaves", "the train")}))
    more = replace(
        title,
        queries={**HEALTHY.queries, "q3": Query("x"), "q4": Query("y")},
        qrels={"q1": {"d1": 1, "d2": 2}, "q2": {"d2": 1, "d1": -1}, "q3": {"d1": 0}},
    )
    found = compute_statistics(more)
    assert (found.queries, found.judged_queries, found.documents) == (4, 3, 2)
    assert found.words_per_document == (2 + 5) / 2
    assert found.relevant_per_query == 1.0
    assert found.format_rows()["words in a document, on average"] == "3.5"


def test_statistics_of_nothing() -> None:
    found = compute_statistics(Collection("empty", MemoryCorpus({}), {}))
    assert (found.queries, found.documents) == (0, 0)
    assert math.isnan(found.words_per_document)
    assert math.isnan(found.relevant_per_query)


def test_real_statistics(shared_data: Path) -> None:
    """Every query of msmarco-types has one relevant passage, as its README says."""
    found = compute_statistics(read_beir(shared_data / "collections" / "msmarco-types"))
    assert (found.queries, found.judged_queries, found.documents) == (1743, 1743, 1743)
    assert found.relevant_per_query == 1.0


def test_real_collection(shared_data: Path) -> None:
    findings = validate_collection(read_beir(shared_data / "collections" / "cacm"))
    assert not [f for f in findings if f.severity == "error"]
    assert outcome(find_check(findings, "queries without judgements"))[:3] == ("warning", 12, 64)
