"""Manipulations: probes that change one thing in a document and compare the result with the original.

The sign is + if the ranker prefers the changed text. `probes.document_transform` has the shared base classes.

Paper 001, section 5 and its repository; those from `keyword_stuffing` on are ours.
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

# What the words are, and in which form.


@dataclass(frozen=True)
class RemoveStopsPunct(TokenTransform):
    """Leave out stop-words, and write a space for each mark of punctuation."""

    stopwords: str = "english"
    """english, none, or a file of words."""

    def transform_tokens(self, parsed: Parsed, text: str, rng: ItemRandom) -> Sequence[str]:
        return remove_stopwords_and_punctuation(parsed.list_words(), load_stopwords(self.stopwords))


@dataclass(frozen=True)
class Lemmatize(TokenTransform):
    """Write the lemma of each word that is no stop-word."""

    stopwords: str = "english"

    def transform_tokens(self, parsed: Parsed, text: str, rng: ItemRandom) -> Sequence[str]:
        return lemmatize(parsed.tokens, load_stopwords(self.stopwords))


@dataclass(frozen=True)
class Retokenize(DocumentTransform):
    """Join the tokens by single spaces: what the linguistic tool alone does to a text."""

    needs_parser: ClassVar[bool] = True

    def transform_document(self, case: JudgedDoc, context: ProbeContext, rng: ItemRandom) -> ChangedBody | Skipped:
        return ChangedBody(" ".join(context.parse(case.doc.body).list_words()), case.doc.body)


@dataclass(frozen=True)
class FoldCase(TextTransform):
    """Write everything in lower case."""

    def transform_text(self, text: str, query: str, rng: ItemRandom) -> str:
        return text.lower()


@dataclass(frozen=True)
class DeletePunctuation(TextTransform):
    """Write a space for each mark of punctuation."""

    def transform_text(self, text: str, query: str, rng: ItemRandom) -> str:
        return blank_punctuation(text)


@dataclass(frozen=True)
class TyposProbe(TextTransform):
    """Misspell every word of which a list knows a common misspelling."""

    random_key: ClassVar[str] = "Typos"
    degrades_text: ClassVar[bool] = True

    file: str = ""
    """The list: that of the package, or a file, as `text.misspellings` reads them."""
    spare: str = "none"
    """Stop-words that are never misspelt: none, english, or a file of words."""

    def transform_text(self, text: str, query: str, rng: ItemRandom) -> str:
        return misspell(text, load_misspellings(self.file), load_stopwords(self.spare), rng)


# The order of words and sentences.


@dataclass(frozen=True)
class ShuffleWords(TokenTransform):
    """Shuffle all words and marks, or all noun phrases and the words and marks outside of them."""

    degrades_text: ClassVar[bool] = True

    keep_phrases: bool = False

    def transform_tokens(self, parsed: Parsed, text: str, rng: ItemRandom) -> Sequence[str]:
        return word_order.shuffle_words(parsed, self.keep_phrases, rng)


@dataclass(frozen=True)
class ShuffleSentenceWords(TokenTransform):
    """Shuffle the words within each sentence, whose last token, or noun phrase if these are kept, stays."""

    degrades_text: ClassVar[bool] = True

    keep_phrases: bool = False

    def transform_tokens(self, parsed: Parsed, text: str, rng: ItemRandom) -> Sequence[str]:
        return word_order.shuffle_sentence_words(parsed, self.keep_phrases, rng)


@dataclass(frozen=True)
class ShuffleNounPhrases(TokenTransform):
    """Shuffle the noun phrases among the places where noun phrases stand."""

    def transform_tokens(self, parsed: Parsed, text: str, rng: ItemRandom) -> Sequence[str]:
        return word_order.replace_noun_phrases(parsed, word_order.shuffle_items(parsed.chunks, rng))


@dataclass(frozen=True)
class ReverseNounPhrases(TokenTransform):
    """Put the noun phrases, last first, in the places where noun phrases stand."""

    def transform_tokens(self, parsed: Parsed, text: str, rng: ItemRandom) -> Sequence[str]:
        return word_order.replace_noun_phrases(parsed, parsed.chunks[::-1])


@dataclass(frozen=True)
class ShuffleSomeWords(TokenTransform):
    """Shuffle as many random words as there are noun phrases: how much a like number of changes does."""

    def transform_tokens(self, parsed: Parsed, text: str, rng: ItemRandom) -> Sequence[str]:
        return word_order.shuffle_some_words(parsed, len(parsed.chunks), rng)


@dataclass(frozen=True)
class ShufflePrepositions(TokenTransform):
    """Shuffle the prepositions among the places where prepositions stand.

    `as_published` writes them where the paper's program does (`word_order.overwrite_with_prepositions`).
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
    """Put the last sentence first, and so on."""

    def reorder_sentences(self, sentences: Sequence[Span], rng: ItemRandom) -> Sequence[Span]:
        return sentences[::-1]


