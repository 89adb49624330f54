from __future__ import annotations

import math

import numpy as np
import pytest
import pytrec_eval
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shaketable.core.errors import BadInput
from shaketable.core.registries import MEASURES
from shaketable.measures.effectiveness import score_table
from shaketable.measures.variance import (
    GMAP,
    VAP,
    VNAP,
    GMMap,
    WorstArea,
    below_initial_percentage,
    count_relevant_lost,
    flag_no_relevant,
    mean_variance_correlation,
    r_loss,
    robustness_index,
)

shares = st.floats(0, 1, allow_subnormal=False)
precisions = arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 12)), elements=shares)


def test_by_hand() -> None:
    ap = [0.1, 0.4, 0.1, 0.4]
    assert VAP().over(ap).item() == pytest.approx(0.15**2)
    assert VNAP().over(ap).item() == pytest.approx(0.15**2 / 0.25**2)
    assert GMAP(epsilon=1e-12).over(ap).item() == pytest.approx(0.2)
    # the worst two: MAP(1) = 0.1, MAP(2) = 0.1; of three: MAP(3) = 0.2
    assert WorstArea(share=0.5).over(ap).item() == pytest.approx(0.1)
    assert WorstArea(share=0.75, normalised=False).over(ap).item() == pytest.approx(0.1 + 0.1 + 0.2)


def test_the_effect_of_a_failed_query_on_gmap_depends_on_epsilon() -> None:
    plus = GMAP().over([0.0, 0.5]).item()
    assert plus == pytest.approx(math.sqrt(1e-5 * (0.5 + 1e-5)) - 1e-5)
    assert GMAP(floor=True).over([0.0, 0.5]).item() == pytest.approx(math.sqrt(1e-5 * 0.5))
    assert GMAP().over([0.0, 0.0]).item() == pytest.approx(0.0, abs=1e-15)


def test_floored_gmap_is_gm_map_of_trec_eval() -> None:
    rng = np.random.default_rng(5)
    docnos = [f"d{i}" for i in range(40)]
    qrels = {str(q): {d: int(rng.random() < 0.2) for d in docnos[:30]} for q in range(25)}
    run = {q: {d: float(rng.integers(5)) for d in docnos} for q in qrels if q != "7"}
    run["7"] = {"elsewhere": 1.0}
    rows = pytrec_eval.RelevanceEvaluator(qrels, {"map", "gm_map"}).evaluate(run)
    theirs = pytrec_eval.compute_aggregated_measure("gm_map", [row["gm_map"] for row in rows.values()])
    for ours in (GMAP(floor=True), MEASURES.build("gm_map")):
        assert ours.over([row["map"] for row in rows.values()]).item() == pytest.approx(theirs, rel=1e-9)


