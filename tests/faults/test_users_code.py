"""User code and user input that misbehave: exit code 2 and one message, never 0, never a traceback."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

RUDE = (
    *("Leaves", "Stops", "Goes", "Mumbles", "Complex", "Lazy", "Trapped", "NeverMade", "NeverOpened", "Nameless"),
    *("Marked", "Remarkable", "Searches"),
)


@pytest.mark.parametrize("name", RUDE)
def test_a_ranker_that_behaves_badly(shaketable, folder, name):
    words = ("--data", folder, "--ranker", f"tests.faults.rude:{name}")
    assert shaketable("audit", *words, "--task", "variance", "--out", "out").complaint()
    assert shaketable("rank", *words, "--write-run", "a.run").complaint()


def test_a_ranker_that_leaves_is_a_failure_to_go_on_after(shaketable, folder):
    words = ("--data", folder, "--ranker", "tests.faults.rude:Leaves", "--task", "variance", "--keep-going")
    assert "ranked none of the 3 queries" in shaketable("audit", *words, "--out", "out").complaint()


def test_scores_with_gradients_are_scores(shaketable, folder, tmp_path):
    pytest.importorskip("torch")
    ended = shaketable("rank", "--data", folder, "--ranker", "tests.faults.rude:Gradients", "--write-run", "a.run")
    assert ended.code == 0, ended.err
    assert (tmp_path / "a.run").read_text().startswith("q1 Q0 d1 1 44.0 ")  # the longest text


@pytest.mark.parametrize("line", ["import sys; sys.exit(0)", "raise KeyboardInterrupt.__subclasses__()[0]", "1/0"])
def test_a_module_that_cannot_be_imported(shaketable, folder, tmp_path, monkeypatch, line):
    (tmp_path / "rude_module.py").write_text(f"class Stopped(KeyboardInterrupt): ...\n{line}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    complaint = shaketable("rank", "--data", folder, "--ranker", "rude_module:Mine", "--write-run", "a.run").complaint()
    assert "importing rude_module failed" in complaint


def test_a_transform_or_a_task_that_exits(shaketable, folder, tmp_path, monkeypatch):
    code = "import sys\ndef leave(text):\n    sys.exit(0)\nclass Task:\n    needs_judgements = needs_scoring = False\n"
    code += "    def run(self, bench):\n        sys.exit(0)\n"
    (tmp_path / "rude_things.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert shaketable("vary", folder, "--transform", "rude_things:leave").complaint()
    words = ("--data", folder, "--ranker", "bm25", "--task", "rude_things:Task", "--out", "out")
    assert shaketable("audit", *words).complaint()


LONG = "0" * 4000
DEEP = 4000
SPECS = (
    "bm25\udcff",
    "\ud800",
    "rm3(base=" * DEEP + "ql" + ")" * DEEP,
    "(" * DEEP,
    "bm25(k1=" + "-" * 3000 + "1)",
    "bm25(k1=" + "[" * 3000 + "]" * 3000 + ")",
    f"bm25(k1=1{LONG})",
    f"bm25(k1=0xf{LONG})",
    " " * 3000,
    "tests.toys:Overlap" + "(" * 3000,
    "tests.toys:Overlap(" + "[" * 3000 + "]" * 3000 + ")",
    "\0",
    "http://\udcff/rerank",
    "run:\udcff",
    "run:a\0b",
    "./\udcff",
)


@pytest.mark.parametrize("spec", SPECS, ids=range(len(SPECS)))
def test_an_unreadable_ranker(shaketable, folder, spec):
    assert shaketable("rank", "--data", folder, "--ranker", spec, "--write-run", "a.run").complaint()


@pytest.mark.parametrize("spec", SPECS[:9], ids=range(9))
def test_an_unreadable_task_transform_or_learner(shaketable, folder, spec):
    assert shaketable("audit", "--data", folder, "--ranker", "bm25", "--task", spec, "--out", "out").complaint()
    assert shaketable("vary", folder, "--transform", spec).complaint()
    assert shaketable("train", spec, "--data", folder, "--model", "model").complaint()


@pytest.mark.parametrize("rule", ["x" + " " * 3000 + ">= 1", " " * 3000, "a >= " + "1" * 3000, "\udcff>=1", ">=" * 200])
def test_an_unreadable_gate(shaketable, folder, rule):
    words = ("--data", folder, "--ranker", "bm25", "--task", "variance", "--out", "out", "--require", rule)
    assert shaketable("audit", *words).complaint()


@pytest.mark.parametrize("name", ["\udcff", "x" * 5000])
def test_a_name_of_a_file_that_cannot_be(shaketable, folder, name):
    assert shaketable("audit", "--data", name, "--ranker", "bm25", "--out", "out").complaint()
    assert shaketable(
        "rank", "--data", folder, "--ranker", "bm25", "--candidates", name, "--write-run", "a.run"
    ).complaint()
    assert shaketable("evaluate", "--scores", name).complaint()
    assert shaketable("doctor", name).complaint()
    if name != "\udcff":  # such a name can be written
        assert shaketable("rank", "--data", folder, "--ranker", "bm25", "--write-run", name).complaint()
        words = ("--data", folder, "--ranker", "bm25", "--task", "variance", "--out", name)
        assert shaketable("audit", *words).complaint()
