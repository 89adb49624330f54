"""Severe losses: their count, and the comparison with chance."""

from __future__ import annotations

import numpy as np

from shaketable.measures.severe_losses import find_severe_losses, severe_losses_p


def test_a_loss_of_exactly_half_is_not_severe():
    assert find_severe_losses({"a": 0.8, "b": 0.8}, {"a": 0.4, "b": 0.39}) == {"a": 0.0, "b": 100.0}


def test_equal_rankers_are_seldom_called_risky():
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(60):
        before, after = ({str(q): float(v) for q, v in enumerate(rng.beta(2, 2, size=40))} for _ in range(2))
        alarms += severe_losses_p(before, after, draws=500) < 0.05
    assert alarms <= 8, "5 % are expected, 13 % are beyond chance"


def test_a_collapse_on_a_part_of_the_queries_is_found():
    before = {str(q): 0.5 + 0.01 * (q % 5) for q in range(50)}
    after = {qid: 0.0 if int(qid) % 5 == 0 else value + 0.2 for qid, value in before.items()}
    assert severe_losses_p(before, after) < 0.01, "ten of ten deviations on the losing side: about 1 in 1,024"
    assert severe_losses_p(before, before) == 1.0
