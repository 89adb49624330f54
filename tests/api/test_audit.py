"""The main job from Python: texts and objects in, findings, rulings, a folder and a page out."""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import shaketable as st
from shaketable.core.documents import Collection, Doc, Slate
from shaketable.core.errors import BadInput, UnknownName
from shaketable.core.registries import RANKERS, TASKS
from shaketable.datasets.trec import read_run
from shaketable.report.audit_folder import MANIFEST_FILE, STAGING_PREFIX, check_writable


def longest(query, texts):
    return [len(text) for text in texts]


class Shortest:
    """Any class with score will do; it has no name of its own."""

    def score(self, slates):
        return [np.array([-float(len(doc.text)) for doc in slate.docs]) for slate in slates]


class Named(Shortest):
    name = "mine"


@dataclass(frozen=True)
class First:
    """A model: it sees the collection before it ranks."""

    docno: str = "d1"

    def open(self, collection: Collection):
        first = collection.docs[self.docno]
        return replace_name(lambda query, texts: [float(text == first.text) for text in texts])


def replace_name(function):
    from shaketable.rankers.python import adapt

    return adapt(function, Collection("", {}, {}), "first")


class TestRankers:
    def test_a_text_an_object_a_class_a_function_and_a_model(self, folder):
        done = st.audit(folder, ["bm25(k1=0.9)", longest, Shortest(), Named(), First("d4")], ["agreement"])
        names = ["bm25(k1=0.9)", "longest", "Shortest", "mine", f"{__name__}:First(docno='d4')"]
        assert list(done.runs) == names
        for qid, scores in done.runs["longest"].items():
            assert scores.keys() == st.rank(folder, "bm25", depth=100)[qid].keys(), "a re-ranker ranks what bm25 finds"
            assert {docno: -score for docno, score in scores.items()} == done.runs["Shortest"][qid]
            assert done.runs["mine"][qid] == done.runs["Shortest"][qid]
        assert done.runs[names[-1]]["q1"]["d4"] == 1

    def test_names_of_a_mapping(self, folder):
        done = st.audit(folder, {"a": "bm25", "b": longest, "c": RANKERS.build("ql"), "d": Named()}, ["agreement"])
        assert list(done.runs) == ["a", "b", "c", "d"]
        assert done.runs["a"] == st.audit(folder, ["bm25"], ["agreement"]).runs["bm25"]
        assert done.provenance["rankers"]["c"] == "ql"

    def test_a_name_before_a_text(self, folder):
        done = st.audit(folder, ["soft=bm25(b=0.1)", "bm25", "bm25"], ["variance"])
        assert list(done.runs) == ["soft", "bm25", "bm25 (2)"]
        assert done.provenance["rankers"] == {"soft": "bm25(b=0.1)", "bm25": "bm25", "bm25 (2)": "bm25"}

    @pytest.mark.parametrize("thing", [object(), 5, None, ["bm25"], {"bm25": 1}, lambda: 0])
    def test_objects_that_are_no_rankers(self, folder, thing):
        with pytest.raises(BadInput, match="not a ranker"):
            st.audit(folder, {"thing": thing}, ["agreement"])

    def test_one_name_everywhere(self, folder):
        class Fussy:
            """A ranker whose own name must not appear anywhere."""

            name = "something else"

            def score(self, slates):
                if any("bark" in slate.query for slate in slates):
                    raise ValueError("no bark please")
                return [np.arange(len(slate.docs), dtype=float) for slate in slates]

        watched: list[str] = []

        @contextmanager
        def progress(what, total, unit=""):
            watched.append(what)
            yield lambda done: None

        rankers = {"fussy one": Fussy(), "q": "ql"}
        done = st.audit(folder, rankers, ["effectiveness", "agreement"], progress=progress, keep_going=True)
        assert set(done["effectiveness"].tables["effectiveness"]["ranker"]) == {"fussy one", "q"}
        assert {finding.ranker for finding in done.findings} == {"fussy one", "q"}
        assert [(f.ranker, f.query) for f in done["effectiveness"].failures] == [("fussy one", "bark for pain")]
        asked = {"scoring with fussy one", "searching with q", "searching with bm25"}
        asked.add("scoring with fussy one, to see whether it is pointwise")
        assert asked == {what for what in watched if " with " in what}
        assert list(done.provenance["rankers"]) == ["fussy one", "q"]
        assert {"fussy one", "q"} <= done.provenance["spent"].keys()
        assert "something else" not in json.dumps(done.to_dict())
        assert " at 0x" not in json.dumps(done.provenance, default=str), "where an object is in memory says nothing"

    def test_the_first_stage(self, folder):
        plain, other = (
            st.audit(folder, [longest], ["agreement"], depth=2, first_stage=first) for first in ("bm25", "ql(mu=1)")
        )
        assert other.provenance["first stage"] == "ql(mu=1)"
        found = st.rank(folder, "ql(mu=1)", depth=2)
        assert {qid: set(scores) for qid, scores in other.runs["longest"].items()} == {
            qid: set(scores) for qid, scores in found.items()
        }
        assert "the results of ql(mu=1)" in other.facts["ranked"]
        assert plain.facts["ranked"] != other.facts["ranked"]
        with pytest.raises(UnknownName, match="bm52"):
            st.audit(folder, [longest], ["agreement"], first_stage="bm52")


