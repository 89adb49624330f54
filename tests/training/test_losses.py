"""Objectives against independent formulas, written as loops."""

# ruff: noqa: E402
from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from shaketable.nlp.analyzer import Analyzer
from shaketable.rankers.neural.knrm import KNRM
from shaketable.rankers.neural.shapes import KNRMShape
from shaketable.rankers.neural.words import Vocabulary
from shaketable.training.list_sources import Sample
from shaketable.training.losses import (
    BCELoss,
    HingeLoss,
    LambdaLoss,
    LikelihoodLoss,
    ListMLELoss,
    MarginMSELoss,
    RankNetLoss,
    ScoreLoss,
    SoftmaxLoss,
    score_samples,
)

Lists = list[list[tuple[float, int]]]
"""(score, label) of each text of each list."""


def pairs(some: list[tuple[float, int]]) -> list[float]:
    """Score differences of all pairs with a better and a worse text."""
    return [s - t for s, y in some for t, z in some if y > z]


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def hinge(some):
    return mean([max(0.0, 1.0 - d) for d in pairs(some)])


def ranknet(some):
    return mean([-math.log(1 / (1 + math.exp(-d))) for d in pairs(some)])


def bce(some):
    return mean([-math.log(1 / (1 + math.exp(-s if y >= 1 else s))) for s, y in some])


def softmax(some):
    total, best = sum(math.exp(s) for s, _ in some), max(y for _, y in some)
    return mean([-math.log(math.exp(s) / total) for s, y in some if y == best])


def list_mle(some):
    order = sorted(some, key=lambda pair: -pair[1])
    return -sum(math.log(math.exp(s) / sum(math.exp(t) for t, _ in order[i:])) for i, (s, _) in enumerate(order))


def lambda_loss(some, mu=10.0):
    def discount(r: int) -> float:
        return math.log2(1 + r)

    ranks = {i: r for r, i in enumerate(sorted(range(len(some)), key=lambda i: -some[i][0]), 1)}
    most = sum((2**y - 1) / discount(r) for r, y in enumerate(sorted((y for _, y in some), reverse=True), 1))
    total = 0.0
    for i, (s, y) in enumerate(some):
        for j, (t, z) in enumerate(some):
            if y > z:
                apart = abs(ranks[i] - ranks[j])
                rho = abs(1 / discount(ranks[i]) - 1 / discount(ranks[j]))
                delta = abs(1 / discount(apart) - 1 / discount(apart + 1))
                gain = abs(2**y - 2**z) / most
                total += (rho + mu * delta) * gain * math.log2(1 + math.exp(-(s - t)))
    return total


def margin_mse(some):
    return mean([((s - t) - (y - z)) ** 2 for i, (s, y) in enumerate(some) for j, (t, z) in enumerate(some) if i < j])


FORMULAS = {
    HingeLoss(): hinge,
    RankNetLoss(): ranknet,
    BCELoss(): bce,
    SoftmaxLoss(): softmax,
    SoftmaxLoss(temperature=0.5): lambda some: softmax([(2 * s, y) for s, y in some]),
    ListMLELoss(): list_mle,
    LambdaLoss(): lambda_loss,
    LambdaLoss(mu=0.0): lambda some: lambda_loss(some, 0.0),
    MarginMSELoss(): margin_mse,
}


def pad_lists(lists: Lists):
    longest = max(map(len, lists))
    scores, labels = torch.zeros(len(lists), longest), torch.zeros(len(lists), longest)
    kept = torch.zeros(len(lists), longest, dtype=torch.bool)
    for row, some in enumerate(lists):
        scores[row, : len(some)] = torch.tensor([s for s, _ in some])
        labels[row, : len(some)] = torch.tensor([float(y) for _, y in some])
        kept[row, : len(some)] = True
    return scores, labels, kept


# scores are far enough apart that ranks are the same in any precision
some_lists = st.lists(
    st.lists(
        st.tuples(st.integers(-40, 40), st.integers(0, 3)), min_size=1, max_size=6, unique_by=lambda pair: pair[0]
    ),
    min_size=1,
    max_size=4,
).map(lambda lists: [[(s / 8, y) for s, y in some] for some in lists])


