"""Query variations on rag24 with learned rankers (paper 004): each re-ranks what BM25 finds for the original query.

make evidence PAGE=net-variations        (an hour on two cores)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from evidence import Guard, Page, Rows, need_data, prose, table
from evidence._rag24 import learned, open_rag24
from evidence.query_variation import short, transforms
from shaketable.experiment import Experiment
from shaketable.tasks.query_variation import QueryVariation

LEXICAL = ("bm25", "ql", "dense")
CATEGORIES = ("misspelling", "naturality", "ordering", "paraphrasing")


def opened(nets: bool = True) -> Experiment:
    """The test queries of rag24, with BM25's lists as the candidates of all rankers."""
    experiment = open_rag24(*LEXICAL)
    models = {**experiment.models, **learned(experiment)} if nets else {"bm25": experiment.models["bm25"]}
    fixed = experiment.with_collection(
        replace(experiment.collection, candidates=experiment.candidates, source=""), experiment.split
    )
    return replace(fixed, models=models)


def cells(row: pd.Series) -> str:
    return f"{row['change']:+.4f}{row['']}"


def rows(frame: pd.DataFrame) -> list[list[str]]:
    """A row for each method, with what it changes for each ranker."""
    return [
        [category, short(method), *(cells(row) for _, row in part.iterrows()), str(part["queries"].iloc[0])]
        for (category, method), part in frame.groupby(["category", "method"], sort=False)
    ]


def originals(experiment: Experiment) -> list[list[str]]:
    """What the queries are worth as they are, a row for each ranker."""
    means = experiment.get_score_table("nDCG@10").values.mean(axis=1)
    return [[name, f"{mean:.4f}"] for name, mean in zip(experiment.models, means, strict=True)]


def read_drops(frame: pd.DataFrame) -> list[list[str]]:
    """The relative change over valid variations in per cent, a row for each ranker."""
    drop = frame.pivot_table(index="ranker", columns="category", values="drop % (valid)", sort=False)
    return [[str(name), *(f"{row[category]:+.1f}" for category in CATEGORIES)] for name, row in drop.iterrows()]


def claims(drops: Sequence[Sequence[str]]) -> list[list[str]]:
    """What the paper says of the categories, and whether it is so here."""
    drop = pd.DataFrame([row[1:] for row in drops], [row[0] for row in drops], CATEGORIES).astype(float)
    said = {name: ", ".join(f"{r} {drop.loc[r, name]:+.1f}" for r in drop.index) for name in drop.columns}
    worst = [ranker for ranker in drop.index if drop.loc[ranker].idxmin() == "misspelling"]
    still = [ranker for ranker in drop.index if abs(drop.loc[ranker, "ordering"]) < 1]
    return [
        [
            "misspellings cost most, of all categories",
            f"for {len(worst)} of {len(drop)} rankers; {said['misspelling']}",
            _verdict(len(worst), len(drop)),
        ],
        [
            "another order of words costs next to nothing (below 1 %)",
            f"for {len(still)} of {len(drop)} rankers; {said['ordering']}",
            _verdict(len(still), len(drop)),
        ],
        [
            "paraphrases cost more than what is about naturality",
            f"paraphrasing {said['paraphrasing']}; naturality {said['naturality']}",
            _verdict(int((drop["paraphrasing"] < drop["naturality"]).sum()), len(drop)),
        ],
    ]


def _verdict(holding: int, rankers: int) -> str:
    return "holds" if holding == rankers else "does not hold" if not holding else "holds in part"


def measure() -> Rows:
    need_data("collections", "rag24")
    experiment = opened()
    found = QueryVariation(transforms=transforms(), depths=()).run(experiment).tables
    return {
        "queries": len(experiment.queries),
        "originals": originals(experiment),
        "methods": rows(found["by method"]),
        "categories": read_drops(found["by category"]),
    }


def compose(found: Rows) -> list[str]:
    names = [cells[0] for cells in found["originals"]]
    return [
        prose(f"""nDCG@10 of {found["queries"]} test queries, and what one variation of each by each method
        changes, where every ranker re-ranks BM25's top 100 of the original query (paper 004's re-rankers). `*`:
        paired t-test, p < 0.05 after Holm's correction over methods and rankers. The learned rankers have
        one seed and 215 train queries; dense is MiniLM as it comes. conv_knrm, bert and colbert are
        left out for the time that they take."""),
        table(("ranker", "the original queries"), found["originals"]),
        table(("category", "method", *names, "queries"), found["methods"]),
        "## What the paper says",
        "Relative change over valid variations, in per cent; verdicts are of these means.",
        table(("ranker", *CATEGORIES), found["categories"]),
        table(("claim", "here", "verdict"), claims(found["categories"])),
    ]


PAGE = Page(
    __file__,
    "Query variations on rag24, learned rankers",
    measure,
    compose,
    (Guard("originals", "the row of bm25", lambda: originals(opened(nets=False))[0]),),
)

if __name__ == "__main__":
    PAGE.main()
