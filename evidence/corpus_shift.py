"""Unforeseen corpora (paper 000, 4.2 and 4.5, Table 6 and Figure 5): six collections, each learned from, each tested.

make evidence PAGE=corpus-shift        (half an hour on two cores; models are kept, so it may be cut off)
"""

from __future__ import annotations

import pandas as pd

from evidence import DATA, line, need_data, prose, table, write_page
from evidence.query_type_shift import FAMILIES, RANKERS, matrix, significant
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


def families(frame: pd.DataFrame) -> str:
    part = frame.set_index("ranker")["mean drop %"]
    return ", ".join(f"{name} {part[list(some)].mean():+.1f} %" for name, some in FAMILIES.items())


def main() -> None:
    need_data("collections", "cranfield")
    experiment = opened()
    equal = task().run(experiment)
    tables = equal.tables
    drop = tables["drop"]
    write_page(
        __file__,
        "Unforeseen corpora",
        [
            prose("""Each ranker learns from one collection and ranks all judged queries of each; the reference of a
            collection is its own model out of five folds, on the same queries. nDCG@10 of BM25's first 100, or of a
            search where a ranker searches. Formulas are tuned on the training collection; LambdaMART, RankSVM and PRank
            learn from features that all six have; knrm is on GloVe's vectors, so that no corpus has words that it does
            not know. All models learn from as many relevant pairs, those of the smallest collection. In
            brackets: 95 % intervals over queries. One seed of each training."""),
            "## The collections",
            table(list(tables["collections"].columns), numbers(tables["collections"])),
            "## Mean drop on other corpora, in per cent",
            table(("ranker", "mean drop %", "cells"), means(tables["mean drop"])),
            "## Cells that fall and rise",
            prose("""Stars: paired t-test, p <= .05 after Holm over all cells of all rankers."""),
            table(
                ("ranker", "cells", "fall", "with a star", "rise", "with a star", "lowest drop %"), significant(drop)
            ),
            "## How far corpora are apart, and what rankers lose",
            table(list(tables["corpora"].columns), numbers(tables["corpora"])),
            "## Table 6: nDCG@10",
            table(list(tables["effectiveness"].columns), matrix(tables["effectiveness"])),
            "## What the paper says, and what is found here",
            table(("claim", "here"), claims(tables["mean drop"], drop)),
            *(f"- {note}" for note in equal.notes),
        ],
    )


def claims(means_: pd.DataFrame, drop: pd.DataFrame) -> list[list[str]]:
    known = means_.set_index("ranker")
    fell = int((drop["drop %"] < 0).sum())
    bm25, ql = (known.loc[name] for name in ("bm25", "ql"))
    apart = "their intervals lie apart" if bm25["high"] < ql["low"] or ql["high"] < bm25["low"] else (
        "their intervals overlap, so it cannot be told")  # fmt: skip
    order = ", ".join(f"{name} {known.loc[name, 'mean drop %']:+.1f}" for name in ("prank", "ranksvm", "lambdamart"))
    return [
        ["almost all drops are negative", f"{fell} of {len(drop)}"],
        ["QL loses less than BM25", f"{ql['mean drop %']:+.1f} and {bm25['mean drop %']:+.1f} %; {apart}"],
        ["PRank loses less than RankSVM and LambdaMART", order],
        ["nets lose most", families(means_)],
    ]


def cheap_row() -> str:
    """What is learned from and tested on; to tune a formula on six collections takes minutes."""
    return line(numbers(task().describe_collections(opened()))[0])


if __name__ == "__main__":
    main()
