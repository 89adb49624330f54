"""What all manipulations of texts share: the walk over judged documents, and what is compared with what.

A manipulation changes the body; title and url stay. One that goes through tokens is compared with the same tokens in
their order, joined by single spaces, so that what the tokeniser does to a text is no part of the difference.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeVar

import numpy as np

from shaketable.chance import Draws, draws_for
from shaketable.text.language import Parsed, Span, offsets
from shaketable.types import Contrast, Omitted

if TYPE_CHECKING:
    from shaketable.probes.ground import Ground, JudgedDoc

Item = TypeVar("Item")

NO_BODY = Omitted("it has no body")
UNCHANGED = Omitted("nothing changes")
EMPTY = Omitted("nothing is left")
ONE_SENTENCE = Omitted("it has one sentence")


class Changed(NamedTuple):
    """A body as it was changed, and the body to compare it with."""

    text: str
    original: str


class Manipulation(ABC):
    """A probe that changes each judged document and asks which of the two a ranker prefers."""

    strategy: ClassVar[str] = "manipulation"
    symmetric: ClassVar[bool] = False
    parses: ClassVar[bool] = False
    """Does it need to know tokens, sentences or noun chunks?"""

    def lacking(self, ground: Ground) -> str:
        return "" if ground.drawn else "none of the queries has a judged document"

    def contrasts(self, ground: Ground) -> Iterator[Contrast | Omitted]:
        if self.parses:
            ground.read(case.doc.body for cases in ground.drawn.values() for case in cases)
        for case, change in self.changes(ground):
            yield _contrast(case, change)

    @abstractmethod
    def changes(self, ground: Ground) -> Iterator[tuple[JudgedDoc, Changed | Omitted]]:
        """Each judged document and what becomes of it."""

    def draws(self, case: JudgedDoc, ground: Ground) -> Draws:
        """Chance of its own for each query and document, so that the order of documents does not matter."""
        return draws_for(ground.seed, type(self).__name__, case.qid, case.docno)


class OneByOne(Manipulation):
    """A manipulation that looks at one document at a time."""

    def changes(self, ground: Ground) -> Iterator[tuple[JudgedDoc, Changed | Omitted]]:
        for cases in ground.drawn.values():
            for case in cases:
                yield case, self.change(case, ground, self.draws(case, ground))

    @abstractmethod
    def change(self, case: JudgedDoc, ground: Ground, draws: Draws) -> Changed | Omitted:
        """What becomes of a document."""


class OfText(OneByOne):
    """A manipulation that needs nothing but the text, and is compared with the text as it is."""

    def change(self, case: JudgedDoc, ground: Ground, draws: Draws) -> Changed | Omitted:
        return Changed(self.edited(case.doc.body, case.query, draws), case.doc.body)

    @abstractmethod
    def edited(self, text: str, query: str, draws: Draws) -> str:
        """The changed text."""


class OfTokens(OneByOne):
    """A manipulation of the tokens, compared with the same tokens in their order."""

    parses: ClassVar[bool] = True

    def change(self, case: JudgedDoc, ground: Ground, draws: Draws) -> Changed | Omitted:
        parsed = ground.parse(case.doc.body)
        words = self.reworded(parsed, case.doc.body, draws)
        return words if isinstance(words, Omitted) else Changed(" ".join(words), " ".join(parsed.words()))

    @abstractmethod
    def reworded(self, parsed: Parsed, text: str, draws: Draws) -> Sequence[str] | Omitted:
        """The tokens as they are after it."""


class OfSentences(OfTokens):
    """A manipulation of the order of sentences, each of which stays as it is."""

    def reworded(self, parsed: Parsed, text: str, draws: Draws) -> Sequence[str] | Omitted:
        if len(parsed.sentences) < 2:
            return ONE_SENTENCE
        return [word for span in self.reordered(parsed.sentences, draws) for word in parsed.words(span)]

    @abstractmethod
    def reordered(self, sentences: Sequence[Span], draws: Draws) -> Sequence[Span]:
        """The sentences in another order."""


def _contrast(case: JudgedDoc, change: Changed | Omitted) -> Contrast | Omitted:
    if not case.doc.body.strip():
        return NO_BODY
    if isinstance(change, Omitted):
        return change
    if not change.text.strip():
        return EMPTY
    if change.text == change.original:
        return UNCHANGED
    first, second = (replace(case.doc, body=body) for body in change)
    return Contrast(case.query, first, second, case.qid, case.docno, case.grade)


def starts(text: str, ground: Ground) -> list[int]:
    """Where in a text its sentences begin, in characters; looked for once in each text."""
    known: dict[str, list[int]] = ground.shared.setdefault("starts of sentences", {})
    if text not in known:
        parsed = ground.parse(text)
        places = offsets(text, parsed.tokens)
        known[text] = [places[span.start].start for span in parsed.sentences]
    return known[text]


def sentences(text: str, ground: Ground) -> list[str]:
    """The sentences of a text as they are written in it."""
    return [text[a:b].strip() for a, b in pairwise([*starts(text, ground), len(text)])]


def units(parsed: Parsed, span: Span, phrases: bool) -> list[list[str]]:
    """What is moved as one: each token, or with `phrases` each noun phrase and each token outside of them."""
    if not phrases:
        return [[word] for word in parsed.words(span)]
    ends = {chunk.start: chunk.end for chunk in parsed.chunks if chunk.end <= span.end}
    found: list[list[str]] = []
    i = span.start
    while i < span.end:
        end = ends.get(i, i + 1)
        found.append(parsed.words(Span(i, end)))
        i = end
    return found


def refilled(parsed: Parsed, phrases: Sequence[Span]) -> list[str]:
    """The tokens with these noun phrases, in this order, in the places where the noun phrases stand."""
    words: list[str] = []
    done = 0
    for slot, phrase in zip(parsed.chunks, phrases, strict=True):
        words += parsed.words(Span(done, slot.start))
        words += parsed.words(phrase)
        done = slot.end
    return words + parsed.words(Span(done, len(parsed.tokens)))


def shuffled(items: Sequence[Item], draws: Draws) -> list[Item]:
    """The items in random order; for many of them, as the words of a text are, numpy is much faster than `draws`."""
    order = np.random.default_rng(draws.bits()).permutation(len(items))
    return [items[i] for i in order.tolist()]


def permuted(words: Sequence[str], places: Sequence[int], draws: Draws) -> list[str]:
    """The words, those at some places dealt out among these places."""
    dealt = list(words)
    for place, source in zip(places, shuffled(places, draws), strict=True):
        dealt[place] = words[source]
    return dealt
