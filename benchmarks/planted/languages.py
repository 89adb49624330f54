"""Detection rate of the facet "languages" for planted flaws, and its false alarms for sound rankers, against limits.

    python -m benchmarks.planted.languages

A sound ranker scores by the share of the query's character n-grams in a text, after transliteration of both to Latin
letters, so that accents, scripts and spaces do not change its scores. A flaw changes its score of a query and a text.
Limits: the facet names every full flaw, and no sound ranker fails or warns. The exit code is 1 if a limit is missed.
"""

from __future__ import annotations

import re
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

import numpy as np
from benchmarks.planted.bases import hash_text

import shaketable
from shaketable.core.documents import Collection, Scores, Slate
from shaketable.core.languages import ENGLISH
from shaketable.datasets.languages import list_bundled_languages, list_language_cases
from shaketable.measures.facets import LANGUAGES_FACET, find_test
from shaketable.measures.status import FAIL, PASS, WARN
from shaketable.nlp.stopwords import ENGLISH_STOPWORDS
from shaketable.nlp.unicode_words import fold_text, remove_invisible, strip_accents
from shaketable.transforms.languages import romanise

LANGUAGES = ("ar", "de", "fr", "ru", "zh")
PENALTY = 2.0
_WORD = re.compile(r"[^\W\d_]+")
_CYRILLIC, _HAN, _ARABIC = (re.compile(f"[{first}-{last}]") for first, last in ("\u0400\u04ff", "一鿿", "\u0600\u06ff"))

Effect = Callable[[str, str], float]
"""A function of a query and a text that returns what the flaw adds to the score."""


@cache
def list_grams(text: str, size: int) -> frozenset[str]:
    """Return the n-grams of a text in Latin letters, without spaces."""
    letters = re.sub(r"[^a-z0-9]", "", fold_text(romanise(remove_invisible(strip_accents(text)))))
    return frozenset(letters[i : i + size] for i in range(max(1, len(letters) - size + 1)))


def score_soundly(query: str, text: str, size: int = 3) -> float:
    """Return the share of the query's n-grams that the text has."""
    wanted = list_grams(query, size)
    return len(wanted & list_grams(text, size)) / len(wanted)


def list_words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFC", text).lower())


def count_english(text: str) -> int:
    """Count the English function words of a text that no other bundled language has."""
    return sum(word in ENGLISH_STOPWORDS - _list_foreign_words() for word in list_words(text))


@cache
def _list_foreign_words() -> frozenset[str]:
    cases = [case for language in list_bundled_languages() for case in list_language_cases(language)]
    return frozenset(word for case in cases for word in list_words(case.right))


@cache
def _list_english_words() -> frozenset[str]:
    cases = list_language_cases(ENGLISH)
    return frozenset(word for case in cases for word in list_words(case.query)) - _list_foreign_words()


def miss_accents(query: str, text: str) -> float:
    words, typed = set(list_words(text)), set(list_words(query))
    return -PENALTY * sum(word not in typed and strip_accents(word) in typed for word in words)


def prefer_english(query: str, text: str) -> float:
    return PENALTY * (count_english(text) > 1)


def ignore_script(script: re.Pattern[str]) -> Effect:
    """Return the effect of a ranker that ignores the letters of a script."""

    def change(query: str, text: str) -> float:
        left = script.sub("", query)
        blind = score_soundly(left, script.sub("", text)) if _WORD.search(left) else 0.0
        return blind - score_soundly(query, text)

    return change


def confuse_queries(query: str, text: str) -> float:
    words = [word in _list_english_words() for word in list_words(query)]
    mixed = any(words) and not all(words)
    return PENALTY * (hash_text(query, text) % 1000 / 1000) if mixed else 0.0


def confuse_documents(query: str, text: str) -> float:
    english = count_english(text)
    return -PENALTY * (1 < english < 0.3 * len(list_words(text)) or (english > 1 and not text[:9].isascii()))


def miss_composed(query: str, text: str) -> float:
    return -PENALTY * (text != unicodedata.normalize("NFC", text))


def miss_marked(query: str, text: str) -> float:
    return -PENALTY * (remove_invisible(text) != text)


@dataclass(frozen=True)
class LanguageFlaw:
    """A flaw: what it adds to a score, and patterns of the test that names it."""

    name: str
    tests: Sequence[str]
    effect: Effect

    def is_named(self, test: str) -> bool:
        return any(fnmatchcase(test, pattern) for pattern in self.tests)


