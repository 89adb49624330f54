"""`shaketable attack`: adversarial changes to documents."""

from __future__ import annotations

from pathlib import Path

import typer

from shaketable.cli.options.data import CollectionFlags, Data, FileFlags
from shaketable.cli.options.output import OutFolder, ReportFlags
from shaketable.cli.options.performance import RunFlags
from shaketable.cli.options.rankers import Rankers
from shaketable.cli.options.tasks import AttackFlags


def attack(
    *,
    data: Data = "sample",
    files: FileFlags,
    ranker: Rankers = None,
    how: AttackFlags,
    out: OutFolder = Path("shaketable-attack"),
    report: ReportFlags,
    collection: CollectionFlags,
    run: RunFlags,
) -> None:
    """Attack a ranker: change documents, for example by synonyms or keyword stuffing, until they rank higher."""
    from shaketable.api import attack as api
    from shaketable.cli.console import open_report

    source, recipes = files.select_source(data), how.recipe or ()
    settings, where = how.to_options(), collection.to_options()
    finish = open_report(report, out, source, ranker or (), api.build_attack_task(recipes, **settings), where)
    documents = how.write_documents
    done = api.attack(source, ranker or (), recipes, **settings, write_documents=documents, **where, **run.to_options())
    if not finish(done):
        raise typer.Exit(1)
