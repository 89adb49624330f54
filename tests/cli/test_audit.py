"""`shaketable audit`: a whole story from one command, the same after a kill, and honest when things fail."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from shaketable.tasks.runner import list_default_tasks

pytestmark = pytest.mark.slow


def results(folder: Path) -> dict:
    return json.loads((folder / "results.json").read_text())


def comparable(folder: Path) -> dict:
    """Return the part of the results that depends neither on the command nor on the cache."""
    whole = results(folder)
    for asked in ("command", "spent"):
        del whole["provenance"][asked]
    return whole


def test_on_a_folder(shaketable, folder, tmp_path):
    ended = shaketable("audit", "--data", folder, "--ranker", "bm25", "--ranker", "ql", "--out", "out")
    assert ended.code == 0, ended.err
    out = tmp_path / "out"
    done = {r["task"] for r in results(out)["results"]}
    skipped = {"document-attack", "document-form", "competition"}
    assert done == {task.replace("_", "-") for task in list_default_tasks()} - skipped, (
        "no list has an eleventh place, and there are no rounds"
    )
    assert (out / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert (out / "runs" / "bm25.run").read_text().startswith("q1 Q0 d1 1 ")
    assert (out / "tables/variance/per-query.csv").exists()
    assert "The report is " in ended.err
    assert len(ended.out.splitlines()) + 1 <= 25
    assert "effectiveness" in ended.out
    assert "VNAP" not in ended.out
    assert "There are only 3 queries" in " ".join(ended.out.split())


def test_tables_on_demand(shaketable, folder):
    words = ("audit", "--data", folder, "--ranker", "bm25", "--ranker", "ql", "--task", "variance", "--task", "risk")
    every = shaketable(*words, "--tables")
    assert "VNAP" in every.out
    assert "GeoRisk" in every.out
    assert every.out.splitlines()[-1] == shaketable(*words).out.splitlines()[-1], "the answer comes last"
    for name in ("risk", "risk: risk"):
        one = shaketable(*words, "--table", name)
        assert "GeoRisk" in one.out
        assert "VNAP" not in one.out
    wrong = shaketable(*words, "--table", "varience")
    assert wrong.complaint().startswith("no table is called 'varience'; did you mean variance")
    assert "there are: risk: " in shaketable(*words, "--table", "#").complaint()


def test_the_table_of_systems(shaketable, folder, tmp_path):
    words = ("audit", "--data", folder, "--ranker", "bm25", "--ranker", "ql")
    files = ("--latex", "t.tex", "--markdown", "t.md")
    ended = shaketable(*words, "--task", "effectiveness", "--table", "systems", *files)
    assert ended.code == 0, ended.err
    assert "Mean effectiveness of 2 systems over 3 queries." in ended.out
    assert "effect size" not in ended.out, "no other table"
    assert r"System & \multicolumn{2}{c}{nDCG@10} & \multicolumn{2}{c}{AP} &" in (tmp_path / "t.tex").read_text()
    assert "| System | nDCG@10 | AP | RR@10 |" in (tmp_path / "t.md").read_text()
    page = (tmp_path / "shaketable-audit" / "report.html").read_text()
    assert '<table class="systems">' in page
    ended = shaketable(*words, "--task", "agreement", "--latex", "none.tex")
    assert "none.tex is not written: only the task effectiveness has a table of systems" in ended.err
    assert not (tmp_path / "none.tex").exists()


def test_without_judgements_it_compares_rankings(shaketable, folder):
    (folder / "qrels" / "test.tsv").unlink()
    words = ("audit", "--data", folder, "--ranker", "bm25", "--ranker", "ql", "--out", "out")
    ended = shaketable(*words)
    assert ended.code == 0, ended.err
    said = " ".join(ended.out.split())
    assert "Skipped, it needs judgements, and trees has none: effectiveness, variance, risk." in said
    ended = shaketable(*words, "--tables")
    assert "variance was skipped: it needs judgements, and trees has none" in ended.out
    assert "How much do the rankers agree?" in ended.out
    assert "no task applies" in shaketable("audit", "--data", folder, "--task", "risk").complaint()


def rules(**rule: str) -> Path:
    path = Path("rules.toml")
    lines = [f"{key} = {json.dumps(value)}" for key, value in {"finding": "nDCG@10", "below": 0.1, **rule}.items()]
    path.write_text("\n".join(["[[fail_if]]", *lines]))
    return path


def test_gates(shaketable, folder):
    words = ("audit", "--data", folder, "--ranker", "bm25", "--task", "variance")
    held = shaketable(*words, "--require", "bm25.nDCG@10>=0.1")
    assert held.code == 0
    assert held.out.startswith("PASSED: ")
    assert "pass: bm25.nDCG@10>=0.1: " in held.out.splitlines()[1]
    failed = shaketable(*words, "--require", "nDCG@10 >= 1.1", "--json", "a.json")
    assert failed.code == 1
    assert failed.out.startswith("FAILED: ")
    assert "fail: nDCG@10 >= 1.1: " in failed.out.splitlines()[1]
    for written in (json.loads(Path("a.json").read_text()), results(Path("shaketable-audit"))):
        assert list(written)[:3] == ["schema", "gate_results", "verdict"]
        assert [(gate["rule"], gate["status"]) for gate in written["gate_results"]] == [("nDCG@10 >= 1.1", "fail")]
        assert written["verdict"]["passed"] is False
    assert "no finding is called 'nDCG@1'" in shaketable(*words, "--require", "nDCG@1>=0").complaint()
    assert (Path("shaketable-audit") / "report.html").exists(), "hours of work are not lost to a mistyped rule"
    assert "no ranker is called" in shaketable(*words, "--rules", rules(ranker="bm52")).complaint()
    assert "cannot read the rule" in shaketable(*words, "--require", "good").complaint()


USELESS = """
def noop(query, texts):
    return [-place for place, _ in enumerate(texts)]
