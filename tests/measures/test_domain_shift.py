"""DR_OOD: the numbers that paper 000 prints, recomputed from its own tables, and laws of the matrix."""

from __future__ import annotations

import numpy as np
import pytest

from shaketable.core.errors import BadInput
from shaketable.measures.domain_shift import (
    compute_drops,
    draw_mean_drops,
    drop_matrix,
    mean_drop,
    mean_drop_interval,
    mean_drop_of_cells,
)
from shaketable.measures.rank_distance import drop_rate

# Table 6: a row for each training corpus (Robust04, MQ2007, MS MARCO); columns are MAP, NDCG@20 and P@20 on Robust04,
# MAP, NDCG@10 and P@10 on MQ2007, MRR@10 and MRR@100 on MS MARCO
TABLE_6 = {
    "QL": [
        [0.2553, 0.4575, 0.3860, 0.3646, 0.3662, 0.3349, 0.2301, 0.2426],
        [0.2492, 0.4561, 0.3960, 0.3736, 0.3675, 0.3293, 0.2368, 0.2488],
        [0.2490, 0.4525, 0.3920, 0.3714, 0.3622, 0.3240, 0.2374, 0.2495],
    ],
    "BM25": [
        [0.2522, 0.4514, 0.3760, 0.3132, 0.3197, 0.2843, 0.2051, 0.2174],
        [0.2227, 0.4280, 0.3600, 0.3863, 0.3936, 0.3438, 0.2618, 0.2732],
        [0.1971, 0.3995, 0.3370, 0.3837, 0.3831, 0.3391, 0.2660, 0.2782],
    ],
    "Prank": [
        [0.2186, 0.4011, 0.3620, 0.3410, 0.2847, 0.2719, 0.2038, 0.2171],
        [0.2395, 0.4357, 0.3830, 0.3834, 0.3382, 0.3056, 0.1531, 0.1676],
        [0.2162, 0.3848, 0.3440, 0.3583, 0.3076, 0.3030, 0.2373, 0.2490],
    ],
    "RankSVM": [
        [0.2501, 0.4510, 0.3760, 0.3884, 0.3502, 0.3145, 0.2350, 0.2468],
        [0.2340, 0.4190, 0.3680, 0.4601, 0.4376, 0.3820, 0.2021, 0.2160],
        [0.2523, 0.4529, 0.3860, 0.3948, 0.3652, 0.3343, 0.2410, 0.2535],
    ],
    "LambdaMART": [
        [0.2397, 0.4357, 0.3650, 0.3562, 0.3148, 0.2970, 0.2172, 0.2301],
        [0.2057, 0.3780, 0.3300, 0.4578, 0.4381, 0.3787, 0.2068, 0.2192],
        [0.2174, 0.4026, 0.3160, 0.3365, 0.2829, 0.2675, 0.2602, 0.2710],
    ],
    "DSSM": [
        [0.1392, 0.2455, 0.2270, 0.3158, 0.2407, 0.2441, 0.1231, 0.1350],
        [0.1229, 0.2295, 0.2260, 0.3988, 0.3530, 0.3438, 0.0159, 0.0336],
        [0.1262, 0.2360, 0.2160, 0.2785, 0.1761, 0.1902, 0.1051, 0.1220],
    ],
    "DRMM": [
        [0.2541, 0.4744, 0.4060, 0.4231, 0.3859, 0.3524, 0.1864, 0.2002],
        [0.1829, 0.3427, 0.2930, 0.4390, 0.4038, 0.3719, 0.0552, 0.0711],
        [0.1357, 0.2445, 0.2380, 0.3024, 0.2101, 0.2257, 0.1165, 0.1334],
    ],
    "Conv-KNRM": [
        [0.1735, 0.3084, 0.2710, 0.3089, 0.2332, 0.2479, 0.0301, 0.0483],
        [0.1372, 0.2439, 0.2210, 0.4115, 0.3670, 0.3568, 0.0123, 0.0278],
        [0.1389, 0.2654, 0.2480, 0.2665, 0.1515, 0.1787, 0.1559, 0.1716],
    ],
    "Duet": [
        [0.1512, 0.2592, 0.2380, 0.3156, 0.2470, 0.2509, 0.0161, 0.0337],
        [0.1319, 0.2332, 0.2030, 0.4126, 0.3629, 0.3527, 0.0114, 0.0270],
        [0.1338, 0.2469, 0.2270, 0.2616, 0.1442, 0.1749, 0.1219, 0.1392],
    ],
    "BERT": [
        [0.2386, 0.4407, 0.3830, 0.3772, 0.3178, 0.2988, 0.1509, 0.1667],
        [0.2178, 0.4262, 0.3740, 0.4656, 0.4435, 0.3929, 0.0910, 0.1091],
        [0.2091, 0.4048, 0.3680, 0.3215, 0.2488, 0.2509, 0.2691, 0.2798],
    ],
    "ColBERT": [
        [0.2136, 0.4126, 0.3600, 0.3741, 0.3231, 0.3133, 0.1048, 0.1226],
        [0.1967, 0.3785, 0.3460, 0.4759, 0.4500, 0.4059, 0.0937, 0.1116],
        [0.2077, 0.4149, 0.3580, 0.3087, 0.2263, 0.2328, 0.3279, 0.3360],
    ],
}
OWN = (0, 0, 0, 1, 1, 1, 2, 2)
"""The row of the corpus that each column is tested on."""
ROBUST04, MQ2007, MSMARCO = range(3)
MAP_ROBUST04, NDCG_ROBUST04, P_ROBUST04, MRR100 = 0, 1, 2, 7

