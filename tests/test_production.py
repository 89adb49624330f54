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

PAGE = Path(__file__).parents[1] / "docs" / "production.md"
COMMANDS = re.findall(r"^    (shaketable .+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
MINE = [
    command for command in COMMANDS if "--queries log.csv" in command
]  # those on files; others of the page are tested beside what they are about


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


def test_the_page_has_commands():
    assert len(MINE) >= 6


@pytest.mark.parametrize("command", MINE)
def test_a_command_of_the_page_runs(command, files, capsys):
    try:
        main(shlex.split(command)[1:])
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    assert code == 0, capsys.readouterr().err
