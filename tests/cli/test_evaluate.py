"""`shaketable evaluate`: right numbers from files, one clear sentence for everything else."""

from __future__ import annotations

import csv
import json
import re
import sys

import pytest
import pytrec_eval

from shaketable.api.evaluate import evaluate
from shaketable.datasets.scores import read_scores
from shaketable.files.checksums import digest_file
from shaketable.measures.risk import t_star_risk_p

TABLE_3 = """\
topic,s1,s2,s3,s4,s5,s6,s7,s8
t1,0.05,0.40,0.30,0.25,0.40,0.20,0.2542,0.2918
t2,0.15,0.35,0.30,0.25,0.15,0.45,0.2629,0.2994
t3,0.30,0.30,0.30,0.25,0.40,0.20,0.2802,0.3147
t4,0.45,0.25,0.30,0.25,0.15,0.45,0.2975,0.3301
t5,0.55,0.20,0.30,0.25,0.40,0.20,0.3061,0.3378
"""
# Paper 002, Table 5: ZRisk and GeoRisk at alpha 0, 1, 5, 10.
TABLE_5 = {
    "s1": (-0.049, 0.386, -0.727, 0.364, -3.442, 0.271, -6.835, 0.160),
    "s2": (0.026, 0.388, -0.312, 0.378, -1.668, 0.333, -3.362, 0.274),
    "s3": (0.006, 0.387, -0.069, 0.385, -0.368, 0.376, -0.742, 0.364),
    "s4": (0.005, 0.354, -0.063, 0.352, -0.336, 0.344, -0.677, 0.334),
    "s5": (0.006, 0.387, -0.541, 0.370, -2.727, 0.296, -5.460, 0.203),
    "s6": (0.005, 0.387, -0.539, 0.370, -2.718, 0.297, -5.442, 0.204),
    "s7": (-0.001, 0.374, -0.008, 0.374, -0.036, 0.373, -0.072, 0.372),
    "s8": (0.001, 0.397, -0.010, 0.396, -0.052, 0.395, -0.106, 0.393),
}
# Paper 002, Table 4: ZRisk at alpha 0 of s against s1, and of s1 against s.
TABLE_4 = {
    "s2": (0.1141, -0.1141),
    "s3": (0.1427, -0.1427),
    "s4": (0.1583, -0.1445),
    "s5": (0.0708, -0.0708),
    "s6": (0.1002, -0.1002),
    "s7": (0.1496, -0.1446),
    "s8": (0.1408, -0.1442),
}


def table(data: dict, name: str) -> list[dict]:
    """Return the rows of a table of the results."""
    (found,) = [result["tables"][name] for result in data["results"] if name in result["tables"]]
    return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]


def test_table_5_of_the_paper(shaketable, tmp_path):
    (tmp_path / "x.csv").write_text(TABLE_3)
    ended = shaketable("evaluate", "--scores", "x.csv", "--json", "-")
    assert ended.code == 0, ended.err
    data = json.loads(ended.out)
    assert data["schema"] == "shaketable.audit/5"
    assert data["provenance"]["topics"] == "5"
    found = table(data, "risk")
    assert list(dict.fromkeys(row["ranker"] for row in found)) == list(TABLE_5)
    for name, printed in TABLE_5.items():
        own = [row for row in found if row["ranker"] == name]
        assert [row["alpha"] for row in own] == ["0", "1", "5", "10"]
        assert [round(row[column], 3) for row in own for column in ("ZRisk", "GeoRisk")] == list(printed)


def test_table_4_of_the_paper(shaketable, tmp_path):
    rows = list(csv.DictReader(TABLE_3.splitlines()))
    for name, printed in TABLE_4.items():
        (tmp_path / "pair.csv").write_text(
            f"topic,{name},s1\n" + "".join(f"{r['topic']},{r[name]},{r['s1']}\n" for r in rows)
        )
        data = json.loads(shaketable("evaluate", "--scores", "pair.csv", "--alpha", "0", "--json", "-").out)
        assert tuple(round(row["ZRisk"], 4) for row in table(data, "risk")) == printed


