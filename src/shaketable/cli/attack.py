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
    import shaketable as st
    from shaketable.cli.console import open_report

    finish = open_report(report, out)
    done = st.attack(
        files.select_source(data),
        ranker or (),
        how.recipe or (),
        goal=how.goal,
        targets=how.targets,
        attacked_queries=how.attacked_queries,
        group=how.group,
        max_trials=how.max_trials,
        adversarial_documents=how.adversarial_documents,
        any_grade=how.any_grade,
        parser=how.parser,
        write_documents=how.write_documents,
        **collection.to_options(),
        **run.to_options(),
    )
    if not finish(done):
        raise typer.Exit(1)
