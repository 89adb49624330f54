"""Krovetz stemming: removes endings of a word until a dictionary has it, so that stems are words.

A word in the dictionary is not changed. For any other word, the stemmer first removes inflections (plural, past, -ing),
then derivations (-ity, -ness, -ion, -er, -ly, -al, -ive, -ize, -ment, -able, -ism, -ic, -ncy, -nce). Each time it looks
up the spellings that the ending may have changed, and takes the first one in the dictionary. If there is none, some
endings are removed and others stay.

The stems depend on the dictionary. The original has the headwords of the Longman dictionary, and other programs have
lists derived from it. Ours is WordNet, without forms that no printed dictionary lists ("used", "quickly"; see
`select_headwords`). The algorithm is that of the paper, but the stems differ from those of Lemur or Lucene:
docs/choices.md says how often they agree. WordNet does not come with Shaketable; an error message says where to put it.

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
"""The shortest and longest words that are stemmed."""
ALGORITHM_VERSION = 1  # raise it when stems change
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
"""The derivation steps, in order. In each step the first matching ending applies: (ending, replacements that the
dictionary must confirm, replacement if it confirms none)."""


@dataclass(frozen=True)
class Krovetz:
    """A Krovetz stemmer with a dictionary.

    >>> stem = Krovetz(frozenset(("boat", "hope", "hop", "stimulate", "compute", "pony")))
    >>> [stem(word) for word in ("boats", "hoping", "hopped", "stimulations", "computability", "ponies", "xyzzy")]
    ['boat', 'hope', 'hop', 'stimulate', 'compute', 'pony', 'xyzzy']
    """

    words: frozenset[str]

    @cached_property
    def fingerprint(self) -> str:
        """The hash of the algorithm version and the dictionary."""
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
        """Return True if a word is a regular form of a word in the dictionary."""
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
        """Return the verb of an -ing form."""
        stem = word[:-3]
        if not word.endswith("ing") or not _is_pronounceable(stem):
            return word
        found = self._find_verb(stem) or self._find_first_known(stem[:-1] + "ie" if stem.endswith("y") else "")
        return found or (stem if stem[-2] not in VOWELS else stem + "e")

    def _find_verb(self, stem: str) -> str | None:
        """Return the verb with this stem before -ed and -ing: an e may be dropped, or a consonant doubled."""
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
    """Return True if a stem has two or more letters and a vowel."""
    return len(stem) > 1 and not VOWELS.isdisjoint(stem)


def _undouble_consonant(stem: str) -> str:
    """Return the stem without the second of two equal final consonants; "" if it has none."""
    return stem[:-1] if len(stem) > 2 and stem[-1] == stem[-2] and stem[-1] not in VOWELS else ""


REGULAR_FORM_ENDINGS = {
    "s": ("noun", "noun"),
    "ed": ("adj", "verb"),
    "ing": ("noun adj", "verb"),
    "er": ("adj adv", "adj"),
    "ly": ("adv", "adj"),
    "ness": ("noun", "adj"),
}
"""Ending of a regular form -> the part of speech of the form, and that of its base."""
MAX_FORM_SENSES = 3
"""A form with more senses in WordNet is a headword, such as "building"."""


def select_headwords(words: WordNet) -> frozenset[str]:
    """Return the words of WordNet that a dictionary would list, and function words, which WordNet lacks.

    Regular forms, adverbs in -ly and nouns in -ness are left out if they have few senses.
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
    """Open the stemmer with the installed WordNet."""
    return _build_krovetz(open_wordnet().path)


@lru_cache(maxsize=1)
def _build_krovetz(path: Path) -> Krovetz:
    return Krovetz(select_headwords(read_wordnet(path)))