def test_runs_against_trec_eval(shaketable, trec):
    ended = shaketable(
        *("evaluate", "--qrels", "qrels", "--run", "good.run", "--run", "poor.run", "--measure", "nDCG@10"),
        *("--measure", "map", "--baseline", "poor", "--json", "out.json", "--csv", "tables"),
    )
    assert ended.code == 0, ended.err
    data = json.loads((trec["qrels"].parent / "out.json").read_text())
    evaluator = pytrec_eval.RelevanceEvaluator(
        {"q1": {"d1": 2, "d2": 0}, "q2": {"d3": 1, "d4": 1}}, {"ndcg_cut_10", "map"}
    )
    poor = evaluator.evaluate({"q1": {"d2": 3.0, "d1": 2.0}, "q2": {"d9": 9.0, "d4": 8.0}})
    mean = sum(v["ndcg_cut_10"] for v in poor.values()) / 2
    first, second = table(data, "variance")
    assert second["nDCG@10"] == pytest.approx(mean)
    assert second["AP"] == pytest.approx(sum(v["map"] for v in poor.values()) / 2)
    risk = {(row["ranker"], row["alpha"]): row["URisk"] for row in table(data, "risk")}
    assert risk["poor", "0"] is None, "a baseline has no risk against itself"
    assert risk["good", "0"] == pytest.approx(first["nDCG@10"] - mean)
    assert first["%no@10"] == 0
    assert "good has the highest nDCG@10" in " ".join(ended.out.split())
    folder = trec["qrels"].parent / "tables"
    tables = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.csv")}
    named = {f"{name}.csv" for name in ("variance/variance", "variance/per-query", "risk/risk", "risk/against-poor")}
    assert named <= set(tables)
    rows = list(csv.DictReader(tables["variance/variance.csv"].splitlines()))
    assert [row["ranker"] for row in rows] == ["good", "poor"]
    assert float(rows[1]["nDCG@10"]) == pytest.approx(mean)


def test_the_provenance_says_what_the_numbers_depend_on(shaketable, trec, monkeypatch):
    words = ["evaluate", "--qrels", "qrels", "--run", "good.run", "--run", "other=poor.run", "--measure", "map"]
    words += ["--significance-test", "wilcoxon", "--correction", "bh", "--alpha", "2", "--seed", "3", "--json", "-"]
    monkeypatch.setattr(sys, "argv", ["shaketable", *words])
    found = json.loads(shaketable(*words).out)["provenance"]
    assert found["versions"].keys() >= {"python", "shaketable", "numpy", "scipy", "pandas", "ir-measures"}
    assert found["command"] == words
    assert found["inputs"]["qrels"] == {"path": "qrels", "blake2b": digest_file(trec["qrels"])}
    folder = trec["qrels"].parent
    assert found["inputs"]["runs"]["other"] == {"path": "poor.run", "blake2b": digest_file(folder / "poor.run")}
    assert (found["measures"], found["test"], found["correction"]) == (["AP"], "wilcoxon", "bh")
    assert (found["alphas"], found["seed"]) == ([2.0], 3)
    runs = {"a": {"q1": {"d1": 1.0}}, "b": {"q1": {"d2": 1.0}}}
    inputs = evaluate({"q1": {"d1": 1}}, runs).provenance["inputs"]
    assert inputs == {"qrels": "in memory", "runs": {"a": "in memory", "b": "in memory"}}


def test_the_header_names_the_references_of_differences_and_of_risk(shaketable, trec):
    words = ("evaluate", "--qrels", "qrels", "--run", "good.run", "--run", "poor.run")
    plain = " ".join(shaketable(*words).out.split())
    assert "differences against: good, the first of the systems; risk against: mean of all systems" in plain
    named = " ".join(shaketable(*words, "--baseline", "poor", "--baseline", "max").out.split())
    assert "differences against: poor; risk against: poor, max of all systems" in named
    assert shaketable(*words, "--html", "page.html").code == 0
    assert "good, the first of the systems" in (trec["qrels"].parent / "page.html").read_text()


