"""The parser interface: tokens with lemmas and tags, sentences and noun chunks of a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from shaketable.core.errors import BadInput, quote_value


class Token(NamedTuple):
    """A word or punctuation mark, with its universal part of speech (NOUN, VERB, ADP, PUNCT, ...)."""

    text: str
    lemma: str
    tag: str


class Span(NamedTuple):
    """Tokens from `start` up to, but not including, `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed text. Sentences cover all tokens; noun chunks do not overlap."""

    tokens: tuple[Token, ...]
    sentences: tuple[Span, ...]
    chunks: tuple[Span, ...]

    def list_words(self, span: Span | None = None) -> list[str]:
        """Return the texts of all tokens, or of those in a span."""
        return [token.text for token in (self.tokens[span.start : span.end] if span else self.tokens)]


class Parser(Protocol):
    """A parser. `name` includes the version, because results depend on it."""

    @property
    def name(self) -> str: ...
    def parse(self, texts: Sequence[str]) -> list[Parsed]: ...


def open_parser(name: str) -> Parser:
    """Open a parser by its name: "light", "spacy", or "spacy:MODEL".

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
    raise BadInput(f"{quote_value(name)} is not a parser: write light, spacy, or spacy:MODEL")


def find_offsets(text: str, tokens: Sequence[Token]) -> list[Span]:
    """Return the span of each token in the text, in characters.

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
