"""The default recipes of attacks on documents."""

from __future__ import annotations

PANEL = (
    "query_insertion(place='each')",
    "keyword_stuffing(times=(5, 2), place='each')",
    "sentence_insertion(candidates=8, place='start', relevance=1.0)",
    "instruction(name_query=False)",
    "greedy(words=3, order='query')",
    "homoglyphs(words=0)",
    "invisible(words=0)",
)
"""Recipes that train nothing, each with its strongest texts first, so that a few trials suffice."""
