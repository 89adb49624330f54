"""The table of systems by measures: one value, the same numbers and letters in four formats."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from shaketable.core.errors import BadInput
from shaketable.core.results import Result, ScoreTable, SystemTable
from shaketable.report.files import read_results, render_system_tables, write_results, write_tables
from shaketable.report.page import render_page
from shaketable.report.system_table import LETTERS, render_html, render_latex, render_markdown, typeset
from shaketable.report.terminal import BEST_MARK, SUPERSCRIPTS, show_system_table
from shaketable.tasks.effectiveness import build_effectiveness_from_tables

TABLE = SystemTable(
    systems=("bm25", "ql_jm", "dense"),
    measures=("nDCG@10", "gain"),
    values=((0.40004, -0.12345), (0.39996, -0.5), (0.38, 0.25)),
    beaten=(((2,), (1,)), ((), ()), ((), (0, 1))),
    queries=50,
    comparison="paired t-test, p < 0.05, Holm correction for 3 pairs",
)
# system, value, is best, letters; 0.40004 and 0.39996 are both printed as 0.4000
EXPECTED = {
    "nDCG@10": [("bm25", "0.4000", True, "c"), ("ql_jm", "0.4000", True, ""), ("dense", "0.3800", False, "")],
    "gain": [("bm25", "−0.1235", False, "b"), ("ql_jm", "−0.5000", False, ""), ("dense", "0.2500", True, "ab")],
}
HOSTILE = ("a_b & 50 %", "{x}^2~$y$ #1", "\\input{x}", "<7B>|T5", "models--org--name", "[2cm]*", "naïve–é")

Grid = dict[str, list[tuple[str, str, bool, str]]]


def parse_markdown(text: str) -> Grid:
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    head, _, *rows = lines
    found: Grid = {}
    for at, name in enumerate(head[2:], start=2):
        for row in rows:
            value, best, letters = re.fullmatch(r"((?:\*\*)?)(.*?)\1(?:<sup>(\w+)</sup>)?", row[at]).group(2, 1, 3)
            found.setdefault(name, []).append((row[1].replace("\\", ""), value, bool(best), letters or ""))
    return found


def parse_latex(text: str) -> Grid:
    lines = [line.removesuffix(r" \\").split(" & ") for line in text.splitlines() if line.endswith(r"\\")]
    names = [re.fullmatch(r"\\multicolumn\{2\}\{c\}\{(.*)\}", cell)[1] for cell in lines[0][2:]]
    found: Grid = {}
    for at, name in enumerate(names):
        for row in lines[1:]:
            value, letters = row[2 + 2 * at], row[3 + 2 * at].strip()
            bold = re.fullmatch(r"\\textbf\{(.*)\}", value)
            shown = (bold[1] if bold else value).replace("$-$", "−")
            mark = re.fullmatch(r"(?:\\textsuperscript\{(\w+)\})?", letters)[1] or ""
            found.setdefault(name, []).append((row[1].replace("\\_", "_"), shown, bool(bold), mark))
    return found


def parse_html(text: str) -> Grid:
    names = re.findall(r'scope="colgroup">(.*?)</th>', text)
    found: Grid = {}
    for row in re.findall(r"<tr>(<td.*?)</tr>", text):
        system = html.unescape(re.search(r'<th scope="row">(.*?)</th>', row)[1])
        cells = re.findall(r'<td class="n">(<b>)?(.*?)(?:</b>)?</td><td>(?:<sup[^>]*>(\w+)</sup>)?</td>', row)
        for name, (bold, value, letters) in zip(names, cells, strict=True):
            found.setdefault(name, []).append((system, value, bool(bold), letters))
    return found


def print_table(table: SystemTable, width: int = 80, terminal: bool = False) -> str:
    console = Console(file=StringIO(), width=width, force_terminal=terminal, highlight=False)
    show_system_table(console, table)
    return console.file.getvalue()


def parse_terminal(text: str) -> Grid:
    plain = {value: key for key, value in SUPERSCRIPTS.items()}
    head, _, *rows = text.splitlines()
    names = head.split()[1:]
    found: Grid = {}
    for row in rows[:3]:
        _, system, *cells = row.split(None, 2)
        values = re.findall(rf"([−\d.]+)(\w*)( {BEST_MARK})?", cells[0])
        for name, (value, letters, best) in zip(names, values, strict=True):
            found.setdefault(name, []).append((system, value, bool(best), letters.translate(plain)))
    return found


def test_four_formats_show_the_same() -> None:
    assert parse_markdown(render_markdown(TABLE)) == EXPECTED
    assert parse_latex(render_latex(TABLE)) == EXPECTED
    assert parse_html(render_html(TABLE)) == EXPECTED
    assert parse_terminal(print_table(TABLE)) == EXPECTED


def test_letters_belong_to_rows() -> None:
    for text, pattern in (
        (render_markdown(TABLE), r"\| {} \| {} \|"),
        (render_latex(TABLE), r"{} & {} &"),
        (render_html(TABLE), r'<td class="letter">{}</td><th scope="row">{}</th>'),
        (print_table(TABLE), r"{}   {} "),
    ):
        for letter, name in zip("abc", TABLE.systems, strict=True):
            assert re.search(pattern.format(letter, name), text.replace("\\_", "_")), (letter, name, text)
    assert '<sup title="better than bm25, ql_jm">ab</sup>' in render_html(TABLE)


def test_bold_in_a_terminal() -> None:
    shown = print_table(TABLE, terminal=True)
    assert shown.count("\x1b[1m0.4000\x1b[0m") == 2
    assert "\x1b[1m 0.2500\x1b[0mᵃᵇ" in shown
    assert BEST_MARK not in shown


CAPTIONS = {
    "significant": (TABLE, "Superscripts denote significant improvements over the systems with these letters (paired"),
    "nothing significant": (
        replace(TABLE, beaten=(((), ()),) * 3),
        "No difference between systems is significant (paired t-test, p < 0.05, Holm correction for 3 pairs).",
    ),
    "too few queries": (
        replace(TABLE, beaten=(((), ()),) * 3, queries=19, comparison=""),
        "There are too few queries to test the differences.",
    ),
    "one system": (
        SystemTable(("bm25",), ("AP",), ((0.5,),), (((),),), 1),
        "Mean effectiveness of one system over 1 query.",
    ),
    "no letters left": (
        SystemTable(tuple(map(str, range(26))), ("AP",), tuple((i,) for i in range(26)), (((),), *(((0,),),) * 25), 50),
        "Significant differences are not shown, since there are more than 25 systems.",
    ),
}


@pytest.mark.parametrize("case", CAPTIONS)
def test_captions(case: str) -> None:
    table, sentence = CAPTIONS[case]
    shown = typeset(table)
    assert sentence in shown.caption
    assert bool(shown.letters) == (case == "significant")
    assert ("superscript" in render_latex(table)) == (case == "significant")
    assert sentence[:40] in re.sub(r"\s+", " ", print_table(table, width=200))


def test_values_of_a_column_have_equal_decimals() -> None:
    def texts(*values: float) -> list[str]:
        rows = tuple((value,) for value in values)
        names = tuple(map(str, range(len(values))))
        return [cell.text for cell in typeset(SystemTable(names, ("m",), rows, (((),),) * len(values), 9)).columns[0]]

    assert texts(0.5, 0.00001, -0.00001) == ["0.5000", "0.0000", "0.0000"]
    assert texts(123.456, 0.5) == ["123.46", "0.50"]
    assert texts(12345.6, 7) == ["12346", "7"]
    assert texts(0.5, float("nan")) == ["0.5000", "–"]


def test_equal_systems_are_not_bold() -> None:
    same = replace(TABLE, values=((0.3, 0.1),) * 3)
    assert "**" not in render_markdown(same)
    assert "bold" not in typeset(same).caption


def test_every_letter_has_a_superscript() -> None:
    assert len(set(LETTERS)) == len(LETTERS) == 25
    assert len(LETTERS.translate(SUPERSCRIPTS)) == 25
    assert not set(LETTERS.translate(SUPERSCRIPTS)) & set(LETTERS)


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    names = ("a_rather_long_name_of_a_cross-encoder_with_settings(k=10)", "b" * 50, "short")
    table = SystemTable(names, ("nDCG@10", "AP", "RR@10", "R@100", "P@10"), ((0.1,) * 5,) * 3, (((0, 1),) * 5,) * 3, 50)
    shown = print_table(table, width)
    assert max(map(len, shown.splitlines())) <= width
    for measure in table.measures:
        assert measure in shown


def evaluate_hostile() -> Result:
    rng = np.random.default_rng(3)
    x = np.clip(rng.beta(2, 3, 40) + 0.04 * np.arange(len(HOSTILE))[:, None], 0, 1)
    topics = tuple(f"q_{i}" for i in range(40))
    tables = [ScoreTable(m, HOSTILE, topics, np.clip(x + rng.normal(0, 0.03, x.shape), 0, 1)) for m in ("AP", "R_@10")]
    return build_effectiveness_from_tables(tables, HOSTILE[1], "tukey_hsd", "", 0)


ENGINE = next((path for name in ("pdflatex", "tectonic") if (path := shutil.which(name))), None)


@pytest.mark.slow
@pytest.mark.skipif(ENGINE is None, reason="needs a TeX engine (pdflatex or tectonic) with the package booktabs")
def test_latex_compiles(tmp_path: Path) -> None:
    result = evaluate_hostile()
    result = replace(result, tables={**result.tables, "changes": pd.DataFrame({"change %": [-1.5], "G² > 1": ["–"]})})
    write_tables(tmp_path, [result, replace(result, system_table=TABLE)], "latex")
    files = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.tex"))
    named = {"effectiveness/systems.tex", "effectiveness-2/systems.tex", "effectiveness/changes.tex"}
    assert named <= set(files)
    body = "\n\n".join(rf"\input{{{name}}}" for name in files if "per-query" not in name and "pairs" not in name)
    refs = r"Tables~\ref{tab:systems} and~\ref{tab:systems-2}."
    head = "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n"
    (tmp_path / "paper.tex").write_text(f"{head}{refs}\n{body}\n\\end{{document}}\n", encoding="utf-8")
    options = (
        ("-interaction=nonstopmode", "-halt-on-error") if Path(str(ENGINE)).name == "pdflatex" else ("--keep-logs",)
    )
    for _ in range(2):  # the second pass resolves the references
        ended = subprocess.run([str(ENGINE), *options, "paper.tex"], cwd=tmp_path, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stdout[-2000:]
    assert (tmp_path / "paper.pdf").stat().st_size > 10_000
    assert not re.search(r"undefined|multiply defined|Missing character", (tmp_path / "paper.log").read_text("latin-1"))


def test_hostile_names_are_escaped() -> None:
    table = evaluate_hostile().system_table
    assert table is not None
    latex = render_latex(table)
    for escaped in (r"a\_b \& 50 \%", r"\textbackslash{}input\{x\}", r"\textless{}7B\textgreater{}\textbar{}T5"):
        assert escaped in latex
    assert "models-{}-org-{}-name" in latex
    page = render_html(replace(table, systems=("<script>x</script>", *table.systems[1:])))
    assert "<script>" not in page
    assert "&lt;script&gt;x&lt;/script&gt;" in page


def test_a_saved_audit_keeps_the_table(tmp_path: Path) -> None:
    result = evaluate_hostile()
    write_results(tmp_path, [result], {})
    (read,), _ = read_results(tmp_path, allow_edited=True)
    assert read.system_table == result.system_table
    assert render_system_tables([read], "latex") == render_system_tables([result], "latex")
    assert "p < 0.05, valid for all pairs together" in html.unescape(render_page("t", {}, [read], {}))


@pytest.mark.parametrize(
    "broken",
    [{"systems": ["a"]}, {"measures": ["AP"]}, {"beaten": [[[9], []], [[], []], [[], []]]}, {"queries": "many"}],
    ids=["rows", "columns", "unknown system", "no number"],
)
def test_a_damaged_table_is_refused(tmp_path: Path, broken: dict[str, object]) -> None:
    write_results(tmp_path, [Result("effectiveness", "?", {}, system_table=TABLE)], {})
    path = tmp_path / "results.json"
    document = json.loads(path.read_text())
    document["results"][0]["system_table"] |= broken
    path.write_text(json.dumps(document))
    with pytest.raises(BadInput, match="not a complete audit"):
        read_results(tmp_path, allow_edited=True)


def test_results_without_such_a_table(tmp_path: Path) -> None:
    plain = Result("risk", "?", {})
    assert render_system_tables([plain], "latex") == {}
    assert "systems" not in re.sub(r"(?s)<style>.*?</style>", "", render_page("t", {}, [plain], {}))
    write_results(tmp_path, [plain], {})
    assert read_results(tmp_path, allow_edited=True)[0][0].system_table is None