def constant(query, texts):
    return [1.0] * len(texts)
"""


@pytest.mark.parametrize("name", ["noop", "constant"])
def test_a_ranker_that_does_nothing_fails_the_default_gate(shaketable, folder, tmp_path, name):
    (tmp_path / "useless.py").write_text(USELESS)
    words = ("audit", "--data", folder, "--ranker", f"{name}=./useless.py:{name}", "--task", "query-typos(draws=1)")
    shown = shaketable(*words)
    assert shown.code == 0, "the default gate is shown, and decides where it is asked to"
    assert f"The effectiveness of {name} was not tested" in " ".join(shown.out.split())
    ended = shaketable(*words, "--gate", "--json", "a.json")
    assert ended.code == 1, ended.out
    assert ended.out.startswith(f"FAILED: {name} has no order of its own")
    gates = json.loads(Path("a.json").read_text())["gate_results"]
    assert {"rule": "ranks by itself", "ranker": name, "status": "fail"}.items() <= gates[0].items()
    exempt = shaketable("audit", "--data", folder, "--ranker", "bm25", "--task", "query-typos(draws=1)", "--gate")
    assert exempt.code == 0, "the first stage itself is exempt"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--ranker", "bm52"], "no ranker is called 'bm52'; did you mean bm25?"),
        (["--ranker", "bm25(k=1)"], "it takes: "),
        (["--ranker", "bm25(k1="], "cannot read the ranker"),
        (["--ranker", "bm25(k1=-1)"], "k1"),
        (["--task", "varience"], "no task is called 'varience'; did you mean variance?"),
        (["--data", "absent"], "absent"),
        (["--split", "dev"], "split"),
        (["--candidates", "absent.run"], "absent.run: there is no such file"),
        (["--ranker", "run:absent.run"], "absent.run: there is no such file"),
        (["--ranker", "no_such_module:thing"], "no_such_module"),
    ],
)
def test_bad_words(shaketable, folder, words, complaint, tmp_path):
    given = words if "--data" in words else ["--data", folder, *words]
    ended = shaketable("audit", *given, "--out", "out")
    assert complaint in ended.complaint()
    assert not (tmp_path / "out").exists()


def test_a_ranker_that_is_named_twice_has_two_names(shaketable, folder, tmp_path):
    words = ("--ranker", "bm25", "--ranker", "bm25()", "--task", "variance", "--out", "out")
    ended = shaketable("audit", "--data", folder, *words)
    assert ended.code == 0, ended.err
    assert results(tmp_path / "out")["provenance"]["rankers"] == {"bm25": "bm25", "bm25 (2)": "bm25"}
    assert {path.name for path in (tmp_path / "out" / "runs").iterdir()} == {"bm25.run", "bm25-2.run"}


def test_a_run_file_is_a_ranker(shaketable, folder, tmp_path):
    (tmp_path / "mine.run").write_text("q1 Q0 d1 1 2 m\nq2 Q0 d2 1 2 m\nq3 Q0 d5 1 2 m\n")
    ended = shaketable("audit", "--data", folder, "--ranker", "run:mine.run", "--ranker", "bm25", "--out", "out")
    assert ended.code == 0, ended.err
    per_query = (tmp_path / "out" / "tables/variance/per-query.csv").read_text()
    assert "q3,0.0" in per_query


def test_all_rankers_rank_the_candidates(shaketable, folder, tmp_path):
    (tmp_path / "first.run").write_text("q1 Q0 d4 1 2 m\nq1 Q0 d1 2 1 m\nq2 Q0 d5 1 2 m\nq3 Q0 d3 1 2 m\n")
    ended = shaketable(
        "audit", "--data", folder, "--ranker", "bm25", "--candidates", "first.run", "--out", "out", "--tables"
    )
    assert ended.code == 0, ended.err
    run = (tmp_path / "out" / "runs" / "bm25.run").read_text().splitlines()
    assert {tuple(line.split()[:3:2]) for line in run} == {("q1", "d4"), ("q1", "d1"), ("q2", "d5"), ("q3", "d3")}
    assert "the candidates that came with the collection" in " ".join(ended.out.split())


FAILING = """
import numpy as np
class Fussy:
    name = "fussy"
    def score(self, slates):
        if any("bark" in s.query for s in slates):
            raise ValueError("no bark please")
        return [np.arange(len(s.docs), dtype=float) for s in slates]
