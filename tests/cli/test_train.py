"""`shaketable train`: from feature files or a collection to a model that ranks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from shaketable.datasets.letor import read_letor
from shaketable.datasets.splits import make_folds
from shaketable.datasets.trec import read_qrels, read_run
from shaketable.rankers.ltr import read_model
from shaketable.tasks.runner import list_default_tasks
from shaketable.training.feature_learner import cross_validate, learn
from shaketable.training.linear import RankSVM

pytestmark = pytest.mark.slow


def feature_file(seed: int, queries: int = 12) -> str:
    rng = np.random.default_rng(seed)
    rows = []
    for q in range(queries):
        for d in range(8):
            label = int(rng.integers(3))
            rows.append(f"{label} qid:{seed}{q} 1:{label + rng.normal(0, 0.5):.4f} 2:{rng.random():.4f} # d{d}")
    return "\n".join(rows) + "\n"


@pytest.fixture
def letor(tmp_path):
    for name, seed in (("train.txt", 1), ("vali.txt", 2), ("test.txt", 3)):
        (tmp_path / name).write_text(feature_file(seed))
    return tmp_path


def test_from_feature_files_to_an_evaluation(shaketable, letor):
    ended = shaketable(
        *("train", "ranksvm(C=0.1)", "--letor", "train.txt", "--letor-valid", "vali.txt", "--letor-test", "test.txt"),
        *("--model", "models/svm", "--json", "card.json"),
    )
    assert ended.code == 0, ended.err
    assert json.loads((letor / "card.json").read_text())["card"]["importance"]
    assert (letor / "models" / "svm" / "model.json").exists()
    run, qrels = letor / "models" / "svm" / "test.run", letor / "models" / "svm" / "test.qrels"
    data = json.loads(shaketable("evaluate", "--qrels", qrels, "--run", run, "--json", "-").out)
    assert {f["name"]: f["value"] for r in data["results"] for f in r["findings"]}["nDCG@10"] > 0.8


def test_training_and_evaluation_print_the_same_number_under_the_same_name(shaketable, letor):
    with (letor / "test.txt").open("a") as out:  # a query without relevant documents counts 0 in both
        out.write("0 qid:99 1:0.3 2:0.1 # d0\n0 qid:99 1:0.5 2:0.9 # d1\n")
    ended = shaketable(
        *("train", "ranksvm(C=0.1)", "--letor", "train.txt", "--letor-valid", "test.txt", "--letor-test", "test.txt"),
        *("--model", "svm", "--json", "svm.json"),
    )
    trained = json.loads((letor / "svm.json").read_text())
    exponential = "nDCG(dcg='exp-log2')@10"
    data = json.loads(
        shaketable(
            *("evaluate", "--qrels", "svm/test.qrels", "--run", "svm/test.run", "--measure", "nDCG@10"),
            *("--measure", "ndcg_cut_10", "--measure", exponential, "--json", "-"),
        ).out
    )
    table = data["results"][0]["tables"]["effectiveness"]
    linear, exponential_mean = (row[table["columns"].index("mean")] for row in table["rows"])  # a row per measure
    assert trained["test"] == pytest.approx({"nDCG@10": linear, exponential: exponential_mean}, abs=1e-12)
    assert abs(linear - exponential_mean) > 1e-3
    assert trained["card"]["value"] == pytest.approx(exponential_mean, abs=1e-12)  # no scores tie
    assert f"nDCG@10 {linear:.4f} and {exponential} {exponential_mean:.4f} on the test queries" in ended.err
    assert "NDCG" not in ended.out + ended.err


def test_folds_of_a_feature_file(shaketable, letor):
    ended = shaketable("train", "ranksvm", "--letor", "train.txt", "--folds", 3, "--model", "cv", "--json", "cv.json")
    assert ended.code == 0, ended.err
    assert "trained in 3 folds; its run joins the test folds; nDCG@10" in ended.err
    data, run = read_letor(letor / "train.txt"), read_run(letor / "cv" / "test.run")
    assert read_qrels(letor / "cv" / "test.qrels") == data.to_qrels()
    assert run.keys() == set(data.qids)
    for number, fold in enumerate(make_folds(data.qids, 3, 0), 1):
        train, valid, test = (
            data.select_queries([data.qids.index(qid) for qid in part]) for part in (fold.train, fold.valid, fold.test)
        )
        lists = test.to_run(learn(RankSVM(), train, valid).score_letor(test))
        assert lists == test.to_run(read_model(letor / "cv" / f"fold-{number}").score_letor(test))
        for qid in fold.test:
            assert run[qid] == pytest.approx(lists[qid], abs=1e-5)
    result = json.loads((letor / "cv.json").read_text())
    assert [row["folder"] for row in result["card"]["models"]] == ["fold-1", "fold-2", "fold-3"]
    evaluated = shaketable("evaluate", "--qrels", "cv/test.qrels", "--run", "cv/test.run", "--json", "-").out
    found = {f["name"]: f["value"] for r in json.loads(evaluated)["results"] for f in r["findings"]}
    assert found["nDCG@10"] == pytest.approx(result["test"]["nDCG@10"], abs=1e-12)


def test_each_fold_of_a_feature_file_is_tuned_on_its_own_validation_queries(shaketable, letor):
    words = ("train", "ranksvm", "--letor", "train.txt", "--folds", 3, "--tune", "--model", "cv")
    ended = shaketable(*words)
    assert ended.code == 0, ended.err
    data = read_letor(letor / "train.txt")
    wanted = cross_validate(RankSVM(), data, k=3, grid=RankSVM.grid)[1]
    found = [read_model(letor / "cv" / f"fold-{number}") for number in (1, 2, 3)]
    assert [model.learner for model in found] == [model.learner for model in wanted]
    assert [model.predictor for model in found] == [model.predictor for model in wanted]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--folds", 3, "--letor-valid", "vali.txt"), "leave out --letor-valid: with --folds, each fold validates"),
        (("--folds", 3, "--letor-test", "test.txt"), "leave out --letor-test: with --folds"),
        (("--folds", 2), "cannot be split into 2 folds"),
        (("--valid-split", "dev"), "leave out --valid-split: a feature file (--letor) has no splits"),
        (("--train-split", "all", "--split-ratio", "60/20/20"), "leave out --train-split and --split-ratio: a feature"),
    ],
)
def test_no_option_is_ignored_with_a_feature_file(shaketable, letor, words, complaint):
    assert complaint in shaketable("train", "prank", "--letor", "train.txt", "--model", "m", *words).complaint()
    assert not (letor / "m").exists()


def test_the_history_and_the_trials_name_their_measure(shaketable, letor):
    pytest.importorskip("lightgbm")
    files = ("--letor", "train.txt", "--letor-valid", "vali.txt", "--not-worse-than", "feature:2")
    geo = "lambdamart(objective='georisk', alpha=1, trees=3, leaves=4, min_docs=2, truncation=5)"
    for learner, heading in ((geo, "GeoRisk"), (geo.replace("georisk", "u-cro"), "URisk")):
        ended = shaketable("train", learner, *files, "--model", "m", "--overwrite", "--json", "m.json")
        assert ended.code == 0, ended.err
        assert json.loads((letor / "m.json").read_text())["card"]["history_measure"] == heading
        assert heading in ended.out
        assert "nDCG" not in ended.out
    plain = "lambdamart(trees=3, leaves=4, min_docs=2, truncation=5)"
    assert "nDCG(dcg='exp-log2')@5" in shaketable("train", plain, *files[:4], "--model", "plain").out
    assert "nDCG(dcg='exp-log2')@10" in shaketable("train", "prank", *files[:4], "--tune", "--model", "prank").out


def test_a_model_learned_on_a_collection_is_a_ranker(shaketable, folder):
    (folder / "qrels" / "test.tsv").rename(folder / "qrels" / "train.tsv")
    assert shaketable("train", "ranksvm", "--data", folder, "--model", "models/svm").code == 0
    ended = shaketable("audit", "--data", folder, "--ranker", "models/svm", "--ranker", "bm25", "--task", "variance")
    assert ended.code == 0, ended.err
    assert "models/svm" in ended.out


def test_a_model_of_unnamed_columns_cannot_rank_texts(shaketable, letor, folder):
    assert shaketable("train", "prank", "--letor", "train.txt", "--model", "models/prank").code == 0
    complaint = shaketable("audit", "--data", folder, "--ranker", "models/prank").complaint()
    assert "cannot rank texts" in complaint


def test_risk_sensitive_trees(shaketable, letor):
    pytest.importorskip("lightgbm")
    ended = shaketable(
        *("train", "lambdamart(objective='georisk', alpha=1, trees=5, leaves=4)", "--letor", "train.txt"),
        *("--letor-valid", "vali.txt", "--not-worse-than", "feature:2", "--model", "models/geo"),
    )
    assert ended.code == 0, ended.err
    assert len(list((letor / "models" / "geo").glob("*/trees.txt"))) == 1


def test_nothing_of_others_is_deleted(shaketable, letor):
    """An earlier version replaced every folder with a file model.json and removed all its files."""
    for name, text in (("model.json", "{}"), ("thesis.txt", "years of work")):
        (letor / "p").mkdir(exist_ok=True)
        (letor / "p" / name).write_text(text)
    complaint = shaketable("train", "ranksvm", "--letor", "train.txt", "--model", "p").complaint()
    assert "p: exists and is not a model that can be replaced" in complaint
    assert (letor / "p" / "model.json").read_text() == "{}"
    assert (letor / "p" / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("1 qid:1 2:0.5 1:0.5\n", "train.txt:1:"),
        ("1 1:0.5\n", "train.txt:1:"),
        ("1 qid:1 1:nan\n", "train.txt:1:"),
        ("40 qid:1 1:0.5\n", "train.txt:1:"),
        ("1 qid:1 1:0.5\n1 qid:1 1:0.7\n", "no query has documents of different labels"),
        ("", "train.txt"),
    ],
)
def test_broken_feature_files(shaketable, letor, line, complaint):
    (letor / "train.txt").write_text(line)
    ended = shaketable("train", "prank", "--letor", "train.txt", "--model", "models/m")
    assert complaint in ended.complaint()
    assert not (letor / "models").exists()


def test_bad_words(shaketable, letor):
    out = ("--model", "models/m")
    assert "did you mean ranksvm" in shaketable("train", "ranksv", "--letor", "train.txt", *out).complaint()
    assert (
        "give either a collection (--data) or a feature file (--letor)"
        in shaketable("train", "prank", *out).complaint()
    )
    words = ("train", "prank", "--letor", "train.txt", *out, "--not-worse-than")
    assert "cannot read the baseline" in shaketable(*words, "bm25").complaint()
    assert "no such file" in shaketable(*words, "run:absent.run").complaint()
    assert (
        "give a file of them with --letor-valid"
        in shaketable("train", "ranksvm", "--letor", "train.txt", "--tune", *out).complaint()
    )


def test_a_neural_ranker_learned_on_a_collection_is_a_ranker(shaketable, folder):
    pytest.importorskip("torch")
    (folder / "qrels" / "test.tsv").rename(folder / "qrels" / "train.tsv")
    words = ("train", "dssm(steps=4, every=2, lists=2, size=3)", "--data", folder, "--model", "models/dssm")
    ended = shaketable(*words, "--preset", "msmarco", "--depth", 5, "--json", "card.json")
    assert ended.code == 0, ended.err
    assert "training history" in ended.out
    assert "trained on 3 queries" not in ended.err  # one of the three validates
    assert (
        "models/dssm: dssm(layers=(300, 300, 128), steps=4, lists=2, size=3, every=2), trained on 2 queries"
        in ended.err
    )
    card = json.loads(Path("card.json").read_text())["card"]
    assert (card["depth"], card["settings"]["layers"], card["steps"]) == (5, [300, 300, 128], 4)
    ended = shaketable("audit", "--data", folder, "--ranker", "models/dssm", "--ranker", "bm25", "--task", "variance")
    assert ended.code == 0, ended.err
    assert "models/dssm" in ended.out


def test_features_and_texts_are_not_mixed_up(shaketable, letor, folder):
    assert (
        "learns from texts, not features: give a collection (--data)"
        in shaketable("train", "knrm", "--letor", "train.txt", "--model", "m").complaint()
    )
    assert "give either a collection (--data)" in shaketable("train", "knrm", "--model", "m").complaint()
    both = shaketable("train", "prank", "--letor", "train.txt", "--data", folder, "--model", "m")
    assert "give either a collection (--data)" in both.complaint()
    complaint = shaketable("train", "prank", "--preset", "msmarco", "--letor", "train.txt", "--model", "m").complaint()
    assert "prank is not one" in complaint
    assert (
        "no preset is called 'robust05'"
        in shaketable("train", "knrm", "--preset", "robust05", "--data", folder, "--model", "m").complaint()
    )


def test_every_ranker_that_is_learned_or_written_for_goes_through_every_task(shaketable, folder, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    pytest.importorskip("lightgbm")
    from shaketable.transforms import add_queries
    from tests.rankers.neural import tiny

    monkeypatch.setattr(add_queries, "MAX_QUERY_TOKENS", 4)  # a T5 that learned nothing never ends a query
    (folder / "qrels" / "test.tsv").rename(folder / "qrels" / "train.tsv")
    few = "steps=2, every=2, lists=2, size=3"
    kinds = {"encoder": tiny.encoder, "masked": tiny.write_masked_model, "t5": tiny.t5}
    on = {kind: f"{few}, checkpoint={str(make(tmp_path / kind))!r}, max_length=32" for kind, make in kinds.items()}
    learners = dict.fromkeys(("dssm", "drmm", "knrm", "conv_knrm", "duet"), few)
    learners |= {"duet-trigrams": f"{few}, input='trigrams'", "lgbm": "trees=2, leaves=3"}
    learners |= dict.fromkeys(("bert", "dense"), on["encoder"])
    learners |= {"colbert": on["encoder"].replace("max_length", "query_length=8, text_length")}
    learners |= {"epic": on["masked"], "prop": f"{on['masked']}, pretrain=2, adapt=1, pairs=2", "monot5": on["t5"]}
    rankers = []
    for name, settings in learners.items():
        learner = f"{name.partition('-')[0]}({settings})"
        data = "sample" if name == "lgbm" else folder  # on five rows no tree grows
        ended = shaketable("train", learner, "--data", data, "--depth", 20, "--model", f"models/{name}")
        assert ended.code == 0, ended.err
        rankers += ["--ranker", f"{name}=models/{name}"]
    rankers += ["--ranker", f"t5=t5(name={str(tmp_path / 't5')!r}, max_length=32)"]
    rankers += ["--ranker", f"doct5query=doct5query(expander={str(tmp_path / 't5')!r}, n=1)"]
    tasks = [task if task != "probes" else "probes(max_documents=1)" for task in list_default_tasks()]
    named = [word for task in tasks for word in ("--task", task)]
    ended = shaketable("audit", "--data", folder, *rankers, "--ranker", "bm25", *named, "--out", "out")
    assert ended.code == 0, ended.err
    whole = json.loads(Path("out/results.json").read_text())
    told = {result["task"]: cells(result) for result in whole["results"]}
    skipped = whole["provenance"]["skipped"].keys()
    assert skipped == {"document_attack", "document_form", "competition"}, "no eleventh document, no rounds"
    assert told.keys() == {task.replace("_", "-") for task in list_default_tasks()} - {
        task.replace("_", "-") for task in skipped
    }
    for task in told:
        compared = {"bm25"} if task == "first-stage" else set()  # which all others are compared with
        assert {*learners, "t5", "doct5query", "bm25"} - told[task] == compared, task


def cells(result: dict) -> set[object]:
    """All texts of single cells and of headings of a result's tables."""
    tables = result["tables"].values()
    return {cell for table in tables for row in [table["columns"], *table["rows"]] for cell in row}


def test_a_defended_ranker(shaketable):
    pytest.importorskip("torch")
    words = ("train", "knrm(steps=2, every=2, lists=2, size=3, dim=4)", "--data", "sample", "--depth", 10)
    defence = "piat(queries=3, documents=2, size=4, attacked=2)"
    ended = shaketable(*words, "--model", "models/piat", "--defence", defence, "--json", "card.json")
    assert ended.code == 0, ended.err
    assert "is trained without a defence" in ended.err
    assert "attacking 6 documents of 3 queries with white_wsra" in ended.err
    card = json.loads(Path("card.json").read_text())["card"]
    assert card["defence"]["examples"]["documents"] == 6
    assert "did you mean piat" in shaketable(*words, "--model", "m", "--defence", "pait").complaint()
    complaint = shaketable("train", "ranksvm", "--data", "sample", "--model", "m", "--defence", "at").complaint()
    assert "at needs a neural learner" in complaint
    complaint = shaketable("train", "ranksvm", "--letor", "x", "--model", "m", "--defence", "at").complaint()
    assert "so give a collection (--data)" in complaint
