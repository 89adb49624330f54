"""Duet: the local matrix by hand, both networks against loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from shaketable.core.errors import BadInput
from shaketable.nlp.analyzer import Analyzer
from shaketable.rankers.neural.duet import Duet
from shaketable.rankers.neural.shapes import DuetShape
from shaketable.rankers.neural.words import Vocabulary, letter_trigrams, match_words
from tests.toys import WORDS

SHAPE = DuetShape(filters=3, local=4, distributed=5, pool=2, query_length=4, text_length=8)


def toy(shape: DuetShape = SHAPE) -> Duet:
    torch.manual_seed(5)
    return Duet(Vocabulary(tuple(WORDS), Analyzer(stemmer="none")), 6, shape).eval()


def numbers(module: torch.nn.Module) -> list[np.ndarray]:
    return [p.detach().numpy() for p in module.parameters()]


def mlp(module: torch.nn.Module, x: np.ndarray) -> float:
    w1, b1, w2, b2 = numbers(module)
    return float((w2 @ np.tanh(w1 @ x + b1) + b2)[0])


def test_the_local_matrix_by_hand():
    net = toy()
    batch = net.collate(net.prepare([("oak baobab elm", "elm oak ash baobab oak")]))
    assert batch["query"].shape == (1, 4)
    assert batch["text"].shape == (1, 8)
    matches = match_words(**batch)[0].T.int().tolist()  # a row for each word of the text
    assert matches == [
        [0, 0, 1, 0],
        [1, 0, 0, 0],
        [0, 0, 0, 0],
        [0, 1, 0, 0],
        [1, 0, 0, 0],
        [0, 0, 0, 0],
        [0, 0, 0, 0],
        [0, 0, 0, 0],
    ]
    weight, bias = numbers(net.columns)  # each filter sees a whole column: one word of the query, all of the text
    columns = np.tanh(weight[:, :, 0] @ np.array(matches) + bias[:, None])
    assert net.score_local(**batch).item() == pytest.approx(mlp(net.local, columns.reshape(-1)), abs=1e-6)


def test_the_distributed_network_by_hand():
    net = toy()
    batch = net.collate(net.prepare([("oak fir elm", "elm oak ash pine oak yew")]))

    def convolve(module: torch.nn.Module, ids: torch.Tensor) -> np.ndarray:
        rows, (weight, bias) = net.look_up_vectors(ids)[0].detach().numpy(), numbers(module)
        return np.tanh(
            [bias + sum(weight[:, :, j] @ rows[i + j] for j in range(3)) for i in range(len(rows) - 2)]
        )  # [places, filters]

    (w, b), (v, c) = numbers(net.query_dense), numbers(net.text_dense)
    about = np.tanh(w @ convolve(net.query_grams, batch["query"]).max(0) + b)
    pooled = convolve(net.text_grams, batch["text"]).reshape(3, 2, 3).max(1)  # windows of two
    parts = np.tanh(pooled @ v[:, :, 0].T + c)
    expected = mlp(net.distributed, (about[:, None] * parts.T).reshape(-1))
    assert net.score_distributed(**batch).item() == pytest.approx(expected, abs=1e-6)
    assert net(**batch).item() == pytest.approx(expected + net.score_local(**batch).item(), abs=1e-6)


def make_trigram_net(shape: DuetShape = SHAPE) -> Duet:
    torch.manual_seed(5)
    known = tuple(sorted({trigram for word in WORDS for trigram in letter_trigrams(word)}))
    return Duet(Vocabulary(known, Analyzer(stemmer="none")), 0, replace(shape, input="trigrams")).eval()


def test_on_trigrams_the_convolution_is_over_vectors_of_unit_length():
    """Each word as the long vector of the paper, and torch's own convolution over three of them."""
    net = make_trigram_net()
    trigrams, filters = len(net.vocabulary) + 2, SHAPE.filters
    pairs = [("oak fir elm elm", "elm oakk ash pine oak yew"), ("", "zebra"), ("wilow oak", "")]
    batch = net.collate(net.prepare(pairs))

    def wide(text: str, length: int) -> torch.Tensor:
        rows = torch.zeros(length, trigrams)
        for place, word in enumerate(text.split()):
            for trigram in letter_trigrams(word):
                rows[place, net.vocabulary.numbers.get(trigram, trigrams - 1)] += 1
        return torch.nn.functional.normalize(rows, dim=1)

    for side, texts, length in (("query", [q for q, _ in pairs], 4), ("text", [t for _, t in pairs], 8)):
        first = 0 if side == "query" else 3 * filters
        table = net.words.weight.detach()[:, first : first + 3 * filters].view(trigrams, 3, filters)
        bias = getattr(net, f"{side}_bias")
        rows = torch.stack([wide(text, length) for text in texts])
        expected = torch.conv1d(rows.transpose(1, 2), table.permute(2, 0, 1), bias)  # weights: [filters, trigrams, 3]
        letters = {key: value for key, value in batch.items() if key not in ("query", "text")}
        torch.testing.assert_close(net._convolve_trigrams(batch[side], side, letters), expected, atol=1e-6, rtol=1e-5)