def test_risk_against_the_mean_is_shown_once_with_the_test_of_t_star_risk(shaketable, tmp_path):
    (tmp_path / "x.csv").write_text(TABLE_3)
    scores = read_scores(tmp_path / "x.csv")
    p = t_star_risk_p(scores.values, (0.0, 5.0))
    words = ("evaluate", "--scores", "x.csv", "--alpha", "0", "--alpha", "5", "--json", "-")
    mean = table(json.loads(shaketable(*words).out), "risk")
    assert "T*Risk" not in mean[0]
    assert [row["p"] for row in mean] == pytest.approx([*p[:, 0], *p[:, 1]])
    single = table(json.loads(shaketable(*words, "--baseline", "s1").out), "risk")
    assert [row["T*Risk"] for row in single] == pytest.approx([row["TRisk"] for row in mean])
    assert [row["p*"] for row in single] == pytest.approx([row["p"] for row in mean])


def test_a_page_with_plots(shaketable, tmp_path):
    (tmp_path / "x.csv").write_text(TABLE_3)
    assert shaketable("evaluate", "--scores", "x.csv", "--html", "page.html").code == 0
    page = (tmp_path / "page.html").read_text()
    assert page.count("<svg") >= 4
    assert "GeoRisk" in page


def test_few_topics_are_marked_with_no_star(shaketable, tmp_path):
    (tmp_path / "x.csv").write_text(TABLE_3)
    ended = shaketable("evaluate", "--scores", "x.csv", "--tables")
    assert "There are fewer than 20 queries: no difference is marked as significant." in ended.out
    assert "*" not in ended.out.replace("T*Risk", "").replace("R T*", "").replace("p*", "")