# Tables 8 and 9: before, and for each attack after and the printed drop rate
ATTACKS = {
    "QL": (0.2221, [(0.1540, -30.7), (0.1213, -45.4), (0.1433, -35.5)]),
    "BM25": (0.2612, [(0.2004, -23.3), (0.1453, -44.4), (0.1915, -24.3)]),
    "Prank": (0.2311, [(0.1839, -20.4), (0.1218, -47.3), (0.1976, -14.5)]),
    "RankSVM": (0.2535, [(0.2008, -20.8), (0.1360, -46.4), (0.2184, -13.8)]),
    "LambdaMART": (0.2710, [(0.2353, -13.2), (0.2100, -22.5), (0.2483, -8.4)]),
    "DSSM": (0.1220, [(0.1210, -0.8), (0.1209, -0.9), (0.1208, -1.0)]),
    "DRMM": (0.1335, [(0.0875, -34.5), (0.0828, -38.0), (0.0898, -32.7)]),
    "Conv-KNRM": (0.1716, [(0.1526, -11.1), (0.1359, -20.8), (0.1528, -11.0)]),
    "Duet": (0.1392, [(0.1315, -5.5), (0.1310, -5.9), (0.1325, -4.8)]),
    "BERT": (0.2798, [(0.2026, -27.6), (0.1376, -50.8), (0.1931, -31.0)]),
    "ColBERT": (0.3360, [(0.2605, -26.1), (0.1640, -51.2), (0.2221, -33.9)]),
}
MISPRINTS = {("ColBERT", 0): -22.5, ("BM25", 2): -26.7}


def corpora(ranker: str) -> np.ndarray:
    return 100 * drop_matrix(TABLE_6[ranker], OWN)


def test_drops_that_the_text_of_the_paper_names():
    # Table 5, ColBERT on Location and Numeric, trained on Location, Numeric and Person
    kinds = 100 * drop_matrix([[0.432, 0.227], [0.330, 0.325], [0.456, 0.251]])
    assert kinds[0, 1] == pytest.approx(-30.2, abs=0.05)
    assert kinds[2, 0] == pytest.approx(5.6, abs=0.05)
    assert corpora("Conv-KNRM")[MQ2007, MRR100] == pytest.approx(-83.8, abs=0.05)
    assert corpora("Prank")[MSMARCO, MAP_ROBUST04] == pytest.approx(-1.1, abs=0.05)
    assert corpora("Prank")[MQ2007, NDCG_ROBUST04] == pytest.approx(8.6, abs=0.05)
    assert corpora("LambdaMART")[MQ2007, NDCG_ROBUST04] == pytest.approx(-13.2, abs=0.05)
    assert corpora("RankSVM")[MSMARCO, P_ROBUST04] == pytest.approx(2.7, abs=0.05)


def test_table_6_as_figure_5():
    matrices = drop_matrix(list(TABLE_6.values()), OWN)
    known = matrices[~np.isnan(matrices)]
    assert len(known) == 176
    assert (known < 0).sum() == 162


