"""The verdict of an audit: the worst test decides and is named, a useless ranker never passes, at most 25 lines."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from rich.cells import cell_len

import shaketable as st
from shaketable.core.results import Example, Finding, Result
from shaketable.measures.facets import (
    ATTACK,
    COMPETITION,
    DOCUMENT_FORM,
    EFFECTIVENESS,
    FACETS,
    FOOLED,
    GAIN_OVER_FIRST_STAGE,
    INPUT_ORDER,
    INTO_TOP_TEN,
    LOSS_UNDER_ATTACK,
    OWN_ORDER_SHARE,
    PROBES_FACET,
    REPEATABILITY,
    TYPOS,
    UNSERVED_INCREASE,
    VARIANCE,
    WORDING,
    get_facet,
    name_test,
)
from shaketable.report.default_gate import (
    DEFAULT_GATE_RULES,
    FACETS_TESTED,
    HAS_OWN_ORDER,
    NO_FACET_FAILS,
    NOT_BELOW_FIRST_STAGE,
    REQUIRED_FACETS,
    AcceptedFinding,
    record_accepted,
)
from shaketable.report.files import audit_to_dict, to_plain
from shaketable.report.gates import GateResult
from shaketable.report.terminal_summary import render_lines
from shaketable.report.verdict import Verdict, build_verdict

HOSTILE = "\x1b[31m<script>alert(1)</script>\u202eevil {loss} \n new line"


def drop(value: float, low: float, high: float, ranker: str = "mine", n: int = 100) -> Finding:
    return Finding(ranker, "drop(1-char)", value, low, high, n, against="its own nDCG@10", facet=TYPOS)


def gain(value: float, ranker: str = "mine", p: float = 0.001, n: int = 100) -> Finding:
    return Finding(
        ranker, GAIN_OVER_FIRST_STAGE, value, value - 4, value + 4, n, p, against="bm25", facet=EFFECTIVENESS
    )


def mean(value: float, ranker: str = "mine") -> Finding:
    return Finding(ranker, "nDCG@10", value, value - 0.05, value + 0.05, 100, facet=EFFECTIVENESS)


def own(value: float, ranker: str = "mine") -> Finding:
    return Finding(ranker, OWN_ORDER_SHARE, value, value, value, 100)


def rate(panel: str, test: str, count: int, facet: str, ranker: str = "mine", n: int = 50) -> Finding:
    """Return a rate of `count` of `n` queries, with a wide interval."""
    values = {str(q): 100.0 * (q < count) for q in range(n)}
    share = 100 * count / n
    ends = max(share - 12, 0.0), min(share + 12, 100.0)
    return Finding(ranker, name_test(panel, test), share, *ends, n, better="lower", facet=facet, values=values)


def loss(test: str, size: float, ranker: str) -> Finding:
    values = {str(q): size + q % 3 - 1 for q in range(50)}
    return Finding(
        ranker, name_test(LOSS_UNDER_ATTACK, test), size, size - 1, size + 1, 50, better="lower", values=values
    )


SOUND = [
    replace(drop(-1, -3, 1), name="drop(syn_swap)", facet=WORDING),
    Finding("mine", "changed when asked again %", 0, 0, 16, 20, better="lower", facet=REPEATABILITY),
    Finding("mine", "order sensitivity", 0.0, 0, 0.02, 20, better="lower", facet=INPUT_ORDER),
    rate("falls out of the first ten", "upper_case", 0, DOCUMENT_FORM),
    rate(FOOLED, "prepend-query", 0, PROBES_FACET),
    rate(INTO_TOP_TEN, "greedy", 0, ATTACK),
]
"""Findings of a ranker without a flaw, in every required facet but typos."""

PROVENANCE = {
    "rankers": {"bm25": "bm25", "mine": "module:mine"},
    "baseline": "bm25",
    "collection": {"name": "trees", "source": "trees", "queries": 100, "judgements": 900},
}


def decide(*findings: Finding, **more: object) -> Verdict:
    return build_verdict([Result("t", "?", {}, findings=findings)], PROVENANCE | more)


def statuses(found: Verdict, ranker: str = "mine") -> dict[str, str]:
    (one,) = [one for one in found.ranker_verdicts if one.ranker == ranker]
    return {facet: cell.status for facet, cell in one.facet_cells.items()}


def cell(found: Verdict, facet: str, ranker: str = "mine"):
    (one,) = [one for one in found.ranker_verdicts if one.ranker == ranker]
    return one.facet_cells[facet]


def test_the_worst_test_of_a_panel_decides_and_is_named():
    few = replace(drop(-60, -99, -10, n=5), name="drop(human)")
    found = decide(drop(-2, -4, 1), replace(drop(-9, -14, -4), name="drop(real_typo)"), few)
    typos = cell(found, TYPOS)
    assert (typos.status, typos.value) == ("warn", "-9.0 %")
    assert typos.measure == "change of nDCG@10 by real_typo"
    assert typos.bound == "at best -4.0 %"
    assert typos.untested == ("human",)
    assert any("human" in text for text in found.small_tests)
    alone = cell(decide(few), TYPOS)
    assert (alone.status, alone.remark) == ("inconclusive", "5 queries, too few for a status (20 needed)")


def test_few_queries_fail_if_the_whole_interval_is_beyond_the_threshold():
    certain = replace(drop(-60, -70, -50, n=5), name="drop(human)")
    assert cell(decide(drop(-2, -4, 1), certain), TYPOS).status == "fail"


def test_a_rate_shows_its_count_and_the_end_that_matters():
    found = decide(rate(INTO_TOP_TEN, "greedy", 0, ATTACK, n=24))
    assert cell(found, ATTACK).bound == "0 of 24, up to 12.0 %"
    assert cell(found, ATTACK).text == "0.0 % into the first ten by greedy (0 of 24, up to 12.0 %)"


def test_effectiveness_shows_the_gain_and_the_measure():
    found = decide(mean(0.4), gain(-12), own(100))
    one = cell(found, EFFECTIVENESS)
    assert (one.status, one.value, one.finding.name) == ("warn", "-12.0 %", GAIN_OVER_FIRST_STAGE)
    assert one.measure == "gain over the first stage, nDCG@10 0.400"
    assert "worse than the first stage" in found.ranker_verdicts[0].sentence
    assert cell(decide(mean(0.4)), EFFECTIVENESS).remark == "not compared with a first stage"


def test_an_attack_fails_only_if_the_loss_is_larger_than_the_first_stages():
    fooled = [rate(INTO_TOP_TEN, "query_insertion", 50, ATTACK, ranker) for ranker in ("mine", "bm25")]
    equal = decide(*fooled, loss("query_insertion", 10, "mine"), loss("query_insertion", 10, "bm25"))
    assert cell(equal, ATTACK).status == "warn"
    assert cell(equal, ATTACK).remark == "not significantly worse than the first stage"
    assert cell(equal, ATTACK).first_stage == "100.0 %"
    worse = decide(*fooled, loss("query_insertion", 20, "mine"), loss("query_insertion", 10, "bm25"))
    assert cell(worse, ATTACK).status == "fail"
    alone = decide(*fooled, loss("query_insertion", 20, "mine"), baseline="", rankers={"mine": ""})
    assert cell(alone, ATTACK).status == "warn"
    assert cell(alone, ATTACK).remark == "not compared with a first stage"


def test_a_probe_fails_if_it_is_worse_than_the_first_stage_by_a_margin():
    mine = rate(FOOLED, "prepend-query", 50, PROBES_FACET)
    near, far = (rate(FOOLED, "prepend-query", n, PROBES_FACET, "bm25") for n in (48, 10))
    assert cell(decide(mine, near), PROBES_FACET).status == "warn"
    assert cell(decide(mine, far), PROBES_FACET).status == "fail"


@pytest.mark.parametrize("useless", [(gain(-80), own(100)), (gain(0, p=1.0), own(0)), (gain(-80), own(0))])
def test_a_useless_ranker_never_passes(useless):
    found = decide(mean(0.1), *useless, drop(0, 0, 0), mean(0.4, "bm25"), drop(-2, -4, 1, "bm25"))
    assert "pass" not in statuses(found).values()
    assert statuses(found, "bm25") == {EFFECTIVENESS: "pass", TYPOS: "pass"}
    assert found.outcome == "failed"
    assert not [one for one in found.gate_results if one.ranker == "bm25"], "the first stage is exempt"
    assert all(one.facet_cell.facet == EFFECTIVENESS for one in found.worst_findings)


def test_the_outcome_passes_only_if_every_rule_was_tested():
    whole = [mean(0.5), gain(8), own(99), drop(-2, -4, 1), *SOUND]
    found = decide(*whole)
    assert [one.rule for one in found.gate_results] == list(DEFAULT_GATE_RULES)
    assert {one.status for one in found.gate_results} == {"pass"}
    assert (found.outcome, found.passed) == ("passed", True)
    for facet in REQUIRED_FACETS:
        missing = decide(*(one for one in whole if one.facet != facet))
        assert (missing.outcome, missing.passed) == ("inconclusive", None), facet
        (rule,) = [one for one in missing.gate_results if one.rule == FACETS_TESTED]
        assert facet in rule.message
        assert any(facet in text for text in missing.untested)
    undecided = decide(*whole, replace(drop(-9, -20, 2), name="drop(phonetic)"))
    assert undecided.outcome == "inconclusive"
    assert decide(*(one for one in whole if one.name != OWN_ORDER_SHARE)).outcome == "inconclusive"
    assert decide(*(one for one in whole if one.name != GAIN_OVER_FIRST_STAGE)).outcome == "inconclusive"


def test_the_rules_of_the_default_gate():
    def status(rule: str, *findings: Finding) -> str:
        (one,) = [one for one in decide(*findings).gate_results if one.rule == rule]
        return one.status

    assert status(HAS_OWN_ORDER, own(4), gain(3)) == "fail"
    assert status(HAS_OWN_ORDER, gain(3)) == "not tested"
    assert status(NOT_BELOW_FIRST_STAGE, gain(-3)) == "fail", "a small loss that is significant"
    assert status(NOT_BELOW_FIRST_STAGE, gain(-3, n=12)) == "inconclusive"
    assert status(NOT_BELOW_FIRST_STAGE, gain(-9, p=0.4)) == "inconclusive"
    assert status(NO_FACET_FAILS, drop(-30, -40, -20)) == "fail"
    assert status(NO_FACET_FAILS, drop(-9, -14, -4)) == "warn"
    assert decide().gate_results == ()
    assert (decide().outcome, decide().passed) == ("", None), "nothing was measured"


def test_rules_of_the_user_decide_too():
    rule = GateResult("nDCG@10>=0.9", "mine", "fail", "mine.nDCG@10 is 0.5, and should be >= 0.9")
    found = build_verdict([Result("t", "?", {}, findings=(gain(8), own(99)))], PROVENANCE, [rule])
    assert found.gate_results[0] == rule
    assert found.passed is False


def test_an_accepted_failure_stays_visible_until_it_is_worse_or_expires():
    result = Result("t", "?", {}, findings=(mean(0.5), gain(8), own(99), drop(-30, -40, -22), *SOUND))
    accepted = AcceptedFinding(TYPOS, "mine", -30.0, "the queries are corrected before", date(2030, 1, 31))

    def outcome(one: AcceptedFinding, today: date) -> Verdict:
        return build_verdict([result], record_accepted(PROVENANCE, [one], today))

    held = outcome(accepted, date(2030, 1, 31))
    assert held.outcome == "passed"
    (shown,) = [one for one in held.gate_results if "accepted" in one.rule]
    assert shown.status == "warn"
    assert "-30.0 %" in shown.message
    assert "Accepted until 2030-01-31: the queries are corrected before" in shown.message
    assert cell(held, TYPOS).status == "fail", "the scorecard stays as it is"
    assert outcome(accepted, date(2030, 2, 1)).outcome == "failed", "expired"
    assert outcome(replace(accepted, value=-25.0), date(2030, 1, 1)).outcome == "failed", "worse than accepted"
    assert outcome(replace(accepted, ranker="other"), date(2030, 1, 1)).outcome == "failed"
    assert outcome(replace(accepted, facet=WORDING), date(2030, 1, 1)).outcome == "failed"


def test_the_worst_findings_have_an_example_and_advice():
    case = Example("mine", "q7", "1-char", "wind tunnel heating", "wind tunel heating", 0.8, 0.1, "d3", 1, 34)
    other = replace(case, change="2-char", after="wnid tunel heating")
    wording = replace(drop(-9, -14, -4), name="drop(syn_swap)", facet=WORDING)
    result = Result("t", "?", {}, findings=(gain(8), own(99), drop(-30, -40, -20), wording), examples=(other, case))
    first, second = build_verdict([result], PROVENANCE).worst_findings
    assert first.sentence == (
        "One typing error in a query costs mine 30.0 % of its own nDCG@10: 'wind tunel heating' goes from 0.80 "
        "to 0.10, document d3 moves from rank 1 to rank 34."
    )
    assert (first.example, first.advice) == (case, get_facet(TYPOS).advice)
    assert (second.facet_cell.facet, second.example) == (WORDING, None), "no example of another test replaces it"


def test_the_advice_on_an_attack_names_the_detector_that_was_measured():
    caught = [Finding("mine", f"caught(stuffing/{name}) %", value, n=50) for name, value in (("a", 20), ("b", 96))]
    found = decide(rate(INTO_TOP_TEN, "stuffing", 40, ATTACK), *caught)
    assert found.worst_findings[0].advice.startswith("The detector b finds 96 % of these texts;")
    weak = decide(rate(INTO_TOP_TEN, "stuffing", 40, ATTACK), caught[0]).worst_findings[0].advice
    assert weak.startswith("The best of 1 detectors (a) finds 20 % of these texts, so a filter does not help")
    assert decide(rate(INTO_TOP_TEN, "stuffing", 40, ATTACK)).worst_findings[0].advice == get_facet(ATTACK).advice


def test_at_most_three_findings_of_different_facets():
    rankers = [f"r{i}" for i in range(5)]
    typos = [drop(-40 - i, -60, -30, ranker) for i, ranker in enumerate(rankers)]
    attacks = [rate(INTO_TOP_TEN, "greedy", 20, ATTACK, ranker) for ranker in rankers]
    found = build_verdict([Result("t", "?", {}, findings=(*typos, *attacks))], {"rankers": dict.fromkeys(rankers, "")})
    assert [one.facet_cell.facet for one in found.worst_findings] == [TYPOS, ATTACK]
    assert found.worst_findings[0].ranker == "r4", "the worst of all comes first"


def test_a_competition_on_few_queries_is_left_out():
    few = Finding("mine", "KT", 0.3, 0.2, 0.4, 12, better="lower", facet=COMPETITION)
    assert COMPETITION not in decide(few, drop(-2, -4, 1)).facets
    assert COMPETITION in decide(replace(few, n=30), drop(-2, -4, 1)).facets


def test_cautions_and_untested_facets():
    assert not decide(own(100)).cautions
    sample = {"collection": {"source": "sample", "queries": 12, "judgements": 0}, "limit": 12}
    found = decide(
        own(100), drop(-2, -4, 1), **sample, skipped={"risk": "it needs judgements"}, remarks={"mine": "cut"}
    )
    said = " ".join((*found.cautions, *found.untested))
    for part in ("bundled sample", "first 12 queries", "only 12 queries", "no judgements", "risk", "mine: cut", ATTACK):
        assert part in said


def crowd(rankers: int) -> Verdict:
    """Return a verdict with every facet, and hostile names and texts."""
    names = [f"{HOSTILE} {i}" for i in range(rankers)]
    findings = []
    for i, name in enumerate(names):
        findings += [mean(0.4, name), gain(-12 - i, name), own(99, name), drop(-130, -160, -120, name)]
        findings += [
            Finding(name, f"drop({HOSTILE})", -1234.5, -2000, -1000, 100, facet=facet.name, against=HOSTILE)
            for facet in FACETS[1:]
        ]
    cases = [Example(name, HOSTILE * 9, "1-char", HOSTILE, HOSTILE, 1.0, 0.0, HOSTILE, 1, 0) for name in names]
    result = Result("t", "?", {}, findings=tuple(findings), examples=tuple(cases))
    rules = [GateResult(HOSTILE, name, "fail", HOSTILE) for name in names]
    return build_verdict(
        [result], PROVENANCE | {"rankers": dict.fromkeys(names, HOSTILE), "skipped": {HOSTILE: HOSTILE}}, rules
    )


@pytest.mark.parametrize("rankers", [1, 2, 6, 30])
@pytest.mark.parametrize("width", [100, 160])
def test_at_most_25_lines_whatever_was_measured(rankers, width):
    shown = render_lines(crowd(rankers), width)
    assert len(shown) + 1 <= 25, "and one that names the report"
    assert all(cell_len(line.plain) <= width for line in shown)


def test_a_copy_is_named_in_the_headline_and_shares_one_reason():
    given = PROVENANCE["rankers"] | {"copy": "module:copy"}
    bad = replace(drop(-60, -70, -50), facet=TYPOS)
    same = [replace(one, ranker="copy") for one in (own(0), gain(0), drop(0, 0, 0), *SOUND)]
    found = decide(own(50), bad, gain(9), *same, rankers=given)
    assert found.headline == (
        "mine and copy fail. copy has no order of its own: it repeats the first stage or ties all documents, and its "
        "other facets say nothing."
    )
    lines = " ".join(line.plain.strip() for line in render_lines(found, 200))
    assert lines.count("the order is not its own") == 1
    assert "effectiveness, query typos, query wording" in lines
    assert "-60.0 %" in lines, "the ranker that is no copy keeps its numbers"


def test_narrow_screens_are_not_overrun():
    assert all(cell_len(line.plain) <= 60 for line in render_lines(crowd(6), 60))


def test_nothing_is_cut_off_at_80_columns():
    case = Example("mine", "q7", "1-char", "wind tunnel heating", "wind tunel heating", 0.8, 0.1, "d3", 1, 34)
    result = Result("t", "?", {}, findings=(mean(0.5), gain(8), own(99), drop(-30, -40, -20)), examples=(case,))
    verdict = build_verdict([result], PROVENANCE)
    text = " ".join(" ".join(line.plain.split()) for line in render_lines(verdict, 80, enforced=False))
    assert text.startswith("FAILED (not enforced; add --gate): mine is better than the first stage (+8.0 %)")
    for part in (
        "query typos -30.0 % change of nDCG@10 by one typing error in a query (at best -20.0 %)",
        get_facet(TYPOS).advice,
        "before: wind [tunnel] heating",
        "after: wind [tunel] heating",
        "document d3 moves from rank 1 to rank 34",
    ):
        assert part in text
    assert "…" not in text
    assert "not enforced" not in render_lines(verdict, 80)[0].plain


def test_hostile_texts_stay_texts():
    found = crowd(3)
    for width in (60, 100):
        assert not any(sign in line.plain for line in render_lines(found, width) for sign in "\x1b\u202e\n")
    said = [
        found.headline,
        *found.untested,
        *found.small_tests,
        *found.cautions,
        *(one.sentence for one in found.worst_findings),
    ]
    said += [one.sentence for one in found.ranker_verdicts] + [
        one.message for one in found.gate_results if one.rule in DEFAULT_GATE_RULES
    ]
    assert not any(sign in text for text in said for sign in "\x1b\u202e\n")


def test_json_is_strict_and_has_the_verdict_before_the_results():
    result = Result("t", "?", {}, findings=(mean(0.5), replace(gain(8), values={"q1": 8.0}), own(99)))
    whole = audit_to_dict([result], PROVENANCE)
    assert list(whole)[:3] == ["schema", "gate_results", "verdict"]
    text = json.dumps(whole, allow_nan=False)
    assert json.loads(text)["gate_results"][0]["status"] == "pass"
    assert json.loads(text)["verdict"]["outcome"] == "inconclusive"
    assert json.loads(text)["verdict"]["untested"]
    assert whole["results"][0]["findings"][1]["values"] == {"q1": 8.0}
    assert "values" not in json.dumps(whole["verdict"]), "the values by query are in the results, once"
    assert to_plain(decide().to_dict())["passed"] is None


class Noop:
    """The first stage's order."""

    def score(self, slates):
        return [-np.arange(len(slate.docs), dtype=float) for slate in slates]


