"""The sentences of a text."""

from __future__ import annotations

import re


def split_sentences(text: str) -> list[str]:
    """Cut after . ! ? where a space and no small letter follows.

    >>> split_sentences("It shook, e.g. twice. Was it safe? Yes.")
    ['It shook, e.g. twice.', 'Was it safe?', 'Yes.']
    """
    return [part for part in re.split(r"(?<=[.!?])\s+(?![a-z])", text.strip()) if part]
