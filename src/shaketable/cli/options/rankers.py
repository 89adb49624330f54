"""Flags that name rankers."""

from __future__ import annotations

from typing import Annotated

import typer

from shaketable.cli import completion
from shaketable.cli.help import Panel
from shaketable.cli.options.groups import make_option, make_repeatable

RANKER_HELP = (
    "A ranker: a name such as bm25 or 'bm25(k1=0.9)', the URL of an endpoint, a Python object (module:object), a run "
    "file (run:FILE) or a model folder (./model). Write NAME=RANKER to choose its name in the tables. 'shaketable list "
    "rankers' shows all names."
)
WatchedRanker = Annotated[
    str,
    typer.Argument(metavar="RANKER", autocompletion=completion.rankers, help=RANKER_HELP),
]
Rankers = Annotated[
    list[str] | None,
    make_repeatable(Panel.RANKERS, "--ranker", metavar="RANKER", autocompletion=completion.rankers,
        help=RANKER_HELP),
]  # fmt: skip
OneRanker = Annotated[
    str,
    make_option(Panel.RANKERS, "--ranker", metavar="RANKER", autocompletion=completion.rankers,
        help=RANKER_HELP),
]  # fmt: skip
BaseRanker = Annotated[
    str,
    make_option(Panel.RANKERS, "--base-ranker", metavar="NAME",
        help="The ranker of the earlier audit that --new-ranker replaces. By default, rankers with the same name "
             "are compared."),
]  # fmt: skip
NewRanker = Annotated[
    str,
    make_option(Panel.RANKERS, "--new-ranker", metavar="NAME",
        help="The ranker of the new audit that replaces --base-ranker."),
]  # fmt: skip
Reference = Annotated[
    str,
    make_option(Panel.RANKERS, "--reference", metavar="NAME",
        help="The ranker to compare the others with. By default, it is the first ranker."),
]  # fmt: skip
