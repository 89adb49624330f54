from __future__ import annotations

import math
from itertools import combinations, permutations

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.errors import BadInput
from shaketable.core.registries import MEASURES
from shaketable.measures.parsing import parse_change_measure
from shaketable.measures.rank_distance import LMD, LSD, RBO, RLSD, Kendall, Overlap, TopChange, drop_rate


def test_two_empty_lists_are_the_same():
    assert (Overlap().between([], []), RBO().between([], [])) == (1.0, 1.0)
    assert (Overlap().between([], ["a"]), RBO().between([], ["a"])) == (0.0, 0.0)


Deviation = LSD | RLSD | LMD

rankings = st.lists(st.sampled_from("abcdefghij"), unique=True)
scored = st.dictionaries(st.sampled_from("abcdefghij"), st.integers(0, 4).map(float))
same_documents = st.integers(2, 10).flatmap(
    lambda n: st.tuples(st.permutations("abcdefghij"[:n]), st.permutations("abcdefghij"[:n]))
)

# Paper 000, Tables 8 and 9: MRR@100 on the original queries, then on attacked ones, and the printed drop in percent.
ATTACKS = {
    "1-char": {
        "QL": (0.2221, 0.1540, -30.7),
        "BM25": (0.2612, 0.2004, -23.3),
        "Prank": (0.2311, 0.1839, -20.4),
        "RankSVM": (0.2535, 0.2008, -20.8),
        "LambdaMART": (0.2710, 0.2353, -13.2),
        "DSSM": (0.1220, 0.1210, -0.8),
        "DRMM": (0.1335, 0.0875, -34.5),
        "Conv-KNRM": (0.1716, 0.1526, -11.1),
        "Duet": (0.1392, 0.1315, -5.5),
        "BERT": (0.2798, 0.2026, -27.6),
        "ColBERT": (0.3360, 0.2605, -22.5),  # printed -26.1, which its own columns contradict
    },
    "2-char": {
        "QL": (0.2221, 0.1213, -45.4),
        "BM25": (0.2612, 0.1453, -44.4),
        "Prank": (0.2311, 0.1218, -47.3),
        "RankSVM": (0.2535, 0.1360, -46.4),
        "LambdaMART": (0.2710, 0.2100, -22.5),
        "DSSM": (0.1220, 0.1209, -0.9),
        "DRMM": (0.1335, 0.0828, -38.0),
        "Conv-KNRM": (0.1716, 0.1359, -20.8),
        "Duet": (0.1392, 0.1310, -5.9),
        "BERT": (0.2798, 0.1376, -50.8),
        "ColBERT": (0.3360, 0.1640, -51.2),
    },
    "word": {
        "QL": (0.2221, 0.1433, -35.5),
        "BM25": (0.2612, 0.1915, -26.7),  # printed -24.3, which its own columns contradict
        "Prank": (0.2311, 0.1976, -14.5),
        "RankSVM": (0.2535, 0.2184, -13.8),
        "LambdaMART": (0.2710, 0.2483, -8.4),
        "DSSM": (0.1220, 0.1208, -1.0),
        "DRMM": (0.1335, 0.0898, -32.7),
        "Conv-KNRM": (0.1716, 0.1528, -11.0),
        "Duet": (0.1392, 0.1325, -4.8),
        "BERT": (0.2798, 0.1931, -31.0),
        "ColBERT": (0.3360, 0.2221, -33.9),
    },
}

# The drop rates its text quotes from Tables 5 and 6: the ranker trained on the test set's own kind, then on another.
TRANSFERS = {
    "ColBERT, location to numeric": (0.325, 0.227, -30.2),
    "Conv-KNRM, MQ2007 to MS MARCO, MRR@100": (0.1716, 0.0278, -83.8),
    "Prank, MS MARCO to Robust04, MAP": (0.2186, 0.2162, -1.1),
    "RankSVM, MS MARCO to Robust04, P@20": (0.3760, 0.3860, 2.7),
    "Prank, MQ2007 to Robust04, NDCG@20": (0.4011, 0.4357, 8.6),
}


@pytest.mark.parametrize(("before", "after", "percent"), [row for table in ATTACKS.values() for row in table.values()])
def test_drop_rates_of_the_attack_tables(before: float, after: float, percent: float) -> None:
    assert 100 * drop_rate(before, after) == pytest.approx(percent, abs=0.051)


