"""Perturbation-invariant losses against independent formulas, and where their gradients flow."""

# ruff: noqa: E402
from __future__ import annotations

import math
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from torch.nn.functional import kl_div

from shaketable.core.errors import BadInput, UnknownName
from shaketable.core.registries import OBJECTIVES
from shaketable.defences.piat import (
    InvarianceLoss,
    PIATLoss,
    plackett_luce_log_probs,
    score_clean_and_attacked,
)
from shaketable.nlp.analyzer import Analyzer
from shaketable.rankers.neural.knrm import KNRM
from shaketable.rankers.neural.shapes import KNRMShape
from shaketable.rankers.neural.words import Vocabulary
from shaketable.training.list_sources import CleanAttackedPair, Sample
from shaketable.training.losses import SoftmaxLoss

PHI = {
    "exp": math.exp,
    "linear": lambda s: math.log(1 + math.exp(s)),
    "sigmoid": lambda s: 1 / (1 + math.exp(-s)),
}
Pairs = list[tuple[float, float]]
"""(score before, score after) of each text of a list."""


def chances(scores: list[float], top: int, phi: str) -> dict[tuple[int, ...], float]:
    """Return the probability of each choice for the first ranks, drawn without replacement."""
    found = {}
    weights = [PHI[phi](s) for s in scores]
    for choice in permutations(range(len(scores)), top):
        p = 1.0
        for place, i in enumerate(choice):
            p *= weights[i] / sum(w for k, w in enumerate(weights) if k not in choice[:place])
        found[choice] = p
    return found


def by_hand(loss: InvarianceLoss, some: Pairs) -> float:
    clean, attacked = [s for s, _ in some], [t for _, t in some]
    if loss.loss == "listmle":
        order = sorted(range(len(some)), key=lambda i: -clean[i])
        weights = [PHI[loss.phi](attacked[i]) for i in order]
        value = -sum(math.log(w / sum(weights[j:])) for j, w in enumerate(weights))
    else:
        top = 1 if loss.loss == "kl" else loss.top
        p, q = chances(clean, top, loss.phi), chances(attacked, top, loss.phi)
        value = {
            "kl": lambda: sum(p[c] * math.log(p[c] / q[c]) for c in p),
            "listnet": lambda: sum(q[c] * math.log(q[c] / p[c]) for c in p),
            "listnet_ce": lambda: -sum(p[c] * math.log(q[c]) for c in p),
        }[loss.loss]()
    return value / len(some) if loss.per_text else value


def pad_lists(lists: list[Pairs]):
    longest = max(map(len, lists))
    clean, attacked = torch.full((len(lists), longest), 7.0), torch.full((len(lists), longest), -3.0)
    kept = torch.zeros(len(lists), longest, dtype=torch.bool)
    for row, some in enumerate(lists):
        clean[row, : len(some)] = torch.tensor([s for s, _ in some])
        attacked[row, : len(some)] = torch.tensor([t for _, t in some])
        kept[row, : len(some)] = True
    return clean, attacked, kept


# scores before the attack are all different, so that their order is one
some_lists = st.lists(
    st.lists(
        st.tuples(st.integers(-40, 40), st.integers(-40, 40)), min_size=1, max_size=6, unique_by=lambda pair: pair[0]
    ),
    min_size=1,
    max_size=4,
).map(lambda lists: [[(s / 8, t / 8) for s, t in some] for some in lists])

LOSSES = [
    *(InvarianceLoss(loss=loss, phi=phi) for loss in ("kl", "listnet", "listnet_ce", "listmle") for phi in PHI),
    *(InvarianceLoss(loss=loss, top=top) for loss in ("listnet", "listnet_ce") for top in (2, 3)),
    InvarianceLoss(loss="listnet", phi="sigmoid", top=2),
    InvarianceLoss(loss="listmle", per_text=True),
    InvarianceLoss(loss="kl", detach=True),
]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@given(lists=some_lists)
@settings(max_examples=40, deadline=None)
def test_losses_are_their_formulas(loss: InvarianceLoss, lists: list[Pairs]):
    found = loss.compute_loss(*pad_lists(lists)).tolist()
    assert found == pytest.approx([by_hand(loss, some) for some in lists], abs=2e-4, rel=2e-4)
    assert min(found) >= -1e-4


