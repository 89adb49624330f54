"""`compare`, `gate` and `report` on audits of real rankers on the bundled sample, one of them with a planted loss."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import shaketable as st
from shaketable.core.documents import Slate
from shaketable.core.errors import BadInput, NotComparable
from shaketable.report.rules import read_rules
from shaketable.testing import assert_robust

pytestmark = pytest.mark.slow

TASKS = ["effectiveness", "first_stage", "query_typos(draws=1)"]
CI = Path(__file__).parents[2] / "docs" / "ci"


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


@cache
def grams(text: str) -> Counter[str]:
    return Counter(word[i : i + 4] for w in words(text) for word in [f"^{w}$"] for i in range(max(1, len(word) - 3)))


class Careful:
    """Counts parts of words that query and text share, so that a slip of the keyboard costs it little."""

    name = "grams"
    fingerprint = "grams 1"
    pointwise = True

    def read(self, query: str) -> Counter[str]:
        return grams(query)

    def score(self, slates: Sequence[Slate]) -> list[np.ndarray]:
        return [np.array([self.utility(self.read(s.query), grams(doc.text)) for doc in s.docs]) for s in slates]

    @staticmethod
    def utility(query: Counter[str], text: Counter[str]) -> float:
        return sum(n * min(text[gram], 3) for gram, n in query.items()) / (50 + text.total())


class Careless(Careful):
    """The same on every query of the sample, but a word that is in none of its texts is not looked at."""

    fingerprint = "grams 2"

    def __init__(self) -> None:
        sample = st.load("sample")
        texts = [*(sample.docs[docno].text for docno in sample.docs), *(q.text for q in sample.queries.values())]
        self.known = {word for text in texts for word in words(text)}

    def read(self, query: str) -> Counter[str]:
        return grams(" ".join(word for word in words(query) if word in self.known))


class Failing(Careful):
    """Has something against questions."""

    fingerprint = "grams 3"

    def score(self, slates: Sequence[Slate]) -> list[np.ndarray]:
        if any(slate.query.startswith("how") for slate in slates):
            raise ValueError("no questions please")
        return super().score(slates)


@pytest.fixture(scope="module")
def audits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of audits: the version before, the careless one after it, and others of other rankers and settings."""
    place = tmp_path_factory.mktemp("audits")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHAKETABLE_HOME", str(place / "home"))
        st.audit("sample", {"grams": Careful()}, TASKS).save(place / "base")
        st.audit("sample", {"grams": Careless()}, TASKS).save(place / "careless")
        st.audit("sample", ["bm25", "ql"], TASKS).save(place / "ql")
        st.audit("sample", {"bm25": "bm25", "better": "bm25", "worse": "bm25(k1=30, b=1)"}, TASKS[:1]).save(
            place / "two"
        )
        st.audit("sample", {"grams": Careful()}, TASKS[:1], seed=1, max_queries=30).save(place / "other")
        st.audit("sample", {"grams": Careful()}, TASKS[:1]).save(place / "whole")
        st.audit("sample", {"grams": Failing()}, TASKS[:1], keep_going=True).save(place / "failing")
    return place


def test_a_planted_loss_is_found_and_only_it(shaketable, audits, tmp_path):
    ended = shaketable("compare", audits / "base", audits / "careless", "--json", "c.json", "--summary", "c.md")
    assert ended.code == 0, ended.err
    found = json.loads(Path("c.json").read_text())
    worse = {row["finding"] for row in found["findings"] if row["became"] == "worse"}
    assert found["outcome"] == "worse"
    assert worse, "slips of the keyboard are what it is careless about"
    assert worse <= {f"{name}({slip})" for slip in ("1-char", "2-char") for name in
                     ("overlap", "drop", "RBO", "Kendall distance", "new first %", "fall of first")}  # fmt: skip
    assert not [row for row in found["findings"] if row["became"] == "better"]
    alike = {row["finding"]: row for row in found["findings"] if row["finding"] in ("nDCG@10", "AP", "overlap(word)")}
    assert {name: row["change"] for name, row in alike.items()} == dict.fromkeys(alike, 0.0)
    assert ended.out.startswith("grams became worse: ")
    (title, queries), *_ = found["worst_queries"].items()
    losses = [row["before"] - row["after"] for row in queries]
    assert losses == sorted(losses, reverse=True)
    assert losses[0] > 0
    assert queries[0]["text"] == st.load("sample").queries[queries[0]["query"]].text
    assert title in ended.out
    pull_request = Path("c.md").read_text()
    assert pull_request.startswith("### Robustness: worse\n\ngrams became worse: ")
    assert "| overlap(1-char) |" in pull_request
    assert shaketable("compare", audits / "base", audits / "careless", "--fail-on-regression").code == 1


