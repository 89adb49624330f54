"""`demo`: an audit of three rankers on the bundled sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from shaketable.api.audit import Audit, audit
from shaketable.api.options import RunOptions

NO_OP = "no-op"
TASKS = (
    *("effectiveness", "first-stage", "variance", "risk", "consistency"),
    *("query-typos", "document-form", "probes", "document-attack"),
)
"""The tasks of the demo: those that need no language model, so that it takes less than 30 seconds."""


def keep_order(query: str, texts: Sequence[str]) -> list[float]:
    """Return scores that keep the order of the texts, as a reranker does that fails without an error."""
    return [float(-position) for position in range(len(texts))]


keep_order.pointwise = False  # type: ignore[attr-defined]
keep_order.fingerprint = NO_OP  # type: ignore[attr-defined]


def demo(**options: Unpack[RunOptions]) -> Audit:
    """Audit BM25, query likelihood and a ranker that changes nothing on the bundled sample, with the quick tasks.

    Parameters
    ----------
    **options
        keep_going, progress, notify, executor (`shaketable.api.options.RunOptions`).

    Returns
    -------
    Audit
        The result, as from `audit`.

    Examples
    --------
    >>> import shaketable as st
    >>> print(st.demo().verdict.headline)  # doctest: +SKIP
    ql and no-op fail.
    """
    return audit("sample", {"bm25": "bm25", "ql": "ql", NO_OP: keep_order}, TASKS, budget=None, **options)
