"""`shaketable evaluate`: runs and judgements, or ready scores; no ranker needed."""

from __future__ import annotations

from typing import Any

from shaketable.cli import options as o


def evaluate(
    qrels: o.Qrels = None,
    run: o.Runs = None,
    scores: o.ScoresFile = None,
    measure: o.Measures = None,
    baseline: o.Baselines = None,
    alpha: o.Alphas = None,
    test: o.Test = "t_test",
    correction: o.Correction = "holm",
    json_to: o.Json = None,
    csv_to: o.Csv = None,
    latex_to: o.Latex = None,
    markdown_to: o.Markdown = None,
    per_query_to: o.PerQuery = None,
    html_to: o.Html = None,
    seed: o.Seed = 0,
) -> None:
    """Evaluate run files, or a table of scores: effectiveness, variance and risk. It needs no ranker."""
    from shaketable.cli.console import emit_json, show
    from shaketable.door.evaluate import evaluate as run_evaluation
    from shaketable.report.files import write_per_query, write_tables
    from shaketable.report.page import write_page

    given: Any = {"measures": measure, "baselines": baseline, "alphas": alpha}
    wanted = {name: value for name, value in given.items() if value}
    done = run_evaluation(qrels, run or (), scores=scores, test=test, correction=correction, seed=seed, **wanted)
    for form, folder in (("csv", csv_to), ("latex", latex_to), ("markdown", markdown_to)):
        if folder:
            write_tables(folder, done.results, form)
    if per_query_to:
        write_per_query(per_query_to, done["effectiveness"])
    if html_to:
        write_page(html_to, done.title, done.facts, done.results, done.provenance)
    if json_to:
        emit_json(done.json(), json_to)
    show(done, json_to)
