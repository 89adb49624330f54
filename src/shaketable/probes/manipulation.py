"""Manipulations of texts: what does a ranker make of a document of which one thing was changed?

A ranker that prefers the changed text has the sign +. Each is a small class; `changing` has what they share.

Paper 001, section 5 and its repository; those from `keyword_stuffing` on are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from shaketable.chance import Draws
from shaketable.edit import expand
from shaketable.edit.generated import open_generator
from shaketable.edit.missing import missing
from shaketable.errors import ShaketableError, check, check_within
from shaketable.probes.changing import (
    ONE_SENTENCE,
    UNCHANGED,
    Changed,
    Manipulation,
    OfSentences,
    OfText,
    OfTokens,
    OneByOne,
    permuted,
    refilled,
    sentences,
    shuffled,
    starts,
    units,
)
from shaketable.probes.wording import misspelt, slips, stop_words, without_punctuation
from shaketable.text.language import Parsed, Span, offsets
from shaketable.types import Context, Omitted

if TYPE_CHECKING:
    from shaketable.probes.ground import Ground, JudgedDoc

# What the words are, and in which form.


@dataclass(frozen=True)
class RemoveStopsPunct(OfTokens):
    """Leave out stop-words, and write a space for each mark of punctuation."""

    stopwords: str = "english"
    """english, none, or a file of words."""

    def reworded(self, parsed: Parsed, text: str, draws: Draws) -> Sequence[str]:
        stops = stop_words(self.stopwords)
        return [without_punctuation(word) for word in parsed.words() if word.lower() not in stops]


@dataclass(frozen=True)
class Lemmatize(OfTokens):
    """Write the lemma of each word that is no stop-word."""

    stopwords: str = "english"

    def reworded(self, parsed: Parsed, text: str, draws: Draws) -> Sequence[str]:
        stops = stop_words(self.stopwords)
        return [token.text if token.text.lower() in stops else token.lemma for token in parsed.tokens]


@dataclass(frozen=True)
class Retokenize(OneByOne):
    """Join the tokens by single spaces: what the linguistic tool alone does to a text."""

    parses: ClassVar[bool] = True

    def change(self, case: JudgedDoc, ground: Ground, draws: Draws) -> Changed | Omitted:
        return Changed(" ".join(ground.parse(case.doc.body).words()), case.doc.body)


@dataclass(frozen=True)
class FoldCase(OfText):
    """Write everything in lower case."""

    def edited(self, text: str, query: str, draws: Draws) -> str:
        return text.lower()


@dataclass(frozen=True)
class DeletePunctuation(OfText):
    """Write a space for each mark of punctuation."""

    def edited(self, text: str, query: str, draws: Draws) -> str:
        return without_punctuation(text)


@dataclass(frozen=True)
class Typos(OfText):
    """Misspell every word of which a list knows a common misspelling."""

    spoils: ClassVar[bool] = True

    file: str = ""
    """The list: that of the package, or a file, as `text.misspellings` reads them."""
    spare: str = "none"
    """Stop-words that are never misspelt: none, english, or a file of words."""

    def edited(self, text: str, query: str, draws: Draws) -> str:
        return misspelt(text, slips(self.file), stop_words(self.spare), draws)


# The order of words and sentences.


@dataclass(frozen=True)
class ShuffleWords(OfTokens):
    """Shuffle all words and marks, or all noun phrases and the words and marks outside of them."""

    spoils: ClassVar[bool] = True

    keep_phrases: bool = False

    def reworded(self, parsed: Parsed, text: str, draws: Draws) -> Sequence[str]:
        whole = units(parsed, Span(0, len(parsed.tokens)), self.keep_phrases)
        return [word for unit in shuffled(whole, draws) for word in unit]


@dataclass(frozen=True)
class ShuffleSentenceWords(OfTokens):
    """Shuffle the words within each sentence, whose last token, or noun phrase if these are kept, stays."""

    spoils: ClassVar[bool] = True

    keep_phrases: bool = False

    def reworded(self, parsed: Parsed, text: str, draws: Draws) -> Sequence[str]:
        words: list[str] = []
        for span in parsed.sentences:
            *moved, last = units(parsed, span, self.keep_phrases)
            words += (word for unit in (*shuffled(moved, draws), last) for word in unit)
        return words


@dataclass(frozen=True)
class ShuffleNounPhrases(OfTokens):
    """Shuffle the noun phrases among the places where noun phrases stand."""

    def reworded(self, parsed: Parsed, text: str, draws: Draws) -> Sequence[str]:
        return refilled(parsed, shuffled(parsed.chunks, draws))


@dataclass(frozen=True)
class ReverseNounPhrases(OfTokens):
    """Put the noun phrases, last first, in the places where noun phrases stand."""

    def reworded(self, parsed: Parsed, text: str, draws: Draws) -> Sequence[str]:
        return refilled(parsed, parsed.chunks[::-1])


@dataclass(frozen=True)
class ShuffleSomeWords(OfTokens):
    """Shuffle as many random words as there are noun phrases: how much a like number of changes does."""

    def reworded(self, parsed: Parsed, text: str, draws: Draws) -> Sequence[str]:
        places = shuffled(range(len(parsed.tokens)), draws)[: len(parsed.chunks)]
        return permuted(parsed.words(), places, draws)


@dataclass(frozen=True)
class ShufflePrepositions(OfTokens):
    """Shuffle the prepositions among the places where prepositions stand.

    The paper's program took where a preposition begins, in characters, for its number among the tokens: `as_published`
    does the same, so that a preposition is written over whatever token has that number, and none is moved.
    """

    as_published: bool = False

    def reworded(self, parsed: Parsed, text: str, draws: Draws) -> Sequence[str] | Omitted:
        words = parsed.words()
        places = [i for i, token in enumerate(parsed.tokens) if token.tag == "ADP"]
        if not self.as_published:
            return permuted(words, places, draws) if len(places) > 1 else Omitted("it has no two prepositions")
        begins = offsets(text, parsed.tokens)
        dealt = list(words)
        for place, source in zip(places, shuffled(places, draws), strict=True):
            if begins[place].start < len(words):
                dealt[begins[place].start] = words[source]
        return dealt


@dataclass(frozen=True)
class ShuffleSentences(OfSentences):
    """Shuffle the sentences."""

    def reordered(self, sentences: Sequence[Span], draws: Draws) -> Sequence[Span]:
        return shuffled(sentences, draws)


@dataclass(frozen=True)
class ReverseSentences(OfSentences):
    """Put the last sentence first, and so on."""

    def reordered(self, sentences: Sequence[Span], draws: Draws) -> Sequence[Span]:
        return sentences[::-1]


@dataclass(frozen=True)
class ReverseWords(OfTokens):
    """Put the last word or mark first, and so on."""

    spoils: ClassVar[bool] = True

    def reworded(self, parsed: Parsed, text: str, draws: Draws) -> Sequence[str]:
        return parsed.words()[::-1]


# What is there, and what is not.


@dataclass(frozen=True)
class DeleteSentence(OneByOne):
    """Leave out a sentence: the first, the last, or a random one."""

    which: Literal["first", "last", "random"] = "random"
    parses: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check(
            "delete_sentence", self.which in ("first", "last", "random"), "which", "first, last or random", self.which
        )

    def change(self, case: JudgedDoc, ground: Ground, draws: Draws) -> Changed | Omitted:
        text = case.doc.body
        begins = starts(text, ground)
        if len(begins) < 2:
            return ONE_SENTENCE
        number = {"first": 0, "last": len(begins) - 1}.get(self.which)
        number = draws.below(len(begins)) if number is None else number
        return Changed((text[: begins[number]] + text[[*begins, len(text)][number + 1] :]).strip(), text)


@dataclass(frozen=True)
class ReplaceWithQuery(OfText):
    """Write the query in place of the text."""

    spoils: ClassVar[bool] = True

    def edited(self, text: str, query: str, draws: Draws) -> str:
        return query


@dataclass(frozen=True)
class PrependQuery(OfText):
    """Write the query before the text."""

    def edited(self, text: str, query: str, draws: Draws) -> str:
        return f"{query} {text}" if query.strip() else text


@dataclass(frozen=True)
class AddQueries(Manipulation):
    """Append queries that the text might answer, sampled from a model (DocT5Query)."""

    model: str = expand.EXPANDER
    n: int = 4

    def __post_init__(self) -> None:
        check_within("add_queries", self, n=(1, 100))

    def lacking(self, ground: Ground) -> str:
        """Where a model is looked for differs from one machine to the next, and is no part of a result."""
        if reason := super().lacking(ground):
            return reason
        if missing(expand.AddQueries(self.model, self.n)):
            return f"the model {self.model} is not on this machine; `shaketable list rankers` has where it would be"
        try:
            open_generator(self.model)
        except ShaketableError as error:
            return f"the model {self.model} cannot be opened ({type(error).__name__})"
        return ""

    def changes(self, ground: Ground) -> Iterator[tuple[JudgedDoc, Changed | Omitted]]:
        cases = [case for some in ground.drawn.values() for case in some]
        texts = list(dict.fromkeys(case.doc.body for case in cases))
        draws, contexts = [Draws(bytes(64))] * len(texts), [Context()] * len(texts)  # the edit looks at neither
        edit = expand.AddQueries(self.model, self.n)
        longer = dict(zip(texts, edit.apply_many(texts, draws, contexts), strict=True))
        for case in cases:
            text = longer[case.doc.body]
            yield case, UNCHANGED if text is None else Changed(text, case.doc.body)


@dataclass(frozen=True)
class AddNonrelevantSentence(Manipulation):
    """Add a random sentence of another document that was judged not relevant to the query (grade 0).

    Where no document was judged 0 for any of the queries, the sentence is of a document that was judged for another
    query and not for this one; `remark` then says so.
    """

    spoils: ClassVar[bool] = True

    place: Literal["end", "start"] = "end"
    parses: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check("add_nonrelevant_sentence", self.place in ("end", "start"), "place", "end or start", self.place)

    def remark(self, ground: Ground) -> str:
        """What a reader should know of the sentences on this ground; "" if nothing."""
        if _has_zeros(ground):
            return ""
        return "no document has grade 0: the added sentences are of documents that were judged for other queries"

    def changes(self, ground: Ground) -> Iterator[tuple[JudgedDoc, Changed | Omitted]]:
        for qid, cases in ground.drawn.items():
            sources = _sources(ground, qid)
            for case in cases:
                yield case, self._added(case, sources, ground)

    def _added(self, case: JudgedDoc, sources: Sequence[JudgedDoc], ground: Ground) -> Changed | Omitted:
        draws = self.draws(case, ground)
        others = [source for source in sources if source.docno != case.docno]
        if not others:
            return Omitted("no other document is known not to be relevant to the query")
        body = draws.choice(others).doc.body
        sentence = draws.choice([s for s in sentences(body, ground) if any(map(str.isalnum, s))])
        text = case.doc.body
        return Changed(f"{sentence} {text}" if self.place == "start" else f"{text} {sentence}", text)


def _has_zeros(ground: Ground) -> bool:
    return any(case.grade == 0 for cases in ground.judged.values() for case in cases)


def _sources(ground: Ground, qid: str) -> list[JudgedDoc]:
    """Documents with words in them that are not relevant to a query, as far as is known."""
    if _has_zeros(ground):
        found = {case.docno: case for case in ground.judged.get(qid, ()) if case.grade == 0}
    else:
        judged = ground.collection.qrels.get(qid, {})
        found = {c.docno: c for cases in ground.judged.values() for c in cases if c.docno not in judged}
    return [found[docno] for docno in sorted(found) if any(map(str.isalnum, found[docno].doc.body))]


@dataclass(frozen=True)
class KeywordStuffing(OfText):
    """Append the query's words, again and again."""

    spoils: ClassVar[bool] = True

    times: int = 5

    def __post_init__(self) -> None:
        check_within("keyword_stuffing", self, times=(1, 1000))

    def edited(self, text: str, query: str, draws: Draws) -> str:
        return " ".join([text, *query.split() * self.times])


