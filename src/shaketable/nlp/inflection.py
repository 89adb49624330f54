"""Regular English endings: functions that remove and add them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from shaketable.nlp.words import word_set

VOWELS = frozenset("aeiou")

IRREGULAR_VERBS = word_set(
    """
    be have do go say make get give take come see know think find tell become leave feel bring begin keep hold
    write stand hear mean meet run pay sit speak lie lead read grow lose fall send build understand draw break
    spend cut rise drive buy wear choose put set let hit hurt cost shut spread split burst cast quit bet rid
    shed slit thrust eat drink sing swim ring sink shrink spring fly throw blow show sleep sweep weep creep
    teach catch fight seek sell shake steal strike swear tear wake win wind hide ride bite forget forgive forbid
    freeze light shoot shine sew sow saw spin stick sting stink swing bind breed bleed feed flee grind hang
    kneel lay lend bend deal dig dream lean learn leap burn smell spell spill spoil slide sling swell tread
    weave withdraw undergo undertake overcome arise awake bear beat foresee mistake mislead outgrow overtake
    rebuild redo remake repay retell rewrite undo uphold withhold withstand partake behold cling strive
    """
)
"""Verbs whose past does not end in -ed."""

IRREGULAR_NOUNS = word_set(
    """
    man woman child person foot tooth goose mouse louse ox people police cattle staff crew information advice
    news furniture equipment luggage baggage money cash music software hardware research evidence knowledge
    homework housework traffic weather rain snow water milk rice bread butter sugar salt sand wood gold silver
    iron oil petrol gas electricity power help fun luck health wealth safety anger courage patience happiness
    sadness sheep deer fish salmon trout aircraft spacecraft series species means offspring knife wife life leaf
    loaf half calf thief wolf shelf self elf crisis thesis analysis basis hypothesis oasis diagnosis criterion
    phenomenon bacterium curriculum datum medium stimulus fungus nucleus cactus alumnus index appendix matrix
    vertex physics mathematics economics politics athletics gymnastics
    """
)
"""Nouns whose plural does not end in -s, or that have no plural."""
IRREGULAR_NOUN_ENDINGS = ("child", "man", "foot", "tooth", "wife", "knife", "shelf", "wolf", "folk")
"""Endings of compounds of irregular nouns: "schoolchild", "postman"."""
REGULAR_NOUNS = word_set("human german roman shaman talisman ottoman caiman walkman")
"""Nouns with such an ending and a regular plural."""

DOUBLING_VERBS = word_set(
    """
    abet abhor acquit admit allot annul begin commit compel concur confer control defer deter dispel emit equip
    excel expel forget impel incur infer inter occur omit outwit patrol permit prefer propel rebel rebut recur
    refer regret remit repel submit transfer transmit unplug unwrap upset
    """
)
"""Longer verbs whose last consonant doubles, because the last syllable is stressed."""


def find_lemmas(word: str) -> Iterator[tuple[str, str]]:
    """Yield the lemmas that give this word with a regular ending: (lemma, ending), likely ones first.

    >>> list(find_lemmas("cities")), list(find_lemmas("stopped"))
    ([('city', 's'), ('citie', 's')], [('stop', 'ed'), ('stopp', 'ed'), ('stoppe', 'ed')])
    """
    seen: set[str] = set()
    for ending in ("s", "ed", "ing"):
        for lemma in _strip_ending(word, ending):
            if len(lemma) > 2 and lemma not in seen and add_ending(lemma, ending) == word:
                seen.add(lemma)
                yield lemma, ending


def _strip_ending(word: str, ending: str) -> tuple[str, ...]:
    if ending == "s" and word.endswith("s") and not word.endswith("ss"):
        return (word[:-3] + "y" if word.endswith("ies") else "", word[:-2] if word.endswith("es") else "", word[:-1])
    if ending == "ed" and word.endswith("ed"):
        stem = word[:-2]
        return (
            stem[:-1] if stem[-2:-1] == stem[-1:] else "",
            stem[:-1] + "y" if stem.endswith("i") else "",
            stem,
            stem + "e",
        )
    if ending == "ing" and word.endswith("ing"):
        stem = word[:-3]
        return (
            stem[:-1] if stem[-2:-1] == stem[-1:] else "",
            stem[:-1] + "ie" if stem.endswith("y") else "",
            stem,
            stem + "e",
        )
    return ()


def add_ending(lemma: str, ending: str) -> str | None:
    """Return the lemma with a regular ending, or None if that is not English.

    >>> [add_ending("stop", "ing"), add_ending("carry", "ed"), add_ending("box", "s"), add_ending("begin", "ed")]
    ['stopping', 'carried', 'boxes', None]
    """
    if len(lemma) < 2 or not (lemma.isascii() and lemma.isalpha()):
        return None
    consonant_y = lemma[-1] == "y" and lemma[-2] not in VOWELS
    if ending == "s":
        plural = lemma.endswith("s") and not lemma.endswith(("ss", "us", "is", "as", "os"))  # "possessions"
        odd = lemma in IRREGULAR_NOUNS or (lemma.endswith(IRREGULAR_NOUN_ENDINGS) and lemma not in REGULAR_NOUNS)
        if plural or odd or (lemma.endswith(("ness", "ity")) and len(lemma) > 8):
            return None
        if consonant_y:
            return lemma[:-1] + "ies"
        return lemma + ("es" if lemma.endswith(("s", "x", "z", "ch", "sh")) else "s")
    if ending == "ed":
        if lemma in IRREGULAR_VERBS:
            return None
        if lemma[-1] == "e":
            return lemma + "d"
        return lemma[:-1] + "ied" if consonant_y else _double_consonant(lemma) + "ed"
    if lemma.endswith("ie"):
        return lemma[:-2] + "ying"
    if lemma[-1] == "e" and not lemma.endswith(("ee", "oe", "ye")):
        return lemma[:-1] + "ing"
    return _double_consonant(lemma) + "ing"


def _double_consonant(verb: str) -> str:
    """Double the last consonant after one short stressed vowel: stop -> stopp, open -> open."""
    closed = len(verb) > 2 and verb[-1] not in "aeiouwxy" and verb[-2] in VOWELS and verb[-3] not in VOWELS
    syllables = sum(a in "aeiouy" and b not in "aeiouy" for a, b in pairwise(verb))
    return verb + verb[-1] if closed and (syllables == 1 or verb in DOUBLING_VERBS) else verb
