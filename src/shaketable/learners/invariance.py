"""Perturbation-invariant training: the order of a list should stay as it is when some of its texts were attacked.

With s the scores of a list, s' those of the same list after an attack, text by text, φ an increasing and strictly
positive function, and p_j = φ(s_j) / Σ_k φ(s_k), p' alike:

    kl            Σ_j p_j (ln p_j - ln p'_j)                                    Eq. 12
    listnet       Σ_j p'_j (ln p'_j - ln p_j)                                   Eq. 15, the other direction
    listnet_ce    -Σ_j p_j ln p'_j                                              ListNet as Cao et al. (2007) have it
    listmle       -ln Π_j φ(s'_π(j)) / Σ_{k ≥ j} φ(s'_π(k)), π the order of s   Eq. 17

Equation 15 compares the probabilities of orders, of which there are n!; as in ListNet, those of the first `top` places
stand for them. All of these are 0 or more, and are made small: the minus sign of equation 11, taken at its word, would
make the difference large.

Liu, Zhang, Zhang, Chen, de Rijke, Guo, Cheng. Perturbation-invariant adversarial training for neural ranking models:
improving the effectiveness-robustness trade-off. AAAI 2024 (paper 003).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from shaketable.errors import BadInput, check_within
from shaketable.learners.losses import ListMLE, Objective, scored
from shaketable.learners.neural import OBJECTIVES
from shaketable.learners.samples import Sample, Twins
from shaketable.rankers.nets.net import Net

CLOSED = -1e9
"""A weight that leaves no chance; not -inf, whose log-sum-exp has no gradient."""
FAR = -15.0
"""Below it ln softplus(s) is s, to the last digit of float32; the logarithm itself would be that of 0."""


@dataclass(frozen=True, kw_only=True)
class Invariance:
    """How far the order of a list is from that of its attacked counterpart.

    loss      one of those of the module
    phi       exp; sigmoid; or linear, which is softplus(s) = ln(1 + e^s), the line made strictly positive: scores may
              be negative, and what a shift to positive values adds would depend on the list
    top       with listnet and listnet_ce: the places whose probabilities are compared. There are n (n - 1) ... choices
              of texts for them, and a list of fewer texts tells nothing
    detach    no gradient flows through the scores before the attack. (Through the order that listmle takes from them
              there is none in any case.)
    per_text  divide by the number of texts, so that losses of short and of long lists compare
    """

    loss: Literal["kl", "listnet", "listnet_ce", "listmle"] = "listmle"
    phi: Literal["exp", "linear", "sigmoid"] = "exp"
    top: int = 1
    detach: bool = False
    per_text: bool = False

    def __post_init__(self) -> None:
        check_within("piat", self, top=(1, 3))

    def between(self, clean: Tensor, attacked: Tensor, kept: Tensor) -> Tensor:
        """The loss of each list, from the scores before and after the attack: [lists, texts] -> [lists]."""
        clean = clean.detach() if self.detach else clean
        if self.loss == "listmle":
            value = ListMLE().loss(self._log(attacked), clean.detach(), kept)
        else:
            top = 1 if self.loss == "kl" else self.top
            before, real = log_choices(self._log(clean), kept, top)
            after, _ = log_choices(self._log(attacked), kept, top)
            if self.loss == "kl":
                terms = before.exp() * (before - after)
            elif self.loss == "listnet":
                terms = after.exp() * (after - before)
            else:
                terms = -before.exp() * after
            value = terms.masked_fill(~real, 0.0).flatten(1).sum(1)
        return value / kept.sum(1).clamp(min=1) if self.per_text else value

    def _log(self, scores: Tensor) -> Tensor:
        """ln φ of scores."""
        if self.phi == "sigmoid":
            return logsigmoid(scores)
        if self.phi == "linear":
            return torch.where(scores < FAR, scores, softplus(scores.clamp(min=FAR)).log())
        return scores


def log_choices(weights: Tensor, kept: Tensor, top: int) -> tuple[Tensor, Tensor]:
    """The log-probability of each choice of texts for the first places, by Plackett and Luce, and which are choices.

    ln P(i, j, ...) = w_i - ln Σ_k e^{w_k} + w_j - ln Σ_{k ≠ i} e^{w_k} + ...: [lists, texts] -> [lists, i, j, ...].
    """
    count = weights.shape[1]
    apart = ~torch.eye(count, dtype=torch.bool, device=weights.device)
    free, chances = kept, weights.new_zeros(len(weights))
    for place in range(top):
        if place:
            free = free[..., :, None] & free[..., None, :] & apart
        options = weights.view(len(weights), *[1] * place, count).expand(free.shape)
        chances = chances[..., None] + options.masked_fill(~free, CLOSED).log_softmax(-1)
    return chances, free


@dataclass(frozen=True, kw_only=True)
class PIAT(Invariance):
    """Labels are learned, and lists should keep their order under attack: λ L_nat + (1 - λ) L_adv (paper 003).

    `natural` is the objective of lists with labels, and `lambda_` its share. With `lambda_=1` it is all there is.
    """

    natural: str = "softmax"
    lambda_: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_within("piat", self, lambda_=(0, 1))
        OBJECTIVES.build(self.natural)

    def __call__(self, net: Net, samples: Sequence[Sample]) -> Tensor:
        parts = []
        if self.lambda_ > 0:
            labelled: Objective = OBJECTIVES.build(self.natural)
            parts.append(self.lambda_ * labelled(net, samples))
        if self.lambda_ < 1:
            twins = [sample.beside for sample in samples if sample.beside is not None]
            if not twins:
                raise BadInput("piat compares lists with what an attack made of them, and these lists bring none; "
                               "train with the defence piat")  # fmt: skip
            parts.append((1 - self.lambda_) * self.between(*twins_scored(net, twins)).mean())
        return parts[0] + parts[1] if len(parts) > 1 else parts[0]


def twins_scored(net: Net, twins: Sequence[Twins]) -> tuple[Tensor, Tensor, Tensor]:
    """The scores of lists before and after the attack, and which are no padding: [lists, texts] each.

    A text that was not attacked is scored once, and so has one score in both.
    """
    longest = max(len(one.clean) for one in twins)
    lists, places = [], []
    for one in twins:
        changed = [i for i, (old, new) in enumerate(zip(one.clean, one.attacked, strict=True)) if old != new]
        moved = {i: len(one.clean) + number for number, i in enumerate(changed)}
        texts = (*one.clean, *(one.attacked[i] for i in changed))
        lists.append(Sample("", one.query, texts, (0.0,) * len(texts)))
        places.append([moved.get(i, i) for i in range(len(one.clean))] + [0] * (longest - len(one.clean)))
    scores, _, _ = scored(net, lists)
    sizes = torch.tensor([len(one.clean) for one in twins], device=scores.device)
    kept = torch.arange(longest, device=scores.device) < sizes[:, None]
    blank = torch.zeros((), device=scores.device)
    attacked = scores.gather(1, torch.tensor(places, device=scores.device))
    return torch.where(kept, scores[:, :longest], blank), torch.where(kept, attacked, blank), kept
