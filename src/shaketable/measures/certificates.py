"""Certificates: the lists that no admissible attack on documents can break, and attack success on those lists.

A smoothed ranker has the score f̄(q, d) = E σ(f(q, r)), where r is d with random words. Its certificate uses one number
for each document, the shift o_d: no admissible change of d moves f̄(q, d) by more than o_d. A list, sorted by f̄, is
certified at K if no document from below can enter the first K:

    Δ_K = f̄(q, d_K) - f̄(q, d_K+1) - max o_d > 0           the paper's condition, the maximum over d below K
    f̄(q, d_K) - max (f̄(q, d) + o_d) > 0                   the tight condition, which holds wherever the first does

If f̄ is a mean of n draws, it differs from its expectation by more than t = sqrt(ln(2 / δ) / 2n) with probability at
most δ (Hoeffding), so the margin must exceed 2 t. As in the paper, this holds for two texts; with δ / N instead of δ it
holds for all N texts of a list at once.

No such allowance is needed if the shift bounds the mean itself, whose draws are fixed by the seed
(`defences.smoothing.SmoothedRanker.bound_sampled_shift`): such a certificate holds for the ranker as it scores.

Wu, Zhang, Guo, Chen, Fan, de Rijke, Cheng. Certified robustness to word substitution ranking attack for neural ranking
models. CIKM 2022.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log, sqrt
from typing import Literal, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from shaketable.core.documents import rank_docnos
from shaketable.core.errors import BadInput
from shaketable.measures.attack_success import TargetEstimate, estimate

Floats = NDArray[np.float64]
CERTIFICATE_CUTOFFS = (*range(1, 11), *range(20, 100, 10))
FAILURE_PROBABILITY = 0.05
MIN_SCORE_GAP = 2.0**-23
"""Two scores between 0 and 1 must differ by more than this to keep their order in 32 bits."""

CertificateCondition: TypeAlias = Literal["paper", "paper, sampled", "tight", "tight, sampled", "tight, whole list"]
"""The condition of a certificate. "paper" and "tight" take f̄ as exact; "sampled" allows for the draws of two texts,
"whole list" for those of all texts of the list.
"""
CERTIFICATE_CONDITIONS: tuple[CertificateCondition, ...] = get_args(CertificateCondition)


def substitution_shift(shares: NDArray[np.floating], max_changed: int | None = None) -> float:
    """Return o_d for words drawn from perturbation sets, given q_w of each word.

        o_d = 1 - Π q_w over the `max_changed` smallest; all of them if that is None

    >>> shares = np.array([1.0, 0.5, 0.8, 0.9])
    >>> substitution_shift(shares, max_changed=2), round(substitution_shift(shares), 6)
    (0.6, 0.64)
    """
    return float(1 - np.prod(np.sort(shares)[:max_changed]))


def mask_shift(words: int, kept: int, max_changed: int | None = None) -> float:
    """Return o_d of a text with T = `words`, of which k = `kept` random ones are kept and all others masked.

        o_d = 1 - C(T - R, k) / C(T, k)

    is the probability that one of R changed words is visible; otherwise the masked text is unchanged. R = T if
    `max_changed` is None. Any word may be replaced by any other, but no word may be added or removed.

    Levine, Feizi. Robustness certificates for sparse adversarial attacks by randomized ablation. AAAI 2020. RobustMask
    (Liu et al. 2025, theorem 1) multiplies this by the mean score of the masked texts of the changed document, which
    is unknown before the attack, and by 1 / C(T, k), which its proof counts twice: that product is not a bound.

    >>> mask_shift(words=4, kept=1, max_changed=1), mask_shift(4, 2, 2), mask_shift(4, 2, 3), mask_shift(0, 0)
    (0.25, 0.8333333333333334, 1.0, 0.0)
    """
    if not 0 <= kept <= words:
        raise BadInput(f"cannot keep {kept} of {words} words; the number must be from 0 to {words}")
    among = np.arange(words if max_changed is None else min(max_changed, words))
    unseen = np.prod(np.maximum(words - kept - among, 0) / (words - among))
    return float(1 - unseen)


def sampled_mask_shift(kept: NDArray[np.bool_], max_changed: int | None = None) -> float:
    """Return the largest shift of the mean over given masks: [masks, words], True where a mask keeps a word.

    Only masks that keep a changed word change, so the shift is at most the share of masks that keep one of R words.
    That share is at most 1 and at most the sum of the R largest shares of masks that keep a word. The bound
    uses the worst words, so it holds even if the attacker knows the masks.

    >>> sampled_mask_shift(np.array([[True, False], [True, False], [False, True], [False, True]]), max_changed=1)
    0.5
    """
    if not len(kept):
        return 0.0
    shares = np.sort(kept.mean(axis=0))[::-1][:max_changed]
    return float(min(shares.sum(), kept.any(axis=1).mean()))


def sampling_margin(samples: int, delta: float = FAILURE_PROBABILITY, texts: int = 1) -> float:
    """Return the required margin between two means of draws, 2 sqrt(ln(2 texts / δ) / 2n).

    >>> round(sampling_margin(1000), 4)
    0.0859
    """
    return 2 * sqrt(log(2 * texts / delta) / (2 * samples))


@dataclass(frozen=True, eq=False)
class CertifiableList:
    """The smoothed scores of a list, best first, and the shift of each of its documents."""

    scores: Floats
    shifts: Floats

    def __post_init__(self) -> None:
        if self.scores.shape != self.shifts.shape or self.scores.ndim != 1:
            raise BadInput(f"a list has {self.scores.shape} scores and {self.shifts.shape} shifts; it needs one each")

    @classmethod
    def from_scores(cls, scores: Mapping[str, float], shifts: Mapping[str, float]) -> Self:
        """Return the list in the order of `core.documents.rank_docnos`."""
        order = rank_docnos(scores)
        return cls(np.array([scores[d] for d in order], float), np.array([shifts[d] for d in order], float))

    def margin(self, k: int) -> float:
        """Return Δ_K, the paper's margin; infinite if there is no document below K."""
        if len(self.scores) <= k:
            return inf
        return float(self.scores[k - 1] - self.scores[k] - self.shifts[k:].max())

    def tight_margin(self, k: int) -> float:
        """Return f̄(q, d_K) minus the largest score that a document below K can reach."""
        if len(self.scores) <= k:
            return inf
        return float(self.scores[k - 1] - (self.scores[k:] + self.shifts[k:]).max())

    def is_certified(
        self,
        k: int,
        condition: CertificateCondition,
        samples: int,
        delta: float = FAILURE_PROBABILITY,
        min_margin: float = MIN_SCORE_GAP,
    ) -> bool:
        """Return True if the margin at K exceeds `min_margin`, which must be at least the ranker's noise."""
        margin = self.margin(k) if condition.startswith("paper") else self.tight_margin(k)
        if condition.endswith("sampled"):
            margin -= sampling_margin(samples, delta)
        elif condition == "tight, whole list":
            margin -= sampling_margin(samples, delta, len(self.scores))
        return margin > min_margin


