"""Tables and figures of query variations in the layout of the paper: a column for each ranker.

Penha, Câmara, Hauff. Evaluating the robustness of retrieval pipelines with query variation generators. ECIR 2022.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shaketable.core.results import MARK_SUFFIX, Figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

PENHA_2022 = "Penha et al. 2022"
PAPER_SOURCES = {"means by method": f"{PENHA_2022}, Table 5", "correlation of changes": f"{PENHA_2022}, Table 6"}
REPLACED_COLUMNS = ("invalid replaced", "  ")
"""The mean of Table 5, with invalid variations replaced by originals, and its column of stars."""
PAPER_FIGURES = (
    Figure(
        "bars",
        "better than the original",
        "How often a variation is better than the original query, in per cent",
        x="category",
        y="better %",
        color="ranker",
        folded=True,
        source=f"{PENHA_2022}, Fig. 4",
    ),
    Figure(
        "distribution",
        "depth per query",
        "Change by variations, by the number of re-ranked documents",
        x="depth",
        y="change",
        color="ranker",
        caption="Each box is the middle half of the queries, and its line is the median. Each ranker re-ranks this "
        "many documents of the first stage, in the whole pipeline.",
        folded=True,
        source=f"{PENHA_2022}, Fig. 1",
    ),
)
ORIGINAL_QUERY_ROW = "original query"
ARROW_NOTE = (
    "An arrow marks a mean that differs significantly (paired t-test, Holm) from that of the same ranker with the "
    "original queries: ↓ is lower, ↑ is higher."
)


def choose_arrow(value: float, before: float, star: str) -> str:
    """Return an arrow if the change is significant.

    >>> choose_arrow(0.25, 0.5, "*"), choose_arrow(0.5, 0.25, "")
    ('↓', '')
    """
    return ("↓" if value < before else "↑") if star.strip() else ""


def pivot_rankers(rows: Sequence[Mapping[Any, Any]], by: Sequence[str], value: str, star: str) -> pd.DataFrame:
    """Return one row for each variation, with a column of means and a column of arrows for each ranker.

    The first row has the means of the original queries.
    """
    import pandas as pd

    first = dict.fromkeys(by[:-1], "") | {by[-1]: ORIGINAL_QUERY_ROW}
    wide: dict[tuple[Any, ...], dict[str, Any]] = {(): first}
    for row in rows:
        mark = f"{row['ranker']}{MARK_SUFFIX}"
        first.setdefault(row["ranker"], row["before"])
        first.setdefault(mark, "")
        line = wide.setdefault(tuple(row[name] for name in by), {name: row[name] for name in by})
        line[row["ranker"]] = row[value]
        line[mark] = choose_arrow(row[value], row["before"], row[star])
    return pd.DataFrame(list(wide.values()))
