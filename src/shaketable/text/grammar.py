"""Which part of speech a word has where it stands: what the function words around it tell, and no more.

Queries are short and many are no sentences, so this narrows what a lexicon allows; where the neighbours say nothing,
all of it stays possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from shaketable.text.inflection import lemmas
from shaketable.text.stopwords import ENGLISH
from shaketable.text.thesaurus import bundled
from shaketable.text.words import NLTK, word_set

NOUN, VERB, ADJECTIVE, ADVERB = "noun", "verb", "adj", "adv"
ANY = frozenset((NOUN, VERB, ADJECTIVE, ADVERB))

DETERMINERS = word_set("a an the my your his her its our their this these those each every another both")
PREPOSITIONS = word_set(
    """
    of in on at by for from with without about between into onto through during before after above below under over
    against among around across along behind beyond near via within per like as
    """
)
BEING = word_set("am is are was were be been being")
DOING = word_set("do does did")
MODALS = word_set("can could may might must shall should will would")
SUBJECTS = word_set("i you we they he she it who")
OBJECTS = word_set("me us him them")
FUNCTION = ENGLISH | NLTK | MODALS | OBJECTS
ALSO_VERBS = word_set("mean cost cause cook drink eat live die work weigh sound taste look come go")
"""Verbs of which the thesaurus knows another part of speech only, or nothing."""


def parts_at(words: Sequence[str], place: int) -> frozenset[str]:
    """The parts of speech that a lower-case word can have at its place, as far as its neighbours tell.

    >>> sorted(parts_at("how to find a job".split(), 2)), sorted(parts_at("the find of the year".split(), 1))
    (['adv', 'verb'], ['noun'])
    >>> sorted(parts_at("find".split(), 0))
    ['adj', 'adv', 'noun', 'verb']
    """
    left = words[place - 1] if place else ""
    right = words[place + 1] if place + 1 < len(words) else ""
    plain = not words[place].endswith(("ing", "ed"))  # such forms of a verb stand where nouns and adjectives do
    nominal = ANY - {VERB} if plain else ANY
    if left in DETERMINERS:
        return nominal if right and right not in FUNCTION else nominal - {ADJECTIVE, ADVERB}
    if left in MODALS | SUBJECTS or left == "to" or right in OBJECTS:
        return frozenset((VERB, ADVERB))
    if left in PREPOSITIONS or right == "of":
        return nominal
    if left == "very":
        return frozenset((ADJECTIVE, ADVERB))
    if (asked := asked_verb(words)) is not None and place <= asked:
        return frozenset((VERB,)) if place == asked else nominal
    if right in DETERMINERS:
        return frozenset((VERB, ADVERB))
    return nominal if left in BEING else ANY


def asked_verb(words: Sequence[str]) -> int | None:
    """Where the verb is that "do", "can" and their like ask for: "how do spiders [change] at night"; None if not known.

    >>> asked_verb("how do young spiders change at night".split()), asked_verb("spiders at night".split())
    (4, None)
    """
    start = next((i for i, word in enumerate(words) if word in DOING | MODALS), None)
    if start is None:
        return None
    found = None
    for i in range(start + 2, len(words)):
        left, word = words[i - 1], words[i]
        verb = VERB in lexicon().get(word, ()) and left not in DETERMINERS | PREPOSITIONS
        if verb and left not in FUNCTION:
            found = i
        elif found is not None and word in FUNCTION:
            return found
    return found


@lru_cache(maxsize=1)
def lexicon() -> Mapping[str, frozenset[str]]:
    """word -> the parts of speech under which the bundled thesaurus has it, on either side of a group."""
    found: dict[str, set[str]] = {}
    for word, by_part in bundled().items():
        for part, others in by_part.items():
            for known in (word, *others):
                found.setdefault(known, set()).add(part)
    for word in ALSO_VERBS:
        found.setdefault(word, set()).add(VERB)
    return {word: frozenset(parts) for word, parts in found.items()}


def known_parts(word: str) -> frozenset[str]:
    """The parts of speech of a word as the lexicon has it, or of its lemma by its ending; empty where unknown.

    >>> sorted(known_parts("find")), sorted(known_parts("begins")), sorted(known_parts("xyzzy"))
    (['noun', 'verb'], ['verb'], [])
    """
    endings = {"s": {NOUN, VERB}, "ed": {VERB}, "ing": {VERB}}
    found = set(lexicon().get(word, ()))
    for lemma, ending in lemmas(word):
        found |= lexicon().get(lemma, frozenset()) & endings[ending]
    return frozenset(found)
