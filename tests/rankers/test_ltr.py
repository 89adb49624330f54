"""Learned models: scores, files and errors."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace

import numpy as np
import pytest

from shaketable.core.documents import Collection, Doc, Query, Slate
from shaketable.core.errors import BadInput, Damaged, MissingExtra
from shaketable.datasets.letor import Letor
from shaketable.files.checksums import read_sealed_json, seal_json
from shaketable.rankers.features import DEFAULT_COLUMNS
from shaketable.rankers.ltr import FittedModel, LinearPredictor, TreePredictor, read_model
from shaketable.rankers.saved import SavedModel
from shaketable.testing import check_model, check_ranker
from tests.toys import slates, text


class Corpus(dict):
    fingerprint = "toy"


@pytest.fixture
def collection():
    docs = Corpus({f"d{i}": Doc(text(i, 5 + i), title=text(50 + i, 2)) for i in range(12)})
    return Collection("toy", docs, {"q1": Query("oak elm"), "q2": Query("pine"), "q3": Query("yew fir")})


BM25_AND_LENGTH = FittedModel(LinearPredictor((1.0, -0.5)), ("bm25(document)", "dl(document)"), learner="ranksvm")


@pytest.fixture
def trees():
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    features = rng.random((200, 2))
    params = {"objective": "regression", "verbosity": -1, "num_leaves": 4}
    booster = lightgbm.train(params, lightgbm.Dataset(features, features[:, 0] > features[:, 1]), 5)
    return TreePredictor(booster.model_to_string()), features, booster.predict(features)


def test_a_list_is_normalised_before_it_is_scored(collection):
    ranker = BM25_AND_LENGTH.open(collection)
    slate = Slate("oak elm", tuple(collection.docs.values()))
    raw = ranker.extract_features([slate])
    scaled = (raw - raw.min(axis=0)) / (raw.max(axis=0) - raw.min(axis=0))
    np.testing.assert_allclose(ranker.score([slate])[0], scaled[:, 0] - 0.5 * scaled[:, 1], rtol=1e-12)
    assert not ranker.pointwise


def test_without_normalisation_it_is_pointwise(collection):
    ranker = replace(BM25_AND_LENGTH, normalisation="none").open(collection)
    slate = Slate("oak elm", tuple(collection.docs.values()))
    raw = ranker.extract_features([slate])
    np.testing.assert_allclose(ranker.score([slate])[0], raw[:, 0] - 0.5 * raw[:, 1], rtol=1e-12)
    assert ranker.pointwise
    check_ranker(ranker, slates())


def test_it_keeps_the_contract_of_models(collection, tmp_path):
    check_ranker(BM25_AND_LENGTH.open(collection))
    BM25_AND_LENGTH.save(tmp_path / "model")
    check_model(SavedModel(str(tmp_path / "model")), collection)


def test_features_of_a_text_are_computed_once(collection, monkeypatch):
    ranker = BM25_AND_LENGTH.open(collection)
    docs = tuple(collection.docs.values())
    first = ranker.score([Slate("oak", docs), Slate("elm", docs[:3])])
    asked = []
    compute = type(ranker.extractor).extract
    monkeypatch.setattr(
        type(ranker.extractor), "extract", lambda self, slates: asked.extend(slates) or compute(self, slates)
    )
    changed = (*docs[:4], Doc("oak oak oak"), *docs[5:])
    again = ranker.score([Slate("oak", docs), Slate("elm", docs[:3])])
    assert asked == []
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    ranker.score([Slate("oak", changed)])
    assert asked == [Slate("oak", (Doc("oak oak oak"),))]


def test_trees_predict_as_lightgbm_does(trees):
    predictor, features, expected = trees
    assert predictor.dims == 2
    assert (predictor.predict(features) == expected).all()
    assert len(predictor.predict(features[:0])) == 0


def test_a_linear_score_does_not_depend_on_the_other_rows():
    rng = np.random.default_rng(0)
    features, weights = rng.random((301, 136)).astype(np.float32), tuple(rng.normal(size=136).tolist())
    together = LinearPredictor(weights).predict(features)
    assert all(LinearPredictor(weights).predict(features[i : i + 1])[0] == together[i] for i in range(301))


def test_feature_rows_are_scored(trees):
    predictor, features, expected = trees
    data = Letor(features, np.zeros(200, np.int64), np.array([0, 200]), ("q",), tuple(map(str, range(200))))
    assert (FittedModel(predictor, normalisation="none").score_letor(data) == expected).all()
    assert FittedModel(predictor).score_letor(data).shape == (200,)


def test_other_features_are_refused():
    def data(*names, dims=2):
        return Letor(
            np.zeros((1, dims), np.float32), np.zeros(1, np.int64), np.array([0, 1]), ("q",), ("d",), names, "x.txt"
        )

    model = BM25_AND_LENGTH
    assert model.score_letor(data()).tolist() == [0.0]
    with pytest.raises(BadInput, match=r"x\.txt: there are 3 features, ranksvm was trained on 2"):
        model.score_letor(data(dims=3))
    with pytest.raises(BadInput, match=r"feature 2 is tf\(url\) where ranksvm reads dl\(document\)"):
        model.score_letor(data("bm25(document)", "tf(url)"))


def test_a_model_of_unnamed_columns_ranks_no_texts(collection):
    with pytest.raises(BadInput, match="46 unnamed features of a LETOR file"):
        FittedModel(LinearPredictor((1.0,) * 46), learner="ranksvm").open(collection)


def test_names_must_fit_the_weights():
    with pytest.raises(BadInput, match="names 28 features, but was trained on 2"):
        FittedModel(LinearPredictor((1.0, 2.0)), DEFAULT_COLUMNS)
    with pytest.raises(BadInput, match="normalisation is one of query, none"):
        FittedModel(LinearPredictor((1.0, 2.0)), normalisation="z")


def test_linear_models_come_back_as_they_were(tmp_path):
    model = replace(
        BM25_AND_LENGTH, predictor=LinearPredictor((1 / 3, -1e-300)), card={"seed": 3, "history": [{"train": 0.5}]}
    )
    model.save(tmp_path / "deep" / "model")
    again = read_model(tmp_path / "deep" / "model")
    assert again == model
    assert again.card == model.card
    assert again.fingerprint == model.fingerprint
    assert os.listdir(tmp_path / "deep") == ["model"]
    assert os.listdir(tmp_path / "deep" / "model") == ["model.json"]


def test_trees_come_back_as_they_were(tmp_path, trees):
    predictor, features, expected = trees
    model = FittedModel(predictor, normalisation="none", learner="gbrt(trees=5)")
    model.save(tmp_path / "model")
    files, about = sorted(path.relative_to(tmp_path / "model") for path in (tmp_path / "model").rglob("*.*"))
    assert (files.name, about.name) == ("trees.txt", "model.json")
    again = read_model(tmp_path / "model")
    assert again == model
    assert (again.predictor.predict(features) == expected).all()


def test_fingerprints_depend_on_everything_that_changes_scores(collection):
    model = BM25_AND_LENGTH
    others = [
        replace(model, predictor=LinearPredictor((1.0, -0.25))),
        replace(model, feature_names=("bm25(title)", "dl(document)")),
        replace(model, normalisation="none"),
    ]
    assert len({m.fingerprint for m in [model, *others]}) == 4
    assert replace(model, card={"seed": 1}).fingerprint == model.fingerprint
    assert model.open(collection).fingerprint == model.open(collection).fingerprint


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda about: about.pop("features"), "not a readable model"),
        (lambda about: about.update(schema="shaketable.model/9"), "is not a saved model of this version"),
        (lambda about: about.update(kind="knrm"), "is a model of the kind knrm, which was not trained on features"),
        (lambda about: about.update(weights=["x", 1.0]), "not a readable model"),
        (lambda about: about.update(weights=[1.0, float("nan")]), "weight that is not a number"),
        (lambda about: about.update(dims=3), "declares 3 features"),
        (lambda about: about.update(weights=[1.0]), "names 2 features"),
        (lambda about: about.update(kind="trees"), "not a readable model"),
        (lambda about: about.update(tokenizer={"stemmer": "nobody"}), "stemmer is one of"),
        (lambda about: about.update(tokenizer={"knife": 1}), "not a readable model"),
    ],
)
def test_a_folder_that_makes_no_sense_is_refused(tmp_path, change, complaint):
    """Even if its checksum is right."""
    BM25_AND_LENGTH.save(tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    about = read_sealed_json(path)
    change(about)
    path.write_text(seal_json(about))
    with pytest.raises(BadInput, match=complaint):
        read_model(tmp_path / "model")


def test_a_weight_that_was_changed_by_hand_is_refused(tmp_path, collection):
    BM25_AND_LENGTH.save(tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    path.write_text(path.read_text().replace("-0.5", "-0.6"))
    with pytest.raises(Damaged, match=r"damaged or edited; train the model again, or copy it again"):
        SavedModel(str(tmp_path / "model")).open(collection)


def test_a_folder_may_be_written_down_in_another_way(tmp_path):
    """Only the content counts."""
    BM25_AND_LENGTH.save(tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()), sort_keys=True))
    assert read_model(tmp_path / "model") == BM25_AND_LENGTH


def test_other_folders_are_refused(tmp_path, collection):
    with pytest.raises(BadInput, match=r"has no saved model: there is no model\.json"):
        SavedModel(str(tmp_path)).open(collection)
    (tmp_path / "model.json").write_text("[")
    with pytest.raises(Damaged, match="is not valid JSON"):
        read_model(tmp_path)
    (tmp_path / "model.json").write_text("[]")
    with pytest.raises(Damaged, match="has a missing or wrong checksum"):
        read_model(tmp_path)


def test_trees_that_were_changed_are_refused(tmp_path, trees):
    FittedModel(trees[0], normalisation="none").save(tmp_path / "model")
    (path,) = (tmp_path / "model").glob("*/trees.txt")
    text = path.read_text()
    path.write_text(text.replace("left_child=1", "left_child=0"))
    with pytest.raises(Damaged, match=r"trees\.txt: is damaged, or was changed by hand"):
        read_model(tmp_path / "model")
    path.unlink()
    with pytest.raises(Damaged, match=r"trees\.txt: cannot be read \(No such file or directory\); train the model"):
        read_model(tmp_path / "model")


def test_without_lightgbm_trees_name_their_extra(tmp_path, trees, monkeypatch):
    FittedModel(trees[0], normalisation="none").save(tmp_path / "model")
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(MissingExtra, match=r"shaketable\[ltr\]"):
        read_model(tmp_path / "model")


def test_an_opened_folder_is_called_by_its_path(tmp_path, collection):
    BM25_AND_LENGTH.save(tmp_path / "model")
    ranker = SavedModel(str(tmp_path / "model")).open(collection)
    assert ranker.name == str(tmp_path / "model")
    slate = Slate("oak", tuple(collection.docs.values()))
    assert (ranker.score([slate])[0] == BM25_AND_LENGTH.open(collection).score([slate])[0]).all()
