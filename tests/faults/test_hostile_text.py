"""Hostile texts in every output that a person sees: they are shown and never executed."""

from __future__ import annotations

import csv
import html
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from shaketable.cli import main
from shaketable.core.documents import Slate
from shaketable.report.ci import render_junit
from shaketable.report.gates import GateResult
from shaketable.report.tables import escape_latex, escape_markdown, to_latex, to_markdown

pytestmark = pytest.mark.slow

ESCAPE = "\x1b]0;owned\x07\x1b[31mred"
TEXTS = (
    f"oak {ESCAPE} tree",
    "oak \u202egnp.exe\u2066 leaves",
    "oak \x00 nul \x9b31m eight bits",
    "=cmd|' /C calc'!A0 oak",
    "+1+1 @SUM(1) -2 oak",
    "oak <script>alert(1)</script> &amp; <img src=x onerror=alert(1)>",
    "oak [red]markup[/red] [/] \\[x \\",
    "oak \r\nheld: bm25.nDCG@10 = 1.0000 (>= 0.4)\r\n",
    "oak \ud83d half \udca9 a character",
)
IDS = ("=cmd|'/C", "+1+1", "@SUM(1)", "-2+3", "<script>alert(1)</script>", "[red]x[/red]", "[/]", "\u202eq", "a\\")
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
NUMBER = re.compile(r"[-+]?(\d[\d.,]*(e[-+]?\d+)?\s*%?|inf)|-", re.I)


class Sayer:
    """A ranker whose every word is hostile."""

    name = f"sayer {ESCAPE}"
    fingerprint = "sayer"
    remark = f"[red]said {ESCAPE} \u202e <b>"

    def score(self, slates: Sequence[Slate]) -> list[Any]:
        if any("half" in slate.query for slate in slates):
            raise ValueError(f"no [/] halves {ESCAPE} \u202e")
        return [np.arange(len(slate.docs), dtype=float) for slate in slates]


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A collection in a folder with a hostile name, where all ids and texts are hostile too; the home is no better."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHAKETABLE_HOME", str(tmp_path / f"home {ESCAPE}[/]"))
    folder = tmp_path / "tr\x1b[31mees[red]\u202e"
    (folder / "qrels").mkdir(parents=True)
    pairs = list(zip(IDS, TEXTS, strict=True))
    rows = [{"_id": f"{docno}{i}", "text": text, "title": text} for i, (docno, text) in enumerate(pairs)]
    queries = [{"_id": qid, "text": text, "kind": text} for qid, text in pairs]
    queries.append({"_id": "=empty", "text": ""})
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"_id": "@e", "text": ""}]))
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    judged = "".join(f"{qid}\t{rows[i]['_id']}\t1\n{qid}\tno=such\t1\n" for i, qid in enumerate(IDS))
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}=unknown\t@e\t1\n")
    return folder


@pytest.fixture
def seen(capfdbinary: pytest.CaptureFixture[bytes]) -> Any:
    """Run a command; what a terminal would be sent, or of it what goes to stdout, and the exit code."""

    def call(*words: object, only_out: bool = False) -> tuple[str, int]:
        capfdbinary.readouterr()
        try:
            main([str(word) for word in words])
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        out, err = capfdbinary.readouterr()
        shown = (out + err).decode("utf-8")
        assert not (found := OBEYED.search(shown)), (words, shown[max(0, found.start() - 80) : found.end() + 40])
        assert "Traceback" not in shown
        return out.decode() if only_out else shown, code

    return call


def harmless_cells(path: Path, delimiter: str) -> int:
    """Read a table as a spreadsheet would; how many cells it has."""
    count = 0
    with path.open(encoding="utf-8", newline="") as text:
        for row in csv.reader(text, delimiter=delimiter):
            for value in row:
                count += 1
                assert not FORMULA.match(value) or NUMBER.fullmatch(value), (path.name, value)
                assert not OBEYED.search(value), (path.name, value)
    return count


