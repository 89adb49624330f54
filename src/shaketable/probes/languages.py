"""Probes in other languages, on the bundled minimal pairs of each: `list_bundled_languages` names them.

In crossed pairs, each of two texts is right for one of two queries. The other probes change the right text, or put its
English version beside it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from shaketable.core.documents import Doc
from shaketable.core.languages import get_language
from shaketable.core.protocols import Skipped, TextPair
from shaketable.datasets.languages import LanguageCase, list_language_cases, read_language_pairs
from shaketable.probes.context import ProbeContext
from shaketable.probes.minimal_pairs import make_both_directions
from shaketable.transforms.document_languages import add_direction_marks, decompose, mix_languages


@dataclass(frozen=True)
class _LanguageProbe:
    """A probe on the bundled pairs of one language."""

    language: str = field(metadata={"says": "The language, as an ISO 639-1 code.", "example": "de"})

    strategy: ClassVar[str] = "minimal pair"
    symmetric: ClassVar[bool] = False

    def __post_init__(self) -> None:
        read_language_pairs(self.language)

    def unavailable_reason(self, context: ProbeContext) -> str:
        return ""


@dataclass(frozen=True)
class LanguagePairs(_LanguageProbe):
    """Test minimal pairs in a language: two texts differ in one word; each is right for one query."""

    crossed: ClassVar[bool] = True

    def draw_pairs(self, context: ProbeContext) -> Iterator[TextPair]:
        for pair in read_language_pairs(self.language).values():
            yield from make_both_directions(pair)


@dataclass(frozen=True)
class OwnLanguage(_LanguageProbe):
    """Compare a right text in the language of the query (+) with the same text in English."""

    def draw_pairs(self, context: ProbeContext) -> Iterator[TextPair]:
        for case in list_language_cases(self.language):
            yield TextPair(case.query, Doc(case.right), Doc(case.english), qid=case.qid)


@dataclass(frozen=True)
class _ChangedRightText(_LanguageProbe):
    """A probe that compares the changed right text with the unchanged wrong text."""

    def draw_pairs(self, context: ProbeContext) -> Iterator[TextPair | Skipped]:
        for case in list_language_cases(self.language):
            changed = self.change(case)
            if changed == case.right:
                yield Skipped("the change does not apply")
            else:
                yield TextPair(case.query, Doc(changed), Doc(case.wrong), qid=case.qid)

    @abstractmethod
    def change(self, case: LanguageCase) -> str:
        """Return the changed right text, or the right text itself if the change does not apply."""


@dataclass(frozen=True)
class MixedDocument(_ChangedRightText):
    """Compare a right text followed by an English sentence without a topic (+) with the wrong text."""

    def change(self, case: LanguageCase) -> str:
        return mix_languages(case.right)


@dataclass(frozen=True)
class DirectionMarks(_ChangedRightText):
    """Compare a right text with marks of the direction from right to left (+) with the wrong text."""

    def change(self, case: LanguageCase) -> str:
        return add_direction_marks(case.right) if get_language(self.language).right_to_left else case.right


@dataclass(frozen=True)
class NormalForms(_ChangedRightText):
    """Compare a right text in decomposed Unicode form (+) with the wrong text in its usual form."""

    def change(self, case: LanguageCase) -> str:
        return decompose(case.right)