@pytest.mark.parametrize("objective", FORMULAS, ids=repr)
@given(lists=some_lists)
@settings(max_examples=60, deadline=None)
def test_losses_are_their_formulas(objective: ScoreLoss, lists: Lists):
    found = objective.loss(*pad_lists(lists)).tolist()
    assert found == pytest.approx([FORMULAS[objective](some) for some in lists], abs=1e-4, rel=1e-4)


@pytest.mark.parametrize("objective", FORMULAS, ids=repr)
def test_padding_has_no_gradient_and_breaks_none(objective: ScoreLoss):
    scores, labels, kept = pad_lists([[(0.5, 2), (0.25, 0), (-1.0, 1)], [(0.125, 1), (3.0, 0)], [(1.0, 0)]])
    scores = torch.where(kept, scores, 7.0).requires_grad_()
    objective.loss(scores, labels, kept).sum().backward()
    assert torch.isfinite(scores.grad).all()
    assert (scores.grad[~kept] == 0).all()
    assert (scores.grad[0] != 0).any()


def test_list_mle_is_a_likelihood_of_orders():
    """The likelihoods of all orders of a list sum to one."""
    scores = torch.tensor([[0.3, -1.2, 2.0, 0.7]])
    kept = torch.ones(1, 4, dtype=torch.bool)
    losses = [
        ListMLELoss().loss(scores, torch.tensor([labels]), kept).item() for labels in permutations((3.0, 2.0, 1.0, 0.0))
    ]
    assert sum(math.exp(-loss) for loss in losses) == pytest.approx(1, abs=1e-5)


def test_lambda_loss_by_hand():
    """Two texts in the wrong order: the relevant one is at rank 2, max DCG is 1."""
    loss = LambdaLoss(mu=0.0).loss(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]), torch.ones(1, 2).bool())
    assert loss.item() == pytest.approx((1 - 1 / math.log2(3)) * math.log2(1 + math.e), abs=1e-6)


@given(lists=some_lists)
@settings(max_examples=60, deadline=None)
def test_the_likelihood_of_probabilities_is_the_cross_entropy_of_their_odds(lists: Lists):
    odds, labels, kept = pad_lists(lists)
    odds = (5 * odds).requires_grad_()
    likelihood = LikelihoodLoss().loss(torch.nn.functional.logsigmoid(odds), labels, kept)
    expected = BCELoss().loss(odds, labels, kept)
    torch.testing.assert_close(likelihood, expected, atol=1e-5, rtol=1e-4)
    found, known = (torch.autograd.grad(loss.sum(), odds)[0] for loss in (likelihood, expected))
    torch.testing.assert_close(found, known, atol=1e-4, rtol=1e-4)


def test_a_likelihood_of_one_breaks_no_gradient():
    scores = torch.tensor([[0.0, -200.0, -1e-35]], requires_grad=True)
    LikelihoodLoss().loss(scores, torch.tensor([[0.0, 1.0, 0.0]]), torch.ones(1, 3).bool()).sum().backward()
    assert torch.isfinite(scores.grad).all()


def test_margins_of_a_teacher_are_met_up_to_a_constant():
    scores = torch.tensor([[1.0, 3.0, -2.0]])
    assert MarginMSELoss().loss(scores, scores + 5, torch.ones(1, 3).bool()).item() == 0


def test_scores_of_lists_stand_where_their_texts_stand():
    torch.manual_seed(0)
    net = KNRM(Vocabulary(("oak", "elm"), Analyzer()), 3, KNRMShape())
    samples = [Sample("1", "oak", ("oak", "elm", "oak elm"), (2.0, 0.0, 1.0)), Sample("2", "elm", ("elm",), (3.0,))]
    scores, labels, kept = score_samples(net, samples)
    alone = [net(**net.collate(net.prepare([(s.query, text)]))).item() for s in samples for text in s.texts]
    assert scores[kept].tolist() == pytest.approx(alone, abs=1e-6)
    assert labels.tolist() == [[2, 0, 1], [3, 0, 0]]
    assert kept.tolist() == [[True] * 3, [True, False, False]]
    assert SoftmaxLoss()(net, samples).item() == pytest.approx(
        np.mean([softmax(list(zip(alone[:3], (2, 0, 1), strict=True))), softmax([(alone[3], 3)])]), abs=1e-6
    )
