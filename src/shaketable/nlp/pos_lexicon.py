"""Parts of speech of English words: lists of function words, a lexicon, endings.

Each part of speech of a word has a cost, set by hand, from 0 (expected) to 6 (very unlikely). `tagger` finds the
cheapest sequence for a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from shaketable.nlp.inflection import find_lemmas
from shaketable.nlp.irregular_forms import (
    ADJECTIVES,
    ADVERBS,
    LIKELY_ADVERBS,
    MOSTLY_NOUNS,
    REGULAR_VERBS,
    build_irregular_degrees,
    build_irregular_plurals,
    build_irregular_verb_forms,
    list_irregular_verbs,
)
from shaketable.nlp.pos_context import ADJECTIVE, ADVERB, NOUN, VERB, build_pos_lexicon
from shaketable.nlp.words import word_set

Costs = tuple[tuple[str, float], ...]
"""The possible parts of speech of a word, with their costs."""

UNIVERSAL_TAGS = {
    "DT": "DET", "PD": "DET", "PP": "PRON", "PO": "PRON", "PS": "PRON", "DP": "PRON", "WP": "PRON", "EX": "PRON",
    "IN": "ADP",
    "SC": "SCONJ", "CC": "CCONJ", "MD": "AUX", "BE": "AUX", "HV": "AUX", "DO": "AUX", "VB": "VERB", "VZ": "VERB",
    "VD": "VERB", "VN": "VERB", "VG": "VERB", "NN": "NOUN", "NS": "NOUN", "NP": "PROPN", "JJ": "ADJ", "RB": "ADV",
    "WR": "ADV", "CD": "NUM", "TO": "PART", "NO": "PART", "GE": "PART", "PC": "PUNCT", "PE": "PUNCT", "SY": "SYM",
    "UH": "INTJ", "XX": "X",
}  # fmt: skip
"""Our parts of speech -> universal ones. Ours distinguish forms of verbs, subjects (PP), objects (PO) and possessives
(PS), and "this" with a noun (DT) and without (DP)."""

CLOSED_CLASS_WORDS = {
    "DT": "a an the every another",
    "DT DP.5": "this these those each either neither",
    "DT DP1.5": "some any all both enough",
    "DT UH3": "no",
    "PD1.5 JJ": "such",
    "PP": "i he she we they",
    "PO": "me him them us myself yourself himself herself itself ourselves yourselves themselves",
    "PP PO.5": "it you",
    "PP.7 PO.7": """someone somebody something anyone anybody anything everyone everybody everything nobody nothing none
                    one's others oneself theirs ours yours hers mine""",
    "PS": "my your its our their whose",
    "PS PO1.5": "his",
    "PS PO.7": "her",
    "WP": "who whom",
    "WP DT.5": "what which whatever whichever",
    "WP1 SC1 DT1.5 DP1.5 RB5": "that",
    "EX RB.5": "there",
    "IN": """of at by from with without into onto upon among amongst against toward towards throughout beside despite
             via per amid including regarding concerning beneath underneath alongside versus unlike beyond""",
    "IN RB1.5": "in on for about above across along around behind below between inside near outside over past "
    "through under within during off out up down",
    "IN SC1": "after before since until till",
    "IN.5 SC1 RB1.5": "as",
    "IN SC1.5": "than",
    "IN VB2": "like",
    "IN3 RB": "forward",
    "IN1 VN1.5": "following",
    "IN VN1 VD2": "given",
    "TO IN1.2": "to",
    "SC": "if because although though unless whereas whether lest while whilst",
    "SC1 RB CC1": "so",
    "WR": "how why when where wherever whenever",
    "CC": "and or but nor & plus",
    "CC1.5 RB": "yet",
    "MD": "can could might must shall should will would 'll ’ll wo ca ought cannot",
    "MD NP3": "may",
    "BE": "am is are was were be been being 're ’re 'm ’m ai",
    "HV": "have has had having 've ’ve",
    "DO": "do does did doing",
    "VN DO4": "done",
    "GE BE.5": "'s ’s",
    "GE": "' ’",
    "MD.5 HV.5": "'d ’d",
    "NO": "not n't n’t",
    "CD": """two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
             eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion
             trillion""",
    "CD PP2.5": "one",
    "NS": "ones",
    "JJ DP2 RB2": "many few several much",
    "JJ.5 RB.5": "more most less least",
    "JJ": "other own same certain various first last next former latter",
    "JJ RB1.5 DP2": "little",
    "JJ RB1": "only early long far hard fast high low late deep close straight right wrong well-known",
    "RB.5 JJ": "second third",
    "RB": "not very too also never always ever just even still already again often once twice here now then",
    "RB JJ2": "well back",
    "UH": "yes oh hello hi hey wow thanks please okay ok yeah ah alas ouch hurray",
    "NP": """january february april june july august september october november december monday tuesday wednesday
             thursday friday saturday sunday""",
    "NP.5 VB1.5 NN2": "march",
    "NN": "today yesterday tomorrow tonight",
    "SY": "$ £ € ¥ % = + < > ~ ^ | # * × ° § ©",
    "PC": ", ; : - -- – — ( ) [ ] { } \" “ ” ‘ `` '' / \\ _ • … ... .. « »",
    "PE": ". ! ?",
}
"""The parts of speech of function words and marks, with a cost if it is not 0."""

