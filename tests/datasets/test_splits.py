"""Splits of queries: each query is in one part, and the same seed gives the same parts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.documents import Collection, Doc, Query
from shaketable.core.errors import BadInput
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.datasets.splits import (
    find_validation_split,
    make_folds,
    shuffle_queries,
    split_by_query,
    split_held_out,
)

IDS = st.lists(st.text(min_size=1, max_size=6), min_size=3, max_size=40, unique=True)


def collection(qids, judged=None) -> Collection:
    qrels = {qid: {"d": 1} for qid in (qids if judged is None else judged)}
    return Collection("toy", MemoryCorpus({"d": Doc("x")}), {qid: Query("x") for qid in qids}, qrels)


@given(IDS, st.integers(3, 8), st.integers(0, 5))
def test_folds(qids, k, seed):
    if k > len(qids):
        with pytest.raises(BadInput, match="cannot be split into"):
            make_folds(qids, k, seed)
        return
    dealt = make_folds(qids, k, seed)
    assert len(dealt) == k
    assert sorted(qid for fold in dealt for qid in fold.test) == sorted(qids), "each is tested on once"
    sizes = [len(fold.test) for fold in dealt]
    assert max(sizes) - min(sizes) <= 1
    for number, fold in enumerate(dealt):
        assert sorted((*fold.train, *fold.valid, *fold.test)) == sorted(qids)
        assert fold.valid == dealt[(number + 1) % k].test, "the next part validates"
        for part in (fold.train, fold.valid, fold.test):
            assert [qid for qid in qids if qid in set(part)] == list(part), "in the order of the queries"
    again = make_folds(qids[::-1], k, seed)
    assert [set(fold.test) for fold in again] == [set(fold.test) for fold in dealt], "where a query stands says nothing"


def test_folds_by_another_seed():
    qids = [f"q{i}" for i in range(20)]
    assert [set(fold.test) for fold in make_folds(qids, 5, 0)] != [set(fold.test) for fold in make_folds(qids, 5, 1)]
    with pytest.raises(BadInput, match="20 queries cannot be split into 2 folds"):
        make_folds(qids, 2)


@given(IDS, st.integers(0, 9), st.sampled_from(["60/20/20", "34/33/33", "0/0/100", "50/0/50", "98/1/1"]))
def test_a_cut(qids, seed, shares):
    whole = collection(qids)
    wanted = [int(part) for part in shares.split("/")]
    ends = [round(len(qids) * sum(wanted[:i]) / 100) for i in range(4)]
    if any(share and ends[i] == ends[i + 1] for i, share in enumerate(wanted)):
        with pytest.raises(BadInput, match="too few judged queries"):
            split_by_query(whole, shares, seed)
        return
    parts = split_by_query(whole, shares, seed).splits
    assert sorted(qid for part in parts.values() for qid in part) == sorted(qids)
    assert list(parts) == [name for name, share in zip(("train", "validation", "test"), wanted, strict=True) if share]
    for name, share in zip(("train", "validation", "test"), wanted, strict=True):
        assert abs(len(parts.get(name, ())) - share * len(qids) / 100) <= 1
    turned = split_by_query(collection(qids[::-1]), shares, seed).splits
    assert {name: set(part) for name, part in turned.items()} == {name: set(part) for name, part in parts.items()}


def test_a_cut_by_hand():
    qids = [f"q{i}" for i in range(10)]
    order = shuffle_queries(qids, 7)
    parts = split_by_query(collection(qids), "50/30/20", 7).splits
    assert {name: set(part) for name, part in parts.items()} == {
        "train": set(order[:5]),
        "validation": set(order[5:8]),
        "test": set(order[8:]),
    }


def test_only_judged_queries_are_dealt():
    parts = split_by_query(collection("abcdefgh", judged="aceg"), "50/25/25").splits
    assert sorted(qid for part in parts.values() for qid in part) == list("aceg")


@pytest.mark.parametrize(
    "shares",
    [
        "",
        "60/20",
        "60/20/20/0",
        "60/20/30",
        "-10/60/50",
        "60/40/0",
        "a/b/c",
        "60/20/20 ",
        "6e1/20/20",
        "½/½/99",
        "٦0/20/20",
        "9" * 5000,
    ],
)
def test_shares_that_are_none(shares):
    with pytest.raises(BadInput, match="a split ratio is three percentages that sum to 100"):
        split_by_query(collection("abcdef"), shares)


def test_too_few_queries_for_a_cut():
    with pytest.raises(BadInput, match=r"toy has too few judged queries \(2\) for 60/20/20"):
        split_by_query(collection("ab"), "60/20/20")
    with pytest.raises(BadInput, match="toy has too few judged queries"):
        split_by_query(replace(collection("ab"), qrels={}), "60/20/20")


@given(IDS, st.integers(0, 5))
def test_a_share_is_held_out(qids, seed):
    rest, held = split_held_out(qids, seed)
    assert len(held) == max(1, int(len(qids) * 0.2))
    assert sorted((*rest, *held)) == sorted(qids)
    assert [set(part) for part in split_held_out(qids[::-1], seed)] == [set(rest), set(held)]


def test_one_query_cannot_be_both():
    with pytest.raises(BadInput, match="1 queries are too few"):
        split_held_out(["q"], 0)


@pytest.mark.parametrize(
    ("names", "chosen"),
    [(("train", "dev", "validation"), "validation"), (("train", "dev"), "dev"), (("train", "test"), None), ((), None)],
)
def test_which_split_validates(names, chosen):
    assert find_validation_split(replace(collection("ab"), splits=dict.fromkeys(names, ("a",)))) == chosen
