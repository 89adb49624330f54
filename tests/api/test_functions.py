"""evaluate, rank, vary, train and load from Python, with texts and with objects."""

from __future__ import annotations

import json

import numpy as np
import pytest

import shaketable as st
from shaketable.api.evaluate import _count_bytes
from shaketable.core.documents import Slate
from shaketable.core.errors import BadInput, UnknownName
from shaketable.core.registries import LEARNERS, RANKERS, TRANSFORMS
from shaketable.datasets.scores import read_scores
from tests.counting import Elision

QRELS = {"q1": {"d1": 2, "d2": 0}, "q2": {"d3": 1, "d4": 1}}
GOOD = {"q1": {"d1": 3.0, "d2": 2.0}, "q2": {"d3": 9.0, "d4": 8.0}}
POOR = {"q1": {"d2": 3.0, "d1": 2.0}, "q2": {"d9": 9.0, "d4": 8.0}}


def numbers(audit, name):
    return {finding.ranker: finding.value for finding in audit["effectiveness"].findings if finding.name == name}


class TestEvaluate:
    def test_mappings_and_files_give_the_same(self, trec):
        files = st.evaluate(trec["qrels"], [str(trec["good.run"]), trec["poor.run"]], measures=["nDCG@10", "AP"])
        objects = st.evaluate(QRELS, {"good": GOOD, "poor": POOR}, measures=["nDCG@10", "AP"])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("shaketable.api.evaluate.MAX_RUN_BYTES_IN_MEMORY", 0)
            large = st.evaluate(trec["qrels"], [str(trec["good.run"]), trec["poor.run"]], measures=["nDCG@10", "AP"])
        assert large.to_dict()["results"] == files.to_dict()["results"], "read again for each step, or kept"
        assert files.to_dict()["results"] == objects.to_dict()["results"]
        # second: d4 alone, in the second place, of two relevant ones
        assert numbers(objects, "AP") == {"good": 1.0, "poor": pytest.approx((0.5 + 0.25) / 2)}
        assert [result.task for result in objects.results] == ["effectiveness", "variance", "risk"]

    def test_packed_runs_count_with_their_usual_ratio(self, tmp_path):
        (tmp_path / "a.run").write_bytes(b"x" * 10)
        (tmp_path / "b.run.gz").write_bytes(b"x" * 10)
        assert _count_bytes([tmp_path / "a.run", str(tmp_path / "b.run.gz"), {"q1": {}}]) == 60

    def test_names_of_runs(self, trec):
        done = st.evaluate(trec["qrels"], [f"a={trec['good.run']}", str(trec["good.run"]), str(trec["good.run"])])
        assert list(numbers(done, "nDCG@10")) == ["a", "good", "good (2)"]
        mixed = st.evaluate(QRELS, {"a": GOOD, "b": trec["poor.run"]})
        assert list(numbers(mixed, "nDCG@10")) == ["a", "b"]

    def test_a_baseline_by_name_or_by_file(self, trec):
        files = [str(trec["good.run"]), str(trec["poor.run"])]
        by_name, by_file = (st.evaluate(trec["qrels"], files, baselines=[who]) for who in ("poor", files[1]))
        assert by_name["risk"].tables["against poor"].equals(by_file["risk"].tables["against poor"])
        with pytest.raises(UnknownName, match="no baseline is called 'pour'; did you mean poor"):
            st.evaluate(trec["qrels"], files, baselines=["pour"])

    def test_one_of_each_without_a_list(self, trec):
        done = st.evaluate(trec["qrels"], trec["good.run"], measures="AP", baselines="mean")
        assert numbers(done, "AP") == {"good": 1.0}

    def test_a_table_of_scores(self, tmp_path):
        (tmp_path / "x.csv").write_text("topic,a,b\n1,0.5,0.25\n2,1.0,0.5\n")
        table = read_scores(tmp_path / "x.csv")
        done = st.evaluate(scores=tmp_path / "x.csv")
        assert done.to_dict()["results"] == st.evaluate(scores=table).to_dict()["results"]
        assert list(numbers(done, table.measure).values()) == [0.75, 0.375]
        assert done.check(f"a.{table.measure}>=0.75")

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({}, "give judgements"),
            ({"qrels": QRELS}, "give judgements"),
            ({"runs": {"a": GOOD}}, "give judgements"),
            (
                {"qrels": QRELS, "runs": {"a": {"q7": {"d1": 1.0}}}},
                r"none of its queries is judged \(the run is called a\)",
            ),
            (
                {"qrels": QRELS, "runs": {"a": GOOD}, "scores": "x.csv"},
                "a table of scores replaces judgements and runs",
            ),
            ({"scores": "x.csv", "measures": ["AP"]}, "measures apply to runs only"),
            ({"qrels": QRELS, "runs": {"a": GOOD}, "measures": ["nDGC@10"]}, "did you mean ndcg"),
            ({"qrels": QRELS, "runs": {"a": GOOD}, "alphas": [-1.0]}, "alpha"),
            ({"qrels": QRELS, "runs": {"a": GOOD}, "significance_test": "t"}, "no test is called 't'"),
            ({"qrels": QRELS, "runs": {"a": GOOD}, "correction": "none"}, "no correction is called"),
        ],
    )
    def test_what_does_not_go_together(self, given, message):
        with pytest.raises((BadInput, UnknownName), match=message):
            st.evaluate(**given)

    def test_it_can_be_saved_like_an_audit(self, tmp_path):
        st.evaluate(QRELS, {"good": GOOD, "poor": POOR}).save(tmp_path / "out")
        assert json.loads((tmp_path / "out" / "results.json").read_text())["schema"] == "shaketable.audit/5"
        assert not (tmp_path / "out" / "runs").exists()