_SUFFIX_PARTS = {
    "RB JJ2.5 NN3": "ly",
    "NN": "tion sion ness ity ship hood ism logy ency ancy cracy itis osis emia graphy",
    "NN VB4": "ment ance ence ture",
    "NN JJ3": "ist",
    "JJ": "ious eous less ible ical ional esque ular some like ese",
    "JJ NN4": "ous able",
    "JJ NN3": "ful",
    "JJ NN2": "ial ative",
    "JJ NN1.5": "ive ic",
    "JJ VB2 NN2": "ish",
    "JJ NN1": "ary al",
    "JJ.5 NN": "ory ant",
    "JJ NN.5": "iac",
    "NN JJ.7": "ar",
    "JJ.5 NN.5 VB4": "ent",
    "VB NN3": "ize",
    "VB NN.5": "ise",
    "VB": "ify",
    "VB.5 JJ1 NN.7": "ate",
    "RB JJ": "ward",
    "RB": "wards wise",
    "CD": "teen",
    "NN JJ1": "ian",
}
"""The parts of speech of unknown words by ending; the longest matching ending applies."""

NATIONALITY_WORDS = word_set(
    """
    american british english french german italian spanish russian chinese japanese korean indian african asian european
    greek roman irish scottish welsh dutch swiss swedish danish norwegian polish turkish arabic jewish islamic christian
    catholic canadian australian mexican brazilian egyptian persian hebrew latin soviet czech hungarian portuguese thai
    vietnamese victorian ukrainian israeli iraqi iranian cuban caribbean mediterranean atlantic
    """
)


ACRONYM_NOUNS = word_set(
    "dna rna mrna pdf tv hiv aids cpu gpu gps usb cd dvd pc id url faq ceo gdp bmi ph iq diy api html led rn"
)
"""Acronyms of common nouns."""


def parse_costs(text: str) -> Costs:
    """Parse costs such as "NN VB1.5".

    >>> parse_costs("NN VB1.5")
    (('NN', 0.0), ('VB', 1.5))
    """
    return tuple((item[:2], float(item[2:] or 0)) for item in text.split())


@cache
def build_closed_class_costs() -> Mapping[str, Costs]:
    """Return function word or mark -> its parts of speech."""
    return {word: parse_costs(parts) for parts, words in reversed(CLOSED_CLASS_WORDS.items()) for word in words.split()}


@cache
def build_suffix_costs() -> Mapping[str, Costs]:
    """Return ending -> the parts of speech of unknown words with it."""
    return {ending: parse_costs(parts) for parts, endings in _SUFFIX_PARTS.items() for ending in endings.split()}