@dataclass(frozen=True)
class ReverseWords(TokenTransform):
    """Put the last word or mark first, and so on."""

    degrades_text: ClassVar[bool] = True

    def transform_tokens(self, parsed: Parsed, text: str, rng: ItemRandom) -> Sequence[str]:
        return parsed.list_words()[::-1]


# What is there, and what is not.


@dataclass(frozen=True)
class DeleteSentence(DocumentTransform):
    """Leave out a sentence: the first, the last, or a random one."""

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
    """Write the query in place of the text."""

    degrades_text: ClassVar[bool] = True

    def transform_text(self, text: str, query: str, rng: ItemRandom) -> str:
        return query


@dataclass(frozen=True)
class PrependQuery(TextTransform):
    """Write the query before the text."""

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
        """Where a model is looked for differs from one machine to the next, and is no part of a result."""
        if reason := super().unavailable_reason(context):
            return reason
        if find_unavailable_reason(add_queries.AddQueries(self.model, self.n)):
            return f"the model {self.model} is not on this machine; `shaketable list rankers` has where it would be"
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
    """Add a random sentence of another document that was judged not relevant to the query (grade 0).

    Where no document was judged 0 for any of the queries, the sentence is of a document that was judged for another
    query and not for this one; `remark` then says so.
    """

    degrades_text: ClassVar[bool] = True

    place: Literal["end", "start"] = "end"
    needs_parser: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_parameter("add_nonrelevant_sentence", self.place in ("end", "start"), "place", "end or start", self.place)

    def remark(self, context: ProbeContext) -> str:
        """What a reader should know of the sentences on this ground; "" if nothing."""
        if _has_grade_zero(context):
            return ""
        return "no document has grade 0: the added sentences are of documents that were judged for other queries"

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
    """Documents with words in them that are not relevant to a query, as far as is known."""
    if _has_grade_zero(context):
        found = {case.docno: case for case in context.judged_documents.get(qid, ()) if case.grade == 0}
    else:
        judged = context.collection.qrels.get(qid, {})
        found = {c.docno: c for cases in context.judged_documents.values() for c in cases if c.docno not in judged}
    return [found[docno] for docno in sorted(found) if any(map(str.isalnum, found[docno].doc.body))]


@dataclass(frozen=True)
class KeywordStuffingProbe(TextTransform):
    """Append the query's words, again and again."""

    random_key: ClassVar[str] = "KeywordStuffing"
    degrades_text: ClassVar[bool] = True

    times: int = 5

    def __post_init__(self) -> None:
        check_ranges("keyword_stuffing", self, times=(1, 1000))

    def transform_text(self, text: str, query: str, rng: ItemRandom) -> str:
        return stuff_keywords(text, query.split(), self.times, "end", rng)[-1]


@dataclass(frozen=True)
class DuplicateDocument(TextTransform):
    """Write the text twice."""

    def transform_text(self, text: str, query: str, rng: ItemRandom) -> str:
        return append_text(text, text)


@dataclass(frozen=True)
class BuryAnswer(DocumentTransform):
    """Move the sentence that has most of the query's words to the end; the first of several."""

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
            return Skipped("the sentence with most of the query's words is the last already")
        return ChangedBody(word_order.move_sentence_to_end(written, best), " ".join(written))


@dataclass(frozen=True)
class AppendBoilerplate(TextTransform):
    """Append a paragraph that says nothing of the topic."""

    degrades_text: ClassVar[bool] = True

    text: str = BOILERPLATE

    def transform_text(self, text: str, query: str, rng: ItemRandom) -> str:
        return append_text(text, self.text)
