"""An endpoint from the command line: the doctor's visit, the list of parameters, a server that dies, Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shaketable.core.registries import RANKERS
from shaketable.core.registry import list_fields
from tests import servers
from tests.processes import SOURCE
from tests.servers import Server, running

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def test_the_doctor_visits_an_endpoint(shaketable):
    with running(Server(servers.tei)) as server:
        ended = shaketable("doctor", server.url, "--json", "out.json")
    assert ended.code == 0, ended.out
    for words in ("dialect", "tei", "latency", "noise floor", "32 of 100", "518 words"):
        assert words in ended.out
    findings = json.loads(Path("out.json").read_text())["findings"]
    assert {"check": "dialect", "severity": "ok"}.items() <= findings[0].items()


def test_the_doctor_on_an_endpoint_that_cannot_be_used(shaketable):
    with running(Server(servers.by_place)) as server:
        ended = shaketable("doctor", f"mine={server.url.removeprefix('http://')}")
    assert ended.code == 2
    assert "Nothing is re-ranked" in " ".join(ended.out.split())


def test_specs_of_the_doctor_can_be_copied_from_a_narrow_window(shaketable, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    pages = {"/models": servers.models("first-reranker", "second-reranker")}
    with running(Server(servers.infinity("first-reranker", "second-reranker"), pages)) as server:
        ended = shaketable("doctor", server.url)
        (spec,) = re.findall(r"write (http\(.*\))$", ended.out, re.MULTILINE)
        assert RANKERS.build(spec).model == "first-reranker"
        assert shaketable("doctor", spec).code == 0


def test_list_shows_the_parameters_of_one_thing(shaketable):
    ended = shaketable("list", "rankers", "http", "--json", "-")
    rows = json.loads(ended.out)["rows"]
    assert list(rows) == ["http", *(field.name for field in list_fields(RANKERS.get_class("http")))]
    for name, line in list(rows.items())[1:]:
        example = line.partition("Example: ")[2]
        assert name in example
        RANKERS.build(example)
    assert "concurrency=16" in shaketable("list", "rankers", "http").out
    assert "did you mean http" in shaketable("list", "rankers", "htpp").complaint()
    assert "have no parameters" in shaketable("list", "data", "sample").complaint()


@pytest.mark.parametrize("kind", ["rankers", "tasks", "transforms", "learners", "recipes", "probes"])
def test_every_thing_can_be_shown(kind):
    from shaketable.api.listing import REGISTRIES, list_parameters

    for name in REGISTRIES[kind]:
        assert list_parameters(kind, name)[name]


def test_a_function_in_a_file_is_a_ranker(shaketable, folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "helper.py").write_text("def length(text):\n    return len(text)\n")
    source = "from helper import length\ndef fn(query, texts):\n    return [length(t) for t in texts]\n"
    (tmp_path / "elsewhere" / "my.py").write_text(source)
    ended = shaketable("rank", "--data", folder, "--ranker", "./elsewhere/my.py:fn", "--write-run", "a.run")
    assert ended.code == 0, ended.err
    assert "./elsewhere/my.py:fn ranked" in ended.err
    assert (
        "there is no file"
        in shaketable("rank", "--data", folder, "--ranker", "./no.py:fn", "--write-run", "b").complaint()
    )
    wrong = shaketable("rank", "--data", folder, "--ranker", "./elsewhere/my.py:fm", "--write-run", "b")
    assert "there is no 'fm'" in wrong.complaint()


def test_partial_failures_of_a_server_are_reported_as_a_share(shaketable, folder):
    def reply(nth, body):
        return (400, {"error": "no"}, {}) if "bark" in body["query"] else servers.simple(nth, body)

    with running(Server(reply)) as server:
        words = ("rank", "--data", folder, "--ranker", f"mine={server.url}", "--write-run", "a.run")
        assert "bark for pain" in shaketable(*words).complaint()
        ended = shaketable(*words, "--keep-going")
    assert ended.code == 0, ended.err
    assert "mine failed on 1 of 3 lists (33%)" in ended.err
    assert "2 of 3 queries" in ended.err


INTERRUPTIBLE = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores the signal
from shaketable.cli import main
main()
"""


def test_control_c_tells_the_truth(tmp_path):
    """Answers that have arrived are cached for the next run, and the program does not wait for the others."""

    def slowly(nth, body):
        if nth > 12 and server.reply is slowly:
            time.sleep(60)
        return servers.simple(nth, body)

    env = {**os.environ, "PYTHONPATH": str(SOURCE), "SHAKETABLE_HOME": str(tmp_path / "home")}
    with running(Server(slowly)) as server:
        spec = f"mine=http(url='{server.url}', concurrency=3, timeout=90)"
        words = [
            "rank",
            "--ranker",
            spec,
            "--depth",
            "5",
            "--max-queries",
            "30",
            "--write-run",
            str(tmp_path / "a.run"),
        ]
        command = [sys.executable, "-c", INTERRUPTIBLE, *words]
        victim = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, encoding="utf-8")
        while len(server.bodies) < 15 and victim.poll() is None:
            time.sleep(0.01)
        time.sleep(0.2)
        victim.send_signal(signal.SIGINT)
        _, said = victim.communicate(timeout=40)
        assert victim.returncode == 130
        (line,) = said.splitlines()
        counts = re.fullmatch(
            r"shaketable: stopped while scoring with mine: (\d+) of (\d+) scores were complete; they are cached: "
            r"run the same command again to continue",
            line,
        )
        assert counts, line
        server.reply = servers.simple
        before = len(server.bodies)
        subprocess.run(command, env=env, check=True, capture_output=True)
        texts = sum(len(body["documents"]) for body in server.lists[-(len(server.bodies) - before - 2) :])
        checked_again = 2 * 3
        assert texts == int(counts[2]) - int(counts[1]) + checked_again


def test_the_doctor_on_a_server_that_fails_open(shaketable):
    def reply(nth, body):
        if nth % 12 == 0 and len(body["documents"]) > 4:
            return servers.by_place(nth, body)
        return servers.simple(nth, body)

    with running(Server(reply)) as server:
        ended = shaketable("doctor", server.url, "--json", "out.json")
    assert ended.code == 2
    assert ended.out.startswith("It fails open: ")
    assert "in input order" in " ".join(ended.out.split())
    (fault,) = json.loads(Path("out.json").read_text())["faults"]
    assert fault["kind"] == "fails open"


def test_watch_finds_another_model_behind_a_url(shaketable):
    server = Server(servers.simple)
    with running(server):
        assert shaketable("watch", server.url, "--state", "state.json").code == 0
        ended = shaketable("watch", server.url, "--state", "state.json", "--json", "-")
        assert (ended.code, ended.out.count("\n")) == (0, 1)
        assert json.loads(ended.out)["drift"] is False
        server.reply = servers.by_place
        ended = shaketable("watch", server.url, "--state", "state.json", "--json", "-")
    assert ended.code == 1
    assert json.loads(ended.out)["drift"] is True
    assert "has drifted" in ended.err
    assert "could not be watched" in shaketable("watch", f"http(url={server.url!r}, retries=0)").complaint()
