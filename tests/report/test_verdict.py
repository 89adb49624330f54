"""The verdict of an audit: statuses with evidence, a useless ranker never passes, at most 25 lines."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from rich.cells import cell_len

import shaketable as st
from shaketable.core.results import Example, Finding, Result
from shaketable.measures.facets import (
    ATTACK,
    EFFECTIVENESS,
    FACETS,
    GAIN_OVER_FIRST_STAGE,
    OWN_ORDER_SHARE,
    PROBES_FACET,
    TYPOS,
    WORDING,
    classify_finding,
    get_facet,
)
from shaketable.report.files import audit_to_dict, to_plain
from shaketable.report.gates import GateResult
from shaketable.report.terminal_summary import render_lines
from shaketable.report.verdict import (
    DEFAULT_GATE_RULES,
    HAS_OWN_ORDER,
    NO_FACET_FAILS,
    NOT_BELOW_FIRST_STAGE,
    Verdict,
    build_verdict,
)

HOSTILE = "\x1b[31m<script>alert(1)</script>\u202eevil {loss} \n new line"


def drop(value: float, low: float, high: float, ranker: str = "mine", n: int = 100, p: float = 0.001) -> Finding:
    return Finding(ranker, "drop(1-char)", value, low, high, n, p, against="its own nDCG@10", facet=TYPOS)


def gain(value: float, ranker: str = "mine", p: float = 0.001, n: int = 100) -> Finding:
    return Finding(
        ranker, GAIN_OVER_FIRST_STAGE, value, value - 4, value + 4, n, p, against="bm25", facet=EFFECTIVENESS
    )


def mean(value: float, ranker: str = "mine") -> Finding:
    return Finding(ranker, "nDCG@10", value, value - 0.05, value + 0.05, 100, facet=EFFECTIVENESS)


def own(value: float, ranker: str = "mine") -> Finding:
    return Finding(ranker, OWN_ORDER_SHARE, value, value, value, 100)


PROVENANCE = {
    "rankers": {"bm25": "bm25", "mine": "module:mine"},
    "baseline": "bm25",
    "collection": {"name": "trees", "source": "trees", "queries": 100, "judgements": 900},
}


def answered(*findings: Finding, **more: object) -> Verdict:
    return build_verdict([Result("t", "?", {}, findings=findings)], PROVENANCE | more)


def words(found: Verdict, ranker: str = "mine") -> dict[str, str]:
    (one,) = [one for one in found.ranker_verdicts if one.ranker == ranker]
    return {facet: mark.status for facet, mark in one.facet_cells.items()}


@pytest.mark.parametrize(
    ("finding", "word"),
    [
        (drop(-2, -4, 1), "pass"),
        (drop(-2, -25, 20), "inconclusive"),  # it may well break
        (drop(-9, -14, -4), "warn"),
        (drop(-9, -20, 2), "inconclusive"),  # it may be nothing
        (drop(-9, -14, -4, p=0.2), "inconclusive"),
        (drop(-30, -40, -20), "fail"),
        (drop(-30, -56, -4), "warn"),  # surely no gain, but a pass is not excluded
        (drop(-30, -40, -20, n=19), "inconclusive"),
        (drop(-30, np.nan, np.nan), "inconclusive"),
        (drop(+60, 40, 80), "pass"),  # a gain is no loss
    ],
)
def test_a_word_needs_evidence(finding, word):
    assert classify_finding(finding, get_facet(TYPOS).find_scale(finding))[0] == word


@pytest.mark.parametrize("facet", FACETS, ids=lambda facet: facet.name)
def test_the_table_is_whole(facet):
    assert facet.question.endswith("?")
    assert facet.advice.endswith(".")
    for scale in facet.scales:
        assert 0 < scale.warn_threshold < scale.fail_threshold
        said = scale.sentence.format(ranker="mine", loss=0.3, what="a slip", of="bm25")
        assert "mine" in said
        assert "{" not in said


def test_a_number_that_is_better_the_lower_loses_upwards():
    fooled = Finding("mine", "fooled %", 60.0, 55, 65, 100, better="lower", facet=PROBES_FACET)
    assert words(answered(fooled)) == {PROBES_FACET: "fail"}
    stays = Finding("mine", "overlap(1-char)", 0.9, 0.88, 0.92, 100, facet=TYPOS)
    moves = replace(stays, value=0.4, low=0.35, high=0.45)
    assert words(answered(stays)) == {TYPOS: "pass"}
    assert words(answered(moves)) == {TYPOS: "fail"}


def test_the_worst_of_a_facet_stands_for_it_and_few_queries_only_if_there_is_nothing_else():
    few = replace(drop(-60, -70, -50, n=5), name="drop(human)")
    found = answered(drop(-2, -4, 1), replace(drop(-9, -14, -4), name="drop(misspelling)"), few)
    (mark,) = found.ranker_verdicts[0].facet_cells.values()
    assert (mark.status, mark.finding.name, mark.value) == ("warn", "drop(misspelling)", "-9.0 % [-14.0, -4.0]")
    (mark,) = answered(few).ranker_verdicts[0].facet_cells.values()
    assert (mark.status, mark.remark) == ("inconclusive", "on 5 queries only")


def test_effectiveness_shows_the_measure_and_takes_its_word_from_the_comparison():
    found = answered(mean(0.4), gain(-12), own(100))
    mark = found.ranker_verdicts[0].facet_cells[EFFECTIVENESS]
    assert (mark.status, mark.value, mark.finding.name) == ("warn", "0.400 [0.350, 0.450]", "nDCG@10")
    assert "-12.0 %" in mark.remark
    assert "worse than the first stage" in found.ranker_verdicts[0].sentence
    assert answered(mean(0.4)).ranker_verdicts[0].facet_cells[EFFECTIVENESS].remark == "not compared with a first stage"


@pytest.mark.parametrize("useless", [(gain(-80), own(100)), (gain(0, p=1.0), own(0)), (gain(-80), own(0))])
def test_a_ranker_that_is_no_good_is_never_called_steady(useless):
    found = answered(mean(0.1), *useless, drop(0, 0, 0), mean(0.4, "bm25"), drop(-2, -4, 1, "bm25"))
    assert "pass" not in words(found).values()
    assert words(found, "bm25") == {EFFECTIVENESS: "pass", TYPOS: "pass"}
    assert found.passed is False
    assert "fail" in {ruling.status for ruling in found.gate_results if ruling.ranker == "mine"}
    assert not [ruling for ruling in found.gate_results if ruling.ranker == "bm25"], "the first stage is exempt"
    assert all(blow.facet_cell.facet == EFFECTIVENESS for blow in found.worst_findings)


def test_the_default_gate():
    held = answered(mean(0.5), gain(8), own(99), drop(-2, -4, 1))
    assert [ruling.rule for ruling in held.gate_results] == list(DEFAULT_GATE_RULES)
    assert {ruling.status for ruling in held.gate_results} == {"pass"}
    assert held.passed is True

    def status(rule: str, *findings: Finding) -> str:
        (ruling,) = [ruling for ruling in answered(*findings).gate_results if ruling.rule == rule]
        return ruling.status

    assert status(HAS_OWN_ORDER, own(4)) == "fail"
    assert status(NOT_BELOW_FIRST_STAGE, gain(-3)) == "fail", "a small loss that is significant"
    assert status(NOT_BELOW_FIRST_STAGE, gain(-3, n=12)) == "warn"
    assert status(NOT_BELOW_FIRST_STAGE, gain(-9, p=0.4)) == "warn"
    assert status(NO_FACET_FAILS, drop(-30, -40, -20)) == "fail"
    assert status(NO_FACET_FAILS, drop(-9, -14, -4)) == "warn"
    assert answered().gate_results == ()
    assert answered().passed is None, "nothing was measured, so nothing is said"


def test_gates_of_the_user_decide_too():
    ruling = GateResult("nDCG@10>=0.9", "mine", "fail", "mine.nDCG@10 is 0.5, and should be >= 0.9")
    found = build_verdict([Result("t", "?", {}, findings=(gain(8), own(99)))], PROVENANCE, [ruling])
    assert found.gate_results[0] == ruling
    assert found.passed is False


def test_the_worst_findings_have_a_case_and_advice():
    case = Example("mine", "q7", "1-char", "wind tunnel heating", "wind tunel heating", 0.8, 0.1, "d3", 1, 34)
    other = replace(case, change="2-char", after="wnid tunel heating")
    wording = replace(drop(-9, -14, -4), name="drop(paraphrasing)", facet=WORDING)
    result = Result("t", "?", {}, findings=(gain(8), own(99), drop(-30, -40, -20), wording), examples=(other, case))
    first, second = build_verdict([result], PROVENANCE).worst_findings
    assert first.sentence == (
        "One slip of the keyboard in a query costs mine 30.0 % of its own nDCG@10: 'wind tunel heating' goes from 0.80 "
        "to 0.10, document d3 from rank 1 to rank 34."
    )
    assert (first.example, first.advice) == (case, get_facet(TYPOS).advice)
    assert (second.facet_cell.facet, second.example) == (WORDING, None), "no case of another shake stands in for it"


def test_at_most_three_and_of_as_many_facets_as_there_are():
    rankers = [f"r{i}" for i in range(5)]
    typos = [drop(-40 - i, -60, -30, ranker) for i, ranker in enumerate(rankers)]
    attacks = [Finding(r, "into the first ten %", 35, 25, 45, 100, better="lower", facet=ATTACK) for r in rankers]
    found = build_verdict([Result("t", "?", {}, findings=(*typos, *attacks))], {"rankers": dict.fromkeys(rankers, "")})
    assert len(found.worst_findings) == 3
    assert {blow.facet_cell.facet for blow in found.worst_findings} == {TYPOS, ATTACK}
    assert found.worst_findings[0].ranker == "r4", "the worst of all comes first"


def test_cautions():
    assert not answered(own(100)).cautions
    sample = {"collection": {"source": "sample", "queries": 12, "judgements": 0}, "limit": 12}
    said = " ".join(
        answered(own(100), **sample, skipped={"risk": "it needs judgements"}, remarks={"mine": "cut"}).cautions
    )
    for part in ("bundled sample", "first 12 queries", "only 12 queries", "no judgements", "risk", "mine: cut"):
        assert part in said


def crowd(rankers: int) -> Verdict:
    """An answer as full as can be, in which names and texts are hostile."""
    names = [f"{HOSTILE} {i}" for i in range(rankers)]
    findings = []
    for i, name in enumerate(names):
        findings += [mean(0.4, name), gain(-12 - i, name), own(99, name), drop(-130, -160, -120, name)]
        findings += [
            Finding(name, f"drop({HOSTILE})", -1234.5, -2000, -1000, 100, facet=facet.name, against=HOSTILE)
            for facet in FACETS[1:]
        ]
    case = [Example(name, HOSTILE * 9, "1-char", HOSTILE, HOSTILE, 1.0, 0.0, HOSTILE, 1, 0) for name in names]
    slices = [Finding(names[0], f"worst slice of {HOSTILE}", 0.1, 0, 0.2, 30, 0.001, where=HOSTILE)]
    result = Result("t", "?", {}, findings=(*findings, *slices), examples=tuple(case))
    rulings = [GateResult(HOSTILE, name, "fail", HOSTILE) for name in names]
    return build_verdict(
        [result], PROVENANCE | {"rankers": dict.fromkeys(names, HOSTILE), "skipped": {HOSTILE: HOSTILE}}, rulings
    )


@pytest.mark.parametrize("rankers", [1, 2, 6, 30])
@pytest.mark.parametrize("width", [100, 160])
def test_25_lines_whatever_was_measured(rankers, width):
    shown = render_lines(crowd(rankers), width)
    assert len(shown) + 1 <= 25, "and one that says where the report is"
    assert all(cell_len(line.plain) <= width for line in shown)


def test_narrow_screens_are_not_overrun():
    assert all(cell_len(line.plain) <= 60 for line in render_lines(crowd(6), 60))


def test_hostile_texts_stay_texts():
    found = crowd(3)
    for width in (60, 100):
        assert not any(sign in line.plain for line in render_lines(found, width) for sign in "\x1b\u202e\n")
    said = [found.headline, found.worst_slice, *found.cautions, *(blow.sentence for blow in found.worst_findings)]
    said += [one.sentence for one in found.ranker_verdicts] + [
        ruling.message for ruling in found.gate_results if ruling.rule in DEFAULT_GATE_RULES
    ]
    assert not any(sign in text for text in said for sign in "\x1b\u202e\n")


def test_json_is_strict_and_has_the_answer_before_the_results():
    result = Result("t", "?", {}, findings=(mean(0.5), replace(gain(8), values={"q1": 8.0}), own(99)))
    whole = audit_to_dict([result], PROVENANCE)
    assert list(whole)[:3] == ["schema", "gate_results", "verdict"]
    text = json.dumps(whole, allow_nan=False)
    assert json.loads(text)["gate_results"][0]["status"] == "pass"
    assert whole["results"][0]["findings"][1]["values"] == {"q1": 8.0}
    assert "values" not in json.dumps(whole["verdict"]), "what each query adds is in the results, once"
    assert to_plain(answered().to_dict())["passed"] is None


class Noop:
    """The first stage's order as it is."""

    def score(self, slates):
        return [-np.arange(len(slate.docs), dtype=float) for slate in slates]


