"""Made-up Results, and texts that an attacker would write."""

from __future__ import annotations

import numpy as np
import pandas as pd

from shaketable.core.extras import use_python_strings
from shaketable.core.results import Example, Failure, Figure, Finding, Result

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "</title></style></svg></details><iframe src=//evil.example>",
    "{{ 7 * 7 }} {% raw %} &lt;b&gt;",
    "]]><!-- &#60;script&#62;",
    "\x1b[31mred\x00\x07 \u202etxt.exe \ud800",
    "url(https://evil.example/x)",
    "datum['x'] + signal",
)
SYSTEMS = ("bm25", "ql", "rm3(base=ql)")


@use_python_strings()
def hostile() -> Result:
    """Return a result with a hostile text in every text field."""
    count = len(HOSTILE)
    frame = pd.DataFrame(
        {
            "name": HOSTILE,
            "other": HOSTILE[::-1],
            "value": np.linspace(-1, 1, count),
            "second": np.linspace(0, 1, count) ** 2,
            HOSTILE[0]: HOSTILE,
            HOSTILE[1]: np.arange(count),
        }
    )
    figures = tuple(
        Figure(kind, "t", HOSTILE[i % count], x, y, color, caption=HOSTILE[0])
        for i, (kind, x, y, color) in enumerate(
            [
                ("bars", "name", "value", ""),
                ("bars", HOSTILE[0], HOSTILE[1], "name"),
                ("lines", "value", "second", "name"),
                ("profile", "name", "value", "other"),
                ("scatter", "value", "second", "name"),
                ("heatmap", "name", "other", "value"),
                ("waterfall", "name", "value", ""),
                ("waterfall", "name", "value", "other"),
                ("slope", "value", HOSTILE[1], "name"),
            ]
        )
    )
    return Result(
        task=HOSTILE[0],
        question=HOSTILE[1],
        tables={"t": frame, HOSTILE[0]: frame, f"{HOSTILE[4]} per query": frame},
        figures=figures,
        notes=HOSTILE,
        findings=(Finding(HOSTILE[0], HOSTILE[0], 0.5, where=HOSTILE[0]),),
        examples=(Example(HOSTILE[0], HOSTILE[0], HOSTILE[0], HOSTILE[0], HOSTILE[0], 0.5, 0.25, HOSTILE[0], 1, 7),),
        failures=tuple(Failure(text, text, text) for text in HOSTILE),
    )


def scores(topics: int, systems: tuple[str, ...] = SYSTEMS) -> pd.DataFrame:
    """Return a score for each topic and system."""
    values = np.random.default_rng(1).random((topics, len(systems)))
    rows = [(f"q{t}", name, values[t, s]) for t in range(topics) for s, name in enumerate(systems)]
    return pd.DataFrame(rows, columns=["query", "system", "nDCG@10"])


def ordinary(task: str = "variance", topics: int = 8) -> Result:
    """Return a result in the form of a task."""
    frame = scores(topics)
    means = frame.groupby("system", sort=False, as_index=False)["nDCG@10"].mean()
    means = means.assign(queries=topics, p=[np.nan, 0.04, 1e-7], drop=["-12.5 %", "3.0 %", "0.1 %"])
    return Result(
        task=task,
        question="How evenly are queries served?",
        tables={"means": means, "scores per query": frame},
        figures=(
            Figure("bars", "means", "Means", "system", "nDCG@10"),
            Figure("profile", "scores per query", "Each query", "query", "nDCG@10", "system", caption="As measured."),
        ),
        notes=("Two queries had no relevant document.",),
        findings=(
            Finding("bm25", "ndcg", 0.5, 0.4, 0.6, 50, 0.01),
            Finding("ql", "ndcg", float("nan"), better="lower"),
        ),
        examples=(Example("bm25", "q1", "1-char", "wind tunnel", "wind tunel", 0.5, 0.25, "d7", 1, 12),),
        failures=(Failure("ql", "q3", "returned NaN"),),
    )
