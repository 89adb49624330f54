"""Fitting in general: models with their cards, folds, tuning, baselines, and features of a collection."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.data.letor import read_letor, write_letor
from shaketable.data.splits import folds
from shaketable.errors import BadInput
from shaketable.learners import fit
from shaketable.learners.baselines import Baselines, by_feature, by_model, by_run, by_table
from shaketable.learners.boosted import GBRT
from shaketable.learners.fit import cross_validate, learn, letor_of, tune
from shaketable.learners.lambdamart import LambdaMART
from shaketable.learners.linear import AdaRank, PRank, RankSVM
from shaketable.learners.ndcg import NDCG
from shaketable.rankers.features import NAMES
from shaketable.rankers.ltr import FittedModel, Linear, read_model
from shaketable.types import Collection, Doc, Query, ScoreTable, Slate
from tests.learners.lists import letor, nothing_to_learn, planted
from tests.toys import text


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
    return letor_of(collection, collection.queries, collection.candidates, collection.qrels)


def test_features_of_a_collection(collection):
    data = features_of(collection)
    assert data.names == NAMES
    assert (data.queries, data.rows, data.dims) == (12, 120, 28)
    assert data.qids == tuple(collection.queries)
    assert data.docnos[:3] == ("d0", "d1", "d2")  # best first
    expected = [collection.qrels["q3"].get(docno, 0) for docno in data.docnos[30:40]]
    assert data.labels[30:40].tolist() == expected
    assert data.features[:, NAMES.index("dl(url)")].all()


def test_features_come_in_batches(collection, monkeypatch):
    whole = features_of(collection).features
    monkeypatch.setattr(fit, "BATCH", 5)
    assert (features_of(collection).features == whole).all()


def test_queries_without_candidates_are_left_out_and_bad_labels_are_not_relevant(collection):
    run = {"q0": {"d0": 1.0, "d1": 2.0}, "q1": {}}
    data = letor_of(collection, collection.queries, run, {"q0": {"d0": -2, "d1": 3}})
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
        letor_of(collection, collection.queries, run, qrels)


def test_a_model_learned_from_rows_ranks_texts_as_it_ranks_rows(collection, tmp_path):
    data = features_of(collection)
    model = learn(RankSVM(C=0.1), data, seed=0)
    model.save(tmp_path / "model")
    ranker = read_model(tmp_path / "model").open(collection)
    slates = [
        Slate(collection.queries[qid].text, tuple(collection.docs[d] for d in docnos)) for qid, docnos in lists(data)
    ]
    np.testing.assert_allclose(np.concatenate(ranker.score(slates)), model.scores(data), atol=1e-5)


def lists(data):
    return [
        (qid, data.docnos[start:end])
        for qid, start, end in zip(data.qids, data.starts[:-1], data.starts[1:], strict=True)
    ]


def test_a_file_of_named_features_teaches_a_model_of_texts(collection, tmp_path):
    write_letor(features_of(collection), tmp_path / "train.txt")
    model = learn(PRank(epochs=2), read_letor(tmp_path / "train.txt"))
    assert model.names == NAMES
    assert model.open(collection).score([Slate("oak", (Doc("oak"), Doc("elm")))])[0].shape == (2,)


def test_the_card_says_how_a_model_came_about():
    train = letor([(1, [1.0, 0.0]), (0, [0.0, 0.0])], [(1, [1.0, 1.0])], [(0, [1.0, 1.0]), (0, [0.0, 1.0])])
    baselines = Baselines({"bm25": by_feature(1)})
    model = learn(RankSVM(C=0.1), train, train, seed=7, baselines=baselines)
    assert model.learner == "ranksvm(C=0.1)"
    assert model.names == ()
    assert model.card["seed"] == 7
    assert model.card["baselines"] == ["bm25"]
    assert model.card["train"]["queries"] == 3
    assert model.card["valid"]["rows"] == 5
    assert list(model.card["importance"]) == ["1", "2"]
    assert sum(model.card["importance"].values()) == pytest.approx(1)
    assert model.card["notes"] == [
        "1 of 3 queries have one document only and teach nothing",
        "1 of 3 queries have documents of one label only and teach no order",
    ]


def test_normalisation_is_that_of_training():
    data = planted()
    data.features[:, 2] += 1000 * data.owners  # differs between queries only
    scaled, raw = (learn(RankSVM(), data, normalisation=kind) for kind in ("query", "none"))
    assert scaled.predictor == RankSVM().fit_rows(data.normalised(), None, seed=0).predictor
    assert raw.predictor == RankSVM().fit_rows(data, None, seed=0).predictor
    moved = replace(data, features=data.features * 2 + 1)
    np.testing.assert_allclose(scaled.scores(moved), scaled.scores(data), atol=1e-4)


def test_what_cannot_be_learned_is_refused(tmp_path):
    with pytest.raises(BadInput, match="no query has documents of different labels, so there is no order to learn"):
        learn(PRank(), nothing_to_learn())
    write_letor(nothing_to_learn(), tmp_path / "a.txt")
    with pytest.raises(BadInput, match=r"a\.txt: no query has"):
        learn(PRank(), read_letor(tmp_path / "a.txt"))
    with pytest.raises(BadInput, match="6 features to validate on and 4 to learn from"):
        learn(PRank(), planted(dims=4), planted(dims=6))


@given(st.lists(st.text(), min_size=3, max_size=30, unique=True), st.integers(3, 6), st.integers(0, 5))
def test_every_query_is_tested_once_and_never_trained_on(qids, k, seed):
    if len(qids) < k:
        return
    cut = folds(qids, k, seed)
    assert sorted(qid for fold in cut for qid in fold.test) == sorted(qids)
    assert sorted(qid for fold in cut for qid in fold.valid) == sorted(qids)
    for fold in cut:
        assert sorted([*fold.train, *fold.valid, *fold.test]) == sorted(qids)
    turned = folds(qids[::-1], k, seed)
    assert [set(fold.test) for fold in cut] == [set(fold.test) for fold in turned]


def test_folds_need_queries():
    with pytest.raises(BadInput, match="4 queries cannot be cut into 5 folds"):
        folds("abcd", 5)
    with pytest.raises(BadInput, match="into 2 folds"):
        folds("abcd", 2)


def test_tuning_tries_all_and_takes_the_best():
    train, valid = planted(), planted(seed=1)
    tuned = tune(PRank(), train, valid, grid={"epochs": (1, 3), "average": (True, False)})
    assert [(trial["epochs"], trial["average"]) for trial in tuned.trials] == [
        (1, True),
        (1, False),
        (3, True),
        (3, False),
    ]
    best = max(tuned.trials, key=lambda trial: trial["valid"])
    assert tuned.learner == PRank(epochs=best["epochs"], average=best["average"])
    value = NDCG(valid, 10).of(tuned.learner.fit_rows(train, valid, 0).predictor.predict(valid.features)).mean()
    assert value == pytest.approx(best["valid"])


def test_a_paper_s_grid_is_the_default():
    tuned = tune(RankSVM(), planted(queries=6), planted(queries=6, seed=1))
    values = [0.0001, 0.001, 0.01, 0.1, 1.0, 10.0]
    assert [(trial["svm_rank"], trial["C"]) for trial in tuned.trials] == [
        (r, C) for r in (False, True) for C in values
    ]


def test_cross_validation_scores_each_query_by_a_model_that_never_saw_it():
    data = planted(queries=15)
    scores, models = cross_validate(RankSVM(), data, k=5, seed=2)
    assert len(models) == 5
    for fold, model in zip(folds(data.qids, 5, 2), models, strict=True):
        train, valid, test = (
            np.array([data.qids.index(qid) for qid in part]) for part in (fold.train, fold.valid, fold.test)
        )
        assert (scores[np.isin(data.owners, test)] == model.scores(data.select(test))).all()
        again = learn(RankSVM(), data.select(train), data.select(valid), seed=2)
        assert again.predictor == model.predictor
    assert NDCG(data, 10).of(scores).mean() > 0.75


def test_cross_validation_can_tune_in_each_fold():
    _, models = cross_validate(RankSVM(), planted(queries=9), k=3, grid={"C": (0.001, 1.0)})
    assert {model.learner for model in models} <= {"ranksvm(C=0.001)", "ranksvm(C=1.0)"}


def test_baselines_of_four_kinds_by_hand():
    # q0: feature 1 puts the relevant document first, q1: second
    data = letor([(1, [0.9, 0.0]), (0, [0.1, 1.0])], [(1, [0.1, 1.0]), (0, [0.9, 0.0])])
    ndcg, second = NDCG(data, 10), 1 / math.log2(3)
    table = ScoreTable("nDCG@10", ("a", "b"), ("q1", "q0"), np.array([[0.1, 0.2], [0.3, 0.4]]))
    baselines = Baselines(
        {
            "feature": by_feature(1),
            "model": by_model(FittedModel(Linear((0.0, 1.0)))),
            "run": by_run({"q0": {"d0": 1.0}, "q1": {"d3": 1.0}}, "a run"),
            "table": by_table(table, "b"),
        }
    )
    expected = [[1, second], [second, 1], [1, second], [0.4, 0.3]]
    np.testing.assert_allclose(baselines.values(data, ndcg), expected)


@pytest.mark.parametrize("normalisation", ["query", "none"])
def test_a_baseline_model_sees_features_as_it_was_trained_on_them(normalisation):
    """The thresholds of a tree on raw features mean nothing between 0 and 1."""
    data = planted()
    data.features[:] = 100 + 50 * data.features + 30 * data.owners[:, None]
    model = learn(GBRT(trees=5, leaves=4, min_docs=5), data, normalisation=normalisation)
    wanted = NDCG(data).of(model.scores(data))
    system = by_model(model)
    for scaled in (data.normalised(), data.normalised().normalised()):
        np.testing.assert_array_equal(system(scaled, NDCG(scaled)), wanted)
    few = np.array([3, 1, 8])
    some = data.normalised().select(few)
    np.testing.assert_array_equal(system(some, NDCG(some)), wanted[few])
    # as learning, tuning and cross-validation hand it on
    seen: list[np.ndarray] = []
    baselines = Baselines({"model": lambda data, ndcg: seen.append(system(data, ndcg)) or seen[-1]})
    learner = LambdaMART("u-cro", 1.0, trees=2, leaves=3, min_docs=5)
    learn(learner, data, data, baselines=baselines)
    tune(learner, data.normalised(), data.normalised(), grid={"leaves": (3,)}, baselines=baselines)
    assert len(seen) == 4
    for values in seen:
        np.testing.assert_array_equal(values, wanted)


def test_a_baseline_feature_is_not_blurred_by_scaling():
    """Within a query 1e6 wide, 0.001 of a feature is less than 32 bits can tell between 0 and 1."""
    data = letor([(0, [0.001]), (1, [0.002]), (0, [-1e6])])
    scaled = data.normalised()
    assert by_feature(1)(scaled, NDCG(scaled)).tolist() == [1.0]


def test_baselines_that_lack_something_are_refused():
    data = letor([(1, [0.9]), (0, [0.1])], [(1, [0.1]), (0, [0.9])])
    ndcg = NDCG(data, 10)
    with pytest.raises(BadInput, match="baseline mine has nothing for query 'q1' \\(1 of 2 such\\)"):
        by_run({"q0": {"d0": 1.0}}, "mine")(data, ndcg)
    with pytest.raises(BadInput, match="baseline a has nothing for query 'q0'"):
        by_table(ScoreTable("x", ("a",), ("q1",), np.array([[0.5]])), "a")(data, ndcg)
    with pytest.raises(BadInput, match="no feature 2 to be a baseline; there are 1"):
        by_feature(2)(data, ndcg)


@pytest.mark.parametrize("learner", [PRank(epochs=3), RankSVM(), AdaRank(rounds=5)])
def test_learners_beat_chance_on_queries_they_never_saw(learner):
    train, test = planted(), planted(seed=9)
    value = NDCG(test, 10).of(learn(learner, train).scores(test)).mean()
    chance = np.mean([NDCG(test, 10).of(np.random.default_rng(i).random(test.rows)).mean() for i in range(20)])
    assert value > chance + 0.1
