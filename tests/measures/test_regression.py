"""Is the new version worse? Numbers by hand, false alarms of equal pairs, and what a planted loss takes to be found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.regression import MAX_FALSE_ALARMS, PAIRS, count_false_alarms, measure_power

from shaketable.core.results import Finding
from shaketable.core.seeding import make_numpy_rng
from shaketable.measures.regression import can_be_significant, compare_finding, compare_findings, correct_p_values


def finding(name: str, values, **more) -> Finding:
    values = [float(value) for value in values]
    by_query = {f"q{i}": value for i, value in enumerate(values)}
    return Finding("mine", name, float(np.mean(values)), n=len(values), values=by_query, **more)


def test_a_drift_by_hand():
    before, after = [0.5] * 24, [0.5] * 12 + [0.25] * 12
    one = compare_finding(finding("AP", before), finding("AP", after))
    assert one.loss == pytest.approx(0.125)
    assert one.losses["q23"] == 0.25
    assert one.losses["q0"] == 0
    assert one.p == pytest.approx(2 * 0.5**12, abs=5e-4), "all twelve of one sign: two of 4096 assignments"
    assert one.effect == pytest.approx(0.125 / np.std([0] * 12 + [0.25] * 12, ddof=1))
    assert one.low <= 0.125 <= one.high
    assert one.status == "worse"
    assert one.find_worst_queries(2) == ["q12", "q13"]


def test_a_p_of_exactly_the_level_is_no_difference():
    old, new = finding("AP", [0.5] * 20), finding("AP", [0.4] * 20)
    statuses = [replace(compare_finding(old, new), corrected_p=p).status for p in (0.049, 0.05, 0.051)]
    assert statuses == ["worse", "no difference", "no difference"]


def test_lower_may_be_better():
    before, after = np.zeros(30), np.full(30, 3.0) + np.arange(30) / 10
    rise = compare_finding(finding("fall", before, better="lower"), finding("fall", after, better="lower"))
    assert rise.status == "worse"
    assert rise.loss == pytest.approx(after.mean())
    assert (
        compare_finding(finding("fall", after, better="lower"), finding("fall", before, better="lower")).status
        == "better"
    )


def test_findings_without_enough_query_values_are_not_tested():
    few = compare_finding(finding("AP", [1.0] * 19), finding("AP", [0.0] * 19))
    assert few.status == "not tested", "19 queries are too few, however they fare"
    alone = compare_finding(Finding("mine", "GeoRisk", 0.4), Finding("mine", "GeoRisk", 0.3))
    assert alone.status == "not tested"
    assert alone.loss == pytest.approx(0.1)
    assert np.isnan(alone.p)
    same = compare_finding(finding("AP", [0.3] * 30), finding("AP", [0.3] * 30))
    assert (same.status, same.p) == ("no difference", 1.0)
    holes = compare_finding(finding("AP", [float("nan"), *[0.5] * 29]), finding("AP", [0.4] * 30))
    assert holes.n == 29


def test_a_number_that_is_no_mean_has_no_interval_but_a_test():
    values = np.linspace(0, 1, 40)
    old, new = finding("drop", values), finding("drop", values - 0.2)
    ratio = compare_finding(
        Finding(old.ranker, "drop", -5.0, values=old.values), Finding(new.ranker, "drop", -25.0, values=new.values)
    )
    assert ratio.status == "worse"
    assert np.isnan([ratio.low, ratio.high]).all()
    assert ratio.loss == 20


def test_findings_that_cannot_differ_do_not_dull_the_others():
    rng = make_numpy_rng(0, "dull")
    old = rng.random(40)
    new = old - rng.random(40) * 0.2 + 0.04
    pair = (finding("AP", old), finding("AP", new))
    alone = compare_finding(*pair)
    still = [(finding(f"n{i}", old), finding(f"n{i}", old)) for i in range(500)]
    few = [(finding(f"f{i}", old), finding(f"f{i}", np.r_[old[:5] - 1, old[5:]])) for i in range(500)]
    assert compare_findings([pair, *still, *few])[0].corrected_p == pytest.approx(alone.corrected_p, abs=2e-3)
    assert not any(one.status == "worse" for one in compare_findings([pair, *few])[1:])


def test_holm_over_all_that_can_differ():
    p = np.array([0.01, 0.04, np.nan, 0.03])
    assert correct_p_values(p, np.array([True, True, False, True])).tolist() == pytest.approx(
        [0.03, 0.06, np.nan, 0.06], nan_ok=True
    )
    assert can_be_significant(np.ones((1, 6))).tolist() == [True]


def test_equal_pairs_raise_few_false_alarms():
    alarms = count_false_alarms(queries=60)
    assert alarms <= MAX_FALSE_ALARMS, f"false alarms for {alarms} of {PAIRS} equal pairs"
    assert alarms >= 1, "a significance test has some false alarms"


def test_a_planted_loss_is_found_and_only_it():
    share, others = measure_power(queries=60, loss=0.1, pairs=40)
    assert share >= 0.9
    assert others <= 0.15