class Constant:
    def score(self, slates):
        return [np.zeros(len(slate.docs)) for slate in slates]


class Random:
    """Scores that depend on the texts, and on nothing in them."""

    pointwise = True

    def score(self, slates):
        return [np.array([hash_of(slate.query, doc.text) for doc in slate.docs]) for slate in slates]


def hash_of(*texts: str) -> float:
    from hashlib import blake2b

    return int.from_bytes(blake2b(repr(texts).encode(), digest_size=4).digest()) / 2**32


@pytest.fixture(scope="module")
def real() -> Verdict:
    """A real audit of rankers of which only ql is one."""
    rankers = {"bm25": "bm25", "ql": "ql", "noop": Noop(), "constant": Constant(), "random": Random()}
    tasks = ["first-stage", "effectiveness", "variance", "query-typos(draws=1)"]
    return st.audit("sample", rankers, tasks, runs=False).verdict()


def failed(found: Verdict, rule: str) -> set[str]:
    return {ruling.ranker for ruling in found.gate_results if ruling.status == "fail" and ruling.rule == rule}


def test_self_test_useless_rankers_fail_the_default_gate(real):
    assert failed(real, HAS_OWN_ORDER) == {"noop", "constant"}
    assert failed(real, NOT_BELOW_FIRST_STAGE) == {"constant", "random"}
    assert {ruling.ranker for ruling in real.gate_results} == {"ql", "noop", "constant", "random"}
    assert not {ruling.status for ruling in real.gate_results if ruling.ranker == "ql"} & {"fail"}
    assert real.passed is False
    for name in ("noop", "constant", "random"):
        assert "pass" not in words(real, name).values()
    assert words(real, "random")[EFFECTIVENESS] == "fail"
    assert real.ranker_verdicts[-1].role == "first stage"


def test_without_judgements_only_what_can_be_told():
    collection = replace(st.load("sample", split="test"), qrels={})
    done = st.audit(collection, {"ql": "ql", "noop": Noop()}, ["first-stage", "query-typos(draws=1)"], runs=False)
    found = done.verdict()
    assert failed(found, HAS_OWN_ORDER) == {"noop"}
    assert not [ruling for ruling in found.gate_results if ruling.rule == NOT_BELOW_FIRST_STAGE]
    assert EFFECTIVENESS not in found.facets
    assert words(found, "ql")[TYPOS] in ("pass", "warn")
    assert found.ranker_verdicts[0].sentence.startswith("The effectiveness of ql was not tested")
    assert any("no judgements" in caution for caution in found.cautions)
