"""A small parser whose output can be checked by hand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from shaketable.core.documents import Collection, Query
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.nlp.analyzer import Analyzer
from shaketable.nlp.parser import Parsed, Span, Token
from shaketable.probes.context import ProbeContext

ARTICLES = {"a", "an", "the"}


class Toy:
    """A noun chunk is an article and up to two words that follow; a lemma has no final s."""

    name = "toy"

    def parse(self, texts: Sequence[str]) -> list[Parsed]:
        return [self._parse(text) for text in texts]

    def _parse(self, text: str) -> Parsed:
        words = re.findall(r"\w+|[^\w\s]", text)
        tokens = tuple(Token(word, _lemma(word), _tag(word)) for word in words)
        chunks = []
        for start, word in enumerate(words):
            if word.lower() in ARTICLES:
                end = start + 1
                while end < min(len(words), start + 3) and words[end].isalnum():
                    end += 1
                chunks.append(Span(start, end))
        return Parsed(tokens, (Span(0, len(tokens)),), tuple(chunks))


def _lemma(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") else word


def _tag(word: str) -> str:
    return "NUM" if word.isdecimal() else "X" if word.isalnum() else "PUNCT"


def context(language: Any = None, seed: int = 0) -> ProbeContext:
    """Return a context for probes with their own texts."""
    collection = Collection("none", MemoryCorpus({}), {"q": Query("nothing")})
    return ProbeContext(collection, ["q"], language or Toy(), Analyzer(), seed)