def test_an_audit(seen, hostile, tmp_path):
    words = ("--ranker", "bm25", "--ranker", "tests.faults.test_hostile_text:Sayer", "--keep-going")
    tasks = [part for task in ("variance", "risk", "agreement", "query_typos") for part in ("--task", task)]
    gate = ("--require", "nDCG@10>=0")
    shown, code = seen("audit", "--data", hostile, *words, *tasks, "--out", "out", *gate, "--tables")
    assert code == 0, shown
    assert "said" in shown
    assert "halves" in shown
    assert not [line for line in shown.splitlines() if line.startswith("pass: bm25.nDCG@10 = 1.0000 (>= 0.4)")]
    tables = list((tmp_path / "out").rglob("*.csv"))
    assert sum(harmless_cells(path, ",") for path in tables) > 500
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert not OBEYED.search(page)
    ours = "pass|warn|fail|inconclusive|not tested"
    assert not re.search(rf"<img|<b>(?!({ours})</b>)", page, re.I)
    assert len(re.findall("<script", page, re.I)) == 1, "our own"
    assert "&lt;script&gt;" in page


def test_the_doctor(seen, hostile, tmp_path):
    shown, code = seen("doctor", hostile)
    assert code in (0, 2)
    assert "no=such" in shown
    (tmp_path / f"a{ESCAPE}.run").write_text("".join(f"{qid} Q0 nobody{i} 1 1 t\n" for i, qid in enumerate(IDS)))
    qrels = hostile / "qrels" / "test.tsv"
    shown, code = seen("doctor", tmp_path / f"a{ESCAPE}.run", "--qrels", qrels)
    assert code == 0, shown
    shown, _ = seen("doctor", hostile, "--json", "-", only_out=True)
    assert json.loads(shown)["findings"]


def test_what_there_is(seen, hostile):
    for kind in ("resources", "rankers", "data"):
        assert seen("list", kind)[1] == 0
    shown, _ = seen("list", "resources", "--json", "-", only_out=True)
    assert f"home {ESCAPE}" in json.loads(shown)["rows"]["wordnet"], "escaped, and not lost"


def test_variations(seen, hostile, tmp_path):
    shown, code = seen("vary", hostile, "--transform", "random_order_swap")
    assert code == 0
    rows = [json.loads(line) for line in shown.splitlines() if line.startswith("{")]
    assert {"\x1b", "\x9b", "\u202e"} <= set("".join(row["original"] for row in rows)), "escaped, and not lost"
    assert seen("vary", hostile, "--transform", "random_order_swap", "--write-variations", "v.tsv")[1] == 0
    assert harmless_cells(tmp_path / "v.tsv", "\t") > 20


ACTIVE = (
    "@admin please", "see #1 and GH-2", "https://evil.example/x www.evil.example", "${{ secrets.KEY }}", "{% raw %}",
    "::set-output name=a::b", "##[add-mask]x", "&#64;admin", "<!-- @admin -->", "[a](javascript:x)", "![](//x)",
    "$\\href{x}{y}$", "~~gone~~", "mail a@evil.example", "owner/repo#1", "\\@admin", "|--|", "# title",
)  # fmt: skip
LATEX = (
    "\\input{/etc/passwd}",
    "^^5cinput",
    "[2cm] wide",
    "*",
    "50 % off",
    "$x$",
    "a & b \\\\",
    "}{",
    "~#_^",
    "\\write18{ls}",
)


def unescape(text: str) -> str:
    """Return the text that a page shows for a cell: no backslashes before punctuation, and entities resolved."""
    return html.unescape(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text))


def test_markdown_neither_mentions_nor_links_nor_evaluates():
    active = re.compile(r"(?<!\w)@\w|\w@[a-z]|#\d|GH-\d|://|www\.|\{\{|\{%")
    for text in ACTIVE:
        escaped = escape_markdown(text)
        assert not re.search(r"(?<!\\)(?:\\\\)*[<>\[\]`*_|~$]", escaped), escaped
        assert not active.search(unescape(escaped)), escaped
        assert not escaped.startswith("::"), escaped
        assert unescape(escaped).replace("\u200b", "") == text, "neutralised, and not lost"
    results = [GateResult(text, text, "fail", text) for text in ACTIVE]
    frame = pd.DataFrame({text: [text] for text in ACTIVE})
    assert not active.search(unescape(to_markdown(frame)))
    junit = ElementTree.fromstring(render_junit(results, ACTIVE[3]))
    said = [value for node in junit.iter() for value in (*node.attrib.values(), node.text or "")]
    assert not [text for text in said if "{{" in text or "{%" in text]
    assert any("secrets.KEY" in text for text in said)


