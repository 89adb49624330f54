"""Fitting in general: models with their cards, folds, tuning, baselines, and features of a collection."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.documents import Collection, Doc, Query, Slate
from shaketable.core.errors import BadInput
from shaketable.core.registries import LEARNERS
from shaketable.core.results import ScoreTable
from shaketable.datasets.letor import read_letor, write_letor
from shaketable.datasets.splits import make_folds
from shaketable.rankers.features import DEFAULT_COLUMNS
from shaketable.rankers.ltr import FittedModel, LinearPredictor, read_model
from shaketable.training import feature_learner
from shaketable.training.baselines import (
    Baselines,
    make_feature_baseline,
    make_model_baseline,
    make_run_baseline,
    make_table_baseline,
)
from shaketable.training.boosted import GBRT
from shaketable.training.feature_learner import build_letor, cross_validate, learn, tune
from shaketable.training.lambdamart import LambdaMART
from shaketable.training.linear import AdaRank, PRank, RankSVM
from shaketable.training.ndcg import NDCG
from tests.toys import text
from tests.training.lists import letor, make_planted_lists, nothing_to_learn


class Corpus(dict):
    fingerprint = "toy"


@pytest.fixture
def collection():
    docs = Corpus(
        {f"d{i}": Doc(text(i, 5 + i), title=text(50 + i, 2), url=f"http://{text(80 + i, 1)}.org") for i in range(20)}
    )
    queries = {f"q{i}": Query(text(200 + i, 2)) for i in range(12)}
    qrels = {qid: {f"d{(i * 3 + j) % 20}": j % 3 for j in range(6)} for i, qid in enumerate(queries)}
    candidates = {qid: {f"d{(i + j) % 20}": float(-j) for j in range(10)} for i, qid in enumerate(queries)}
    return Collection("toy", docs, queries, qrels, candidates=candidates)


def features_of(collection):
    return build_letor(collection, collection.queries, collection.candidates, collection.qrels)


def test_features_of_a_collection(collection):
    data = features_of(collection)
    assert data.names == DEFAULT_COLUMNS
    assert (data.query_count, data.row_count, data.feature_count) == (12, 120, 28)
    assert data.qids == tuple(collection.queries)
    assert data.docnos[:3] == ("d0", "d1", "d2")  # best first
    expected = [collection.qrels["q3"].get(docno, 0) for docno in data.docnos[30:40]]
    assert data.labels[30:40].tolist() == expected
    assert data.features[:, DEFAULT_COLUMNS.index("dl(url)")].all()


def test_features_come_in_batches(collection, monkeypatch):
    whole = features_of(collection).features
    monkeypatch.setattr(feature_learner, "QUERIES_PER_BATCH", 5)
    assert (features_of(collection).features == whole).all()


def test_queries_without_candidates_are_left_out_and_bad_labels_are_not_relevant(collection):
    run = {"q0": {"d0": 1.0, "d1": 2.0}, "q1": {}}
    data = build_letor(collection, collection.queries, run, {"q0": {"d0": -2, "d1": 3}})
    assert data.qids == ("q0",)
    assert data.docnos == ("d1", "d0")
    assert data.labels.tolist() == [3, 0]


@pytest.mark.parametrize(
    ("run", "qrels", "complaint"),
    [
        ({}, {}, "no query has candidates"),
        ({"q0": {"nobody": 1.0}}, {}, "'nobody' of query 'q0' is not a document of toy"),
        ({"q0": {"d0": 1.0}}, {"q0": {"d0": 32}}, "a judgement of toy is 32"),
    ],
)
def test_features_of_nothing_good(collection, run, qrels, complaint):
    with pytest.raises(BadInput, match=complaint):
        build_letor(collection, collection.queries, run, qrels)


def test_a_model_learned_from_rows_ranks_texts_as_it_ranks_rows(collection, tmp_path):
    data = features_of(collection)
    model = learn(RankSVM(C=0.1), data, seed=0)
    model.save(tmp_path / "model")
    ranker = read_model(tmp_path / "model").open(collection)
    slates = [
        Slate(collection.queries[qid].text, tuple(collection.docs[d] for d in docnos)) for qid, docnos in lists(data)
    ]
    np.testing.assert_allclose(np.concatenate(ranker.score(slates)), model.score_letor(data), atol=1e-5)


def lists(data):
    return [
        (qid, data.docnos[start:end])
        for qid, start, end in zip(data.qids, data.starts[:-1], data.starts[1:], strict=True)
    ]


def test_a_file_of_named_features_teaches_a_model_of_texts(collection, tmp_path):
    write_letor(features_of(collection), tmp_path / "train.txt")
    model = learn(PRank(epochs=2), read_letor(tmp_path / "train.txt"))
    assert model.feature_names == DEFAULT_COLUMNS
    assert model.open(collection).score([Slate("oak", (Doc("oak"), Doc("elm")))])[0].shape == (2,)


def test_the_card_describes_the_training():
    train = letor([(1, [1.0, 0.0]), (0, [0.0, 0.0])], [(1, [1.0, 1.0])], [(0, [1.0, 1.0]), (0, [0.0, 1.0])])
    baselines = Baselines({"bm25": make_feature_baseline(1)})
    model = learn(RankSVM(C=0.1), train, train, seed=7, baselines=baselines)
    assert model.learner == "ranksvm(C=0.1)"
    assert model.feature_names == ()
    assert model.card["seed"] == 7
    assert model.card["baselines"] == ["bm25"]
    assert model.card["train"]["queries"] == 3
    assert model.card["valid"]["rows"] == 5
    assert list(model.card["importance"]) == ["1", "2"]
    assert sum(model.card["importance"].values()) == pytest.approx(1)
    assert model.card["notes"] == [
        "1 of 3 queries have one document only, so they are not used",
        "1 of 3 queries have documents of one label only, so they are not used",
    ]


def test_normalisation_is_that_of_training():
    data = make_planted_lists()
    data.features[:, 2] += 1000 * data.query_numbers  # differs between queries only
    scaled, raw = (learn(RankSVM(), data, normalisation=kind) for kind in ("query", "none"))
    assert scaled.predictor == RankSVM().fit_rows(data.normalise(), None, seed=0).predictor
    assert raw.predictor == RankSVM().fit_rows(data, None, seed=0).predictor
    moved = replace(data, features=data.features * 2 + 1)
    np.testing.assert_allclose(scaled.score_letor(moved), scaled.score_letor(data), atol=1e-4)


def test_data_without_anything_to_learn_are_refused(tmp_path):
    with pytest.raises(BadInput, match="no query has documents of different labels, so there is no order to learn"):
        learn(PRank(), nothing_to_learn())
    write_letor(nothing_to_learn(), tmp_path / "a.txt")
    with pytest.raises(BadInput, match=r"a\.txt: no query has"):
        learn(PRank(), read_letor(tmp_path / "a.txt"))
    with pytest.raises(BadInput, match="6 features to validate on and 4 to learn from"):
        learn(PRank(), make_planted_lists(dims=4), make_planted_lists(dims=6))


@given(st.lists(st.text(), min_size=3, max_size=30, unique=True), st.integers(3, 6), st.integers(0, 5))
def test_every_query_is_tested_once_and_never_trained_on(qids, k, seed):
    if len(qids) < k:
        return
    cut = make_folds(qids, k, seed)
    assert sorted(qid for fold in cut for qid in fold.test) == sorted(qids)
    assert sorted(qid for fold in cut for qid in fold.valid) == sorted(qids)
    for fold in cut:
        assert sorted([*fold.train, *fold.valid, *fold.test]) == sorted(qids)
    turned = make_folds(qids[::-1], k, seed)
    assert [set(fold.test) for fold in cut] == [set(fold.test) for fold in turned]


def test_folds_need_queries():
    with pytest.raises(BadInput, match="4 queries cannot be split into 5 folds"):
        make_folds("abcd", 5)
    with pytest.raises(BadInput, match="into 2 folds"):
        make_folds("abcd", 2)


def test_tuning_tries_all_and_takes_the_best():
    train, valid = make_planted_lists(), make_planted_lists(seed=1)
    tuned = tune(PRank(), train, valid, grid={"epochs": (1, 3), "average": (True, False)})
    assert [(trial["epochs"], trial["average"]) for trial in tuned.trials] == [
        (1, True),
        (1, False),
        (3, True),
        (3, False),
    ]
    best = max(tuned.trials, key=lambda trial: trial["valid"])
    assert tuned.learner == PRank(epochs=best["epochs"], average=best["average"])
    value = NDCG(valid, 10).compute(tuned.learner.fit_rows(train, valid, 0).predictor.predict(valid.features)).mean()
    assert value == pytest.approx(best["valid"])


def test_the_grids_of_the_papers():
    """Paper 000, section 3.3.2, and the papers of the learners and nets."""
    numbers = (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0)
    neural = {"lr": [1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3]}
    expected = {
        "prank": {"average": [True, False]},
        "ranksvm": {"svm_rank": [False, True], "C": list(numbers)},
        "adarank": {"repeats": [1, 5]},
        "afs": {"gain": [0.0001, 0.001, 0.005]},
        "gbrt": {"leaves": [10, 20, 50], "learning_rate": [0.01, 0.05, 0.1]},
        "lambdamart": {
            "leaves": [2, 4, 6, 8, 10, 12, 14, 16, 18, 20],
            "learning_rate": [0.001, 0.005, 0.01, 0.05, 0.1],
        },
        "knrm": neural,
        "conv_knrm": neural,
        "bert": {"lr": [5e-5, 3e-5, 2e-5]},
    }
    found = {name: {key: list(values) for key, values in LEARNERS.build(name).grid.items()} for name in expected}
    assert found == expected
    bm25, ql, ql_jm = (LEARNERS.build(name).grid for name in ("bm25", "ql", "ql_jm"))
    assert list(bm25["k1"]) == pytest.approx([k / 10 for k in range(1, 51)])
    assert list(bm25["b"]) == pytest.approx([b / 10 for b in range(1, 11)])
    assert list(ql["mu"]) == pytest.approx(range(1, 2000, 10))
    assert list(ql_jm["lambda_"]) == pytest.approx([x / 10 for x in range(1, 10)])


def test_a_paper_s_grid_is_the_default():
    tuned = tune(RankSVM(), make_planted_lists(queries=6), make_planted_lists(queries=6, seed=1))
    values = [0.0001, 0.001, 0.01, 0.1, 1.0, 10.0]
    assert [(trial["svm_rank"], trial["C"]) for trial in tuned.trials] == [
        (r, C) for r in (False, True) for C in values
    ]


def test_cross_validation_scores_each_query_by_a_model_that_never_saw_it():
    data = make_planted_lists(queries=15)
    scores, models = cross_validate(RankSVM(), data, k=5, seed=2)
    assert len(models) == 5
    for fold, model in zip(make_folds(data.qids, 5, 2), models, strict=True):
        train, valid, test = (
            np.array([data.qids.index(qid) for qid in part]) for part in (fold.train, fold.valid, fold.test)
        )
        assert (scores[np.isin(data.query_numbers, test)] == model.score_letor(data.select_queries(test))).all()
        again = learn(RankSVM(), data.select_queries(train), data.select_queries(valid), seed=2)
        assert again.predictor == model.predictor
    assert NDCG(data, 10).compute(scores).mean() > 0.75


def test_cross_validation_can_tune_in_each_fold():
    _, models = cross_validate(RankSVM(), make_planted_lists(queries=9), k=3, grid={"C": (0.001, 1.0)})
    assert {model.learner for model in models} <= {"ranksvm(C=0.001)", "ranksvm(C=1.0)"}


def test_baselines_of_four_kinds_by_hand():
    # q0: feature 1 puts the relevant document first, q1: second
    data = letor([(1, [0.9, 0.0]), (0, [0.1, 1.0])], [(1, [0.1, 1.0]), (0, [0.9, 0.0])])
    ndcg, second = NDCG(data, 10), 1 / math.log2(3)
    table = ScoreTable("nDCG@10", ("a", "b"), ("q1", "q0"), np.array([[0.1, 0.2], [0.3, 0.4]]))
    baselines = Baselines(
        {
            "feature": make_feature_baseline(1),
            "model": make_model_baseline(FittedModel(LinearPredictor((0.0, 1.0)))),
            "run": make_run_baseline({"q0": {"d0": 1.0}, "q1": {"d3": 1.0}}, "a run"),
            "table": make_table_baseline(table, "b"),
        }
    )
    expected = [[1, second], [second, 1], [1, second], [0.4, 0.3]]
    np.testing.assert_allclose(baselines.compute_ndcg(data, ndcg), expected)


@pytest.mark.parametrize("normalisation", ["query", "none"])
def test_a_baseline_model_sees_features_as_it_was_trained_on_them(normalisation):
    """The thresholds of a tree on raw features mean nothing between 0 and 1."""
    data = make_planted_lists()
    data.features[:] = 100 + 50 * data.features + 30 * data.query_numbers[:, None]
    model = learn(GBRT(trees=5, leaves=4, min_docs=5), data, normalisation=normalisation)
    wanted = NDCG(data).compute(model.score_letor(data))
    system = make_model_baseline(model)
    for scaled in (data.normalise(), data.normalise().normalise()):
        np.testing.assert_array_equal(system(scaled, NDCG(scaled)), wanted)
    few = np.array([3, 1, 8])
    some = data.normalise().select_queries(few)
    np.testing.assert_array_equal(system(some, NDCG(some)), wanted[few])
    # as learning, tuning and cross-validation hand it on
    seen: list[np.ndarray] = []
    baselines = Baselines({"model": lambda data, ndcg: seen.append(system(data, ndcg)) or seen[-1]})
    learner = LambdaMART("u-cro", 1.0, trees=2, leaves=3, min_docs=5)
    learn(learner, data, data, baselines=baselines)
    tune(learner, data.normalise(), data.normalise(), grid={"leaves": (3,)}, baselines=baselines)
    assert len(seen) == 4
    for values in seen:
        np.testing.assert_array_equal(values, wanted)


def test_a_baseline_feature_is_not_blurred_by_scaling():
    """Within a query 1e6 wide, 0.001 of a feature is less than 32 bits can tell between 0 and 1."""
    data = letor([(0, [0.001]), (1, [0.002]), (0, [-1e6])])
    scaled = data.normalise()
    assert make_feature_baseline(1)(scaled, NDCG(scaled)).tolist() == [1.0]


def test_baselines_that_lack_something_are_refused():
    data = letor([(1, [0.9]), (0, [0.1])], [(1, [0.1]), (0, [0.9])])
    ndcg = NDCG(data, 10)
    with pytest.raises(BadInput, match="baseline mine has no value for query 'q1' \\(1 of 2 queries are missing\\)"):
        make_run_baseline({"q0": {"d0": 1.0}}, "mine")(data, ndcg)
    with pytest.raises(BadInput, match="baseline a has no value for query 'q0'"):
        make_table_baseline(ScoreTable("x", ("a",), ("q1",), np.array([[0.5]])), "a")(data, ndcg)
    with pytest.raises(BadInput, match="no feature 2 for the baseline; there are 1"):
        make_feature_baseline(2)(data, ndcg)


@pytest.mark.parametrize("learner", [PRank(epochs=3), RankSVM(), AdaRank(rounds=5)])
def test_learners_beat_chance_on_queries_they_never_saw(learner):
    train, test = make_planted_lists(), make_planted_lists(seed=9)
    value = NDCG(test, 10).compute(learn(learner, train).score_letor(test)).mean()
    chance = np.mean(
        [NDCG(test, 10).compute(np.random.default_rng(i).random(test.row_count)).mean() for i in range(20)]
    )
    assert value > chance + 0.1
