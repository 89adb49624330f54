"""Misspelling transforms: one error in one word (joining affects two), or one in every word of a misspelling table.

The first three follow paper 004: they draw one word that is not a stop-word of its list, and redraw a change that has
no effect.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, NamedTuple

from shaketable.core.protocols import TransformContext
from shaketable.core.seeding import ItemRandom
from shaketable.nlp.analyzer import Memo
from shaketable.nlp.keyboard import ADJACENT_KEYS
from shaketable.nlp.misspellings import BUNDLED_PATH, Misspellings, read_bundled_misspellings, read_misspellings
from shaketable.nlp.words import TokenParts, match_case
from shaketable.transforms.categories import MISSPELLING
from shaketable.transforms.one_word import LATIN_WORDS, NON_STOPWORDS, change_one_word
from shaketable.transforms.stopwords import get_mtime_ns

ASCII_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_WORD_PATTERN = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


class _WordTypo(ABC):
    """A misspelling of one word."""

    category: ClassVar[str] = MISSPELLING
    eligible_words: ClassVar[Memo[TokenParts | None]] = NON_STOPWORDS

    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None:
        return change_one_word(text, rng, self.rewrite, self.eligible_words)

    @abstractmethod
    def rewrite(self, word: str, rng: ItemRandom) -> str | None:
        """Return the misspelled word, or None if the error does not apply."""


@dataclass(frozen=True)
class NeighbCharSwap(_WordTypo):
    """Swap two neighbouring letters of a word, first and last letters included."""

    def rewrite(self, word: str, rng: ItemRandom) -> str | None:
        return swap_letters(word, rng, range(len(word) - 1))


def swap_letters(word: str, rng: ItemRandom, positions: Iterable[int]) -> str | None:
    """Swap the letter at a random position with the next letter; return None if no such pair differs."""
    different = [i for i in positions if word[i] != word[i + 1]]
    if not different:
        return None
    i = rng.choice(different)
    return word[:i] + word[i + 1] + word[i] + word[i + 2 :]


@dataclass(frozen=True)
class RandomCharSub(_WordTypo):
    """Replace a letter by a random ASCII letter of either case that differs in more than case."""

    def rewrite(self, word: str, rng: ItemRandom) -> str:
        place = rng.randbelow(len(word))
        old = word[place]
        while (new := rng.choice(ASCII_LETTERS)).lower() == old.lower():
            pass
        return word[:place] + new + word[place + 1 :]


@dataclass(frozen=True)
class QwertyCharSub(_WordTypo):
    """Replace a letter by the letter of an adjacent key."""

    def rewrite(self, word: str, rng: ItemRandom) -> str | None:
        places = [i for i, letter in enumerate(word) if letter.lower() in ADJACENT_KEYS]
        if not places:
            return None
        place = rng.choice(places)
        new = rng.choice(ADJACENT_KEYS[word[place].lower()])
        return word[:place] + match_case(new, word[place]) + word[place + 1 :]


@dataclass(frozen=True)
class RealTypo(_WordTypo):
    """Replace a word by a real misspelling ("receive" by "recieve"); stop-words are eligible."""

    eligible_words: ClassVar[Memo[TokenParts | None]] = LATIN_WORDS

    def rewrite(self, word: str, rng: ItemRandom) -> str | None:
        found = _real_typo_memo[word]
        return rng.choice(found) if found else None


def _find_real_typos(word: str) -> tuple[str, ...]:
    table, lower = read_bundled_misspellings(), word.lower()
    found = table.get(lower) or tuple(f"{typo}s" for typo in table.get(lower.removesuffix("s"), ()))
    return tuple(match_case(typo, word) for typo in found)


_real_typo_memo: Memo[tuple[str, ...]] = Memo(_find_real_typos)


ASCII_LOOKALIKE_RULES = (
    *(("o", "0"), ("0", "o"), ("l", "1"), ("1", "l"), ("i", "1"), ("i", "l"), ("l", "i"), ("s", "5"), ("5", "s")),
    *(("z", "2"), ("b", "6"), ("g", "9"), ("g", "q"), ("q", "g"), ("c", "e")),
    *(("u", "v"), ("v", "u"), ("m", "rn"), ("rn", "m"), ("w", "vv"), ("vv", "w"), ("d", "cl"), ("cl", "d")),
)
"""Letters and their ASCII look-alikes."""

UNICODE_LOOKALIKE_RULES = (
    *(("a", "á"), ("c", "ç"), ("e", "é"), ("i", "í"), ("n", "ñ"), ("o", "ó"), ("u", "ü"), ("y", "ý")),
    *(("a", "а"), ("c", "с"), ("e", "е"), ("o", "о"), ("p", "р"), ("x", "х"), ("i", "і")),
)
"""Letters and their look-alikes outside ASCII: accented and Cyrillic letters."""

VOWEL_PATTERN = "[aeiou]"
SOUNDALIKE_RULES = (
    *(("ph", "f"), ("f", "ph", "", VOWEL_PATTERN), ("ie", "ei"), ("ei", "ie")),
    *(("ck", "k"), ("qu", "kw"), ("x", "ks"), ("z", "s")),
    *(("c", "k", "", "[aou]"), ("k", "c", "", "[aou]"), ("c", "s", "", "[eiy]"), ("s", "c", "", "[eiy]")),
    *(
        ("sc", "s", "", "[ei]"),
        ("s", "z", VOWEL_PATTERN, VOWEL_PATTERN),
        ("y", "i", "", "[^aeiou]"),
        ("i", "y", "", "[^aeiou]"),
    ),
    *((seen, seen[1:], "^", "") for seen in ("kn", "wr", "ps", "pn")),
    *((seen, seen[:1], "^", "") for seen in ("wh", "rh")),
    *((seen, seen[:1], "", "$") for seen in ("mb", "mn")),
    *(("ght", "t"), ("dge", "ge"), ("tion", "sion"), ("sion", "tion"), ("tious", "cious"), ("cious", "tious")),
    *((seen, new, "", "$") for seen, new in (("ance", "ence"), ("ence", "ance"), ("ant", "ent"), ("able", "ible"))),
    *((seen, new, "", "$") for seen, new in (("ible", "able"), ("er", "or"), ("or", "er"), ("ar", "er"), ("le", "el"))),
    *((seen, new, "", "$") for seen, new in (("el", "le"), ("al", "le"), ("ous", "us"))),
    *(("ea", "ee"), ("ee", "ea"), ("ai", "ay"), ("ou", "ow"), ("ough", "uff")),
    *((2 * letter, letter) for letter in "bcdfglmnprstz"),
    *((letter, 2 * letter, VOWEL_PATTERN, VOWEL_PATTERN) for letter in "lmnpr"),
    *((letter, 2 * letter, VOWEL_PATTERN, "[aeou]|i(?![aeou])") for letter in "st"),  # not in -tion, -sion, -tial
)
"""Spellings that sound alike: (old spelling, new spelling, pattern before, pattern after)."""

RuleMatches = tuple[tuple[int, int, str], ...]
"""(start, end, replacement) of each match. Whole words would need too much memory if a word is very long."""


def _compile_rules(rules: Iterable[tuple[str, ...]]) -> Memo[RuleMatches]:
    """Return a cache from a word to all matches of the rules in it."""
    patterns = [(rule[0], _compile_pattern(*rule), rule[1]) for rule in rules]

    def found(word: str) -> RuleMatches:
        lower = word.lower()
        if len(lower) != len(word):
            return ()
        hits = ((pattern, new) for seen, pattern, new in patterns if seen in lower)  # faster than matching all patterns
        return tuple((match.start(), match.end(), new) for pattern, new in hits for match in pattern.finditer(lower))

    return Memo(found)


def _compile_pattern(seen: str, new: str, before: str = "", after: str = "") -> re.Pattern[str]:
    return re.compile(f"{before and f'(?<={before})'}{seen}{after and f'(?={after})'}")


def _apply_random_rule(word: str, rng: ItemRandom, found: RuleMatches) -> str | None:
    """Return the word with a random match replaced, or None without matches."""
    if not found:
        return None
    start, end, new = rng.choice(found)
    return word[:start] + match_case(new, word[start:end]) + word[end:]


_lookalike_matches = {
    True: _compile_rules(ASCII_LOOKALIKE_RULES),
    False: _compile_rules(ASCII_LOOKALIKE_RULES + UNICODE_LOOKALIKE_RULES),
}
_soundalike_matches = _compile_rules(SOUNDALIKE_RULES)
ACCENTED_VOWELS = dict(zip("aeiouAEIOU", "áéíóúÁÉÍÓÚ", strict=True))


@dataclass(frozen=True)
class LookalikeChar(_WordTypo):
    """Replace a letter by a look-alike: o by 0, l by 1, m by rn; with ascii=False also é and Cyrillic letters."""

    ascii: bool = True

    def rewrite(self, word: str, rng: ItemRandom) -> str | None:
        return _apply_random_rule(word, rng, _lookalike_matches[self.ascii][word])


@dataclass(frozen=True)
class Phonetic(_WordTypo):
    """Replace letters by a spelling that sounds alike: ph by f, ei by ie, a double letter by a single one."""

    def rewrite(self, word: str, rng: ItemRandom) -> str | None:
        return _apply_random_rule(word, rng, _soundalike_matches[word])


@dataclass(frozen=True)
class AccentLetter(_WordTypo):
    """Replace a vowel by its accented form, as a dead key or another keyboard layout types it: e by é."""

    def rewrite(self, word: str, rng: ItemRandom) -> str | None:
        places = [i for i, letter in enumerate(word) if letter in ACCENTED_VOWELS]
        if not places:
            return None
        place = rng.choice(places)
        return word[:place] + ACCENTED_VOWELS[word[place]] + word[place + 1 :]


@dataclass(frozen=True)
class DropLetter(_WordTypo):
    """Remove a letter other than the first from a word of at least three letters."""

    def rewrite(self, word: str, rng: ItemRandom) -> str | None:
        places = [i for i in range(1, len(word)) if word[i].isalpha()]
        if len(word) < 3 or not places:
            return None
        place = rng.choice(places)
        return word[:place] + word[place + 1 :]


@dataclass(frozen=True)
class DoubleLetter(_WordTypo):
    """Double a letter of a word."""

    def rewrite(self, word: str, rng: ItemRandom) -> str:
        place = rng.choice([i for i, letter in enumerate(word) if letter.isalpha()])
        return word[: place + 1] + word[place:]


@dataclass(frozen=True)
class SplitWord(_WordTypo):
    """Insert a space into a word, with at least two letters on each side."""

    def rewrite(self, word: str, rng: ItemRandom) -> str | None:
        if len(word) < 4:
            return None
        place = 2 + rng.randbelow(len(word) - 3)
        return f"{word[:place]} {word[place:]}"


@dataclass(frozen=True)
class JoinWords:
    """Remove the space between two words."""

    category: ClassVar[str] = MISSPELLING

    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None:
        words = text.split()
        pairs = pairwise(LATIN_WORDS[word] for word in words)
        places = [i for i, (a, b) in enumerate(pairs) if a and b and not a.tail and not b.head]
        if not places:
            return None
        place = rng.choice(places)
        words[place : place + 2] = [words[place] + words[place + 1]]
        return " ".join(words)


class MisspellingTable(NamedTuple):
    """A table of misspellings and the maximum number of words in an entry."""

    table: Misspellings
    max_words: int


def load_misspellings(file: str) -> MisspellingTable:
    """Return the misspellings of a file, or the bundled ones if no file is given."""
    return _read_misspellings(Path(file), get_mtime_ns(Path(file))) if file else _read_misspellings(BUNDLED_PATH, 0)


@lru_cache(maxsize=4)
def _read_misspellings(path: Path, mtime_ns: int) -> MisspellingTable:
    table = read_bundled_misspellings() if path == BUNDLED_PATH else read_misspellings(path)
    return MisspellingTable(table, max((len(right.split()) for right in table), default=0))


def misspell(text: str, misspellings: MisspellingTable, protected: frozenset[str], rng: ItemRandom) -> str:
    """Replace every unprotected word in the table by one of its misspellings.

    The function scans the text once from left to right and does not scan replacements. Entries of several words take
    precedence over their parts.
    """
    table, most = misspellings
    words = list(_WORD_PATTERN.finditer(text))
    written: list[str] = []
    done = i = 0
    while i < len(words):
        taken = 1
        for n in range(min(most, len(words) - i), 0, -1):
            start, end = words[i].start(), words[i + n - 1].end()
            right = text[start:end] if n == 1 else " ".join(text[start:end].split())
            wrong = table.get(right) or table.get(right.lower())
            if wrong and right.lower() not in protected:
                slip = rng.choice(wrong)
                written += (text[done:start], slip if right in table else match_case(slip, right))
                done, taken = end, n
                break
        i += taken
    return "".join([*written, text[done:]])