def find_certified_queries(
    lists: Mapping[str, CertifiableList],
    k: int,
    condition: CertificateCondition,
    samples: int,
    delta: float = FAILURE_PROBABILITY,
) -> list[str]:
    """Return the queries whose lists are certified at K."""
    return [qid for qid, one in lists.items() if one.is_certified(k, condition, samples, delta)]


def build_certified_rows(
    lists: Mapping[str, CertifiableList],
    samples: int,
    ks: Sequence[int] = CERTIFICATE_CUTOFFS,
    delta: float = FAILURE_PROBABILITY,
) -> list[dict[str, float]]:
    """Return CRQ@K, the percentage of queries with certified lists: a row for each K, a column for each condition.

    A list with at most K documents is certified, because no document can enter; `short` counts these lists.
    """
    if not lists:
        raise BadInput("there is no list to certify")
    return [
        {
            "K": k,
            "queries": len(lists),
            "short": sum(len(one.scores) <= k for one in lists.values()),
            **{
                f"CRQ % ({reading})": 100 * len(find_certified_queries(lists, k, reading, samples, delta)) / len(lists)
                for reading in CERTIFICATE_CONDITIONS
            },
        }
        for k in ks
    ]


def conditional_success_rates(
    queries: Sequence[str], before: Floats, after: Floats, certified: Collection[str], k: int, seed: int = 0
) -> dict[str, TargetEstimate]:
    """Return the conditional success rate in per cent, under several definitions.

    The arguments hold the query of each target, and its ranks before and after. The papers print no definition, so each
    name says what is counted:
      CSR              of targets from below K, those that end among the first K, P(r' ≤ K | r > K)
      ASR, certified   of targets in lists that are certified at K, those that rank higher than before
      CSR, certified   both: if all attacks are admissible, the certificate guarantees 0
    """
    sure = np.isin(np.asarray(queries, dtype=str), list(certified))
    below = before > k

    def share(won: NDArray[np.bool_], of: NDArray[np.bool_]) -> TargetEstimate:
        kept = [qid for qid, yes in zip(queries, of, strict=True) if yes]
        return estimate(100.0 * won[of], kept, seed)

    return {
        f"CSR@{k} %": share(after <= k, below),
        f"ASR %, certified at {k}": share(after < before, sure),
        f"CSR@{k} %, certified": share(after <= k, below & sure),
    }