class Hopeless:
    name = "hopeless"
    def score(self, slates):
        raise ValueError("never")
"""


def test_a_ranker_that_fails(shaketable, folder, tmp_path, monkeypatch):
    (tmp_path / "failing_rankers.py").write_text(FAILING)
    monkeypatch.syspath_prepend(str(tmp_path))
    words = ("audit", "--data", folder, "--out", "out", "--ranker")
    assert "no bark please" in shaketable(*words, "failing_rankers:Fussy").complaint()
    ended = shaketable(*words, "failing_rankers:Fussy", "--keep-going", "--tables")
    assert ended.code == 0, ended.err
    assert "a ranker failed on a query" in " ".join(ended.out.split())
    failures = results(tmp_path / "out")["results"][0]["failures"]
    assert [f["query"] for f in failures] == ["bark for pain"]
    assert "no list for 1 of 3 queries" in ended.out
    ended = shaketable(*words, "failing_rankers:Hopeless", "--keep-going")
    assert "ranked none of the 3 queries" in ended.complaint()


class Endpoint(BaseHTTPRequestHandler):
    answer = b""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.answer)

    def log_message(self, *words):
        pass


@pytest.fixture
def garbage_server():
    server = HTTPServer(("127.0.0.1", 0), type("Garbage", (Endpoint,), {"answer": b"<html>hello</html>"}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/rerank"
    server.shutdown()
    server.server_close()


def test_endpoints_that_do_not_work(shaketable, folder, garbage_server, tmp_path):
    words = ("audit", "--data", folder, "--out", "out", "--ranker")
    assert garbage_server in shaketable(*words, garbage_server).complaint()
    down = "http(url='http://127.0.0.1:9/rerank', retries=0, timeout=1)"
    assert "127.0.0.1:9" in shaketable(*words, down).complaint()
    assert not (tmp_path / "out").exists()


COUNTING = """
import os, time
import numpy as np
from pathlib import Path
class Counting:
    name = "counting"
    fingerprint = "counting 1"
    pointwise = True
    def score(self, slates):
        answer = [np.array([float(len(set(d.text.split()) & set(s.query.split()))) for d in s.docs]) for s in slates]
        time.sleep(float(os.environ.get("COUNTING_SLEEP", "0")))
        with open(os.environ["COUNTING_LOG"], "a") as log:
            log.write(f"{sum(len(s.docs) for s in slates)}\\n")
        return answer