class TestTasks:
    def test_texts_and_objects(self, folder):
        done = st.audit(folder, ["bm25", "ql"], ["risk(baseline='ql')", TASKS.build("variance(measure='AP')")])
        assert [result.task for result in done.results] == ["risk", "variance"]
        assert done.provenance["tasks"] == ["risk(baseline='ql')", "variance(measure='AP')"]
        assert done["risk"] is done.results[0]
        assert "against ql" in done["risk"].tables

    def test_results_by_name(self, folder):
        done = st.audit(folder, ["bm25"], ["query_typos(draws=1)", "agreement"])
        assert done["query-typos"] is done["query_typos"] is done.results[0]
        with pytest.raises(UnknownName, match="no result is called 'risk'; there are: agreement, query-typos"):
            _ = done["risk"]

    def test_two_settings_of_one_task_keep_their_numbers_apart(self, folder):
        tasks = ["risk(baseline='bm25', alphas=(1.0,))", "risk(baseline='ql', alphas=(1.0,))"]
        done = st.audit(folder, ["bm25", "ql"], tasks)
        assert {finding.task for finding in done.findings} == set(tasks)
        urisk = {(f.task, f.ranker): f.value for f in done.findings if f.name == "URisk@1"}
        assert set(urisk) == {(tasks[0], "ql"), (tasks[1], "bm25")}
        assert {f.against for f in done.findings if f.name == "URisk@1"} == {"bm25", "ql"}

    def test_tasks_that_do_not_apply_are_skipped_and_named(self, folder):
        (folder / "qrels" / "test.tsv").unlink()
        done = st.audit(folder, ["bm25", "ql"], ["risk", "agreement"])
        assert [result.task for result in done.results] == ["agreement"]
        assert done.skipped == {"risk": "it needs judgements, and trees has none"}
        assert done.provenance["skipped"] == done.skipped

    def test_only_run_files(self, folder, tmp_path):
        from shaketable.cli import main

        (tmp_path / "mine.run").write_text("q1 Q0 d1 1 2 m\nq2 Q0 d2 1 2 m\nq3 Q0 d5 1 2 m\n")
        out = tmp_path / "out"
        with pytest.raises(SystemExit) as ended:
            main(["audit", "--data", str(folder), "--ranker", f"run:{tmp_path / 'mine.run'}", "--out", str(out)])
        assert ended.value.code == 0
        about = json.loads((out / "results.json").read_text())
        skipped = about["provenance"]["skipped"]
        assert skipped.keys() == {
            *("query_typos", "query_variation", "fusion", "probes", "document_attack", "competition", "first_stage"),
            *("consistency", "document_form"),
        }
        assert "run files come without their first stage" in skipped.pop("first_stage")
        assert all("and run files have none" in reason for reason in skipped.values())
        assert [r["task"] for r in about["results"]] == ["effectiveness", "variance", "risk", "agreement"]

    def test_a_run_file_beside_a_ranker(self, folder, tmp_path):
        (tmp_path / "mine.run").write_text("q1 Q0 d1 1 2 m\nq2 Q0 d2 1 2 m\nq3 Q0 d5 1 2 m\n")
        done = st.audit(
            folder, {"mine": f"run:{tmp_path / 'mine.run'}", "bm25": "bm25"}, ["effectiveness", "query_typos(draws=1)"]
        )
        assert set(done["effectiveness"].tables["effectiveness"]["ranker"]) == {"mine", "bm25"}
        assert set(done["query_typos"].tables["query attack"]["ranker"]) == {"bm25"}


