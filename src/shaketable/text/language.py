"""What a linguistic tool says of a text: its tokens with lemmas and tags, its sentences, its noun chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class Token(NamedTuple):
    """A word or a mark, with its universal part of speech (NOUN, VERB, ADP, PUNCT, ...)."""

    text: str
    lemma: str
    tag: str


class Span(NamedTuple):
    """Tokens from `start` up to, but not including, `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Parsed:
    """A text as a linguistic tool reads it. Sentences cover all tokens; noun chunks do not overlap."""

    tokens: tuple[Token, ...]
    sentences: tuple[Span, ...]
    chunks: tuple[Span, ...]

    def words(self, span: Span | None = None) -> list[str]:
        """The tokens' texts, all or those of a span."""
        return [token.text for token in (self.tokens[span.start : span.end] if span else self.tokens)]


class Language(Protocol):
    """A linguistic tool. `name` says which one it is, with its version: results depend on it."""

    @property
    def name(self) -> str: ...
    def parse(self, texts: Sequence[str]) -> list[Parsed]: ...
