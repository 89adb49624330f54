"""Tables and figures of query variations laid out as the paper prints them: a column for each ranker.

Penha, Câmara, Hauff. Evaluating the robustness of retrieval pipelines with query variation generators. ECIR 2022.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shaketable.types import Figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

PENHA = "Penha et al. 2022"
SOURCES = {"means by method": f"{PENHA}, Table 5", "correlation of changes": f"{PENHA}, Table 6"}
REPLACED = ("invalid replaced", "  ")
"""The mean that Table 5 has, where the original stands in for what is not valid; and its column of stars."""
MORE_FIGURES = (
    Figure(
        "bars",
        "better than the original",
        "How often a variation is better than the original query, in per cent",
        x="category",
        y="better %",
        color="ranker",
        folded=True,
        source=f"{PENHA}, Fig. 4",
    ),
    Figure(
        "distribution",
        "depth per query",
        "How far variations move a query, by how many documents are re-ranked",
        x="depth",
        y="change",
        color="ranker",
        caption="Each box is the middle half of the queries, the line their median. The pipeline, with each ranker as "
        "a re-ranker of so many documents of the first stage.",
        folded=True,
        source=f"{PENHA}, Fig. 1",
    ),
)
ORIGINAL = "original query"
LAYOUT = (
    "An arrow marks a mean that differs significantly (paired t-test, Holm) from that of the same ranker with the "
    "original queries: ↓ is lower, ↑ is higher."
)


def with_arrow(value: float, before: float, star: str) -> str:
    """A mean with its arrow.

    >>> with_arrow(0.25, 0.5, "*"), with_arrow(0.5, 0.25, "")
    ('0.2500↓', '0.5000')
    """
    return f"{value:.4f}{('↓' if value < before else '↑') if star.strip() else ''}"


def across(rows: Sequence[Mapping[Any, Any]], by: Sequence[str], value: str, star: str) -> pd.DataFrame:
    """Rows that have a ranker, its mean `before` and a mean of each way of asking, as one row for each way.

    The first row has the means of the original queries.
    """
    import pandas as pd

    first = dict.fromkeys(by[:-1], "") | {by[-1]: ORIGINAL}
    wide: dict[tuple[Any, ...], dict[str, Any]] = {(): first}
    for row in rows:
        first.setdefault(row["ranker"], with_arrow(row["before"], row["before"], ""))
        line = wide.setdefault(tuple(row[name] for name in by), {name: row[name] for name in by})
        line[row["ranker"]] = with_arrow(row[value], row["before"], row[star])
    return pd.DataFrame(list(wide.values()))