class TestRank:
    def test_texts_and_objects(self, folder):
        by_text = st.rank(folder, "bm25(k1=0.5)")
        assert st.rank(st.load(folder), RANKERS.build("bm25(k1=0.5)")) == by_text
        assert max(by_text["q1"], key=by_text["q1"].__getitem__) == "d1"
        function = st.rank(folder, lambda query, texts: [len(text) for text in texts])
        assert {qid: set(scores) for qid, scores in function.items()} == {
            qid: set(scores) for qid, scores in st.rank(folder, "bm25").items()
        }

    def test_unjudged_queries_are_ranked_too(self, folder):
        with (folder / "queries.jsonl").open("a") as queries:
            queries.write('{"_id": "q9", "text": "winter ships"}\n')
        assert set(st.rank(folder, "bm25")) == {"q1", "q2", "q3", "q9"}
        assert set(st.rank(folder, "bm25", split="test")) == {"q1", "q2", "q3"}

    def test_depth_limit_first_stage_and_candidates(self, folder, tmp_path):
        assert {len(scores) for scores in st.rank(folder, "ql", depth=1, max_queries=2).values()} == {1}
        assert list(st.rank(folder, "ql", max_queries=2)) == ["q1", "q2"]
        (tmp_path / "first.run").write_text("q1 Q0 d5 1 1.0 m\n")
        assert st.rank(folder, "bm25", candidates=tmp_path / "first.run").keys() == {"q1"}
        longest = st.rank(folder, lambda query, texts: [len(text) for text in texts], first_stage="ql", depth=2)
        assert set(longest["q2"]) == set(st.rank(folder, "ql", depth=2)["q2"])

    def test_a_cut_is_dealt_by_the_judgements(self, folder):
        parts = [
            st.rank(folder, "bm25", split_ratio="34/33/33", split=part) for part in ("train", "validation", "test")
        ]
        assert sorted(qid for part in parts for qid in part) == ["q1", "q2", "q3"]


def lose_first(text, draws):
    return text[1:]


