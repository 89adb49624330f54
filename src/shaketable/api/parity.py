"""`parity`: a check that rankers that should be the same give the same scores."""

from __future__ import annotations

from typing import Unpack

from shaketable.api.audit import Audit, audit
from shaketable.api.options import CollectionLike, ExperimentOptions
from shaketable.api.ranker_names import Rankers, build_models
from shaketable.core.errors import BadInput
from shaketable.tasks.parity import Parity


def parity(
    rankers: Rankers,
    data: CollectionLike = "sample",
    *,
    reference: str = "",
    repeats: int = 10,
    measure: str = "nDCG@10",
    **options: Unpack[ExperimentOptions],
) -> Audit:
    """Check that rankers give the same scores, for example one model on two servers.

    Every ranker scores the same documents, without cached scores.

    Parameters
    ----------
    rankers
        Two or more rankers, as for `st.audit`.
    data
        The collection: "sample", a BEIR folder, "irds:ID", or a `Collection`.
    reference
        The name of the ranker to compare the others with; the first one by default.
    repeats
        The number of lists to score two more times, to measure the noise in each ranker's scores.
    measure
        The effectiveness measure to compare.
    **options
        The options of an experiment, as for `st.audit`.

    Returns
    -------
    Audit
        An audit with the one result "parity"; its table "parity" has the verdict.

    Raises
    ------
    BadInput
        If there are fewer than two rankers.

    Examples
    --------
    >>> import shaketable as st
    >>> done = st.parity({"old": "run:before.run", "new": "http://host/rerank"})  # doctest: +SKIP
    >>> done["parity"].tables["parity"]  # doctest: +SKIP
    """
    task = build_parity_task(rankers, reference=reference, repeats=repeats, measure=measure)
    return audit(data, rankers, [task], runs=False, budget=None, **options)


def build_parity_task(rankers: Rankers, *, reference: str, repeats: int, measure: str) -> Parity:
    """Return the task that `parity` with these arguments runs."""
    if len(build_models(rankers)) < 2:
        raise BadInput("parity needs at least two rankers: --ranker old=SPEC --ranker new=SPEC")
    return Parity(reference, repeats, measure)
