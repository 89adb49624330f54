"""Unforeseen kinds of queries (paper 000, 4.3 and 4.4, Table 5 and Figure 4), on MS MARCO's own five types.

make evidence PAGE=query-type-shift        (half an hour on one core; models are kept, so it may be cut off)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from evidence import DATA, Guard, Page, Rows, need_data, prose, read_interval, read_number, table
from evidence._rag24 import VECTORS
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


def by_family(drops: Mapping[str, str]) -> str:
    """The mean drops of the families, by the printed drops of rankers."""
    means = {name: sum(read_number(drops[one]) for one in some) / len(some) for name, some in FAMILIES.items()}
    return ", ".join(f"{name} {mean:+.1f} %" for name, mean in means.items())


def measure() -> Rows:
    need_data("collections", "msmarco-types")
    experiment = opened()
    result = QueryTypeShift(rankers=RANKERS).run(experiment)
    tables = result.tables
    kinds = tables["query types"]
    return {
        "passages": len(experiment.collection.docs),
        "heads of kinds": list(kinds.columns),
        "kinds": [[f"{v:.1f}" if isinstance(v, float) else str(v) for v in row] for row in kinds.to_numpy().tolist()],
        "groups": list(dict.fromkeys(tables["mean drop"]["trained on"])),
        "mean drop": means(tables["mean drop"]),
        "cells": significant(tables["drop"]),
        "heads of effectiveness": list(tables["effectiveness"].columns),
        "effectiveness": matrix(tables["effectiveness"]),
        "notes": result.notes,
    }


def compose(found: Rows) -> list[str]:
    return [
        prose(f"""MS MARCO's typed queries, one relevant passage each; the passages of dl19 and rag24 stand among
        theirs, {found["passages"]:,} in all. Each ranker learns from queries of one kind and is
        tested on each kind; formulas are tuned on the training kind. All kinds are cut to the smallest, person: 97
        queries have it, so what follows is about a few dozen queries a cell, and differences of some per cent
        cannot be told from chance. drop: against the same ranker trained on the kind that it is tested on, on the
        same queries, RR@100. In brackets: 95 % intervals over queries. One seed of each training."""),
        "## Table 4: the kinds",
        table(found["heads of kinds"], found["kinds"]),
        "## Mean drop, in per cent",
        prose("""ALL*: trained on all other kinds together, as in the paper; ALL* cut: the same, cut to the size of
        one kind, which tells variety from volume."""),
        table(("ranker", *found["groups"]), found["mean drop"]),
        "## Cells that fall and rise",
        prose("""Stars: paired t-test, p <= .05 after Holm over all cells of all rankers."""),
        table(
            ("ranker", "cells", "fall", "with a star", "rise", "with a star", "lowest drop %"),
            found["cells"],
        ),
        "## Table 5: RR@100",
        table(found["heads of effectiveness"], found["effectiveness"]),
        "## What the paper says, and what is found here",
        table(("claim", "here"), claims(found["mean drop"])),
        *(f"- {note}" for note in found["notes"]),
    ]


def claims(drops: Sequence[Sequence[str]]) -> list[list[str]]:
    """The claims of 4.4 that these rankers can speak to, by the printed drops; the intervals say how far."""
    single, union, cut = ({cells[0]: cells[place] for cells in drops} for place in (1, 2, 3))
    sure = [name for name, cell in single.items() if read_interval(cell)[2] < 0]
    better, alike = ([r for r in single if read_number(of[r]) > read_number(single[r])] for of in (union, cut))
    loses = f"mean drop below 0 beyond chance for {len(sure)} of {len(single)}: {', '.join(sure) or 'none'}"
    volume = f"ALL* loses less for {len(better)} of {len(single)}; cut to the size of one kind, for {len(alike)}"
    return [
        ["most rankers lose on other kinds", loses],
        ["four kinds are better to learn from than one", volume],
        ["lexical rankers lose least, then LTR, then nets", by_family(single)],
    ]


def drop_row(ranker: str) -> list[str]:
    """Return the mean drops of one ranker, tuned or trained again on every kind."""
    return means(QueryTypeShift(rankers=(ranker,)).run(opened()).tables["mean drop"])[0]


PAGE = Page(
    __file__,
    "Unforeseen kinds of queries",
    measure,
    compose,
    (
        Guard("passages", "the number of passages", lambda: len(crowded().docs)),
        Guard("mean drop", "the mean drops of prank, trained on every kind", lambda: drop_row("prank"), slow=True),
        Guard("mean drop", "the mean drops of bm25, tuned on every kind", lambda: drop_row("bm25"), slow=True),
    ),
)

if __name__ == "__main__":
    PAGE.main()
