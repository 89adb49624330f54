"""The query attacks of paper 000 (section 5.1): random changes of a character or a word.

    Add         a lower-case letter between two letters of a word     a lower-case word anywhere in the query
    Remove      an inner letter                                       a word, unless it is the only one
    Substitute  an inner letter by another                            a word by another
    Swap        two neighbouring inner letters that differ

First and last letters stay, because people recognise words by them (Rawlinson 1976, Davis 2003).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from shaketable.core.errors import check_ranges
from shaketable.core.protocols import TransformContext
from shaketable.core.seeding import ItemRandom
from shaketable.nlp.analyzer import Memo
from shaketable.nlp.thesaurus import read_bundled_thesaurus
from shaketable.nlp.words import TOKEN_PARTS
from shaketable.transforms.categories import GENERALISATION, MISSPELLING
from shaketable.transforms.typos import swap_letters

LETTERS = "abcdefghijklmnopqrstuvwxyz"
MIN_LETTERS_ALL_OPERATIONS = 4  # shorter words do not allow all four operations
MAX_TRIES = 100
EMPTY_CONTEXT = TransformContext()


def _insert_letter(word: str, rng: ItemRandom) -> str:
    place = 1 + rng.randbelow(len(word) - 1)
    return word[:place] + rng.choice(LETTERS) + word[place:]


def _remove_inner_letter(word: str, rng: ItemRandom) -> str:
    place = 1 + rng.randbelow(len(word) - 2)
    return word[:place] + word[place + 1 :]


def _substitute_inner_letter(word: str, rng: ItemRandom) -> str:
    place = 1 + rng.randbelow(len(word) - 2)
    return word[:place] + rng.choice(LETTERS.replace(word[place].lower(), "")) + word[place + 1 :]


def _swap_inner_letters(word: str, rng: ItemRandom) -> str | None:
    return swap_letters(word, rng, range(1, len(word) - 2))


CHAR_OPERATIONS: dict[str, Callable[[str, ItemRandom], str | None]] = {
    "add": _insert_letter,
    "remove": _remove_inner_letter,
    "substitute": _substitute_inner_letter,
    "swap": _swap_inner_letters,
}
WORD_OPERATIONS = ("add", "remove", "substitute")


def _measure_core_length(token: str) -> int:
    found = TOKEN_PARTS[token]
    return len(found.core) if found else 0


WORD_LENGTHS: Memo[int] = Memo(_measure_core_length)
"""token -> length of its word; 0 if it is not in Latin letters."""


def _list_operations(length: int) -> tuple[str, ...]:
    """Return the operations available for a word of this length."""
    return ("add",) if length == 2 else ("add", "remove", "substitute") if length == 3 else tuple(CHAR_OPERATIONS)


@dataclass(frozen=True)
class CharNoise:
    """Add, remove, substitute or swap inner letters of a random word, `edits` times.

    The word is drawn from the words of at least four letters, where all four operations apply with equal shares.
    Shorter words are used only if no longer word exists. Each operation changes the result of the previous one; an
    operation that restores an earlier text is redrawn. With the generator of `vary.make_rng`, the text after two
    operations is therefore the text after one operation, changed once more.
    """

    edits: int = 1
    category: ClassVar[str] = MISSPELLING
    random_key: ClassVar[str] = "char_attack"

    def __post_init__(self) -> None:
        check_ranges("char_noise", self, edits=(1, 1000))

    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None:
        attacked = self.attack(text, rng, context)
        return attacked and attacked[0]

    def attack(
        self, text: str, rng: ItemRandom, context: TransformContext = EMPTY_CONTEXT
    ) -> tuple[str, tuple[str, ...]] | None:
        """Return the new text and the operations applied."""
        words = text.split()
        seen, kinds = {tuple(words)}, []
        for _ in range(self.edits):
            if not (step := self._apply_new_operation(words, seen, rng)):
                return None
            words, kind = step
            seen.add(tuple(words))
            kinds.append(kind)
        return " ".join(words), tuple(kinds)

    def _apply_new_operation(
        self, words: list[str], seen: set[tuple[str, ...]], rng: ItemRandom
    ) -> tuple[list[str], str] | None:
        """Return the words after an operation that produces an unseen text, and the name of the operation."""
        for _ in range(MAX_TRIES):
            changed = words.copy()
            if not (kind := self._apply_operation(changed, rng)):
                return None
            if tuple(changed) not in seen:
                return changed, kind
        return None

    @staticmethod
    def _apply_operation(words: list[str], rng: ItemRandom) -> str | None:
        """Change one of the words in place and return the name of the operation."""
        places = [i for i, word in enumerate(words) if WORD_LENGTHS[word] >= MIN_LETTERS_ALL_OPERATIONS]
        places = places or [i for i, word in enumerate(words) if WORD_LENGTHS[word] > 1]
        if not places:
            return None
        place = rng.choice(places)
        head, core, tail = TOKEN_PARTS[words[place]] or ("", "", "")
        kinds = _list_operations(len(core))
        while True:  # terminates, because adding a letter always works
            kind = rng.choice(kinds)
            if changed := CHAR_OPERATIONS[kind](core, rng):
                words[place] = f"{head}{changed}{tail}"
                return kind


@dataclass(frozen=True)
class WordNoise:
    """Add, remove or substitute a random word of the query, which changes its meaning.

    Words come from the vocabulary of the context, or from the bundled thesaurus if that is empty.
    """

    category: ClassVar[str] = GENERALISATION
    random_key: ClassVar[str] = "word_attack"

    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None:
        attacked = self.attack(text, rng, context)
        return attacked and attacked[0]

    def attack(
        self, text: str, rng: ItemRandom, context: TransformContext = EMPTY_CONTEXT
    ) -> tuple[str, tuple[str, ...]] | None:
        """Return the new text and the operation applied."""
        words = text.split()
        if not words:
            return None
        kind = rng.choice(WORD_OPERATIONS)
        while kind == "remove" and len(words) == 1:
            kind = rng.choice(WORD_OPERATIONS)
        place = rng.randbelow(len(words) + (kind == "add"))
        old = () if kind == "add" else (words[place],)
        new = () if kind == "remove" else _draw_other_word(context.vocabulary or _list_thesaurus_words(), old, rng)
        if new is None:
            return None
        words[place : place + len(old)] = new
        return " ".join(words), (kind,)


def _draw_other_word(vocabulary: Sequence[str], old: tuple[str, ...], rng: ItemRandom) -> tuple[str] | None:
    """Draw a lower-case alphabetic word that differs from the old one."""
    for _ in range(MAX_TRIES):
        word = rng.choice(vocabulary).lower()
        if word.isalpha() and word not in old:
            return (word,)
    return None


@lru_cache(maxsize=1)
def _list_thesaurus_words() -> tuple[str, ...]:
    return tuple(sorted(word for word in read_bundled_thesaurus() if word.isalpha()))
