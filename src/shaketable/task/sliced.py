"""A per-query table by slices of the queries: which part of them is served worst."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from shaketable.measure.significance import mark
from shaketable.measure.slices import by_quarter, parts, worst
from shaketable.types import Finding

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.bench import Bench

DIFFICULTY = "difficulty for"
QUARTERS = ("hardest quarter", "second quarter", "third quarter", "easiest quarter")
SLICES = (
    "The table 'by slice' divides the queries into parts: by their length, by their kind, by how common their rarest "
    "word is, and by how hard they are for another ranker. 'other queries' is the mean over all queries outside of the "
    "part, and 'p (Holm)' says how likely chance alone makes such a difference, corrected for all parts."
)


def sliced(
    bench: Bench,
    per_query: pd.DataFrame,
    column: str,
    name: str,
    better: Literal["higher", "lower"] = "higher",
    measure: str = "nDCG@10",
) -> tuple[dict[str, pd.DataFrame], list[Finding]]:
    """A table of the means of a column by slice and ranker, and for each ranker the worst part as a finding.

    The queries are divided by length, kind, rarest word, and by how hard they are for another ranker than the one
    that is looked at: the first stage, or for the first stage the next ranker.
    """
    import pandas as pd

    rows, findings = [], []
    for ranker, details in per_query.groupby("ranker", sort=False):
        values = {str(q): float(v) for q, v in details.groupby("query", sort=False)[column].mean().dropna().items()}
        slices = dict(bench.slices)
        if difficulty := _difficulty(bench, str(ranker), measure):
            slices[f"{DIFFICULTY} {difficulty[0]}"] = by_quarter(difficulty[1], QUARTERS)
        found = parts(values, slices, bench.seed)
        rows += [
            {"slice": p.slice, "part": p.part, "ranker": ranker, column: p.mean, "low": p.low, "high": p.high}
            | {"other queries": p.rest, "queries": p.n, "p (Holm)": p.p, "": mark(p.p, p.n)}
            for p in found
        ]
        # what is hard for another is hard: that part is shown, and is no finding
        if (bad := worst([part for part in found if not part.slice.startswith(DIFFICULTY)], better)) is not None:
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


def _difficulty(bench: Bench, ranker: str, measure: str) -> tuple[str, dict[str, float]] | None:
    """How hard each query is for another ranker; None without judgements or another ranker."""
    if not bench.qrels:
        return None
    other = next((name for name in bench.models if name != ranker), None)
    if other is None:
        return None
    table = bench.table(measure)
    return other, dict(zip(table.topics, table.row(other).tolist(), strict=True))