class TestVary:
    def test_texts_and_objects(self, folder):
        by_text = st.vary(folder, ["drop_letter", "tests.counting:Elision"])
        by_object = st.vary(st.load(folder), [TRANSFORMS.build("drop_letter"), Elision()])
        assert by_text.variations == by_object.variations
        assert {v.method for v in by_text.variations} == {"drop_letter", "tests.counting:Elision"}
        assert st.vary(folder, "drop_letter").variations == by_text.variations[:3]
        assert st.vary(folder, (name for name in ("drop_letter",))).variations == by_text.variations[:3]

    def test_a_mapping_of_queries(self):
        done = st.vary({"a": "red boat", "b": st.Query("blue boat")}, "random_order_swap")
        assert [(v.qid, v.text, v.category) for v in done.variations] == [
            ("a", "boat red", "ordering"),
            ("b", "boat blue", "ordering"),
        ]
        assert (done.unavailable, done.not_applicable) == ({}, {"random_order_swap": 0})

    def test_a_function(self):
        done = st.vary({"a": "red boat"}, lose_first)
        assert [(v.method, v.text) for v in done.variations] == [(f"{__name__}:lose_first", "ed boat")]
        with pytest.raises(BadInput, match="is not a transform"):
            st.vary({"a": "red boat"}, [lambda text, rng: text[1:]])
        with pytest.raises(BadInput, match="is not a transform"):
            st.vary({"a": "red boat"}, [5])

    def test_categories_and_seed(self, folder):
        done = st.vary(folder, categories=["ordering"], n=2, seed=3)
        assert {v.category for v in done.variations} == {"ordering"}
        assert done == st.vary(folder, categories=["ordering"], n=2, seed=3)
        assert done != st.vary(folder, categories=["ordering"], n=2, seed=4)
        with pytest.raises(UnknownName, match="did you mean ordering"):
            st.vary(folder, categories=["odering"])


class TestTrain:
    @pytest.fixture
    def learnable(self, folder):
        rows = [f"q{q}\td{d}\t{(q + d) % 2}\n" for q in (1, 2) for d in (1, 2, 4, 5)]
        (folder / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows))
        (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq3\td3\t1\n")
        return folder

    def test_texts_and_objects(self, learnable, tmp_path):
        by_text = st.train("prank(epochs=5)", learnable, tmp_path / "a")
        by_object = st.train(LEARNERS.build("prank(epochs=5)"), st.load(learnable), tmp_path / "b")
        assert by_text.learner == by_object.learner == "prank(epochs=5)"
        one, other = (json.loads((tmp_path / name / "model.json").read_text())["weights"] for name in "ab")
        assert one == other
        assert by_text.card["train"]["queries"] == 2
        assert str(by_text).startswith(f"{tmp_path / 'a'}: prank(epochs=5), trained on 2 queries")
        (scores,) = by_text.model.open(st.load(learnable)).score([Slate("oak", (st.Doc("oak"), st.Doc("elm")))])
        assert np.isfinite(scores).all()

    def test_what_was_trained_is_a_ranker_by_its_folder(self, learnable, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        st.train("prank", learnable, "mine")
        done = st.audit(learnable, ["mine", "bm25"], ["agreement"])
        assert list(done.runs) == ["./mine", "bm25"]

    def test_baselines_reach_the_learner(self, learnable, tmp_path):
        pytest.importorskip("lightgbm")
        learner = "lambdamart(objective='georisk', alpha=1, trees=2, leaves=2, min_docs=1)"
        done = st.train(learner, learnable, tmp_path / "m", not_worse_than=["bm25", "feature:1"])
        assert done.card["baselines"] == ["bm25", "feature:1"]

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({}, "give either a collection"),
            ({"data": "sample", "letor": "x"}, "give either a collection"),
            ({"data": "sample", "letor_valid": "x"}, "need --letor, the feature file"),
            ({"data": "sample", "preset": "msmarco"}, "prank is not one"),
            ({"data": "sample", "train_split": "tarin"}, "no split is called 'tarin'; did you mean train"),
            ({"data": "sample", "not_worse_than": ["bm52"]}, "bm52"),
            ({"data": "sample", "split_ratio": "60/40"}, "a split ratio is three percentages"),
        ],
    )
    def test_what_does_not_go_together(self, given, message, tmp_path):
        with pytest.raises((BadInput, UnknownName), match=message):
            st.train("prank", **({"model": tmp_path / "m"} | given))
        assert not (tmp_path / "m").exists()

    def test_baselines_do_not_send_the_teacher_away(self, tmp_path):
        """A net that learns a teacher's scores has no grades to compare with a baseline's, which is an error."""
        pytest.importorskip("torch")
        learner = "knrm(teacher='bm25', sentences=5, steps=2, every=2, dim=4)"
        with pytest.raises(BadInput, match="a teacher's scores are not judgements"):
            st.train(learner, "sample", tmp_path / "m", not_worse_than=["bm25"])


def test_load(folder):
    whole = st.load(folder)
    assert st.load(whole) == whole
    assert set(st.load(folder, "test").queries) == {"q1", "q2", "q3"}
    assert st.load("sample").name == "sample"
    with pytest.raises(BadInput, match="there is no collection"):
        st.load(folder / "absent")
