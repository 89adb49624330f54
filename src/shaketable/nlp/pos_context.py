"""Parts of speech of a word in a query, from the function words around it.

Queries are short and often not sentences, so the neighbours only narrow the parts of speech that a lexicon allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from shaketable.nlp.inflection import find_lemmas
from shaketable.nlp.stopwords import ENGLISH_STOPWORDS
from shaketable.nlp.thesaurus import read_bundled_thesaurus
from shaketable.nlp.words import NLTK_STOPWORDS, word_set

NOUN, VERB, ADJECTIVE, ADVERB = "noun", "verb", "adj", "adv"
ANY_PART = frozenset((NOUN, VERB, ADJECTIVE, ADVERB))

DETERMINERS = word_set("a an the my your his her its our their this these those each every another both")
PREPOSITIONS = word_set(
    """
    of in on at by for from with without about between into onto through during before after above below under over
    against among around across along behind beyond near via within per like as
    """
)
BE_FORMS = word_set("am is are was were be been being")
DO_FORMS = word_set("do does did")
MODALS = word_set("can could may might must shall should will would")
SUBJECT_PRONOUNS = word_set("i you we they he she it who")
OBJECT_PRONOUNS = word_set("me us him them")
FUNCTION_WORDS = ENGLISH_STOPWORDS | NLTK_STOPWORDS | MODALS | OBJECT_PRONOUNS
EXTRA_VERBS = word_set("mean cost cause cook drink eat live die work weigh sound taste look come go")
"""Verbs that the thesaurus lacks, or has only as another part of speech."""


def find_pos_in_context(words: Sequence[str], position: int) -> frozenset[str]:
    """Return the parts of speech that a lower-case word can have, given its neighbours.

    >>> sorted(find_pos_in_context("how to find a job".split(), 2))
    ['adv', 'verb']
    >>> sorted(find_pos_in_context("the find of the year".split(), 1))
    ['noun']
    >>> sorted(find_pos_in_context("find".split(), 0))
    ['adj', 'adv', 'noun', 'verb']
    """
    left = words[position - 1] if position else ""
    right = words[position + 1] if position + 1 < len(words) else ""
    plain = not words[position].endswith(("ing", "ed"))  # these verb forms also occur as nouns and adjectives
    nominal = ANY_PART - {VERB} if plain else ANY_PART
    if left in DETERMINERS:
        return nominal if right and right not in FUNCTION_WORDS else nominal - {ADJECTIVE, ADVERB}
    if left in MODALS | SUBJECT_PRONOUNS or left == "to" or right in OBJECT_PRONOUNS:
        return frozenset((VERB, ADVERB))
    if left in PREPOSITIONS or right == "of":
        return nominal
    if left == "very":
        return frozenset((ADJECTIVE, ADVERB))
    if (asked := find_asked_verb(words)) is not None and position <= asked:
        return frozenset((VERB,)) if position == asked else nominal
    if right in DETERMINERS:
        return frozenset((VERB, ADVERB))
    return nominal if left in BE_FORMS else ANY_PART


def find_asked_verb(words: Sequence[str]) -> int | None:
    """Return the index of the main verb after "do", "can", ...: "how do spiders [change] at night"; None if unknown.

    >>> find_asked_verb("how do young spiders change at night".split()), find_asked_verb("spiders at night".split())
    (4, None)
    """
    start = next((i for i, word in enumerate(words) if word in DO_FORMS | MODALS), None)
    if start is None:
        return None
    found = None
    for i in range(start + 2, len(words)):
        left, word = words[i - 1], words[i]
        verb = VERB in build_pos_lexicon().get(word, ()) and left not in DETERMINERS | PREPOSITIONS
        if verb and left not in FUNCTION_WORDS:
            found = i
        elif found is not None and word in FUNCTION_WORDS:
            return found
    return found


@lru_cache(maxsize=1)
def build_pos_lexicon() -> Mapping[str, frozenset[str]]:
    """Return word -> its parts of speech in the bundled thesaurus, on either side of a group."""
    found: dict[str, set[str]] = {}
    for word, by_part in read_bundled_thesaurus().items():
        for part, others in by_part.items():
            for known in (word, *others):
                found.setdefault(known, set()).add(part)
    for word in EXTRA_VERBS:
        found.setdefault(word, set()).add(VERB)
    return {word: frozenset(parts) for word, parts in found.items()}


def lookup_pos(word: str) -> frozenset[str]:
    """Return the parts of speech of a word in the lexicon, or those of its lemma; empty if unknown.

    >>> sorted(lookup_pos("find")), sorted(lookup_pos("begins")), sorted(lookup_pos("xyzzy"))
    (['noun', 'verb'], ['verb'], [])
    """
    endings = {"s": {NOUN, VERB}, "ed": {VERB}, "ing": {VERB}}
    found = set(build_pos_lexicon().get(word, ()))
    for lemma, ending in find_lemmas(word):
        found |= build_pos_lexicon().get(lemma, frozenset()) & endings[ending]
    return frozenset(found)
