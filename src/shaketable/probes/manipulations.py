"""Manipulations: probes that change one property of a document and compare the result with the original.

The sign is + if the ranker prefers the changed text. `probes.document_transform` holds the shared base classes.

Paper 001, section 5 and its repository; the probes from `keyword_stuffing` on are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from shaketable.core.errors import ShaketableError, check_parameter, check_ranges
from shaketable.core.protocols import Skipped, TransformContext
from shaketable.core.seeding import ItemRandom
from shaketable.nlp.parser import Parsed, Span
from shaketable.probes.document_transform import (
    ONE_SENTENCE,
    UNCHANGED,
    ChangedBody,
    DocumentTransform,
    Manipulation,
    SentenceTransform,
    TextTransform,
    TokenTransform,
    find_sentence_starts,
    split_written_sentences,
)
from shaketable.transforms import add_queries, word_order
from shaketable.transforms.availability import find_unavailable_reason
from shaketable.transforms.case import blank_punctuation
from shaketable.transforms.generated import open_generator
from shaketable.transforms.insertion import BOILERPLATE, append_text, insert_text, prepend_text, stuff_keywords
from shaketable.transforms.stopwords import lemmatize, load_stopwords, remove_stopwords_and_punctuation
from shaketable.transforms.typos import load_misspellings, misspell

if TYPE_CHECKING:
    from shaketable.probes.context import JudgedDoc, ProbeContext

# Word forms.


@dataclass(frozen=True)
class RemoveStopsPunct(TokenTransform):
    """Remove stop-words and replace punctuation characters by spaces."""

    stopwords: str = "english"
    """english, none, or a file of words."""

    def transform_tokens(self, parsed: Parsed, text: str, rng: ItemRandom) -> Sequence[str]:
        return remove_stopwords_and_punctuation(parsed.list_words(), load_stopwords(self.stopwords))


@dataclass(frozen=True)
class Lemmatize(TokenTransform):
    """Replace each word that is not a stop-word by its lemma."""

    stopwords: str = "english"

    def transform_tokens(self, parsed: Parsed, text: str, rng: ItemRandom) -> Sequence[str]:
        return lemmatize(parsed.tokens, load_stopwords(self.stopwords))


@dataclass(frozen=True)
class Retokenize(DocumentTransform):
    """Join the tokens by single spaces, to measure the effect of the tokeniser alone."""

    needs_parser: ClassVar[bool] = True

    def transform_document(self, case: JudgedDoc, context: ProbeContext, rng: ItemRandom) -> ChangedBody | Skipped:
        return ChangedBody(" ".join(context.parse(case.doc.body).list_words()), case.doc.body)


@dataclass(frozen=True)
class FoldCase(TextTransform):
    """Change the text to lower case."""

    def transform_text(self, text: str, query: str, rng: ItemRandom) -> str:
        return text.lower()


@dataclass(frozen=True)
class DeletePunctuation(TextTransform):
    """Replace punctuation characters by spaces."""

    def transform_text(self, text: str, query: str, rng: ItemRandom) -> str:
        return blank_punctuation(text)


@dataclass(frozen=True)
class TyposProbe(TextTransform):
    """Misspell every word that a list of common misspellings contains."""

    random_key: ClassVar[str] = "Typos"
    degrades_text: ClassVar[bool] = True

    file: str = ""
    """A file in the format of `nlp.misspellings`; empty for the bundled list."""
    spare: str = "none"
    """Stop-words that are never misspelt: none, english, or a file of words."""

    def transform_text(self, text: str, query: str, rng: ItemRandom) -> str:
        return misspell(text, load_misspellings(self.file), load_stopwords(self.spare), rng)


# Order of words and sentences.


@dataclass(frozen=True)
class ShuffleWords(TokenTransform):
    """Shuffle all tokens, or all noun phrases and the tokens outside them."""

    degrades_text: ClassVar[bool] = True

    keep_phrases: bool = False

    def transform_tokens(self, parsed: Parsed, text: str, rng: ItemRandom) -> Sequence[str]:
        return word_order.shuffle_words(parsed, self.keep_phrases, rng)


@dataclass(frozen=True)
class ShuffleSentenceWords(TokenTransform):
    """Shuffle the tokens within each sentence; the last token, or the last kept noun phrase, stays last."""

    degrades_text: ClassVar[bool] = True

    keep_phrases: bool = False

    def transform_tokens(self, parsed: Parsed, text: str, rng: ItemRandom) -> Sequence[str]:
        return word_order.shuffle_sentence_words(parsed, self.keep_phrases, rng)


@dataclass(frozen=True)
class ShuffleNounPhrases(TokenTransform):
    """Shuffle the noun phrases among their positions."""

    def transform_tokens(self, parsed: Parsed, text: str, rng: ItemRandom) -> Sequence[str]:
        return word_order.replace_noun_phrases(parsed, word_order.shuffle_items(parsed.chunks, rng))


@dataclass(frozen=True)
class ReverseNounPhrases(TokenTransform):
    """Reverse the order of the noun phrases among their positions."""

    def transform_tokens(self, parsed: Parsed, text: str, rng: ItemRandom) -> Sequence[str]:
        return word_order.replace_noun_phrases(parsed, parsed.chunks[::-1])


@dataclass(frozen=True)
class ShuffleSomeWords(TokenTransform):
    """Shuffle as many random words as there are noun phrases, as a baseline for the noun-phrase probes."""

    def transform_tokens(self, parsed: Parsed, text: str, rng: ItemRandom) -> Sequence[str]:
        return word_order.shuffle_some_words(parsed, len(parsed.chunks), rng)


@dataclass(frozen=True)
class ShufflePrepositions(TokenTransform):
    """Shuffle the prepositions among their positions.

    `as_published` follows the paper's program instead (`word_order.overwrite_with_prepositions`).
    """

    as_published: bool = False

    def transform_tokens(self, parsed: Parsed, text: str, rng: ItemRandom) -> Sequence[str] | Skipped:
        if self.as_published:
            return word_order.overwrite_with_prepositions(parsed, text, rng)
        positions = word_order.find_prepositions(parsed)
        if len(positions) < 2:
            return Skipped("it has no two prepositions")
        return word_order.permute_words(parsed.list_words(), positions, rng)


@dataclass(frozen=True)
class ShuffleSentences(SentenceTransform):
    """Shuffle the sentences."""

    def reorder_sentences(self, sentences: Sequence[Span], rng: ItemRandom) -> Sequence[Span]:
        return word_order.shuffle_items(sentences, rng)


@dataclass(frozen=True)
class ReverseSentences(SentenceTransform):
    """Reverse the order of the sentences."""

    def reorder_sentences(self, sentences: Sequence[Span], rng: ItemRandom) -> Sequence[Span]:
        return sentences[::-1]


@dataclass(frozen=True)
class ReverseWords(TokenTransform):
    """Reverse the order of the tokens."""

    degrades_text: ClassVar[bool] = True

    def transform_tokens(self, parsed: Parsed, text: str, rng: ItemRandom) -> Sequence[str]:
        return parsed.list_words()[::-1]


# Removed and added content.


@dataclass(frozen=True)
class DeleteSentence(DocumentTransform):
    """Delete the first, the last or a random sentence."""

    which: Literal["first", "last", "random"] = "random"
    needs_parser: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_parameter(
            "delete_sentence", self.which in ("first", "last", "random"), "which", "first, last or random", self.which
        )

    def transform_document(self, case: JudgedDoc, context: ProbeContext, rng: ItemRandom) -> ChangedBody | Skipped:
        text = case.doc.body
        begins = find_sentence_starts(text, context)
        if len(begins) < 2:
            return ONE_SENTENCE
        number = {"first": 0, "last": len(begins) - 1}.get(self.which)
        number = rng.randbelow(len(begins)) if number is None else number
        return ChangedBody(word_order.delete_sentence(text, begins, number), text)


@dataclass(frozen=True)
class ReplaceWithQuery(TextTransform):
    """Replace the text by the query."""

    degrades_text: ClassVar[bool] = True

    def transform_text(self, text: str, query: str, rng: ItemRandom) -> str:
        return query


@dataclass(frozen=True)
class PrependQuery(TextTransform):
    """Prepend the query to the text."""

    degrades_text: ClassVar[bool] = True

    def transform_text(self, text: str, query: str, rng: ItemRandom) -> str:
        return prepend_text(text, query)


@dataclass(frozen=True)
class AddQueriesProbe(Manipulation):
    """Append queries that the text might answer, sampled from a model (DocT5Query)."""

    random_key: ClassVar[str] = "AddQueries"

    model: str = add_queries.DEFAULT_MODEL
    n: int = 4

    def __post_init__(self) -> None:
        check_ranges("add_queries", self, n=(1, 100))

    def unavailable_reason(self, context: ProbeContext) -> str:
        """Return the reason without local paths, because results must not depend on the machine."""
        if reason := super().unavailable_reason(context):
            return reason
        if find_unavailable_reason(add_queries.AddQueries(self.model, self.n)):
            return f"the model {self.model} is not installed; `shaketable list rankers` shows the searched paths"
        try:
            open_generator(self.model)
        except ShaketableError as error:
            return f"the model {self.model} cannot be opened ({type(error).__name__})"
        return ""

    def transform_documents(self, context: ProbeContext) -> Iterator[tuple[JudgedDoc, ChangedBody | Skipped]]:
        cases = [case for some in context.sampled_documents.values() for case in some]
        texts = list(dict.fromkeys(case.doc.body for case in cases))
        # the transform uses neither the random numbers nor the contexts
        rngs, contexts = [ItemRandom(bytes(64))] * len(texts), [TransformContext()] * len(texts)
        transform = add_queries.AddQueries(self.model, self.n)
        longer = dict(zip(texts, transform.apply_many(texts, rngs, contexts), strict=True))
        for case in cases:
            text = longer[case.doc.body]
            yield case, UNCHANGED if text is None else ChangedBody(text, case.doc.body)


@dataclass(frozen=True)
class AddNonrelevantSentence(Manipulation):
    """Add a random sentence of another document judged not relevant to the query (grade 0).

    If no query has a document of grade 0, the sentence comes from a document judged for another query and not for this
    one, and `remark` reports it.
    """

    degrades_text: ClassVar[bool] = True

    place: Literal["end", "start"] = "end"
    needs_parser: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_parameter("add_nonrelevant_sentence", self.place in ("end", "start"), "place", "end or start", self.place)

    def remark(self, context: ProbeContext) -> str:
        """Return a note on the source of the sentences, or ""."""
        if _has_grade_zero(context):
            return ""
        return "no document has grade 0: the added sentences come from documents that were judged for other queries"

    def transform_documents(self, context: ProbeContext) -> Iterator[tuple[JudgedDoc, ChangedBody | Skipped]]:
        for qid, cases in context.sampled_documents.items():
            sources = _find_nonrelevant_documents(context, qid)
            for case in cases:
                yield case, self._add_sentence(case, sources, context)

    def _add_sentence(
        self, case: JudgedDoc, sources: Sequence[JudgedDoc], context: ProbeContext
    ) -> ChangedBody | Skipped:
        rng = self.make_rng(case, context)
        others = [source for source in sources if source.docno != case.docno]
        if not others:
            return Skipped("no other document is known not to be relevant to the query")
        body = rng.choice(others).doc.body
        sentence = rng.choice([s for s in split_written_sentences(body, context) if any(map(str.isalnum, s))])
        text = case.doc.body
        return ChangedBody(insert_text(text, sentence, self.place, rng), text)


def _has_grade_zero(context: ProbeContext) -> bool:
    return any(case.grade == 0 for cases in context.judged_documents.values() for case in cases)


def _find_nonrelevant_documents(context: ProbeContext, qid: str) -> list[JudgedDoc]:
    """Return the non-blank documents that are known or presumed not to be relevant to a query."""
    if _has_grade_zero(context):
        found = {case.docno: case for case in context.judged_documents.get(qid, ()) if case.grade == 0}
    else:
        judged = context.collection.qrels.get(qid, {})
        found = {c.docno: c for cases in context.judged_documents.values() for c in cases if c.docno not in judged}
    return [found[docno] for docno in sorted(found) if any(map(str.isalnum, found[docno].doc.body))]


@dataclass(frozen=True)
class KeywordStuffingProbe(TextTransform):
    """Append the words of the query several times."""

    random_key: ClassVar[str] = "KeywordStuffing"
    degrades_text: ClassVar[bool] = True

    times: int = 5

    def __post_init__(self) -> None:
        check_ranges("keyword_stuffing", self, times=(1, 1000))

    def transform_text(self, text: str, query: str, rng: ItemRandom) -> str:
        return stuff_keywords(text, query.split(), self.times, "end", rng)[-1]


@dataclass(frozen=True)
class DuplicateDocument(TextTransform):
    """Append the text to itself."""

    degrades_text: ClassVar[bool] = True

    def transform_text(self, text: str, query: str, rng: ItemRandom) -> str:
        return append_text(text, text)


@dataclass(frozen=True)
class BuryAnswer(DocumentTransform):
    """Move the sentence with the most query terms to the end; the first such sentence if several tie."""

    degrades_text: ClassVar[bool] = True

    needs_parser: ClassVar[bool] = True

    def transform_document(self, case: JudgedDoc, context: ProbeContext, rng: ItemRandom) -> ChangedBody | Skipped:
        written = split_written_sentences(case.doc.body, context)
        if len(written) < 2:
            return ONE_SENTENCE
        terms = set(context.analyzer(case.query))
        shared = [len(terms.intersection(context.analyzer(sentence))) for sentence in written]
        best = shared.index(max(shared))
        if not shared[best]:
            return Skipped("no sentence has a word of the query")
        if best == len(written) - 1:
            return Skipped("the sentence with most query words is already the last")
        return ChangedBody(word_order.move_sentence_to_end(written, best), " ".join(written))


@dataclass(frozen=True)
class AppendBoilerplate(TextTransform):
    """Append a paragraph without a topic."""

    degrades_text: ClassVar[bool] = True

    text: str = BOILERPLATE

    def transform_text(self, text: str, query: str, rng: ItemRandom) -> str:
        return append_text(text, self.text)
