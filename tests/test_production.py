"""Every command of docs/production.md runs as it stands, in a folder with the files that the page describes."""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path

import pytest

import shaketable as st
from shaketable.cli import main
from shaketable.data.trec import write_run
from tests.rankers.llm.servers import lawful, serving
from tests.servers import Server, running, simple

PAGE = Path(__file__).parents[1] / "docs" / "production.md"
COMMANDS = re.findall(r"^    (shaketable .+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sample = st.load("sample?split=test")
    queries = list(sample.queries.values())[:5]
    with open("log.csv", "w", newline="") as out:
        csv.writer(out).writerows([["query", "count"], *([query.text, 1 + i] for i, query in enumerate(queries))])
    with open("docs.csv", "w", newline="") as out:
        csv.writer(out).writerows([["docno", "text"], *([d, doc.text] for d, doc in sample.docs.items())])
    for name, ranker in (("old", "bm25"), ("new", "ql")):
        write_run(st.rank("files?queries=log.csv&docs=docs.csv", ranker, depth=20), tmp_path / f"{name}.run")


@pytest.fixture
def served(monkeypatch):
    """A command with the addresses of real servers in the place of those that the page has."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with running(Server(simple)) as reranker, serving(lawful) as reader:
        known = {"http://localhost:8080/rerank": reranker.url, "http://localhost:8000/v1": reader.url}
        yield lambda command: re.sub("|".join(map(re.escape, known)), lambda found: known[found[0]], command)


def test_the_page_has_commands():
    assert len(COMMANDS) >= 9


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_runs(command, files, served, capsys):
    try:
        main(shlex.split(served(command))[1:])
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    assert code == 0, capsys.readouterr().err