def test_the_other_way_round_it_is_better_and_with_itself_the_same(shaketable, audits):
    ended = shaketable("compare", audits / "careless", audits / "base" / "results.json", "--fail-on-regression")
    assert ended.code == 0, ended.err
    assert "became better" in ended.out
    assert "is not worse: a loss of nDCG@10 beyond 5 % is excluded (up to 0.0 %, 50 queries)" in ended.out
    assert "grams is the same as before" in shaketable("compare", audits / "base", audits / "base").out
    same = st.compare(audits / "base", audits / "base")
    assert (same.outcome, same.select_deltas("worse")) == ("not worse", [])


def test_audits_that_are_not_comparable(shaketable, audits):
    ended = shaketable("compare", audits / "whole", audits / "other")
    assert ended.code == 3
    (line,) = ended.err.splitlines()
    assert "differ in data (limit: None and 30) and in seed (seed: 0 and 1)" in line
    assert "--allow-mismatch data --allow-mismatch seed" in line
    ended = shaketable(
        "compare", audits / "whole", audits / "other", "--allow-mismatch", "data", "--allow-mismatch", "seed"
    )
    assert ended.code == 0, ended.err
    assert "in tasks" in shaketable("compare", audits / "base", audits / "whole").err
    assert (
        "no part of an audit is called 'dat'" in shaketable("compare", "a", "b", "--allow-mismatch", "dat").complaint()
    )
    assert "absent: there is no such file" in shaketable("compare", audits / "base", "absent").complaint()
    assert "is not a JSON file" in shaketable("compare", audits / "base", audits / "base" / "report.html").complaint()
    assert "there are: AP" in shaketable("compare", audits / "base", audits / "base", "--finding", "x").complaint()
    one = st.read_audit(audits / "whole")
    other = replace(one, provenance={**one.provenance, "first stage": "ql"})
    with pytest.raises(NotComparable, match=r"differ in lists \(first stage: bm25 and ql\)"):
        st.compare(one, other)


def test_the_ranker_may_be_another(shaketable, audits):
    by_place = shaketable("compare", audits / "base", audits / "ql", "--json", "c.json")
    assert by_place.code == 0, by_place.err
    assert json.loads(Path("c.json").read_text())["rankers"] == {"grams": "ql"}, "bm25 is the first stage"
    named = shaketable("compare", audits / "two", audits / "two", "--base-ranker", "better", "--new-ranker", "worse")
    assert named.out.startswith("worse became worse: ")
    with pytest.raises(BadInput, match="choose with --base-ranker and --new-ranker"):
        st.compare(audits / "whole", audits / "two")
    with pytest.raises(BadInput, match="choose one to compare with grams"):
        st.compare(audits / "whole", audits / "two", base_ranker="grams")
    one = st.compare(audits / "whole", audits / "two", new_ranker="worse")
    assert one.rankers == {"grams": "worse"}
    complaint = shaketable("compare", audits / "base", audits / "ql", "--new-ranker", "qll").complaint()
    assert "is called 'qll'; did you mean ql?" in complaint


def test_fewer_findings_are_tested_more_sharply(audits):
    every, few = (st.compare(audits / "base", audits / "careless", findings=names) for names in ((), ["overlap(1*)"]))
    assert {drift.new.name for drift in few.findings} == {"overlap(1-char)"}
    assert few.findings[0].corrected_p <= next(d.corrected_p for d in every.findings if d.new.name == "overlap(1-char)")


def test_a_query_that_it_newly_fails_on_is_worse(audits):
    found = st.compare(audits / "whole", audits / "failing")
    assert found.outcome == "worse"
    assert all(failure.query.startswith("how") for failure in found.failures)
    assert f"it fails on {len(found.failures)} queries that it did not fail on before" in found.summary
    assert "no questions please" in found.to_markdown()
    assert st.compare(audits / "failing", audits / "failing").failures == ()


