"""The certificate task: certified robustness of smoothed rankers.

Wu, Zhang, Guo, Chen, Fan, de Rijke, Cheng. Certified robustness to word substitution ranking attack for neural ranking
models. CIKM 2022.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from shaketable.core.errors import NotApplicable, check_parameter, check_ranges
from shaketable.core.results import Figure, Finding, Result
from shaketable.core.seeding import make_item_rng
from shaketable.defences.smoothing import SmoothedRanker
from shaketable.measures.certificates import (
    CERTIFICATE_CUTOFFS,
    FAILURE_PROBABILITY,
    CertificateCondition,
    build_certified_rows,
)
from shaketable.tasks._certifiable_lists import build_certifiable_lists

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.experiment import Experiment

HEADLINE_READING: CertificateCondition = "tight"
"""The certificate condition that findings use: the tightest one that takes the score as exact."""


@dataclass(frozen=True)
class Certificate:
    """Certified lists: no attack can move a document from below rank K into the first K.

    ks         the ranks K to certify
    queries    queries whose lists are certified, drawn at random; 0 is all of them
    changed    words of a document that an attack may change; 0 is all of them

    Only smoothed rankers can be certified: `smoothed(...)` against replacement by synonyms, and `masked(...)` against
    replacement by any words. The ranker's `samples` sets the number of draws.
    """

    ks: tuple[int, ...] = CERTIFICATE_CUTOFFS
    queries: int = 20
    changed: int = 0

    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = True
    opt_in: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_parameter(
            "certificate", bool(self.ks) and min(self.ks) >= 1, "ks", "one or more ranks from 1 on", self.ks
        )
        check_ranges("certificate", self, queries=(0, 100_000_000), changed=(0, 1_000_000))

    def run(self, experiment: Experiment) -> Result:
        import pandas as pd

        smoothed = {
            name: ranker
            for name in experiment.scoring_rankers
            if isinstance(ranker := experiment.get_ranker(name), SmoothedRanker)
        }
        if not smoothed:
            raise NotApplicable(
                "certificates need a smoothed ranker, and there is none; use for example "
                "smoothed(base='bm25', scale=10), or a model of train --defence certdr"
            )
        qids = self._sample_queries(experiment)
        frames = []
        for name, ranker in smoothed.items():
            lists = build_certifiable_lists(experiment, name, qids, self.changed)
            frames.append(pd.DataFrame(build_certified_rows(lists, ranker.samples, self.ks)).assign(ranker=name))
        table = pd.concat(frames, ignore_index=True)
        table = table[["ranker", *(column for column in table.columns if column != "ranker")]]
        return Result(
            "certificate",
            "Which lists can no attack change?",
            {"certified lists": table},
            (
                Figure(
                    "lines",
                    "certified lists",
                    "Lists that no attack can change",
                    "K",
                    _format_heading(HEADLINE_READING),
                    "ranker",
                    ("The percentage of queries whose top K no attack of this type can enter from below."),
                ),
            ),
            tuple(self._build_notes(smoothed)),
            tuple(_build_findings(table)),
        )

    def _sample_queries(self, experiment: Experiment) -> list[str]:
        qids = list(experiment.queries)
        if self.queries and self.queries < len(qids):
            kept = set(make_item_rng(experiment.seed, "certificate, queries").permutation(sorted(qids))[: self.queries])
            return [qid for qid in qids if qid in kept]
        return qids

    def _build_notes(self, smoothed: Mapping[str, SmoothedRanker]) -> Iterator[str]:
        words = f"up to {self.changed} words" if self.changed else "any number of words"
        yield (
            f"'CRQ %' is the percentage of queries whose list is certified at K: if an attack replaces {words} of "
            "the documents below rank K, within the perturbations that the ranker is smoothed against, none of them "
            "enters the top K."
        )
        yield (
            "A certificate can be read in several ways. 'paper' and 'tight' take the smoothed score as exact: 'paper' "
            "compares the gap between two neighbours with the largest shift below, and 'tight' checks each document "
            "separately. In fact, the score is a mean of random draws: 'sampled' allows for the draws of two texts, "
            "and 'whole list' for those of all texts, so that it is wrong with a probability of at most "
            f"{FAILURE_PROBABILITY:g}."
        )
        for name, ranker in smoothed.items():
            yield f"{name}: each score is the mean of {ranker.samples:,} draws."


def _format_heading(reading: CertificateCondition) -> str:
    return f"CRQ % ({reading})"


def _build_findings(table: pd.DataFrame) -> Iterator[Finding]:
    from scipy.stats import binomtest

    for row in table.to_dict("records"):
        value, count = row[_format_heading(HEADLINE_READING)], int(row["queries"])
        ends = binomtest(round(value * count / 100), count).proportion_ci(method="wilson")
        yield Finding(row["ranker"], f"CRQ@{row['K']} %", value, 100 * ends.low, 100 * ends.high, count)
