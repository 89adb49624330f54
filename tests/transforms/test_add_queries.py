"""Sampled queries: their distribution, independence from other texts, and the transform that appends them."""

# ruff: noqa: E402
from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from shaketable.core.protocols import TransformContext
from shaketable.core.seeding import make_item_rng
from shaketable.testing import check_transform
from shaketable.transforms import add_queries
from shaketable.transforms.add_queries import AddQueries, QuerySampler, _SeededTopKSampling
from shaketable.transforms.generated import open_generator
from tests.rankers.neural import tiny

TEXTS = ["an old oak, a young oak", "pine", "", " ", "elm fir yew " * 30, "pine"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tiny.t5(tmp_path_factory.mktemp("t5"))


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Random models never come to an end by themselves."""
    monkeypatch.setattr(add_queries, "MAX_QUERY_TOKENS", 8)
    open_generator.cache_clear()


@pytest.fixture
def sampler(folder) -> QuerySampler:
    loaded = open_generator(str(folder))
    return QuerySampler(loaded.model, loaded.tokenizer)


def test_samples_follow_the_ten_likeliest_pieces(folder, sampler):
    """The first piece of 2,000 samples, against the distribution that the model itself gives."""
    tokenizer, model = sampler.tokenizer, sampler.model
    inputs = tokenizer("an old oak", return_tensors="pt")
    with torch.inference_mode():
        logits = model(**inputs, decoder_input_ids=torch.tensor([[0]])).logits[0, 0].double()
    likeliest = logits.argsort(descending=True)[:10]
    shares = (logits[likeliest].exp() / logits[likeliest].exp().sum()).numpy()
    draws = torch.from_numpy(np.random.default_rng(0).random((2000, 1)))
    left = _SeededTopKSampling(draws)(torch.zeros(2000, 1), logits.float().expand(2000, -1))
    assert (left.isfinite().sum(1) == 1).all()
    counts = Counter(left.argmax(1).tolist())
    assert set(counts) <= set(likeliest.tolist())
    found = np.array([counts[piece] / 2000 for piece in likeliest.tolist()])
    assert np.abs(found - shares).max() < 4 * np.sqrt(0.25 / 2000)
    assert shares.max() < 0.9, "or there is nothing to sample"


def test_a_number_falls_on_its_piece():
    scores = torch.tensor([[0.0, np.log(2.0), np.log(5.0)]]).float()  # shares 1/8, 2/8, 5/8; likeliest first
    for drawn, piece in ((0.0, 2), (0.62, 2), (0.63, 1), (0.87, 1), (0.88, 0), (0.999999, 0)):
        assert _SeededTopKSampling(torch.tensor([[drawn]]))(torch.zeros(1, 1), scores).argmax().item() == piece


def test_queries_depend_on_the_text_alone(sampler, monkeypatch):
    together = sampler.sample_queries(TEXTS, 3)
    assert [len(some) for some in together] == [3, 3, 0, 0, 3, 3]
    assert together[1] == together[5]
    assert len(set(together[0])) > 1, "samples differ"
    assert together == [sampler.sample_queries([text], 3)[0] for text in TEXTS]
    assert together[::-1] == sampler.sample_queries(TEXTS[::-1], 3)
    monkeypatch.setattr(add_queries, "BATCH_TEXTS", 1)
    assert together == sampler.sample_queries(TEXTS, 3)
    assert [some[:2] for some in together] == sampler.sample_queries(TEXTS, 2), "asking for more keeps the first ones"
    assert QuerySampler(sampler.model, sampler.tokenizer, seed=1).sample_queries(TEXTS, 3) != together


def test_the_global_generator_is_left_alone(sampler):
    torch.manual_seed(4)
    expected = torch.rand(1)
    torch.manual_seed(4)
    sampler.sample_queries(["oak"], 2)
    assert torch.equal(torch.rand(1), expected)


def test_the_transform_appends_the_sampled_queries(folder, sampler):
    edit = AddQueries(str(folder), n=2)
    (queries,) = sampler.sample_queries(["pine"], 2)
    assert edit.apply("pine", make_item_rng(0), TransformContext()) == f"pine {queries[0]} {queries[1]}"
    assert edit.apply(" ", make_item_rng(0), TransformContext()) is None
    check_transform(edit, ["", "pine", "an old oak", "\ud800 half", "x" * 3000, "café — 東京"], n_draws=2)