class NearCopy:
    """The first stage's order with ranks 5 and 6 exchanged, and the end of the list shuffled."""

    def score(self, slates):
        return [self._score(len(slate.docs)) for slate in slates]

    def _score(self, count):
        order = -np.arange(count, dtype=float)
        order[[4, 5]] = order[[5, 4]]
        order[12:] = order[12:][::-1]
        return order


class Constant:
    def score(self, slates):
        return [np.zeros(len(slate.docs)) for slate in slates]


class Random:
    """Scores that depend on the texts, but not on their meaning."""

    pointwise = True

    def score(self, slates):
        return [np.array([hash_of(slate.query, doc.text) for doc in slate.docs]) for slate in slates]


def hash_of(*texts: str) -> float:
    from hashlib import blake2b

    return int.from_bytes(blake2b(repr(texts).encode(), digest_size=4).digest()) / 2**32


@pytest.fixture(scope="module")
def real() -> Verdict:
    """A real audit in which only ql is a ranker of its own."""
    rankers = {"bm25": "bm25", "ql": "ql", "noop": Noop(), "near": NearCopy(), "constant": Constant()}
    tasks = ["first-stage", "effectiveness", "variance", "query-typos(draws=1)"]
    return st.audit("sample", rankers | {"random": Random()}, tasks, runs=False).verdict