@given(lists=some_lists)
@settings(max_examples=40, deadline=None)
def test_kl_is_that_of_torch_and_listnet_its_other_direction(lists: list[Pairs]):
    for some in lists:
        clean, attacked, kept = pad_lists([some])
        log_p, log_q = clean.log_softmax(1), attacked.log_softmax(1)
        forward = kl_div(log_q, log_p, reduction="sum", log_target=True)
        backward = kl_div(log_p, log_q, reduction="sum", log_target=True)
        torch.testing.assert_close(
            InvarianceLoss(loss="kl").compute_loss(clean, attacked, kept)[0], forward, atol=1e-5, rtol=1e-4
        )
        torch.testing.assert_close(
            InvarianceLoss(loss="listnet").compute_loss(clean, attacked, kept)[0], backward, atol=1e-5, rtol=1e-4
        )
        swapped = InvarianceLoss(loss="kl").compute_loss(attacked, clean, kept)
        torch.testing.assert_close(InvarianceLoss(loss="listnet").compute_loss(clean, attacked, kept), swapped)


@pytest.mark.parametrize("loss", ["kl", "listnet"])
@pytest.mark.parametrize("top", [1, 2, 3])
def test_an_attack_that_changes_no_score_costs_nothing(loss, top):
    scores, _, kept = pad_lists([[(1.0, 0.0), (2.5, 0.0), (-1.0, 0.0)], [(0.5, 0.0), (0.25, 0.0)]])
    assert InvarianceLoss(loss=loss, top=top).compute_loss(scores, scores, kept).tolist() == pytest.approx(
        [0, 0], abs=1e-6
    )


def test_choices_are_a_distribution():
    weights = torch.tensor([[0.3, -1.2, 2.0, 0.7], [0.1, 0.2, 9.0, 9.0]])
    kept = torch.tensor([[True] * 4, [True, True, False, False]])
    for top, numbers in ((1, [4, 2]), (2, [12, 2]), (3, [24, 0])):
        chance, real = plackett_luce_log_probs(weights, kept, top)
        assert real.flatten(1).sum(1).tolist() == numbers
        totals = chance.exp().masked_fill(~real, 0).flatten(1).sum(1).tolist()
        assert totals == pytest.approx([1, 1 if numbers[1] else 0], abs=1e-5)


LEAVES = [[(0.5, 2.0), (0.25, 0.0), (-1.0, 1.0)], [(0.125, 1.0), (3.0, 0.0)], [(1.0, 0.0)]]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_gradients_flow_where_they_should(loss: InvarianceLoss):
    clean, attacked, kept = pad_lists(LEAVES)
    clean.requires_grad_(), attacked.requires_grad_()
    loss.compute_loss(clean, attacked, kept).sum().backward()
    assert torch.isfinite(attacked.grad).all()
    assert (attacked.grad[~kept] == 0).all()
    assert (attacked.grad[0] != 0).any()
    if loss.detach or loss.loss == "listmle":  # there is no gradient of an order
        assert clean.grad is None
    else:
        assert torch.isfinite(clean.grad).all()
        assert (clean.grad[~kept] == 0).all()
        assert (clean.grad[0] != 0).any()


@pytest.mark.parametrize("loss", [one for one in LOSSES if not one.detach], ids=repr)
def test_gradients_are_those_of_small_steps(loss: InvarianceLoss):
    clean, attacked, kept = pad_lists(LEAVES)
    clean, attacked = clean.double().requires_grad_(loss.loss != "listmle"), attacked.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda s, t: loss.compute_loss(s, t, kept), (clean, attacked))


