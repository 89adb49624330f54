"""Gates: bounds, losses against an earlier audit, statuses of facets; rules in a file, and their errors."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from shaketable.core.errors import BadInput, NotComparable, ShaketableError, UnknownName
from shaketable.core.results import Finding, Result
from shaketable.report.audit_folder import replace_files
from shaketable.report.ci import build_badge, render_junit
from shaketable.report.files import write_results
from shaketable.report.gates import (
    FacetStatus,
    GateInput,
    GateResult,
    NoRegression,
    Threshold,
    evaluate_gates,
    has_passed,
)
from shaketable.report.rules import check_rankers, parse_gates, read_accepted, read_rules


def finding(ranker: str, name: str, value: float, **more) -> Finding:
    spread = np.linspace(-0.1, 0.1, 40)
    values = {f"q{i}": value + x for i, x in enumerate(spread)}
    return Finding(ranker, name, value, value - 0.05, value + 0.05, 40, 0.01, values=values, **more)


FINDINGS = (
    finding("bm25", "nDCG@10", 0.30),
    finding("mine", "nDCG@10", 0.50),
    finding("mine", "drop(1-char)", -12.0),
    finding("mine", "drop(word)", -4.0),
    finding("mine", "TRisk@1", 0.1),
    finding("mine", "T*Risk@1", 0.2),
    replace(finding("mine", "p of nothing", 1.0), p=float("nan")),
)
SEEN = GateInput(FINDINGS, ("mine",), {("mine", "query typos"): "warn", ("mine", "attack"): "fail"})


def statuses(rule: str) -> dict[str, str]:
    return {one.ranker: one.status for one in evaluate_gates(parse_gates([rule]), SEEN)}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("nDCG@10>=0.4", {"mine": "pass"}),  # bm25 is the first stage: it would fail
        ("bm25.nDCG@10>=0.4", {"bm25": "fail"}),
        ("bm25.nDCG@10 > 0.2", {"bm25": "pass"}),
        ("nDCG@10.low>=0.45", {"mine": "pass"}),
        ("nDCG@10.low>=0.46", {"mine": "fail"}),
        ("mine.nDCG@10.high<=0.55", {"mine": "pass"}),
        ("nDCG@10.p<0.05", {"mine": "pass"}),
        ("nDCG@10.n>=50", {"mine": "fail"}),
        ("drop(*)>=-5", {"mine": "pass"}),  # the last of two
        ("p of nothing.p<0.05", {"mine": "fail"}),  # a missing number fulfils no rule
    ],
)
def test_bounds(rule, expected):
    assert statuses(rule) == expected


def test_a_star_stands_for_anything_but_in_a_name():
    assert [one.status for one in evaluate_gates(parse_gates(["drop(*)>=-5"]), SEEN)] == ["fail", "pass"]
    (one,) = evaluate_gates(parse_gates(["T*Risk@1>=0.15"]), SEEN)
    assert (one.status, one.message) == ("pass", "mine.T*Risk@1 is 0.2000, and should be >= 0.15")


def test_a_rule_that_matches_no_finding_is_an_error():
    for rule in ("nDCG@1>=0", "min.nDCG@10>=0", "drop[*]>0", "nDCG@10.lo>=0"):
        with pytest.raises(UnknownName, match="no finding is called"):
            statuses(rule)
    with pytest.raises(UnknownName, match="no ranker is called 'min'; did you mean mine"):
        Threshold("nDCG@10", ">=", 0.1, ranker="min").evaluate(SEEN)
    with pytest.raises(UnknownName, match="no measured facet is called 'query typo'; did you mean query typos"):
        FacetStatus("query typo").evaluate(SEEN)


@pytest.mark.parametrize("rule", ["nDCG@10", "nDCG@10=0.4", ">=0.4", "nDCG@10>=", "nDCG@10>=a", "x" * 600 + ">=1"])
def test_rules_that_cannot_be_read(rule):
    with pytest.raises(BadInput, match="cannot read the rule"):
        parse_gates([rule])


def test_where_only_the_first_stage_is_there_rules_are_about_it():
    assert GateInput.from_results([Result("t", "?", {}, findings=FINDINGS[:1])]).tested_rankers == ("bm25",)


def test_words():
    assert [r.status for r in FacetStatus("query typos").evaluate(SEEN)] == ["pass"]
    (one,) = FacetStatus("query typos", ("warn", "fail"), failure_status="warn").evaluate(SEEN)
    assert str(one) == "warn: the status of query typos is not warn or fail: mine's query typos: warn"
    assert sorted(r.status for r in FacetStatus("*").evaluate(SEEN)) == ["fail", "pass"]


def test_no_loss():
    """From 0.52 to 0.50 with the same spread is a certain loss of 0.02, which is 3.8 %."""
    base = GateInput((finding("old", "nDCG@10", 0.52),), ("old",))
    for gate, status in (
        (NoRegression("nDCG@10", base), "fail"),
        (NoRegression("nDCG@10", base, tolerance=0.03), "pass"),
        (NoRegression("nDCG@10", base, tolerance=0.015), "fail"),
        (NoRegression("nDCG@10", base, tolerance=0.03, relative=True), "fail"),
        (NoRegression("nDCG@10", base, tolerance=0.05, relative=True), "pass"),
        (NoRegression("nDCG@10", base, significant=True, failure_status="warn"), "warn"),
    ):
        assert [one.status for one in gate.evaluate(SEEN)] == [status], gate
    several = GateInput((finding("old", "nDCG@10", 0.52), finding("older", "nDCG@10", 0.52)), ("old", "older"))
    with pytest.raises(BadInput, match="has no ranker to compare mine with"):
        NoRegression("nDCG@10", several, baseline_folder="main").evaluate(SEEN)


def test_a_baseline_with_another_seed_is_refused():
    base = GateInput((finding("mine", "nDCG@10", 0.52),), ("mine",), provenance={"seed": 1})
    with pytest.raises(NotComparable, match=r"main and this audit differ in seed \(seed: 1 and None\)"):
        NoRegression("nDCG@10", base, baseline_folder="main").evaluate(SEEN)


def test_a_loss_that_may_be_chance_is_none():
    values = {f"q{i}": 0.5 + (-1) ** i * 0.2 for i in range(40)}
    turned = {f"q{i}": 0.49 - (-1) ** i * 0.2 for i in range(40)}
    now = GateInput((Finding("mine", "AP", 0.49, n=40, values=turned),), ("mine",))
    base = GateInput((Finding("mine", "AP", 0.50, n=40, values=values),), ("mine",))
    assert [one.status for one in NoRegression("AP", base, significant=True).evaluate(now)] == ["pass"]
    assert [one.status for one in NoRegression("AP", base).evaluate(now)] == ["fail"]


RULES = """
baseline = "main"

