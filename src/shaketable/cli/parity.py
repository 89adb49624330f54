"""`shaketable parity`: a check that servers, precisions or versions of a ranker give the same scores."""

from __future__ import annotations

from pathlib import Path

import typer

from shaketable.cli.options.data import CollectionFlags, Data, FileFlags
from shaketable.cli.options.output import OutFolder, ReportFlags
from shaketable.cli.options.performance import RunFlags
from shaketable.cli.options.rankers import Rankers
from shaketable.cli.options.tasks import ParityFlags


def parity(
    *,
    ranker: Rankers = None,
    data: Data = "sample",
    files: FileFlags,
    how: ParityFlags,
    out: OutFolder = Path("shaketable-parity"),
    report: ReportFlags,
    collection: CollectionFlags,
    run: RunFlags,
) -> None:
    """Check that rankers give the same scores, for example one model on two servers."""
    from shaketable.api import parity as api
    from shaketable.cli.console import open_report

    source, settings, where = files.select_source(data), how.to_options(), collection.to_options()
    finish = open_report(report, out, source, ranker or (), api.build_parity_task(ranker or (), **settings), where)
    done = api.parity(ranker or (), source, **settings, **where, **run.to_options())
    if not finish(done):
        raise typer.Exit(1)