def list_failed(found: Verdict, rule: str) -> set[str]:
    return {one.ranker for one in found.gate_results if one.status == "fail" and one.rule == rule}


def test_useless_rankers_fail_the_default_gate(real):
    assert list_failed(real, HAS_OWN_ORDER) == {"noop", "near", "constant"}
    assert list_failed(real, NOT_BELOW_FIRST_STAGE) == {"constant", "random"}
    assert {one.ranker for one in real.gate_results} == {"ql", "noop", "near", "constant", "random"}
    assert not {one.status for one in real.gate_results if one.ranker == "ql"} & {"fail"}
    assert real.passed is False
    for name in ("noop", "near", "constant", "random"):
        assert "pass" not in statuses(real, name).values()
    assert statuses(real, "random")[EFFECTIVENESS] == "fail"
    assert real.ranker_verdicts[-1].role == "first stage"


def test_the_number_of_variance_is_always_the_difference_from_the_first_stage(real):
    """Without the first stage it was a share, and in the row of the first stage too."""
    cells = {one.ranker: one.facet_cells.get(VARIANCE) for one in real.ranker_verdicts}
    assert cells.pop("bm25") is None
    assert {cell.finding.name for cell in cells.values()} == {UNSERVED_INCREASE}
    assert "in the first ten, 20.0 % in all" in cells["ql"].measure
    alone = st.audit("sample", {"bm25": "bm25", "ql": "ql"}, ["variance"], runs=False).verdict
    assert VARIANCE not in alone.facets


def test_without_judgements_effectiveness_is_not_tested():
    collection = replace(st.load("sample", split="test"), qrels={})
    done = st.audit(collection, {"ql": "ql", "noop": Noop()}, ["first-stage", "query-typos(draws=1)"], runs=False)
    found = done.verdict
    assert list_failed(found, HAS_OWN_ORDER) == {"noop"}
    assert {one.status for one in found.gate_results if one.rule == NOT_BELOW_FIRST_STAGE} == {"not tested"}
    assert EFFECTIVENESS not in found.facets
    assert statuses(found, "ql")[TYPOS] in ("pass", "warn")
    assert found.ranker_verdicts[0].sentence.startswith("The effectiveness of ql was not tested")
    assert any("no judgements" in caution for caution in found.cautions)
