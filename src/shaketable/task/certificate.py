"""Which lists can no attack of a kind change? Certificates of smoothed rankers.

Wu, Zhang, Guo, Chen, Fan, de Rijke, Cheng. Certified robustness to word substitution ranking attack for neural ranking
models. CIKM 2022.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from shaketable.chance import draws_for
from shaketable.errors import NotApplicable, check, check_within
from shaketable.measure.certificate import DELTA, KS, Certifiable, Reading, certified_rows
from shaketable.rankers.smoothed import SmoothedRanker
from shaketable.types import Figure, Finding, Result

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.bench import Bench

HEADLINE: Reading = "tight"
"""The reading of a certificate that findings are of: the tightest that takes the score as it is."""


@dataclass(frozen=True)
class Certificate:
    """The lists that no attack can change: of which queries nobody from below place K can be brought among the first K.

    ks         the places K to certify
    queries    queries whose lists are certified, drawn at random; 0 is all of them
    changed    words of a document that an attack may change; 0 is all of them

    For smoothed rankers alone: `smoothed(...)`, where attacks replace words by synonyms, and `masked(...)`, where they
    replace them by any others. The number of draws is the ranker's own, `samples`.
    """

    ks: tuple[int, ...] = KS
    queries: int = 20
    changed: int = 0

    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = True
    asked_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check("certificate", bool(self.ks) and min(self.ks) >= 1, "ks", "one or more places from 1 on", self.ks)
        check_within("certificate", self, queries=(0, 100_000_000), changed=(0, 1_000_000))

    def run(self, bench: Bench) -> Result:
        import pandas as pd

        smoothed = {name: ranker for name in bench.scoring if isinstance(ranker := bench.ranker(name), SmoothedRanker)}
        if not smoothed:
            raise NotApplicable(
                "certificates are of smoothed rankers, and none of these is; smoothed(base='bm25', scale=10) is one, "
                "and train --defence certdr leaves one"
            )
        qids = self._drawn(bench)
        frames = []
        for name, ranker in smoothed.items():
            lists = certifiable(bench, name, qids, self.changed)
            frames.append(pd.DataFrame(certified_rows(lists, ranker.samples, self.ks)).assign(ranker=name))
        table = pd.concat(frames, ignore_index=True)
        table = table[["ranker", *(column for column in table.columns if column != "ranker")]]
        return Result(
            "certificate",
            "Which lists can no attack of a kind change?",
            {"certified lists": table},
            (
                Figure(
                    "lines",
                    "certified lists",
                    "Lists that no attack can change",
                    "K",
                    _column(HEADLINE),
                    "ranker",
                    (
                        "The percentage of queries in whose lists no attack brings a document from below place K "
                        "among the first K."
                    ),
                ),
            ),
            tuple(self._notes(smoothed)),
            tuple(_findings(table)),
        )

    def _drawn(self, bench: Bench) -> list[str]:
        qids = list(bench.queries)
        if self.queries and self.queries < len(qids):
            kept = set(draws_for(bench.seed, "certificate, queries").shuffled(sorted(qids))[: self.queries])
            return [qid for qid in qids if qid in kept]
        return qids

    def _notes(self, smoothed: Mapping[str, SmoothedRanker]) -> Iterator[str]:
        words = f"up to {self.changed} words" if self.changed else "any number of words"
        yield (
            f"'CRQ %' is the percentage of queries whose list is certified at K: whichever {words} of the documents "
            "below place K an attack replaces, within what the ranker is smoothed against, none of them comes among "
            "the first K."
        )
        yield (
            "A certificate can be read in several ways. 'paper' and 'tight' take the smoothed score as exact: 'paper' "
            "compares the gap between two neighbours with the largest shift below, and 'tight' asks for each document "
            "by itself. The score is in fact a mean of random draws: 'sampled' allows for the draws of two texts, and "
            f"'whole list' for those of all texts, so that it is wrong with a probability of at most {DELTA:g}."
        )
        for name, ranker in smoothed.items():
            yield f"{name}: each score is the mean of {ranker.samples:,} draws."


def certifiable(bench: Bench, name: str, qids: Iterable[str], changed: int = 0) -> dict[str, Certifiable]:
    """The lists of a smoothed ranker with what an attack of so many words could add to each score; 0 is all words."""
    ranker = bench.ranker(name)
    assert isinstance(ranker, SmoothedRanker)
    run = bench.rerank(name, {qid: bench.texts[qid] for qid in qids}, bench.candidates)
    docs = bench.collection.docs
    listed = {docno for scores in run.values() for docno in scores}
    shifts = {docno: ranker.shift(docs[docno], changed or None) for docno in listed}
    return {qid: Certifiable.of(scores, shifts) for qid, scores in run.items()}


def _column(reading: Reading) -> str:
    return f"CRQ % ({reading})"


def _findings(table: pd.DataFrame) -> Iterator[Finding]:
    from scipy.stats import binomtest

    for row in table.to_dict("records"):
        value, count = row[_column(HEADLINE)], int(row["queries"])
        ends = binomtest(round(value * count / 100), count).proportion_ci(method="wilson")
        yield Finding(row["ranker"], f"CRQ@{row['K']} %", value, 100 * ends.low, 100 * ends.high, count)
