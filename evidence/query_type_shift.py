"""Unforeseen kinds of queries (paper 000, 4.3 and 4.4, Table 5 and Figure 4), on MS MARCO's own five types.

make evidence PAGE=query-type-shift        (half an hour on one core; models are kept, so it may be cut off)
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from evidence import DATA, line, need_data, prose, table, write_page
from evidence.neural import VECTORS
from shaketable.core.documents import Collection
from shaketable.core.home import home_folder
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.datasets.load import load
from shaketable.experiment import Experiment
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store
from shaketable.tasks.query_type_shift import QueryTypeShift

RANKERS = ("bm25", "ql", "prank", "ranksvm", "lambdamart(trees=100, leaves=8)",
           f"knrm(steps=300, vectors={str(VECTORS)!r})")  # fmt: skip
DISTRACTORS = ("dl19", "rag24")
FAMILIES = {"lexical": ("bm25", "ql"), "learning to rank": ("prank", "ranksvm", "lambdamart"), "nets": ("knrm",)}


def crowded() -> Collection:
    """MS MARCO's typed queries, whose relevant passages stand among those of two other collections."""
    typed = load(DATA / "collections" / "msmarco-types")
    docs = dict(typed.docs.items())
    known = {doc.text for doc in docs.values()}
    for name in DISTRACTORS:
        for docno, doc in load(DATA / "collections" / name).docs.items():
            if doc.text not in known:
                docs[f"{name}-{docno}"] = doc
    return replace(typed, name="msmarco-types among others", docs=MemoryCorpus(docs), source="")


def opened() -> Experiment:
    return Experiment(crowded(), {}, ScoringEngine(Store(home_folder() / "scores.sqlite")), split="test")


def means(frame: pd.DataFrame) -> list[list[str]]:
    """The mean drop of each ranker for each group of trainings."""
    lines = []
    for ranker, part in frame.groupby("ranker", sort=False):
        cells = [
            f"{row['mean drop %']:+.1f} [{row['low']:+.1f}, {row['high']:+.1f}]" for row in part.to_dict("records")
        ]
        lines.append([str(ranker), *cells])
    return lines


def matrix(frame: pd.DataFrame) -> list[list[str]]:
    """RR@100, a row for each ranker and training."""
    tests = [column for column in frame.columns if str(column).startswith("on ")]
    return [
        [row["ranker"], row["trained on"], *("" if pd.isna(row[test]) else f"{row[test]:.4f}" for test in tests)]
        for row in frame.to_dict("records")
    ]


def significant(frame: pd.DataFrame) -> list[list[str]]:
    """For each ranker, how many cells fall and rise, and how many of them beyond chance."""
    lines = []
    for ranker, part in frame.groupby("ranker", sort=False):
        fell, rose = part["drop %"] < 0, part["drop %"] > 0
        marked = part[""] == "*"
        counts = [len(part), fell.sum(), (fell & marked).sum(), rose.sum(), (rose & marked).sum()]
        lines.append([str(ranker), *map(str, counts), f"{part['drop %'].min():+.1f}"])
    return lines


def by_family(frame: pd.DataFrame, group: str) -> str:
    """The mean drops of the families, for one group of trainings."""
    part = frame[frame["trained on"] == group].set_index("ranker")["mean drop %"]
    return ", ".join(f"{name} {part[list(some)].mean():+.1f} %" for name, some in FAMILIES.items())


def main() -> None:
    need_data("collections", "msmarco-types")
    experiment = opened()
    result = QueryTypeShift(rankers=RANKERS).run(experiment)
    tables = result.tables
    groups = list(dict.fromkeys(tables["mean drop"]["trained on"]))
    kinds = tables["query types"]
    write_page(
        __file__,
        "Unforeseen kinds of queries",
        [
            prose(f"""MS MARCO's typed queries, one relevant passage each; the passages of dl19 and rag24 stand among
            theirs, {len(experiment.collection.docs):,} in all. Each ranker learns from queries of one kind and is
            tested on each kind; formulas are tuned on the training kind. All kinds are cut to the smallest, person: 97
            queries have it, so what follows is about a few dozen queries a cell, and differences of some per cent
            cannot be told from chance. drop: against the same ranker trained on the kind that it is tested on, on the
            same queries, RR@100. In brackets: 95 % intervals over queries. One seed of each training."""),
            "## Table 4: the kinds",
            table(
                list(kinds.columns),
                [[f"{v:.1f}" if isinstance(v, float) else str(v) for v in row] for row in kinds.to_numpy().tolist()],
            ),
            "## Mean drop, in per cent",
            prose("""ALL*: trained on all other kinds together, as in the paper; ALL* cut: the same, cut to the size of
            one kind, which tells variety from volume."""),
            table(("ranker", *groups), means(tables["mean drop"])),
            "## Cells that fall and rise",
            prose("""Stars: paired t-test, p <= .05 after Holm over all cells of all rankers."""),
            table(
                ("ranker", "cells", "fall", "with a star", "rise", "with a star", "lowest drop %"),
                significant(tables["drop"]),
            ),
            "## Table 5: RR@100",
            table(list(tables["effectiveness"].columns), matrix(tables["effectiveness"])),
            "## What the paper says, and what is found here",
            table(("claim", "here"), claims(tables["mean drop"], groups)),
            *(f"- {note}" for note in result.notes),
        ],
    )


def claims(frame: pd.DataFrame, groups: list[str]) -> list[list[str]]:
    """The claims of 4.4 that these rankers can speak to; the intervals above say how far."""
    single = frame[frame["trained on"] == groups[0]].set_index("ranker")
    sure = [name for name, row in single.iterrows() if row["high"] < 0]
    whole = {group: frame[frame["trained on"] == group].set_index("ranker")["mean drop %"] for group in groups}
    better = [r for r in single.index if whole[groups[1]][r] > single["mean drop %"][r]]
    cut = [r for r in single.index if whole[groups[2]][r] > single["mean drop %"][r]]
    loses = f"mean drop below 0 beyond chance for {len(sure)} of {len(single)}: {', '.join(map(str, sure)) or 'none'}"
    volume = f"ALL* loses less for {len(better)} of {len(single)}; cut to the size of one kind, for {len(cut)}"
    return [
        ["most rankers lose on other kinds", loses],
        ["four kinds are better to learn from than one", volume],
        ["lexical rankers lose least, then LTR, then nets", by_family(frame, groups[0])],
    ]


def cheap_row() -> str:
    result = QueryTypeShift(rankers=("bm25",)).run(opened())
    return line(means(result.tables["mean drop"])[0])


if __name__ == "__main__":
    main()