class TestFindings:
    def test_numbers_with_their_interval_and_the_measure_itself(self, folder):
        done = st.audit(folder, ["bm25", "ql"], ["effectiveness(measures=('AP',))"])
        (one,) = [f for f in done.findings if f.ranker == "bm25"]
        assert (one.name, one.n, one.task) == ("AP", 3, "effectiveness(measures=('AP',))")
        assert one.low <= one.value <= one.high
        assert one.value == pytest.approx(np.mean([average(done.runs["bm25"][q], rel) for q, rel in RELEVANT.items()]))

    def test_rules(self, folder):
        done = st.audit(folder, ["bm25", longest], ["effectiveness(measures=('nDCG@10',))"])
        values = {f.ranker: f.value for f in done.findings}
        assert values["bm25"] > values["longest"]
        between = (values["bm25"] + values["longest"]) / 2
        assert done.check(f"bm25.nDCG@10>={between}")
        assert not done.check(f"nDCG@10>={between}"), "a rule without a ranker is about all that are under test"
        assert not done.check(f"bm25.nDCG@10>={between}", f"longest.nDCG@10>={between}")
        assert [ruling.ranker for ruling in done.evaluate_gates("nDCG@10>0")] == ["longest"], "bm25 is the first stage"
        assert done.check()
        with pytest.raises(UnknownName, match=r"no finding is called 'bm26\.nDCG@10'; did you mean bm25\.nDCG@10"):
            done.check("bm26.nDCG@10>=0")
        with pytest.raises(BadInput, match="cannot read the rule"):
            done.check("nDCG@10")

    def test_a_rule_looks_at_both_settings_of_a_task(self, folder):
        tasks = ["risk(baseline='bm25', alphas=(1.0,))", "risk(baseline='ql', alphas=(1.0,))"]
        done = st.audit(folder, ["bm25", "ql", longest], tasks)
        found = done.gate_input.select_findings("longest.URisk@1")
        assert {one.against for one in found} == {"bm25", "ql"}
        assert {one.task for one in found} == set(tasks)
        assert [ruling.status for ruling in done.evaluate_gates("longest.URisk@1>-9")] == ["pass", "pass"]


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


RELEVANT = {"q1": {"d1", "d4"}, "q2": {"d2"}, "q3": {"d3"}}


def average(scores, relevant):
    """Average precision, by its definition."""
    order = sorted(scores, key=lambda docno: (scores[docno], docno), reverse=True)
    places = [i for i, docno in enumerate(order, 1) if docno in relevant]
    return sum(found / place for found, place in enumerate(places, 1)) / len(relevant)


class KilledStack(ExitStack):
    """Undoes nothing, as in a process that is killed."""

    def __exit__(self, *error):
        self.pop_all()


