from __future__ import annotations

import csv
import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.documents import Qrels, Run, rank_docnos
from shaketable.core.errors import BadInput
from shaketable.measures.effectiveness import (
    Evaluator,
    TieRate,
    alpha_ndcg,
    evaluate_run,
    expected_reciprocal_rank,
    judged_share,
    score_table,
    score_tables,
    select_top,
    tie_rate,
)
from shaketable.measures.measure_names import format_measure, parse_measure

TREC = {
    "AP": "map",
    "AP@100": "map_cut_100",
    "nDCG": "ndcg",
    "nDCG@10": "ndcg_cut_10",
    "RR": "recip_rank",
    "P@20": "P_20",
    "R@20": "recall_20",
    "Success@5": "success_5",
    "Rprec": "Rprec",
    "Bpref": "bpref",
}

# scores from so few values that most neighbours tie, some of them in float32 only
tied_scores = st.sampled_from([0.0, 0.5, 1.0, 1.0 + 1e-12, -3.0])
docnos = st.sampled_from([f"d{i}" for i in range(12)])
runs = st.dictionaries(st.sampled_from("1234"), st.dictionaries(docnos, tied_scores, max_size=12), max_size=4)
judgements = st.dictionaries(
    st.sampled_from("123"), st.dictionaries(docnos, st.integers(-1, 4), max_size=8), min_size=1, max_size=3
)


@given(judgements, runs)
def test_equals_pytrec_eval_under_ties(qrels: Qrels, run: Run) -> None:
    measures = {parse_measure(ours): theirs for ours, theirs in TREC.items()}
    ours = evaluate_run(measures, qrels, run)
    # the library itself crashes on judgements that are all negative and on empty lists
    judged = {qid: grades for qid, grades in qrels.items() if any(g >= 0 for g in grades.values())}
    lists = {qid: scores for qid, scores in run.items() if scores}
    theirs = pytrec_eval.RelevanceEvaluator(judged, set(measures.values())).evaluate(lists)
    for measure, key in measures.items():
        assert ours[measure] == {qid: theirs[qid][key] if qid in theirs else 0.0 for qid in qrels}


@given(judgements, runs)
def test_rr_with_a_cutoff_by_definition(qrels: Qrels, run: Run) -> None:
    rr = parse_measure("RR(rel=2)@3")
    for qid, value in evaluate_run([rr], qrels, run)[rr].items():
        top = rank_docnos(run.get(qid, {}))[:3]
        assert value == next((1 / (i + 1) for i, d in enumerate(top) if qrels[qid].get(d, 0) >= 2), 0.0)


@given(judgements, runs)
def test_err_by_definition(qrels: Qrels, run: Run) -> None:
    err = parse_measure("ERR@3")
    for qid, value in evaluate_run([err], qrels, run)[err].items():
        reached, total = 1.0, 0.0
        for i, docno in enumerate(rank_docnos(run.get(qid, {}))[:3]):
            stop = (2 ** max(qrels[qid].get(docno, 0), 0) - 1) / 16
            total += reached * stop / (i + 1)
            reached *= 1 - stop
        assert value == pytest.approx(total, abs=1e-12)


@given(judgements, runs)
def test_exponential_gains_by_definition(qrels: Qrels, run: Run) -> None:
    ndcg = parse_measure("nDCG(dcg='exp-log2')@3")

    def dcg(grades: list[int]) -> float:
        return sum((2 ** max(g, 0) - 1) / math.log2(i + 2) for i, g in enumerate(grades[:3]))

    for qid, value in evaluate_run([ndcg], qrels, run)[ndcg].items():
        ideal = dcg(sorted(qrels[qid].values(), reverse=True))
        found = dcg([qrels[qid].get(d, 0) for d in rank_docnos(run.get(qid, {}))])
        assert value == pytest.approx(found / ideal if ideal else 0.0)


def test_err_by_hand() -> None:
    # grades 3, 2, 4 with 4 the highest: R = 7/16, 3/16, 15/16
    by_hand = 7 / 16 + (9 / 16) * (3 / 16) / 2 + (9 / 16) * (13 / 16) * (15 / 16) / 3
    assert expected_reciprocal_rank([3, 2, 4]).item() == pytest.approx(by_hand)
    assert expected_reciprocal_rank([[0, 0], [1, 0]], max_grade=1).tolist() == [0.0, 0.5]
    assert expected_reciprocal_rank([-2, 4]).item() == pytest.approx(15 / 32)


