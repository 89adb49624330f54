"""The work that a ranker was asked for, and its cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Usage:
    """The work of a ranker and its cost, in query-document pairs.

    `asked` counts all requested pairs and `scored` those left after removing duplicates and looking up; a search
    counts as many pairs as it finds. `searches` counts the queries that were searched, `seconds` is the ranker's own
    time, and `failed` counts the lists, out of `queries`, that the ranker failed on.
    """

    asked: int = 0
    scored: int = 0
    searches: int = 0
    seconds: float = 0.0
    queries: int = 0
    failed: int = 0