BROKEN = {
    "text cell": ("topic,a\n1,good\n", r"x\.csv:2: the score of a is 'good', not a number"),
    "negative": ("topic,a\n1,0.5\n2,-0.1\n", r"x\.csv:3: the score of a is -0\.1; scores are finite and at least 0"),
    "nan": ("topic,a\n1,nan\n", r"x\.csv:2: the score of a is nan"),
    "ragged": ("topic,a,b\n1,0.5\n", r"x\.csv:2: 2 cells where the header has 3"),
    "empty": ("", r"x\.csv: is empty"),
    "header only": ("topic,a\n", r"x\.csv: has no scores"),
    "twice": ("topic,a\n1,0.5\n1,0.5\n", r"x\.csv:3: topic '1' is on line 2 too"),
    "same names": ("topic,a,a\n1,0.5,0.5\n", r"x\.csv:1: each column needs its own printable name"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_matrices(shaketable, tmp_path, case):
    text, complaint = BROKEN[case]
    (tmp_path / "x.csv").write_text(text)
    ended = shaketable("evaluate", "--scores", "x.csv", "--json", "out.json")
    assert re.match(complaint, ended.complaint()), ended.complaint()
    assert not (tmp_path / "out.json").exists()


def test_bad_words(shaketable, trec, tmp_path):
    (tmp_path / "x.csv").write_text(TABLE_3)
    runs = ("--qrels", "qrels", "--run", "good.run")
    assert (
        "alpha must be a number of at least 0"
        in shaketable("evaluate", "--scores", "x.csv", "--alpha", "-1").complaint()
    )
    assert "did you mean" in shaketable("evaluate", *runs, "--measure", "nDGC@10").complaint()
    assert "no baseline is called 'goood'" in shaketable("evaluate", *runs, "--baseline", "goood").complaint()
    assert "no such file" in shaketable("evaluate", "--qrels", "absent", "--run", "good.run").complaint()
    assert "no such file" in shaketable("evaluate", "--qrels", "qrels", "--run", "absent.run").complaint()
    assert "give judgements (--qrels)" in shaketable("evaluate", "--run", "good.run").complaint()
    assert "give judgements (--qrels)" in shaketable("evaluate").complaint()


FILES = {
    "qrels with three columns": ("qrels", "q1 d1 2\n", "qrels:1:"),
    "empty qrels": ("qrels", "", "qrels: "),
    "text for a grade": ("qrels", "q1 0 d1 high\n", "qrels:1:"),
    "score not a number": ("good.run", "q1 Q0 d1 1 high good\n", "good.run:1:"),
    "score nan": ("good.run", "q1 Q0 d1 1 nan good\n", "good.run:1:"),
    "document twice": ("good.run", "q1 Q0 d1 1 2.0 good\nq1 Q0 d1 2 1.0 good\n", "good.run:2:"),
    "empty run": ("good.run", "", "good.run: "),
    "five columns": ("good.run", "q1 Q0 d1 1 2.0\n", "good.run:1:"),
    "no query in common": ("good.run", "q7 Q0 d1 1 2.0 good\n", "good.run: none of its queries is judged"),
}


@pytest.mark.parametrize("case", FILES)
def test_broken_files_are_named_with_their_line(shaketable, trec, tmp_path, case):
    name, text, place = FILES[case]
    trec[name].write_text(text)
    ended = shaketable("evaluate", "--qrels", "qrels", "--run", "good.run", "--json", "out.json", "--html", "out.html")
    assert ended.complaint().startswith(place), ended.complaint()
    assert not (tmp_path / "out.json").exists()
    assert not (tmp_path / "out.html").exists()


def write_scores(path) -> None:
    """Scores of 25 topics: c beats a and b by every test, and b and a are close."""
    rows = [f"q{i},{0.2 + i % 7 / 50},{0.21 + i % 5 / 50},{0.5 + i % 6 / 50}" for i in range(25)]
    path.write_text("topic,a,b,c_\n" + "\n".join(rows) + "\n")


@pytest.mark.parametrize("test", ["t_test", "wilcoxon", "randomisation", "tukey-hsd"])
def test_the_table_of_systems_names_its_test(shaketable, tmp_path, test):
    write_scores(tmp_path / "x.csv")
    files = ("--latex", "t.tex", "--markdown", "t.md", "--html", "page.html", "--json", "j")
    ended = shaketable("evaluate", "--scores", "x.csv", "--significance-test", test, *files)
    assert ended.code == 0, ended.err
    shown = {
        "terminal": re.sub(r"\s+", " ", ended.out),
        "latex": (tmp_path / "t.tex").read_text(),
        "markdown": (tmp_path / "t.md").read_text().replace("\\", ""),
        "page": (tmp_path / "page.html").read_text(),
    }
    correction = "valid for all pairs together" if test == "tukey-hsd" else "Holm correction for 3 pairs"
    for text in shown.values():
        assert correction in text
    assert re.search(r"c c_ 0\.5480ᵃᵇ ◂", shown["terminal"])
    assert r"c & c\_ & \textbf{0.5480} & \textsuperscript{ab} \\" in shown["latex"]
    assert "| c | c_ | **0.5480**<sup>ab</sup> |" in shown["markdown"]
    assert '<b>0.5480</b></td><td><sup title="better than a, b">ab</sup>' in shown["page"]
    data = json.loads((tmp_path / "j").read_text())
    assert data["results"][0]["system_table"]["beaten"] == [[[]], [[]], [[0, 1]]]
    assert all((row["p"] < 0.05) == ("c_" in (row["ranker"], row["other"])) for row in table(data, "all pairs"))


def test_p_against_the_baseline_by_tukey_is_that_of_the_pair(shaketable, tmp_path):
    write_scores(tmp_path / "x.csv")
    data = json.loads(
        shaketable(
            *("evaluate", "--scores", "x.csv", "--significance-test", "tukey_hsd", "--baseline", "b", "--json", "-")
        ).out
    )
    pairs = {frozenset((row["ranker"], row["other"])): row["p"] for row in table(data, "all pairs")}
    found = {row["ranker"]: row["p"] for row in table(data, "effectiveness")}
    assert found == {"a": pairs[frozenset("ab")], "b": None, "c_": pairs[frozenset(("b", "c_"))]}


def test_tukey_refuses_a_correction(shaketable, tmp_path):
    write_scores(tmp_path / "x.csv")
    words = ("--scores", "x.csv", "--significance-test", "tukey_hsd", "--correction", "holm")
    assert "leave out the correction holm" in shaketable("evaluate", *words).complaint()


def test_a_folder_of_latex_has_the_table_of_systems_too(shaketable, tmp_path):
    write_scores(tmp_path / "x.csv")
    assert shaketable("evaluate", "--scores", "x.csv", "--latex", "tables", "--markdown", "tables").code == 0
    assert r"\label{tab:systems}" in (tmp_path / "tables" / "effectiveness/systems.tex").read_text()
    assert "<sup>ab</sup>" in (tmp_path / "tables" / "effectiveness/systems.md").read_text()
    assert "$-$" in (tmp_path / "tables" / "risk/against-mean.tex").read_text(), "losses have minus signs"
