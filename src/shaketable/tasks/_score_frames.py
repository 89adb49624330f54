"""Tables with a row for each ranker and query, from matrices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shaketable.core.results import ScoreTable

if TYPE_CHECKING:
    import pandas as pd


def build_per_query_frame(table: ScoreTable, columns: Mapping[str, NDArray[np.float64]]) -> pd.DataFrame:
    """Return the columns 'ranker' and 'query' of a score table, and a column for each matrix [systems, topics]."""
    import pandas as pd

    # an array of objects shares its strings; an array of text would become a new string for each row
    systems, topics = np.array(table.systems, dtype=object), np.array(table.topics, dtype=object)
    return pd.DataFrame(
        {
            "ranker": np.repeat(systems, len(topics)),
            "query": np.tile(topics, len(systems)),
            **{name: values.ravel() for name, values in columns.items()},
        }
    )
