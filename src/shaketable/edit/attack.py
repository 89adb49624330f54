"""The query attacks of paper 000 (section 5.1): a character or a word, changed at random.

    Add         a lower-case letter between two letters of a word     a lower-case word anywhere in the query
    Remove      an inner letter                                       a word, unless it is the only one
    Substitute  an inner letter by another                            a word by another
    Swap        two neighbouring inner letters that differ

First and last letters stay, for people read words by them (Rawlinson 1976, Davis 2003).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from shaketable.chance import Draws
from shaketable.edit.taxonomy import GENERALISATION, MISSPELLING
from shaketable.errors import check_within
from shaketable.text.thesaurus import bundled
from shaketable.text.tokens import Memo
from shaketable.text.words import PARTS
from shaketable.types import Context

LETTERS = "abcdefghijklmnopqrstuvwxyz"
LONG = 4  # letters a word needs for all four edits
TRIES = 100
ALONE = Context()


def _add(word: str, draws: Draws) -> str:
    place = 1 + draws.below(len(word) - 1)
    return word[:place] + draws.choice(LETTERS) + word[place:]


def _remove(word: str, draws: Draws) -> str:
    place = 1 + draws.below(len(word) - 2)
    return word[:place] + word[place + 1 :]


def _substitute(word: str, draws: Draws) -> str:
    place = 1 + draws.below(len(word) - 2)
    return word[:place] + draws.choice(LETTERS.replace(word[place].lower(), "")) + word[place + 1 :]


def _swap(word: str, draws: Draws) -> str | None:
    places = [i for i in range(1, len(word) - 2) if word[i] != word[i + 1]]
    if not places:
        return None
    i = draws.choice(places)
    return word[:i] + word[i + 1] + word[i] + word[i + 2 :]


CHAR_EDITS: dict[str, Callable[[str, Draws], str | None]] = {
    "add": _add,
    "remove": _remove,
    "substitute": _substitute,
    "swap": _swap,
}
WORD_EDITS = ("add", "remove", "substitute")


def _length(token: str) -> int:
    found = PARTS[token]
    return len(found.core) if found else 0


LENGTH: Memo[int] = Memo(_length)
"""token -> how long the word in it is; 0 where it is not in Latin letters."""


def _kinds(length: int) -> tuple[str, ...]:
    """The edits that a word of a length allows."""
    return ("add",) if length == 2 else ("add", "remove", "substitute") if length == 3 else tuple(CHAR_EDITS)


@dataclass(frozen=True)
class CharAttack:
    """Add, remove, substitute or swap inner letters of a random word, `edits` times.

    The word is drawn from those of four letters and more, where all four edits apply, so that their shares are even;
    from shorter ones only if there is no longer one. Each edit is made on the text that the one before it left, and an
    edit that leads back to an earlier text is drawn again; so with the same draws, as `vary.chance_of` gives them, the
    text after two edits is an edit of the text after one.
    """

    edits: int = 1
    category: ClassVar[str] = MISSPELLING
    drawn_as: ClassVar[str] = "char_attack"

    def __post_init__(self) -> None:
        check_within("char_attack", self, edits=(1, 1000))

    def apply(self, text: str, draws: Draws, context: Context) -> str | None:
        attacked = self.attack(text, draws, context)
        return attacked and attacked[0]

    def attack(self, text: str, draws: Draws, context: Context = ALONE) -> tuple[str, tuple[str, ...]] | None:
        """The new text and which edits made it."""
        words = text.split()
        seen, kinds = {tuple(words)}, []
        for _ in range(self.edits):
            if not (step := self._step(words, seen, draws)):
                return None
            words, kind = step
            seen.add(tuple(words))
            kinds.append(kind)
        return " ".join(words), tuple(kinds)

    def _step(self, words: list[str], seen: set[tuple[str, ...]], draws: Draws) -> tuple[list[str], str] | None:
        """One edit that leads to none of the texts seen before, and of which kind it is."""
        for _ in range(TRIES):
            changed = words.copy()
            if not (kind := self._edit(changed, draws)):
                return None
            if tuple(changed) not in seen:
                return changed, kind
        return None

    @staticmethod
    def _edit(words: list[str], draws: Draws) -> str | None:
        """Edit one of the words in place and say how."""
        places = [i for i, word in enumerate(words) if LENGTH[word] >= LONG]
        places = places or [i for i, word in enumerate(words) if LENGTH[word] > 1]
        if not places:
            return None
        place = draws.choice(places)
        head, core, tail = PARTS[words[place]] or ("", "", "")
        kinds = _kinds(len(core))
        while True:  # ends: adding a letter always works
            kind = draws.choice(kinds)
            if changed := CHAR_EDITS[kind](core, draws):
                words[place] = f"{head}{changed}{tail}"
                return kind


@dataclass(frozen=True)
class WordAttack:
    """Add a random word to the query, remove a word or substitute one: it changes what is asked for.

    Words come from the vocabulary of the context, from the bundled thesaurus where that is empty.
    """

    category: ClassVar[str] = GENERALISATION

    def apply(self, text: str, draws: Draws, context: Context) -> str | None:
        attacked = self.attack(text, draws, context)
        return attacked and attacked[0]

    def attack(self, text: str, draws: Draws, context: Context = ALONE) -> tuple[str, tuple[str, ...]] | None:
        """The new text and which edit made it."""
        words = text.split()
        if not words:
            return None
        kind = draws.choice(WORD_EDITS)
        while kind == "remove" and len(words) == 1:
            kind = draws.choice(WORD_EDITS)
        place = draws.below(len(words) + (kind == "add"))
        old = () if kind == "add" else (words[place],)
        new = () if kind == "remove" else _other_word(context.vocabulary or _thesaurus_words(), old, draws)
        if new is None:
            return None
        words[place : place + len(old)] = new
        return " ".join(words), (kind,)


def _other_word(vocabulary: Sequence[str], old: tuple[str, ...], draws: Draws) -> tuple[str] | None:
    """A lower-case word that is not the old one; what has no letters is no word."""
    for _ in range(TRIES):
        word = draws.choice(vocabulary).lower()
        if word.isalpha() and word not in old:
            return (word,)
    return None


@lru_cache(maxsize=1)
def _thesaurus_words() -> tuple[str, ...]:
    return tuple(sorted(word for word in bundled() if word.isalpha()))
