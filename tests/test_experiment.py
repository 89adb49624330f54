"""Experiments: no search or variation is repeated, experiments are independent, and trained models are cached."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shaketable.api.audit import audit
from shaketable.api.ranker_names import build_models
from shaketable.api.train import train
from shaketable.core.documents import Collection, Doc, Query, Slate
from shaketable.core.errors import BadInput, UnknownName
from shaketable.core.home import home_folder
from shaketable.core.registries import LEARNERS, RANKERS, TASKS
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.datasets.trec import read_run
from shaketable.executors.base import SerialExecutor, ThreadExecutor
from shaketable.experiment import Experiment
from shaketable.experiment.opening import make_documents_spec
from shaketable.measures.effectiveness import score_table
from shaketable.scoring.engine import ScoringEngine
from shaketable.tasks.runner import list_default_tasks, run_tasks
from shaketable.training.plan import ShuffledLabelSource, TrainingPlan
from tests.counting import Elision, FirstStage, Mine, Notebook, list_repeated
from tests.toys import Normalised, Overlap, text

pytestmark = pytest.mark.slow

FIRST = "tests.counting:FirstStage"


def trees(queries: int = 24) -> Collection:
    docs = {f"d{i:02}": Doc(text(i, 12)) for i in range(40)}
    asked = {f"q{i:02}": Query(text(500 + i, 3)) for i in range(queries)}
    qrels = {
        qid: {docno: int(len(set(query.text.split()) & set(doc.body.split())) > 1) for docno, doc in docs.items()}
        for qid, query in asked.items()
    }
    qids = tuple(asked)
    splits = {"train": qids[: queries // 2], "validation": qids[queries // 2 : -4], "test": qids[-4:]}
    return Collection("trees", MemoryCorpus(docs), asked, qrels, splits)


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Clear the records before each test."""
    yield
    for log in (FirstStage.searches, Mine.searches, Elision.applied, Notebook.training_data):
        log.clear()


class TestNothingTwice:
    def test_a_full_audit_repeats_no_search_and_no_pair(self):
        scorer = Overlap()
        rankers = {"bm25": "bm25", "mine": Mine(), FIRST: FIRST, "overlap": scorer, "normalised": Normalised()}
        edit = "tests.counting:Elision"
        tasks = [
            *(name for name in list_default_tasks() if name not in ("query_variation", "fusion", "competition")),
            "competition(data='sample')",
            f"query_variation(transforms=({edit!r},), depths=(5, 10, 20))",
            f"fusion(transforms=({edit!r},))",
        ]
        done = audit(trees(), rankers, tasks, split="all", depth=20, first_stage=FIRST)
        assert len(done.results) == len(tasks)
        assert FirstStage.searches
        assert Mine.searches
        for calls in (FirstStage.searches, Mine.searches):
            assert list_repeated(calls) == []
        assert {k for call in FirstStage.searches for _, k in call} == {20}, "shorter lists are heads of longer ones"
        spent = done.provenance["spent"]
        assert spent["mine"]["searches"] == sum(map(len, Mine.searches))
        assert scorer.asked == spent["overlap"]["scored"] < spent["overlap"]["asked"]

    def test_a_first_stage_that_is_also_a_ranker_searches_once_for_both(self):
        models = {FIRST: RANKERS.build(FIRST), "overlap": build_models([Overlap()])["overlap"]}
        experiment = Experiment(trees(), models, first_stage=FIRST)
        experiment.get_runs()
        assert list_repeated(FirstStage.searches) == []
        assert sum(map(len, FirstStage.searches)) == 24

    def test_no_variation_is_made_twice_whatever_tasks_ask_for_together(self):
        experiment = Experiment(trees(), build_models(["bm25"]))
        vowels, late = "tests.counting:Elision", "tests.counting:Elision(letters='lmnopr')"
        tasks = [
            f"query_variation(transforms=({vowels!r}, {late!r}))",
            f"query_variation(transforms=({vowels!r},), measure='AP')",
            f"fusion(transforms=({late!r}, {vowels!r}))",
            f"fusion(transforms=({late!r}, 'drop_letter'))",
        ]
        results, _ = run_tasks(experiment, [TASKS.build(task) for task in tasks])
        assert len(results) == 4
        shown = [(letters, text) for letters, text, _ in Elision.applied if text in experiment.texts.values()]
        assert len(shown) == len(set(shown)) == 2 * 24

    def test_more_variations_than_before_are_more_and_begin_with_the_same(self):
        experiment = Experiment(trees(), {})
        few, many = (experiment.make_variations(("tests.counting:Elision",), n)[0] for n in (1, 3))
        assert len(few) == 24 < len(many)
        first = {v.qid: v for v in reversed(many)}
        assert [first[v.qid] for v in few] == few

    def test_concurrent_requests_give_the_same_result(self):
        transforms = "transforms=('drop_letter', 'random_order_swap')"
        tasks = [
            "effectiveness",
            "agreement",
            "query_typos(draws=2)",
            f"query_variation({transforms})",
            f"fusion({transforms})",
        ]

        def tables(executor):
            engine = ScoringEngine(chunk=16, executor=executor)
            models = build_models({"bm25": "bm25", "overlap": Overlap(), "normalised": Normalised()})
            results, _ = run_tasks(Experiment(trees(), models, engine, depth=20), [TASKS.build(task) for task in tasks])
            return results, engine.usage

        (here, spent), (there, spent_there) = tables(SerialExecutor()), tables(ThreadExecutor(4))
        for one, other in zip(here, there, strict=True):
            assert one.tables.keys() == other.tables.keys()
            for name, frame in one.tables.items():
                assert frame.equals(other.tables[name]), (one.task, name)
            assert repr(one.findings) == repr(other.findings)
        assert {k: (v.asked, v.scored, v.searches) for k, v in spent.items()} == {
            k: (v.asked, v.scored, v.searches) for k, v in spent_there.items()
        }


