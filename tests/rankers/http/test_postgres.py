"""PostgreSQL's full-text search as a search engine under test, through the short adapter of docs/examples."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

import shaketable as st
from shaketable.measures.facets import CHANGED_ANSWERS
from tests.pages import ROOT, find_free_port

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
psycopg = pytest.importorskip("psycopg")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PROGRAMS, reason="PostgreSQL is absent: apt-get install postgresql"),
]


def as_server(*command: str | Path) -> list[str]:
    """Return a command for a user other than root, because PostgreSQL refuses root."""
    return [*(("runuser", "-u", "postgres", "--") if os.geteuid() == 0 else ()), *map(str, command)]


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """The address of a database of its own that holds the documents of the sample."""
    folder = Path(tempfile.mkdtemp(prefix="pg"))  # a short path, because that of a socket is limited
    if os.geteuid() == 0:
        user = pwd.getpwnam("postgres")
        os.chown(folder, user.pw_uid, user.pw_gid)
    bin_folder, data, port = PROGRAMS[-1], folder / "data", find_free_port()
    subprocess.run(as_server(bin_folder / "initdb", "-D", data, "-A", "trust", "-N"), check=True, capture_output=True)
    options = f"-k {folder} -p {port} -c listen_addresses=127.0.0.1 -c fsync=off"
    start = as_server(bin_folder / "pg_ctl", "-D", data, "-o", options, "-l", folder / "log", "-w", "start")
    subprocess.run(start, check=True, stdout=subprocess.DEVNULL)
    owner = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    address = f"host=127.0.0.1 port={port} dbname=postgres user={owner}"
    try:
        with psycopg.connect(address) as connection:
            connection.execute("CREATE TABLE documents (id text PRIMARY KEY, text text)")
            rows = [(docno, doc.text) for docno, doc in st.load("sample").docs.items()]
            connection.cursor().executemany("INSERT INTO documents VALUES (%s, %s)", rows)
        yield address
    finally:
        subprocess.run(as_server(bin_folder / "pg_ctl", "-D", data, "-m", "immediate", "stop"), capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def url(database: str) -> Iterator[str]:
    """The address of the adapter."""
    port = find_free_port()
    adapter = ROOT / "docs" / "examples" / "postgres_search.py"
    server = subprocess.Popen([sys.executable, str(adapter), database, str(port)])
    try:
        address = f"http://localhost:{port}/search"
        for _ in range(300):
            try:
                urlopen(f"{address}?q=water&n=1", timeout=5)
                break
            except OSError:
                time.sleep(0.1)
        yield f"{address}?q={{query}}&n={{k}}"
    finally:
        server.terminate()
        server.wait(10)


def test_a_verdict_on_postgresql(url, tmp_path):
    sample = st.load("sample?split=test")
    log = tmp_path / "log.jsonl"
    rows = [{"qid": qid, "query": query.text} for qid, query in sample.queries.items()]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    judged = tmp_path / "qrels.txt"
    grades = [(qid, docno, grade) for qid in sample.queries for docno, grade in sample.qrels.get(qid, {}).items()]
    judged.write_text("".join(f"{qid} 0 {docno} {grade}\n" for qid, docno, grade in grades))
    tasks = ("effectiveness", "query_typos(draws=1)", "consistency(queries=25)")
    audit = st.audit(f"files?queries={log}&qrels={judged}", {"postgres": f"search(url='{url}')"}, tasks)
    found = {one.name: one.value for one in audit.findings}
    assert found["nDCG@10"] > 0.3
    assert found[CHANGED_ANSWERS] == 0
    assert "detected json, with ids in id, texts in text and scores in score" in audit.remarks["postgres"]
    facets = {cell.facet for one in audit.verdict.ranker_verdicts for cell in one.facet_cells.values()}
    assert {"effectiveness", "query typos", "repeatability"} <= facets
