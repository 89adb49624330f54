"""The derivatives against loops that follow the papers word by word; ΔM' by hand; the laws of ΔM'."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shaketable.core.errors import BadInput
from shaketable.datasets.letor import Letor
from shaketable.measures.risk import expected_scores, geo_risk, geo_risk_from_means, penalise_losses, standardise_scores
from shaketable.training.feature_learner import Baselines
from shaketable.training.lambdamart import (
    GeoRiskObjective,
    LambdaMART,
    LambdaObjective,
    ListObjective,
    MeanObjective,
    TRiskObjective,
    URiskObjective,
    compute_spread,
    make_lightgbm_objective,
)
from shaketable.training.lambdamart_kernels import (
    EQ9,
    ONE_Z,
    UTILITY,
    ObjectiveTerms,
    apply_eq9,
    apply_one_z,
    apply_utility,
    compute_swap_changes,
)
from shaketable.training.ndcg import NDCG

Worth = Callable[[float, int], float]
make_t_risk = partial(TRiskObjective, use_standard_error=False, eq9=False)


def data_of(labels: list[list[int]]) -> Letor:
    sizes = [len(some) for some in labels]
    rows = sum(sizes)
    return Letor(
        np.zeros((rows, 1), np.float32),
        np.array([label for some in labels for label in some], np.int64),
        np.concatenate(([0], np.cumsum(sizes))),
        tuple(f"q{i}" for i in range(len(labels))),
        tuple(f"d{i}" for i in range(rows)),
    )


def lists_with_ties(seed: int, lists: int = 12) -> tuple[Letor, np.ndarray]:
    """Return lists of 1 to 30 documents, some without a relevant one; the scores have few values, so that many tie."""
    rng = np.random.default_rng(seed)
    labels = [rng.integers(0, 5, rng.integers(1, 31)).tolist() for _ in range(lists)]
    labels[3] = [0] * len(labels[3])
    data = data_of(labels)
    scores = rng.normal(size=data.row_count).round(1) * rng.choice([1, 4], data.row_count)
    return data, scores


# The definitions as loops.


def order_of(scores: list[float], labels: list[int]) -> list[int]:
    return sorted(range(len(scores)), key=lambda i: (-scores[i], labels[i], i))


def dcg(labels: list[int], k: int) -> float:
    return sum((2**label - 1) / math.log2(2 + r) for r, label in enumerate(labels[:k]))


def ndcg_of(scores: list[float], labels: list[int], k: int) -> float:
    best = dcg(sorted(labels, reverse=True), k)
    return dcg([labels[i] for i in order_of(scores, labels)], k) / best if best else 1.0


def loops(data: Letor, scores: np.ndarray, k: int, worth: Worth) -> tuple[np.ndarray, np.ndarray]:
    """λ and h by swapping every pair of each list and measuring NDCG again."""
    gradient, hessian = np.zeros(data.row_count), np.zeros(data.row_count)
    for q in range(data.query_count):
        start, end = data.starts[q], data.starts[q + 1]
        labels, own = data.labels[start:end].tolist(), scores[start:end].tolist()
        order = order_of(own, labels)
        ranked = [labels[i] for i in order]
        best = dcg(sorted(labels, reverse=True), k)
        if best == 0:
            continue
        for a in range(len(order)):
            for b in range(len(order)):
                i, j = order[a], order[b]
                if labels[i] <= labels[j]:
                    continue
                swapped = list(ranked)
                swapped[a], swapped[b] = swapped[b], swapped[a]
                change = (dcg(swapped, k) - dcg(ranked, k)) / best
                weight = abs(worth(change, q)) if abs(change) > 1e-14 else 0.0
                rho = 1 / (1 + math.exp(own[i] - own[j]))
                gradient[start + i] -= rho * weight
                gradient[start + j] += rho * weight
                hessian[start + i] += rho * (1 - rho) * weight
                hessian[start + j] += rho * (1 - rho) * weight
    return gradient, np.maximum(hessian, 1e-16)


def kernel(data: Letor, scores: np.ndarray, k: int | None, objective: LambdaObjective) -> tuple[np.ndarray, np.ndarray]:
    with ThreadPoolExecutor(2) as pool:
        return make_lightgbm_objective(ListObjective(NDCG(data, k), objective), pool)(scores)


def same(found: tuple[np.ndarray, np.ndarray], wanted: tuple[np.ndarray, np.ndarray]) -> None:
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def values_of(data: Letor, scores: np.ndarray, k: int) -> list[float]:
    bounds = zip(data.starts[:-1], data.starts[1:], strict=True)
    return [ndcg_of(scores[a:b].tolist(), data.labels[a:b].tolist(), k) for a, b in bounds]


def chances(data: Letor, seed: int, rows: int = 1) -> np.ndarray:
    return np.random.default_rng(seed + 100).uniform(size=(rows, data.query_count))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [1, 3, 10, None])
def test_plain_derivatives_are_those_of_the_loops(seed, k):
    data, scores = lists_with_ties(seed)
    same(kernel(data, scores, k, MeanObjective()), loops(data, scores, k or 1000, lambda change, q: change))


@pytest.mark.parametrize("seed", range(5))
def test_without_alpha_the_three_objectives_are_plain(seed):
    data, scores = lists_with_ties(seed)
    baseline = chances(data, seed)[0]
    wanted = loops(data, scores, 10, lambda change, q: change)
    for objective in (
        URiskObjective(baseline, 0.0),
        URiskObjective(baseline, 0.0, eq9=True),
        make_t_risk(baseline, 0.0, scale_all_changes=False, spread=0.3),
        make_t_risk(baseline, 0.0, scale_all_changes=True, spread=0.3),
        make_t_risk(baseline, 0.0, scale_all_changes=True, spread=None),
    ):
        same(kernel(data, scores, 10, objective), wanted)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("alpha", [1.0, 5.0])
def test_objectives_of_one_baseline_are_those_of_the_loops(seed, alpha):
    data, scores = lists_with_ties(seed)
    baseline = chances(data, seed)[0].tolist()
    lead = [m - b for m, b in zip(values_of(data, scores, 10), baseline, strict=True)]

    def u(x: float, level: float) -> float:
        return x if x >= 0 else (1 + level) * x

    def prime(q: int) -> float:
        return alpha * (1 - NormalDist().cdf(lead[q] / 0.3))

    forms: dict[LambdaObjective, Worth] = {
        URiskObjective(np.array(baseline), alpha): lambda x, q: u(lead[q] + x, alpha) - u(lead[q], alpha),
        URiskObjective(np.array(baseline), alpha, eq9=True): lambda x, q: x if lead[q] + x >= 0 else (1 + alpha) * x,
        make_t_risk(np.array(baseline), alpha, False, 0.3): lambda x, q: (
            u(lead[q] + x, prime(q)) - u(lead[q], prime(q))
        ),
        make_t_risk(np.array(baseline), alpha, True, 0.3): lambda x, q: (1 + prime(q)) * x,
    }
    for objective, worth in forms.items():
        same(kernel(data, scores, 10, objective), loops(data, scores, 10, worth))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("alpha", [0.0, 1.0, 5.0])
def test_georisk_is_that_of_the_loops(seed, alpha):
    """One z of the measure's own functions, taken anew for each swap."""
    data, scores = lists_with_ties(seed)
    baselines = chances(data, seed, rows=3)
    value = np.array(values_of(data, scores, 10))
    topics = len(value)

    def risk(x: float, q: int) -> float:
        system, topic, total = value.sum() + x, value + baselines.sum(axis=0), value.sum() + baselines.sum() + x
        z = standardise_scores(value, expected_scores(value.sum(), topic, total - x))
        z[q] = standardise_scores(value[q] + x, expected_scores(np.float64(system), topic[q] + x, total))
        return float(geo_risk_from_means(system / topics, penalise_losses(z, alpha).sum() / topics))

    wanted = loops(data, scores, 10, lambda x, q: topics * (risk(x, q) - risk(0.0, q)))
    same(kernel(data, scores, 10, GeoRiskObjective(baselines, alpha)), wanted)


