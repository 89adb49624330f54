"""A lemmatizer of English words with known parts of speech."""

from __future__ import annotations

from collections.abc import Sequence

from shaketable.nlp.inflection import find_lemmas
from shaketable.nlp.irregular_forms import (
    build_irregular_degrees,
    build_irregular_plurals,
    build_irregular_verb_forms,
    list_irregular_verbs,
)
from shaketable.nlp.pos_lexicon import build_vocabulary_costs, find_degree_base, looks_plural

FIXED_LEMMAS = {
    "n't": "not", "n’t": "not", "'ll": "will", "’ll": "will", "'re": "be", "’re": "be", "'m": "be", "’m": "be",
    "'ve": "have", "’ve": "have", "ca": "can", "wo": "will", "am": "be", "is": "be", "are": "be", "was": "be", "were":
    "be",
    "been": "be", "being": "be", "has": "have", "had": "have", "having": "have", "does": "do", "did": "do", "doing":
    "do",
    "done": "do", "me": "I", "i": "I", "him": "he", "them": "they", "us": "we", "ai": "be", "ones": "one", "’s": "'s",
}  # fmt: skip
CLOSED_CLASS_TAGS = frozenset(
    ("DT", "PP", "PO", "PS", "DP", "WP", "EX", "IN", "SC", "CC", "MD", "BE", "HV", "DO", "TO", "NO", "GE", "PD")
)


def lemmatize(word: str, part: str) -> str:
    """Return the base form of a word, given its part of speech.

    >>> lemmatize("Running", "VG"), lemmatize("mice", "NS"), lemmatize("better", "RB"), lemmatize("'s", "BE")
    ('run', 'mouse', 'well', 'be')
    """
    lower = word.lower()
    if part == "NP":
        return word
    if part in CLOSED_CLASS_TAGS:
        if lower in ("'s", "’s") and part == "BE":
            return "be"
        if lower in ("'d", "’d"):
            return "would" if part == "MD" else "have"
        if lower == "her" and part == "PO":
            return "she"
        return FIXED_LEMMAS.get(lower, lower)
    match part:
        case "NS" | "NN":
            if not word[1:].islower() and word[1:].isalpha():  # "DNA", "mRNA", "CDs"
                return word.removesuffix("s") if part == "NS" else word
            return _to_singular(lower) if part == "NS" else lower
        case "VB" | "VZ" | "VD" | "VN" | "VG":
            return _to_base_verb(lower, part)
        case "JJ" | "RB":
            odd = build_irregular_degrees()["adj" if part == "JJ" else "adv"].get(lower)
            return odd or find_degree_base(lower) or lower
    return lower


def _to_singular(word: str) -> str:
    if odd := build_irregular_plurals().get(word):
        return odd
    for end, single in (
        ("men", "man"),
        ("children", "child"),
        ("people", "people"),
        ("feet", "foot"),
        ("teeth", "tooth"),
    ):
        if word.endswith(end):
            return word.removesuffix(end) + single
    return _find_best_lemma(word, "s", "NN", _guess_singular(word) if looks_plural(word) else word)


def _to_base_verb(word: str, part: str) -> str:
    if part != "VB" and (odd := build_irregular_verb_forms().get(word)):
        return odd[0]
    if word in FIXED_LEMMAS:
        return FIXED_LEMMAS[word]
    if part == "VB":
        return word
    if word.endswith("ing") and (base := _find_irregular_base(word)):
        return base
    return _find_best_lemma(word, {"VZ": "s", "VD": "ed", "VN": "ed", "VG": "ing"}[part], "VB", word)


def _find_irregular_base(word: str) -> str:
    """Return the irregular verb of an -ing form, or ""."""
    stem = word[:-3]
    found = [base for base in (stem, stem + "e", stem[:-1], stem[:-1] + "ie") if base in list_irregular_verbs()]
    return found[0] if found else ""


def _find_best_lemma(word: str, ending: str, part: str, otherwise: str) -> str:
    """Return the known lemma that gives the word with this ending, or the likeliest unknown one."""
    found = [lemma for lemma, with_ending in find_lemmas(word) if with_ending == ending]
    known = [lemma for lemma in found if part in build_vocabulary_costs().get(lemma, ())] or [
        lemma for lemma in found if lemma in build_vocabulary_costs()
    ]
    if known:
        return known[0]
    if ending == "s":
        return _guess_singular(word) if found else otherwise
    return _guess_verb_base(word, found) if found else otherwise


def _guess_singular(word: str) -> str:
    """Return the singular of a noun: ponies -> pony, boxes -> box, horses -> horse."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes", "oes")):
        return word[:-2]
    return word[:-1]


def _guess_verb_base(word: str, found: Sequence[str]) -> str:
    """Return the base of an unknown verb, with a silent e if English spelling requires it."""
    stem = word.removesuffix("ing").removesuffix("ed")
    if len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "aeiouylsfz":
        return stem[:-1]
    silent = [lemma for lemma in found if lemma.endswith("e")]
    bare = next((lemma for lemma in found if not lemma.endswith("e")), "")
    if silent and (
        not bare
        or bare.endswith(
            (
                "v",
                "u",
                "z",
                "c",
                "dg",
                "ns",
                "rs",
                "ls",
                "iz",
                "is",
                "at",
                "ut",
                "id",
                "ur",
                "bl",
                "tl",
                "gl",
                "pl",
                "dl",
                "rg",
                "ib",
                "od",
                "os",
                "yz",
                "ok",
            )
        )
    ):
        return silent[0]
    return bare or found[0]