class TestBesideEachOther:
    def test_shorter_lists_leave_the_first_experiment_unchanged(self):
        experiment, fresh = (Experiment(trees(), build_models(["bm25", "ql", Overlap()])) for _ in range(2))
        short = experiment.with_depth(3)
        for name in experiment.models:
            run = short.get_run(name)
            assert max(map(len, run.values())) == 3
            assert {len(scores) for scores in short.candidates.values()} == {3}
        for name in experiment.models:
            assert experiment.get_run(name) == fresh.get_run(name)
        assert experiment.get_score_table("AP").values.tolist() == fresh.get_score_table("AP").values.tolist()
        assert short.get_score_table("AP").values.tolist() != fresh.get_score_table("AP").values.tolist()
        assert experiment.candidates == fresh.candidates

    def test_a_shallower_experiment_searches_nothing_again(self):
        experiment = Experiment(trees(), build_models({"mine": Mine()}), first_stage=FIRST)
        whole = experiment.get_run("mine")
        assert experiment.with_depth(3).get_run("mine") == {
            qid: dict(list(scores.items())[:3]) for qid, scores in whole.items()
        }
        assert list_repeated(Mine.searches) == []

    def test_another_collection_has_its_own_rankers_and_runs(self):
        experiment = Experiment(trees(), build_models(["bm25", "ql"]), depth=5)
        other = replace(trees(), docs=MemoryCorpus({f"d{i:02}": Doc(text(90 + i, 5)) for i in range(40)}), name="other")
        first = experiment.get_run("bm25")
        there = experiment.with_collection(other)
        assert there.get_ranker("bm25") is not experiment.get_ranker("bm25")
        assert there.get_run("bm25") == Experiment(other, experiment.models, depth=5).get_run("bm25") != first
        assert experiment.get_run("bm25") == first
        assert there.engine is experiment.engine
        assert there.with_collection(experiment.collection, "test").queries.keys() == set(
            experiment.collection.splits["test"]
        )

    @pytest.mark.parametrize(
        "change",
        [{"limit": 5}, {"seed": 9}, {"split": "test"}, {"models": {"bm25": RANKERS.build("ql")}}],
        ids=lambda change: next(iter(change)),
    )
    def test_a_changed_experiment_does_not_use_old_runs(self, change):
        experiment = Experiment(trees(), build_models(["bm25"]))

        def answers(one: Experiment):
            edits = ("neighb_char_swap",)
            return one.get_run("bm25"), one.get_score_table("AP").values.tolist(), one.make_variations(edits)[0]

        old = answers(experiment)
        assert (
            answers(replace(experiment, **change))
            == answers(Experiment(trees(), **{"models": experiment.models, **change}))
            != old
        )
        assert answers(experiment) == old

    def test_a_ranker_with_the_name_of_the_first_stage_does_not_replace_it(self):
        def by_length(query, texts):
            return [len(text) for text in texts]

        experiment = Experiment(trees(), build_models({"bm25": by_length}), depth=5)
        plain = Experiment(trees(), build_models(["bm25"]), depth=5)
        assert experiment.candidates == plain.candidates
        assert experiment.get_run("bm25") != plain.get_run("bm25")
        assert experiment.get_run("bm25")["q00"].keys() == plain.get_run("bm25")["q00"].keys()

    def test_a_ranker_of_the_experiment_can_be_the_first_stage_by_name(self):
        experiment = Experiment(
            trees(), build_models({"soft": "bm25(b=0.1)", "overlap": Overlap()}), depth=5, first_stage="soft"
        )
        assert experiment.candidates == Experiment(trees(), {}, depth=5, first_stage="bm25(b=0.1)").candidates
        with pytest.raises(BadInput, match="the first stage overlap cannot search"):
            _ = replace(experiment, first_stage="overlap").candidates
        with pytest.raises(UnknownName, match="nobody"):
            _ = replace(experiment, first_stage="nobody").candidates