def test_too_few_queries_tell_nothing(shaketable, folder):
    for out in ("a", "b"):
        assert (
            shaketable("audit", "--data", folder, "--ranker", "ql", "--task", "effectiveness", "--out", out).code == 0
        )
    ended = shaketable("compare", "a", "b")
    assert ended.out.startswith("Inconclusive for ql: the audits have 3 queries in common")


def test_a_gate_on_an_audit_that_was_made_before(shaketable, audits, tmp_path):
    Path("rules.toml").write_text(
        f"baseline = {json.dumps(str(audits / 'base'))}\n"
        "[[fail_if]]\nfinding = 'overlap(1-char)'\nworse_by = 0\nsignificant = true\n"
        "[[warn_if]]\nfinding = 'nDCG@10'\nbelow = 0.99\n"
    )
    outputs = ("--junit", "j.xml", "--badge", "b.json", "--summary", "m.md")
    ended = shaketable("gate", audits / "careless", "--rules", "rules.toml", *outputs)
    assert ended.code == 1, ended.err
    assert "fail: overlap(1-char) not significantly worse than in " in ended.err
    assert "warn: nDCG@10>=0.99: grams.nDCG@10 is " in ended.err
    assert ElementTree.parse("j.xml").getroot().attrib["failures"] == "1"
    assert json.loads(Path("b.json").read_text())["message"] == "1 of 2 gates fail"
    assert "❌ fail | grams | overlap(1-char) not significantly worse" in Path("m.md").read_text()
    ended = shaketable("gate", audits / "base", "--rules", "rules.toml", "--summary", "-")
    assert ended.code == 0, "a warning is no failure"
    assert ended.out.startswith("### Robustness of 1 rankers on sample: pass, 1 warning")
    assert "nDCG@10" in shaketable("gate", audits / "base", "--require", "nDCG@1>0").complaint()
    assert (
        "absent.toml: there is no such file"
        in shaketable("gate", audits / "base", "--rules", "absent.toml").complaint()
    )
    assert "there is no such file" in shaketable("gate", "nowhere").complaint()


def test_without_rules_it_is_the_default_gate(shaketable, audits):
    ended = shaketable("gate", audits / "base")
    assert ended.code == 1
    assert "fail: is not below the first stage: grams " in ended.err
    assert shaketable("gate", audits / "base", "--require", "nDCG@10.low>=0.1").code == 0


def test_the_page_is_made_again(shaketable, audits, tmp_path):
    shutil.copytree(audits / "base", "copy")
    page = Path("copy/report.html")
    whole = page.read_text()
    page.write_text("gone")
    ended = shaketable("report", "copy")
    assert ended.code == 0, ended.err
    again = page.read_text()
    assert _but_for_seconds(again) == _but_for_seconds(whole)
    about = json.loads(Path("copy/manifest.json").read_text())["files"]["report.html"]
    assert about["bytes"] == page.stat().st_size
    assert shaketable("report", "copy", "--html", "other.html").code == 0
    assert Path("other.html").read_text() == again
    Path("copy/manifest.json").unlink()
    assert "its folder has no manifest.json; copy the whole folder" in shaketable("report", "copy").complaint()
    assert "has no report.html that an audit wrote" in shaketable("report", "copy", "--allow-edited").complaint()
    assert "there is no such file" in shaketable("report", "nowhere").complaint()


def _but_for_seconds(page: str) -> str:
    return re.sub(r"\s*<div><dt>seconds</dt><dd>[\d.]+</dd></div>", "", page)


def test_an_audit_that_is_read_is_the_one_that_was_saved(audits, tmp_path):
    whole = json.loads((audits / "base" / "results.json").read_text())
    assert st.read_audit(audits / "base").to_dict() == whole
    for part, damaged in (("about", {}), ("gate_results", [3]), ("queries", None), ("gate_results", [{"rule": "a"}])):
        (tmp_path / "results.json").write_text(json.dumps({**whole, part: damaged}))
        with pytest.raises(BadInput, match="is not a complete audit"):
            st.read_audit(tmp_path, allow_edited=True)


EDITED = r"copy/results.json: was edited or damaged after the audit wrote it; run the audit again, into another "
EDITED += "folder, or use the file as it is with --allow-edited"