@pytest.mark.parametrize("alpha", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("seed", range(3))
def test_lists_without_a_relevant_document_are_no_topics_of_georisk(seed, alpha):
    """Measure and derivatives are those of the other lists alone, here and on validation queries."""
    labels = lists_with_ties(seed)[0]
    data = data_of([[0] * 5, *np.split(labels.labels, labels.starts[1:-1]), [0]])
    scores = np.random.default_rng(seed).normal(size=data.row_count).round(1)
    table = chances(data, seed, rows=3)
    baselines = Baselines({f"b{i}": (lambda data, ndcg, row=row: row) for i, row in enumerate(table)})
    found = np.array([labels.max() > 0 for labels in np.split(data.labels, data.starts[1:-1])])
    assert (~found).sum() >= 3
    goal = LambdaMART("georisk", alpha).prepare_objective(data, baselines)
    value = goal.ndcg.compute(scores)
    alone = geo_risk(np.vstack([table, value])[:, found], alpha)[-1]
    assert goal.objective.measure(value) == pytest.approx(alone)
    if alpha:  # three lists with NDCG 1 for all systems would change the result
        ones = np.where(found, table, 1.0)
        assert geo_risk(np.vstack([ones, value]), alpha)[-1] != pytest.approx(alone)
    some = data.select_queries(np.flatnonzero(found))
    kept = found[data.query_numbers]
    whole = kernel(data, scores, 10, goal.objective)
    same((whole[0][kept], whole[1][kept]), kernel(some, scores[kept], 10, GeoRiskObjective(table[:, found], alpha)))
    assert not whole[0][~kept].any()


def test_georisk_needs_a_list_with_a_relevant_document():
    barren = data_of([[0, 0], [0]])
    with pytest.raises(BadInput, match="no query has a relevant document"):
        LambdaMART("georisk", 1.0).prepare_objective(barren, Baselines({"b": lambda data, ndcg: np.ones(2)}))


@pytest.mark.parametrize("seed", range(3))
def test_historical_changes_count_all_ranks_while_the_risk_is_that_of_the_truncation(seed):
    data, scores = lists_with_ties(seed)
    baseline = chances(data, seed)[0]
    lead = np.array(values_of(data, scores, 3)) - baseline

    def utility(x: float, q: int) -> float:
        return float(penalise_losses(lead[q] + x, 2.0) - penalise_losses(lead[q], 2.0))

    with ThreadPoolExecutor(1) as pool:
        found = make_lightgbm_objective(
            ListObjective(NDCG(data, 3, historical=True), URiskObjective(baseline, 2.0)), pool
        )(scores)
    same(found, loops(data, scores, 1000, utility))


def test_georisk_begins_where_every_list_has_nothing():
    """All tie, fourteen documents without relevance come first: S = 0, and still relevant ones are pulled up."""
    data = data_of([[0] * 14 + [2], [1, *[0] * 14]])
    gradient, hessian = kernel(data, np.zeros(30), 10, GeoRiskObjective(np.array([[0.3, 0.0], [0.5, 0.0]]), 1.0))
    assert np.isfinite(gradient).all()
    assert np.isfinite(hessian).all()
    assert (gradient[data.labels > 0] < 0).all()
    assert (gradient[data.labels == 0] >= 0).all()


def test_far_scores_do_not_overflow():
    data = data_of([[0, 1, 2, 0], [1, 0]])
    found = kernel(data, np.array([1e4, -1e4, 3.0, 0.0, -2e3, 2e3]), 10, MeanObjective())
    assert all(np.isfinite(some).all() for some in found)
    assert (found[0][[1, 4]] < 0).all()  # relevant and last: up


def test_a_list_without_relevant_documents_pulls_nothing_and_neither_does_a_document_alone():
    data = data_of([[0, 0, 0], [2], [1, 1]])
    gradient, hessian = kernel(data, np.arange(6.0), 10, MeanObjective())
    assert (gradient == 0).all()
    assert (hessian == 1e-16).all()


def test_threads_change_nothing():
    rng = np.random.default_rng(0)
    data = data_of([rng.integers(0, 5, 40).tolist() for _ in range(300)])
    assert data.row_count > 4000, "enough rows for several threads"
    scores = rng.normal(size=data.row_count)
    first, again = (kernel(data, scores, 10, MeanObjective()) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    some = data.select_queries(range(10))
    np.testing.assert_array_equal(
        kernel(some, scores[: some.row_count], 10, MeanObjective())[0], first[0][: some.row_count]
    )


# ΔM' by hand, with α = 1 and a baseline of 0.5.


def worth(form: Callable[..., None], kind: int, value: float, change: float, alpha: float = 1.0) -> float:
    terms = ObjectiveTerms(kind, np.ones(1), np.array([alpha]), np.array([value]), np.array([0.5]), np.empty(0))
    changes = np.array([change])
    form(changes, terms, 0)
    return float(changes[0])


@pytest.mark.parametrize(
    ("value", "change", "exact", "unsplit"),
    [
        (0.4, -0.1, -0.2, -0.2),  # below, worse: (1 + α) ΔM
        (0.3, 0.1, 0.2, 0.2),  # below, better, still below: (1 + α) ΔM
        (0.4, 0.2, 0.3, 0.2),  # below, better, now above: α (M_b - M_m) + ΔM = 0.1 + 0.2
        (0.6, -0.2, -0.3, -0.4),  # above, worse, now below: α (M_m - M_b) + (1 + α) ΔM = 0.1 - 0.4
        (0.8, -0.2, -0.2, -0.2),  # above, worse, still above: ΔM
        (0.6, 0.2, 0.2, 0.2),  # above, better: ΔM
    ],
)
def test_the_crossings_of_u_cro(value, change, exact, unsplit):
    assert worth(apply_utility, UTILITY, value, change) == pytest.approx(exact, abs=1e-12)
    assert worth(apply_eq9, EQ9, value, change) == pytest.approx(unsplit, abs=1e-12)


@pytest.mark.parametrize("alpha", [1.0, 5.0])
def test_a_swap_that_reaches_the_baseline_is_not_below_it(alpha):
    """Equation 9 says M + ΔM ≥ M_b; here the baseline is the list after that very swap, so the two are equal."""
    rng, tried, below = np.random.default_rng(5), 0, 0
    for _ in range(400):
        labels = rng.integers(0, 5, 12)
        data = data_of([labels.tolist()])
        ndcg = NDCG(data)
        scores = -np.arange(12.0)
        a, b = sorted(rng.choice(12, 2, replace=False))
        if labels[a] >= labels[b] or a >= 10:
            continue
        swapped = scores.copy()
        swapped[[a, b]] = swapped[[b, a]]
        value, baseline = ndcg.compute(scores), ndcg.compute(swapped)
        lists, changes = ndcg.graded_lists, np.zeros(1)
        worth, discounts = lists.gains * lists.change_scale[0], np.append(lists.discounts, [0.0, 0.0])
        compute_swap_changes(worth[a], discounts[a], worth[b : b + 1], discounts[b : b + 1], changes)
        change = float(changes[0])
        assert value[0] + change == pytest.approx(baseline[0], abs=1e-12)
        apply_eq9(changes, URiskObjective(baseline, alpha, eq9=True).compute_terms(value), 0)
        assert changes[0] == change
        tried, below = tried + 1, below + int(value[0] - baseline[0] + change < 0)
    assert tried > 100
    assert below > 20, "rounding should have put some of them below"


def test_one_z_by_hand():
    """Two lists, one baseline: all numbers small enough for a pencil."""
    # M = (0.5, 0.25), baseline (0.5, 0.75); S = 0.75, T = (1, 1), N = 2: e = (0.375, 0.375)
    objective = GeoRiskObjective(np.array([[0.5, 0.75]]), 1.0)
    terms = objective.compute_terms(np.array([0.5, 0.25]))
    root = math.sqrt(0.375)
    assert terms.other_z_risk == pytest.approx([2 * (0.25 - 0.375) / root, (0.5 - 0.375) / root])
    # list 2 gains 0.25: S' = 1, T' = 1.25, N' = 2.25, e' = 5/9, z' = (0.5 - 5/9) / √(5/9) = -√5 / 30
    z = 0.125 / root - 2 * math.sqrt(5) / 30
    wanted = 2 * (math.sqrt(0.5 * NormalDist().cdf(z / 2)) - objective.measure(np.array([0.5, 0.25])))
    changes = np.array([0.25])
    apply_one_z(changes, terms, 1)
    assert changes[0] == pytest.approx(wanted, abs=1e-12)


def test_an_alpha_for_which_georisk_is_nothing_is_refused():
    with pytest.raises(BadInput, match="alpha"):
        GeoRiskObjective(np.array([[0.9, 0.1]]), 1e6).compute_terms(np.array([0.1, 0.9]))


# Laws.

levels = st.floats(0, 1).map(lambda x: round(x, 6))


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, int, float, float]:
    """M of baselines and model, a list, and two changes that leave its NDCG within 0 and 1, the smaller first."""
    x = draw(arrays(np.float64, st.tuples(st.integers(2, 5), st.integers(1, 12)), elements=levels))
    q = draw(st.integers(0, x.shape[1] - 1))
    low, high = sorted(draw(levels) - x[-1, q] for _ in range(2))
    return x, q, low, high


@given(cases(), st.sampled_from([0.0, 1.0, 5.0, 10.0]))
@settings(max_examples=300, deadline=None)
def test_a_better_swap_never_lowers_georisk_with_one_z(case, alpha):
    x, q, low, high = case
    assume(x[-1].sum() > 0)
    terms = GeoRiskObjective(x[:-1], alpha).compute_terms(x[-1])
    changes = np.array([low, high])
    apply_one_z(changes, terms, q)
    assert changes[0] <= changes[1] + 1e-9
    assert changes[0] * low >= -1e-9
    assert changes[1] * high >= -1e-9


@given(cases(), st.sampled_from([0.0, 1.0, 1e3, 1e6]))
@settings(deadline=None)
def test_every_other_form_keeps_the_sign_of_a_swap_for_any_alpha(case, alpha):
    x, q, low, high = case
    baseline, value = x[0], x[-1]
    for objective in (
        URiskObjective(baseline, alpha),
        URiskObjective(baseline, alpha, eq9=True),
        make_t_risk(baseline, alpha, False, 0.2),
        make_t_risk(baseline, alpha, True, 0.2),
    ):
        terms = objective.compute_terms(value)
        changes = np.array([low, high])
        (apply_eq9 if terms.form == EQ9 else apply_utility)(changes, terms, q)
        assert changes[0] <= changes[1] + 1e-9 * (1 + alpha) or terms.form == EQ9  # which jumps at the baseline
        assert changes[0] * low >= 0
        assert changes[1] * high >= 0


def test_with_a_large_alpha_only_losses_are_left():
    """ΔM' / α tends to the change of the loss: lists that stay above their baseline fall silent."""
    for value, change, loss in [(0.4, 0.2, 0.1), (0.6, -0.2, -0.1), (0.8, -0.2, 0.0), (0.3, -0.1, -0.1)]:
        assert worth(apply_utility, UTILITY, value, change, alpha=1e9) / 1e9 == pytest.approx(loss, abs=1e-8)


@given(arrays(np.float64, 6, elements=levels), arrays(np.float64, 6, elements=levels), st.sampled_from([0.0, 1.0, 5.0]))
@settings(deadline=None)
def test_the_change_of_utility_is_that_of_the_measure(value, baseline, alpha):
    terms = URiskObjective(baseline, alpha).compute_terms(value)
    for q in range(6):
        changes = np.linspace(-value[q], 1 - value[q], 7)
        moved = penalise_losses(value[q] + changes - baseline[q], alpha) - penalise_losses(
            value[q] - baseline[q], alpha
        )
        apply_utility(changes, terms, q)
        np.testing.assert_allclose(changes, moved, atol=1e-12)


@given(arrays(np.float64, (3, 6), elements=levels), st.sampled_from([0.0, 1.0, 5.0]))
@settings(deadline=None)
def test_no_change_and_one_list_in_full_are_georisk_as_measured(x, alpha):
    """With one list the one-z update is the whole of GeoRisk."""
    assume(x[-1, 0] > 0)
    objective = GeoRiskObjective(x[:-1, :1], alpha)
    terms = objective.compute_terms(x[-1, :1])
    assert terms.form == ONE_Z
    for change in (-x[-1, 0] / 2, 0.0, 1 - x[-1, 0]):
        changes = np.array([change])
        apply_one_z(changes, terms, 0)
        assert changes[0] == pytest.approx(objective.measure(x[-1, :1] + change) - terms.risk, abs=1e-9)


# α' and its spread.


def test_alpha_prime_by_hand():
    objective = make_t_risk(np.array([0.5, 0.5, 0.5]), 2.0, scale_all_changes=True, spread=0.1)
    found = objective.compute_alphas(np.array([0.5, 0.4, 0.6]))
    wanted = [2 * (1 - NormalDist().cdf(t)) for t in (0, -1, 1)]
    assert found == pytest.approx(wanted)


def test_without_spread_every_list_has_half_of_alpha():
    objective = make_t_risk(np.full(3, 0.5), 2.0, scale_all_changes=False, spread=None)
    assert objective.compute_alphas(np.full(3, 0.25)).tolist() == [1.0, 1.0, 1.0]


def test_spread_is_the_deviation_or_the_error():
    values = np.array([0.1, 0.3, 0.5, 0.7])
    deviation = math.sqrt(sum((x - 0.4) ** 2 for x in values) / 3)
    assert compute_spread(values) == pytest.approx(deviation)
    assert compute_spread(values, use_standard_error=True) == pytest.approx(deviation / 2)
    assert compute_spread(np.array([0.3])) == 0
    assert compute_spread(np.array([0.1, 0.1, 0.1 + 1e-17])) == 0
