"""Change one word of a text and leave the others alone.

A text is cut at white space and put together again with single spaces, so the words stay and runs of blanks do not. A
word is what stands between the punctuation of a token: in "(theraderm?" only "theraderm" is edited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from shaketable.chance import Draws
from shaketable.text.stopwords import ENGLISH
from shaketable.text.tokens import Memo
from shaketable.text.words import NLTK, PARTS, Parts

Rewrite: TypeAlias = Callable[[str, Draws], str | None]
"""A word and chance -> another word, or None where the edit does not apply."""
RewriteAt: TypeAlias = Callable[[Sequence[str], int, str, Draws], str | None]
"""The tokens of a text, the place of one of them, the word in it and chance -> another word, or None."""


def _topical(token: str) -> Parts | None:
    found = PARTS[token]
    return found if found and len(found.core) > 1 and found.core.lower() not in NLTK else None


def _content(token: str) -> Parts | None:
    found = _topical(token)
    return found if found and found.core.lower() not in ENGLISH else None


ANY = PARTS
"""Words that may be edited: any in Latin letters."""
TOPICAL: Memo[Parts | None] = Memo(_topical)
"""Words that may be edited: those of two letters and more that are not in NLTK's list of stop-words."""
CONTENT: Memo[Parts | None] = Memo(_content)
"""Words that may be edited: those of which no list says that they are stop-words ("many" is one in ours only)."""


def change_one(text: str, draws: Draws, rewrite: Rewrite, among: Memo[Parts | None] = TOPICAL) -> str | None:
    """Rewrite one word, all words to which the rewriting applies being alike; None where there is none."""
    return change_at(text, draws, lambda words, place, core, draws: rewrite(core, draws), among)


def change_at(text: str, draws: Draws, rewrite: RewriteAt, among: Memo[Parts | None] = TOPICAL) -> str | None:
    """Do what `change_one` does, with a rewriting that looks at the words around."""
    words = text.split()
    places = [i for i, word in enumerate(words) if among[word]]
    while places:
        place = places.pop(draws.below(len(places)))
        found = among[words[place]]
        assert found is not None
        head, core, tail = found
        changed = rewrite(words, place, core, draws)
        if changed is not None and changed != core:
            words[place] = f"{head}{changed}{tail}"
            return " ".join(words)
    return None


def pick(choices: Callable[[str], Sequence[str]]) -> Rewrite:
    """Replace a word by any of its choices."""

    def rewrite(word: str, draws: Draws) -> str | None:
        found = choices(word)
        return draws.choice(found) if found else None

    return rewrite
