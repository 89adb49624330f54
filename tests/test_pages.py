"""Every command of the pages for users runs as it stands, in a folder with the files that the pages describe.

A page is read from top to bottom: a block of code that a file's name introduces becomes that file, another block of
Python is run, and so is each line that begins with four spaces and `shaketable`.
"""

from __future__ import annotations

import csv
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

import shaketable as st
from shaketable.cli import main
from shaketable.core.registries import DETECTORS
from shaketable.datasets.beir import write_beir
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.datasets.trec import write_qrels, write_run
from tests.rankers.llm.servers import lawful, serving
from tests.servers import Server, running, simple

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[1] / "docs"
PAGES = {"production": 9, "search-engineer": 10, "researcher": 9, "model-builder": 11}
"""The pages, and how many commands each has at least."""
PART = re.compile(
    r"^```(?P<language>\w+)\n(?P<code>.*?)^```|^    (?P<command>shaketable [^\n]+)$", re.MULTILINE | re.DOTALL
)
QUERIES = 5

RERANKER = """
def score(query, texts):
    wanted = set(query.lower().split())
    return [len(wanted & set(text.lower().split())) for text in texts]
"""
NEWER = RERANKER.replace("return [len(", "return [1 + len(")


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A query log and documents as tables, two runs, a collection with judgements, and two versions of a reranker."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    sample = st.load("sample?split=test")
    queries = dict(list(sample.queries.items())[:QUERIES])
    with open("log.csv", "w", newline="") as out:
        rows = [[query.text, 1 + i] for i, query in enumerate(list(queries.values())[:5])]
        csv.writer(out).writerows([["query", "count"], *rows])
    with open("docs.csv", "w", newline="") as out:
        csv.writer(out).writerows([["docno", "text"], *([d, doc.text] for d, doc in sample.docs.items())])
    for name, ranker in (("old", "bm25"), ("new", "ql")):
        write_run(st.rank("files?queries=log.csv&docs=docs.csv", ranker, depth=20), tmp_path / f"{name}.run")
    collection(tmp_path / "my-data", list(queries))
    (tmp_path / "old.py").write_text(RERANKER)
    (tmp_path / "new.py").write_text(NEWER)
    return tmp_path


def collection(folder: Path, queries: list[str]) -> None:
    """The judged documents of some queries to test on, and of as many to learn from, as a BEIR folder."""
    whole = st.load("sample")
    chosen = queries, list(whole.splits["train"][:QUERIES]), list(whole.splits["validation"][:QUERIES])
    splits = dict(zip(("test", "train", "validation"), chosen, strict=True))
    known = [qid for qids in chosen for qid in qids]
    qrels = {qid: whole.qrels[qid] for qid in known}
    docs = MemoryCorpus({docno: whole.docs[docno] for grades in qrels.values() for docno in grades})
    asked = {qid: whole.queries[qid] for qid in known}
    write_beir(replace(whole, docs=docs, queries=asked, qrels=qrels, splits=splits, variants={}, source=""), folder)
    write_qrels({qid: qrels[qid] for qid in queries}, folder.parent / "qrels.txt")


def parts(page: str) -> list[tuple[str, str, str]]:
    """What there is to do on a page: ("file", name, text), ("python", "", code) or ("command", "", words)."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    found = []
    for part in PART.finditer(text):
        named = re.search(r"`([\w-]+\.(?:toml|py))`[^\n]*:\s*$", text[: part.start()])
        if part["command"]:
            found.append(("command", "", part["command"]))
        elif named:
            found.append(("file", named[1], part["code"]))
        elif part["language"] == "python":
            found.append(("python", "", part["code"]))
    return found


@pytest.fixture
def served(monkeypatch):
    """A command with the addresses of real servers in the place of those that pages have."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with running(Server(simple)) as reranker, serving(lawful) as reader:
        known = {"http://localhost:8080/rerank": reranker.url, "http://localhost:8000/v1": reader.url}
        yield lambda command: re.sub("|".join(map(re.escape, known)), lambda found: known[found[0]], command)


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_run_as_they_stand(page, files, served, capsys):
    done = 0
    for kind, name, text in parts(page):
        if kind == "file":
            (files / name).write_text(text)
        elif kind == "python":
            exec(compile(text, page, "exec"), {})  # noqa: S102
        else:
            assert run(served(text)) == 0, (text, capsys.readouterr().err)
            done += 1
    assert done >= PAGES[page]
    if page == "search-engineer":
        unexplained(json.loads((files / "audit-old" / "results.json").read_text())["results"])


PLAIN = {"ranker", "query", "queries", "measure", "other", "recipe", "attack", "test", "category", "method", "setting"}
PLAIN |= {
    "bm25",
    "mine",
    "texts",
    "documents",
    "targets",
    "samples",
    "alpha",
    "letters",
    "edit",
    "pairs of rounds",
    "order",
}
"""Columns that say what they are, and those that are called by a ranker's name."""


def unexplained(results: list[dict]) -> None:
    """Every column that a screen shows is mentioned in a note below it."""
    for result in results:
        notes = " ".join(result["notes"])
        for name in result["brief"]:
            for column in result["tables"].get(name, {"columns": ()})["columns"]:
                word = re.sub(r" (low|high|p)$|^(clean|robust|R) ", "", column.strip())
                known = word in PLAIN or "@" in word or word in DETECTORS
                assert not word or known or word in notes, (result["task"], name, column)


def run(command: str) -> int:
    try:
        main(shlex.split(command)[1:])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_links_to_is_there(page):
    links = re.findall(r"\]\(([^)#]+)\)", (DOCS / f"{page}.md").read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (DOCS / link).exists()] == []
