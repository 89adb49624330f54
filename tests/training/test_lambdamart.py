"""NDCG against other implementations; training: it learns, repeats itself, stops in time and lowers the risk."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from evidence import risk_generator

from shaketable.core.errors import BadInput, ShaketableError, UnknownName
from shaketable.core.results import ScoreTable
from shaketable.datasets.letor import Letor
from shaketable.measures.effectiveness import evaluate_run
from shaketable.measures.measure_names import parse_measure
from shaketable.measures.risk import geo_risk, t_risk, u_risk
from shaketable.training.baselines import Baselines, make_feature_baseline, make_table_baseline
from shaketable.training.boosted import FIXED_PARAMETERS
from shaketable.training.lambdamart import LambdaMART
from shaketable.training.ndcg import NDCG

SMALL = LambdaMART(trees=20, leaves=5, early_stop=5, min_docs=5)
ONE = Baselines({"first": make_feature_baseline(1)})
TWO = Baselines({"first": make_feature_baseline(1), "second": make_feature_baseline(2)})


def data_of(labels: list[list[int]], features: np.ndarray | None = None) -> Letor:
    starts = np.concatenate(([0], np.cumsum([len(some) for some in labels])))
    rows = int(starts[-1])
    return Letor(
        np.zeros((rows, 1), np.float32) if features is None else features.astype(np.float32),
        np.array([label for some in labels for label in some], np.int64),
        starts,
        tuple(f"q{i}" for i in range(len(labels))),
        tuple(f"d{i:04}" for i in range(rows)),
    )


def generate_data(seed: int, queries: int, docs: int = 12) -> Letor:
    """Return labels that depend on two features and their product; the third feature is noise."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(queries * docs, 3))
    truth = features[:, 0] + 2 * features[:, 0] * features[:, 1] + 0.5 * rng.normal(size=len(features))
    labels = np.clip(np.digitize(truth, [0.5, 1.5, 3.0]), 0, 3).reshape(queries, docs)
    return data_of(labels.tolist(), features)


# NDCG.


@pytest.mark.parametrize("k", [1, 5, 10])
def test_ndcg_is_that_of_trec_eval_where_nothing_ties(k):
    rng = np.random.default_rng(3)
    data = data_of([[*rng.integers(0, 5, rng.integers(1, 40)).tolist(), 1] for _ in range(50)])
    scores = rng.permutation(data.row_count).astype(np.float64)
    measure = parse_measure(f"nDCG(dcg='exp-log2')@{k}")
    wanted = evaluate_run([measure], data.to_qrels(), data.to_run(scores))[measure]
    assert NDCG(data, k).compute(scores) == pytest.approx([wanted[qid] for qid in data.qids], abs=1e-9)


def test_ties_are_broken_against_the_ranking():
    data = data_of([[2, 0, 1]])
    # all tie: 0, 1, 2 is the order; the best is 2, 1, 0
    worst, best = 1 / math.log2(3) + 3 / 2, 3 + 1 / math.log2(3)
    assert NDCG(data).compute(np.zeros(3)) == pytest.approx([worst / best])
    assert NDCG(data).compute(np.array([1.0, 1.0, 0.0])) == pytest.approx([(3 / math.log2(3) + 1 / 2) / best])


def test_a_list_without_relevant_documents_has_one_whatever_the_order():
    assert NDCG(data_of([[0, 0], [0, 1]])).compute(np.array([1.0, 2.0, 2.0, 1.0])).tolist() == [1.0, 1 / math.log2(3)]


def test_without_truncation_all_ranks_count():
    data = data_of([[0] * 30 + [1]])
    scores = -np.arange(31.0)
    assert NDCG(data).compute(scores).tolist() == [0.0]
    assert NDCG(data, None).compute(scores) == pytest.approx([1 / math.log2(32)])


def test_historical_changes_count_all_ranks_and_clip_labels():
    data = data_of([[5, 4, 0]])
    lists = NDCG(data, 1, historical=True).graded_lists
    assert lists.gains.tolist() == [15, 15, 0]
    assert len(lists.measure_discounts) == 1
    assert lists.inverse_ideal_dcg.tolist() == [1 / 15]
    assert len(lists.discounts) == 3
    assert lists.change_scale == pytest.approx([1 / (15 + 15 / math.log2(3))])


@pytest.mark.parametrize("labels", [[[0, 32]], [[-1, 1]]])
def test_labels_out_of_bounds_are_refused(labels):
    with pytest.raises(BadInput, match="0 to 31"):
        NDCG(data_of(labels)).compute(np.zeros(2))