class TestFit:
    def test_trained_models_are_cached_and_not_trained_again(self):
        experiment = Experiment(trees(), {})
        first = experiment.fit(Notebook())
        assert Path(first.path).parent == home_folder() / "models"
        assert experiment.fit(Notebook()) == first
        assert Experiment(trees(), {}).fit("tests.counting:Notebook") == first
        assert experiment.fit("tests.counting:Notebook(k1=1.0)") == first
        assert len(Notebook.training_data) == 1
        assert isinstance(first.open(trees()).score([Slate("oak", (Doc("oak"),))])[0], np.ndarray)

    def test_cached_models_depend_on_file_contents_not_names(self, tmp_path):
        pytest.importorskip("torch")
        vectors = tmp_path / "vectors.txt"
        vectors.write_text("oak 1 0\npine 0 1\n")
        net = "steps=1, every=1, lists=1, size=2"
        fit = Experiment(trees(), {}).fit
        first = fit(f"knrm({net}, vectors={str(vectors)!r})")
        vectors.write_text("oak 0 1\npine 1 0\n")
        second = fit(f"knrm({net}, vectors={str(vectors)!r})")
        assert first.path != second.path
        begun = [fit(f"knrm({net}, start={model.path!r})") for model in (first, second)]
        Path(second.path).rename(tmp_path / "away")
        Path(first.path).rename(second.path)
        again = fit(f"knrm({net}, start={second.path!r})")
        assert again.path not in {model.path for model in begun}, "it begins with another net of the same name"

    def test_a_damaged_cached_model_is_trained_again(self):
        experiment = Experiment(trees(), {})
        model = experiment.fit(Notebook())
        path = Path(model.path) / "model.json"
        whole = path.read_bytes()
        path.write_bytes(whole[:-9] + b"#" + whole[-8:])
        assert Experiment(trees(), {}).fit(Notebook()) == model
        model.open(trees())
        again = Experiment(trees(), {})
        path.write_bytes(b"")
        again.fit(Notebook())
        assert "damaged" in again.collect_remarks()["models"]
        assert len(Notebook.training_data) == 3

    @pytest.mark.parametrize(
        "other",
        [
            lambda experiment: replace(experiment, seed=1).fit(Notebook()),
            lambda experiment: replace(experiment, depth=7).fit(Notebook()),
            lambda experiment: replace(experiment, first_stage="ql").fit(Notebook()),
            lambda experiment: experiment.fit(Notebook(), "validation", valid="test"),
            lambda experiment: experiment.fit(Notebook(), valid="test"),
            lambda experiment: experiment.fit(Notebook(), plan=TrainingPlan(ShuffledLabelSource())),
            lambda experiment: experiment.fit(Notebook(), plan=TrainingPlan(objective="hinge")),
            lambda experiment: experiment.fit(Notebook(k1=2.0)),
            lambda experiment: experiment.with_collection(replace(experiment.collection, qrels=trees(23).qrels)).fit(
                Notebook()
            ),
        ],
        ids=["seed", "depth", "first stage", "split", "valid", "lists", "objective", "setting", "judgements"],
    )
    def test_whatever_it_depends_on_has_a_model_of_its_own(self, other):
        experiment = Experiment(trees(), {})
        first = experiment.fit(Notebook())
        assert other(experiment) != first
        assert len(Notebook.training_data) == 2
        assert experiment.fit(Notebook()) == first
        assert len(Notebook.training_data) == 2

    def test_a_baseline_file_that_changed_is_another_plan(self, tmp_path):
        run = tmp_path / "base.run"
        run.write_text("q00 Q0 d00 1 1.0 x\n")
        plan, experiment = TrainingPlan(baselines=(f"run:{run}",)), Experiment(trees(), {})
        first = experiment.fit(Notebook(), plan=plan)
        assert experiment.fit(Notebook(), plan=plan) == first
        run.write_text("q00 Q0 d01 1 1.0 x\n")
        assert experiment.fit(Notebook(), plan=plan) != first

    def test_queries_to_validate_on(self):
        collection = trees()
        parts = collection.splits
        Experiment(collection, {}).fit(Notebook())
        dev = {"train": parts["train"], "dev": parts["validation"], "test": parts["test"]}
        Experiment(replace(collection, splits=dev), {}).fit(Notebook())
        Experiment(replace(collection, splits={"train": parts["train"]}), {}).fit(Notebook(k1=2))
        Experiment(collection, {}).fit(Notebook(), parts["train"][:5])
        Experiment(collection, {}).fit(Notebook(), "train", valid="test")
        given = [lesson["valid"] for lesson in Notebook.training_data]
        assert given == [parts["validation"], (), (), parts["test"]], "dev is validation by another name: learned once"
        assert Notebook.training_data[2]["train"] == parts["train"][:5]

    def test_the_first_stage_finds_training_candidates(self):
        Experiment(trees(), {}, first_stage=FIRST, depth=6).fit(Notebook())
        (lesson,) = Notebook.training_data
        assert {len(scores) for scores in lesson["candidates"].values()} <= set(range(1, 7))
        assert lesson["candidates"].keys() == {*lesson["train"], *lesson["valid"]}
        assert lesson["depth"] == 6
        assert {k for call in FirstStage.searches for _, k in call} == {6}

    @pytest.mark.parametrize(
        ("splits", "message"),
        [
            (
                {},
                r"has no split train; create splits with --split-ratio 60/20/20, or use .* --folds 5",
            ),
            ({"test": ("q00",)}, r"has no split train; create splits with --split-ratio 60/20/20"),
            ({"trian": ("q00",)}, r"no split is called 'train'; did you mean trian"),
        ],
    )
    def test_a_split_that_is_not_there(self, splits, message):
        with pytest.raises((BadInput, UnknownName), match=message):
            Experiment(replace(trees(), splits=splits), {}).fit(Notebook())

    def test_a_real_learner_and_its_control(self):
        experiment = Experiment(trees(), {})
        model = experiment.fit("ranksvm(C=0.1)")
        written = (Path(model.path) / "model.json").stat().st_mtime_ns
        assert experiment.fit("ranksvm(C=0.1)") == model
        assert (Path(model.path) / "model.json").stat().st_mtime_ns == written
        control = experiment.fit("ranksvm(C=0.1)", plan=TrainingPlan(ShuffledLabelSource()))
        assert model.read_card()["value"] > control.read_card()["value"]