[[fail_if]]
finding = "nDCG@10"
below = 0.4

[[fail_if]]
finding = "drop(1-char)"
worse_by = "5 %"
significant = true

[[warn_if]]
facet = "query typos"
status = ["warn", "fail"]
ranker = "mine"
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"ranker": ["mine"]})
    results = [Result("t", "?", {"a": frame}, findings=(finding("mine", "drop(1-char)", -2.0),))]
    replace_files(tmp_path / "main", lambda staging: write_results(staging, results, {}))
    return tmp_path


def test_a_baseline_that_was_edited_is_refused_unless_allowed(place):
    (place / "rules.toml").write_text("[[fail_if]]\nfinding='drop(1-char)'\nbaseline='main'\nworse_by=0.1\n")
    (gate,) = parse_gates(["rules.toml"])
    path = place / "main" / "results.json"
    path.write_text(path.read_text().replace("-2.0", "-9.0"))
    with pytest.raises(BadInput, match=r"results\.json: was edited or damaged"):
        parse_gates(["rules.toml"])
    (allowed,) = parse_gates(["rules.toml"], allow_edited=True)
    assert [one.baseline.select_findings("drop(1-char)", "")[0].value for one in (gate, allowed)] == [-2.0, -9.0]


def test_a_file_of_rules(place):
    (place / "rules.toml").write_text(RULES)
    gates = read_rules(Path("rules.toml"))
    assert gates[0] == Threshold("nDCG@10", ">=", 0.4)
    assert gates[2] == FacetStatus("query typos", ("warn", "fail"), "mine", "warn")
    found = evaluate_gates(gates, SEEN)
    assert [one.status for one in found] == ["pass", "fail", "warn"]
    assert found[1].rule == "drop(1-char) not significantly worse than in main by more than 5 %"
    assert found[1].message.startswith("mine.drop(1-char) went from -2.0000 to -12.0000 (p = ")
    assert not has_passed(found)
    assert has_passed(found[::2]), "a warning is no failure"
    check_rankers(gates, ["bm25", "mine"])
    with pytest.raises(UnknownName, match="no ranker is called 'mine'"):
        check_rankers(gates, ["bm25"])