def test_err_of_another_scale_and_its_limit() -> None:
    err = parse_measure("ERR")
    qrels = {"q": {"a": 1, "b": 0}}
    assert Evaluator((err,), qrels, max_grade=1).evaluate({"q": {"a": 1.0, "b": 2.0}})[err] == {"q": 0.25}
    with pytest.raises(BadInput, match="grade 5"):
        evaluate_run([err], {"q": {"a": 5}}, {"q": {"a": 1.0}})


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval is a Perl script")
def test_err_and_exponential_ndcg_equal_gdeval() -> None:
    rng = np.random.default_rng(3)
    names = [f"d{i:02}" for i in range(30)]
    qrels = {str(q): {d: int(g) for d, g in zip(names, rng.integers(0, 5, 30), strict=True)} for q in range(1, 9)}
    run = {qid: {d: float(s) for d, s in zip(names, rng.integers(0, 9, 30), strict=True)} for qid in qrels}
    measures = [parse_measure("ERR@20"), parse_measure("nDCG(dcg='exp-log2')@20")]
    ours = evaluate_run(measures, qrels, run)
    for metric in ir_measures.gdeval.iter_calc(measures, qrels, run):
        assert ours[metric.measure][metric.query_id] == pytest.approx(metric.value, abs=6e-6)  # it prints five decimals


def test_judged_share_by_hand() -> None:
    qrels = {"q1": {"a": 0, "c": 2}, "q2": {"a": 1}, "q3": {"a": 1}}
    run = {"q1": {"a": 1.0, "b": 1.0, "c": 0.5}, "q2": {}}
    assert judged_share(qrels, run, k=1) == {"q1": 0.0, "q2": 0.0, "q3": 0.0}  # b stands before a: docno descending
    assert judged_share(qrels, run, k=2) == {"q1": 0.5, "q2": 0.0, "q3": 0.0}
    assert judged_share(qrels, run)["q1"] == pytest.approx(2 / 3)
    judged = parse_measure("Judged@2")
    assert evaluate_run([judged], qrels, run)[judged] == judged_share(qrels, run, k=2)


def test_unjudged_documents_by_hand() -> None:
    qrels = {"q1": {"a": 0, "c": 2}, "q2": {"a": 1}, "q3": {"a": 1}}
    run = {"q1": {"a": 1.0, "b": 1.0, "c": 0.5}, "q2": {}}
    for k, share in ((1, 1.0), (2, 0.5), (10, 1 / 3)):
        unjudged = parse_measure(f"unjudged@{k}")
        assert format_measure(unjudged) == f"Unjudged@{k}"
        assert parse_measure(format_measure(unjudged)) == unjudged
        assert evaluate_run([unjudged], qrels, run)[unjudged] == pytest.approx({"q1": share, "q2": 0.0, "q3": 0.0})


def test_rank_biased_precision_by_hand() -> None:
    # relevant at ranks 1 and 3, p = 0.5: 0.5 (1 + 0.25)
    qrels = {"q": {"a": 1, "b": 0, "c": 3}, "missing": {"a": 1}}
    run = {"q": {"a": 3.0, "b": 2.0, "c": 1.0, "z": 0.5}}
    for text, value in (
        ("RBP(p=0.5)", 0.625),
        ("RBP(p=0.5)@2", 0.5),
        ("RBP(p=0.5, rel=2)", 0.125),
        ("rbp", 0.2 * (1 + 0.64)),
    ):
        measure = parse_measure(text)
        assert evaluate_run([measure], qrels, run)[measure] == pytest.approx({"q": value, "missing": 0.0})
    with pytest.raises(BadInput, match="p must lie between 0 and 1"):
        evaluate_run([parse_measure("RBP(p=1.5)")], qrels, run)


@given(judgements, runs)
def test_rank_biased_precision_by_definition(qrels: Qrels, run: Run) -> None:
    rbp = parse_measure("RBP(p=0.7)")
    for qid, value in evaluate_run([rbp], qrels, run)[rbp].items():
        ranked = rank_docnos(run.get(qid, {}))
        wanted = sum(0.3 * 0.7**i for i, docno in enumerate(ranked) if qrels[qid].get(docno, 0) >= 1)
        assert value == pytest.approx(wanted, abs=1e-12)


