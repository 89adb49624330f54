"""`shaketable evaluate`: runs and judgements, or ready scores; no ranker needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shaketable.cli.options import Alphas, Json, Measures, Seed
from shaketable.errors import BadInput

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.types import Qrels, Result, Run, ScoreTable

SCHEMA = "shaketable.evaluate/1"


def evaluate(
    qrels: Annotated[Path | None, typer.Option("--qrels", help="Judgements: TREC, or BEIR's TSV.")] = None,
    run: Annotated[list[Path] | None, typer.Option("--run", help="A TREC run; repeat it.")] = None,
    scores: Annotated[Path | None, typer.Option("--scores", help="Instead: a CSV of topics x systems.")] = None,
    measure: Measures = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option("--baseline", help="A system, or mean (the default), median or max of all, per topic; repeat it."),
    ] = None,
    alpha: Alphas = None,
    json_to: Json = None,
    csv_to: Annotated[Path | None, typer.Option("--csv", help="Write one row for each system to this file.")] = None,
    html_to: Annotated[Path | None, typer.Option("--html", help="Write a page with tables and plots.")] = None,
    seed: Seed = 0,
) -> None:
    """Effectiveness, variance and risk of runs, or of ready scores."""
    from shaketable.cli.console import emit_json, stdout
    from shaketable.files import written_whole
    from shaketable.measure.effectiveness import score_table
    from shaketable.report.page import write_page
    from shaketable.report.terminal import show_result
    from shaketable.task import risk, variance

    alphas, baselines = tuple(alpha or risk.ALPHAS), baseline or ["mean"]
    if scores is not None:
        if qrels or run:
            raise BadInput("--scores stands alone: it takes the place of --qrels and --run")
        if measure:
            raise BadInput("--measure is for runs; --scores says what was measured by its own numbers")
        from shaketable.data.scores import read_scores

        table = read_scores(scores)
        spread = variance.of_scores(table, seed)
    else:
        judgements, runs = _read(qrels, run)
        measures = measure or ["nDCG@10"]
        table = score_table(measures[0], judgements, runs)
        initial = baselines[0] if baselines[0] in runs else next(iter(runs))
        spread = variance.of_runs(measures, judgements, runs, initial, seed)
    results = [spread, risk.of_scores(table, baselines, alphas, seed)]

    console = stdout(json_to)
    for result in results:
        show_result(console, result)
    if html_to:
        facts = {"systems": str(len(table.systems)), "topics": str(len(table.topics)), "measure": table.measure}
        facts["baseline"] = ", ".join(baselines)
        write_page(html_to, "Effectiveness, variance and risk", facts, results, {"seed": seed})
    data = _json(table, spread, baselines[0], alphas)
    if csv_to:
        with written_whole(csv_to) as out:
            _frame(data).to_csv(out, index=False)
    if json_to:
        emit_json(data, json_to)


def _read(qrels: Path | None, paths: list[Path] | None) -> tuple[Qrels, dict[str, Run]]:
    """Judgements and runs; a run is called by its file's name, or its path where two share one."""
    from shaketable.data.trec import read_qrels, read_run

    if qrels is None or not paths:
        raise BadInput("give --qrels and at least one --run, or --scores")
    judgements = read_qrels(qrels)
    stems = [path.name.removesuffix(".gz").rpartition(".")[0] or path.name for path in paths]
    runs: dict[str, Run] = {}
    for path, stem in zip(paths, stems, strict=True):
        name = stem if stems.count(stem) == 1 else str(path)
        if name in runs:
            raise BadInput("is named twice", path)
        runs[name] = read_run(path)
        if not runs[name].keys() & judgements.keys():
            raise BadInput(f"none of its queries is judged in {qrels}; do the query ids match?", path)
    return judgements, runs


def _json(table: ScoreTable, spread: Result, baseline: str, alphas: tuple[float, ...]) -> dict[str, Any]:
    """The result as data; a number that is not defined is null."""
    import math

    from shaketable.measure.risk import baseline_scores, ranks, reward_risk, risk_table

    def plain(value: Any) -> Any:
        return (
            None
            if not math.isfinite(value)
            else int(value)
            if float(value).is_integer() and abs(value) > 1
            else float(value)
        )

    columns = {
        "vnap": "VNAP",
        "gmap": "gMAP",
        "gmap_floor": "gMAP floor",
        "no_relevant": "%no@10",
        "worst_area": "worst 25 %",
    }
    base = baseline_scores(table.values, table.systems, baseline)
    found, rewards = risk_table(table.values, base, alphas), reward_risk(table.values, base)
    measures = {"u_risk": found.u, "t_risk": found.t, "p_value": found.p, "t_star_risk": found.t_star}
    measures |= {"z_risk": found.z, "geo_risk": found.geo}
    summary = spread.tables["variance"]
    means = [c for c in summary.columns if c != "ranker" and c not in columns.values()]
    return {
        "schema": SCHEMA,
        "topics": len(table.topics),
        "measure": table.measure,
        "baseline": baseline,
        "systems": [
            {
                "name": name,
                "mean": float(found.mean[i]),
                "interval": [float(summary[f"{table.measure} {end}"][i]) for end in ("low", "high")],
                "measures": {c: plain(summary[c][i]) for c in means if not c.endswith((" low", " high"))},
                "variance": {k: plain(summary[c][i]) if c in summary else None for k, c in columns.items()},
                "against_baseline": {
                    field: plain(getattr(rewards, field)[i])
                    for field in ("reward", "risk", "ratio", "wins", "losses", "ties", "win_loss", "heavy_losses")
                },
                "risk": [
                    {"alpha": a}
                    | {key: float(values[i, j]) for key, values in measures.items()}
                    | {f"rank_{key}": int(ranks(measures[key][:, j])[i]) for key in ("u_risk", "z_risk", "geo_risk")}
                    for j, a in enumerate(alphas)
                ],
            }
            for i, name in enumerate(table.systems)
        ],
        "notes": list(spread.notes),
    }


def _frame(data: dict[str, Any]) -> pd.DataFrame:
    """One row for each system: its means, variance, wins and losses, and risk at each alpha."""
    import pandas as pd

    return pd.DataFrame(
        [
            {"system": s["name"], **s["measures"], **s["variance"], **s["against_baseline"]}
            | {f"{key}@{r['alpha']:g}": value for r in s["risk"] for key, value in r.items() if key != "alpha"}
            for s in data["systems"]
        ]
    )