def test_on_trigrams_the_whole_by_hand():
    net = make_trigram_net()
    batch = net.collate(net.prepare([("oak fir elm", "elm oakk ash pine oak yew")]))
    letters = {key: value for key, value in batch.items() if key not in ("query", "text")}
    sides = [net._convolve_trigrams(batch[side], side, letters)[0] for side in ("query", "text")]
    asked, read = (np.tanh(side.detach().numpy()) for side in sides)
    (w, b), (v, c) = numbers(net.query_dense), numbers(net.text_dense)
    about = np.tanh(w @ asked.max(1) + b)
    parts = np.tanh(v[:, :, 0] @ read.reshape(3, 3, 2).max(2) + c[:, None])
    expected = mlp(net.distributed, (about[:, None] * parts).reshape(-1))
    assert net.score_distributed(**batch).item() == pytest.approx(expected, abs=1e-6)
    assert match_words(batch["query"], batch["text"])[0, 0].tolist()[:6] == [False, False, False, False, True, False]
    assert net(**batch).item() == pytest.approx(
        expected + net.score_local(batch["query"], batch["text"]).item(), abs=1e-6
    )


def test_a_misspelt_word_is_nothing_as_a_word_and_nearly_itself_as_letters():
    text = "ash hazel willow yew"
    right, wrong = "hazel willow yew", "hazel wilow yew"
    plain, letters = toy(), make_trigram_net()
    assert not plain.look_up_vectors(plain.collate(plain.prepare([(wrong, text)]))["query"])[0, 1].any()

    def convolve_query(query: str) -> torch.Tensor:
        batch = letters.collate(letters.prepare([(query, text)]))
        return letters._convolve_trigrams(batch.pop("query"), "query", batch)[0].flatten()

    near = torch.cosine_similarity(convolve_query(right), convolve_query(wrong), dim=0)
    far = torch.cosine_similarity(convolve_query(right), convolve_query("hazel xyz yew"), dim=0)
    assert near > far + 0.1


def test_on_trigrams_gradients_reach_every_parameter_and_batches_do_not_show():
    net = make_trigram_net()
    pairs = [("oak", "oak elm"), ("", ""), ("fir elm", "yew " * 30), ("x" * 500, "oak")]
    with torch.no_grad():
        together = net(**net.collate(net.prepare(pairs)))
        alone = [net(**net.collate(net.prepare([pair]))).item() for pair in pairs]
    assert together.tolist() == pytest.approx(alone, abs=1e-6)
    assert [row.truncated for row in net.prepare(pairs)] == [False, False, True, False]
    net.train()
    net(**net.collate(net.prepare(pairs))).sum().backward()
    assert all(weight.grad is not None for weight in net.parameters())
    assert net.embedding().weight.grad.abs().sum() > 0


def test_another_input_is_refused():
    with pytest.raises(BadInput, match="input should be words or trigrams, not 'letters'"):
        toy(DuetShape(input="letters"))


def test_parameters():
    local = (8 * 3 + 3) + (3 * 4 * 4 + 4) + (4 + 1)
    distributed = 2 * (6 * 3 * 3 + 3) + 2 * (3 * 3 + 3) + (3 * 3 * 5 + 5) + (5 + 1)
    assert sum(p.numel() for p in toy().parameters()) == (len(WORDS) + 1) * 6 + local + distributed


def test_limits_that_are_too_short_are_refused():
    with pytest.raises(BadInput, match="a query needs at least 3 words and a text at least 10"):
        toy(DuetShape(query_length=2))