FLAWS = (
    LanguageFlaw("accent-sensitive", ("strip_accents in *",), miss_accents),
    LanguageFlaw("prefers English", ("own_language in *",), prefer_english),
    LanguageFlaw("blind to Cyrillic", ("* in ru",), ignore_script(_CYRILLIC)),
    LanguageFlaw("blind to Chinese characters", ("* in zh",), ignore_script(_HAN)),
    LanguageFlaw("blind to Arabic", ("* in ar",), ignore_script(_ARABIC)),
    LanguageFlaw("confused by mixed queries", ("mix_language in *",), confuse_queries),
    LanguageFlaw("confused by mixed documents", ("mixed_document in *",), confuse_documents),
    LanguageFlaw("needs composed Unicode", ("normal_forms in *",), miss_composed),
    LanguageFlaw("confused by marks of direction", ("direction_marks in *",), miss_marked),
)


@dataclass(frozen=True)
class LanguageRanker:
    """A ranker with a flaw, which acts on all queries or on a seeded quarter of them; without a flaw it is sound."""

    name: str
    flaw: LanguageFlaw | None = None
    size: int = 3
    strength: str = "full"
    scale: Callable[[float], float] = float

    pointwise = True

    @property
    def fingerprint(self) -> str:
        return f"planted language ranker {self.name} {self.size} {self.strength}"

    def open(self, collection: Collection) -> LanguageRanker:
        return self

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        return [np.array([self.score_text(one.query, doc.text) for doc in one.docs]) for one in slates]

    def score_text(self, query: str, text: str) -> float:
        value = self.scale(score_soundly(query, text, self.size))
        active = self.strength == "full" or hash_text("quarter", fold_text(text)[:12]) % 4 == 0
        return value + self.flaw.effect(query, text) if self.flaw and active else value


SOUND = (
    *(LanguageRanker(f"{size}-grams", size=size) for size in (3, 4)),
    LanguageRanker("3-grams, exponential scores", scale=lambda value: float(np.exp(5 * value))),
    LanguageRanker("3-grams, large scores", scale=lambda value: 1e4 + 1e3 * value),
)


@dataclass(frozen=True)
class LanguageReading:
    """The status of the facet, and the test that decided it."""

    ranker: str
    strength: str
    status: str
    test: str
    named: bool
    seconds: float


def audit_ranker(ranker: LanguageRanker, languages: Sequence[str] = LANGUAGES) -> LanguageReading:
    """Return the verdict on a ranker in these languages."""
    started = time.perf_counter()
    task = f"languages(languages={tuple(languages)!r})"
    done = shaketable.audit("sample", {"planted": ranker}, task, runs=False, budget=None)
    (verdict,) = [one for one in done.verdict.ranker_verdicts if one.ranker == "planted"]
    cell = verdict.facet_cells[LANGUAGES_FACET]
    test = find_test(cell.finding.name)
    named = ranker.flaw is not None and cell.status in (FAIL, WARN) and ranker.flaw.is_named(test)
    seconds = time.perf_counter() - started
    return LanguageReading(ranker.name, ranker.strength, cell.status, test, named, round(seconds, 1))


def list_readings() -> Iterator[LanguageReading]:
    """Yield the verdict on each sound and each flawed ranker."""
    yield from map(audit_ranker, SOUND)
    for strength in ("full", "quarter"):
        for flaw in FLAWS:
            yield audit_ranker(LanguageRanker(flaw.name, flaw, strength=strength))


def main() -> int:
    readings = []
    print(f"languages {', '.join(LANGUAGES)}")
    print(f"{'ranker':32} {'strength':8} {'status':12} {'deciding test':28} named  s")
    for one in list_readings():
        readings.append(one)
        strength = "sound" if one.ranker in {sound.name for sound in SOUND} else one.strength
        print(
            f"{one.ranker:32} {strength:8} {one.status:12} {one.test:28} {'yes' if one.named else '-':5} {one.seconds}"
        )
    sound = [one for one in readings if one.ranker in {ranker.name for ranker in SOUND}]
    flawed = [one for one in readings if one not in sound]
    alarms = sum(one.status in (FAIL, WARN) for one in sound)
    print(f"sound rankers: {sum(one.status == PASS for one in sound)} of {len(sound)} pass, {alarms} false alarms (0)")
    missed = 0
    for strength in ("full", "quarter"):
        some = [one for one in flawed if one.strength == strength]
        named = sum(one.named for one in some)
        missed += len(some) - named if strength == "full" else 0
        print(f"flaws, {strength}: {named} of {len(some)} named{' (all)' if strength == 'full' else ''}")
    return int(bool(alarms or missed))


if __name__ == "__main__":
    sys.exit(main())