def test_an_edited_audit_is_refused_unless_allowed(shaketable, audits, tmp_path):
    shutil.copytree(audits / "base", "copy")
    path = Path("copy/results.json")
    whole = json.loads(path.read_text())
    finding = next(
        f for r in whole["results"] for f in r["findings"] if f["name"] == "nDCG@10" and f["ranker"] == "grams"
    )
    finding["value"] = 0.9
    path.write_text(json.dumps(whole))
    gate = ("gate", "copy", "--require", "grams.nDCG@10>=0.89")
    for words in (gate, ("compare", audits / "base", "copy"), ("compare", path, audits / "base"), ("report", "copy")):
        ended = shaketable(*words)
        assert ended.complaint() == EDITED
        assert shaketable(*words, "--allow-edited").code == 0
    with pytest.raises(BadInput, match="was edited or damaged"):
        st.compare("copy", audits / "base")
    assert (
        "was changed since; move it or name another folder"
        in shaketable(
            "audit", "--ranker", "bm25", "--task", "variance", "--max-queries", "3", "--out", "copy"
        ).complaint()
    )
    assert json.loads(path.read_text()) == whole, "an edited file is the user's"


def test_robustness_as_a_test_of_pytest(audits):
    settings = {"tasks": ["effectiveness"], "max_queries": 20}
    assert_robust("ql", rules=["nDCG@10>=0.1", "ql.nDCG@10.n>=20"], **settings)
    with pytest.raises(AssertionError, match=r"1 of 2 rules are broken:\nfail: nDCG@10>=0.99: grams.nDCG@10 is 0\.\d+"):
        assert_robust(Careful(), rules=["nDCG@10>=0.99", "nDCG@10>=0"], **settings)
    with pytest.raises(AssertionError, match=r"has an order of its own in 0\.0 % of the lists"):
        assert_robust(lambda query, texts: [0.0] * len(texts), **settings)
    with pytest.raises(BadInput, match="cannot read the rule"):
        assert_robust("ql", rules="nDCG@10")


class TestTheScriptOfAWorkflow:
    """The files of docs/ci, as a build server runs them."""

    def run(self, place: Path) -> subprocess.CompletedProcess[str]:
        workflow = (CI / "robustness.yml").read_text()
        assert "- run: sh robustness.sh" in workflow
        tools = place / "tools"
        tools.mkdir(exist_ok=True)
        program = tools / "shaketable"
        program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c 'from shaketable.cli import main; main()' \"$@\"\n")
        program.chmod(program.stat().st_mode | stat.S_IEXEC)
        path = f"{tools}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)}
        environment["GITHUB_STEP_SUMMARY"] = str(place / "summary.md")
        return subprocess.run(
            ["sh", "robustness.sh"], cwd=place, env=environment, capture_output=True, text=True, check=False
        )

    def test_good_then_worse(self, tmp_path):
        place = tmp_path / "repository"
        shutil.copytree(CI, place)
        settings = (place / "shaketable.toml").read_text()
        settings = re.sub(r"task = .*", 'task = ["effectiveness"]', settings)
        (place / "shaketable.toml").write_text(settings)
        first = self.run(place)
        assert first.returncode == 0, first.stderr
        assert (place / "summary.md").read_text().startswith("### Robustness of 2 rankers on sample: ")
        assert json.loads((place / "robustness.json").read_text())["schemaVersion"] == 1
        (place / "audit-new").rename(place / "audit-main")
        (place / "shaketable.toml").write_text(settings.replace("mine=ql", "mine=bm25(k1=30, b=1)"))
        second = self.run(place)
        assert second.returncode == 1, second.stderr
        assert "### Robustness: worse\n\nmine became worse: " in (place / "summary.md").read_text()

    def test_an_error_is_no_failed_gate(self, tmp_path):
        place = tmp_path / "repository"
        shutil.copytree(CI, place)
        (place / "shaketable.toml").write_text("ranker = 'bm52'")
        assert self.run(place).returncode == 2

    def test_the_files_as_they_stand_are_read(self, shaketable):
        for file in CI.iterdir():
            shutil.copy(file, ".")
        assert shaketable("audit", "--dry-run").code == 0
        assert len(read_rules(Path("rules.toml"))) == 3
