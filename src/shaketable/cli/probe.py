"""`shaketable probe`: preferences of a ranker between two texts that differ in one property."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import typer

from shaketable.cli.options.data import CollectionFlags, Data, FileFlags
from shaketable.cli.options.output import OutFolder, ReportFlags
from shaketable.cli.options.performance import RunFlags
from shaketable.cli.options.rankers import Rankers
from shaketable.cli.options.tasks import ProbeFlags


def probe(
    *,
    data: Data = "sample",
    files: FileFlags,
    ranker: Rankers = None,
    how: ProbeFlags,
    out: OutFolder = Path("shaketable-probe"),
    report: ReportFlags,
    collection: CollectionFlags,
    run: RunFlags,
) -> None:
    """Show which of two texts a ranker prefers, when they differ in one property such as word order or length."""
    from shaketable.api import probe as api
    from shaketable.cli.console import notify, open_report

    source, probes = files.select_source(data), how.probe or ()
    if how.pairs and not (report.tables or report.table):
        report = replace(report, table=[api.PAIRS_TABLE])
    settings, where = how.to_options(), collection.to_options()
    finish = open_report(report, out, source, ranker or (), api.build_probes_task(probes, **settings), where)
    done = api.probe(source, ranker or (), probes, **settings, **where, **run.to_options())
    passed = finish(done)
    if failed := api.count_failed_pairs(done):
        notify(f"{failed} of your own pairs differ from the expectation.", always=True)
    if failed or not passed:
        raise typer.Exit(1)
