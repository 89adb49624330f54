"""Options that several commands share, described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[str, typer.Option("--data", help="'sample', a BEIR folder, or 'irds:ID'.")]
Split = Annotated[
    str | None, typer.Option("--split", help="Judgements to use, e.g. test or train; 'all' for every split.")
]
Rankers = Annotated[
    list[str] | None,
    typer.Option(
        "--ranker", help="bm25(k1=0.9), a URL, module:object, run:FILE, ...; repeat it. See 'shaketable list rankers'."
    ),
]
Candidates = Annotated[Path | None, typer.Option("--candidates", help="A TREC run whose documents all rankers rank.")]
Depth = Annotated[int, typer.Option("--depth", min=1, help="How many documents a query.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="Only the first N queries, for a quick look.")]
Seed = Annotated[int, typer.Option("--seed", help="Same seed, same result.")]
KeepGoing = Annotated[
    bool, typer.Option("--keep-going", help="Count queries that a ranker fails on instead of stopping.")
]
Json = Annotated[str | None, typer.Option("--json", help="Write the result as JSON to this file, or '-' for stdout.")]
Measures = Annotated[
    list[str] | None, typer.Option("--measure", help="An ir_measures name such as nDCG@10; repeat it.")
]
Alphas = Annotated[
    list[float] | None, typer.Option("--alpha", help="How much more a loss weighs than a win; repeat it.")
]
