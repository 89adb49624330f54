"""The names of measures: many spellings in, one out."""

from __future__ import annotations

import ir_measures
import pytest

from shaketable.core.errors import BadInput, UnknownName
from shaketable.measures import measure_names
from shaketable.measures.effectiveness import evaluate_run
from shaketable.measures.measure_names import EXAMPLE_MEASURES, format_measure, parse_measure


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("nDCG@10", "nDCG@10"),
        ("ndcg", "nDCG"),
        ("ndcg_cut_10", "nDCG@10"),
        ("ndcg_cut.10", "nDCG@10"),
        ("map", "AP"),
        ("AP@100", "AP@100"),
        ("map_cut_100", "AP@100"),
        ("mrr", "RR"),
        ("mrr@10", "RR@10"),
        ("recip_rank", "RR"),
        ("P_20", "P@20"),
        ("precision@5", "P@5"),
        ("recall_20", "R@20"),
        ("Recall@20", "R@20"),
        ("err@20", "ERR@20"),
        ("judged@10", "Judged@10"),
        ("bpref", "Bpref"),
        ("rprec", "Rprec"),
        ("success_5", "Success@5"),
        ("hit@1", "Success@1"),
        ("SetF(beta=2)", "SetF(beta=2.0)"),
        ("set_recall", "SetR"),
        ("set_relative_P", "SetP(relative=True)"),
        ("iprec_at_recall_0.10", "IPrec@0.1"),
        ("IPrec@1", "IPrec@1.0"),
        ("alpha-nDCG@20", "alpha_nDCG@20"),
        ("RR(rel=2)@10", "RR(rel=2)@10"),
        (" rr( rel = 2 ) @ 10 ", "RR(rel=2)@10"),
        ("RR(judged_only=True, rel=2)", "RR(judged_only=True,rel=2)"),
        ("RR(rel=2, judged_only=True)", "RR(judged_only=True,rel=2)"),
        ("nDCG(dcg='log2')@10", "nDCG@10"),
        ("nDCG(dcg='exp-log2')@10", "nDCG(dcg='exp-log2')@10"),
        ("nDCG(gains={1: 5})", "nDCG(gains={1:5})"),
    ],
)
def test_parse(text: str, canonical: str) -> None:
    assert format_measure(parse_measure(text)) == canonical
    assert parse_measure(format_measure(parse_measure(text))) == parse_measure(text)


def test_every_measure_of_the_library_can_be_named_in_any_case() -> None:
    for key, measure in ir_measures.measures.registry.items():
        if key.isascii() and key.upper() not in measure_names.AMBIGUOUS_MEASURES:
            assert measure_names._find_measure(key.upper()) == measure


@pytest.mark.parametrize("text", ["NDCG@10", "NDCG", "NDCG_10", "NDCG(dcg='exp-log2')@10"])
def test_ndcg_in_capitals_is_not_silently_the_linear_one(text: str) -> None:
    """Papers on learning to rank call the measure with exponential gain so, ir_measures the one with linear gain."""
    with pytest.raises(BadInput, match=r"write nDCG@10 for the linear .* or nDCG\(dcg='exp-log2'\)@10 for the exp"):
        parse_measure(text)


def test_a_measure_that_is_spelled_in_two_ways_is_named_once() -> None:
    assert measure_names.name_measures(["nDCG@10", "AP", "ndcg_cut_10", "MAP"]) == ("nDCG@10", "AP")


@pytest.mark.parametrize("text", ["ndgc@10", "NDGC@10", "recal_20", "fancy"])
def test_an_unknown_measure_names_its_neighbours(text: str) -> None:
    with pytest.raises(UnknownName, match="no measure is called"):
        parse_measure(text)


def test_a_near_name_is_offered() -> None:
    with pytest.raises(UnknownName, match="did you mean ndcg"):
        parse_measure("NDGC@10")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("P", "needs a cutoff; write for example P@10"),
        ("nDCG@0", "cutoff=0 is not a valid value"),
        ("nDCG@2.5", "cutoff=2.5 is not a valid value"),
        ("Bpref@10", "Bpref has no parameter cutoff"),
        ("AP(grade=2)", "AP has no parameter grade; its parameters are: cutoff, rel"),
        ("nDCG(dcg='ln')", "dcg='ln' is not a valid value"),
        ("AP(2)", "cannot read the parameters"),
        ("AP(rel=print(1))", "cannot read the parameters"),
        ("AP(rel=2))", "cannot read the parameters"),
        ("AP(rel=2", "cannot read the measure"),
        ("", "cannot read the measure"),
        ("10", "cannot read the measure"),
        ("nDCG@١٠", "cannot read the measure"),
        ("AP@" + "9" * 5000, "cannot read the measure"),
        ("AP(rel=" + "-" * 5000 + "1)", "cannot read the parameters"),
        ("AP(rel={[]: 1})", "cannot read the parameters"),
    ],
)
def test_a_text_that_is_no_measure(text: str, message: str) -> None:
    with pytest.raises(BadInput) as error:
        parse_measure(text)
    assert message in str(error.value)


@pytest.mark.parametrize("text", ["gm_map", "GM_MAP", "gmap", "VNAP"])
def test_a_number_of_a_ranker_is_none_of_a_query(text: str) -> None:
    with pytest.raises(BadInput, match=r"one number per ranker, not per query; .*AP"):
        parse_measure(text)


@pytest.mark.parametrize("text", EXAMPLE_MEASURES)
def test_examples_are_in_canonical_form(text: str) -> None:
    measure = parse_measure(text)
    assert format_measure(measure) == text
    assert evaluate_run([measure], {"q": {"a": 1}}, {"q": {"a": 1.0, "b": 0.5}})[measure]["q"] > 0