def test_the_rules_that_the_documentation_shows_are_rules(place):
    page = (Path(__file__).parents[2] / "docs" / "gates.md").read_text()
    examples = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (place / "rules.toml").write_text("\n".join(examples).replace("audit-main", "main"))
    assert [type(gate) for gate in read_rules(Path("rules.toml"))] == [Threshold, Threshold, NoRegression, FacetStatus]
    assert [accepted.facet for accepted in read_accepted(["rules.toml"])] == ["attack"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "has no rules"),
        ("a = ", "is not a TOML file"),
        ("[[fail]]\nfinding='a'", "no part of a file of rules is called 'fail'; did you mean fail_if?"),
        ("[fail_if]\nfinding='a'", "fail_if should be written [[fail_if]]"),
        (
            "[[fail_if]]\nfindng='a'\nbelow=1",
            "rule 1 of [[fail_if]]: no key of a rule is called 'findng'; did you mean finding?",
        ),
        ("[[fail_if]]\nbelow=1", "should name either a finding or a facet"),
        ("[[fail_if]]\nfinding='a'\nfacet='b'", "should name either a finding or a facet"),
        ("[[fail_if]]\nfinding='a'", "should have one of below, above and worse_by"),
        ("[[fail_if]]\nfinding='a'\nbelow=1\nabove=2", "should have one of below, above and worse_by"),
        ("[[fail_if]]\nfinding='a'\nbelow='x'", "below should be a number, not 'x'"),
        ("[[fail_if]]\nfinding='a'\nbelow=true", "below should be a number, not True"),
        ("[[fail_if]]\nfinding='a'\nbelow=nan", "below should be a number, not nan"),
        ("[[fail_if]]\nfinding=1\nbelow=1", "finding should be a text, not 1"),
        ("[[fail_if]]\nfinding='a'\nbelow=1\nsignificant=true", "significant does not go with finding and below"),
        ("[[fail_if]]\nfinding='a'\nworse_by=0.1", "needs the folder of an earlier audit"),
        (
            "[[fail_if]]\nfinding='drop(1-char)'\nbaseline='main'\nworse_by='much'",
            "or a share such as \"5 %\", not 'much'",
        ),
        ("[[fail_if]]\nfinding='drop(1-char)'\nbaseline='main'\nworse_by=-1", "worse_by should be 0 or more"),
        (
            "[[fail_if]]\nfinding='drop(1-char)'\nbaseline='main'\nworse_by=1\nsignificant=1",
            "should be true or false, not 1",
        ),
        ("[[fail_if]]\nfinding='a.low'\nbaseline='main'\nworse_by=1", "write finding = 'a'"),
        ("[[fail_if]]\nfinding='AP'\nbaseline='main'\nworse_by=1", "no finding is called 'AP'"),
        ("[[fail_if]]\nfinding='AP'\nbaseline='absent'\nworse_by=1", "absent: there is no such file"),
        ("[[warn_if]]\nfacet='attack'", 'status = "fail"'),
        ("[[warn_if]]\nfacet='attack'\nstatus='broken'", "no status of a facet is called 'broken'"),
        (
            "[[warn_if]]\nfacet='query typo'\nstatus='fail'",
            "no facet is called 'query typo'; did you mean query typos",
        ),
        ("[[warn_if]]\nfacet='attack'\nstatus='fail'\nbelow=1", "below does not go with facet"),
    ],
)
def test_mistakes_in_rules_are_found_when_they_are_read(place, text, complaint):
    (place / "rules.toml").write_text(text)
    with pytest.raises(ShaketableError) as caught:
        read_rules(Path("rules.toml"))
    assert complaint in str(caught.value)


