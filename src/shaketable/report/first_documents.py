"""The first documents of each ranker for each query, which pages show side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_LISTED_QUERIES = 1_000
"""The number of queries whose lists an audit keeps; the runs have the lists of all queries."""
EXCERPT_CHARACTERS = 160


@dataclass(frozen=True)
class FirstDocuments:
    """The first documents of rankers: ranker -> query -> docnos, and the beginning of each document's text."""

    docnos: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    excerpts: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; `from_dict` reads them."""
        lists = {name: {qid: list(found) for qid, found in by_query.items()} for name, by_query in self.docnos.items()}
        return {"docnos": lists, "excerpts": dict(self.excerpts)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> FirstDocuments:
        """Return the lists that `to_dict` wrote; none for an audit without them."""
        docnos = {
            str(name): {str(qid): tuple(map(str, found)) for qid, found in by_query.items()}
            for name, by_query in plain.get("docnos", {}).items()
        }
        return cls(docnos, {str(docno): str(text) for docno, text in plain.get("excerpts", {}).items()})
