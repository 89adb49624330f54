"""Change one word of a text and leave the others alone.

A text is cut at white space and put together again with single spaces, so the words stay and runs of blanks do not. A
word is what stands between the punctuation of a token: in "(theraderm?" only "theraderm" is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from shaketable.core.seeding import ItemRandom
from shaketable.nlp.analyzer import Memo
from shaketable.nlp.stopwords import ENGLISH_STOPWORDS
from shaketable.nlp.words import NLTK_STOPWORDS, TOKEN_PARTS, TokenParts

Rewrite: TypeAlias = Callable[[str, ItemRandom], str | None]
"""A word and a random number generator -> another word, or None where the rewriting does not apply."""
RewriteInContext: TypeAlias = Callable[[Sequence[str], int, str, ItemRandom], str | None]
"""The tokens of a text, the position of one, its word, a random number generator -> another word, or None."""


def _split_non_stopword(token: str) -> TokenParts | None:
    found = TOKEN_PARTS[token]
    return found if found and len(found.core) > 1 and found.core.lower() not in NLTK_STOPWORDS else None


def _split_content_word(token: str) -> TokenParts | None:
    found = _split_non_stopword(token)
    return found if found and found.core.lower() not in ENGLISH_STOPWORDS else None


LATIN_WORDS = TOKEN_PARTS
"""Words that may be changed: any in Latin letters."""
NON_STOPWORDS: Memo[TokenParts | None] = Memo(_split_non_stopword)
"""Words that may be changed: those of two letters and more that are not in NLTK's list of stop-words."""
CONTENT_WORDS: Memo[TokenParts | None] = Memo(_split_content_word)
"""Words that may be changed: those that no list has as a stop-word ("many" is one in ours only)."""


def change_one_word(
    text: str, rng: ItemRandom, rewrite: Rewrite, eligible_words: Memo[TokenParts | None] = NON_STOPWORDS
) -> str | None:
    """Rewrite one word, drawn from those to which the rewriting applies; return None where there is none."""
    return change_one_word_in_context(text, rng, lambda words, place, core, rng: rewrite(core, rng), eligible_words)


def change_one_word_in_context(
    text: str, rng: ItemRandom, rewrite: RewriteInContext, eligible_words: Memo[TokenParts | None] = NON_STOPWORDS
) -> str | None:
    """Rewrite one word as `change_one_word` does, with a rewriting that gets the words around it."""
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