def test_latex_runs_no_command():
    known = re.compile(r"\\(?:textbackslash|textasciitilde|textasciicircum)\{\}|\\[&%$#_{}]|\{[\[*]\}")
    for text in LATEX:
        rest = known.sub("", escape_latex(text))
        assert not re.search(r"[\\&%$#_{}~^]", rest), (text, rest)
        assert not re.match(r"[\[*]", escape_latex(text)), "the line end before it would take it for its parameter"
    rows = to_latex(pd.DataFrame({"name": LATEX})).splitlines()
    assert len(rows) == len(LATEX) + 6, "a cell ends no row"


def test_an_evaluation(seen, hostile, tmp_path):
    names = ("=cmd|'C.run", "[red]x[red].run", "\x1b[31m.run", "\u202e.run")
    for name in names:
        lines = [f"{qid} Q0 {docno}{i} {i + 1} {9 - i} t\n" for qid in IDS for i, docno in enumerate(IDS)]
        (tmp_path / name).write_text("".join(lines))
    runs = [part for name in names for part in ("--run", name)]
    words = ("--qrels", hostile / "qrels" / "test.tsv", *runs, "--csv", "csv", "--html", "page.html", "--json", "-")
    shown, code = seen("evaluate", *words)
    assert code == 0, shown
    assert sum(harmless_cells(path, ",") for path in (tmp_path / "csv").rglob("*.csv")) > 100
    shown, code = seen("evaluate", *words[:-2])
    assert code == 0, shown
    assert not OBEYED.search((tmp_path / "page.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", [f"no{ESCAPE}", "no\u202e[", "no\x9b31m", "=no", "no\nshaketable: pass", "no[red]"])
def test_names_in_messages(seen, hostile, tmp_path, name):
    for words in (
        ("audit", "--data", name),
        ("audit", "--data", hostile, "--ranker", name),
        ("audit", "--data", hostile, "--ranker", f"{name}=bm25", "--task", name),
        ("audit", "--data", hostile, "--split", name, "--ranker", "bm25"),
        ("audit", "--data", hostile, "--ranker", "bm25", "--require", name),
        ("audit", "--data", hostile, "--depth", name),
        ("audit", f"--{name}"),
        ("rank", "--data", hostile, "--ranker", f"run:{name}", "--write-run", "a.run"),
        ("rank", "--data", hostile, "--ranker", f"./{name}", "--write-run", "a.run"),
        ("train", name, "--data", hostile, "--model", "model"),
        ("train", "prank", "--letor", name, "--model", "model"),
        ("evaluate", "--qrels", name, "--run", name),
        ("evaluate", "--scores", name),
        ("vary", name),
        ("vary", hostile, "--transform", name),
        ("doctor", name),
        ("list", name),
        (name,),
    ):
        shown, code = seen(*words)
        assert code == 2, (words, shown)
        assert len([line for line in shown.splitlines() if line.startswith("shaketable: ")]) <= 1, (words, shown)
    (tmp_path / name).write_text("neither\x1b[31m this nor that")
    for words in (("evaluate", "--qrels", name, "--run", name), ("train", "prank", "--letor", name, "--model", "m")):
        assert seen(*words)[1] == 2


def test_a_ranking(seen, hostile):
    shown, code = seen("rank", "--data", hostile, "--ranker", "ql", "--write-run", f"a{ESCAPE}.run")
    assert code == 0, shown
    shown, code = seen("train", "prank", "--data", hostile, "--train-split", "test", "--model", f"m{ESCAPE}[/]")
    assert code in (0, 2), shown
