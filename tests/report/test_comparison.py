"""The outcome of a comparison: "not worse" needs a test of non-inferiority."""

from __future__ import annotations

import numpy as np

from shaketable.core.results import Finding
from shaketable.measures.facets import EFFECTIVENESS
from shaketable.measures.regression import compare_findings
from shaketable.report.comparison import AuditComparison

RNG = np.random.default_rng(7)
BEFORE = RNG.uniform(0.2, 0.9, 60)


def finding(name: str, values: np.ndarray, facet: str = "") -> Finding:
    by_query = {str(i): float(value) for i, value in enumerate(values)}
    return Finding("mine", name, float(values.mean()), n=len(values), facet=facet, values=by_query)


def compare(change: np.ndarray, *others: tuple[Finding, Finding], margin: float = 5.0) -> AuditComparison:
    pair = finding("nDCG@10", BEFORE, EFFECTIVENESS), finding("nDCG@10", BEFORE + change, EFFECTIVENESS)
    return AuditComparison("a", "b", {"mine": "mine"}, tuple(compare_findings([pair, *others])), margin=margin)


def center(noise: np.ndarray) -> np.ndarray:
    return noise - noise.mean()


def test_a_small_interval_below_the_margin_is_not_worse():
    found = compare(center(RNG.normal(0, 0.02, 60)))
    assert found.outcome == "not worse"
    assert "a loss of nDCG@10 beyond 5 % is excluded" in found.summary
    assert (
        "a loss of nDCG@10 beyond 5 % is excluded" not in compare(center(RNG.normal(0, 0.02, 60)), margin=0.1).summary
    )


def test_a_wide_interval_is_inconclusive_and_says_what_is_not_excluded():
    found = compare(center(RNG.normal(0, 0.4, 60)))
    assert found.outcome == "inconclusive"
    largest = found.compute_largest_loss(found.deltas[0])
    assert largest > 10
    assert f"a loss of nDCG@10 of up to {largest:.0f} % is not excluded" in found.summary
    assert found.headline == f"inconclusive: a loss of up to {largest:.0f} % is not excluded"
    assert found.to_markdown().startswith(
        f"### Robustness: inconclusive: a loss of up to {largest:.0f} % is not excluded"
    )
    assert found.to_dict()["headline"] == found.headline


def test_a_significant_loss_is_worse():
    assert compare(np.full(60, -0.1) + center(RNG.normal(0, 0.02, 60))).outcome == "worse"


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
    lower = compare(np.full(60, -0.06) + center(RNG.normal(0, 0.5, 60)), steadier)
    assert lower.outcome == "inconclusive"
    assert "which is no gain because effectiveness fell" in lower.summary
    assert "and 1 became better" in compare(center(RNG.normal(0, 0.02, 60)), steadier).summary