class TestFolder:
    @pytest.fixture
    def done(self, folder):
        return st.audit(folder, ["bm25", "ql"], ["variance", "agreement"])

    def test_what_is_written(self, done, tmp_path):
        out = tmp_path / "deep" / "out"
        done.save(out)
        names = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
        assert {"report.html", "results.json", MANIFEST_FILE, "runs/bm25.run", "runs/ql.run"} <= names
        assert json.loads((out / "results.json").read_text()) == done.to_dict()
        assert (out / "report.html").read_text() == done.to_html()
        assert {q: s.keys() for q, s in read_run(out / "runs" / "ql.run").items()} == {
            q: s.keys() for q, s in done.runs["ql"].items()
        }
        about = json.loads((out / MANIFEST_FILE).read_text())
        assert about["files"].keys() == names - {MANIFEST_FILE}
        assert about["files"]["report.html"]["bytes"] == (out / "report.html").stat().st_size

    def test_other_files_stay_and_those_of_an_earlier_audit_go(self, folder, done, tmp_path):
        out = tmp_path / "out"
        (out / "runs").mkdir(parents=True)
        (out / "notes.txt").write_text("mine")
        (out / "runs" / "theirs.run").write_text("theirs")
        done.save(out)
        assert (out / "tables/agreement/agreement.csv").exists()
        st.audit(folder, ["bm25"], ["variance"]).save(out)
        assert not (out / "tables/agreement/agreement.csv").exists()
        assert not (out / "runs" / "ql.run").exists()
        assert (out / "runs" / "bm25.run").exists()
        assert (out / "notes.txt").read_text() == "mine"
        assert (out / "runs" / "theirs.run").read_text() == "theirs"

    @pytest.mark.parametrize("name", ["report.html", "tables/variance/variance.csv", "runs/bm25.run", MANIFEST_FILE])
    def test_a_file_of_another_program_is_not_replaced(self, done, tmp_path, name):
        out = tmp_path / "out"
        (out / name).parent.mkdir(parents=True)
        (out / name).write_text("mine")
        with pytest.raises(BadInput, match=rf"has a file {name} that no audit wrote"):
            done.save(out)
        assert [path for path in out.rglob("*") if path.is_file()] == [out / name]
        assert (out / name).read_text() == "mine"

    def test_a_file_where_a_folder_should_be(self, folder, done, tmp_path):
        out = tmp_path / "out"
        st.audit(folder, ["bm25"], ["agreement"]).save(out)
        before = {name: content for name, content in files_of(out).items() if not name.startswith("runs/")}
        for path in (out / "runs").iterdir():
            path.unlink()
        (out / "runs").rmdir()
        (out / "runs").write_text("mine")
        with pytest.raises(BadInput, match="has a file runs that no audit wrote"):
            done.save(out)
        assert files_of(out) == before | {"runs": b"mine"}

    def test_a_report_of_another_program_is_seen_before_the_work(self, tmp_path, folder, monkeypatch, capsys):
        from shaketable.cli import main

        out = tmp_path / "out"
        out.mkdir()
        (out / "report.html").write_text("mine")
        monkeypatch.setattr("shaketable.api.planning.run.run_tasks", lambda *given: pytest.fail("work was done"))
        with pytest.raises(SystemExit) as ended:
            main(["audit", "--data", str(folder), "--ranker", "bm25", "--out", str(out)])
        assert ended.value.code == 2
        assert "has a file report.html that no audit wrote" in capsys.readouterr().err

    def test_what_a_killed_program_left_is_swept(self, done, tmp_path):
        out = tmp_path / "out"
        left = out / f"{STAGING_PREFIX}abc"
        left.mkdir(parents=True)
        (left / "report.html").write_text("half")
        done.save(out)
        assert [path.name for path in out.iterdir() if path.name.startswith(STAGING_PREFIX)] == []

    def test_nothing_changes_if_writing_fails(self, done, tmp_path, monkeypatch):
        out = tmp_path / "out"
        done.save(out)
        before = files_of(out)

        def full(*given, **more):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("shaketable.api.audit.render_page", full)
        with pytest.raises(BadInput, match="cannot be written"):
            replace(done, title="new").save(out)
        assert files_of(out) == before

    def test_whatever_stops_it_the_next_audit_knows_which_files_are_ours(self, folder, tmp_path, monkeypatch):
        import os

        old, new = (st.audit(folder, [ranker], ["agreement"]) for ranker in ("bm25", "ql"))
        new.save(tmp_path / "fresh")
        wanted, moved = files_of(tmp_path / "fresh"), os.replace
        for after in range(len(wanted) + 1):  # the manifest, each file, the manifest again
            out = tmp_path / f"out {after}"
            out.mkdir()
            (out / "notes.txt").write_text("mine")
            old.save(out)
            left = [after]

            def interrupt_replace(source, target, left=left):
                if STAGING_PREFIX not in str(target):
                    if left[0] == 0:
                        raise KeyboardInterrupt
                    left[0] -= 1
                return moved(source, target)

            with monkeypatch.context() as patched:
                patched.setattr(os, "replace", interrupt_replace)
                with pytest.raises(KeyboardInterrupt):
                    new.save(out)
            left_there = files_of(out)
            if "report.html" in left_there and after:
                assert left_there["report.html"] == wanted["report.html"], "no old report beside new tables"
            new.save(out)
            assert files_of(out) == wanted | {"notes.txt": b"mine"}

    def test_a_manifest_leads_nowhere_else(self, done, tmp_path):
        out = tmp_path / "out"
        done.save(out)
        (tmp_path / "precious.txt").write_text("keep")
        about = json.loads((out / MANIFEST_FILE).read_text())
        about["files"] |= {"../precious.txt": {}, str(tmp_path / "precious.txt"): {}}
        (out / MANIFEST_FILE).write_text(json.dumps(about))
        done.save(out)
        assert (tmp_path / "precious.txt").read_text() == "keep"

    def test_a_forged_manifest_removes_nothing(self, folder, done, tmp_path):
        """A foreign file under a name that a manifest lists, with no checksum or with another one."""
        out = tmp_path / "out"
        done.save(out)
        (tmp_path / "elsewhere").mkdir()
        (out / "link").symlink_to(tmp_path / "elsewhere")
        digest = json.loads((out / MANIFEST_FILE).read_text())["files"]["report.html"]["blake2b"]
        for place in ("thesis.txt", "link/thesis.txt"):
            (out / place).write_text("mine")
            for record in ({}, {"bytes": 4}, {"bytes": 4, "blake2b": digest}, {"blake2b": ""}, {"blake2b": None}):
                about = json.loads((out / MANIFEST_FILE).read_text())
                about["files"][place] = record
                (out / MANIFEST_FILE).write_text(json.dumps(about))
                if place == "thesis.txt":
                    with pytest.raises(BadInput, match=r"has a file thesis\.txt that no audit wrote"):
                        done.save(out)
                    del about["files"][place]
                    (out / MANIFEST_FILE).write_text(json.dumps(about))
                else:
                    done.save(out)
                assert (out / place).read_text() == "mine"

    def test_an_edited_table_is_not_replaced(self, done, tmp_path):
        out = tmp_path / "out"
        done.save(out)
        (out / "tables/agreement/agreement.csv").write_text("edited in a spreadsheet")
        with pytest.raises(BadInput, match=r"agreement/agreement\.csv that no audit wrote, or that was changed since"):
            check_writable(out)
        with pytest.raises(BadInput, match="move it or name another folder"):
            done.save(out)
        assert (out / "tables/agreement/agreement.csv").read_text() == "edited in a spreadsheet"

    def test_an_audit_can_be_read_wherever_its_replacement_stops(self, folder, tmp_path, monkeypatch):
        import os

        old, new = (st.audit(folder, [ranker], ["agreement"]) for ranker in ("bm25", "ql"))
        moved, read = os.replace, 0
        for after in range(30):
            out = tmp_path / f"out {after}"
            old.save(out)
            left = [after]

            def interrupt_replace(source, target, left=left):
                if STAGING_PREFIX not in str(target):
                    if left[0] == 0:
                        raise KeyboardInterrupt
                    left[0] -= 1
                return moved(source, target)

            with monkeypatch.context() as patched:
                patched.setattr(os, "replace", interrupt_replace)
                patched.setattr("shaketable.report.audit_folder.ExitStack", KilledStack)
                try:
                    new.save(out)
                except KeyboardInterrupt:
                    pass
                else:
                    break
            if (out / "results.json").exists():
                read += 1
                assert st.read_audit(out).to_dict() in (old.to_dict(), new.to_dict())
        assert read >= 2

    def test_two_rankers_whose_file_names_clash_have_two_files(self, folder, tmp_path):
        rankers = {"a/b": "bm25", "a:b": longest, "A b": Shortest()}
        done = st.audit(folder, rankers, ["agreement"])
        done.save(tmp_path / "out")
        runs = [read_run(path) for path in sorted((tmp_path / "out" / "runs").iterdir())]
        names = [path.name for path in (tmp_path / "out" / "runs").iterdir()]
        assert len({name.casefold() for name in names}) == 3, "nor on a disk that does not tell a from A"
        for run in done.runs.values():
            assert sum({q: set(s) for q, s in one.items()} == {q: set(s) for q, s in run.items()} for one in runs) >= 1
        first = {max(run["q1"], key=run["q1"].__getitem__) for run in runs}
        assert first == {max(run["q1"], key=run["q1"].__getitem__) for run in done.runs.values()}

    def test_a_folder_that_cannot_be_written_to(self, done, tmp_path):
        (tmp_path / "file").write_text("x")
        for place in (tmp_path / "file", tmp_path / "file" / "below"):
            with pytest.raises(BadInput, match="cannot be written"):
                done.save(place)

    def test_the_page_has_every_task_and_ranker(self, done):
        page = done.to_html()
        assert page.startswith("<!DOCTYPE html>")
        for words in ("How evenly does each ranker", "How much do the rankers agree", "bm25", "ql", done.title):
            assert words in page