def test_alpha_ndcg_by_hand() -> None:
    # a says 1 and 2, b says 1, c says 3; α = 0.5
    subtopics = {"1": {"a": 1, "b": 1}, "2": {"a": 2}, "3": {"c": 1, "b": 0}}
    second, third = 1 / math.log2(3), 1 / 2
    ideal = 2 + second + 0.5 * third  # a, then c, then b, whose subtopic was seen once
    assert alpha_ndcg(subtopics, ["a", "c", "b"], cutoff=3) == pytest.approx(1)
    assert alpha_ndcg(subtopics, ["b", "a", "x"], cutoff=3) == pytest.approx((1 + 1.5 * second) / ideal)
    assert alpha_ndcg(subtopics, ["b", "a", "x"], cutoff=1) == pytest.approx(1 / 2)
    assert alpha_ndcg(subtopics, ["b", "a"], cutoff=3, alpha=0.0) == pytest.approx(
        (1 + 2 * second) / (2 + second + third)
    )
    assert alpha_ndcg(subtopics, []) == alpha_ndcg({"1": {"a": 0}}, ["a"]) == 0.0


@given(st.dictionaries(docnos, tied_scores, max_size=12), st.integers(1, 13))
def test_the_first_few_are_those_of_the_ranking(scores: dict[str, float], k: int) -> None:
    assert select_top(scores, k) == rank_docnos(scores)[:k]
    assert select_top(scores, None) == rank_docnos(scores)


@given(judgements, st.dictionaries(st.sampled_from("xyz"), runs, max_size=3))
def test_many_measures_in_one_pass_are_those_of_many_passes(qrels: Qrels, every: dict[str, Run]) -> None:
    texts = ["AP", "map", "nDCG@10", "RR(rel=2)@3", "ERR@3", "ERR", "Judged@2", "Unjudged", "RBP@4", "SetF", "P@10"]
    tables = score_tables(texts, qrels, every)
    assert [table.measure for table in tables] == [format_measure(parse_measure(text)) for text in texts]
    for text, table in zip(texts, tables, strict=True):
        alone = score_table(text, qrels, every)
        assert (table.systems, table.topics) == (alone.systems, alone.topics) == (tuple(every), tuple(qrels))
        assert table.values.tolist() == alone.values.tolist()


