"""`probe`: tests of the preferences of rankers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from shaketable.api.audit import Audit, audit
from shaketable.api.options import CollectionLike, ExperimentOptions
from shaketable.api.ranker_names import Rankers, as_list
from shaketable.tasks.probes import USER_PAIRS_TABLE, ProbesTask

PAIRS_TABLE = USER_PAIRS_TABLE
"""The table of the user's own pairs."""


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
    """Test which of two texts rankers prefer when the texts differ in one property.

    Parameters
    ----------
    data
        The collection: "sample", a BEIR folder, "irds:ID", or a `Collection`.
    rankers
        One or several rankers, as for `st.audit`.
    probes
        Names or patterns of probes, such as "shuffle-*"; all probes by default.
    pairs
        A JSONL file of your own text pairs, to test instead.
    delta
        The smallest score difference that counts as a preference. By default, it is computed for each ranker from the
        score differences between neighbours in its lists.
    max_documents
        The maximum number of judged documents to manipulate, chosen at random; 0 means all.
    parser
        The parser that finds sentences, lemmas and noun phrases: "light", "spacy" or "spacy:MODEL".
    stopwords
        The stop word list: "english", or a file with one word per line.
    correction
        The correction of p-values for multiple comparisons: "bonferroni", "holm" or "bh".
    **options
        The options of an experiment, as for `st.audit`.

    Returns
    -------
    Audit
        An audit with the one result "probes".

    Examples
    --------
    >>> import shaketable as st
    >>> done = st.probe(rankers="bm25", probes="shuffle-*")  # doctest: +SKIP
    >>> done["probes"].tables["text manipulation"]  # doctest: +SKIP
    """
    task = build_probes_task(
        probes,
        pairs=pairs,
        delta=delta,
        max_documents=max_documents,
        parser=parser,
        stopwords=stopwords,
        correction=correction,
    )
    return audit(data, rankers, [task], budget=None, **options)


def build_probes_task(
    probes: str | Sequence[str],
    *,
    pairs: str | Path | None,
    delta: float | None,
    max_documents: int,
    parser: str,
    stopwords: str,
    correction: str,
) -> ProbesTask:
    """Return the task that `probe` with these arguments runs."""
    return ProbesTask(
        probes=tuple(as_list(probes)),
        pairs=str(pairs) if pairs else "",
        delta=delta,
        max_documents=max_documents,
        parser=parser,
        stopwords=stopwords,
        correction=correction,
    )


def count_failed_pairs(done: Audit) -> int:
    """Return the number of the user's own pairs, over all rankers, with an unexpected preference."""
    verdicts = done["probes"].tables.get(USER_PAIRS_TABLE)
    return 0 if verdicts is None else int((~verdicts["passed"]).sum())
