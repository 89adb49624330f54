"""What a linguistic tool says of a text: its tokens with lemmas and tags, its sentences, its noun chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from shaketable.core.errors import BadInput, quote_value


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

    def list_words(self, span: Span | None = None) -> list[str]:
        """The tokens' texts, all or those of a span."""
        return [token.text for token in (self.tokens[span.start : span.end] if span else self.tokens)]


class Parser(Protocol):
    """A linguistic tool. `name` says which one it is, with its version: results depend on it."""

    @property
    def name(self) -> str: ...
    def parse(self, texts: Sequence[str]) -> list[Parsed]: ...


def open_parser(name: str) -> Parser:
    """The linguistic tool of a name: "light", "spacy", or "spacy:MODEL".

    >>> open_parser("light").name
    'light 1'
    """
    tool, colon, model = name.partition(":")
    if tool == "light" and not colon:
        from shaketable.nlp.rule_based import RuleBasedParser

        return RuleBasedParser()
    if tool == "spacy" and bool(colon) == bool(model):
        from shaketable.nlp.spacy_parser import SpacyParser

        return SpacyParser(model)
    raise BadInput(f"{quote_value(name)} is no linguistic tool: write light, spacy, or spacy:MODEL")


def find_offsets(text: str, tokens: Sequence[Token]) -> list[Span]:
    """Where in a text each of its tokens stands, in characters.

    >>> find_offsets("So, so.", [Token("So", "so", "ADV"), Token(",", ",", "PUNCT"), Token("so", "so", "ADV")])
    [Span(start=0, end=2), Span(start=2, end=3), Span(start=4, end=6)]
    """
    found: list[Span] = []
    end = 0
    for token in tokens:
        start = text.index(token.text, end)
        end = start + len(token.text)
        found.append(Span(start, end))
    return found
