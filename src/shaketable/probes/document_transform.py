"""Base classes of all manipulations.

A manipulation changes the body; title and url stay. A manipulation of tokens is compared with the original tokens
joined by single spaces, so that tokenisation is no part of the difference. The code of paper 001 compares it with the
raw text instead, as `against="raw"` does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from shaketable.core.protocols import Skipped, TextPair
from shaketable.core.seeding import ItemRandom, make_item_rng
from shaketable.nlp.parser import Parsed, Span, find_offsets
from shaketable.transforms.word_order import order_sentences

if TYPE_CHECKING:
    from shaketable.probes.context import JudgedDoc, ProbeContext

NO_BODY = Skipped("it has no body")
UNCHANGED = Skipped("nothing changes")
EMPTY = Skipped("nothing is left")
ONE_SENTENCE = Skipped("it has one sentence")


class ChangedBody(NamedTuple):
    """A changed body and the body to compare it with."""

    text: str
    original: str


class Manipulation(ABC):
    """A probe that compares each judged document with a changed copy."""

    strategy: ClassVar[str] = "manipulation"
    symmetric: ClassVar[bool] = False
    needs_parser: ClassVar[bool] = False
    """True if it needs tokens, sentences or noun chunks."""
    random_key: ClassVar[str]
    """The key of the random numbers; the class name by default."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.random_key = vars(cls).get("random_key", cls.__name__)

    def unavailable_reason(self, context: ProbeContext) -> str:
        return "" if context.sampled_documents else "none of the queries has a judged document"

    def draw_pairs(self, context: ProbeContext) -> Iterator[TextPair | Skipped]:
        if self.needs_parser:
            context.parse_many(case.doc.body for cases in context.sampled_documents.values() for case in cases)
        for case, change in self.transform_documents(context):
            yield _make_pair(case, change)

    @abstractmethod
    def transform_documents(self, context: ProbeContext) -> Iterator[tuple[JudgedDoc, ChangedBody | Skipped]]:
        """Yield each judged document with its changed body or the reason for skipping it."""

    def make_rng(self, case: JudgedDoc, context: ProbeContext) -> ItemRandom:
        """Return a generator for this query and document, so that document order has no effect."""
        return make_item_rng(context.seed, self.random_key, case.qid, case.docno)


class DocumentTransform(Manipulation):
    """A manipulation of one document at a time."""

    def transform_documents(self, context: ProbeContext) -> Iterator[tuple[JudgedDoc, ChangedBody | Skipped]]:
        for cases in context.sampled_documents.values():
            for case in cases:
                yield case, self.transform_document(case, context, self.make_rng(case, context))

    @abstractmethod
    def transform_document(self, case: JudgedDoc, context: ProbeContext, rng: ItemRandom) -> ChangedBody | Skipped:
        """Return the changed body, or the reason for skipping the document."""


class TextTransform(DocumentTransform):
    """A manipulation of the plain text, compared with the original text."""

    def transform_document(self, case: JudgedDoc, context: ProbeContext, rng: ItemRandom) -> ChangedBody | Skipped:
        return ChangedBody(self.transform_text(case.doc.body, case.query, rng), case.doc.body)

    @abstractmethod
    def transform_text(self, text: str, query: str, rng: ItemRandom) -> str:
        """Return the changed text."""


@dataclass(frozen=True, kw_only=True)
class TokenTransform(DocumentTransform):
    """A manipulation of the tokens, compared with the original tokens or with the raw text."""

    against: Literal["tokens", "raw"] = "tokens"

    needs_parser: ClassVar[bool] = True

    def transform_document(self, case: JudgedDoc, context: ProbeContext, rng: ItemRandom) -> ChangedBody | Skipped:
        parsed = context.parse(case.doc.body)
        words = self.transform_tokens(parsed, case.doc.body, rng)
        if isinstance(words, Skipped):
            return words
        original = " ".join(parsed.list_words()) if self.against == "tokens" else case.doc.body
        return ChangedBody(" ".join(words), original)

    @abstractmethod
    def transform_tokens(self, parsed: Parsed, text: str, rng: ItemRandom) -> Sequence[str] | Skipped:
        """Return the changed tokens, or the reason for skipping the document."""


class SentenceTransform(TokenTransform):
    """A manipulation of the sentence order."""

    def transform_tokens(self, parsed: Parsed, text: str, rng: ItemRandom) -> Sequence[str] | Skipped:
        if len(parsed.sentences) < 2:
            return ONE_SENTENCE
        return order_sentences(parsed, self.reorder_sentences(parsed.sentences, rng))

    @abstractmethod
    def reorder_sentences(self, sentences: Sequence[Span], rng: ItemRandom) -> Sequence[Span]:
        """Return the sentences in another order."""


def _make_pair(case: JudgedDoc, change: ChangedBody | Skipped) -> TextPair | Skipped:
    if not case.doc.body.strip():
        return NO_BODY
    if isinstance(change, Skipped):
        return change
    if not change.text.strip():
        return EMPTY
    if change.text == change.original:
        return UNCHANGED
    first, second = (replace(case.doc, body=body) for body in change)
    return TextPair(case.query, first, second, case.qid, case.docno, case.grade)


def find_sentence_starts(text: str, context: ProbeContext) -> list[int]:
    """Return the character offset of each sentence; each text is parsed once."""
    known: dict[str, list[int]] = context.shared_cache.setdefault("starts of sentences", {})
    if text not in known:
        parsed = context.parse(text)
        places = find_offsets(text, parsed.tokens)
        known[text] = [places[span.start].start for span in parsed.sentences]
    return known[text]


def split_written_sentences(text: str, context: ProbeContext) -> list[str]:
    """Return the sentences of a text verbatim."""
    return [text[a:b].strip() for a, b in pairwise([*find_sentence_starts(text, context), len(text)])]
