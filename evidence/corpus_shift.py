"""Unforeseen corpora (paper 000, 4.2 and 4.5, Table 6 and Figure 5): six collections, each learned from, each tested.

make evidence PAGE=corpus-shift        (half an hour on two cores; models are kept, so it may be cut off)
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from evidence import DATA, Guard, Page, Rows, need_data, prose, read_interval, read_number, table
from evidence.query_type_shift import RANKERS, by_family, matrix, significant
from shaketable.core.home import home_folder
from shaketable.datasets.load import load
from shaketable.experiment import Experiment
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.store import Store
from shaketable.tasks.corpus_shift import CorpusShift

CORPORA = ("cranfield", "cacm", "medline", "vaswani", "time", "rag24")


def opened(name: str = CORPORA[0]) -> Experiment:
    return Experiment(load(DATA / "collections" / name), {}, ScoringEngine(Store(home_folder() / "scores.sqlite")))


def task(rankers: tuple[str, ...] = RANKERS) -> CorpusShift:
    return CorpusShift(corpora=tuple(str(DATA / "collections" / name) for name in CORPORA[1:]), rankers=rankers)


def means(frame: pd.DataFrame) -> list[list[str]]:
    return [
        [row["ranker"], f"{row['mean drop %']:+.1f} [{row['low']:+.1f}, {row['high']:+.1f}]", str(row["cells"])]
        for row in frame.to_dict("records")
    ]


def numbers(frame: pd.DataFrame) -> list[list[str]]:
    return [[f"{v:.3f}" if isinstance(v, float) else str(v) for v in row] for row in frame.to_numpy().tolist()]


def measure() -> Rows:
    need_data("collections", "cranfield")
    result = task().run(opened())
    found: Rows = {"mean drop": means(result.tables["mean drop"]), "cells": significant(result.tables["drop"])}
    for name in ("collections", "corpora"):
        found |= {f"heads of {name}": list(result.tables[name].columns), name: numbers(result.tables[name])}
    effectiveness = result.tables["effectiveness"]
    return found | {
        "heads of effectiveness": list(effectiveness.columns),
        "effectiveness": matrix(effectiveness),
        "notes": result.notes,
    }


def compose(found: Rows) -> list[str]:
    return [
        prose("""Each ranker learns from one collection and ranks all judged queries of each; the reference of a
        collection is its own model out of five folds, on the same queries. nDCG@10 of BM25's first 100, or of a
        search where a ranker searches. Formulas are tuned on the training collection; LambdaMART, RankSVM and PRank
        learn from features that all six have; knrm is on GloVe's vectors, so that no corpus has words that it does
        not know. All models learn from as many relevant pairs, those of the smallest collection. In
        brackets: 95 % intervals over queries. One seed of each training."""),
        "## The collections",
        table(found["heads of collections"], found["collections"]),
        "## Mean drop on other corpora, in per cent",
        table(("ranker", "mean drop %", "cells"), found["mean drop"]),
        "## Cells that fall and rise",
        prose("""Stars: paired t-test, p <= .05 after Holm over all cells of all rankers."""),
        table(("ranker", "cells", "fall", "with a star", "rise", "with a star", "lowest drop %"), found["cells"]),
        "## How far corpora are apart, and what rankers lose",
        table(found["heads of corpora"], found["corpora"]),
        "## Table 6: nDCG@10",
        table(found["heads of effectiveness"], found["effectiveness"]),
        "## What the paper says, and what is found here",
        table(("claim", "here"), claims(found["mean drop"], found["cells"])),
        *(f"- {note}" for note in found["notes"]),
    ]


def claims(drops: Sequence[Sequence[str]], cells: Sequence[Sequence[str]]) -> list[list[str]]:
    """What 4.5 says, by the printed tables."""
    known = {row[0]: row[1] for row in drops}
    count, fell = (sum(int(row[place]) for row in cells) for place in (1, 2))
    bm25, ql = (read_interval(known[name]) for name in ("bm25", "ql"))
    apart = "their intervals lie apart" if bm25[2] < ql[1] or ql[2] < bm25[1] else (
        "their intervals overlap, so it cannot be told")  # fmt: skip
    order = ", ".join(f"{name} {read_number(known[name]):+.1f}" for name in ("prank", "ranksvm", "lambdamart"))
    return [
        ["almost all drops are negative", f"{fell} of {count}"],
        ["QL loses less than BM25", f"{ql[0]:+.1f} and {bm25[0]:+.1f} %; {apart}"],
        ["PRank loses less than RankSVM and LambdaMART", order],
        ["nets lose most", by_family(known)],
    ]


PAGE = Page(
    __file__,
    "Unforeseen corpora",
    measure,
    compose,
    (Guard("collections", "the row of cranfield", lambda: numbers(task().describe_collections(opened()))[0]),),
)

if __name__ == "__main__":
    PAGE.main()
