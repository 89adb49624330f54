"""Krovetz stemming: endings are taken off a word until a dictionary has it, so that stems are words.

A word that the dictionary has stays as it is. Of any other, first what inflects it goes (plural, past, -ing), then what
derives it from another word (-ity, -ness, -ion, -er, -ly, -al, -ive, -ize, -ment, -able, -ism, -ic, -ncy, -nce); each
time the spellings that the ending may have hidden are looked up, and the first one that the dictionary has is taken.
Where it has none of them, some endings go all the same, and others stay.

The dictionary decides. The original has the headwords of the Longman dictionary, and the programs of others have lists
that grew out of it. Ours is WordNet, which has more words, and forms of words among them that no printed dictionary has
an entry for ("used", "quickly"); those are left out (`select_headwords`). So this is the algorithm of the paper, and
not the stems of Lemur or Lucene to the letter: docs/choices.md says how often they agree. WordNet does not come with
Shaketable; without it, a message says where to put it.

Krovetz. Viewing morphology as an inference process. SIGIR 1993; Artificial Intelligence 118, 2000.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from shaketable.core.documents import fingerprint
from shaketable.nlp.pos_lexicon import CLOSED_CLASS_WORDS
from shaketable.nlp.wordnet import WordNet, open_wordnet, read_wordnet

MIN_LETTERS, MAX_LETTERS = 4, 25
"""Letters of a word that may be stemmed."""
ALGORITHM_VERSION = 1  # raise it when words come out differently
VOWELS = frozenset("aeiouy")
CLOSED_CLASS_WORD_SET = frozenset(word for words in CLOSED_CLASS_WORDS.values() for word in words.split())

KEEP, DROP = None, ""
DERIVATION_STEPS: tuple[tuple[tuple[str, tuple[str, ...], str | None], ...], ...] = (
    (
        ("ability", (), "able"),
        ("ibility", (), "ible"),
        ("ivity", ("e", ""), "ive"),
        ("ality", (), "al"),
        ("icity", (), "ic"),
        ("ity", ("", "e"), DROP),
    ),
    (("iness", ("y",), "i"), ("ness", (), DROP)),
    (
        ("ization", (), "ize"),
        ("isation", (), "ise"),
        ("ication", ("y", "icate", "e", ""), KEEP),
        ("ation", ("ate", "e", ""), KEEP),
        ("ition", ("ish", "ite", "e", "it", ""), KEEP),
        ("ption", ("be", "pt"), KEEP),
        ("ssion", ("ss", "t", "de"), KEEP),
        ("ion", ("e", ""), KEEP),
    ),
    (("izer", (), "ize"), ("ier", ("y",), KEEP), ("er", ("e", ""), KEEP), ("or", ("e", ""), KEEP)),
    (("ably", (), "able"), ("ibly", (), "ible"), ("ily", ("y",), "i"), ("ly", ("", "le"), DROP)),
    (
        ("ical", (), "ic"),
        ("ional", ("ion", "e", ""), KEEP),
        ("ial", ("", "e", "y", "ium"), KEEP),
        ("al", ("", "e", "um"), KEEP),
    ),
    (("ative", ("ate", "e", ""), KEEP), ("ive", ("e", "", "ion"), KEEP)),
    (("ize", ("", "e", "y"), KEEP), ("ise", ("", "e", "y"), KEEP)),
    (("ment", ("",), KEEP),),
    (("able", ("", "e", "ate"), KEEP), ("ible", ("", "e"), KEEP)),
    (("ism", ("", "e", "y", "al"), DROP),),
    (("ic", ("", "e", "y", "ics"), KEEP),),
    (("ency", ("ent",), "ence"), ("ancy", ("ant",), "ance")),
    (("ence", ("", "e", "ent"), KEEP), ("ance", ("", "e", "ant"), KEEP)),
)
"""Steps, one after the other. In each the first ending that a word has counts: what may stand in its place if the
dictionary has the word then, and what is done if it has none of these."""


@dataclass(frozen=True)
class Krovetz:
    """The stemmer, with a dictionary.

    >>> stem = Krovetz(frozenset(("boat", "hope", "hop", "stimulate", "compute", "pony")))
    >>> [stem(word) for word in ("boats", "hoping", "hopped", "stimulations", "computability", "ponies", "xyzzy")]
    ['boat', 'hope', 'hop', 'stimulate', 'compute', 'pony', 'xyzzy']
    """

    words: frozenset[str]

    @cached_property
    def fingerprint(self) -> str:
        """Names the dictionary."""
        return fingerprint(ALGORITHM_VERSION, *sorted(self.words))

    def __call__(self, word: str) -> str:
        if not MIN_LETTERS <= len(word) <= MAX_LETTERS or not (word.isascii() and word.isalpha() and word.islower()):
            return word
        steps: tuple[Callable[[str], str], ...] = (self._strip_plural, self._strip_past, self._strip_ing)
        for step in steps:
            if word in self.words:
                return word
            word = step(word)
        for endings in DERIVATION_STEPS:
            if word in self.words:
                return word
            word = self._strip_derivation(word, endings)
        return word

    def is_regular_form(self, word: str) -> bool:
        """Is a word a regular form of one that the dictionary has?"""
        steps = (self._strip_plural, self._strip_past, self._strip_ing)
        forms = {step(word) for step in steps} | {self._strip_derivation(word, endings) for endings in DERIVATION_STEPS}
        return any(form != word and form in self.words for form in forms)

    def _find_first_known(self, *spellings: str) -> str | None:
        return next((word for word in spellings if len(word) > 1 and word in self.words), None)

    def _strip_plural(self, word: str) -> str:
        if word.endswith("ies"):
            return self._find_first_known(word[:-1]) or word[:-3] + "y"
        if word.endswith("es"):
            return self._find_first_known(word[:-1], word[:-2]) or word[:-1]
        return word if word.endswith(("ss", "us", "is")) or not word.endswith("s") else word[:-1]

    def _strip_past(self, word: str) -> str:
        if word.endswith("ied"):
            return self._find_first_known(word[:-1]) or word[:-3] + "y"
        if not word.endswith("ed") or not _is_pronounceable(word[:-2]) or word.startswith("un"):
            return word
        return self._find_verb(word[:-2]) or word[:-1]

    def _strip_ing(self, word: str) -> str:
        """The verb of a form on -ing."""
        stem = word[:-3]
        if not word.endswith("ing") or not _is_pronounceable(stem):
            return word
        found = self._find_verb(stem) or self._find_first_known(stem[:-1] + "ie" if stem.endswith("y") else "")
        return found or (stem if stem[-2] not in VOWELS else stem + "e")

    def _find_verb(self, stem: str) -> str | None:
        """The verb that has this stem before -ed and -ing: an e may have gone, and a consonant may have doubled."""
        single = _undouble_consonant(stem)
        return self._find_first_known(stem, single, stem + "e") if single else self._find_first_known(stem + "e", stem)

    def _strip_derivation(self, word: str, endings: tuple[tuple[str, tuple[str, ...], str | None], ...]) -> str:
        for ending, replacements, otherwise in endings:
            if word.endswith(ending) and _is_pronounceable(stem := word.removesuffix(ending)):
                found = self._find_first_known(
                    *(stem + end for end in replacements), *([_undouble_consonant(stem)] if replacements else [])
                )
                return found or (word if otherwise is None else stem + otherwise)
        return word


def _is_pronounceable(stem: str) -> bool:
    """Is a stem long enough to be a word, with a vowel?"""
    return len(stem) > 1 and not VOWELS.isdisjoint(stem)


def _undouble_consonant(stem: str) -> str:
    """The stem without the second of two equal consonants; nothing where there are none."""
    return stem[:-1] if len(stem) > 2 and stem[-1] == stem[-2] and stem[-1] not in VOWELS else ""


REGULAR_FORM_ENDINGS = {
    "s": ("noun", "noun"),
    "ed": ("adj", "verb"),
    "ing": ("noun adj", "verb"),
    "er": ("adj adv", "adj"),
    "ly": ("adv", "adj"),
    "ness": ("noun", "adj"),
}
"""Endings of regular forms: the part of speech of the form, and that of the word that it is a form of."""
MAX_FORM_SENSES = 3
"""A form that WordNet has more senses of is a word in its own right, such as "building"."""


def select_headwords(words: WordNet) -> frozenset[str]:
    """The words of WordNet that a dictionary has entries for, and function words, which WordNet lacks.

    Left out are regular forms of other words, adverbs on -ly and nouns on -ness, as far as they have few senses.
    """
    senses: dict[str, dict[str, int]] = {}
    for pos in words.index:
        for word, n in words.count_senses(pos):
            if word.isalpha():
                senses.setdefault(word, {})[pos] = n
    bases = {
        end: Krovetz(frozenset(word for word, by in senses.items() if base in by))
        for end, (_, base) in REGULAR_FORM_ENDINGS.items()
    }

    def form(word: str, by: dict[str, int], end: str) -> bool:
        own = REGULAR_FORM_ENDINGS[end][0].split()
        return (
            word.endswith(end)
            and by.keys() <= {*own}
            and sum(by.values()) <= MAX_FORM_SENSES
            and bases[end].is_regular_form(word)
        )

    return CLOSED_CLASS_WORD_SET.union(
        word for word, by in senses.items() if not any(form(word, by, end) for end in REGULAR_FORM_ENDINGS)
    )


def open_krovetz() -> Krovetz:
    """The stemmer with the WordNet of this machine."""
    return _build_krovetz(open_wordnet().path)


@lru_cache(maxsize=1)
def _build_krovetz(path: Path) -> Krovetz:
    return Krovetz(select_headwords(read_wordnet(path)))