def test_far_scores_have_losses_and_gradients():
    for loss in LOSSES:
        clean = torch.tensor([[300.0, -300.0, 0.0]], requires_grad=True)
        attacked = torch.tensor([[-300.0, 300.0, 0.0]], requires_grad=True)
        value = loss.compute_loss(clean, attacked, torch.ones(1, 3).bool()).sum()
        value.backward()
        assert math.isfinite(value.item())
        assert torch.isfinite(attacked.grad).all()


@pytest.fixture
def net():
    torch.manual_seed(0)
    return KNRM(Vocabulary(("oak", "elm", "ash"), Analyzer()), 3, KNRMShape())


TWINS = [
    CleanAttackedPair("oak", ("oak", "elm", "oak elm"), ("oak", "ash", "oak ash")),
    CleanAttackedPair("elm", ("elm ash", "oak"), ("elm ash", "oak elm")),
]


def test_scores_before_and_after_stand_side_by_side(net):
    clean, attacked, kept = score_clean_and_attacked(net, TWINS)
    assert kept.tolist() == [[True] * 3, [True, True, False]]

    def alone(texts):
        return [net(**net.collate(net.prepare([(query, text)]))).item() for query, text in texts]

    assert clean[kept].tolist() == pytest.approx(alone([(t.query, x) for t in TWINS for x in t.clean]), abs=1e-6)
    assert attacked[kept].tolist() == pytest.approx(alone([(t.query, x) for t in TWINS for x in t.attacked]), abs=1e-6)
    assert (clean[~kept] == 0).all()
    assert (attacked[~kept] == 0).all()


SAMPLES = [
    Sample("1", "oak", ("oak", "elm"), (1.0, 0.0), attack_pair=TWINS[0]),
    Sample("2", "elm", ("elm", "oak"), (1.0, 0.0), attack_pair=TWINS[1]),
]


def test_the_objective_is_a_mixture(net):
    invariant = InvarianceLoss(loss="listnet").compute_loss(*score_clean_and_attacked(net, TWINS)).mean().item()
    natural = SoftmaxLoss()(net, SAMPLES).item()
    for share in (0.0, 0.2, 1.0):
        found = PIATLoss(loss="listnet", lambda_=share)(net, SAMPLES).item()
        assert found == pytest.approx(share * natural + (1 - share) * invariant, abs=1e-6)


@pytest.mark.parametrize("loss", ["kl", "listnet", "listmle"])
def test_training_learns_to_keep_the_order(net, loss):
    objective = PIATLoss(loss=loss, lambda_=0.2)
    before = InvarianceLoss(loss=loss).compute_loss(*score_clean_and_attacked(net, TWINS)).mean().item()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        objective(net, SAMPLES).backward()
        optimizer.step()
    after = InvarianceLoss(loss=loss).compute_loss(*score_clean_and_attacked(net, TWINS)).mean().item()
    assert after < before


def test_lists_without_a_counterpart_are_refused_unless_it_is_unused(net):
    bare = [Sample("1", "oak", ("oak", "elm"), (1.0, 0.0))]
    with pytest.raises(BadInput, match="piat needs lists with an attacked version"):
        PIATLoss()(net, bare)
    assert PIATLoss(lambda_=1)(net, bare).item() == SoftmaxLoss()(net, bare).item()
    assert math.isfinite(PIATLoss()(net, [*bare, SAMPLES[0]]).item())


@pytest.mark.parametrize("text", ["piat(lambda_=1.1)", "piat(lambda_=-0.1)", "piat(top=0)", "piat(top=4)",
                                  "piat(loss='mse')", "piat(phi='cube')"])  # fmt: skip
def test_senseless_settings_are_refused(text):
    with pytest.raises(BadInput):
        OBJECTIVES.build(text)
    with pytest.raises(UnknownName):
        OBJECTIVES.build("piat(natural='sotfmax')")
