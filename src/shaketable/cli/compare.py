"""`shaketable compare`: is the new version worse than the one before?"""

from __future__ import annotations

from pathlib import Path

import typer

from shaketable.cli import options as o


def compare(
    base: o.BaseAudit,
    new: o.NewAudit,
    base_ranker: o.BaseRanker = "",
    new_ranker: o.NewRanker = "",
    finding: o.Findings = None,
    despite: o.Despite = None,
    markdown_to: o.Summary = None,
    json_to: o.Json = None,
    fail_on_regression: o.FailOnRegression = False,
) -> None:
    """Compare two audits query by query: what became worse, by how much, on which queries, and could it be chance?"""
    from shaketable.cli.console import emit_json, emit_text, show_comparison
    from shaketable.door.compare import compare as run

    pair = {"base_ranker": base_ranker, "new_ranker": new_ranker}
    found = run(Path(base), Path(new), **pair, findings=finding or (), despite=despite or ())
    if json_to:
        emit_json(found.json(), json_to)
    if markdown_to:
        emit_text(found.markdown(), markdown_to)
    show_comparison(found, "-" if "-" in (json_to, markdown_to) else None)
    if fail_on_regression and found.verdict == "worse":
        raise typer.Exit(1)
