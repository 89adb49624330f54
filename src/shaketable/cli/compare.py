"""`shaketable compare`: a comparison of a new audit with an earlier one."""

from __future__ import annotations

from pathlib import Path

import typer

from shaketable.cli.options.gates import AllowMismatch, FailOnRegression, Margin
from shaketable.cli.options.output import AllowEdited, BaseAudit, Html, Json, NewAudit, Summary
from shaketable.cli.options.rankers import BaseRanker, NewRanker
from shaketable.cli.options.tasks import Findings


def compare(
    base: BaseAudit,
    new: NewAudit,
    base_ranker: BaseRanker = "",
    new_ranker: NewRanker = "",
    finding: Findings = None,
    allow_mismatch: AllowMismatch = None,
    allow_edited: AllowEdited = False,
    summary_to: Summary = None,
    json_to: Json = None,
    html_to: Html = None,
    fail_on_regression: FailOnRegression = False,
    margin: Margin = 5.0,
) -> None:
    """Compare two audits query by query, and show which differences are statistically significant."""
    import shaketable as st
    from shaketable.cli.console import emit_json, emit_text, show_comparison

    found = st.compare(
        Path(base),
        Path(new),
        base_ranker=base_ranker,
        new_ranker=new_ranker,
        findings=finding or (),
        allow_mismatch=allow_mismatch or (),
        allow_edited=allow_edited,
        margin=margin,
    )
    if json_to:
        emit_json(found.to_dict(), json_to)
    if summary_to:
        emit_text(found.to_markdown(), summary_to)
    if html_to:
        emit_text(found.to_html(), str(html_to))
    show_comparison(found, "-" if "-" in (json_to, summary_to) else None)
    if fail_on_regression and found.outcome == "worse":
        raise typer.Exit(1)
