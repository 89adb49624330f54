"""CertDR: a training with noise, and a ranker that is smoothed with the same noise and can be certified."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from shaketable.learners.neural import OBJECTIVES
from shaketable.learners.noisy import Noisy
from shaketable.learners.plan import Plan
from shaketable.rankers.smoothed import Smoothed
from shaketable.text.perturbation import MOST, TAU


@dataclass(frozen=True, kw_only=True)
class CertDR:
    """CertDR: texts whose words are replaced by synonyms at random; what is learned is meant to be smoothed.

    synonyms, tau, most    the perturbation sets: see `text.perturbation`; the paper's synonyms are "counterfitted"
    objective              of the lists with noise; "" is what the plan has

    The defence is the training and the smoothing together, `smoothed` of what was learned; without it there is no
    certificate. The authors' code learns at 3e-6 from one pass over documents of 445 pieces, in batches of 8.

    Wu, Zhang, Guo, Chen, Fan, de Rijke, Cheng. Certified robustness to word substitution ranking attack for neural
    ranking models. CIKM 2022.
    """

    synonyms: str = "thesaurus"
    tau: float = TAU
    most: int = MOST
    objective: str = "hinge"

    def __post_init__(self) -> None:
        Noisy(synonyms=self.synonyms, tau=self.tau, most=self.most)  # which refuses what makes no sense
        if self.objective:
            OBJECTIVES.build(self.objective)

    def plan(self, plan: Plan, adversaries: Callable[[], Path]) -> Plan:
        lists = Noisy(plan.lists, self.synonyms, self.tau, self.most)
        return replace(plan, lists=lists, objective=self.objective or plan.objective)

    def smoothed(self, folder: str | Path, samples: int = 100, seed: int = 0) -> Smoothed:
        """The ranker that a training by the plan left in a folder, smoothed with the noise that it has learned from."""
        return Smoothed(str(folder), samples, self.synonyms, self.tau, self.most, seed=seed)
