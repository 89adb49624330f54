"""Flags that name rankers."""

from __future__ import annotations

from typing import Annotated

import typer

from shaketable.cli import completion
from shaketable.cli.options.groups import make_repeatable

RANKER_HELP = (
    "A ranker: a name such as bm25 or 'bm25(k1=0.9)', the URL of an endpoint, a Python object (module:object), a run "
    "file (run:FILE) or a model folder (./model). Write NAME=RANKER to choose its name in the tables. 'shaketable list "
    "rankers' shows them all."
)
Rankers = Annotated[
    list[str] | None,
    make_repeatable("--ranker", RANKER_HELP, metavar="RANKER", autocompletion=completion.rankers),
]
OneRanker = Annotated[
    str, typer.Option("--ranker", metavar="RANKER", autocompletion=completion.rankers, help=RANKER_HELP)
]
BaseRanker = Annotated[
    str,
    typer.Option("--base-ranker", metavar="NAME", help="The ranker of the earlier audit to compare with. By default, "
                 "rankers of the same name are compared."),
]  # fmt: skip
NewRanker = Annotated[
    str,
    typer.Option("--new-ranker", metavar="NAME", help="The ranker of the new audit that replaces --base-ranker."),
]
Reference = Annotated[
    str,
    typer.Option("--reference", metavar="NAME", help="The ranker that the others are compared with. By default it is "
                 "the first ranker."),
]  # fmt: skip
