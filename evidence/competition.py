"""Documents written to win (paper 000, section 5.5, Figures 6 and 7): ASRC, with rankers that learned from rag24.

make evidence PAGE=competition        (a few minutes where query-attack.md and rankers.md were made before)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from evidence import DATA, Guard, Page, Rows, need_data, prose, table
from evidence.neural import open_rag24
from evidence.query_attack import LTR, learned
from evidence.rankers import ENCODERS
from shaketable.datasets.splits import split_held_out
from shaketable.experiment import Experiment
from shaketable.tasks._competition_rounds import CHANGE_MEASURES
from shaketable.tasks._competition_tables import UNDECIDED
from shaketable.tasks.competition import RankCompetition

ASRC = DATA / "competition" / "asrc"
LEXICAL = ("bm25", "ql", "ql_jm")
TREES = ("prank", "ranksvm", "lambdamart")
MEASURES = (*CHANGE_MEASURES, "MAP", "nDCG@5")


def opened() -> Experiment:
    """Rankers that know rag24 alone: its word statistics, its train queries."""
    experiment = open_rag24(*LEXICAL, "dense")
    short = experiment.with_depth(20)
    encoders = {name: short.fit(ENCODERS[name], "train") for name in ("bert", "colbert")}
    return replace(experiment, models={**experiment.models, **learned(experiment), **encoders})


def rows(frame: pd.DataFrame) -> list[list[str]]:
    """A row for each ranker, each number with its interval over queries."""
    return [
        [row["ranker"], *(f"{row[m]:.3f} [{row[f'{m} low']:.3f}, {row[f'{m} high']:.3f}]" for m in MEASURES)]
        for row in frame.to_dict("records")
    ]


def orders(pairs: pd.DataFrame) -> list[list[str]]:
    """How many of all pairs of rankers can be told apart, and which."""
    lines = []
    for measure, part in pairs.groupby("measure", sort=False):
        told = part[part["order"] != UNDECIDED]
        named = "; ".join(
            f"{row['order']} than {row['other'] if row['order'].startswith(row['ranker'] + ' ') else row['ranker']}"
            for row in told.to_dict("records")
        )
        lines.append([str(measure), f"{len(told)} of {len(part)}", named])
    return lines


Pairs = Mapping[str, Sequence[tuple[str, str]]]
"""measure -> the pairs of rankers that can be told apart, the one that is ahead first"""


def read_pairs(printed: Sequence[Sequence[str]]) -> Pairs:
    """Return the pairs that the page names."""
    return {
        measure: [(said.split()[0], said.split()[-1]) for said in named.split("; ") if said]
        for measure, _, named in printed
    }


def ahead(pairs: Pairs, measure: str, one: Sequence[str], other: Sequence[str]) -> tuple[int, int, int]:
    """Of the pairs between two groups of rankers: those where the first is ahead, where the second is, and all."""
    won = sum(winner in one and loser in other for winner, loser in pairs[measure])
    lost = sum(winner in other and loser in one for winner, loser in pairs[measure])
    return won, lost, len(one) * len(other)


def claim(text: str, pairs: Pairs, measures: Sequence[str], one: Sequence[str], other: Sequence[str]) -> list[str]:
    """What the paper says of two groups, and in how many comparisons it can be told."""
    found = {m: ahead(pairs, m, one, other) for m in measures}
    said = "; ".join(f"{m}: {won} for it, {lost} against, of {count}" for m, (won, lost, count) in found.items())
    won, lost = (sum(counts[at] for counts in found.values()) for at in (0, 1))
    total = sum(count for *_, count in found.values())
    verdict = "cannot be told" if not won and not lost else "holds" if won == total else "holds in part"
    return [text, said, "does not hold" if lost > won else verdict]


def claims(pairs: Pairs, names: Sequence[str]) -> list[list[str]]:
    nets = [name for name in names if name not in (*LEXICAL, *TREES)]
    plain = ("bm25", "ql")
    return [
        claim("QL and BM25 are steadier than all others", pairs, CHANGE_MEASURES, plain, [*TREES, *nets]),
        claim(
            "RankSVM and PRank are steadier than LambdaMART",
            pairs,
            CHANGE_MEASURES,
            ("ranksvm", "prank"),
            ("lambdamart",),
        ),
        claim("RankSVM is steadier than PRank", pairs, CHANGE_MEASURES, ("ranksvm",), ("prank",)),
        claim("lexical rankers are better than learned ones", pairs, MEASURES[2:], plain, [*TREES, *nets]),
        claim("DSSM is the best of the nets", pairs, MEASURES[2:], ("dssm",), [n for n in nets if n != "dssm"]),
    ]


def won(moved: pd.DataFrame) -> list[list[str]]:
    """By how many places documents rose, with intervals."""
    lines = []
    for row in moved.to_dict("records"):
        ends = f"[{row['ranks gained low']:+.3f}, {row['ranks gained high']:+.3f}]"
        lines.append([row["ranker"], str(row["number"]), f"{row['ranks gained']:+.3f} {ends}"])
    return lines


def measure() -> Rows:
    need_data("competition", "asrc")
    found = RankCompetition(data=str(ASRC)).run(opened()).tables
    moved = found["rewritten documents"]
    return {
        "competition": rows(found["competition"]),
        "pairs": orders(found["pairs of rankers"]),
        "rewritten": won(moved[moved["documents"] == "rewritten"]),
    }


def compose(found: Rows) -> list[str]:
    names = [cells[0] for cells in found["competition"]]
    return [
        prose("""ASRC: 31 queries, 8 rounds; in each round five students (six for one query) each wrote a document
        that was to stand higher than before. Every ranker is as it was opened or trained on rag24: word statistics
        and training queries come from there, never from the competition. TC: how often another author stands first
        in the next round. KT: the share of pairs of authors that change their order. MAP, nDCG@5: over all rounds.
        In brackets: 95 % intervals, queries drawn again, each with all its rounds. Lower TC and KT are steadier; a
        ranker that sees nothing is perfectly steady."""),
        "## Figures 6 and 7",
        table(("ranker", *MEASURES), found["competition"]),
        "## Who can be told apart",
        prose("""Pairs of rankers whose paired difference has an interval without 0; not corrected for the number of
        pairs, so of 100 pairs that are equal some five would be named here."""),
        table(("measure", "pairs told apart", "which"), found["pairs"]),
        "## What rewriting wins",
        prose("""The mean number of places that a rewritten document rises from a round to the next."""),
        table(("ranker", "rewritten documents", "ranks gained"), found["rewritten"]),
        "## What the paper says, and what is found here",
        prose("""A comparison of two rankers is for a claim, or against it, only where they can be told apart."""),
        table(("claim", "here", ""), claims(read_pairs(found["pairs"]), names)),
    ]


def competition_row(name: str) -> list[str]:
    """Return the row of one ranker, which is trained for it if it learns."""
    experiment = open_rag24("bm25")
    if name in LTR:
        train, valid = split_held_out(experiment.collection.splits["train"], experiment.seed)
        experiment = replace(experiment, models={name: experiment.fit(LTR[name], train, valid=valid)})
    return rows(RankCompetition(data=str(ASRC)).run(experiment).tables["competition"])[0]


PAGE = Page(
    __file__,
    "Documents written to win",
    measure,
    compose,
    (
        Guard("competition", "the row of bm25", lambda: competition_row("bm25")),
        Guard("competition", "the row of ranksvm, trained again", lambda: competition_row("ranksvm")),
    ),
)

if __name__ == "__main__":
    PAGE.main()