class TestTune:
    def test_a_learner_from_features(self):
        experiment = Experiment(trees(), {})
        tuned = experiment.tune("ranksvm", grid={"C": (1e-6, 0.01, 1.0)})
        best = max(tuned.trials, key=lambda trial: trial["valid"])
        assert [trial["C"] for trial in tuned.trials] == [1e-6, 0.01, 1.0]
        assert tuned.learner == LEARNERS.build(f"ranksvm(C={best['C']!r})")
        assert experiment.fit(tuned.learner).read_card()["value"] == best["valid"]

    def test_each_grid_point_is_trained_once_and_cached(self):
        experiment = Experiment(trees(), {})
        tuned = experiment.tune(Notebook())
        assert [trial["k1"] for trial in tuned.trials] == [0.5, 2.0]
        assert tuned.learner == Notebook(k1=2.0)
        assert experiment.tune(Notebook()) == tuned
        experiment.fit(tuned.learner)
        assert len(Notebook.training_data) == 2

    def test_a_net(self):
        torch = pytest.importorskip("torch")
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            experiment = Experiment(trees(), {}, depth=10)
            tuned = experiment.tune("knrm(steps=6, every=3, lists=2, size=3, dim=4)", grid={"lr": (1e-4, 0.05)})
            values = {trial["lr"]: trial["valid"] for trial in tuned.trials}
            assert values.keys() == {1e-4, 0.05}
            assert values[tuned.learner.lr] == max(values.values())
            assert experiment.fit(tuned.learner).read_card()["value"] == max(values.values())
        finally:
            torch.set_num_threads(threads)

    @pytest.mark.parametrize("ranker", ["bm25", "ql"])
    def test_a_formula(self, ranker, monkeypatch):
        cls = RANKERS.get_class(ranker)
        grid = {name: values[:: max(1, len(values) // 3)] for name, values in cls.grid.items()}
        monkeypatch.setattr(cls, "grid", grid)
        collection = trees()
        tuned = Experiment(collection, {}).tune(ranker)
        judges = collection.splits["validation"]
        qrels = {qid: collection.qrels[qid] for qid in judges}
        asked = replace(collection, queries={qid: collection.queries[qid] for qid in judges}, qrels=qrels)
        for trial in tuned.trials:
            settings = {name: trial[name] for name in grid}
            run = Experiment(asked, {"": replace(cls(), **settings)}).get_run("")
            assert trial["valid"] == pytest.approx(float(score_table("AP", qrels, {"": run}).values.mean()))
        best = max(tuned.trials, key=lambda trial: trial["valid"])
        assert RANKERS.build(tuned.learner.ranker) == replace(cls(), **{name: best[name] for name in grid})

    def test_chosen_parameters_are_reported(self, tmp_path):
        done = train(Notebook(), trees(), tmp_path / "model", tune=True)
        assert done.learner == "tests.counting:Notebook(k1=2.0)"
        assert [trial["k1"] for trial in done.trials] == [0.5, 2.0]
        assert "tests.counting:Notebook(k1=2.0)" in str(done)
        assert "tuning trials" in done.build_tables()

    def test_without_queries_to_validate_on_or_a_grid_there_is_nothing_to_choose_by(self):
        experiment = Experiment(replace(trees(), splits={"train": ("q00", "q01")}), {})
        with pytest.raises(BadInput, match="tuning needs validation queries, and there are none"):
            experiment.tune(Notebook())
        with pytest.raises(BadInput, match="has no grid of settings"):
            Experiment(trees(), {}).tune(Notebook(), grid={})


class TestFolds:
    def test_every_query_is_ranked_by_a_model_that_never_saw_it(self, tmp_path):
        collection = replace(trees(), splits={})
        experiment = Experiment(collection, {}, depth=10)
        model = experiment.fit_folds(Notebook(), 4, folder=tmp_path / "folds")
        (lists,) = (tmp_path / "folds").rglob("lists.run")
        run = read_run(lists)
        assert list(run) == list(collection.queries)
        seen: set[str] = set()
        for number, lesson in enumerate(Notebook.training_data):
            unseen = collection.queries.keys() - {*lesson["train"], *lesson["valid"]}
            assert not set(lesson["train"]) & set(lesson["valid"])
            assert not seen & unseen, "each query is in one test part"
            seen |= unseen
            own = Experiment(collection, {"": RANKERS.build(f"bm25(k1={1.0 + number / 8})")}, depth=10).get_run("")
            for qid in unseen:
                assert run[qid] == pytest.approx(own[qid])
        assert seen == collection.queries.keys()
        ranker = experiment.with_collection(collection)
        ranker = replace(ranker, models={"folds": model})
        assert ranker.scoring_rankers == []
        assert ranker.get_run("folds") == run
        assert model.read_card()["folds"] == 4

    def test_a_training_in_folds_that_was_cut_off_goes_on(self, tmp_path):
        experiment = Experiment(trees(), {})
        experiment.fit_folds(Notebook(), 4, folder=tmp_path / "first")
        experiment.fit_folds(Notebook(), 4, folder=tmp_path / "second")
        assert len(Notebook.training_data) == 4, "the models of the folds are cached even without the folder"
        first, second = (next((tmp_path / name).rglob("lists.run")) for name in ("first", "second"))
        assert first.read_bytes() == second.read_bytes()

    @pytest.mark.parametrize(
        "other",
        [
            lambda experiment, folder: experiment.fit_folds(Notebook(k1=3.0), 4, folder=folder),
            lambda experiment, folder: experiment.fit_folds(Notebook(), 5, folder=folder),
            lambda experiment, folder: replace(experiment, seed=1).fit_folds(Notebook(), 4, folder=folder),
            lambda experiment, folder: experiment.fit_folds(
                Notebook(), 4, folder=folder, plan=TrainingPlan(ShuffledLabelSource())
            ),
        ],
        ids=["learner", "folds", "seed", "plan"],
    )
    def test_models_of_another_training_are_not_taken_for_ones_own(self, tmp_path, other):
        experiment = Experiment(trees(), {})
        experiment.fit_folds(Notebook(), 4, folder=tmp_path / "folds")
        before = {path: path.read_bytes() for path in (tmp_path / "folds").rglob("*") if path.is_file()}
        with pytest.raises(BadInput, match=r"name another folder, or use --overwrite"):
            other(experiment, tmp_path / "folds")
        assert {path: path.read_bytes() for path in (tmp_path / "folds").rglob("*") if path.is_file()} == before
        experiment.fit_folds(Notebook(k1=3.0), 4, folder=tmp_path / "folds", overwrite=True)
        assert len(Notebook.training_data) == 8
        assert "k1=3.0" in json.loads((tmp_path / "folds" / "model.json").read_text())["card"]["learner"]

    def test_through_the_api(self, tmp_path):
        done = train("ranksvm(C=0.1)", trees(), tmp_path / "folds", folds=3)
        assert "trained in 3 folds" in str(done)
        found = audit(trees(), [tmp_path / "folds", "bm25"], ["variance"], split="all")
        assert set(found["variance"].tables["variance"]["ranker"]) == {str(tmp_path / "folds"), "bm25"}

    def test_too_few_queries(self, tmp_path):
        with pytest.raises(BadInput, match="2 queries cannot be split into 3 folds"):
            Experiment(trees(2), {}).fit_folds(Notebook(), 3, folder=tmp_path / "folds")
        assert not (tmp_path / "folds").exists()


class TestCut:
    def test_test_queries_are_not_training_queries(self, tmp_path):
        whole = replace(trees(), splits={})
        train(Notebook(), whole, tmp_path / "model", split_ratio="50/25/25", seed=3)
        (lesson,) = Notebook.training_data
        assert (len(lesson["train"]), len(lesson["valid"])) == (12, 6)
        done = audit(whole, [str(tmp_path / "model")], ["variance"], split_ratio="50/25/25", seed=3)
        measured = set(done["variance"].tables["per query"]["query"])
        assert len(measured) == 6
        assert not measured & {*lesson["train"], *lesson["valid"]}

    def test_another_seed_deals_otherwise(self):
        whole = replace(trees(), splits={})
        first, second = (
            set(audit(whole, ["bm25"], ["variance"], split_ratio="50/25/25", seed=seed).runs["bm25"]) for seed in (0, 1)
        )
        assert first != second

    def test_from_the_command_line(self, tmp_path, folder, monkeypatch, capsys):
        from shaketable.cli import main

        monkeypatch.chdir(tmp_path)
        asked = {"q1": "oak tree leaves", "q2": "needles in winter", "q3": "winter ships"}  # each finds two documents
        rows = [json.dumps({"_id": qid, "text": text}) + "\n" for qid, text in asked.items()]
        (folder / "queries.jsonl").write_text("".join(rows))
        judged = [f"q{q}\td{d}\t{(q + d) % 2}\n" for q in (1, 2, 3) for d in (1, 2, 3, 4, 5)]
        (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(judged))
        with pytest.raises(SystemExit) as ended:
            main(["train", "prank", "--data", str(folder), "--split-ratio", "34/33/33", "--model", "m"])
        assert ended.value.code == 0, capsys.readouterr().err
        with pytest.raises(SystemExit) as ended:
            main(["audit", "--data", str(folder), "--split-ratio", "34/33/33", "--ranker", "m", "--task", "variance"])
        assert ended.value.code == 0, capsys.readouterr().err
        assert "1 queries; " in capsys.readouterr().err


def test_other_processes_open_documents_that_have_a_source():
    texts = Collection("texts", MemoryCorpus({"d1": Doc("red boat")}), {})
    assert make_documents_spec(texts) is None
    spec = make_documents_spec(replace(texts, source="sample"))
    assert spec is not None
    assert (spec.collection, spec.documents_fingerprint) == ("sample", texts.docs.fingerprint)