@given(precisions)
def test_definitions_in_plain_python(ap: np.ndarray) -> None:
    for i, row in enumerate(ap.tolist()):
        mean = sum(row) / len(row)
        assert VAP().over(ap)[i] == pytest.approx(sum((v - mean) ** 2 for v in row) / len(row), rel=1e-9, abs=1e-12)
        vnap = VNAP().over(ap)[i]
        if mean == 0:
            assert math.isnan(vnap)
        else:
            assert vnap == pytest.approx(sum((v / mean - 1) ** 2 for v in row) / len(row), rel=1e-9, abs=1e-12)
        product = math.prod((v + 1e-5) ** (1 / len(row)) for v in row) - 1e-5
        assert GMAP().over(ap)[i] == pytest.approx(product, rel=1e-9, abs=1e-12)
        worst = sorted(row)
        means = [sum(worst[:x]) / x for x in range(1, len(row) // 4 + 1)]
        area = WorstArea(normalised=False).over(ap)[i]
        assert math.isnan(area) if not means else area == pytest.approx(sum(means))


@given(precisions, st.floats(0.1, 5))
def test_vnap_does_not_know_the_scale(ap: np.ndarray, factor: float) -> None:
    ap = ap.round(3)
    assert VNAP().over(ap * factor) == pytest.approx(VNAP().over(ap), rel=1e-9, abs=1e-9, nan_ok=True)


def test_any_number_of_systems() -> None:
    ap = np.array([[0.1, 0.3], [0.2, 0.2], [0.0, 0.0]])
    for measure in (VNAP(), VAP(), GMAP(), GMMap(), WorstArea(share=0.5)):
        assert measure.over(ap).shape == (3,)
        assert measure.over(ap[0]).shape == ()
        assert measure.over(ap)[0] == measure.over(ap[0])
    assert VNAP().over(ap)[1:] == pytest.approx([0.0, math.nan], nan_ok=True)


def test_share_is_counted_without_binary_fractions() -> None:
    assert WorstArea(share=0.29, normalised=False).over(np.ones(100)).item() == pytest.approx(29)


@pytest.mark.parametrize("ap", [[], 0.5, [0.1, math.nan], [0.1, math.inf], [-0.1]])
@pytest.mark.parametrize("measure", [VNAP(), VAP(), GMAP(), GMMap(), WorstArea()])
def test_values_that_are_no_precision_are_refused(measure: VNAP | VAP | GMAP | GMMap | WorstArea, ap: object) -> None:
    with pytest.raises(BadInput):
        measure.over(ap)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["worst_area(share=0)", "worst_area(share=1.5)", "gmap(epsilon=0)"])
def test_a_parameter_out_of_range(text: str) -> None:
    with pytest.raises(BadInput, match="should be above 0"):
        MEASURES.build(text)


def test_text_and_object() -> None:
    assert MEASURES.build("gmap(floor=True)") == GMAP(floor=True)
    assert MEASURES.spec(WorstArea(share=0.1)) == "worst_area(share=0.1)"


def test_no_relevant_by_hand() -> None:
    qrels = {"hit": {"a": 1}, "late": {"a": 1}, "missing": {"a": 1}, "none": {"a": 0}}
    run = {"hit": {"a": 1.0}, "late": {"a": 1.0, "b": 2.0, "c": 3.0}, "none": {"a": 1.0}}
    assert flag_no_relevant(qrels, run, k=2) == {"hit": 0.0, "late": 1.0, "missing": 1.0, "none": 1.0}
    assert flag_no_relevant(qrels, run) == {"hit": 0.0, "late": 0.0, "missing": 1.0, "none": 1.0}


def test_r_loss_by_hand() -> None:
    qrels = {"q1": {"a": 1, "b": 1, "c": 1}, "q2": {"a": 1}}
    base = {"q1": {"a": 3.0, "b": 2.0, "x": 1.0}, "q2": {"x": 2.0, "y": 1.0, "a": 0.0}}
    new = {"q1": {"x": 3.0, "y": 2.0, "a": 1.0}, "q2": {"a": 1.0}}
    assert r_loss(qrels, base, new, k=2) == {"q1": 2.0, "q2": 0.0}
    assert r_loss(qrels, base, new, k=3) == {"q1": 1.0, "q2": 0.0}
    assert r_loss({}, base, new) == {}
    precision = score_table("P@2", qrels, {"base": base, "new": new})
    assert count_relevant_lost(precision.row("base"), precision.row("new"), k=2).tolist() == [2.0, 0.0]


def test_paired_summaries_by_hand() -> None:
    before, after = [0.1, 0.2, 0.3, 0.4, 0.5], [0.2, 0.1, 0.1, 0.1, 0.5]
    assert robustness_index(before, after) == pytest.approx((1 - 3) / 5)
    assert below_initial_percentage(before, after) == pytest.approx(60)
    with pytest.raises(BadInput, match="cannot be paired"):
        robustness_index([0.1], [0.1, 0.2])


def test_correlation() -> None:
    assert mean_variance_correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert math.isnan(mean_variance_correlation([1, 2], [2, 1]))
    assert math.isnan(mean_variance_correlation([1, 1, 1], [1, 2, 3]))
    assert math.isnan(mean_variance_correlation([1, 2, 3], [1, 1, 1]))


def test_a_ranker_without_vnap_is_no_point_of_the_correlation() -> None:
    ap = np.array([[0.1, 0.5], [0.2, 0.5], [0.3, 0.5], [0.4, 0.5], [0.0, 0.0]])
    means, vnap = ap.mean(axis=1), VNAP().over(ap)
    assert math.isnan(vnap[-1])
    found = mean_variance_correlation(means, vnap)
    assert found == pytest.approx(scipy.stats.pearsonr(means[:4], vnap[:4]).statistic)
    assert found < -0.9
    assert scipy.stats.pearsonr(means, np.nan_to_num(vnap)).statistic > 0  # what a made-up 0 would have said
    assert math.isnan(mean_variance_correlation([0.1, 0.2, 0.0], [2.0, 1.0, math.nan]))
    with pytest.raises(BadInput, match="not a finite number"):
        mean_variance_correlation([1, math.nan, 3, 4], [1, 2, 3, 5])
    with pytest.raises(BadInput, match="cannot be paired"):
        mean_variance_correlation([1, 2, 3], [1, 2])
