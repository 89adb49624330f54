"""The bundled minimal pairs in several languages, which say the same in each, and parallel queries of collections.

`sample_files/languages/CODE.jsonl` has the pairs of one language in the layout of `pairs`: two queries and two texts,
each text right for one of the queries. Pairs with the same id are translations of each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from shaketable.core.documents import Collection, Doc, Query
from shaketable.core.errors import UnknownName
from shaketable.core.languages import ENGLISH, get_language
from shaketable.core.seeding import make_item_rng
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.datasets.pairs import CrossedPair, read_crossed_pairs
from shaketable.datasets.sample import SAMPLE_FOLDER

LANGUAGES_FOLDER = SAMPLE_FOLDER / "languages"
LIST_LENGTH = 10
"""Texts in the list of each bundled query: the right one, the wrong one of its pair, and others of the language."""


@dataclass(frozen=True)
class LanguageCase:
    """A bundled query with the right and the wrong text, and the right text in English."""

    qid: str
    pair_id: str
    query: str
    right: str
    wrong: str
    english: str


@cache
def list_bundled_languages() -> tuple[str, ...]:
    """Return the codes of the languages with bundled pairs, without English."""
    return tuple(sorted(path.stem for path in LANGUAGES_FOLDER.glob("*.jsonl") if path.stem != ENGLISH))


def read_language_pairs(language: str) -> dict[str, CrossedPair]:
    """Return the bundled pairs of a language by id; a language without pairs is an error."""
    if get_language(language).code not in (ENGLISH, *list_bundled_languages()):
        raise UnknownName("language with bundled pairs", language, list_bundled_languages())
    return {pair.qid: pair for pair in read_crossed_pairs(LANGUAGES_FOLDER / f"{language}.jsonl")}


def list_language_cases(language: str) -> list[LanguageCase]:
    """Return both directions of each bundled pair of a language."""
    english = read_language_pairs(ENGLISH)
    cases = []
    for name, pair in read_language_pairs(language).items():
        same = english[name]
        cases += [
            LanguageCase(f"{language}-{name}-a", name, pair.first_query, pair.first, pair.second, same.first),
            LanguageCase(f"{language}-{name}-b", name, pair.second_query, pair.second, pair.first, same.second),
        ]
    return cases


def build_language_collection(languages: tuple[str, ...], seed: int = 0) -> Collection:
    """Return a collection of the bundled texts of these languages and of English, with lists in each language.

    A query has one relevant document: the right text, whose id is that of the query.
    """
    docs: dict[str, Doc] = {}
    queries: dict[str, Query] = {}
    candidates: dict[str, dict[str, float]] = {}
    for language in (ENGLISH, *languages):
        cases = list_language_cases(language)
        docs |= {case.qid: Doc(case.right) for case in cases}
        if language == ENGLISH:
            continue
        queries |= {case.qid: Query(case.query, language=language) for case in cases}
        for case in cases:
            own = [other.qid for other in cases if other.pair_id == case.pair_id]
            others = [other.qid for other in cases if other.pair_id != case.pair_id]
            drawn = make_item_rng(seed, "language list", case.qid).permutation(others)[: LIST_LENGTH - len(own)]
            candidates[case.qid] = dict.fromkeys(sorted([*own, *drawn]), 0.0)
    qrels = {qid: {docno: int(docno == qid) for docno in listed} for qid, listed in candidates.items()}
    return Collection("bundled languages", MemoryCorpus(docs), queries, qrels, candidates=candidates)


def list_bundled_translations(languages: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """Return the English query of each bundled query: query id -> language -> text."""
    english = {case.qid.partition("-")[2]: case.query for case in list_language_cases(ENGLISH)}
    return {
        case.qid: {ENGLISH: english[case.qid.partition("-")[2]]}
        for language in languages
        for case in list_language_cases(language)
    }


def list_collection_translations(collection: Collection) -> dict[str, Mapping[str, str]]:
    """Return the parallel queries of a collection: query id -> language -> text."""
    found = {
        qid: {variant.language: variant.text for variant in variants if variant.language}
        for qid, variants in collection.variants.items()
    }
    return {qid: texts for qid, texts in found.items() if texts}