def test_ndcg_needs_a_rank_to_count():
    with pytest.raises(BadInput, match="must be at least 1"):
        NDCG(data_of([[0, 1]]), 0).compute(np.zeros(2))


# Training.


def test_it_learns_and_keeps_the_best_of_the_validation_queries():
    train, valid, test = (generate_data(seed, 150) for seed in range(3))
    fit = replace(SMALL, trees=60).fit_rows(train, valid, seed=1)
    curve = [row["valid"] for row in fit.history]
    assert [row["iteration"] for row in fit.history] == list(range(1, len(curve) + 1))
    assert fit.best_iteration == 1 + int(np.argmax(curve))
    assert len(curve) in (60, fit.best_iteration + 5)
    assert NDCG(valid).compute(fit.predictor.predict(valid.features)).mean() == pytest.approx(max(curve))
    ndcg = NDCG(test)
    assert ndcg.compute(fit.predictor.predict(test.features)).mean() > ndcg.compute(test.features[:, 0]).mean() + 0.1
    assert fit.importance.shape == (3,)
    assert fit.importance[2] < fit.importance[:2].min()


@pytest.mark.parametrize("objective", ["ndcg", "u-cro", "t-saro", "t-faro", "t*-faro", "georisk"])
def test_the_same_seed_grows_the_same_trees_and_another_seed_others(objective):
    train, valid = generate_data(0, 80), generate_data(1, 40)
    alpha = 0.0 if objective == "ndcg" else 1.0
    learner = replace(SMALL, objective=objective, alpha=alpha, subsample=0.5, trees=5)
    first, again, other = (learner.fit_rows(train, valid, seed, ONE) for seed in (1, 1, 2))
    assert first.predictor == again.predictor
    assert first.history == again.history
    assert first.predictor != other.predictor


@pytest.mark.parametrize(
    ("objective", "baselines", "measure"),
    [
        ("u-cro", ONE, lambda m, b: u_risk(m, b[0], 2.0)),
        ("t-saro", ONE, lambda m, b: t_risk(m, b[0], 2.0)),
        ("t-faro", ONE, lambda m, b: t_risk(m, b[0], 2.0)),
        ("t*-faro", TWO, lambda m, b: t_risk(m, b.mean(axis=0), 2.0)),
        ("georisk", TWO, lambda m, b: geo_risk(np.vstack([b, m]), 2.0)[-1]),
    ],
)
def test_the_history_is_the_risk_measure_of_the_validation_queries(objective, baselines, measure):
    train, valid = generate_data(0, 80), generate_data(1, 40)
    fit = replace(SMALL, objective=objective, alpha=2.0).fit_rows(train, valid, 1, baselines)
    ndcg = NDCG(valid)
    wanted = measure(ndcg.compute(fit.predictor.predict(valid.features)), baselines.compute_ndcg(valid, ndcg))
    assert fit.history[fit.best_iteration - 1]["valid"] == pytest.approx(float(wanted), abs=1e-9)


def test_without_validation_queries_all_trees_stay():
    fit = SMALL.fit_rows(generate_data(0, 60), None, seed=1)
    assert fit.best_iteration == SMALL.trees
    assert "valid" not in fit.history[-1]


@pytest.mark.parametrize("options", [{"eq9": True}, {"spread": "se"}, {"refresh": True}, {"historical": True}])
@pytest.mark.parametrize("objective", ["t-saro", "georisk"])
def test_every_option_trains(objective, options):
    fit = replace(SMALL, objective=objective, alpha=5.0, trees=5, **options).fit_rows(
        generate_data(0, 60), generate_data(1, 30), 1, ONE
    )
    assert all(np.isfinite(row["valid"]) for row in fit.history)


def test_a_query_without_relevant_documents_is_neither_gain_nor_loss():
    """Whatever a table says of it: its baseline has NDCG 1 there, as the model has."""
    data = data_of([[0, 0], [0, 1], [1, 2]])
    table = ScoreTable("nDCG", ("b",), data.qids, np.array([[0.0, 0.5, 0.5]]))
    goal = LambdaMART("u-cro", 1.0).prepare_objective(data, Baselines({"b": make_table_baseline(table, "b")}))
    assert goal.objective.baseline.tolist() == [1.0, 0.5, 0.5]


