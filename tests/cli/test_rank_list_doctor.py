"""The smaller commands."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path

import pytest

from shaketable import __version__
from shaketable.datasets.trec import read_run


def test_rank_with_a_retriever(shaketable, folder, tmp_path):
    ended = shaketable("rank", "--data", folder, "--ranker", "bm25", "--write-run", "bm25.run")
    assert ended.code == 0, ended.err
    run = read_run(tmp_path / "bm25.run")
    assert max(run["q1"], key=run["q1"].__getitem__) == "d1"
    assert "3 of 3 queries" in ended.err


def test_rank_re_ranks_candidates(shaketable, folder, tmp_path, monkeypatch):
    (tmp_path / "length_ranker.py").write_text("def by_length(query, texts):\n    return [len(t) for t in texts]\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    ended = shaketable(
        "rank", "--data", folder, "--ranker", "length_ranker:by_length", "--write-run", "len.run.gz", "--json", "-"
    )
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["queries"] == 3
    run = read_run(tmp_path / "len.run.gz")
    assert run["q1"]["d1"] == len("the oak is a hardwood tree with lobed leaves")
    assert run["q1"].keys() == {"d1", "d4"}, "only what bm25 found"


def test_another_first_stage(shaketable, folder, tmp_path, monkeypatch):
    (tmp_path / "length_ranker.py").write_text("def by_length(query, texts):\n    return [len(t) for t in texts]\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    words = ("rank", "--data", folder, "--ranker", "mine=length_ranker:by_length", "--depth", "2", "--write-run")
    assert shaketable(*words, "plain.run").code == 0
    ended = shaketable(*words, "ql.run", "--first-stage", "ql(mu=1)")
    assert ended.code == 0, ended.err
    assert (
        shaketable("rank", "--data", folder, "--ranker", "ql(mu=1)", "--depth", "2", "--write-run", "found.run").code
        == 0
    )
    found, mine = read_run(tmp_path / "found.run"), read_run(tmp_path / "ql.run")
    assert {qid: set(scores) for qid, scores in mine.items()} == {qid: set(scores) for qid, scores in found.items()}
    assert "mine ranked" in ended.err
    assert (tmp_path / "ql.run").read_text().split()[5] == "mine"
    assert "no ranker is called 'bm52'" in shaketable(*words, "x.run", "--first-stage", "bm52").complaint()


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(
            ("rankers", "bm25"),
            ("rankers", "train lambdamart"),
            ("learners", "doc2query"),
            ("transforms", "add_queries"),
        ),
        *(
            ("tasks", "variance"),
            ("measures", "rbo"),
            ("measures", "nDCG@10"),
            ("data", "sample"),
            ("resources", "wordnet"),
        ),
    ],
)
def test_list(shaketable, kind, name):
    ended = shaketable("list", kind)
    assert ended.code == 0
    assert name in ended.out
    assert name in json.loads(shaketable("list", kind, "--json", "-").out)["rows"]


def test_doctor_on_a_good_collection(shaketable, folder):
    ended = shaketable("doctor", folder)
    assert ended.code == 0, ended.out
    assert "broken" not in ended.out


def test_doctor_counts_a_collection(shaketable, folder):
    """The numbers of paper 000's Table 1, on the screen and as JSON."""
    ended = shaketable("doctor", folder, "--json", "out.json")
    assert re.match(r"queries +3\n", ended.out), "the first line has no indent and no header above it"
    assert "words in a document, on average" in ended.out
    counted = json.loads(Path("out.json").read_text())["statistics"]
    assert counted == {
        "queries": 3,
        "judged_queries": 3,
        "documents": 5,
        "words_per_document": 37 / 5,
        "relevant_per_query": 4 / 3,
    }


def test_doctor_on_dangling_ids(shaketable, folder):
    with (folder / "qrels" / "test.tsv").open("a") as qrels:
        qrels.write("q1\td99\t1\n")
    ended = shaketable("doctor", folder, "--json", "out.json")
    assert "d99" in ended.out


def test_doctor_on_a_run(shaketable, trec):
    assert shaketable("doctor", "good.run", "--qrels", "qrels").code == 0
    trec["good.run"].write_text("q9 Q0 d1 1 1.0 x\n")
    ended = shaketable("doctor", "good.run", "--qrels", "qrels")
    assert ended.code == 2
    assert "with --qrels" in shaketable("doctor", "good.run").complaint()


def test_doctor_on_broken_json(shaketable, folder):
    with (folder / "corpus.jsonl").open("a") as corpus:
        corpus.write('{"_id": "d6", "text": \n')
    assert "corpus.jsonl:6:" in shaketable("doctor", folder).complaint()


def test_doctor_on_the_installation(shaketable):
    ended = shaketable("doctor")
    assert ended.code == 0
    assert "numpy" in ended.out


def test_version_and_help(shaketable):
    first, versions = shaketable("--version").out.splitlines()
    assert first == f"shaketable {__version__}"
    assert versions.startswith("Python ")
    for name in ("numpy", "scipy", "pandas", "torch", "transformers", "lightgbm"):
        assert f", {name} {version(name)}" in versions
    assert "audit" in shaketable("--help").out
    assert shaketable("no-such-command").code == 2


def test_doctor_on_rankers(shaketable, tmp_path):
    (tmp_path / "mine.py").write_text(
        "def score(query, texts):\n    return [-len(set(query.split()) & set(t.split())) for t in texts]\n"
    )
    ended = shaketable("doctor", "bm25", "--json", "out.json")
    assert ended.code == 0, ended.out
    assert ended.out.startswith("The ranker answers 40 of 40 questions; no fault found.")
    assert json.loads(Path("out.json").read_text())["faults"] == []
    ended = shaketable("doctor", "./mine.py:score")
    assert ended.code == 2
    assert ended.out.startswith("The scores seem to be inverted")
    (tmp_path / "a.run").write_text("q0 Q0 d1 1 1.0 x\n")
    assert "cannot score texts" in shaketable("doctor", "run:a.run").complaint()
    assert "it takes" in shaketable("doctor", "bm25(k2=1)").complaint()
