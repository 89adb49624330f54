"""The bench: nothing is searched or made twice, benches do not disturb each other, what was learned is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shaketable.bench import Bench
from shaketable.data.corpus import MemoryCorpus
from shaketable.data.trec import read_run
from shaketable.door.audit import audit
from shaketable.door.names import named_models
from shaketable.door.train import train
from shaketable.errors import BadInput, UnknownName
from shaketable.files import home
from shaketable.learners.plan import Control, Plan
from shaketable.measure.effectiveness import score_table
from shaketable.registry import LEARNERS, RANKERS, TASKS
from shaketable.score.executor import Here, Threads
from shaketable.score.road import Road
from shaketable.task.audit import run_tasks, usual_tasks
from shaketable.types import Collection, Doc, Query, Slate
from tests.counting import Elision, FirstStage, Mine, Notebook, repeated
from tests.toys import Normalised, Overlap, text

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
    """What a test wrote down is not for the next one."""
    yield
    for log in (FirstStage.searches, Mine.searches, Elision.applied, Notebook.lessons):
        log.clear()


class TestNothingTwice:
    def test_a_full_audit_repeats_no_search_and_no_pair(self):
        scorer = Overlap()
        rankers = {"bm25": "bm25", "mine": Mine(), FIRST: FIRST, "overlap": scorer, "normalised": Normalised()}
        edit = "tests.counting:Elision"
        tasks = [
            *(name for name in usual_tasks() if name not in ("query_variation", "fusion", "competition")),
            "competition(data='sample')",
            f"query_variation(edits=({edit!r},), depths=(5, 10, 20))",
            f"fusion(edits=({edit!r},))",
        ]
        done = audit(trees(), rankers, tasks, split="all", depth=20, first_stage=FIRST)
        assert len(done.results) == len(tasks)
        assert FirstStage.searches
        assert Mine.searches
        for calls in (FirstStage.searches, Mine.searches):
            assert repeated(calls) == []
        assert {k for call in FirstStage.searches for _, k in call} == {20}, "shorter lists are heads of longer ones"
        spent = done.provenance["spent"]
        assert spent["mine"]["searches"] == sum(map(len, Mine.searches))
        assert scorer.asked == spent["overlap"]["scored"] < spent["overlap"]["asked"]

    def test_a_first_stage_that_is_also_a_ranker_searches_once_for_both(self):
        models = {FIRST: RANKERS.build(FIRST), "overlap": named_models([Overlap()])["overlap"]}
        bench = Bench(trees(), models, first_stage=FIRST)
        bench.runs()
        assert repeated(FirstStage.searches) == []
        assert sum(map(len, FirstStage.searches)) == 24

    def test_no_variation_is_made_twice_whatever_tasks_ask_for_together(self):
        bench = Bench(trees(), named_models(["bm25"]))
        vowels, late = "tests.counting:Elision", "tests.counting:Elision(letters='lmnopr')"
        tasks = [
            f"query_variation(edits=({vowels!r}, {late!r}))",
            f"query_variation(edits=({vowels!r},), measure='AP')",
            f"fusion(edits=({late!r}, {vowels!r}))",
            f"fusion(edits=({late!r}, 'drop_letter'))",
        ]
        results, _ = run_tasks(bench, [TASKS.build(task) for task in tasks])
        assert len(results) == 4
        shown = [(letters, text) for letters, text, _ in Elision.applied if text in bench.texts.values()]
        assert len(shown) == len(set(shown)) == 2 * 24

    def test_more_variations_than_before_are_more_and_begin_with_the_same(self):
        bench = Bench(trees(), {})
        few, many = (bench.variations(("tests.counting:Elision",), n)[0] for n in (1, 3))
        assert len(few) == 24 < len(many)
        first = {v.qid: v for v in reversed(many)}
        assert [first[v.qid] for v in few] == few

    def test_several_in_flight_give_what_one_gives(self):
        edits = "edits=('drop_letter', 'random_order_swap')"
        tasks = ["effectiveness", "agreement", "query_attack(draws=2)", f"query_variation({edits})", f"fusion({edits})"]

        def tables(executor):
            road = Road(chunk=16, executor=executor)
            models = named_models({"bm25": "bm25", "overlap": Overlap(), "normalised": Normalised()})
            results, _ = run_tasks(Bench(trees(), models, road, depth=20), [TASKS.build(task) for task in tasks])
            return results, road.spent

        (here, spent), (there, spent_there) = tables(Here()), tables(Threads(4))
        for one, other in zip(here, there, strict=True):
            assert one.tables.keys() == other.tables.keys()
            for name, frame in one.tables.items():
                assert frame.equals(other.tables[name]), (one.task, name)
            assert repr(one.findings) == repr(other.findings)
        assert {k: (v.asked, v.scored, v.searches) for k, v in spent.items()} == {
            k: (v.asked, v.scored, v.searches) for k, v in spent_there.items()
        }


class TestBesideEachOther:
    def test_shorter_lists_leave_the_first_bench_alone(self):
        bench, fresh = (Bench(trees(), named_models(["bm25", "ql", Overlap()])) for _ in range(2))
        short = bench.cut(3)
        for name in bench.models:
            run = short.run(name)
            assert max(map(len, run.values())) == 3
            assert {len(scores) for scores in short.candidates.values()} == {3}
        for name in bench.models:
            assert bench.run(name) == fresh.run(name)
        assert bench.table("AP").values.tolist() == fresh.table("AP").values.tolist()
        assert short.table("AP").values.tolist() != fresh.table("AP").values.tolist()
        assert bench.candidates == fresh.candidates

    def test_a_cut_bench_searches_for_nothing_new(self):
        bench = Bench(trees(), named_models({"mine": Mine()}), first_stage=FIRST)
        whole = bench.run("mine")
        assert bench.cut(3).run("mine") == {qid: dict(list(scores.items())[:3]) for qid, scores in whole.items()}
        assert repeated(Mine.searches) == []

    def test_another_collection_has_its_own_rankers_and_runs(self):
        bench = Bench(trees(), named_models(["bm25", "ql"]), depth=5)
        other = replace(trees(), docs=MemoryCorpus({f"d{i:02}": Doc(text(90 + i, 5)) for i in range(40)}), name="other")
        first = bench.run("bm25")
        there = bench.on(other)
        assert there.ranker("bm25") is not bench.ranker("bm25")
        assert there.run("bm25") == Bench(other, bench.models, depth=5).run("bm25") != first
        assert bench.run("bm25") == first
        assert there.road is bench.road
        assert there.on(bench.collection, "test").queries.keys() == set(bench.collection.splits["test"])

    @pytest.mark.parametrize(
        "change",
        [{"limit": 5}, {"seed": 9}, {"split": "test"}, {"models": {"bm25": RANKERS.build("ql")}}],
        ids=lambda change: next(iter(change)),
    )
    def test_a_bench_that_is_changed_knows_nothing_of_the_old_one(self, change):
        bench = Bench(trees(), named_models(["bm25"]))

        def answers(one: Bench):
            edits = ("neighb_char_swap",)
            return one.run("bm25"), one.table("AP").values.tolist(), one.variations(edits)[0]

        old = answers(bench)
        assert answers(replace(bench, **change)) == answers(Bench(trees(), **{"models": bench.models, **change})) != old
        assert answers(bench) == old

    def test_a_ranker_that_takes_the_first_stages_name_does_not_take_its_place(self):
        def by_length(query, texts):
            return [len(text) for text in texts]

        bench = Bench(trees(), named_models({"bm25": by_length}), depth=5)
        plain = Bench(trees(), named_models(["bm25"]), depth=5)
        assert bench.candidates == plain.candidates
        assert bench.run("bm25") != plain.run("bm25")
        assert bench.run("bm25")["q00"].keys() == plain.run("bm25")["q00"].keys()

    def test_a_ranker_of_the_bench_can_be_the_first_stage_by_its_name(self):
        bench = Bench(trees(), named_models({"soft": "bm25(b=0.1)", "overlap": Overlap()}), depth=5, first_stage="soft")
        assert bench.candidates == Bench(trees(), {}, depth=5, first_stage="bm25(b=0.1)").candidates
        with pytest.raises(BadInput, match="the first stage overlap cannot search"):
            _ = replace(bench, first_stage="overlap").candidates
        with pytest.raises(UnknownName, match="nobody"):
            _ = replace(bench, first_stage="nobody").candidates


class TestFit:
    def test_what_was_learned_is_kept_and_not_learned_again(self):
        bench = Bench(trees(), {})
        first = bench.fit(Notebook())
        assert Path(first.path).parent == home() / "models"
        assert bench.fit(Notebook()) == first
        assert Bench(trees(), {}).fit("tests.counting:Notebook") == first
        assert bench.fit("tests.counting:Notebook(k1=1.0)") == first
        assert len(Notebook.lessons) == 1
        assert isinstance(first.open(trees()).score([Slate("oak", (Doc("oak"),))])[0], np.ndarray)

    def test_what_is_in_files_that_a_learner_names_counts_and_not_their_names(self, tmp_path):
        pytest.importorskip("torch")
        vectors = tmp_path / "vectors.txt"
        vectors.write_text("oak 1 0\npine 0 1\n")
        net = "steps=1, every=1, lists=1, size=2"
        fit = Bench(trees(), {}).fit
        first = fit(f"knrm({net}, vectors={str(vectors)!r})")
        vectors.write_text("oak 0 1\npine 1 0\n")
        second = fit(f"knrm({net}, vectors={str(vectors)!r})")
        assert first.path != second.path
        begun = [fit(f"knrm({net}, start={model.path!r})") for model in (first, second)]
        Path(second.path).rename(tmp_path / "away")
        Path(first.path).rename(second.path)
        again = fit(f"knrm({net}, start={second.path!r})")
        assert again.path not in {model.path for model in begun}, "it begins with another net of the same name"

    def test_a_kept_model_that_is_damaged_is_learned_again(self):
        bench = Bench(trees(), {})
        model = bench.fit(Notebook())
        path = Path(model.path) / "model.json"
        whole = path.read_bytes()
        path.write_bytes(whole[:-9] + b"#" + whole[-8:])
        assert Bench(trees(), {}).fit(Notebook()) == model
        model.open(trees())
        again = Bench(trees(), {})
        path.write_bytes(b"")
        again.fit(Notebook())
        assert "damaged" in again.remarks()["models"]
        assert len(Notebook.lessons) == 3

    @pytest.mark.parametrize(
        "other",
        [
            lambda bench: replace(bench, seed=1).fit(Notebook()),
            lambda bench: replace(bench, depth=7).fit(Notebook()),
            lambda bench: replace(bench, first_stage="ql").fit(Notebook()),
            lambda bench: bench.fit(Notebook(), "validation", valid="test"),
            lambda bench: bench.fit(Notebook(), valid="test"),
            lambda bench: bench.fit(Notebook(), plan=Plan(Control())),
            lambda bench: bench.fit(Notebook(), plan=Plan(objective="hinge")),
            lambda bench: bench.fit(Notebook(k1=2.0)),
            lambda bench: bench.on(replace(bench.collection, qrels=trees(23).qrels)).fit(Notebook()),
        ],
        ids=["seed", "depth", "first stage", "split", "valid", "lists", "objective", "setting", "judgements"],
    )
    def test_whatever_it_depends_on_has_a_model_of_its_own(self, other):
        bench = Bench(trees(), {})
        first = bench.fit(Notebook())
        assert other(bench) != first
        assert len(Notebook.lessons) == 2
        assert bench.fit(Notebook()) == first
        assert len(Notebook.lessons) == 2

    def test_a_baseline_file_that_changed_is_another_plan(self, tmp_path):
        run = tmp_path / "base.run"
        run.write_text("q00 Q0 d00 1 1.0 x\n")
        plan, bench = Plan(baselines=(f"run:{run}",)), Bench(trees(), {})
        first = bench.fit(Notebook(), plan=plan)
        assert bench.fit(Notebook(), plan=plan) == first
        run.write_text("q00 Q0 d01 1 1.0 x\n")
        assert bench.fit(Notebook(), plan=plan) != first

    def test_queries_to_validate_on(self):
        collection = trees()
        parts = collection.splits
        Bench(collection, {}).fit(Notebook())
        dev = {"train": parts["train"], "dev": parts["validation"], "test": parts["test"]}
        Bench(replace(collection, splits=dev), {}).fit(Notebook())
        Bench(replace(collection, splits={"train": parts["train"]}), {}).fit(Notebook(k1=2))
        Bench(collection, {}).fit(Notebook(), parts["train"][:5])
        Bench(collection, {}).fit(Notebook(), "train", valid="test")
        given = [lesson["valid"] for lesson in Notebook.lessons]
        assert given == [parts["validation"], (), (), parts["test"]], "dev is validation by another name: learned once"
        assert Notebook.lessons[2]["train"] == parts["train"][:5]

    def test_the_first_stage_finds_what_is_learned_from(self):
        Bench(trees(), {}, first_stage=FIRST, depth=6).fit(Notebook())
        (lesson,) = Notebook.lessons
        assert {len(scores) for scores in lesson["candidates"].values()} <= set(range(1, 7))
        assert lesson["candidates"].keys() == {*lesson["train"], *lesson["valid"]}
        assert lesson["depth"] == 6
        assert {k for call in FirstStage.searches for _, k in call} == {6}

    @pytest.mark.parametrize(
        ("splits", "message"),
        [
            ({}, r"has no split train; cut its queries with --cut 60/20/20, or learn in folds with --folds 5"),
            ({"test": ("q00",)}, r"has no split train; cut its queries with --cut 60/20/20"),
            ({"trian": ("q00",)}, r"no split is called 'train'; did you mean trian"),
        ],
    )
    def test_a_split_that_is_not_there(self, splits, message):
        with pytest.raises((BadInput, UnknownName), match=message):
            Bench(replace(trees(), splits=splits), {}).fit(Notebook())

    def test_a_real_learner_and_its_control(self):
        bench = Bench(trees(), {})
        model = bench.fit("ranksvm(C=0.1)")
        written = (Path(model.path) / "model.json").stat().st_mtime_ns
        assert bench.fit("ranksvm(C=0.1)") == model
        assert (Path(model.path) / "model.json").stat().st_mtime_ns == written
        control = bench.fit("ranksvm(C=0.1)", plan=Plan(Control()))
        assert model.card()["value"] > control.card()["value"]


class TestTune:
    def test_a_learner_from_features(self):
        bench = Bench(trees(), {})
        tuned = bench.tune("ranksvm", grid={"C": (1e-6, 0.01, 1.0)})
        best = max(tuned.trials, key=lambda trial: trial["valid"])
        assert [trial["C"] for trial in tuned.trials] == [1e-6, 0.01, 1.0]
        assert tuned.learner == LEARNERS.build(f"ranksvm(C={best['C']!r})")
        assert bench.fit(tuned.learner).card()["value"] == best["valid"]

    def test_each_point_is_learned_once_and_kept(self):
        bench = Bench(trees(), {})
        tuned = bench.tune(Notebook())
        assert [trial["k1"] for trial in tuned.trials] == [0.5, 2.0]
        assert tuned.learner == Notebook(k1=2.0)
        assert bench.tune(Notebook()) == tuned
        bench.fit(tuned.learner)
        assert len(Notebook.lessons) == 2

    def test_a_net(self):
        torch = pytest.importorskip("torch")
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            bench = Bench(trees(), {}, depth=10)
            tuned = bench.tune("knrm(steps=6, every=3, lists=2, size=3, dim=4)", grid={"lr": (1e-4, 0.05)})
            values = {trial["lr"]: trial["valid"] for trial in tuned.trials}
            assert values.keys() == {1e-4, 0.05}
            assert values[tuned.learner.lr] == max(values.values())
            assert bench.fit(tuned.learner).card()["value"] == max(values.values())
        finally:
            torch.set_num_threads(threads)

    @pytest.mark.parametrize("ranker", ["bm25", "ql"])
    def test_a_formula(self, ranker, monkeypatch):
        cls = RANKERS.class_of(ranker)
        grid = {name: values[:: max(1, len(values) // 3)] for name, values in cls.grid.items()}
        monkeypatch.setattr(cls, "grid", grid)
        collection = trees()
        tuned = Bench(collection, {}).tune(ranker)
        judges = collection.splits["validation"]
        qrels = {qid: collection.qrels[qid] for qid in judges}
        asked = replace(collection, queries={qid: collection.queries[qid] for qid in judges}, qrels=qrels)
        for trial in tuned.trials:
            settings = {name: trial[name] for name in grid}
            run = Bench(asked, {"": replace(cls(), **settings)}).run("")
            assert trial["valid"] == pytest.approx(float(score_table("AP", qrels, {"": run}).values.mean()))
        best = max(tuned.trials, key=lambda trial: trial["valid"])
        assert RANKERS.build(tuned.learner.ranker) == replace(cls(), **{name: best[name] for name in grid})

    def test_what_was_chosen_is_said(self, tmp_path):
        done = train(Notebook(), trees(), tmp_path / "model", tune=True)
        assert done.learner == "tests.counting:Notebook(k1=2.0)"
        assert [trial["k1"] for trial in done.trials] == [0.5, 2.0]
        assert "tests.counting:Notebook(k1=2.0)" in str(done)
        assert "what was tried" in done.tables()

    def test_without_queries_to_validate_on_or_a_grid_there_is_nothing_to_choose_by(self):
        bench = Bench(replace(trees(), splits={"train": ("q00", "q01")}), {})
        with pytest.raises(BadInput, match="settings are chosen on validation queries, and there are none"):
            bench.tune(Notebook())
        with pytest.raises(BadInput, match="has no grid of settings"):
            Bench(trees(), {}).tune(Notebook(), grid={})


class TestFolds:
    def test_every_query_is_ranked_by_a_model_that_never_saw_it(self, tmp_path):
        collection = replace(trees(), splits={})
        bench = Bench(collection, {}, depth=10)
        model = bench.fit_folds(Notebook(), 4, folder=tmp_path / "folds")
        (lists,) = (tmp_path / "folds").rglob("lists.run")
        run = read_run(lists)
        assert list(run) == list(collection.queries)
        seen: set[str] = set()
        for number, lesson in enumerate(Notebook.lessons):
            unseen = collection.queries.keys() - {*lesson["train"], *lesson["valid"]}
            assert not set(lesson["train"]) & set(lesson["valid"])
            assert not seen & unseen, "each query is in one test part"
            seen |= unseen
            own = Bench(collection, {"": RANKERS.build(f"bm25(k1={1.0 + number / 8})")}, depth=10).run("")
            for qid in unseen:
                assert run[qid] == pytest.approx(own[qid])
        assert seen == collection.queries.keys()
        ranker = bench.on(collection)
        ranker = replace(ranker, models={"folds": model})
        assert ranker.scoring == []
        assert ranker.run("folds") == run
        assert model.card()["folds"] == 4

    def test_a_training_in_folds_that_was_cut_off_goes_on(self, tmp_path):
        bench = Bench(trees(), {})
        bench.fit_folds(Notebook(), 4, folder=tmp_path / "first")
        bench.fit_folds(Notebook(), 4, folder=tmp_path / "second")
        assert len(Notebook.lessons) == 4, "the models of the parts are kept, whatever became of the folder"
        first, second = (next((tmp_path / name).rglob("lists.run")) for name in ("first", "second"))
        assert first.read_bytes() == second.read_bytes()

    @pytest.mark.parametrize(
        "other",
        [
            lambda bench, folder: bench.fit_folds(Notebook(k1=3.0), 4, folder=folder),
            lambda bench, folder: bench.fit_folds(Notebook(), 5, folder=folder),
            lambda bench, folder: replace(bench, seed=1).fit_folds(Notebook(), 4, folder=folder),
            lambda bench, folder: bench.fit_folds(Notebook(), 4, folder=folder, plan=Plan(Control())),
        ],
        ids=["learner", "folds", "seed", "plan"],
    )
    def test_models_of_another_training_are_not_taken_for_ones_own(self, tmp_path, other):
        bench = Bench(trees(), {})
        bench.fit_folds(Notebook(), 4, folder=tmp_path / "folds")
        before = {path: path.read_bytes() for path in (tmp_path / "folds").rglob("*") if path.is_file()}
        with pytest.raises(BadInput, match=r"name another folder, or ask for it to be overwritten"):
            other(bench, tmp_path / "folds")
        assert {path: path.read_bytes() for path in (tmp_path / "folds").rglob("*") if path.is_file()} == before
        bench.fit_folds(Notebook(k1=3.0), 4, folder=tmp_path / "folds", overwrite=True)
        assert len(Notebook.lessons) == 8
        assert "k1=3.0" in json.loads((tmp_path / "folds" / "model.json").read_text())["card"]["learner"]

    def test_through_the_door(self, tmp_path):
        done = train("ranksvm(C=0.1)", trees(), tmp_path / "folds", folds=3)
        assert "learned in 3 folds" in str(done)
        found = audit(trees(), [tmp_path / "folds", "bm25"], ["variance"], split="all")
        assert set(found["variance"].tables["variance"]["ranker"]) == {str(tmp_path / "folds"), "bm25"}

    def test_too_few_queries(self, tmp_path):
        with pytest.raises(BadInput, match="2 queries cannot be cut into 3 folds"):
            Bench(trees(2), {}).fit_folds(Notebook(), 3, folder=tmp_path / "folds")
        assert not (tmp_path / "folds").exists()


class TestCut:
    def test_what_is_measured_on_was_not_learned_from(self, tmp_path):
        whole = replace(trees(), splits={})
        train(Notebook(), whole, tmp_path / "model", cut="50/25/25", seed=3)
        (lesson,) = Notebook.lessons
        assert (len(lesson["train"]), len(lesson["valid"])) == (12, 6)
        done = audit(whole, [str(tmp_path / "model")], ["variance"], cut="50/25/25", seed=3)
        measured = set(done["variance"].tables["per query"]["query"])
        assert len(measured) == 6
        assert not measured & {*lesson["train"], *lesson["valid"]}

    def test_another_seed_deals_otherwise(self):
        whole = replace(trees(), splits={})
        first, second = (
            set(audit(whole, ["bm25"], ["variance"], cut="50/25/25", seed=seed).runs["bm25"]) for seed in (0, 1)
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
            main(["train", "prank", "--data", str(folder), "--cut", "34/33/33", "--out", "m"])
        assert ended.value.code == 0, capsys.readouterr().err
        with pytest.raises(SystemExit) as ended:
            main(["audit", "--data", str(folder), "--cut", "34/33/33", "--ranker", "m", "--task", "variance"])
        assert ended.value.code == 0, capsys.readouterr().err
        assert "1 queries; " in capsys.readouterr().err
