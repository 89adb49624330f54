"""The prefixes of queries and passages, and the mistakes that people make with them."""

from __future__ import annotations

import re

SYNONYMS = {
    "query": "question",
    "question": "query",
    "passage": "text",
    "passages": "texts",
    "document": "text",
    "documents": "texts",
    "text": "passage",
    "sentence": "phrase",
    "search_query": "search_question",
    "search_document": "search_text",
    "search": "find",
    "searching": "finding",
    "retrieve": "find",
    "retrieval": "search",
    "represent": "encode",
}
"""A word of the same meaning for each usual word of a prefix."""
OTHER_PREFIXES = ("query: ", "passage: ")
"""The prefixes of e5, which replace a prefix without any of these words."""


def reword_prefixes(query_prefix: str, passage_prefix: str) -> dict[str, tuple[str, str]]:
    """Return other prefixes of queries and passages, by the name of the change; empty if there is no prefix.

    >>> for change, prefixes in reword_prefixes("query: ", "passage: ").items():
    ...     print(change, prefixes)
    missing prefix ('', '')
    swapped prefixes ('passage: ', 'query: ')
    reworded prefix ('question: ', 'text: ')
    >>> reword_prefixes("", "")
    {}
    """
    own = (query_prefix, passage_prefix)
    others = {
        "missing prefix": ("", ""),
        "swapped prefixes": (passage_prefix, query_prefix),
        "reworded prefix": (
            _reword(query_prefix, OTHER_PREFIXES[0]),
            _reword(passage_prefix, OTHER_PREFIXES[1]),
        ),
    }
    return {change: prefixes for change, prefixes in others.items() if prefixes != own}


def _reword(prefix: str, other: str) -> str:
    """Return the prefix with other words of the same meaning, in the case of the originals.

    >>> _reword("Represent this sentence for searching relevant passages: ", "query: ")
    'Encode this phrase for finding relevant texts: '
    """

    def replace_word(found: re.Match[str]) -> str:
        new = SYNONYMS.get(found[0].lower(), found[0])
        return new.capitalize() if found[0][0].isupper() else new

    if not prefix.strip():
        return prefix
    reworded = re.sub(r"\w+", replace_word, prefix)
    return reworded if reworded != prefix else other