@pytest.mark.parametrize(("before", "after", "percent"), TRANSFERS.values(), ids=TRANSFERS)
def test_drop_rates_of_the_transfers(before: float, after: float, percent: float) -> None:
    assert 100 * drop_rate(before, after) == pytest.approx(percent, abs=0.051)


def test_nothing_to_lose() -> None:
    assert math.isnan(drop_rate(0.0, 0.1))


def test_top_change() -> None:
    assert TopChange().between(["a", "b"], ("a", "c")) == 0.0
    assert TopChange().between(["a"], []) == 1.0
    assert TopChange().between([], []) == 0.0


@given(same_documents)
def test_kendall_is_scipys_tau(pair: tuple[list[str], list[str]]) -> None:
    before, after = pair
    ranks = [[ranked.index(d) for d in sorted(before)] for ranked in (before, after)]
    assert Kendall().between(before, after) == pytest.approx((1 - scipy.stats.kendalltau(*ranks).statistic) / 2)


@given(scored, scored)
def test_kendall_of_scores_counts_pairs_strictly(before: dict[str, float], after: dict[str, float]) -> None:
    common = sorted(before.keys() & after.keys())
    pairs = list(combinations(common, 2))
    if pairs:
        discordant = sum((before[a] - before[b]) * (after[a] - after[b]) < 0 for a, b in pairs)
        assert Kendall().between(before, after) == pytest.approx(discordant / len(pairs))


@given(rankings, rankings)
def test_kendall_excludes_documents_of_one_list_only(before: list[str], after: list[str]) -> None:
    common = set(before) & set(after)
    if len(common) > 1:
        kept = ([d for d in ranked if d in common] for ranked in (before, after))
        assert Kendall().between(before, after) == Kendall().between(*kept)


def test_kendall_without_a_pair() -> None:
    assert Kendall().between(["a"], ["a"]) == 0.0
    assert Kendall().between([], []) == 0.0
    assert math.isnan(Kendall().between(["a", "b"], ["a", "c"]))


def test_rbo_by_hand() -> None:
    # agreements 0, 1/2, 2/3 at depths 1, 2, 3, and ever after; p = 1/2 gives weights 1/2, 1/4, 1/8 and 1/8 to the rest
    assert RBO(p=0.5).between("abc", "bda") == pytest.approx(0 / 2 + (1 / 2) / 4 + (2 / 3) / 8 + (2 / 3) / 8)
    # only the first rank differs, and its weight is 1 - p
    assert RBO(p=0.9).between("abcdefg", "bacdefg") == pytest.approx(0.9)
    assert RBO(p=0.9).between("abc", "abc") == 1.0
    assert RBO().between([], []) == 1.0
    assert RBO().between("abc", "xyz") == 0.0
    assert RBO().between("abc", []) == 0.0


def test_rbo_of_uneven_lists_by_hand() -> None:
    # after depth 1 the short list is taken to go on agreeing as it did: fully. X_2 = 1: (1 + 1) / 2 = 1
    assert RBO(p=0.5).between(["a"], ["a", "b"]) == pytest.approx(1.0)
    # a is met at depth 2 only: agreements 0, then 1/2 for ever
    assert RBO(p=0.5).between(["a"], ["b", "a"]) == pytest.approx(0.25)


@given(rankings, rankings, st.floats(0.1, 0.95))
def test_rbo_is_the_endless_sum_of_extrapolated_agreement(before: list[str], after: list[str], p: float) -> None:
    if not before or not after or before == after:
        return
    short, long = sorted((before, after), key=len)

    def count_shared(depth: int) -> int:
        return len(set(short[:depth]) & set(long[:depth]))

    def agreement(depth: int) -> float:
        depth = min(depth, len(long))
        unseen = max(depth - len(short), 0)
        return (count_shared(depth) + unseen * count_shared(len(short)) / len(short)) / depth

    endless = sum((1 - p) * p ** (d - 1) * agreement(d) for d in range(1, 400))
    assert RBO(p=p).between(before, after) == pytest.approx(endless, abs=1e-8)


