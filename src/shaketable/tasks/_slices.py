"""Means of per-query values by query slice, and the slice with the worst mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from shaketable.core.results import Finding
from shaketable.measures.significance import format_star
from shaketable.measures.slices import compare_parts, find_worst_part, group_by_quarter

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.experiment import Experiment

DIFFICULTY_PREFIX = "difficulty for"
DIFFICULTY_QUARTERS = ("hardest quarter", "second quarter", "third quarter", "easiest quarter")
SLICES_NOTE = (
    "The table 'by slice' divides the queries into parts: by their length, by their query type, by how common their "
    "rarest word is, and by how hard they are for another ranker. 'other queries' is the mean over all queries outside "
    "the part, and 'p (Holm)' is the probability that chance alone makes such a difference, corrected for all parts. "
    "'low' and 'high' are the ends of the 95 % interval of the part's mean."
)


def measure_slices(
    experiment: Experiment,
    per_query: pd.DataFrame,
    column: str,
    name: str,
    better: Literal["higher", "lower"] = "higher",
    measure: str = "nDCG@10",
) -> tuple[dict[str, pd.DataFrame], list[Finding]]:
    """Return the means of a column by slice and ranker, and the worst part of each ranker as a finding.

    The slices are by length, query type, rarest word, and difficulty. The difficulty of a query is that for the first
    stage or, if the ranker is the first stage, for the next ranker.
    """
    import pandas as pd

    rows, findings = [], []
    for ranker, details in per_query.groupby("ranker", sort=False):
        values = {str(q): float(v) for q, v in details.groupby("query", sort=False)[column].mean().dropna().items()}
        slices = dict(experiment.slices)
        if difficulty := _measure_difficulty(experiment, str(ranker), measure):
            slices[f"{DIFFICULTY_PREFIX} {difficulty[0]}"] = group_by_quarter(difficulty[1], DIFFICULTY_QUARTERS)
        found = compare_parts(values, slices, experiment.seed)
        rows += [
            {"slice": p.slice, "part": p.part, "ranker": ranker, column: p.mean, "low": p.low, "high": p.high}
            | {"other queries": p.rest_mean, "queries": p.n, "p (Holm)": p.p, "": format_star(p.p, p.n)}
            for p in found
        ]
        # queries that are hard for another ranker are hard for most rankers, so difficulty gives no finding
        if (
            bad := find_worst_part([part for part in found if not part.slice.startswith(DIFFICULTY_PREFIX)], better)
        ) is not None:
            where = f"{bad.slice}: {bad.part}"
            findings.append(
                Finding(
                    str(ranker),
                    f"worst slice of {name}",
                    bad.mean,
                    bad.low,
                    bad.high,
                    bad.n,
                    bad.p,
                    better,
                    where=where,
                )
            )
    return ({"by slice": pd.DataFrame(rows)} if rows else {}), findings


def _measure_difficulty(experiment: Experiment, ranker: str, measure: str) -> tuple[str, dict[str, float]] | None:
    """Return another ranker and the difficulty of each query for it; None without judgements or another ranker."""
    if not experiment.qrels:
        return None
    other = next((name for name in experiment.models if name != ranker), None)
    if other is None:
        return None
    table = experiment.get_score_table(measure)
    return other, dict(zip(table.topics, table.row(other).tolist(), strict=True))