"""


def test_killed_in_the_middle_and_run_again(folder, tmp_path):
    """kill -9 an audit; the rerun gives the results of an undisturbed one and computes only the unfinished part."""
    docs = [{"_id": f"x{i}", "text": f"oak needles bark number {i} word{i % 7}"} for i in range(700)]
    with (folder / "corpus.jsonl").open("a") as corpus:
        corpus.writelines(json.dumps(doc) + "\n" for doc in docs)
    (tmp_path / "counting_ranker.py").write_text(COUNTING)

    def environment(home: str, log: str, sleep: str = "0") -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
            "SHAKETABLE_HOME": str(tmp_path / home),
            "COUNTING_LOG": str(tmp_path / log),
            "COUNTING_SLEEP": sleep,
        }

    def command(out: str) -> list[str]:
        script = "from shaketable.cli import main; main()"
        tasks = "--task effectiveness --task query_typos(draws=1)"
        words = f"audit --data {folder} --ranker counting_ranker:Counting --depth 600 {tasks} --out {out}"
        return [sys.executable, "-c", script, *words.split()]

    def count_scored(log: str) -> list[int]:
        path = tmp_path / log
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    subprocess.run(command("whole"), env=environment("home a", "log a"), check=True, capture_output=True, cwd=tmp_path)
    whole = sum(count_scored("log a"))
    assert len(count_scored("log a")) > 2, "several chunks, or there is no middle"

    victim = subprocess.Popen(
        command("cut"), env=environment("home b", "log b", "0.5"), cwd=tmp_path, stderr=subprocess.DEVNULL
    )
    while len(count_scored("log b")) < 2 and victim.poll() is None:
        time.sleep(0.01)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    assert not (tmp_path / "cut").exists(), "nothing half-written"
    before = sum(count_scored("log b"))
    subprocess.run(command("cut"), env=environment("home b", "log b"), check=True, capture_output=True, cwd=tmp_path)
    again = sum(count_scored("log b")) - before
    assert 0 < again < whole, "finished chunks are not asked for again"

    assert comparable(tmp_path / "cut") == comparable(tmp_path / "whole")
    assert (tmp_path / "cut" / "runs" / "counting_ranker-Counting.run").read_text() == (
        tmp_path / "whole" / "runs" / "counting_ranker-Counting.run"
    ).read_text()


def test_same_seed_same_results_whatever_the_threads(folder, tmp_path):
    script = "from shaketable.cli import main; main()"
    for out, threads in (("one", "1"), ("two", "2")):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "NUMBA_NUM_THREADS": threads}
        environment["SHAKETABLE_HOME"] = str(tmp_path / f"home-{out}")  # nothing is known from before
        words = f"audit --data {folder} --ranker bm25 --ranker rm3 --out {out} --seed 3"
        subprocess.run(
            [sys.executable, "-c", script, *words.split()],
            env=environment,
            check=True,
            capture_output=True,
            cwd=tmp_path,
        )
    assert comparable(tmp_path / "one") == comparable(tmp_path / "two")
    assert results(tmp_path / "one")["provenance"]["spent"] == results(tmp_path / "two")["provenance"]["spent"]


def test_a_competition_of_the_sample_and_one_of_the_users(shaketable, tmp_path, folder):
    ended = shaketable(
        "audit", "--ranker", "bm25", "--ranker", "ql", "--task", "competition", "--require", "TC<=0.9", "--tables"
    )
    assert ended.code == 0, ended.err
    assert "240 documents that 5 authors wrote in 4 rounds" in " ".join(ended.out.split())
    assert "pass: TC<=0.9: ql.TC is " in ended.out, "bm25 is the first stage"
    race = tmp_path / "race"
    race.mkdir()
    (race / "queries.jsonl").write_text('{"_id": "q1", "text": "oak tree leaves"}\n')
    rows = [
        {"_id": f"{turn}{author}", "round": turn, "query_id": "q1", "author": author, "text": text}
        for turn, texts in enumerate(({"ann": "oak", "bob": "a pine"}, {"ann": "a pine", "bob": "oak tree"}))
        for author, text in texts.items()
    ]
    (race / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("audit", "--data", folder, "--ranker", "bm25", "--task", "competition(data='race')", "--out", "out")
    assert shaketable(*words).code == 0
    (summary,) = [r["tables"]["competition"] for r in results(tmp_path / "out")["results"]]
    assert "1.0" in json.dumps(summary), "both authors changed places"
    del rows[1]["author"]
    (race / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert shaketable(*words).complaint() == (
        'race/documents.jsonl:2: has no "author": who wrote the document, by one name in all rounds'
    )
