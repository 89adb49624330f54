"""`probe`: tests of the preferences of rankers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from shaketable.api.audit import Audit, audit
from shaketable.api.options import CollectionLike, ExperimentOptions
from shaketable.api.ranker_names import Rankers, as_list
from shaketable.tasks.probes import USER_PAIRS_TABLE, ProbesTask


def probe(
    data: CollectionLike = "sample",
    rankers: Rankers = (),
    probes: str | Sequence[str] = (),
    *,
    pairs: str | Path | None = None,
    delta: float | None = None,
    max_documents: int = 0,
    parser: str = "light",
    stopwords: str = "english",
    correction: str = "bonferroni",
    **options: Unpack[ExperimentOptions],
) -> Audit:
    """Run the task probes alone and return its audit: all probes, those whose names match, or the pairs of a file.

    `st.probe(rankers="bm25", probes="shuffle-*")["probes"].tables["text manipulation"]` is the table of the paper.
    """
    task = ProbesTask(
        probes=tuple(as_list(probes)),
        pairs=str(pairs) if pairs else "",
        delta=delta,
        max_documents=max_documents,
        parser=parser,
        stopwords=stopwords,
        correction=correction,
    )
    return audit(data, rankers, [task], **options)


def count_failed_pairs(done: Audit) -> int:
    """Return the number of the user's own pairs, over all rankers, with an unexpected preference."""
    verdicts = done["probes"].tables.get(USER_PAIRS_TABLE)
    return 0 if verdicts is None else int((~verdicts["passed"]).sum())
