"""Constraints on the changed document, for attacks that must look like normal text.

A check depends on the original and the changed text alone. The original passes every check.
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
"""Start and end of the replaced words in the original, then of the new words in the changed text."""
MAX_CACHED_SENTENCES = 100_000
"""Maximum number of sentences whose tags a check caches."""
ROUNDING_DIGITS = 6
"""Digits of a cosine or ratio before comparison with a threshold, because the last ones depend on the batch."""

COARSE_TAGS = {"PROPN": "NOUN", "AUX": "VERB", "CCONJ": "CONJ", "SCONJ": "CONJ"}
"""Newer universal tags -> the coarse tags they were split from."""


def open_constraints(constraints: Sequence[str], knowledge: AttackerKnowledge) -> list[ConstraintCheck]:
    """Open the constraints of a recipe; name cheap constraints first."""
    opened: list[ConstraintCheck] = [CONSTRAINTS.build(text).open(knowledge) for text in constraints]
    return opened


@dataclass(frozen=True)
class MostWords:
    """At most `most` words differ from the original, as counted by `count_changed_words`."""

    most: int = 20

    def __post_init__(self) -> None:
        check_parameter("most_words", self.most >= 1, "most", "1 or more", self.most)

    def open(self, knowledge: AttackerKnowledge) -> ConstraintCheck:
        return self._check

    def _check(self, questions: CheckInputs) -> list[list[bool]]:
        return [[count_changed_words(case.doc, doc) <= self.most for doc in docs] for case, docs in questions]


@dataclass(frozen=True)
class SameLength:
    """The title and the body keep their numbers of words; standalone punctuation does not count."""

    def open(self, knowledge: AttackerKnowledge) -> ConstraintCheck:
        return self._check

    def _check(self, questions: CheckInputs) -> list[list[bool]]:
        return [[_count_words(doc) == _count_words(case.doc) for doc in docs] for case, docs in questions]


def _count_words(doc: Doc) -> tuple[int, int]:
    return len(find_word_spans(doc.title)), len(find_word_spans(doc.body))


@dataclass(frozen=True)
class PartOfSpeech:
    """A changed word keeps the part of speech of the word it replaces, each in its own sentence.

    Words are compared position by position, so a text with another number of words fails; case is ignored. The parser
    of the attack tags the words. Tags are coarse: a proper noun is a noun, an auxiliary is a verb, and all conjunctions
    are one tag. A word of several tokens, such as "didn't", has the tag of the longest token.

    Jin, Jin, Zhou, Szolovits. Is BERT really robust? AAAI 2020 (TextFooler): the check of parts of speech.
    Petrov, Das, McDonald. A universal part-of-speech tagset. LREC 2012: the coarse parts.
    """

    def open(self, knowledge: AttackerKnowledge) -> ConstraintCheck:
        return _Tagger(knowledge.parser).check


@dataclass(eq=False)
class _Tagger:
    """A tagger that parses only sentences with a changed word, each distinct sentence once."""

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
    """Return (sentence, index) before and after each changed word, or None if the numbers of words differ."""
    if _count_words(before) != _count_words(after):
        return None
    old, new = list(_iterate_words(before)), list(_iterate_words(after))
    return [(a[:2], b[:2]) for a, b in zip(old, new, strict=True) if a[2].lower() != b[2].lower()]


def _iterate_words(doc: Doc) -> Iterator[tuple[str, int, str]]:
    """Yield the sentence, the index in it and the text of each word of title and body."""
    for sentence in chain(split_sentences(doc.title), split_sentences(doc.body)):
        for number, (start, end) in enumerate(find_word_spans(sentence)):
            yield sentence, number, sentence[start:end]


def _tag_words(sentence: str, tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return the tag of each word: that of the token with the largest overlap, or "" without one."""
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
    """The text around each change keeps its meaning, by the cosine of encoder vectors before and after.

    A window holds a run of changed words with equally many words on each side, `window` words in total for a single
    changed word. The least similar window counts. With `window` 0 the whole texts are compared, up to the limit of the
    encoder (256 word pieces). The encoder comes with the extra `neural`.

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
        """Return the pairs of texts to compare."""
        if not self.window:
            return [(before, after)] if before != after else []
        old, new, side = before.split(), after.split(), (self.window - 1) // 2
        return [
            (" ".join(old[max(0, a - side) : b + side]), " ".join(new[max(0, c - side) : d + side]))
            for a, b, c, d in _find_changed_spans(old, new)
        ]


def _find_changed_spans(old: Sequence[str], new: Sequence[str]) -> list[ChangedSpan]:
    """Return the runs of words that differ: by position if the lengths are equal, otherwise by alignment.

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
    """The perplexity of the changed text is at most `most` times that of the original.

    `model` is "ngrams", trained on the documents of the collection, or the folder or hub name of a causal language
    model of transformers, which is about a thousand times slower. Both score the whole text, where a few words have
    little weight. With n-grams of a small collection every perplexity is so high that 1.5 allows nearly any change.
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
    """No query term occurs more often in the text than before.

    Terms are stemmed words without stop-words, as in the index; a case of several queries uses the terms of all.
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
    """Return a constraint check from a function that judges many (original, changed) pairs at once."""

    def check(questions: CheckInputs) -> list[list[bool]]:
        answers = iter(check_pairs([(case.doc, doc) for case, docs in questions for doc in docs]))
        return [list(islice(answers, len(docs))) for _, docs in questions]

    return check
