"""Rules that find the type of a query from question words and words that name the wanted answer.

The types are those of MS MARCO and of paper 000, sections 4.1 and 4.3: location, numeric, person, description, entity.
"""

from __future__ import annotations

import re

QUERY_TYPES = ("description", "entity", "location", "numeric", "person")
"""The five types, in alphabetical order."""

_PLACES = """county counties country countries city cities state states town towns continent continents island islands
region regions province district zone sea ocean time_zone borough parish village street address"""
_PEOPLE = """actor actors actress actresses president author singer artist rapper king queen player players scientist
conquistador explorer nationality dynasty company companies"""
_AMOUNTS = """much many long old far tall big deep often soon fast high heavy wide large late early thick close small
hot cold loud strong"""
_DATES = "year time date day month"
_NUMBERS = """number numbers population cost costs price prices pricing salary salaries wage wages pay fee fees tuition
temperature temp calories carbs distance mileage weight height length depth width dimensions age ages percentage percent
average avg worth zip phone telephone fax npi routing area_code per dosage dose hours
score odds chance probability rate rates"""
_THINGS = """type types kind kinds color colors colour colours food foods vitamin vitamins language languages animal
animals plant plants disease breed breeds brand brands song songs movie movies show shows book books instrument metal
element gland organ enzyme hormone protein family phylum genus channel medicine medicines drug drugs flavor"""
_EXTREMES = "best most fastest largest biggest smallest highest lowest longest"
_AFTER_WHAT = """is are was were does do did s causes cause caused happens happened happen makes make made can could
should would will has have had if to the a an about means goes"""


def _match_any(words: str) -> str:
    """Return a pattern for one of these words; an underscore stands for a space."""
    return f"(?:{'|'.join(words.split()).replace('_', ' ')})"


TYPE_PATTERNS: tuple[tuple[str, str], ...] = (
    ("description", r"\b(?:definitions?|defined?|meanings?|means?|synonyms?|antonyms?|stands? for|what causes?)\b"),
    ("location", rf"\b(?:what|which|whose)\b(?: \w+)? {_match_any(_PLACES)}\b|\btime zone\b"),
    ("location", r"^(?:from |in |to )?where\b|\bwhere (?:is|are|was|were|do|does|did|can)\b|\blocated\b"),
    ("person", r"^(?:who|whos|who's|whom|whose)\b|\b(?:who|whom) (?:is|was|are|were|wrote|made|invented|plays?)\b"),
    (
        "numeric",
        rf"\bhow {_match_any(_AMOUNTS)}\b|^(?:on |since |by )?when\b|\b(?:what|which) (?:year|time|date|day|month)\b",
    ),
    ("person", rf"\b(?:what|which) {_match_any(_PEOPLE)}\b|\b(?:author|singer|ceo|founder|inventor|wife|husband) of\b"),
    ("numeric", rf"\b{_match_any(_NUMBERS)}\b"),
    ("description", r"^(?:how|why|is|are|was|were|do|does|did|can|could|should|will|would|has|have)\b|\bweather\b"),
    (
        "entity",
        rf"\b(?:what|which) {_match_any(_THINGS)}\b|\bsymptoms?\b|\b(?:foods|medicines?) (?:for|that|with|high|in)\b",
    ),
    (
        "entity",
        r"^(?:list of|which)\b|^(?:the )?(?:best|most|fastest|largest|biggest|smallest|highest|lowest|longest)\b",
    ),
    ("description", rf"\bwhat'?s?(?: {_match_any(_AFTER_WHAT)}\b|$)|^what's\b"),
    ("entity", r"^what\b"),
)
"""Types and patterns for lower-case queries; the first match decides. A query without a match is a description, the
most frequent type.
"""
_COMPILED_PATTERNS = tuple((query_type, re.compile(pattern)) for query_type, pattern in TYPE_PATTERNS)


def classify_by_rules(query: str) -> str:
    """Return the type of a query.

    >>> [classify_by_rules(q) for q in ("where is lake como", "how deep is lake como", "who painted lake como")]
    ['location', 'numeric', 'person']
    >>> [classify_by_rules(q) for q in ("what fish live in lake como", "lake como")]
    ['entity', 'description']
    """
    text = " ".join(query.lower().replace("’", "'").split())
    return next((query_type for query_type, pattern in _COMPILED_PATTERNS if pattern.search(text)), "description")