def test_the_spread_is_that_before_the_first_tree_or_as_jforests_had_it():
    data = data_of([[0, 1], [0, 2], [1, 2], [0, 0]])
    values = np.array([[0.9, 0.4, 0.6, 0.2]])
    baselines = Baselines({"b": lambda data, ndcg: values[0]})
    learner = LambdaMART("t-faro", 1.0)
    start = NDCG(data).compute(np.zeros(data.row_count))
    y = np.where(start < (b := [0.9, 0.4, 0.6, 1.0]), 2 * (start - b), start - b)
    assert learner.prepare_objective(data, baselines).objective.spread == pytest.approx(y.std(ddof=1))
    historical = replace(learner, historical=True).prepare_objective(data, baselines).objective.spread
    assert historical == pytest.approx(2 * np.std(b, ddof=1))  # (1 + α) sd(M_b)
    error = replace(learner, spread="se").prepare_objective(data, baselines).objective.spread
    assert error == pytest.approx(y.std(ddof=1) / 2)
    assert replace(learner, refresh=True).prepare_objective(data, baselines).objective.spread is None


@pytest.mark.parametrize(
    ("learner", "baselines", "says"),
    [
        (LambdaMART("u-cro", 1.0), None, "needs a baseline"),
        (LambdaMART("u-cro", 1.0), TWO, "compares with one baseline and there are 2"),
        (LambdaMART("u-cro", 1.0), Baselines({"f": make_feature_baseline(9)}), "feature 9"),
    ],
)
def test_invalid_settings_are_refused_with_a_message(learner, baselines, says):
    with pytest.raises(ShaketableError, match=says):
        learner.fit_rows(generate_data(0, 10), None, 1, baselines)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"objective": "geo"}, "georisk"),
        ({"objective": "u-cro", "alpha": -1.0}, "alpha"),
        ({"objective": "u-cro", "alpha": math.nan}, "alpha"),
        ({"objective": "ndcg", "alpha": 1.0}, "alpha=1 needs a risk-sensitive objective"),
        ({"objective": "t-faro", "alpha": 1.0, "spread": "range"}, "spread"),
        ({"leaves": 1}, "leaves"),
        ({"trees": 0}, "trees"),
        ({"subsample": 0.0}, "subsample"),
        ({"truncation": 0}, "1 or more, or None"),
    ],
)
def test_settings_that_make_no_sense_are_refused_at_once(settings, says):
    with pytest.raises(ShaketableError, match=says):
        LambdaMART(**settings)


def test_an_unknown_objective_is_an_unknown_name():
    with pytest.raises(UnknownName):
        LambdaMART("risk")


def test_nothing_to_learn_is_refused():
    with pytest.raises(BadInput, match="no order to learn"):
        SMALL.fit_rows(data_of([[1, 1], [0]]), None, 1)


# What is real.


@pytest.mark.slow
def test_plain_is_as_good_as_lightgbms_own_lambdarank():
    """Mean test NDCG over seeds; the difference lies within twice the standard error of its seeds, or is tiny."""
    import lightgbm

    differences = []
    for seed in range(5):
        train, test = generate_data(10 + seed, 300), generate_data(50 + seed, 600)
        ndcg = NDCG(test)
        learner = LambdaMART(trees=60, leaves=8, subsample=0.8)
        ours = ndcg.compute(learner.fit_rows(train, None, seed).predictor.predict(test.features)).mean()
        params = FIXED_PARAMETERS | learner.build_parameters(seed)
        params |= {"objective": "lambdarank", "lambdarank_truncation_level": 10, "lambdarank_norm": False}
        rows = lightgbm.Dataset(train.features, train.labels, group=train.list_sizes, params=params)
        theirs = ndcg.compute(lightgbm.train(params, rows, learner.trees).predict(test.features)).mean()
        differences.append(ours - theirs)
    error = np.std(differences, ddof=1) / len(differences) ** 0.5
    assert abs(np.mean(differences)) < max(2 * error, 0.005)


@pytest.mark.slow
def test_each_objective_lowers_the_risk_it_is_made_for():
    """The small version of evidence/risk_generator.py: one seed, few queries, a large alpha."""
    sizes = {"train": 500, "valid": 250, "test": 1500}
    learner = replace(risk_generator.LEARNER, trees=80, early_stop=20)
    found = risk_generator.trial([1], [5.0], sizes, learner)
    for tested in found.others:
        _, before, after, p = risk_generator.gain(tested, found, draws=500)
        assert after > before, tested.objective
        assert p < 0.05, tested.objective


def test_features_that_tell_nothing_apart_are_one_sentence():
    """LightGBM keeps no feature that is the same everywhere, and fails a check of its own where none is left."""
    labels, starts = np.array([1, 0, 0, 2]), np.array([0, 2, 4])
    data = Letor(np.full((4, 1), 3, np.float32), labels, starts, ("q1", "q2"), ("a", "b", "c", "d"))
    with pytest.raises(BadInput, match=r"no trees grow on these 4 rows.*no feature differs \(LightGBM"):
        LambdaMART(trees=2).fit_rows(data, None, seed=0)
