"""A budget limits the work of rankers, a plan uses it, and no facet passes on tests that were left out."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

import shaketable as st
from shaketable.api.audit import open_experiment, read_audit
from shaketable.api.planning.budget import parse_budget
from shaketable.api.planning.costs import estimate_costs, list_tests
from shaketable.api.planning.effort import FULL, LOW, MEDIUM, select_tasks
from shaketable.api.planning.pace import _build_key, list_costly_rankers, measure_pace
from shaketable.api.planning.plan import AuditPlan, _choose_tests, make_plan
from shaketable.api.planning.run import convert_budget, round_down
from shaketable.api.ranker_names import build_models
from shaketable.core.documents import Doc, Scores, Slate
from shaketable.core.errors import BadInput, LimitReached, NotComparable
from shaketable.core.registries import TASKS
from shaketable.core.results import Finding
from shaketable.experiment.sampling import SampleSizes
from shaketable.measures.facets import DOCUMENT_FORM, PROBES_FACET, TYPOS, WORDING, get_facet
from shaketable.measures.regression import restrict_to_common
from shaketable.measures.status import find_decided
from shaketable.report.scorecard import build_scorecards
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store
from shaketable.scoring.work_limit import WorkLimit
from tests.servers import Server, cohere, running

SOME_TASKS = ("effectiveness", "consistency", "query_typos", "document_form")


@dataclass
class Counting:
    """Scores by shared words, and counts the distinct pairs that it is asked for."""

    name: str = "counting"
    fingerprint: str | None = None
    pointwise: bool = True
    seen: set = field(default_factory=set)
    asked: int = 0

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        self.asked += sum(len(slate.docs) for slate in slates)
        self.seen |= {(slate.query, doc.text) for slate in slates for doc in slate.docs}
        return [np.array([count_shared(slate.query, doc.text) for doc in slate.docs]) for slate in slates]


def count_shared(query: str, text: str) -> float:
    words = text.lower().split()
    return sum(len(word) * words.count(word) for word in query.lower().split()) / (10 + len(words))


def run(ranker, budget, tasks=SOME_TASKS, **options):
    return st.audit("sample", {"bm25": "bm25", "counting": ranker}, tasks, budget=budget, runs=False, **options)


@pytest.fixture(scope="module")
def run_once(tmp_path_factory):
    """The audit of each budget, made once: all tests below read the same ones."""
    made = {}

    def get(budget):
        if budget not in made:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("SHAKETABLE_HOME", str(tmp_path_factory.mktemp("home")))
                ranker = Counting()
                made[budget] = run(ranker, budget), ranker.asked
        return made[budget]

    return get


def list_numbers(audit):
    return [(one.ranker, one.task, one.name, one.where, one.value, one.low, one.high, one.n) for one in audit.findings]


class TestBudget:
    @pytest.mark.parametrize(
        ("text", "kind", "amount"),
        [
            ("10m", "time", 600),
            ("90s", "time", 90),
            ("1.5h", "time", 5400),
            ("5 min", "time", 300),
            ("20000", "pairs", 20_000),
            ("20000 pairs", "pairs", 20_000),
            (20_000, "pairs", 20_000),
            ("$5", "money", 5),
            ("2.50 EUR", "money", 2.5),
            ("auto", "auto", 0),
            ("none", "none", 0),
            (None, "none", 0),
        ],
    )
    def test_forms(self, text, kind, amount):
        budget = parse_budget(text, price_per_1k=1.0)
        assert (budget.kind, budget.amount) == (kind, amount)

    @pytest.mark.parametrize("text", ["10x", "ten", "-5", "0", "0m", "1e5", "", "٣m", "5,000"])
    def test_other_texts_are_refused_with_examples(self, text):
        with pytest.raises(BadInput, match="a time such as 10m"):
            parse_budget(text)

    def test_money_needs_a_price(self):
        with pytest.raises(BadInput, match="--price-per-1k"):
            parse_budget("$5")

    def test_an_estimate_has_two_digits(self):
        assert [round_down(n) for n in (7399.9, 99.9, 100, 0.5)] == [7300, 99, 100, 0]


class TestLimit:
    def score(self, engine, ranker, count, start=0):
        slate = Slate("oak", tuple(Doc(f"oak {n}") for n in range(start, start + count)))
        return engine.score(ranker, [slate], ranker.name)

    def test_pairs_are_a_hard_limit_before_the_ranker_is_asked(self):
        engine = ScoringEngine(limit=WorkLimit(frozenset({"counting"}), max_pairs=10))
        ranker = Counting()
        self.score(engine, ranker, 7)
        with pytest.raises(LimitReached, match="needs 4 more pairs, and 3 are left"):
            self.score(engine, ranker, 11)
        assert ranker.asked == engine.limit.pairs == 7
        self.score(engine, ranker, 10)
        assert ranker.asked == 10

    def test_other_rankers_are_free(self):
        engine = ScoringEngine(limit=WorkLimit(frozenset({"another"}), max_pairs=1))
        self.score(engine, Counting(), 50)
        assert engine.limit.pairs == 0

    def test_pairs_on_disk_count_too_so_that_a_resumed_audit_stops_at_the_same_pairs(self, tmp_path):
        for _ in range(2):
            store = Store(tmp_path / "scores.sqlite")
            engine = ScoringEngine(store, limit=WorkLimit(frozenset({"counting"}), max_pairs=10))
            ranker = Counting(fingerprint="counting 1")
            self.score(engine, ranker, 8)
            assert engine.limit.pairs == 8
            with pytest.raises(LimitReached):
                self.score(engine, ranker, 4, start=100)
            store.close()
        assert ranker.asked == 0

    def test_after_the_deadline_no_request_starts(self):
        engine = ScoringEngine(limit=WorkLimit(frozenset({"counting"}), deadline_s=0.0))
        ranker = Counting()
        with pytest.raises(LimitReached, match="the time of the budget is over"):
            self.score(engine, ranker, 5)
        assert ranker.asked == 0


class TestSamples:
    def open(self, **options):
        return open_experiment("sample", build_models({"bm25": "bm25"}), **options)

    def test_small_samples_are_part_of_large_ones_and_do_not_depend_on_the_limit_of_others(self):
        experiment = self.open()
        before: set = set()
        for size in (5, 12, 30, 50):
            sizes = SampleSizes(by_test={(TYPOS, "1-char"): size})
            sample = set(experiment.with_sizes(sizes).sample_queries(TYPOS, "1-char"))
            assert before < sample
            assert len(sample) == size
            before = sample
        assert before == set(experiment.queries)

    def test_the_lists_use_the_same_order(self):
        experiment = self.open()
        assert set(replace(experiment, sample=12).queries) == set(experiment.query_order[:12])

    def test_another_seed_draws_other_queries(self):
        assert self.open(seed=1).query_order != self.open(seed=2).query_order

    def test_a_test_without_a_size_uses_all_queries(self):
        experiment = self.open().with_sizes(SampleSizes(by_test={(TYPOS, "1-char"): 5}))
        assert len(experiment.sample_queries(WORDING, "word")) == 50
        assert SampleSizes().is_complete
        assert not experiment.sizes.is_complete


class TestDecided:
    """An interim status needs much more evidence than the final one."""

    def make(self, name, value, low, high, n=24):
        return Finding("mine", name, value, low, high, n=n)

    def decide(self, *findings):
        return find_decided(findings, get_facet(TYPOS))

    def test_no_loss_at_all_is_a_pass(self):
        assert self.decide(self.make("drop(a)", 0.0, 0.0, 0.0)) == {"drop(a)": "pass"}

    def test_a_wide_interval_decides_nothing(self):
        # at 95 % the loss is below 20, at 99.9 % it is not
        assert self.decide(self.make("drop(a)", -4.0, -15.0, 7.0)) == {}
        assert self.decide(self.make("drop(a)", -4.0, -9.0, 1.0)) == {"drop(a)": "pass"}

    def test_a_warning_is_final_only_if_it_excludes_a_failure(self):
        assert self.decide(self.make("drop(a)", -12.0, -18.0, -6.0)) == {}
        assert self.decide(self.make("drop(a)", -10.0, -14.0, -6.0)) == {"drop(a)": "warn"}

    def test_few_queries_decide_nothing(self):
        assert self.decide(self.make("drop(a)", 0.0, 0.0, 0.0, n=19)) == {}


class TestPlan:
    def open(self, ranker=None, tasks=SOME_TASKS, **options):
        experiment = open_experiment("sample", build_models({"counting": ranker or Counting()}), **options)
        return experiment, [TASKS.build(task) for task in tasks]

    def plan(self, pairs, **options):
        experiment, tasks = self.open(**options)
        return make_plan(experiment, tasks, ["counting"], pairs, named=True)

    def test_a_larger_budget_never_has_less_effort_or_fewer_tests(self):
        plans = [self.plan(pairs) for pairs in (1_500, 4_000, 12_000, 200_000)]
        efforts = [("low", "medium", "full").index(plan.effort.name) for plan in plans]
        assert efforts == sorted(efforts)
        assert plans[-1].is_full
        assert plans[0].effort is LOW
        tests = [sum(map(bool, plan.sizes.values())) for plan in plans[:-1]]
        assert tests == sorted(tests)

    def test_planning_asks_the_ranker_for_nothing(self):
        ranker = Counting()
        self.plan(4_000, ranker=ranker)
        assert ranker.asked == 0

    def test_the_least_budget_that_the_error_names_works(self):
        with pytest.raises(BadInput, match="too small for one facet") as error:
            self.plan(50)
        least = int(str(error.value).rpartition("--budget ")[2].split()[0])
        assert any(self.plan(least).sizes.values())
        with pytest.raises(BadInput, match="too small"):
            self.plan(least // 2)

    def test_each_facet_gets_a_test_before_any_gets_two(self):
        experiment, tasks = self.open()
        costs = estimate_costs(experiment, tasks, LOW, 24, ["counting"], named=True)
        chosen = _choose_tests(costs.tasks, 1_200)
        taken = [facet for (facet, _), is_taken in chosen.items() if is_taken]
        counts = [taken.count(facet) for facet in {facet for facet, _ in chosen}]
        assert 0 < sum(counts) < len(chosen)
        assert max(counts) - min(counts) <= max(counts) - 1 or min(counts) == 0

    def test_the_lists_are_counted_apart_from_the_tests(self):
        experiment, tasks = self.open()
        costs = estimate_costs(experiment, tasks, LOW, 24, ["counting"], named=True)
        sampled = replace(experiment, sample=24, depth=LOW.select_depth(experiment))
        assert costs.lists == sum(map(len, sampled.candidates.values())) > 0
        assert costs.tests > costs.lists

    def test_the_plan_says_what_it_buys_and_what_does_not_fit(self):
        plan = AuditPlan(4_000, LOW, 20, 100, 24, {}, {(TYPOS, "a"): 24, (WORDING, "b"): 0})
        text = plan.describe()
        assert "The plan for 4,000 pairs, effort low" in text
        assert "Lists for 100 queries; 1 tests on 24 queries each" in text
        assert "known to ±20 points or better, with all 100 queries to ±10." in text
        assert text.endswith(" 1 of 2 tests do not fit and make their facets inconclusive.")
        assert "do not fit" not in replace(plan, sizes={(TYPOS, "a"): 24}).describe()
        assert replace(plan, effort=FULL).describe() == "The budget of 4,000 pairs covers the whole audit."

    def test_settings_of_the_user_are_kept(self):
        task = TASKS.build("query_typos(draws=3)")
        assert TASKS.spec(MEDIUM.reduce(task)).startswith(
            "query_typos(transforms=('char_noise', 'word_noise'), draws=3"
        )
        assert FULL.reduce(task) == task
        experiment, _ = self.open(depth=70)
        assert LOW.select_depth(experiment) == 70

    def test_fusion_is_left_out_unless_it_is_named(self):
        fusion = TASKS.build("fusion")
        assert fusion in select_tasks([fusion], MEDIUM, named=False)[1]
        assert fusion in select_tasks([fusion], MEDIUM, named=True)[0]
        assert fusion in select_tasks([fusion], FULL, named=False)[0]

    def test_only_tests_with_a_choice_of_queries_are_listed(self):
        findings = [Finding("a", "drop(x)", 1, facet=TYPOS), Finding("a", "nDCG@10", 1, facet="effectiveness")]
        assert list_tests([*findings, Finding("a", "drop(x)", 1, facet=TYPOS)]) == ((TYPOS, "x"),)


class TestAudit:
    @pytest.mark.parametrize("pairs", [1_200, 3_000, 9_000])
    def test_the_number_of_pairs_is_a_hard_limit(self, pairs, run_once):
        audit, asked = run_once(pairs)
        assert asked <= pairs
        assert audit.provenance["plan"]["used pairs"] <= pairs
        assert audit.provenance["plan"]["pairs"] == pairs

    def test_the_same_budget_gives_the_same_results_also_from_the_cache(self):
        first = run(Counting(fingerprint="planned 1"), 3_000)
        again = Counting(fingerprint="planned 1")
        assert list_numbers(run(again, 3_000)) == list_numbers(first)
        lists = 25 * 20 * 4  # consistency always asks again
        assert again.asked <= lists

    def test_what_is_left_out_cannot_pass(self, run_once):
        audit, _ = run_once(1_200)
        left_out = audit.provenance["plan"]["left out"]
        (verdict,) = (one for one in audit.verdict.ranker_verdicts if one.ranker == "counting")
        assert left_out
        for facet in left_out:
            if facet in verdict.facet_cells:
                assert verdict.facet_cells[facet].status != "pass"
        assert audit.verdict.outcome != "passed"

    def test_a_test_that_is_decided_asks_no_more_and_others_go_on(self, run_once):
        audit, _ = run_once(9_000)
        sizes = {one.name: one.n for one in audit.findings if one.ranker == "counting" and one.facet == DOCUMENT_FORM}
        assert min(sizes.values()) <= 24 < max(sizes.values())

    def test_no_limit_is_the_whole_audit(self, run_once):
        audit, _ = run_once(None)
        assert "plan" not in audit.provenance
        assert {one.n for one in audit.findings if one.name.startswith("drop(")} == {50}

    def test_audits_of_different_budgets_are_compared_on_their_common_queries(self, run_once):
        (few, _), (many, _) = run_once(3_000), run_once(3_600)
        assert few.provenance["plan"]["effort"] == many.provenance["plan"]["effort"]
        comparison = st.compare(few, many)
        deltas = [one for one in comparison.findings if one.old.facet == DOCUMENT_FORM]
        assert deltas
        assert all(one.before == one.after for one in deltas)

    def test_audits_of_different_efforts_are_not_comparable(self, run_once):
        (few, _), (whole, _) = run_once(3_000), run_once(None)
        with pytest.raises(NotComparable, match=r"effort|depth"):
            st.compare(few, whole)

    def test_the_settings_repeat_the_plan(self, tmp_path):
        spec = "tests.api.test_planning:SHARED"
        audit = st.audit("sample", {"bm25": "bm25", "counting": spec}, SOME_TASKS, budget=3_000, runs=False)
        assert audit.settings["budget"] == "3000"
        assert audit.settings["depth"] == 100
        audit.save(tmp_path / "audit")
        assert read_audit(tmp_path / "audit").provenance["plan"] == audit.provenance["plan"]


SHARED = Counting(name="shared")


class TestTime:
    """A time is converted into pairs once, by the stored pace of the ranker."""

    def open(self, pace, fingerprint):
        ranker = Counting(fingerprint=fingerprint)
        experiment = open_experiment("sample", build_models({"counting": ranker}))
        key = _build_key(experiment, "counting")
        experiment.engine.store.put([(key, struct.pack("<d", pace))])
        return experiment, ranker

    def convert(self, experiment, text):
        tasks = [TASKS.build(task) for task in SOME_TASKS]
        return convert_budget(experiment, tasks, parse_budget(text), ["counting"], True, None)

    def test_pairs_follow_from_the_pace(self):
        experiment, ranker = self.open(0.1, "paced 1")
        assert self.convert(experiment, "10m").max_pairs == 5_100
        assert ranker.asked == 0

    def test_without_a_budget_a_slow_ranker_gets_ten_minutes_and_a_fast_one_no_limit(self):
        slow, _ = self.open(0.1, "paced 2")
        assert self.convert(slow, "auto").max_pairs == 5_100
        fast, _ = self.open(1e-5, "paced 3")
        assert self.convert(fast, "auto").max_pairs == np.inf

    def test_the_pilot_scores_lists_that_the_audit_needs(self):
        ranker = Counting(fingerprint="piloted 1")
        experiment = open_experiment("sample", build_models({"counting": ranker}))
        pace = measure_pace(experiment, "counting")
        piloted = set(ranker.seen)
        assert pace > 0
        assert piloted
        experiment.get_run("counting")
        assert len(ranker.seen) == ranker.asked, "no pair is asked twice"
        assert measure_pace(experiment, "counting") == pace

    def test_lexical_rankers_and_run_files_do_not_count(self):
        experiment = open_experiment("sample", build_models({"bm25": "bm25", "counting": Counting()}))
        assert list_costly_rankers(experiment) == ["counting"]

    def test_a_time_that_is_over_leaves_facets_untested(self):
        with pytest.raises(BadInput, match=r"too small|no task fits"):
            run(Counting(fingerprint="late 1"), "0.001s")


@pytest.mark.slow
def test_money_is_a_hard_limit_on_requests():
    server = Server(cohere)
    with running(server):
        audit = st.audit(
            "sample",
            {"served": f"http(url={server.url!r}, model='rerank-1')"},
            ("consistency", "query_typos"),
            budget="$0.40",
            price_per_1k=2.0,
            runs=False,
        )
    assert "plan" in audit.provenance
    assert 50 < len(server.lists) <= 200


def test_findings_are_restricted_to_common_queries():
    old = Finding("a", "drop(x)", -10.0, values={"1": -20.0, "2": 0.0})
    new = Finding("a", "drop(x)", -10.0, values={"2": -4.0, "3": -16.0})
    assert [one.value for one in restrict_to_common(old, new)] == [0.0, -4.0]
    other = replace(new, value=3.0)  # not a mean, so it stays
    assert restrict_to_common(old, other) == (old, other)


def test_a_facet_with_tests_beyond_the_budget_is_inconclusive():
    finding = Finding("mine", "fooled(typos) %", 0.0, 0.0, 8.0, n=40, better="lower", facet=PROBES_FACET)
    assert build_scorecards([finding], ["mine"])["mine"].cells[PROBES_FACET].status == "pass"
    cell = build_scorecards([finding], ["mine"], left_out={PROBES_FACET: ["negation", "date"]})["mine"].cells
    assert cell[PROBES_FACET].status == "inconclusive"
    assert cell[PROBES_FACET].remark == "the budget leaves out 2 tests: negation and date"