def test_one_pass_over_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many measures there are, the library is asked once for each run, and reads the judgements once."""
    calls = {"made": 0, "asked": 0}

    class Counted(pytrec_eval.RelevanceEvaluator):  # type: ignore[misc]
        def __init__(self, *args: object) -> None:
            calls["made"] += 1
            super().__init__(*args)

        def evaluate(self, run: Run) -> dict[str, dict[str, float]]:
            calls["asked"] += 1
            return dict(super().evaluate(run))

    monkeypatch.setattr(pytrec_eval, "RelevanceEvaluator", Counted)
    every = {f"run{i}": {"q": {"a": 1.0, "b": float(i)}} for i in range(5)}
    score_tables(["AP", "nDCG@10", "P@10", "Success@10", "Judged@10", "RR"], {"q": {"a": 1}}, every)
    assert calls == {"made": 1, "asked": 5}


def test_tie_rate_sees_float32() -> None:
    assert tie_rate({"q1": {"a": 1.0, "b": 1.0 + 1e-12}, "q2": {"a": 1.0, "b": 2.0}}) == TieRate(0.5, 0.5)
    assert tie_rate({"q1": {"a": 1.0}, "q2": {}}) == TieRate(0.0, 0.0)
    assert tie_rate({}) == TieRate(0.0, 0.0)


def test_every_judged_query_has_a_value() -> None:
    qrels: Qrels = {
        "found": {"a": 1},
        "missing": {"a": 1},
        "empty": {"a": 1},
        "unjudged": {},
        "none-relevant": {"a": 0},
        "negative": {"a": -1},
    }
    run: Run = {qid: {"a": 1.0} for qid in ("found", "unjudged", "none-relevant", "negative", "stray")} | {"empty": {}}
    texts = [*TREC, "RR@10", "ERR@20", "ERR", "Judged@10", "SetF", "SetP", "NumRet", "nDCG(dcg='exp-log2')@10"]
    values = evaluate_run(map(parse_measure, texts), qrels, run)
    assert [format_measure(measure) for measure in values] == texts
    for measure, row in values.items():
        assert list(row) == list(qrels)
        assert row["found"] > 0
        assert not any(row[qid] for qid in ("missing", "empty", "unjudged"))
        if measure.NAME not in ("Judged", "NumRet"):
            assert not any(row[qid] for qid in ("none-relevant", "negative"))


def test_an_empty_run_scores_zero_everywhere() -> None:
    measures = [parse_measure(text) for text in ("AP", "RR@10", "ERR@20", "ERR", "Judged@10", "SetF")]
    assert evaluate_run(measures, {"q": {"a": 1}}, {}) == {measure: {"q": 0.0} for measure in measures}


def test_ties_follow_one_rule_in_every_library() -> None:
    # docno descending puts b first; the library's own order for this measure would put a first
    accuracy = parse_measure("Accuracy")
    qrels = {"q": {"a": 1, "b": 0}}
    assert evaluate_run([accuracy], qrels, {"q": {"a": 1.0, "b": 1.0}})[accuracy] == {"q": 0.0}
    assert evaluate_run([accuracy], qrels, {"q": {"a": 2.0, "b": 1.0}})[accuracy] == {"q": 1.0}


def test_a_measure_nothing_installed_can_compute() -> None:
    with pytest.raises(BadInput, match=r"no installed library computes INSQ\(max_rel=3\)"):
        evaluate_run([parse_measure("INSQ(max_rel=3)")], {"q": {"a": 1}}, {"q": {"a": 1.0}})


@pytest.mark.parametrize("text", ["alpha-nDCG@20", "StRecall@10"])
def test_measures_of_novelty_need_subtopics(text: str) -> None:
    with pytest.raises(BadInput, match="needs judgements of subtopics, which this collection does not have"):
        evaluate_run([parse_measure(text)], {"q": {"a": 1}}, {"q": {"a": 1.0}})


def test_nan_is_refused_and_infinity_is_not() -> None:
    ap = parse_measure("AP")
    with pytest.raises(BadInput, match="document 'b' for query 'q' is NaN"):
        evaluate_run([ap], {"q": {"a": 1}}, {"q": {"a": 1.0, "b": math.nan}})
    assert evaluate_run([ap], {"q": {"a": 1}}, {"q": {"a": math.inf, "b": -math.inf}})[ap] == {"q": 1.0}


def test_any_mapping_and_any_number_will_do() -> None:
    ap = parse_measure("AP")
    lazy: Mapping[str, float] = MappingProxyType({"a": np.float32(1.0), "b": 2})
    assert evaluate_run([ap], MappingProxyType({"q": MappingProxyType({"a": 1})}), MappingProxyType({"q": lazy}))[
        ap
    ] == {"q": 0.5}


def test_one_evaluator_serves_many_runs() -> None:
    ap, qrels = parse_measure("AP"), {"q": {"a": 1}}
    evaluator = Evaluator((ap,), qrels)
    first, second = {"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": 1.0, "b": 2.0}}
    assert [evaluator.evaluate(run)[ap]["q"] for run in (first, second, first)] == [1.0, 0.5, 1.0]


def test_score_table() -> None:
    qrels = {"q1": {"a": 1}, "q2": {"b": 1}}
    runs = {"good": {"q1": {"a": 1.0}, "q2": {"b": 1.0}}, "half": {"q1": {"a": 1.0, "b": 2.0}}}
    table = score_table("map", qrels, runs)
    assert (table.measure, table.systems, table.topics) == ("AP", ("good", "half"), ("q1", "q2"))
    assert table.values.tolist() == [[1.0, 1.0], [0.5, 0.0]]
    assert score_table("map", qrels, {}).values.shape == (0, 2)


@pytest.mark.parametrize("collection", ["cranfield", "medline"])
def test_equals_pytrec_eval_on_a_real_collection(shared_data: Path, collection: str) -> None:
    folder = shared_data / "collections" / collection
    with (folder / "qrels" / "test.tsv").open(newline="") as file:
        qrels: dict[str, dict[str, int]] = {}
        for row in csv.DictReader(file, delimiter="\t"):
            qrels.setdefault(row["query-id"], {})[row["corpus-id"]] = int(row["score"])
    words = {}
    for line in (folder / "corpus.jsonl").read_text().splitlines():
        doc = json.loads(line)
        words[doc["_id"]] = set(f"{doc['title']} {doc['text']}".lower().split())
    run = {}
    for line in (folder / "queries.jsonl").read_text().splitlines()[:60]:
        query = json.loads(line)
        counts = {docno: float(len(set(query["text"].lower().split()) & w)) for docno, w in words.items()}
        run[query["_id"]] = {docno: counts[docno] for docno in rank_docnos(counts)[:100]}
    assert tie_rate(run).neighbours > 0.5
    measures = {parse_measure(ours): theirs for ours, theirs in TREC.items()}
    ours = evaluate_run(measures, qrels, run)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, set(measures.values())).evaluate(run)
    for measure, key in measures.items():
        assert {qid: ours[measure][qid] for qid in theirs} == {qid: row[key] for qid, row in theirs.items()}
        assert not any(value for qid, value in ours[measure].items() if qid not in theirs)
