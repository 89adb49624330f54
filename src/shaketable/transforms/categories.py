"""The six categories of query variation (paper 004, Table 2) and a classifier for pairs of queries.

Four categories preserve the meaning of the query; two change it within one information need.
"""

from __future__ import annotations

from collections import Counter

from shaketable.nlp.edit_distance import damerau_levenshtein
from shaketable.transforms.content_words import (
    SharedContent,
    is_known_word,
    is_near_spelling,
    split_words,
    stem_content_word,
)
from shaketable.transforms.questions import is_question

MISSPELLING = "misspelling"
NATURALITY = "naturality"
ORDERING = "ordering"
PARAPHRASING = "paraphrasing"
GENERALISATION = "generalisation-specialisation"
ASPECT = "aspect-change"

CATEGORIES = (MISSPELLING, NATURALITY, ORDERING, PARAPHRASING, GENERALISATION, ASPECT)
MEANING_PRESERVING = (MISSPELLING, NATURALITY, ORDERING, PARAPHRASING)
"""The categories that preserve the meaning."""
SCRIPT = "script"
MIXED_LANGUAGES = "mixed-languages"
TRANSLATION = "translation"
LANGUAGE_CATEGORIES = (SCRIPT, MIXED_LANGUAGES, TRANSLATION)
"""The categories of changes in other languages: the same words in other characters, with a word of another language,
and the same query in another language. They keep the meaning, and are not part of paper 004.
"""
DOCUMENT = "document"
"""The category of document transforms. It is not a category of query variation."""


def classify_variation(original: str, variant: str) -> str:
    """Return the category of variation between two queries, or "" if they are equal.

    >>> classify_variation("carotid cavernous fistula treatment", "treatment carotid cavernous fistula")
    'ordering'
    >>> classify_variation("how does zinc relate to wilson's disease", "zinc wilson's disease")
    'naturality'
    >>> classify_variation("raspberry pi", "raspeberry pi")
    'misspelling'
    >>> classify_variation("cures for a bald spot", "remedies for a bald spot")
    'paraphrasing'

    A pair may show several categories (paper 004 gave 56 of 550 pairs more than one). This function returns the
    category that explains most of the difference, judged by the words alone.
    """
    before, after = split_words(original), split_words(variant)
    if before == after:
        return "" if original.split() == variant.split() else NATURALITY
    if Counter(before) == Counter(after):
        return ORDERING
    if "".join(before) == "".join(after) or _differ_by_typos(before, after):  # the first: a space too many or too few
        return MISSPELLING
    shared = SharedContent(original, variant)
    if not shared.lost_words and not shared.new_words:
        return _classify_same_content(before, after)
    if _is_keyword_rewrite(original, variant, shared):
        return NATURALITY
    if not shared.unreplaced_words and not shared.unrelated_words:
        return PARAPHRASING
    if (
        not shared.unreplaced_words
        or not shared.unrelated_words
        or abs(len(shared.unreplaced_words) - len(shared.unrelated_words)) > 1
    ):
        return GENERALISATION
    return ASPECT


def _classify_same_content(before: list[str], after: list[str]) -> str:
    """Return the category of two queries with the same content words."""
    if Counter(word for word in before if not stem_content_word(word)) != Counter(
        word for word in after if not stem_content_word(word)
    ):
        return NATURALITY
    same = Counter(stem_content_word(word) for word in before) == Counter(stem_content_word(word) for word in after)
    forms = Counter(before) != Counter(after)
    return PARAPHRASING if forms or not same else ORDERING


def _differ_by_typos(before: list[str], after: list[str]) -> bool:
    """Return True if each removed word is a typo of an added word."""
    gone, come = (
        list((Counter(before) - Counter(after)).elements()),
        list((Counter(after) - Counter(before)).elements()),
    )
    return len(gone) == len(come) and all(any(_is_typo(old, new) for new in come) for old in gone)


def _is_typo(old: str, new: str) -> bool:
    forms = stem_content_word(old) and stem_content_word(old) == stem_content_word(new)
    near = is_near_spelling(old, new) or (len(old) > 1 and damerau_levenshtein(old, new, 1) == 1)
    return near and not forms and not (is_known_word(old) and is_known_word(new))


def _is_keyword_rewrite(original: str, variant: str, shared: SharedContent) -> bool:
    """Return True if one query is a question and the other holds most of its keywords and no other content."""
    phrased, plain = is_question(original), is_question(variant)
    if phrased == plain:
        return False
    lost, kept = (shared.lost_words, shared.new_words) if phrased else (shared.new_words, shared.lost_words)
    whole = shared.original_words if phrased else shared.variant_words
    return not kept and len(lost) <= max(1, len(whole) // 3)