@pytest.mark.parametrize(("ranker", "mean"), [("QL", -0.8), ("BM25", -10.8)])
def test_mean_drop_of_a_ranker(ranker, mean):
    assert mean_drop(corpora(ranker)) == pytest.approx(mean, abs=0.05)


@pytest.mark.parametrize("ranker", ATTACKS)
def test_tables_8_and_9_but_for_their_misprints(ranker):
    before, after = ATTACKS[ranker]
    for place, (value, printed) in enumerate(after):
        found = 100 * drop_rate(before, value)
        wrong = (ranker, place) in MISPRINTS
        assert found == pytest.approx(MISPRINTS.get((ranker, place), printed), abs=0.06)
        assert (abs(found - printed) > 1) == wrong


CELLS = {
    ("a", "a"): {"q1": 0.5, "q2": 1.0},
    ("b", "a"): {"q1": 0.25, "q2": 0.5},
    ("b", "b"): {"q3": 0.4},
    ("a", "b"): {"q3": 0.5},
    ("all", "b"): {"q3": 0.2},
}


def test_cells_by_hand():
    found = {(one.train, one.test): one for one in compute_drops(CELLS)}
    assert {key: round(one.drop, 9) for key, one in found.items()} == {
        ("b", "a"): -50.0,
        ("a", "b"): 25.0,
        ("all", "b"): -50.0,
    }
    # each query lost half, so that every draw loses half
    assert (found["b", "a"].low, found["b", "a"].high) == pytest.approx((-50, -50))
    assert mean_drop_of_cells(CELLS) == pytest.approx(-0.25)
    assert found["b", "a"].comparison.n == 2


def test_the_interval_is_that_of_a_plain_loop():
    """Against a loop that draws queries by name: the ends differ by no more than chance lets them."""
    rng = np.random.default_rng(1)
    own, other = rng.random(40), rng.random(40) * 0.8
    cells = {("a", "a"): dict(enumerate(own)), ("b", "a"): dict(enumerate(other))}
    cells = {key: {str(q): v for q, v in values.items()} for key, values in cells.items()}
    low, high = mean_drop_interval(cells, draws=8000)
    picks = rng.integers(40, size=(8000, 40))
    rates = other[picks].mean(axis=1) / own[picks].mean(axis=1) - 1
    assert (low, high) == pytest.approx(np.quantile(rates, [0.0219, 0.9781]), abs=0.02)
    assert low < mean_drop_of_cells(cells) < high


def test_draws_of_two_rankers_are_paired():
    """Two rankers with the same losses differ by nothing in any draw, although each draw is another loss."""
    rng = np.random.default_rng(3)
    own, other = rng.random(20), rng.random(20) * 0.8
    cells = {("a", "a"): own, ("b", "a"): other}
    first = {key: {str(q): v for q, v in enumerate(values)} for key, values in cells.items()}
    second = {key: {qid: v / 2 for qid, v in values.items()} for key, values in first.items()}
    drawn, again = draw_mean_drops(first, draws=50), draw_mean_drops(second, draws=50)
    assert drawn.std() > 0.01
    assert drawn == pytest.approx(again)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(2)
    caught = 0
    for trial in range(300):
        own = rng.random(30)
        other = np.clip(own * 0.7 + rng.normal(0, 0.1, 30), 0, None)
        cells = {("a", "a"): own, ("b", "a"): other}
        named = {key: {str(i): float(v) for i, v in enumerate(values)} for key, values in cells.items()}
        low, high = mean_drop_interval(named, seed=trial, draws=400)
        caught += low <= -0.298 <= high  # a little of the noise is cut off at 0
    assert 0.90 < caught / 300 < 0.99


def test_a_domain_without_a_reference_is_refused():
    with pytest.raises(BadInput, match="no ranker was trained on b itself"):
        compute_drops({("a", "b"): {"q": 1.0}})
    with pytest.raises(BadInput, match="need a reference each"):
        drop_matrix([[0.5, 0.2]])


def test_a_reference_of_zero_has_no_drop():
    cells = {("a", "a"): {"q": 0.0}, ("b", "a"): {"q": 0.5}}
    assert np.isnan(mean_drop_of_cells(cells))
    assert np.isnan(mean_drop_interval(cells)).all()
    assert np.isnan(drop_matrix([[0.0, 0.1], [0.5, 0.2]])[1, 0])
