"""Before and after, by hand and against scipy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, ttest_rel

from shaketable.measures.paired_comparison import (
    EMPTY_COMPARISON,
    MOVEMENT_HEADINGS,
    Movement,
    add_significance_stars,
    compare_paired,
    mean_movement,
    mean_movement_intervals,
    measure_movement,
    query_means,
    weighted_mean,
)

BEFORE = {"a": 0.5, "b": 0.3, "c": 1.0, "d": 0.0}
AFTER = {"b": 0.1, "a": 0.5, "d": 0.2, "z": 9.0}


def test_queries_with_both_values_are_compared():
    found = compare_paired(BEFORE, AFTER)
    assert found.n == 3
    assert (found.before, found.after) == pytest.approx((0.8 / 3, 0.8 / 3))
    assert found.change == pytest.approx(0)
    assert found.drop == pytest.approx(0)
    assert found.p == pytest.approx(ttest_rel([0.5, 0.3, 0.0], [0.5, 0.1, 0.2]).pvalue)
    assert found.low <= found.change <= found.high


def test_the_sign_and_the_share_of_a_drop():
    found = compare_paired({"a": 0.4, "b": 0.8}, {"a": 0.2, "b": 0.7})
    assert found.change == pytest.approx(-0.15)
    assert found.drop == pytest.approx(-25)
    assert np.isnan(compare_paired({"a": 0.0}, {"a": 0.5}).drop), "there was nothing to lose a share of"


def test_nothing_in_common():
    assert compare_paired({"a": 1.0}, {"b": 1.0}) is EMPTY_COMPARISON
    assert compare_paired({}, {}).n == 0
    assert np.isnan(compare_paired({}, {}).change)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=30))
def test_swapping_before_and_after_changes_the_sign(pairs):
    left = {str(i): x for i, (x, _) in enumerate(pairs)}
    right = {str(i): y for i, (_, y) in enumerate(pairs)}
    there, back = compare_paired(left, right), compare_paired(right, left)
    assert there.change == pytest.approx(-back.change)
    assert there.p == pytest.approx(back.p, nan_ok=True)
    assert there.effect == pytest.approx(-back.effect, nan_ok=True)


def test_means_of_queries():
    assert query_means(["b", "a", "b", "b"], [1.0, 0.5, 0.0, 0.5]) == {"b": 0.5, "a": 0.5}
    assert list(query_means(["b", "a", "b"], [1, 2, 3])) == ["b", "a"], "in the order in which they come"
    assert query_means([], []) == {}
    with pytest.raises(ValueError, match="zip"):
        query_means(["a"], [1.0, 2.0])


class TestStars:
    FRAME = pd.DataFrame(
        {"ranker": list("abcd"), "p": [0.001, np.nan, 0.03, 0.04], "queries": [50, 50, 50, 5], "change": [1.0, 2, 3, 4]}
    )

    def test_holm_by_hand(self):
        table = add_significance_stars(self.FRAME)
        assert list(table.columns) == ["ranker", "p (Holm)", "", "queries", "change"]
        assert table["p (Holm)"].tolist()[0] == pytest.approx(0.003), "three tests, for NaN is none"
        assert table["p (Holm)"].tolist()[2:] == pytest.approx([0.06, 0.06])
        assert np.isnan(table["p (Holm)"][1])
        assert table[""].tolist()[0] != ""
        assert table[""].tolist()[1:] == ["", "", ""]
        assert "p" in self.FRAME, "the frame that was given stays as it is"

    def test_few_queries_have_no_star(self):
        assert add_significance_stars(self.FRAME.assign(queries=19))[""].tolist() == [""] * 4

    def test_other_corrections(self):
        assert add_significance_stars(self.FRAME, method="bonferroni")[
            "p (Bonferroni)"
        ].dropna().tolist() == pytest.approx([0.003, 0.09, 0.12])
        expected = false_discovery_control([0.001, 0.03, 0.04])
        found = add_significance_stars(self.FRAME, method="bh")["p (Benjamini-Hochberg)"].dropna()
        assert found.tolist() == pytest.approx(expected.tolist())

    def test_two_columns_have_two_headings(self):
        frame = self.FRAME.assign(**{"p (valid)": [0.0001, 0.5, 0.5, 0.5]})
        table = add_significance_stars(add_significance_stars(frame), "p (valid)")
        assert list(table.columns) == ["ranker", "p (Holm)", "", "queries", "change", "p (valid) (Holm)", " "]
        assert table[" "].tolist()[0] != ""

    def test_nothing_to_correct(self):
        empty = pd.DataFrame()
        assert add_significance_stars(empty).equals(empty)
        assert add_significance_stars(self.FRAME[:0]).empty


class TestMovement:
    def test_by_hand(self):
        before, after = ["a", "b", "c", "d"], ["c", "a", "b", "e"]
        moved = measure_movement(before, after)
        assert moved.top == 1
        assert moved.overlap == 3 / 4, "lists shorter than ten are compared as they are"
        assert moved.kendall == 2 / 3, "of ab, ac and bc the last two changed"
        assert moved.fall == 1

    def test_rank_biased_overlap_by_its_sum(self):
        p, a, b = 0.9, "abcd", "bacd"
        agreement = [len(set(a[:d]) & set(b[:d])) / d for d in range(1, 5)]
        expected = (1 - p) * sum(p ** (d - 1) * x for d, x in enumerate(agreement, 1)) + agreement[-1] * p**4
        assert measure_movement(list(a), list(b)).rbo == pytest.approx(expected)

    def test_nothing_moved(self):
        assert measure_movement(["a", "b"], ["a", "b"]) == Movement(0.0, 1.0, 1.0, 0.0, 0.0)

    def test_the_first_document_is_gone(self):
        assert measure_movement(["a", "b"], ["x", "y", "z"]).fall == 3

    @given(st.permutations(list("abcdefghijkl")))
    def test_a_list_of_the_same_documents(self, after):
        moved = measure_movement(list("abcdefghijkl"), after)
        pairs = [(x, y) for i, x in enumerate("abcdefghijkl") for y in "abcdefghijkl"[i + 1 :]]
        turned = sum(after.index(x) > after.index(y) for x, y in pairs)
        assert moved.kendall == pytest.approx(turned / len(pairs))
        assert moved.fall == after.index("a")
        assert moved.overlap == len(set("abcdefghij") & set(after[:10])) / 10
        assert moved.top == (after[0] != "a")

    def test_means_over_queries_of_means_over_cases(self):
        still, gone = Movement(0.0, 1.0, 1.0, 0.0, 0.0), Movement(1.0, 0.0, 0.0, float("nan"), 10.0)
        row = mean_movement(["a", "a", "b"], [still, gone, gone])
        assert row.keys() == set(MOVEMENT_HEADINGS.values())
        assert row["new first %"] == pytest.approx(75)
        assert row["overlap@10"] == pytest.approx(0.25)
        assert row["fall of first"] == pytest.approx(7.5)
        assert row["Kendall distance"] == 0, "where there are no common pairs, nothing is known"
        assert all(np.isnan(value) for value in mean_movement([], []).values())


FIRST, SECOND = ({f"q{i}": float(v) for i, v in enumerate(np.random.default_rng(seed).random(12))} for seed in (3, 4))


class TestWeights:
    def test_equal_weights_change_nothing(self):
        plain = compare_paired(FIRST, SECOND)
        weighed = compare_paired(FIRST, SECOND, weights=dict.fromkeys(FIRST, 7.0))
        for name in ("n", "before", "after", "change", "low", "high", "p", "effect"):
            assert getattr(weighed, name) == pytest.approx(getattr(plain, name)), name

    def test_a_whole_weight_is_as_many_copies_for_the_means(self):
        weights = {qid: float(1 + i % 4) for i, qid in enumerate(FIRST)}
        copies = [(qid, k) for qid, w in weights.items() for k in range(int(w))]
        weighed = compare_paired(FIRST, SECOND, weights=weights)
        assert weighed.before == pytest.approx(np.mean([FIRST[qid] for qid, _ in copies]))
        assert weighed.change == pytest.approx(np.mean([SECOND[q] - FIRST[q] for q, _ in copies]))
        repeated = compare_paired({f"{q}-{k}": FIRST[q] for q, k in copies}, {f"{q}-{k}": SECOND[q] for q, k in copies})
        assert weighed.p > repeated.p, "a query that was asked twice is no second query"
        assert weighed.high - weighed.low > repeated.high - repeated.low

    def test_a_query_of_almost_all_weight_decides_and_is_no_evidence(self):
        weights = dict.fromkeys(FIRST, 1e-6) | {"q0": 1.0}
        found = compare_paired(FIRST, SECOND, weights=weights)
        assert found.change == pytest.approx(SECOND["q0"] - FIRST["q0"], abs=1e-4)
        mean = weighted_mean(FIRST, weights=weights)
        assert mean.value == pytest.approx(FIRST["q0"], abs=1e-4)
        assert mean.low <= mean.value <= mean.high

    def test_movement_is_weighed(self):
        moved = [measure_movement("ab", "ab"), measure_movement("ab", "ba")]
        assert mean_movement(["q1", "q2"], moved, {"q1": 3.0, "q2": 1.0})["new first %"] == 25
        found = mean_movement_intervals(["q1", "q2"], moved, 0, {"q1": 3.0, "q2": 1.0})["new first %"]
        assert (found.value, found.n) == (25, 2)
        assert mean_movement_intervals(["q1"], [measure_movement("a", "b")])["Kendall distance"].n == 0

    def test_the_interval_of_a_weighted_mean_catches_it(self):
        """Ratio means of 30 queries drawn from a known population: about 95 of 100 intervals hold it."""
        rng = np.random.default_rng(5)
        held = 0
        for trial in range(200):
            weights = rng.geometric(0.3, 30).astype(float)
            values = rng.normal(0.5 + 0.05 * np.minimum(weights, 5), 0.2)
            found = weighted_mean(
                dict(zip(map(str, range(30)), values.tolist(), strict=True)),
                trial,
                dict(zip(map(str, range(30)), weights.tolist(), strict=True)),
            )
            held += found.low <= TRUTH <= found.high
        assert 0.9 <= held / 200 <= 0.99


def _truth() -> float:
    """E[w x] / E[w] for w geometric(0.3) and E[x | w] = 0.5 + 0.05 min(w, 5)."""
    w = np.arange(1, 200)
    share = 0.3 * 0.7 ** (w - 1)
    return float((share * w * (0.5 + 0.05 * np.minimum(w, 5))).sum() / (share * w).sum())


TRUTH = _truth()
