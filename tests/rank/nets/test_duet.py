"""Duet: the local matrix by hand, both networks against loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from shaketable.errors import BadInput
from shaketable.rank.nets.duet import Duet, Shape
from shaketable.rank.nets.words import Vocabulary, same_words
from shaketable.text.tokens import Tokenizer
from tests.toys import WORDS

SHAPE = Shape(filters=3, local=4, distributed=5, pool=2, query_length=4, text_length=8)


def toy(shape: Shape = SHAPE) -> Duet:
    torch.manual_seed(5)
    return Duet(Vocabulary(tuple(WORDS), Tokenizer(stemmer="none")), 6, shape).eval()


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
    matches = same_words(**batch)[0].T.int().tolist()  # a row for each word of the text
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
    assert net.locally(**batch).item() == pytest.approx(mlp(net.local, columns.reshape(-1)), abs=1e-6)


def test_the_distributed_network_by_hand():
    net = toy()
    batch = net.collate(net.prepare([("oak fir elm", "elm oak ash pine oak yew")]))

    def convolved(module: torch.nn.Module, ids: torch.Tensor) -> np.ndarray:
        rows, (weight, bias) = net.vectors(ids)[0].detach().numpy(), numbers(module)
        return np.tanh(
            [bias + sum(weight[:, :, j] @ rows[i + j] for j in range(3)) for i in range(len(rows) - 2)]
        )  # [places, filters]

    (w, b), (v, c) = numbers(net.query_dense), numbers(net.text_dense)
    about = np.tanh(w @ convolved(net.query_grams, batch["query"]).max(0) + b)
    pooled = convolved(net.text_grams, batch["text"]).reshape(3, 2, 3).max(1)  # windows of two
    parts = np.tanh(pooled @ v[:, :, 0].T + c)
    expected = mlp(net.distributed, (about[:, None] * parts.T).reshape(-1))
    assert net.distributedly(**batch).item() == pytest.approx(expected, abs=1e-6)
    assert net(**batch).item() == pytest.approx(expected + net.locally(**batch).item(), abs=1e-6)


def test_parameters():
    local = (8 * 3 + 3) + (3 * 4 * 4 + 4) + (4 + 1)
    distributed = 2 * (6 * 3 * 3 + 3) + 2 * (3 * 3 + 3) + (3 * 3 * 5 + 5) + (5 + 1)
    assert sum(p.numel() for p in toy().parameters()) == (len(WORDS) + 1) * 6 + local + distributed


def test_what_is_too_short_to_read_is_refused():
    with pytest.raises(BadInput, match="a query of 3 words and a text of 10"):
        toy(Shape(query_length=2))
