"""Functions that change one word of a text.

The text is split at white space and joined with single spaces. Only the part of a token inside its punctuation
changes: "theraderm" in "(theraderm?".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from shaketable.core.seeding import ItemRandom
from shaketable.nlp.analyzer import Memo
from shaketable.nlp.stopwords import ENGLISH_STOPWORDS
from shaketable.nlp.words import NLTK_STOPWORDS, TOKEN_PARTS, TokenParts

Rewrite: TypeAlias = Callable[[str, ItemRandom], str | None]
"""A function from a word and a random number generator to a new word, or None if it does not apply."""
RewriteInContext: TypeAlias = Callable[[Sequence[str], int, str, ItemRandom], str | None]
"""A function from the tokens, a position, the word there and a random number generator to a new word, or None."""


def _split_non_stopword(token: str) -> TokenParts | None:
    found = TOKEN_PARTS[token]
    return found if found and len(found.core) > 1 and found.core.lower() not in NLTK_STOPWORDS else None


def _split_content_word(token: str) -> TokenParts | None:
    found = _split_non_stopword(token)
    return found if found and found.core.lower() not in ENGLISH_STOPWORDS else None


LATIN_WORDS = TOKEN_PARTS
"""Eligible words: any word in Latin letters."""
NON_STOPWORDS: Memo[TokenParts | None] = Memo(_split_non_stopword)
"""Eligible words: two or more letters and not in NLTK's stop-word list."""
CONTENT_WORDS: Memo[TokenParts | None] = Memo(_split_content_word)
"""Eligible words: not in any stop-word list ("many" is only in ours)."""


def change_one_word(
    text: str, rng: ItemRandom, rewrite: Rewrite, eligible_words: Memo[TokenParts | None] = NON_STOPWORDS
) -> str | None:
    """Rewrite one random word to which `rewrite` applies; return None if there is none."""
    return change_one_word_in_context(text, rng, lambda words, place, core, rng: rewrite(core, rng), eligible_words)


def change_one_word_in_context(
    text: str, rng: ItemRandom, rewrite: RewriteInContext, eligible_words: Memo[TokenParts | None] = NON_STOPWORDS
) -> str | None:
    """Rewrite one word as `change_one_word` does, with a `rewrite` that also receives the context."""
    words = text.split()
    places = [i for i, word in enumerate(words) if eligible_words[word]]
    while places:
        place = places.pop(rng.randbelow(len(places)))
        found = eligible_words[words[place]]
        assert found is not None
        head, core, tail = found
        changed = rewrite(words, place, core, rng)
        if changed is not None and changed != core:
            words[place] = f"{head}{changed}{tail}"
            return " ".join(words)
    return None
