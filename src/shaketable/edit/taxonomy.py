"""The six kinds of query variation (paper 004, Table 2), and which of them a pair of queries shows.

Four keep what is asked for and change how; two change it within one need.
"""

from __future__ import annotations

from collections import Counter

from shaketable.edit.meaning import Shared, known, misspelled, stem, words
from shaketable.edit.question import is_question
from shaketable.text.distance import damerau_levenshtein

MISSPELLING = "misspelling"
NATURALITY = "naturality"
ORDERING = "ordering"
PARAPHRASING = "paraphrasing"
GENERALISATION = "generalisation-specialisation"
ASPECT = "aspect-change"

CATEGORIES = (MISSPELLING, NATURALITY, ORDERING, PARAPHRASING, GENERALISATION, ASPECT)
KEEPING = (MISSPELLING, NATURALITY, ORDERING, PARAPHRASING)
"""Those that keep the meaning."""
DOCUMENT = "document"
"""The category of edits of documents, which is no kind of query variation."""


def category_of(original: str, variant: str) -> str:
    """The kind of variation that a pair of queries shows; empty where there is none.

    >>> category_of("carotid cavernous fistula treatment", "treatment carotid cavernous fistula")
    'ordering'
    >>> category_of("how does zinc relate to wilson's disease", "zinc wilson's disease")
    'naturality'
    >>> category_of("raspberry pi", "raspeberry pi"), category_of("cures for a bald spot", "remedies for a bald spot")
    ('misspelling', 'paraphrasing')

    A pair may show several (paper 004 gave 56 of 550 pairs more than one); this is the one that explains most of it,
    by the words alone.
    """
    before, after = words(original), words(variant)
    if before == after:
        return "" if original.split() == variant.split() else NATURALITY
    if Counter(before) == Counter(after):
        return ORDERING
    if "".join(before) == "".join(after) or _slips(before, after):  # the first: a space too many or too few
        return MISSPELLING
    shared = Shared(original, variant)
    if not shared.lost and not shared.new:
        return _function_words(before, after)
    if _into_keywords(original, variant, shared):
        return NATURALITY
    if not shared.missing and not shared.foreign:
        return PARAPHRASING
    if not shared.missing or not shared.foreign or abs(len(shared.missing) - len(shared.foreign)) > 1:
        return GENERALISATION
    return ASPECT


def _function_words(before: list[str], after: list[str]) -> str:
    """The content words are the same; do the others differ, or only the order and the forms?"""
    if Counter(word for word in before if not stem(word)) != Counter(word for word in after if not stem(word)):
        return NATURALITY
    same = Counter(stem(word) for word in before) == Counter(stem(word) for word in after)
    forms = Counter(before) != Counter(after)
    return PARAPHRASING if forms or not same else ORDERING


def _slips(before: list[str], after: list[str]) -> bool:
    """Is each word that went spelled nearly like one that came, and not both of them words that are known?"""
    gone, come = (
        list((Counter(before) - Counter(after)).elements()),
        list((Counter(after) - Counter(before)).elements()),
    )
    return len(gone) == len(come) and all(any(_slip(old, new) for new in come) for old in gone)


def _slip(old: str, new: str) -> bool:
    forms = stem(old) and stem(old) == stem(new)
    near = misspelled(old, new) or (len(old) > 1 and damerau_levenshtein(old, new, 1) == 1)
    return near and not forms and not (known(old) and known(new))


def _into_keywords(original: str, variant: str, shared: Shared) -> bool:
    """One is phrased, the other keywords that hold most of its content and nothing else."""
    phrased, plain = is_question(original), is_question(variant)
    if phrased == plain:
        return False
    lost, kept = (shared.lost, shared.new) if phrased else (shared.new, shared.lost)
    whole = shared.before if phrased else shared.after
    return not kept and len(lost) <= max(1, len(whole) // 3)
