"""`shaketable attack`, as users run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from shaketable.datasets.adversarial_documents import read_adversarial_documents
from shaketable.tasks import _attack_run

pytestmark = pytest.mark.slow

STUFFING = ("attack", "--ranker", "bm25", "--recipe", "keyword_stuffing", "--max-queries", "3")


@pytest.fixture(autouse=True)
def no_encoder(monkeypatch):
    """Similarities are measured elsewhere, and an encoder takes seconds to open."""
    monkeypatch.setattr(_attack_run, "make_encoder", lambda: None)


def test_a_report_and_the_changed_documents(shaketable, tmp_path):
    done = shaketable(*STUFFING, "--write-documents", "changed.jsonl", "--tables")
    assert done.code == 0
    for said in (
        "How easily does a changed document gain ranks?",
        "keyword_stuffing",
        "success",
        "damage",
        "detection",
    ):
        assert said in done.out
    report = tmp_path / "shaketable-attack"
    assert f"The report is {report.name}/report.html" in done.err
    page = (report / "report.html").read_text()
    assert "<svg" in page
    results = json.loads((report / "results.json").read_text())
    (task,) = results["tasks"] if "tasks" in results else results["results"]
    assert {finding["name"] for finding in task["findings"]} >= {"attack success %", "attack boost", "robust RR@10"}
    documents = read_adversarial_documents(tmp_path / "changed.jsonl")
    assert f"{len(documents)} changed documents are in changed.jsonl." in done.err
    for one in documents:
        assert one.ranks_after < one.ranks_before, "who repeats the words of a query climbs in a list of BM25's"
        assert one.recipe == "keyword_stuffing"
        assert one.ranker == "bm25"
    row = json.loads((tmp_path / "changed.jsonl").read_text().splitlines()[0])
    assert row["edits"]
    assert {edit["before"] for edit in row["edits"]} == {""}, "nothing was taken away"


def test_changed_documents_are_tried_on_another_ranker(shaketable, tmp_path):
    assert shaketable(*STUFFING, "--write-documents", "changed.jsonl.gz", "--out", "first").code == 0
    words = (
        "attack",
        "--ranker",
        "ql",
        "--adversarial-documents",
        "changed.jsonl.gz",
        "--write-documents",
        "again.jsonl",
    )
    done = shaketable(*words, "--out", "second")
    assert done.code == 0
    before, after = (
        read_adversarial_documents(tmp_path / "changed.jsonl.gz"),
        read_adversarial_documents(tmp_path / "again.jsonl"),
    )
    assert [(one.docno, one.doc, one.queries) for one in before] == [(one.docno, one.doc, one.queries) for one in after]
    assert {one.ranker for one in after} == {"ql"}
    assert (tmp_path / "second" / "report.html").is_file()


def test_no_document_was_changed(shaketable, tmp_path):
    """The only trial measures the importance of a word, so the file exists and is empty."""
    none = (
        "attack",
        "--ranker",
        "bm25",
        "--max-queries",
        "1",
        "--targets",
        "1",
        "--max-trials",
        "1",
        "--recipe",
        "homoglyphs",
    )
    done = shaketable(*none, "--write-documents", "none.jsonl")
    assert done.code == 0
    assert "No change improved the rank of a document, so none.jsonl is empty." in done.err
    assert (tmp_path / "none.jsonl").read_text() == ""


def test_gates_decide_the_exit_code(shaketable):
    assert shaketable(*STUFFING, "--require", "attack success %<=100").code == 0
    done = shaketable(*STUFFING, "--require", "bm25.attack success %<=1")
    assert done.code == 1
    assert "fail: bm25.attack success %<=1: bm25.attack success % is " in done.err
    assert "no finding is called" in shaketable(*STUFFING, "--require", "attack succes<=1").complaint()


def test_json_has_standard_output_for_itself(shaketable):
    done = shaketable(*STUFFING, "--json", "-")
    assert done.code == 0
    data = json.loads(done.out)
    assert "keyword_stuffing" in json.dumps(data)
    assert "bm25 is the first stage" in done.err


BAD = {
    "budget": (("--max-trials", "0"), "max_trials should be 1 or more"),
    "recipe": (("--recipe", "nonsense"), "no recipe is called 'nonsense'"),
    "recipe's setting": (("--recipe", "greedy(words=0)"), "words should be between 1"),
    "goal": (("--goal", "nonsense"), "no goal is called 'nonsense'"),
    "goal's setting": (("--goal", "top(k=0)"), "k should be 1 or more"),
    "missing file": (("--adversarial-documents", "gone.jsonl"), "gone.jsonl: there is no such file"),
    "malformed file": (("--adversarial-documents", "bad.jsonl"), 'bad.jsonl:2: needs "query"'),
    "empty file": (("--adversarial-documents", "empty.jsonl"), "empty.jsonl: holds no documents"),
    "targets": (("--targets", "95"), "95 ranges of ranks from 11 on do not fit into lists of 100 documents"),
    "white box": (("--recipe", "white_wsra"), "ranker bm25 has no gradients"),
    "group": (("--group", "4"), "one text for 4 queries needs at least 4 attacked queries; there are 3"),
    "language": (("--parser", "klingon"), "is not a parser"),
    "rule": (("--require", "attack"), "cannot read the rule"),
    "out": (("--write-documents", "taken"), "taken: is a folder; name a file to write to"),
    "out below a file": (("--write-documents", "bad.jsonl/x.jsonl"), "cannot be written"),
    "report": (("--out", "bad.jsonl"), "cannot be written to"),
}


@pytest.mark.parametrize("what", BAD)
def test_invalid_options_give_one_message_and_leave_no_files(shaketable, tmp_path, what):
    (tmp_path / "bad.jsonl").write_text('{"query": "a", "text": "b"}\n{"text": "b"}\n')
    (tmp_path / "empty.jsonl").write_text("\n")
    (tmp_path / "taken").mkdir()
    words, said = BAD[what]
    before = sorted(path.name for path in tmp_path.iterdir())
    out = () if "--write-documents" in words else ("--write-documents", "changed.jsonl")
    assert said in shaketable("attack", "--ranker", "bm25", "--max-queries", "3", *out, *words).complaint()
    after = sorted(path.name for path in tmp_path.iterdir() if path.name != "home")
    assert after == before
    assert not list((tmp_path / "taken").iterdir())


def test_a_file_that_cannot_be_written_is_refused_before_the_work(shaketable, tmp_path):
    (tmp_path / "taken").mkdir()
    ended = shaketable(*STUFFING, "--write-documents", "taken")
    assert "taken: is a folder" in ended.complaint()
    assert "384 documents" not in ended.err


def test_short_lists_cost_an_audit_one_task(shaketable, folder):
    """The toy collection has five documents, so no document has rank 11."""
    tasks = ("--task", "agreement", "--task", "document-attack")
    done = shaketable("audit", "--data", folder, "--ranker", "bm25", "--ranker", "ql", *tasks)
    assert done.code == 0
    assert "document_attack was skipped: there is no document to attack" in " ".join(done.out.split())
    alone = shaketable("attack", "--data", folder, "--ranker", "bm25").complaint()
    assert alone.startswith("there is no document to attack: bm25: 0 documents were attacked in 3 lists")


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("recipes", "keyword_stuffing"),
        ("goals", "demote"),
        ("constraints", "fluency"),
        ("detectors", "spamicity"),
        ("synonyms", "thesaurus"),
    ],
)
def test_parts_of_attacks_are_listed(shaketable, kind, row):
    done = shaketable("list", kind)
    assert done.code == 0
    (line,) = [line for line in done.out.splitlines() if line.startswith(f"{row} ")]
    assert len(line.split()) > 3
    rows = json.loads(shaketable("list", kind, "--json", "-").out)["rows"]
    assert row in rows
    assert all(summary.strip() and "\n" not in summary for summary in rows.values())


def test_every_kind_that_can_be_listed_is_a_choice():
    from shaketable.api.listing import LISTINGS
    from shaketable.cli.listing import Listable

    assert {kind.value for kind in Listable} == LISTINGS.keys()


@pytest.mark.skipif(os.name == "nt", reason="pipes end otherwise there")
def test_a_reader_of_the_help_may_stop_early():
    """As `head` does."""
    read, write = os.pipe()
    os.close(read)
    script = "from shaketable.cli import main; main(['attack', '--help'])"
    done = subprocess.run([sys.executable, "-c", script], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")
