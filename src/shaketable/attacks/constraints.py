"""What a changed document must still be, for attacks that are to pass for honest writing.

A check looks at the original and the changed text alone, so it says the same whatever else it is asked with. The
original passes every one of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import chain, islice

from shaketable.attacks.knowledge import AttackerKnowledge
from shaketable.attacks.language_model import MODEL_VALUES, open_language_model
from shaketable.core.attack_types import AttackCase, ConstraintCheck
from shaketable.core.documents import Doc
from shaketable.core.errors import MissingExtra, check_parameter
from shaketable.core.registries import CONSTRAINTS
from shaketable.measures.text_change import count_changed_words
from shaketable.nlp.analyzer import Analyzer
from shaketable.nlp.parser import Parser, Token, find_offsets
from shaketable.nlp.sentences import split_sentences
from shaketable.nlp.words import find_word_spans
from shaketable.rankers.similarity import make_encoder_similarity

CheckInputs = Sequence[tuple[AttackCase, Sequence[Doc]]]
ChangedSpan = tuple[int, int, int, int]
"""Words from, up to, of the original, that gave way to words from, up to, of the changed text."""
MAX_CACHED_SENTENCES = 100_000
"""Sentences whose words a check remembers."""
ROUNDING_DIGITS = 6
"""Of a cosine and of a ratio that are compared with a limit: the last ones depend on what else is in a batch."""

COARSE_TAGS = {"PROPN": "NOUN", "AUX": "VERB", "CCONJ": "CONJ", "SCONJ": "CONJ"}
"""Universal tags that were split later, and what they were before."""


def open_constraints(constraints: Sequence[str], knowledge: AttackerKnowledge) -> list[ConstraintCheck]:
    """The constraints of a recipe, opened; the cheap ones should be named first."""
    opened: list[ConstraintCheck] = [CONSTRAINTS.build(text).open(knowledge) for text in constraints]
    return opened


@dataclass(frozen=True)
class MostWords:
    """At most so many words differ from the original, counted as `measure.tokenized.count_changed_words` does."""

    most: int = 20

    def __post_init__(self) -> None:
        check_parameter("most_words", self.most >= 1, "most", "1 or more", self.most)

    def open(self, knowledge: AttackerKnowledge) -> ConstraintCheck:
        return self._check

    def _check(self, questions: CheckInputs) -> list[list[bool]]:
        return [[count_changed_words(case.doc, doc) <= self.most for doc in docs] for case, docs in questions]


@dataclass(frozen=True)
class SameLength:
    """The title and the body have as many words as before; marks that stand alone are no words."""

    def open(self, knowledge: AttackerKnowledge) -> ConstraintCheck:
        return self._check

    def _check(self, questions: CheckInputs) -> list[list[bool]]:
        return [[_count_words(doc) == _count_words(case.doc) for doc in docs] for case, docs in questions]


def _count_words(doc: Doc) -> tuple[int, int]:
    return len(find_word_spans(doc.title)), len(find_word_spans(doc.body))


@dataclass(frozen=True)
class PartOfSpeech:
    """A changed word is of the same part of speech as the word it replaces, each in its own sentence.

    Words are compared place by place, so a text with another number of words is refused; another case is no other word.
    Parts of speech are those that the linguistic tool of the attack says, without the finer ones: a proper noun is a
    noun, an auxiliary is a verb, conjunctions are one. A word that the tool cuts into several tokens, such as "didn't",
    has the part of the longest one.

    Jin, Jin, Zhou, Szolovits. Is BERT really robust? AAAI 2020 (TextFooler): the check of parts of speech.
    Petrov, Das, McDonald. A universal part-of-speech tagset. LREC 2012: the coarse parts.
    """

    def open(self, knowledge: AttackerKnowledge) -> ConstraintCheck:
        return _Tagger(knowledge.parser).check


@dataclass(eq=False)
class _Tagger:
    """Tags the words of those sentences alone in which a word changed; each distinct sentence once."""

    parser: Parser
    tags_by_sentence: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def check(self, questions: CheckInputs) -> list[list[bool]]:
        pairs = [[_pair_changed_words(case.doc, doc) for doc in docs] for case, docs in questions]
        changed = [place for row in pairs for some in row if some is not None for place in some]
        self._tag_sentences(sentence for pair in changed for sentence, _ in pair)
        return [[some is not None and all(map(self._has_same_tag, some)) for some in row] for row in pairs]

    def _has_same_tag(self, pair: tuple[tuple[str, int], tuple[str, int]]) -> bool:
        (before, i), (after, j) = pair
        return self.tags_by_sentence[before][i] == self.tags_by_sentence[after][j]

    def _tag_sentences(self, sentences: Iterable[str]) -> None:
        wanted = dict.fromkeys(sentences)
        if len(self.tags_by_sentence) + len(wanted) > MAX_CACHED_SENTENCES:
            self.tags_by_sentence.clear()
        new = [sentence for sentence in wanted if sentence not in self.tags_by_sentence]
        for sentence, parsed in zip(new, self.parser.parse(new), strict=True):
            self.tags_by_sentence[sentence] = _tag_words(sentence, parsed.tokens)


def _pair_changed_words(before: Doc, after: Doc) -> list[tuple[tuple[str, int], tuple[str, int]]] | None:
    """Each place whose word changed, before and after: its sentence and its number there; None if lengths differ."""
    if _count_words(before) != _count_words(after):
        return None
    old, new = list(_iterate_words(before)), list(_iterate_words(after))
    return [(a[:2], b[:2]) for a, b in zip(old, new, strict=True) if a[2].lower() != b[2].lower()]


def _iterate_words(doc: Doc) -> Iterator[tuple[str, int, str]]:
    """The words of title and body: the sentence of each, its number there, and the word."""
    for sentence in chain(split_sentences(doc.title), split_sentences(doc.body)):
        for number, (start, end) in enumerate(find_word_spans(sentence)):
            yield sentence, number, sentence[start:end]


def _tag_words(sentence: str, tokens: Sequence[Token]) -> tuple[str, ...]:
    """The tag of each word of a sentence: that of the longest token which it has in common with it, "" for none."""
    places = find_offsets(sentence, tokens)
    tags, first = [], 0
    for start, end in find_word_spans(sentence):
        while first < len(places) and places[first].end <= start:
            first += 1
        longest, tag = 0, ""
        for place, token in islice(zip(places, tokens, strict=True), first, None):
            if place.start >= end:
                break
            if (shared := min(end, place.end) - max(start, place.start)) > longest:
                longest, tag = shared, COARSE_TAGS.get(token.tag, token.tag)
        tags.append(tag)
    return tuple(tags)


@dataclass(frozen=True)
class Similarity:
    """The text around each change means the same: the cosine of an encoder's vectors of it before and after.

    Around each run of changed words, as many words on either side are taken as make `window` words with a single
    changed one; the run that is least alike counts. With `window` 0 the whole texts are compared, as far as the encoder
    reads them (256 word pieces). The encoder is the one that comes with the extra `neural`.

    Jin, Jin, Zhou, Szolovits. Is BERT really robust? AAAI 2020 (TextFooler): 0.7 in a window of 15 words, by another
    encoder.
    """

    least: float = 0.7
    window: int = 15

    def __post_init__(self) -> None:
        check_parameter("similarity", -1 <= self.least <= 1, "least", "a cosine, between -1 and 1", self.least)
        check_parameter("similarity", self.window >= 0, "window", "0 or more words", self.window)

    def open(self, knowledge: AttackerKnowledge) -> ConstraintCheck:
        cosines = make_encoder_similarity()
        if cosines is None:
            raise MissingExtra("neural", "the constraint similarity")

        def check_pairs(pairs: Sequence[tuple[Doc, Doc]]) -> list[bool]:
            parts = [self._extract_windows(before.text, after.text) for before, after in pairs]
            flat = list(chain.from_iterable(parts))
            found = iter(cosines([before for before, _ in flat], [after for _, after in flat]).tolist() if flat else ())
            lowest = [min(islice(found, len(some)), default=1.0) for some in parts]  # 1 where nothing changed
            return [round(value, ROUNDING_DIGITS) >= self.least for value in lowest]

        return _make_check(check_pairs)

    def _extract_windows(self, before: str, after: str) -> list[tuple[str, str]]:
        """The texts that are to be alike."""
        if not self.window:
            return [(before, after)] if before != after else []
        old, new, side = before.split(), after.split(), (self.window - 1) // 2
        return [
            (" ".join(old[max(0, a - side) : b + side]), " ".join(new[max(0, c - side) : d + side]))
            for a, b, c, d in _find_changed_spans(old, new)
        ]


def _find_changed_spans(old: Sequence[str], new: Sequence[str]) -> list[ChangedSpan]:
    """The runs of words that differ: place by place where there are as many as before, by a comparison otherwise.

    >>> _find_changed_spans("a red boat in a storm".split(), "a blue ship in a calm".split())
    [(1, 3, 1, 3), (5, 6, 5, 6)]
    >>> _find_changed_spans("a red boat".split(), "a very red boat".split())
    [(1, 1, 1, 2)]
    """
    if len(old) == len(new):
        runs: list[ChangedSpan] = []
        for i, (a, b) in enumerate(zip(old, new, strict=True)):
            if a != b:
                start = runs.pop()[0] if runs and runs[-1][1] == i else i
                runs.append((start, i + 1, start, i + 1))
        return runs
    shorter = min(len(old), len(new))
    head = next((i for i in range(shorter) if old[i] != new[i]), shorter)
    rest = shorter - head
    tail = next((i for i in range(rest) if old[-1 - i] != new[-1 - i]), rest)
    middle = SequenceMatcher(None, old[head : len(old) - tail], new[head : len(new) - tail], autojunk=False)
    found = [codes for kind, *codes in middle.get_opcodes() if kind != "equal"]
    return [(head + a, head + b, head + c, head + d) for a, b, c, d in found]


@dataclass(frozen=True)
class Fluency:
    """The changed text is at most so many times as perplexing to a language model as the original.

    `model` is "ngrams", learned from the documents of the collection, or the folder or hub name of a causal language
    model that transformers opens, which is some thousand times as slow. Both look at the whole text, in which a few
    words weigh little; to n-grams of a small collection every text is so perplexing that 1.5 allows nearly anything.
    """

    most: float = 1.5
    model: str = "ngrams"

    def __post_init__(self) -> None:
        check_parameter("fluency", self.most >= 1, "most", "a number, 1 or more", self.most)
        check_parameter("fluency", bool(self.model), "model", MODEL_VALUES, self.model)

    def open(self, knowledge: AttackerKnowledge) -> ConstraintCheck:
        model = open_language_model(self.model, knowledge)

        def check_pairs(pairs: Sequence[tuple[Doc, Doc]]) -> list[bool]:
            texts = list(dict.fromkeys(doc.text for pair in pairs for doc in pair))
            known = dict(zip(texts, model.perplexity(texts).tolist(), strict=True))
            return [
                round(known[after.text] / known[before.text], ROUNDING_DIGITS) <= self.most or before.text == after.text
                for before, after in pairs
            ]

        return _make_check(check_pairs)


@dataclass(frozen=True)
class NoQueryTerms:
    """No word of the query is added: none of its terms stands more often in the text than before.

    Terms are stemmed words, without stop-words, as the index has them; a case of several queries has the terms of all.
    """

    def open(self, knowledge: AttackerKnowledge) -> ConstraintCheck:
        tokenizer = Analyzer()

        def count_terms(terms: Iterable[str], doc: Doc) -> list[int]:
            counted = Counter(tokenizer(doc.text))
            return [counted[term] for term in terms]

        def check(questions: CheckInputs) -> list[list[bool]]:
            answers = []
            for case, docs in questions:
                terms = sorted({term for listing in case.lists for term in tokenizer(listing.query)})
                most = count_terms(terms, case.doc)
                answers.append(
                    [all(n <= m for n, m in zip(count_terms(terms, doc), most, strict=True)) for doc in docs]
                )
            return answers

        return check


def _make_check(check_pairs: Callable[[Sequence[tuple[Doc, Doc]]], Iterable[bool]]) -> ConstraintCheck:
    """A check by something that judges many pairs, original and changed text, at once."""

    def check(questions: CheckInputs) -> list[list[bool]]:
        answers = iter(check_pairs([(case.doc, doc) for case, docs in questions for doc in docs]))
        return [list(islice(answers, len(docs))) for _, docs in questions]

    return check
