"""Evidence of drift: unchanged rankers seldom alarm in any number of looks, and changed ones soon do."""

from __future__ import annotations

import numpy as np
import pytest

from shaketable.measures.drift import EVIDENCE_LIMIT, DriftEvidence, bet, highest_evidence


def test_a_bet_is_fair():
    """The mean gain is 1; it is an integral over p = exp(-x), because small p decide."""
    x = np.linspace(1e-4, 27, 20_001)
    gains = np.array([bet(p) * p for p in np.exp(-x)])
    tail = 1 / 27  # the gain of p is about 1 / (p log² p)
    assert np.trapezoid(gains, x) + tail == pytest.approx(1, abs=0.005)


def test_unchanged_rankers_seldom_alarm_in_1000_looks():
    rng = np.random.default_rng(1)
    highest = [highest_evidence(rng.gamma(9, size=20), rng.gamma(9, size=1000), rng.random(1000)) for _ in range(100)]
    assert np.mean(np.array(highest) >= EVIDENCE_LIMIT) <= 0.05


def test_a_change_is_found_and_the_evidence_can_be_stored():
    rng = np.random.default_rng(2)
    evidence = DriftEvidence(rng.gamma(9, size=20).tolist())
    for _ in range(30):
        evidence.add(rng.gamma(9), rng.random())
    assert not evidence.is_alarm
    for _ in range(15):
        evidence = DriftEvidence(evidence.distances, evidence.begun, evidence.replays)
        evidence.add(40.0, rng.random())
    assert evidence.is_alarm