@given(rankings, rankings)
def test_laws(before: list[str], after: list[str]) -> None:
    for measure in (TopChange(), RBO(), Overlap(k=3)):
        value = measure.between(before, after)
        assert -1e-12 <= value <= 1 + 1e-12
        assert value == pytest.approx(measure.between(after, before))
    assert [m.between(before, before) for m in (TopChange(), Kendall(), RBO(), Overlap())] == [0.0, 0.0, 1.0, 1.0]
    if len(before) > 1:
        assert Kendall().between(before, before[::-1]) == 1.0


def test_overlap_by_hand() -> None:
    assert Overlap(k=2).between("abc", "cab") == 0.5
    assert Overlap(k=10).between("abc", "cabd") == 0.75
    assert Overlap().between([], ["a"]) == 0.0


@pytest.mark.parametrize("text", ["rbo(p=0)", "rbo(p=1.0)", "overlap(k=0)"])
def test_a_parameter_out_of_range(text: str) -> None:
    with pytest.raises(BadInput, match="must"):
        MEASURES.build(text)


def test_deviations_by_hand() -> None:
    # ranks 1 2 3 4 become 2 4 1 3: moves of 1, 2, 2, 1
    before, after = "abcd", "cadb"
    assert LSD().between(before, after) == (1 + 4 + 4 + 1) / 4
    assert LMD().between(before, after) == (1 + 2 + 2 + 1) / 4
    assert RLSD().between(before, after) == pytest.approx(2.5 / ((16 - 1) / 3))


def test_one_document_from_the_last_to_the_first_place_of_a_hundred() -> None:
    # it moves 99 ranks, the 99 others one each
    before = [f"d{i}" for i in range(100)]
    after = [before[-1], *before[:-1]]
    assert LSD().between(before, after) == pytest.approx((99**2 + 99) / 100)
    assert LMD().between(before, after) == pytest.approx(2 * 99 / 100)
    assert RLSD().between(before, after) == pytest.approx(99 / 3333)


@given(same_documents)
def test_rlsd_is_spearmans_correlation(pair: tuple[list[str], list[str]]) -> None:
    before, after = pair
    ranks = [[ranked.index(d) for d in sorted(before)] for ranked in (before, after)]
    assert RLSD().between(before, after) == pytest.approx((1 - scipy.stats.spearmanr(*ranks).statistic) / 2)


@given(st.integers(2, 6))
def test_no_order_is_further_away_than_the_reverse(count: int) -> None:
    before = "abcdef"[:count]
    furthest = max(LSD().between(before, after) for after in permutations(before))
    assert furthest == pytest.approx((count**2 - 1) / 3) == LSD().between(before, before[::-1])
    assert RLSD().between(before, before[::-1]) == pytest.approx(1)


@pytest.mark.parametrize("measure", [LSD(), RLSD(), LMD()])
@given(before=rankings, after=rankings)
def test_deviations_exclude_documents_of_one_list_only(measure: Deviation, before: list[str], after: list[str]) -> None:
    common = set(before) & set(after)
    value = measure.between(before, after)
    if len(common) > 1:
        kept = ([d for d in ranked if d in common] for ranked in (before, after))
        assert value == measure.between(*kept)
        assert value == measure.between(after, before)
    else:
        assert math.isnan(value) == (set(before) != set(after))
    assert measure.between(before, before) == 0.0


@pytest.mark.parametrize("measure", [LSD(), RLSD(), LMD()])
def test_deviations_without_a_pair(measure: Deviation) -> None:
    assert measure.between([], []) == measure.between(["a"], ["a"]) == 0.0
    assert math.isnan(measure.between(["a", "b"], ["a", "c"]))
    assert math.isnan(measure.between(["a"], []))


@pytest.mark.parametrize(("text", "measure"), [("lsd", LSD()), ("rlsd", RLSD()), ("lmd", LMD())])
def test_deviations_have_names(text: str, measure: Deviation) -> None:
    assert parse_change_measure(text) == measure
    assert MEASURES.spec(measure) == text


@pytest.mark.parametrize("measure", [Kendall(), RBO(), LSD(), RLSD(), LMD()])
def test_a_document_may_stand_only_once(measure: Kendall | RBO | Deviation) -> None:
    with pytest.raises(BadInput, match="twice"):
        measure.between(["a", "b", "a"], ["a", "b"])


def test_big_lists_are_no_trouble() -> None:
    before = [f"d{i}" for i in range(5000)]
    assert Kendall().between(before, before[::-1]) == 1.0