@cache
def build_vocabulary_costs() -> Mapping[str, Mapping[str, float]]:
    """Return base form -> its parts of speech with costs, from the thesaurus and our own lists."""
    found: dict[str, dict[str, float]] = {}
    codes = {NOUN: "NN", VERB: "VB", ADJECTIVE: "JJ", ADVERB: "RB"}
    for word, parts in build_pos_lexicon().items():
        for part in sorted(parts):  # the order decides ties
            code = (
                "NS" if part == NOUN and word not in build_irregular_plurals() and looks_plural(word) else codes[part]
            )
            found.setdefault(word, {})[code] = 0.0
    for code, words in (
        ("VB", REGULAR_VERBS | list_irregular_verbs()),
        ("JJ", ADJECTIVES),
        ("RB", ADVERBS),
        ("NN", MOSTLY_NOUNS),
    ):
        for word in words:
            known = found.setdefault(word, {})
            known[code] = 0.0
    for word, known in found.items():
        if word in MOSTLY_NOUNS:
            known |= {code: 1.0 for code in known if code != "NN"} | ({"NN": 0.0})
        elif word in list_irregular_verbs() and "NN" in known:
            known["NN"] = 1.0
        if word in LIKELY_ADVERBS:
            known |= {code: 2.5 for code in known if code != "RB"} | {"RB": 0.0}
        elif "RB" in known and len(known) > 1 and not word.endswith("ly"):
            known["RB"] = 0.7
        if word in REGULAR_VERBS and "NN" not in known and "JJ" not in known:
            known["NN"] = 2.0
        if (
            word in ADJECTIVES
            and "VB" in known
            and word not in ("clean", "clear", "dry", "open", "separate", "complete")
        ):
            known["VB"] = 1.5
    return found


def looks_plural(word: str) -> bool:
    """Return True if the word ends like a plural noun."""
    return len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is"))


def find_pos_costs(word: str) -> Costs:
    """Return the possible parts of speech of a lower-case word in any context.

    >>> find_pos_costs("the"), find_pos_costs("quickly"), find_pos_costs("1,200")
    ((('DT', 0.0),), (('RB', 0.0),), (('CD', 0.0),))
    """
    if known := build_closed_class_costs().get(word):
        return known
    if not word[0].isalnum() and not any(map(str.isalnum, word)):
        return (("PC", 0.0),) if word.isascii() else (("SY", 0.0), ("PC", 1.0))
    if word[0].isdigit() or (word[0] in ".+-'’" and any(map(str.isdigit, word))):
        return _find_numeral_costs(word)
    found = dict(build_vocabulary_costs().get(word, {}))
    for part, cost in (*_find_irregular_costs(word), *_find_inflected_costs(word)):
        found[part] = min(cost, found.get(part, cost))
    if found:
        return tuple(found.items())
    return _guess_by_suffix(word)


def _find_numeral_costs(word: str) -> Costs:
    if word.endswith(("st", "nd", "rd", "th")):
        return (("JJ", 0.0), ("NN", 1.5))
    if word.endswith("s") and word[-2:-1].isdigit():
        return (("NS", 0.0), ("CD", 1.0))
    return (("CD", 0.0),)


def _find_irregular_costs(word: str) -> list[tuple[str, float]]:
    """Return the costs of an irregular form."""
    found: list[tuple[str, float]] = []
    if form := build_irregular_verb_forms().get(word):
        kinds = {"past": ["VD"], "participle": ["VN"], "both": ["VD", "VN"]}[form[1]]
        found += [(kind, 0.0) for kind in kinds]
        if word in ("left", "found", "felt", "lay", "saw", "ground", "bore", "wound"):
            found += [("NN" if word not in ("left", "found", "lay") else "JJ", 2.0)]
    if singular := build_irregular_plurals().get(word):
        alike = singular == word and word.endswith("s") and word not in PLURAL_ONLY_NOUNS
        found.append(("NN" if alike else "NS", 0.8 if word == "means" else 0.0))
    if word in build_irregular_degrees()["adj"]:
        found.append(("JJ", 0.3))
    if word in build_irregular_degrees()["adv"]:
        found.append(("RB", 0.3))
    return found


PLURAL_ONLY_NOUNS = word_set("clothes trousers jeans scissors glasses thanks congratulations headquarters")