HOSTILE = [
    GateResult("AP>=0.4", "a<b>&\x1b", "fail", 'it is "0.3" ]]> <script>'),
    GateResult("AP>=0.1", "mine", "pass", "it is 0.3"),
    GateResult("query typos", "mine", "warn", "warn"),
]


def test_junit_holds_whatever_texts_there_are():
    root = ElementTree.fromstring(render_junit(HOSTILE, "an <audit>"))
    assert root.attrib == {"name": "an <audit>", "tests": "3", "failures": "1", "errors": "0", "skipped": "0"}
    assert [case.find("failure") is not None for case in root] == [True, False, False]
    assert root[0].find("failure").attrib["message"] == HOSTILE[0].message
    assert root[2].find("system-out").text == str(HOSTILE[2])


def test_a_badge():
    assert build_badge(HOSTILE) == {
        "schemaVersion": 1,
        "label": "robustness",
        "message": "1 of 3 gates fail",
        "color": "red",
    }
    assert build_badge(HOSTILE[1:])["color"] == "yellow"
    assert build_badge(HOSTILE[1:2])["message"] == "pass"
    assert json.loads(json.dumps(build_badge(HOSTILE)))


def test_junit_names_are_unique_and_undecided_rules_are_skipped():
    results = [
        GateResult("drop(*)>=-5", "mine", "pass", "mine.drop(1-char) is -1", "drop(1-char)"),
        GateResult("drop(*)>=-5", "mine", "fail", "mine.drop(word) is -9", "drop(word)"),
        GateResult("no facet fails", "mine", "warn", "mine warns in attack."),
        GateResult("no facet fails", "mine", "warn", "mine warns in attack."),
        GateResult("required facets are decided", "mine", "inconclusive", "query typos is inconclusive."),
        GateResult("is not below the first stage", "mine", "not tested", "bring judgements."),
    ]
    root = ElementTree.fromstring(render_junit(results))
    names = [(case.attrib["classname"], case.attrib["name"]) for case in root]
    assert len(set(names)) == len(results)
    assert names[1] == ("shaketable.mine", "drop(*)>=-5 [drop(word)]")
    assert [[child.tag for child in case] for case in root] == [
        [], ["failure"], ["system-out"], ["system-out"], ["skipped"], ["skipped"],
    ]  # fmt: skip
    assert root.attrib["skipped"] == "2"
    assert build_badge(results[4:])["message"] == "inconclusive, 2 of 2 gates not decided"


ACCEPT = """
[[accept]]
facet = "attack"
ranker = "mine"
value = 96.0
reason = "a detector removes these texts"
expires = 2030-06-30
"""


def test_accepted_failures_are_read(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(ACCEPT)
    assert read_rules(path) == []
    (one,) = read_accepted([path, "nDCG@10>=0.4"])
    assert (one.facet, one.ranker, one.value, one.expires) == ("attack", "mine", 96.0, date(2030, 6, 30))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('facet = "attack"', 'facet = "atack"', "no facet is called 'atack'"),
        ("value = 96.0", 'value = "much"', "value should be a number"),
        ("expires = 2030-06-30", 'expires = "soon"', "expires should be a date such as 2030-06-30"),
        ('reason = "a detector removes these texts"', "", "needs reason"),
        ('reason = "a detector removes these texts"', 'reason = " "', "reason should say why"),
        ("value = 96.0", "values = 96.0", "values"),
        ("[[accept]]", "[accept]", "two brackets"),
    ],
)
def test_a_mistake_in_an_accepted_failure_is_named(tmp_path, old, new, message):
    path = tmp_path / "rules.toml"
    path.write_text(ACCEPT.replace(old, new))
    with pytest.raises(BadInput, match=re.escape(message)) as error:
        read_accepted([path])
    assert "rules.toml" in str(error.value)