class TestQueries:
    def test_the_split_test_unless_another_is_named(self, folder):
        (folder / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\nq3\td3\t1\n")
        (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\nq2\td2\t1\n")
        runs = {split: set(st.audit(folder, ["bm25"], ["agreement"], split=split).runs["bm25"]) for split in SPLITS}
        assert runs == SPLITS
        with pytest.raises(UnknownName, match="no split is called 'tset'; did you mean test"):
            st.audit(folder, ["bm25"], ["agreement"], split="tset")

    def test_limit_depth_and_seed(self, folder):
        done = st.audit(folder, ["bm25"], ["query_typos(draws=2)"], max_queries=2, depth=1, seed=4)
        assert list(done.runs["bm25"]) == ["q1", "q2"]
        assert {len(scores) for scores in done.runs["bm25"].values()} == {1}
        again = st.audit(folder, ["bm25"], ["query_typos(draws=2)"], max_queries=2, depth=1, seed=4)
        other = st.audit(folder, ["bm25"], ["query_typos(draws=2)"], max_queries=2, depth=1, seed=5)
        texts = [list(one["query_typos"].tables["per query"]["text"]) for one in (done, again, other)]
        assert texts[0] == texts[1] != texts[2]

    def test_candidates(self, folder, tmp_path):
        (tmp_path / "first.run").write_text("q1 Q0 d4 1 2 m\nq1 Q0 d1 2 1 m\nq2 Q0 d5 1 2 m\nq3 Q0 d3 1 2 m\n")
        done = st.audit(folder, ["bm25", longest], ["agreement"], candidates=tmp_path / "first.run")
        for run in done.runs.values():
            assert {qid: set(scores) for qid, scores in run.items()} == {"q1": {"d4", "d1"}, "q2": {"d5"}, "q3": {"d3"}}


SPLITS = {None: {"q1", "q2"}, "test": {"q1", "q2"}, "train": {"q3"}, "all": {"q1", "q2", "q3"}}


def test_a_collection_in_memory():
    from shaketable.datasets.corpus import MemoryCorpus

    docs = MemoryCorpus({"a": Doc("oak tree"), "b": Doc("pine tree")})
    collection = st.Collection(
        "tiny", docs, {"1": st.Query("oak"), "2": st.Query("pine")}, {"1": {"a": 1}, "2": {"b": 1}}
    )
    done = st.audit(collection, ["bm25"], ["effectiveness"])
    assert {f.value for f in done.findings} == {1.0}
    assert done.provenance["collection"]["source"] == ""


def test_the_same_audit_from_python_and_from_the_command_line(folder, tmp_path):
    from shaketable.cli import main

    with pytest.raises(SystemExit):
        main(
            ["audit", "--data", str(folder), "--ranker", "mine=ql", "--task", "variance", "--out", str(tmp_path / "o")]
        )
    theirs = json.loads((tmp_path / "o" / "results.json").read_text())
    ours = st.audit(folder, ["mine=ql"], ["variance"]).to_dict()
    assert theirs["results"] == ours["results"]
    for who in (theirs, ours):
        del who["provenance"]["command"], who["provenance"]["spent"]
    assert theirs["provenance"] == ours["provenance"]


def test_slates_are_public():
    assert st.Slate("q", (st.Doc("x"),)) == Slate("q", (Doc("x"),))
    assert Path(st.__file__).name == "__init__.py"
