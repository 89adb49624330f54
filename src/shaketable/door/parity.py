"""Are two rankers the same one?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shaketable.door.audit import Audit, audit
from shaketable.door.names import named_models
from shaketable.errors import BadInput
from shaketable.task.parity import Parity
from shaketable.types import Collection


def parity(
    rankers: Any,
    data: str | Path | Collection = "sample",
    *,
    reference: str = "",
    repeats: int = 10,
    measure: str = "nDCG@10",
    **options: Any,
) -> Audit:
    """Compare rankers that should be the same with the first of them, or with the `reference`, as an audit.

    `st.parity({"old": "run:before.run", "new": "http://host/rerank"})["parity"].tables["parity"]` has the verdict.
    Every ranker scores the same documents, and is asked anew: nothing that was kept answers. The options are those of
    `audit`.
    """
    models = named_models(rankers)
    if len(models) < 2:
        raise BadInput("parity compares two rankers or more: --ranker old=SPEC --ranker new=SPEC")
    named: Mapping[str, Any] = models
    return audit(data, named, [Parity(reference, repeats, measure)], runs=False, **options)
