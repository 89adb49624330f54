"""Statuses of findings: each needs an interval that excludes the opposite, and Holm's correction over a panel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from shaketable.core.results import Finding
from shaketable.measures.facets import (
    ATTACK,
    EFFECTIVENESS,
    FACETS,
    GAIN_OVER_FIRST_STAGE,
    INTO_TOP_TEN,
    RISK,
    SEVERE_LOSSES,
    TYPOS,
    find_test,
    get_facet,
    name_test,
)
from shaketable.measures.status import classify_findings, count_deciding_queries


def drop(value: float, low: float, high: float, n: int = 100, name: str = "drop(1-char)") -> Finding:
    return Finding("mine", name, value, low, high, n, against="its own nDCG@10", facet=TYPOS)


def classify(*findings: Finding, facet: str = TYPOS) -> list[str]:
    return [one.status for one in classify_findings(findings, get_facet(facet))]


@pytest.mark.parametrize(
    ("finding", "status"),
    [
        (drop(-2, -4, 1), "pass"),
        (drop(+60, 40, 80), "pass"),  # a gain is no loss
        (drop(-2, -25, 20), "inconclusive"),  # the upper end of the loss is beyond the fail threshold
        (drop(-9, -14, -4), "warn"),
        (drop(-9, -20, 2), "inconclusive"),  # no loss is not excluded
        (drop(-30, -40, -20), "fail"),
        (drop(-30, -56, -4), "warn"),  # a loss for sure, but the warn threshold is not excluded
        (drop(-30, -40, -10, n=19), "inconclusive"),
        (drop(-30, -35, -25, n=5), "fail"),  # wholly beyond the fail threshold, for any n
        (drop(-30, np.nan, np.nan), "inconclusive"),
        (drop(-30, -30, -30), "fail"),  # an interval without a width
    ],
)
def test_a_status_needs_evidence(finding, status):
    assert classify(finding) == [status]


def test_the_ends_of_the_rule_are_inclusive_at_the_thresholds():
    scale = get_facet(TYPOS).find_scale(drop(-5, -6, -4))
    assert (scale.warn_threshold, scale.fail_threshold) == (5, 20)
    assert classify(drop(-5, -6, -4)) == ["warn"], "at the warn threshold"
    assert classify(drop(-4.99, -6, -4)) == ["pass"]
    assert classify(drop(-20, -24, -16)) == ["fail"], "at the fail threshold"
    assert classify(drop(-4, -20, 8)) == ["inconclusive"], "the upper end is at the fail threshold"


def test_one_of_many_tests_exceeds_a_threshold_by_chance():
    lone = drop(-9, -17.5, -0.5)
    assert classify(lone) == ["warn"]
    others = [drop(0, -3, 3, name=f"drop({i})") for i in range(20)]
    assert classify(lone, *others)[0] == "inconclusive", "corrected for 21 tests"
    sure = drop(-30, -34, -26)
    assert classify(sure, *others)[0] == "fail", "a large loss survives the correction"


def test_the_interval_of_an_undecided_finding_is_corrected_like_its_p():
    """A finding that is not significant among 21 tests has no interval that excludes a loss of 0."""
    lone = drop(-9, -17.5, -0.5)
    others = [drop(0, -3, 3, name=f"drop({i})") for i in range(20)]
    alone, beside = (
        classify_findings([lone], get_facet(TYPOS))[0],
        classify_findings([lone, *others], get_facet(TYPOS))[0],
    )
    assert alone.corrected_interval == (-17.5, -0.5)
    low, high = beside.corrected_interval
    assert low < -17.5 < 0 < high
    wider = (high + 9) / 8.5
    assert wider == pytest.approx(norm.ppf(1 - 0.025 / 21) / norm.ppf(0.975), rel=1e-6)
    gain = Finding("mine", GAIN_OVER_FIRST_STAGE, -8, -15, -1, 100, 0.06, facet=EFFECTIVENESS)
    (one,) = classify_findings([gain], get_facet(EFFECTIVENESS))
    assert one.status == "inconclusive"
    assert one.corrected_interval[1] > 0
    rate = Finding("mine", SEVERE_LOSSES, 12, 6, 20, 100, 0.2, better="lower", facet=RISK)
    (one,) = classify_findings([rate], get_facet(RISK))
    assert one.corrected_interval == (6, 20), "its p is not of 0"


def test_the_questions_of_facets_fit_every_number_that_answers_them():
    for facet in FACETS:
        if any(scale.finding_pattern == "overlap(*)" for scale in facet.scales):
            assert "cost" not in facet.question, "an overlap is no cost"


def test_a_loss_that_may_be_missing_judgements_decides_nothing():
    lost = replace(drop(-30, -40, -20), judged_before=100.0, judged_after=85.0)
    (one,) = classify_findings([lost], get_facet(TYPOS))
    assert one.status == "inconclusive"
    assert "judged documents in the first ten fall from 100 % to 85 %" in one.remark
    assert classify(replace(lost, judged_after=90.0)) == ["fail"], "a fall of ten points is allowed"
    assert classify(replace(drop(-1, -2, 0), judged_before=100.0, judged_after=50.0)) == ["pass"], "nothing is lost"


def test_an_undecided_finding_says_how_many_queries_would_decide():
    wide = drop(-10, -22, 2, n=50)
    (one,) = classify_findings([wide], get_facet(TYPOS))
    assert one.remark == "not significant; about 72 queries would decide", "50 * (12 / 10) ** 2"
    others = [drop(0, -3, 3, name=f"drop({i})") for i in range(20)]
    panel = classify_findings([drop(-9, -17.5, -0.5, n=50), *others], get_facet(TYPOS))
    assert "about 108 queries would decide" in panel[0].remark, "a panel of 21 tests needs more"
    (one,) = classify_findings([drop(-2, -38, 34, n=50)], get_facet(TYPOS))
    assert count_deciding_queries(one) == 200, "50 * (36 / 18) ** 2"


def test_some_numbers_need_a_p():
    gain = Finding("mine", GAIN_OVER_FIRST_STAGE, -30, -40, -20, 100, 0.2, facet=EFFECTIVENESS)
    assert classify(gain, facet=EFFECTIVENESS) == ["inconclusive"]
    assert classify(replace(gain, p=0.01), facet=EFFECTIVENESS) == ["fail"]
    severe = Finding("mine", SEVERE_LOSSES, 60, 50, 70, 100, 0.001, better="lower", facet=RISK)
    assert classify(severe, facet=RISK) == ["warn"], "risk by itself never fails"


def test_a_rate_is_worse_the_higher_it_is():
    rate = Finding("mine", name_test(INTO_TOP_TEN, "greedy"), 60, 50, 70, 50, better="lower", facet=ATTACK)
    assert classify(rate, facet=ATTACK) == ["fail"]
    assert classify(replace(rate, value=2, low=0, high=9), facet=ATTACK) == ["pass"]


def test_the_name_of_a_finding_holds_its_test():
    assert find_test(name_test(INTO_TOP_TEN, "greedy(words=3)")) == "greedy(words=3)"
    assert find_test(GAIN_OVER_FIRST_STAGE) == ""


@pytest.mark.parametrize("facet", FACETS, ids=lambda facet: facet.name)
def test_the_table_of_facets_is_complete(facet):
    assert facet.question.endswith("?")
    assert facet.advice.endswith(".")
    for scale in facet.scales:
        assert 0 < scale.warn_threshold < scale.fail_threshold
        said = scale.sentence.format(ranker="mine", loss=0.3, what="a typo", of="bm25")
        assert "mine" in said
        assert "{" not in said + scale.measure.format(what="a typo")
