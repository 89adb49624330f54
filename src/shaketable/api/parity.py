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
    """Compare rankers that should be the same with the first of them, or with `reference`, and return the audit.

    `st.parity({"old": "run:before.run", "new": "http://host/rerank"})["parity"].tables["parity"]` has the verdict.
    Every ranker scores the same documents, without cached scores.
    """
    models = build_models(rankers)
    if len(models) < 2:
        raise BadInput("parity compares two rankers or more: --ranker old=SPEC --ranker new=SPEC")
    return audit(data, models, [Parity(reference, repeats, measure)], runs=False, **options)
