"""The engine: batches keep to the budget and do not show, memory that runs out is survived, texts are read once."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.documents import Doc, Slate
from shaketable.core.errors import BadInput, RankerFailed
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.rankers.neural import scoring
from shaketable.rankers.neural.bert import CrossEncoder
from shaketable.rankers.neural.colbert import ColBERT
from shaketable.rankers.neural.dense import BiEncoder
from shaketable.rankers.neural.scoring import (
    DenseRanker,
    EncoderRanker,
    NeuralRanker,
    make_batches,
    make_ranker,
    split_windows,
)
from shaketable.rankers.neural.shapes import BertShape, ColBERTShape, DenseShape
from shaketable.rankers.neural.text_cache import ArrayCache
from tests.rankers.neural import tiny
from tests.toys import slates, text

MIXED = [Slate(text(q, 2), tuple(Doc(text(d, 1 + (7 * d) % 45)) for d in range(q, 20))) for q in range(6)]


def nets(folder):
    return {
        "bert": CrossEncoder.from_checkpoint(str(tiny.bert(folder / "bert")), BertShape(max_length=0)),
        "colbert": ColBERT.from_checkpoint(
            str(tiny.encoder(folder / "encoder")), ColBERTShape(dim=8, query_length=12, text_length=40)
        ),
        "dense": BiEncoder.from_checkpoint(str(folder / "encoder"), DenseShape(max_length=0)),
    }


@pytest.fixture(scope="module")
def rankers(tmp_path_factory):
    made = nets(tmp_path_factory.mktemp("nets"))
    return lambda kind, **rest: make_ranker(kind, "mark", made[kind], MemoryCorpus({}), **rest)


KINDS = pytest.mark.parametrize("kind", ["bert", "colbert", "dense"])


def same(kind, left, right):
    """Within 1e-6. ColBERT adds up as many cosines as a query has tokens, so there it is 1e-6 of the score."""
    for a, b in zip(left, right, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6 if kind == "colbert" else 0, atol=1e-6)


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(1, 200))
def test_batches_hold_every_row_once_and_keep_to_the_budget(lengths, budget):
    parts = list(make_batches(lengths, budget))
    assert sorted(i for part in parts for i in part) == list(range(len(lengths)))
    for part in parts:
        assert len(part) == 1 or len(part) * max(1, *(lengths[i] for i in part)) <= budget
    assert [lengths[i] for part in parts for i in part] == sorted(lengths, reverse=True)


def test_windows_follow_the_order_and_never_cut_a_slate(monkeypatch):
    monkeypatch.setattr(scoring, "TEXTS_PER_WINDOW", 25)
    parts = list(split_windows(MIXED))
    assert [slate for part in parts for slate in part] == MIXED
    assert [sum(len(slate.docs) for slate in part) for part in parts] == [20, 19, 18, 17, 16, 15]
    assert [len(part) for part in split_windows(slates(5, 10))] == [2, 2, 1]


@KINDS
@pytest.mark.parametrize("budget", [1, 100, 700])
def test_scores_do_not_depend_on_the_batch(rankers, kind, budget):
    whole, small = rankers(kind), rankers(kind)
    small.budget = budget
    same(kind, expected := whole.score(MIXED), small.score(MIXED))
    assert min(np.ptp(scores) for scores in expected) > 1e-3


def test_scores_of_real_weights_do_not_depend_on_the_batch(minilm):
    torch.manual_seed(1)
    lake = "A lake is a body of water surrounded by land, often fed by a river. "
    pairs = Slate("what is a lake", tuple(Doc(lake * n) for n in (0, 1, 2, 3, 7, 12)))
    for net in (
        CrossEncoder.from_checkpoint("minilm", BertShape(max_length=0), fresh=True),
        ColBERT.from_checkpoint("minilm", ColBERTShape()),
    ):
        whole, single = (make_ranker("minilm", "mark", net, MemoryCorpus({})) for _ in range(2))
        single.batch_tokens = 1
        same(net.kind, whole.score([pairs]), single.score([pairs]))


@KINDS
def test_windows_do_not_show(rankers, kind, monkeypatch):
    expected = rankers(kind).score(MIXED)
    monkeypatch.setattr(scoring, "TEXTS_PER_WINDOW", 7)
    same(kind, expected, rankers(kind).score(MIXED))


class Scarce:
    """A net on a machine whose memory holds `limit` tokens a batch, with the errors of torch."""

    def __init__(self, ranker: NeuralRanker, limit: int, error: Exception):
        self.limit, self.error, self.call, self.sizes = limit, error, ranker._run_forward, []
        ranker._run_forward = self

    def __call__(self, function, batch):
        rows = next(iter(batch.values()))
        if rows.numel() > self.limit:
            raise self.error
        self.sizes.append(len(rows))
        return self.call(function, batch)


FULL = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    RuntimeError("[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate memory: you tried to ..."),
    MemoryError(),
]


@KINDS
@pytest.mark.parametrize("error", FULL, ids=lambda error: type(error).__name__)
def test_a_batch_that_does_not_fit_in_memory_is_split(rankers, kind, error):
    ranker = rankers(kind)
    expected = rankers(kind).score(MIXED)
    scarce = Scarce(ranker, 150, error)
    same(kind, expected, ranker.score(MIXED))
    assert ranker.batch_tokens < scoring.TOKENS_PER_BATCH["cpu"]
    assert max(scarce.sizes) > 1


@KINDS
def test_a_single_text_that_does_not_fit_in_memory(rankers, kind):
    ranker = rankers(kind)
    Scarce(ranker, 2, FULL[0])
    with pytest.raises(RankerFailed, match=rf"ranker {kind}: memory is too small for a text of \d+ tokens alone"):
        ranker.score(MIXED)


def test_other_errors_are_not_mistaken_for_it(rankers):
    ranker = rankers("bert")
    Scarce(ranker, 2, RuntimeError("shapes do not match"))
    with pytest.raises(RuntimeError, match="shapes do not match"):
        ranker.score(MIXED)


@pytest.mark.parametrize("kind", ["colbert", "dense"])
def test_each_distinct_query_and_text_is_encoded_once(rankers, kind, monkeypatch):
    ranker = rankers(kind)
    read: Counter[str] = Counter()
    for side in ("prepare_queries", "prepare_texts"):
        prepare = getattr(ranker.net, side)
        monkeypatch.setattr(ranker.net, side, lambda texts, prepare=prepare: read.update(texts) or prepare(texts))
    first = ranker.score(MIXED)
    ranker.score(MIXED[::-1])
    assert set(read.values()) == {1}
    assert len(read) == len({slate.query for slate in MIXED} | {doc.text for slate in MIXED for doc in slate.docs})
    for a, b in zip(first, ranker.score(MIXED), strict=True):
        assert a.tolist() == b.tolist()


def test_texts_are_tokenised_once(rankers, monkeypatch):
    net = rankers("bert").net
    read: Counter[str] = Counter()
    tokenizer = net._pieces.tokenizer
    monkeypatch.setattr(net._pieces, "tokenizer", lambda texts, **rest: read.update(texts) or tokenizer(texts, **rest))
    pairs = [(f"ash {q}", f"fir number {d}") for q in range(3) for d in range(4)]
    net.prepare(pairs)
    net.prepare(pairs)
    assert set(read.values()) == {1}
    assert len(read) == 7


def test_memory_is_bounded_and_some_of_a_long_round_is_always_there():
    memory: ArrayCache[np.ndarray] = ArrayCache(max_bytes=50 * 108)
    made: Counter[str] = Counter()

    def make(texts):
        made.update(texts)
        return [np.full(25, float(key), np.float32) for key in texts]

    texts = [f"{i:08}" for i in range(60)]
    for _ in range(10):  # a cache that gives up the oldest would make all 60 each time
        assert [array[0] for array in memory.get_or_make(texts, make)] == list(range(60))
    for text_ in texts:
        (array,) = memory.get_or_make([text_], make)
        assert array[0] == float(text_)
    assert memory.size_bytes == len(memory) * 108 <= memory.max_bytes
    assert made.total() < 0.6 * 11 * 60


def test_arrays_larger_than_the_cache_are_returned_uncached():
    memory: ArrayCache[np.ndarray] = ArrayCache(max_bytes=10)
    assert memory.get_or_make(["a", "a"], lambda texts: [np.zeros(100)])[1].shape == (100,)
    assert (len(memory), memory.size_bytes) == (0, 0)


def test_every_net_gets_the_ranker_that_suits_it(rankers):
    assert {kind: type(rankers(kind)) for kind in ("bert", "colbert", "dense")} == {
        "bert": NeuralRanker,
        "colbert": EncoderRanker,
        "dense": DenseRanker,
    }
    assert not hasattr(rankers("colbert"), "search")


@KINDS
def test_mixed_precision_is_near_and_has_a_fingerprint_of_its_own(rankers, kind):
    exact, mixed = rankers(kind), rankers(kind, precision="bfloat16")
    assert exact.fingerprint != mixed.fingerprint
    for a, b in zip(exact.score(MIXED), mixed.score(MIXED), strict=True):
        np.testing.assert_allclose(a, b, rtol=0.1, atol=0.1)
        assert not np.array_equal(a, b)


def test_scoring_leaves_a_net_trainable(rankers):
    net = rankers("bert").net
    assert all(weight.requires_grad for weight in net.parameters())


def test_an_unknown_precision_is_refused(rankers):
    with pytest.raises(BadInput, match="precision should be float32 or bfloat16 or float16, not 'int8'"):
        rankers("bert", precision="int8")


@pytest.mark.parametrize("checkpoint", [tiny.bert, tiny.roberta])
def test_features_are_the_input_of_the_last_layer(tmp_path, checkpoint):
    net = CrossEncoder.from_checkpoint(str(checkpoint(tmp_path / "net")), BertShape(max_length=0))
    ranker = make_ranker("bert", "mark", net, MemoryCorpus({}))
    pairs = [(slate.query, doc.text) for slate in MIXED for doc in slate.docs]
    found = ranker.represent_pairs(pairs)
    assert found.shape == (len(pairs), scoring.find_score_layer(net).in_features)
    with torch.inference_mode():
        scores = scoring.find_score_layer(net)(torch.from_numpy(found))[:, 0].numpy()
    np.testing.assert_allclose(scores, np.concatenate(ranker.score(MIXED)), atol=1e-6)
    assert ranker.represent_pairs([]).shape == (0, found.shape[1])
    assert not scoring.find_score_layer(net)._forward_pre_hooks, "nothing is left behind"


@pytest.mark.parametrize("kind", ["colbert", "dense"])
def test_nets_that_compare_vectors_have_no_features(rankers, kind):
    assert rankers(kind).represent_pairs([("tea", "green tea")]) is None
