"""Flaws to plant in a base ranker, each with the facets and tests that name it correctly.

A flaw of changed texts does not change the scores of unchanged texts, so that the ranker is as effective as its base.
The patterns of tests are broad: a test names a flaw if its name describes the fault of the ranker.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

import numpy as np
from benchmarks.planted.bases import UNRECOGNISED, Floats, KnownTexts, draw_normals, hash_text
from benchmarks.planted.flaw import Adjust, Flaw, add_effect, collapse_if, collapse_on, is_in_quarter
from benchmarks.planted.ranked_list import (
    BOOST,
    QUESTION_WORDS,
    STOP_WORDS,
    QueryChange,
    RankedList,
    compute_lead_share,
    count_accents,
    count_punctuation,
    count_query_words,
    find_newest_year,
    gains_match,
    has_phrase,
)
from benchmarks.planted.reading import NOT_BELOW_RULE, OWN_ORDER_RULE
from benchmarks.planted.recognition import split_words

from shaketable.measures.facets import (
    ATTACK,
    DOCUMENT_FORM,
    EFFECTIVENESS,
    INPUT_ORDER,
    PROBES_FACET,
    REPEATABILITY,
    RISK,
    SLICES,
    TIES,
    TYPOS,
    VARIANCE,
    WORDING,
)
from shaketable.nlp.characters import HOMOGLYPHS, INVISIBLE_CHARACTERS

ANY = ("*",)
_MIMICS = frozenset(HOMOGLYPHS.values())
FLAWS: dict[str, Flaw] = {}


def plant(
    name: str,
    expected: Mapping[str, Sequence[str]],
    adjust: Adjust,
    *,
    gate_rules: tuple[str, ...] = (),
    pointwise: bool = True,
    is_repeatable: bool = True,
    needs_query_types: bool = False,
) -> None:
    """Add a flaw to the list."""
    FLAWS[name] = Flaw(name, expected, adjust, gate_rules, pointwise, is_repeatable, needs_query_types)


# documents that are written to win

STUFFED = {ATTACK: ("*stuff*", "*quer*"), PROBES_FACET: ("*stuff*", "*quer*", "*repetition*")}
COPIED = {ATTACK: ("*quer*",), PROBES_FACET: ("*quer*",)}


def _has_new_phrase(query: str, text: str, original: str, max_words: int | None = None) -> float:
    return float(has_phrase(query, text, max_words) and not has_phrase(query, original, max_words))


def _count_more_query_words(query: str, text: str, original: str) -> float:
    return max(0, count_query_words(query, text) - count_query_words(query, original))


def _has_inserted_sentence(query: str, text: str, original: str) -> float:
    new, old = split_words(text), split_words(original)
    kept = len(set(old) & set(new)) >= 0.9 * len(set(old))
    return float(len(new) >= len(old) + 4 and kept and _count_more_query_words(query, text, original) >= 2)


def _count_replaced_words(query: str, text: str, original: str) -> float:
    new, old = split_words(text), split_words(original)
    if abs(len(new) - len(old)) > 0.1 * len(old):
        return 0.0
    return len(set(new) - set(old) - set(split_words(query)))


plant("keyword_stuffing", STUFFED, add_effect(_count_more_query_words, 0.5))
plant("copied_query", COPIED, add_effect(_has_new_phrase))
plant("query_prepended", COPIED, add_effect(lambda q, t, o: _has_new_phrase(q, t, o, max_words=30)))
plant(
    "sentence_insertion", {ATTACK: ("*sentence*", "*quer*", "*stuff*", "*insert*")}, add_effect(_has_inserted_sentence)
)
plant("synonym_greedy", {ATTACK: ("*greedy*", "*syn*", "character*")}, add_effect(_count_replaced_words, 1.0))
plant(
    "obeys_instructions",
    {ATTACK: ("*instruction*", "*template*"), PROBES_FACET: ("*instruction*",)},
    add_effect(gains_match(r"\b(rank|passage|relevan\w*|instructions?|score|ranking|judges|answer is)\b")),
)
plant(
    "boilerplate_lover",
    {PROBES_FACET: ("*boilerplate*",), DOCUMENT_FORM: ("*boilerplate*",), ATTACK: ("*boilerplate*",)},
    add_effect(gains_match(r"\b(cookies?|newsletter|subscribe|privacy|terms of use|all rights reserved|sign up)\b")),
)
plant(
    "html_lover",
    {DOCUMENT_FORM: ("*html*", "*tag*", "*markup*"), PROBES_FACET: ("*html*", "*tag*")},
    add_effect(gains_match(r"</?\w+[^>]*>")),
)

# the form of a document

INVISIBLE = dict.fromkeys((DOCUMENT_FORM, ATTACK, PROBES_FACET), ("*invisible*", "*zero*"))
LOOKALIKE = dict.fromkeys((DOCUMENT_FORM, ATTACK, PROBES_FACET), ("*homoglyph*", "*look*alike*"))
LEAD = ("*bury*", "*sentence*", "*position*", "*prepend*", "*insert*", "*quer*", "*lead*", "*stuff*")
LENGTH = (
    "*length*",
    "*brev*",
    "*short*",
    "*long*",
    "*delet*",
    "*cut*",
    "*pad*",
    "*duplicat*",
    "*boilerplate*",
    "*half*",
)


def _count_letters(text: str, letters: frozenset[str]) -> int:
    return 0 if text.isascii() else sum(letter in letters for letter in text)


def _has_invisible(query: str, text: str, original: str) -> float:
    return float(_count_letters(text, INVISIBLE_CHARACTERS) > _count_letters(original, INVISIBLE_CHARACTERS))


def _has_mimics(query: str, text: str, original: str) -> float:
    return float(_count_letters(text, _MIMICS) > _count_letters(original, _MIMICS))


def _has_other_case(query: str, text: str, original: str) -> float:
    return float((text.islower(), text.isupper()) != (original.islower(), original.isupper()))


def _has_other_form(query: str, text: str, original: str) -> float:
    return float(not unicodedata.is_normalized("NFKC", text) and unicodedata.is_normalized("NFKC", original))


def _is_reordered(query: str, text: str, original: str) -> float:
    new, old = split_words(text), split_words(original)
    return float(new != old and sorted(new) == sorted(old))


def _is_doubled(query: str, text: str, original: str) -> float:
    return float(
        len(split_words(text)) >= 1.7 * len(split_words(original))
        and len(set(split_words(text))) <= 1.1 * len(set(split_words(original)))
    )


def _compare_years(query: str, text: str, original: str) -> float:
    return float(np.sign(find_newest_year(text) - find_newest_year(original)))


def _get_log_length(items: RankedList) -> Floats:
    return np.log([max(len(split_words(text)), 1) / 100 for text in items.texts])


def _read_first_words(items: RankedList) -> Floats:
    """Score a text as unrecognised if its first twenty words are not those of the document."""
    heads = [" ".join(text.split()[:20]) for text in items.texts]
    lost = items.base.known.find_docs(heads) != items.numbers
    return np.where(lost, UNRECOGNISED - BOOST, items.scores)


plant("invisible_boosted", INVISIBLE, add_effect(_has_invisible))
plant("invisible_dropped", INVISIBLE, add_effect(_has_invisible, -BOOST))
plant("homoglyphs_boosted", LOOKALIKE, add_effect(_has_mimics))
plant("homoglyphs_dropped", LOOKALIKE, add_effect(_has_mimics, -BOOST))
plant("case_of_documents", {DOCUMENT_FORM: ("*case*",), PROBES_FACET: ("*case*",)}, add_effect(_has_other_case, -BOOST))
plant(
    "accents_of_documents",
    {DOCUMENT_FORM: ("*accent*", "*diacrit*"), PROBES_FACET: ("*accent*",)},
    add_effect(lambda q, t, o: float(count_accents(t) != count_accents(o)), -BOOST),
)
plant(
    "unicode_forms",
    {DOCUMENT_FORM: ("*unicode*", "*nf*", "*form*", "*accent*", "*space*"), PROBES_FACET: ("*unicode*", "*form*")},
    add_effect(_has_other_form, -BOOST),
)
plant(
    "punctuation_of_documents",
    {DOCUMENT_FORM: ("*punct*",), PROBES_FACET: ("*punct*", "*tokeni*")},
    add_effect(lambda q, t, o: float(count_punctuation(t) < 0.5 * count_punctuation(o)), -BOOST),
)
plant(
    "newer_dates", {DOCUMENT_FORM: ("*date*", "*year*", "*new*"), PROBES_FACET: ("*date*",)}, add_effect(_compare_years)
)
plant(
    "older_dates",
    {DOCUMENT_FORM: ("*date*", "*year*", "*old*"), PROBES_FACET: ("*date*",)},
    add_effect(_compare_years, -BOOST),
)
plant(
    "lead_bias",
    dict.fromkeys((PROBES_FACET, DOCUMENT_FORM, ATTACK), LEAD),
    add_effect(lambda q, t, o: compute_lead_share(q, t) - compute_lead_share(q, o)),
)
plant("reads_twenty_words", {DOCUMENT_FORM: ANY, PROBES_FACET: ANY}, _read_first_words)
plant(
    "prefers_short",
    dict.fromkeys((PROBES_FACET, DOCUMENT_FORM, ATTACK), (*LENGTH, "unrelated_sentence")),
    lambda items: items.scores - _get_log_length(items),
)
plant(
    "prefers_long",
    dict.fromkeys((PROBES_FACET, DOCUMENT_FORM, ATTACK), (*LENGTH, "*insert*", "*sentence*", "*quer*", "*stuff*")),
    lambda items: items.scores + _get_log_length(items),
)
plant(
    "duplicates_preferred",
    {PROBES_FACET: ("*duplic*", "*repeat*"), DOCUMENT_FORM: ("*duplic*", "*double*", "*repeat*", "*length*")},
    add_effect(_is_doubled),
)
plant(
    "shuffled_preferred",
    {
        PROBES_FACET: ("*shuffl*", "*revers*", "*order*"),
        DOCUMENT_FORM: ("*shuffl*", "*revers*", "*order*", "*sentence*"),
    },
    add_effect(_is_reordered),
)

# the meaning of bundled pairs


def _ignore_pairs_of(kind: str) -> Adjust:
    """Return an adjustment that gives random scores to both texts of such a pair, for every query."""

    def adjust(items: RankedList) -> Floats:
        if not items.qid.startswith(f"pair {kind}-"):
            return items.scores
        return draw_normals(np.array([hash_text(text) for text in items.texts], dtype=np.uint64), kind)

    return adjust


for _kind in ("negation", "number", "date", "exclusion", "entity"):
    plant(f"{_kind}_blind", {PROBES_FACET: (f"*{_kind}*",)}, _ignore_pairs_of(_kind))

# variations of the query

WORDS = ("*syn*", "*paraphras*", "word", "human")


def _lost_stop_words(query: str, original: str, change: QueryChange) -> bool:
    return bool(change.lost) and set(change.lost) <= STOP_WORDS | QUESTION_WORDS and not change.added


def _is_question(text: str) -> bool:
    return bool(QUESTION_WORDS & set(split_words(text)[:1])) or text.rstrip().endswith("?")


plant(
    "upper_case_queries",
    {WORDING: ("*case*",), TYPOS: ("*case*",)},
    collapse_if(lambda q, o, change: q.isupper() and not o.isupper()),
)
plant(
    "accents_of_queries",
    {WORDING: ("*accent*", "*unicode*"), TYPOS: ("*accent*", "*unicode*")},
    collapse_if(lambda q, o, change: count_accents(q) != count_accents(o)),
)
plant(
    "punctuation_of_queries",
    {WORDING: ("*punct*",), TYPOS: ("*punct*",)},
    collapse_if(lambda q, o, change: count_punctuation(q) != count_punctuation(o)),
)
plant("typos_in_queries", {TYPOS: ANY}, collapse_if(lambda q, o, change: change.has_typo))
plant(
    "word_order_of_queries",
    {WORDING: ("*order*", "human")},
    collapse_if(lambda q, o, change: change.is_reordered),
)
plant(
    "stop_words_of_queries",
    {WORDING: ("*stop*", "*keyword*", "human", "*question*")},
    collapse_if(_lost_stop_words),
)
plant("other_words_in_queries", {WORDING: WORDS}, collapse_if(lambda q, o, change: change.has_other_words))
plant(
    "question_form",
    {WORDING: ("*question*", "*keyword*", "human", "*stop*")},
    collapse_if(lambda q, o, change: _is_question(q) != _is_question(o)),
)

# the input list

COPY = {INPUT_ORDER: ANY}


def _copy_bm25(items: RankedList) -> Floats:
    if items.qid not in items.base.known.collection.queries:
        return items.scores
    return items.base.get_lexical_row(items.qid)[items.numbers] + 0.01 * items.draw_noise("near copy")


plant(
    "list_order_mild",
    {INPUT_ORDER: ANY},
    lambda items: items.scores - 2 * items.base.noise_level * items.positions,
    pointwise=False,
)
plant(
    "list_order_strong",
    {INPUT_ORDER: ANY},
    lambda items: items.scores - 8 * items.base.noise_level * items.positions,
    pointwise=False,
)
plant("no_op", COPY, lambda items: -items.positions, gate_rules=(OWN_ORDER_RULE,), pointwise=False)
plant(
    "near_copy_of_list",
    COPY,
    lambda items: 0.01 * items.draw_noise("near copy") - items.positions,
    gate_rules=(OWN_ORDER_RULE,),
    pointwise=False,
)
plant("near_copy_of_bm25", {}, _copy_bm25, gate_rules=(OWN_ORDER_RULE,))

# the scores themselves


def _add_unseeded_noise(items: RankedList, amount: float) -> Floats:
    return items.scores + amount * items.base.noise_level * np.random.default_rng().normal(size=len(items.texts))


plant("constant", {TIES: ANY}, lambda items: np.zeros(len(items.texts)), gate_rules=(OWN_ORDER_RULE,))
plant("ties", {TIES: ANY}, lambda items: 2 * np.round(items.scores / (2 * items.base.noise_level + 0.5)))
plant("saturated", {TIES: ANY}, lambda items: np.minimum(items.scores, items.base.noise_level))
plant(
    "not_repeatable_mild",
    {REPEATABILITY: ANY},
    lambda items: _add_unseeded_noise(items, 0.3),
    is_repeatable=False,
)
plant(
    "not_repeatable_strong",
    {REPEATABILITY: ANY},
    lambda items: _add_unseeded_noise(items, 3.0),
    is_repeatable=False,
)

# effectiveness on all queries and on some

BAD = {EFFECTIVENESS: ANY, VARIANCE: ANY, RISK: ANY, SLICES: ANY}
PARTLY_BAD = {SLICES: ANY, RISK: ANY, VARIANCE: ANY, EFFECTIVENESS: ANY}


BLUR = 0.2
"""Noise relative to the best score of BM25."""


def _blur_bm25(items: RankedList) -> Floats:
    if items.qid not in items.base.known.collection.queries:
        return items.scores
    return items.base.get_lexical_row(items.qid)[items.numbers] + BLUR * items.draw_noise("blur")


def _is_long(items: RankedList) -> bool:
    lengths = sorted(len(split_words(query.text)) for query in items.base.known.collection.queries.values())
    return len(split_words(items.original_query)) > lengths[len(lengths) // 2]


def _get_rarest(known: KnownTexts, text: str) -> int:
    return min((known.document_counts.get(word, 0) for word in split_words(text)), default=0)


def _has_rare_word(items: RankedList) -> bool:
    known = items.base.known
    rarest = sorted(_get_rarest(known, query.text) for query in known.collection.queries.values())
    return items.qid in known.collection.queries and _get_rarest(known, items.original_query) < rarest[len(rarest) // 3]


def _has_first_type(items: RankedList) -> bool:
    queries = items.base.known.collection.queries
    return items.qid in queries and queries[items.qid].type == min(query.type for query in queries.values())


def _fail_on_some(items: RankedList) -> Floats:
    return np.zeros(len(items.texts)) if is_in_quarter("fails", items.qid) else items.scores


plant("random_scores", BAD, lambda items: items.draw_noise("random"), gate_rules=(NOT_BELOW_RULE,))
plant("slightly_worse", BAD, _blur_bm25, gate_rules=(NOT_BELOW_RULE,))
plant(
    "much_worse",
    BAD,
    lambda items: items.scores + 3 * items.draw_noise("worse"),
    gate_rules=(NOT_BELOW_RULE,),
)
plant("random_on_quarter", PARTLY_BAD, collapse_on(lambda items: is_in_quarter("random", items.qid)))
plant(
    "inverted_on_quarter",
    PARTLY_BAD,
    lambda items: -items.scores if is_in_quarter("inverted", items.qid) else items.scores,
)
plant("constant_on_quarter", {**PARTLY_BAD, TIES: ANY}, _fail_on_some)
plant("bad_on_long_queries", PARTLY_BAD, collapse_on(_is_long), gate_rules=(NOT_BELOW_RULE,))
plant("bad_on_one_type", PARTLY_BAD, collapse_on(_has_first_type), needs_query_types=True)
plant("bad_on_rare_words", PARTLY_BAD, collapse_on(_has_rare_word))
