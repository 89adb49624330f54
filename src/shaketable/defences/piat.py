"""Perturbation-invariant adversarial training (PIAT): a list should keep its order when some of its texts are attacked.

With s the scores of a list, s' the scores of the same list after an attack, φ an increasing and strictly positive
function, p_j = φ(s_j) / Σ_k φ(s_k), and p' the same for s':

    kl            Σ_j p_j (ln p_j - ln p'_j)                                    Eq. 12
    listnet       Σ_j p'_j (ln p'_j - ln p_j)                                   Eq. 15, the other direction
    listnet_ce    -Σ_j p_j ln p'_j                                              ListNet as Cao et al. (2007) have it
    listmle       -ln Π_j φ(s'_π(j)) / Σ_{k ≥ j} φ(s'_π(k)), π the order of s   Eq. 17

Equation 15 compares the probabilities of all n! orders; as in ListNet, only the first `top` ranks are used. All losses
are 0 or more and are minimised: the minus sign of equation 11, taken literally, would maximise the difference.

Liu, Zhang, Zhang, Chen, de Rijke, Guo, Cheng. Perturbation-invariant adversarial training for neural ranking models:
improving the effectiveness-robustness trade-off. AAAI 2024 (paper 003). Defaults are the settings of section 4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from shaketable.core.attack_types import AdversarialDocument
from shaketable.core.documents import Qrels, rank_docnos
from shaketable.core.errors import BadInput, check_ranges
from shaketable.core.registries import OBJECTIVES
from shaketable.core.seeding import ItemRandom, make_item_rng
from shaketable.defences.adversarial_examples import ExampleBasedDefence, read_adversarial_examples
from shaketable.training.list_sources import CleanAttackedPair, Sample, SampleSource
from shaketable.training.plan import (
    JudgementSource,
    ListSource,
    TextListSource,
    TrainingData,
    TrainingPlan,
    list_files,
)

if TYPE_CHECKING:
    from torch import Tensor

    from shaketable.rankers.neural.net import Net
    from shaketable.training.losses import Objective

MASKED_LOGIT = -1e9
"""The logit of probability 0; the log-sum-exp of -inf has no gradient."""
LOG_SOFTPLUS_LINEAR_BELOW = -15.0
"""Below this score ln softplus(s) equals s in float32, and softplus would round to 0."""


@dataclass(frozen=True, kw_only=True)
class PIAT(ExampleBasedDefence):
    """Perturbation-invariant adversarial training: lists should keep their order when documents are attacked.

    loss, phi, top, detach, per_text    see `InvarianceLoss`
    lambda_                             the share of the natural loss, which is the objective of the plan
    size, attacked                      documents of a list without labels, and how many of them are attacked
    """

    uses_unlabelled: ClassVar[bool] = True
    """It also learns from queries without judgements."""

    loss: Literal["kl", "listnet", "listnet_ce", "listmle"] = "listmle"
    lambda_: float = 0.5
    phi: Literal["exp", "linear", "sigmoid"] = "exp"
    top: int = 1
    detach: bool = False
    per_text: bool = False
    size: int = 20
    attacked: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges("piat", self, lambda_=(0, 1), top=(1, 3), size=(2, 10_000), attacked=(1, self.size))

    def plan(self, plan: TrainingPlan, adversaries: Callable[[], Path]) -> TrainingPlan:
        natural = {"natural": plan.objective} if plan.objective else {}
        objective = PIATLoss(
            loss=self.loss,
            lambda_=self.lambda_,
            phi=self.phi,
            top=self.top,
            detach=self.detach,
            per_text=self.per_text,
            **natural,
        )
        lists = PairedSource(plan.lists, path=str(adversaries()), size=self.size, attacked=self.attacked)
        return replace(plan, lists=lists, objective=OBJECTIVES.spec(objective))


@dataclass(frozen=True)
class PairedSource(TextListSource):
    """Lists of another source, each with a list without labels: candidates of a query before and after an attack.

    path      a file of attacked documents
    size      texts of a list without labels, drawn from the candidates of its query
    attacked  the maximum number of attacked texts among them

    The lists are paired in random order, and every list without labels is used once before one is used again. So the
    net also learns from queries without judgements.
    """

    lists: ListSource = field(default_factory=JudgementSource)
    path: str = field(kw_only=True, metadata={"example": "adversarial.jsonl"})
    size: int = field(default=20, kw_only=True)
    attacked: int = field(default=10, kw_only=True)

    def __post_init__(self) -> None:
        check_ranges("paired", self, size=(2, 10_000), attacked=(1, self.size))

    @property
    def files(self) -> tuple[Path, ...]:
        return (*list_files(self.lists), Path(self.path))

    def open_samples(self, training_data: TrainingData, size: int) -> tuple[SampleSource, Qrels]:
        source, qrels = self.lists.open_samples(training_data, size)
        examples = read_adversarial_examples(Path(self.path), training_data.collection, training_data.train)
        pools = [_Pool.from_training_data(training_data, qid, some) for qid, some in examples.items()]
        usable = [pool for pool in pools if len(pool.texts) > 1]
        if not usable:
            raise BadInput("has attacked documents only for lists of one document, which have no order", self.path)
        return PairedLists(source, usable, self.size, self.attacked, training_data.seed), qrels


@dataclass(frozen=True, eq=False)
class _Pool:
    """The documents of a query from which lists are drawn, and the attacked versions of some of them."""

    qid: str
    query: str
    texts: Mapping[str, str]
    attacked_texts: Mapping[str, Sequence[str]]

    @classmethod
    def from_training_data(
        cls, training_data: TrainingData, qid: str, adversarial_docs: Sequence[AdversarialDocument]
    ) -> _Pool:
        attacked: dict[str, list[str]] = {}
        for one in adversarial_docs:
            attacked.setdefault(one.docno, []).append(one.doc.text)
        docs = training_data.collection.docs
        docnos = [docno for docno in rank_docnos(training_data.candidates.get(qid, {})) if docno in docs]
        texts = {docno: docs[docno].text for docno in dict.fromkeys((*docnos, *attacked))}
        return cls(qid, training_data.collection.queries[qid].text, texts, attacked)

    def draw_pair(self, size: int, max_attacked: int, rng: ItemRandom) -> CleanAttackedPair:
        """Draw `size` documents, unchanged and with at most `max_attacked` of them attacked."""
        moved = rng.permutation(list(self.attacked_texts))[: min(max_attacked, size)]
        new = {docno: rng.choice(self.attacked_texts[docno]) for docno in moved}
        others = rng.permutation([docno for docno in self.texts if docno not in new])[: size - len(moved)]
        docnos = rng.permutation([*moved, *others])
        clean = tuple(self.texts[docno] for docno in docnos)
        return CleanAttackedPair(self.query, clean, tuple(new.get(docno, self.texts[docno]) for docno in docnos))


@dataclass(frozen=True, eq=False)
class PairedLists:
    """The lists of another source, each with a list without labels before and after an attack."""

    source: SampleSource
    pools: Sequence[_Pool]
    size: int = 20
    max_attacked: int = 10
    seed: int = 0

    def __len__(self) -> int:
        return len(self.source)

    def draw(self, number: int, turn: int) -> Sample:
        time, at = divmod(turn * len(self.source) + number, len(self.pools))
        pool = self._shuffle_pools(time)[at]
        rng = make_item_rng(self.seed, "beside", pool.qid, time)
        return replace(self.source.draw(number, turn), attack_pair=pool.draw_pair(self.size, self.max_attacked, rng))

    @cached_property
    def _shuffle_pools(self) -> Callable[[int], list[_Pool]]:
        """A cached function: number of the pass over the pools -> the pools in random order."""
        return lru_cache(maxsize=2)(lambda time: make_item_rng(self.seed, "order beside", time).permutation(self.pools))


@dataclass(frozen=True, kw_only=True)
class InvarianceLoss:
    """The difference between the order of a list and the order of its attacked counterpart.

    loss      one of the losses of this module
    phi       exp; sigmoid; or linear, which is softplus(s) = ln(1 + e^s), because scores may be negative, and the
              effect of a shift to positive values would depend on the list
    top       with listnet and listnet_ce: the number of first ranks whose probabilities are compared. There are
              n (n - 1) ... choices of texts for them, and a list of fewer texts adds nothing
    detach    no gradient flows through the scores before the attack (listmle uses only their order, without gradient)
    per_text  divide by the number of texts, so that losses of short and long lists are comparable
    """

    loss: Literal["kl", "listnet", "listnet_ce", "listmle"] = "listmle"
    phi: Literal["exp", "linear", "sigmoid"] = "exp"
    top: int = 1
    detach: bool = False
    per_text: bool = False

    def __post_init__(self) -> None:
        check_ranges("piat", self, top=(1, 3))

    def compute_loss(self, clean: Tensor, attacked: Tensor, kept: Tensor) -> Tensor:
        """Return the loss of each list from its scores before and after the attack: [lists, texts] -> [lists]."""
        from shaketable.training.losses import ListMLELoss

        clean = clean.detach() if self.detach else clean
        if self.loss == "listmle":
            value = ListMLELoss().loss(self._log_phi(attacked), clean.detach(), kept)
        else:
            top = 1 if self.loss == "kl" else self.top
            before, real = plackett_luce_log_probs(self._log_phi(clean), kept, top)
            after, _ = plackett_luce_log_probs(self._log_phi(attacked), kept, top)
            if self.loss == "kl":
                terms = before.exp() * (before - after)
            elif self.loss == "listnet":
                terms = after.exp() * (after - before)
            else:
                terms = -before.exp() * after
            value = terms.masked_fill(~real, 0.0).flatten(1).sum(1)
        return value / kept.sum(1).clamp(min=1) if self.per_text else value

    def _log_phi(self, scores: Tensor) -> Tensor:
        """Return ln φ of scores."""
        import torch
        from torch.nn.functional import logsigmoid, softplus

        if self.phi == "sigmoid":
            return logsigmoid(scores)
        if self.phi == "linear":
            low = LOG_SOFTPLUS_LINEAR_BELOW
            return torch.where(scores < low, scores, softplus(scores.clamp(min=low)).log())
        return scores


def plackett_luce_log_probs(weights: Tensor, mask: Tensor, top: int) -> tuple[Tensor, Tensor]:
    """Return the Plackett-Luce log-probability of each choice of texts for the first ranks, and the mask of choices.

    ln P(i, j, ...) = w_i - ln Σ_k e^{w_k} + w_j - ln Σ_{k ≠ i} e^{w_k} + ...: [lists, texts] -> [lists, i, j, ...].
    """
    import torch

    count = weights.shape[1]
    apart = ~torch.eye(count, dtype=torch.bool, device=weights.device)
    free, chances = mask, weights.new_zeros(len(weights))
    for rank in range(top):
        if rank:
            free = free[..., :, None] & free[..., None, :] & apart
        options = weights.view(len(weights), *[1] * rank, count).expand(free.shape)
        chances = chances[..., None] + options.masked_fill(~free, MASKED_LOGIT).log_softmax(-1)
    return chances, free


@dataclass(frozen=True, kw_only=True)
class PIATLoss(InvarianceLoss):
    """The weighted sum of the loss of labels and of invariance under attack: λ L_nat + (1 - λ) L_adv (paper 003).

    `natural` is the objective of lists with labels, and `lambda_` its share. With `lambda_=1` it is the whole loss.
    """

    natural: str = "softmax"
    lambda_: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges("piat", self, lambda_=(0, 1))
        OBJECTIVES.build(self.natural)

    def __call__(self, net: Net, samples: Sequence[Sample]) -> Tensor:
        parts = []
        if self.lambda_ > 0:
            labelled: Objective = OBJECTIVES.build(self.natural)
            parts.append(self.lambda_ * labelled(net, samples))
        if self.lambda_ < 1:
            pairs = [sample.attack_pair for sample in samples if sample.attack_pair is not None]
            if not pairs:
                raise BadInput("piat needs lists with an attacked version; train with the defence piat")
            parts.append((1 - self.lambda_) * self.compute_loss(*score_clean_and_attacked(net, pairs)).mean())
        return parts[0] + parts[1] if len(parts) > 1 else parts[0]


def score_clean_and_attacked(net: Net, pairs: Sequence[CleanAttackedPair]) -> tuple[Tensor, Tensor, Tensor]:
    """Return the scores of lists before and after the attack, and a mask without padding: [lists, texts] each.

    An unchanged text is scored once, so both lists have the same score for it.
    """
    import torch

    from shaketable.training.losses import score_samples

    longest = max(len(one.clean) for one in pairs)
    lists, columns = [], []
    for one in pairs:
        changed = [i for i, (old, new) in enumerate(zip(one.clean, one.attacked, strict=True)) if old != new]
        moved = {i: len(one.clean) + number for number, i in enumerate(changed)}
        texts = (*one.clean, *(one.attacked[i] for i in changed))
        lists.append(Sample("", one.query, texts, (0.0,) * len(texts)))
        columns.append([moved.get(i, i) for i in range(len(one.clean))] + [0] * (longest - len(one.clean)))
    scores, _, _ = score_samples(net, lists)
    sizes = torch.tensor([len(one.clean) for one in pairs], device=scores.device)
    kept = torch.arange(longest, device=scores.device) < sizes[:, None]
    blank = torch.zeros((), device=scores.device)
    attacked = scores.gather(1, torch.tensor(columns, device=scores.device))
    return torch.where(kept, scores[:, :longest], blank), torch.where(kept, attacked, blank), kept