@dataclass(frozen=True)
class DuplicateDocument(OfText):
    """Write the text twice."""

    def edited(self, text: str, query: str, draws: Draws) -> str:
        return f"{text} {text}"


@dataclass(frozen=True)
class BuryAnswer(OneByOne):
    """Move the sentence that has most of the query's words to the end; the first of several."""

    spoils: ClassVar[bool] = True

    parses: ClassVar[bool] = True

    def change(self, case: JudgedDoc, ground: Ground, draws: Draws) -> Changed | Omitted:
        written = sentences(case.doc.body, ground)
        if len(written) < 2:
            return ONE_SENTENCE
        terms = set(ground.tokenizer(case.query))
        shared = [len(terms.intersection(ground.tokenizer(sentence))) for sentence in written]
        best = shared.index(max(shared))
        if not shared[best]:
            return Omitted("no sentence has a word of the query")
        if best == len(written) - 1:
            return Omitted("the sentence with most of the query's words is the last already")
        moved = [*written[:best], *written[best + 1 :], written[best]]
        return Changed(" ".join(moved), " ".join(written))


BOILERPLATE = (
    "We use cookies to keep this site running and to understand how it is visited. You can change your settings at "
    "any time. All content is provided as it is, without any warranty. Please read our terms of use and our privacy "
    "notice, or contact us if you have questions. Copyright by the publisher. All rights reserved."
)


@dataclass(frozen=True)
class AppendBoilerplate(OfText):
    """Append a paragraph that says nothing of the topic."""

    spoils: ClassVar[bool] = True

    text: str = BOILERPLATE

    def edited(self, text: str, query: str, draws: Draws) -> str:
        return f"{text} {self.text}" if self.text.strip() else text
