"""The outcome of a comparison: "not worse" needs a test of non-inferiority."""

from __future__ import annotations

import re

import numpy as np
import pytest

from shaketable.core.results import Finding
from shaketable.measures.facets import EFFECTIVENESS
from shaketable.measures.regression import compare_findings
from shaketable.report.comparison import AuditComparison
from shaketable.report.finding_table import FindingTable

BEFORE = np.random.default_rng(7).uniform(0.2, 0.9, 60)


def finding(name: str, values: np.ndarray, facet: str = "") -> Finding:
    by_query = {str(i): float(value) for i, value in enumerate(values)}
    return Finding("mine", name, float(values.mean()), n=len(values), facet=facet, values=by_query)


def compare(change: np.ndarray, *others: tuple[Finding, Finding], margin: float = 5.0) -> AuditComparison:
    pair = finding("nDCG@10", BEFORE, EFFECTIVENESS), finding("nDCG@10", BEFORE + change, EFFECTIVENESS)
    return AuditComparison("a", "b", {"mine": "mine"}, FindingTable(compare_findings([pair, *others])), margin=margin)


def draw_noise(scale: float, seed: int = 1) -> np.ndarray:
    """Differences with a mean of 0; each test draws its own, because tests run in any order."""
    noise = np.random.default_rng(seed).normal(0, scale, 60)
    return noise - noise.mean()


def test_a_small_interval_below_the_margin_is_not_worse():
    found = compare(draw_noise(0.02))
    assert found.outcome == "not worse"
    assert "a loss of nDCG@10 beyond 5 % is excluded" in found.summary
    assert "a loss of nDCG@10 beyond 5 % is excluded" not in compare(draw_noise(0.02), margin=0.1).summary


def test_a_wide_interval_is_inconclusive_and_says_what_is_not_excluded():
    found = compare(draw_noise(0.4))
    assert found.outcome == "inconclusive"
    largest = found.compute_largest_loss(found.findings[0])
    assert largest > 10
    assert f"a loss of nDCG@10 of up to {largest:.0f} % is not excluded" in found.summary
    assert found.headline == f"inconclusive: a loss of up to {largest:.0f} % is not excluded"
    assert found.to_markdown().startswith(
        f"### Robustness: inconclusive: a loss of up to {largest:.0f} % is not excluded"
    )
    assert found.to_dict()["headline"] == found.headline


def test_the_interval_of_a_change_is_corrected_like_its_p():
    """Among many findings, one is not significant although its plain interval excludes 0."""
    noise = draw_noise(0.2, 100)
    many = [(finding(f"m{i}", BEFORE), finding(f"m{i}", BEFORE + draw_noise(0.2, i))) for i in range(30)]
    change = noise - 0.06
    lone, beside = compare(change), compare(change, *many)
    assert lone.to_frame().iloc[0]["p"] < 0.05
    (row,) = [row for row in beside.to_frame().to_dict("records") if row["finding"] == "nDCG@10"]
    assert row["status"] == "no difference"
    assert beside.findings[0].low > 0, "a loss by the plain interval"
    assert row["low"] < 0 < row["high"]
    assert beside.findings[0].low == pytest.approx(lone.findings[0].low), "the margin is judged by the plain interval"


def test_no_number_is_a_negative_zero():
    found = compare(np.where(np.arange(60) < 30, -1e-5, 0.0))
    (text,) = found.to_brief_frame()["change"]
    assert "0.000, 0.000]" in text
    assert not re.search(r"-0\.0+(?![0-9])", text)


def test_a_significant_loss_is_worse():
    assert compare(np.full(60, -0.1) + draw_noise(0.02)).outcome == "worse"


def test_equal_values_are_not_worse():
    found = compare(np.zeros(60))
    assert found.outcome == "not worse"
    assert "is the same as before" in found.summary


def test_without_effectiveness_nothing_is_claimed():
    stable = (
        finding("overlap(1-char)", np.full(60, 0.5)),
        finding("overlap(1-char)", np.full(60, 0.5) + 0.01 * np.sin(range(60))),
    )
    found = AuditComparison("a", "b", {"mine": "mine"}, tuple(compare_findings([stable])))
    assert found.outcome == "inconclusive"
    assert found.headline == "inconclusive: effectiveness was not compared"


def test_stability_is_no_gain_if_effectiveness_fell():
    steadier = finding("overlap(1-char)", np.full(60, 0.5)), finding("overlap(1-char)", np.full(60, 0.9))
    lower = compare(np.full(60, -0.06) + draw_noise(0.5), steadier)
    assert lower.outcome == "inconclusive"
    assert "which is no gain because effectiveness fell" in lower.summary
    assert "and 1 became better" in compare(draw_noise(0.02), steadier).summary