def _find_inflected_costs(word: str) -> list[tuple[str, float]]:
    """Return the costs of a regular form of a known word."""
    known = build_vocabulary_costs()
    found: list[tuple[str, float]] = []
    for lemma, ending in find_lemmas(word) if len(word) > 3 else ():
        parts = known.get(lemma, {})
        if ending == "s":
            if "NN" in parts:
                found.append(("NS", parts["NN"]))
            if "VB" in parts:
                found.append(("VZ", parts["VB"]))
        elif "VB" in parts:
            found += (
                [("VD", 0.5), ("VN", 0.5), ("JJ", 3.0)] if ending == "ed" else [("VG", 0.0), ("NN", 1.7), ("JJ", 3.0)]
            )
    base = find_degree_base(word)
    if base:
        found.append(("JJ", 0.2))
        if "RB" in known[base]:
            found.append(("RB", 1.5))
    if word.endswith("ly") and len(word) > 4 and not any(part == "RB" for part, _ in found):
        stems = (word[:-2], word[:-2] + "le", word[:-3] + "y", word[:-2] + "l", word[:-4])
        if any("JJ" in known.get(stem, ()) for stem in stems):
            found.append(("RB", 0.0))
    return found


def find_degree_base(word: str) -> str:
    """Return the base of a regular comparative or superlative, or "".

    >>> find_degree_base("bigger"), find_degree_base("easiest"), find_degree_base("water")
    ('big', 'easy', '')
    """
    for ending in ("er", "est"):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            stem = word[: -len(ending)]
            for base in (
                stem,
                stem + "e",
                stem[:-1] + "y" if stem[-1] == "i" else "",
                stem[:-1] if stem[-1] == stem[-2] else "",
            ):
                if (
                    base
                    and base != "up"
                    and {"JJ", "RB"} & build_vocabulary_costs().get(base, {}).keys()
                    and "NN" not in build_vocabulary_costs().get(word, {})
                ):
                    return base
    return ""


def _guess_by_suffix(word: str) -> Costs:
    """Return the costs of an unknown word by its ending."""
    if len(word) > 4:
        if word.endswith("ing"):
            return (("VG", 0.3), ("NN", 1.0), ("JJ", 2.0))
        if word.endswith("ed") and not word.endswith("eed"):
            return (("VN", 0.3), ("VD", 0.3), ("JJ", 1.2), ("NN", 3.0))
        for size in range(6, 1, -1):
            if found := build_suffix_costs().get(word[-size:]):
                return found
    if looks_plural(word):
        return (("NS", 0.0), ("VZ", 2.0), ("NN", 2.0))
    return (("NN", 0.0), ("VB", 2.5), ("JJ", 2.5))


def find_capitalised_costs(word: str) -> Costs:
    """Return the parts of speech of a capitalised word inside a sentence."""
    lower = word.lower()
    if lower == "i" or (lower in build_closed_class_costs() and (not word.isupper() or len(word) == 1)):
        return (
            build_closed_class_costs()[lower]
            if lower in build_closed_class_costs() and lower not in ("may", "march")
            else (("NP", 0.0), ("MD", 2.0))
        )
    if lower in NATIONALITY_WORDS:
        return (("JJ", 0.0), ("NP", 0.7))
    if lower in ACRONYM_NOUNS and word.isupper():
        return (("NN", 0.0), ("NP", 1.0))
    if word[:-1].isupper() and word.endswith("s") and len(word) > 2:
        return (("NS", 0.0), ("NP", 0.5))
    usual = tuple((part, cost + 2.5) for part, cost in find_pos_costs(lower) if part != "NP")
    return (("NP", 0.0), *usual)


def find_sentence_start_costs(word: str) -> Costs:
    """Return the parts of speech of a capitalised word at the start of a sentence."""
    lower = word.lower()
    if lower in build_closed_class_costs():
        return build_closed_class_costs()[lower]
    if lower in NATIONALITY_WORDS:
        return (("JJ", 0.0), ("NP", 0.7))
    if lower in ACRONYM_NOUNS and word.isupper():
        return (("NN", 0.0), ("NP", 1.0))
    if word.isupper() and len(word) > 1:
        return (("NP", 0.0), *((part, cost + 1.5) for part, cost in find_pos_costs(lower) if part != "NP"))
    known = lower in build_vocabulary_costs() or _find_irregular_costs(lower) or _find_inflected_costs(lower)
    away = 2.5 if known else 0.3
    return (*find_pos_costs(lower), ("NP", away))
