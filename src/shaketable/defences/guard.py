"""Guarded rankers: a detector flags suspicious documents, and flagged documents are ranked lower."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nsmallest
from math import inf
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from shaketable.attacks.detectors import compute_alarm_threshold
from shaketable.attacks.knowledge import AttackerKnowledge
from shaketable.core.attack_types import Suspicion
from shaketable.core.documents import Collection, Corpus, Doc, Scores, Slate, fingerprint
from shaketable.core.errors import BadInput, check_parameter
from shaketable.core.protocols import Ranker
from shaketable.core.registries import DETECTORS, RANKERS
from shaketable.core.seeding import make_item_rng
from shaketable.nlp.parser import open_parser
from shaketable.scoring.engine import ScoringEngine

MAX_CALIBRATION_DOCS = 10_000
"""The maximum number of the collection's documents that a threshold is computed on."""
MAX_CACHED_ALARMS = 100_000
"""The maximum number of cached texts."""


@dataclass(frozen=True)
class Guarded:
    """A ranker whose suspicious documents rank below all others, or no higher than a first stage ranks them.

    base            the ranker that orders the list
    detector        the detector of suspicious documents, from `core.registries.DETECTORS`
    false_alarms    the share of clean texts that the detector flags; the collection's documents set the threshold
    first_stage     a ranker: it limits a suspicious document to the worse of its ranks; "" ranks it below all others

    Ranks are filled from the first to the last, each with the best document by the base that may have this rank. So
    documents that are not flagged keep their order, and none of them loses a rank. If scores tie, the suspicious
    document comes last. The first stage reads the attacked text too, so a first stage that counts words does not help
    against keyword stuffing.
    """

    base: str = field(metadata={"example": "bm25"})
    detector: str = "spamicity"
    false_alarms: float = 0.01
    first_stage: str = ""

    def __post_init__(self) -> None:
        check_parameter(
            "guarded", 0 < self.false_alarms < 1, "false_alarms", "between 0 and 1, both excluded", self.false_alarms
        )
        DETECTORS.build(self.detector)
        base = RANKERS.build(self.base)
        if self.first_stage and RANKERS.build(self.first_stage) == base:
            raise BadInput(f"guarded: {self.base} cannot be its own first stage; leave out first_stage")

    def open(self, collection: Collection) -> GuardedRanker:
        """Open the base and the first stage; the alarm threshold is computed when the first list is scored."""
        base = RANKERS.build(self.base).open(collection)
        first = RANKERS.build(self.first_stage).open(collection) if self.first_stage else None
        return GuardedRanker(RANKERS.spec(self), self, base, first, collection.docs)


@dataclass(eq=False)
class GuardedRanker:
    """A guarded ranker on a collection. The score of a document depends on its list, so it is not pointwise."""

    name: str
    model: Guarded
    base: Ranker
    first_stage_ranker: Ranker | None
    docs: Corpus
    engine: ScoringEngine = field(default_factory=ScoringEngine, repr=False)
    """A separate engine: attacks score a list repeatedly with one changed text, and the other texts are cached."""
    _alarm_cache: dict[Doc, bool] = field(default_factory=dict, repr=False)
    pointwise: ClassVar[bool] = False

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        """Return the scores of the base, with those of suspicious documents lowered to the ranks that they may have."""
        slates = list(slates)
        scores = self._score_with(self.base, slates)
        alarms = [self.flag_suspicious(slate.docs) for slate in slates]
        guarded = [i for i, some in enumerate(alarms) if some.any()]
        first = (
            self._score_with(self.first_stage_ranker, [slates[i] for i in guarded])
            if self.first_stage_ranker
            else [None] * len(guarded)
        )
        for i, vouched in zip(guarded, first, strict=True):
            scores[i] = lower_suspicious_scores(scores[i], alarms[i], vouched)
        return scores

    def flag_suspicious(self, docs: Sequence[Doc]) -> NDArray[np.bool_]:
        """Return True for each suspicious document."""
        if len(self._alarm_cache) > MAX_CACHED_ALARMS:
            self._alarm_cache.clear()
        if fresh := [doc for doc in dict.fromkeys(docs) if doc not in self._alarm_cache]:
            self._alarm_cache.update(
                zip(fresh, (self._measure_suspicion(fresh) > self.alarm_threshold).tolist(), strict=True)
            )
        return np.array([self._alarm_cache[doc] for doc in docs], dtype=np.bool_)

    @cached_property
    def alarm_threshold(self) -> float:
        """The suspicion above which a document is flagged, computed on (a sample of) the collection's documents."""
        docnos = nsmallest(
            MAX_CALIBRATION_DOCS, self.docs, key=lambda docno: make_item_rng(0, "clean", docno).random_bits()
        )
        return compute_alarm_threshold(
            self._measure_suspicion([self.docs[docno] for docno in docnos]), self.model.false_alarms
        )

    @cached_property
    def _measure_suspicion(self) -> Suspicion:
        suspicion: Suspicion = DETECTORS.build(self.model.detector).open(
            AttackerKnowledge(self.docs, _refuse_target_lists, _refuse_target_lists, open_parser("light"))
        )
        return suspicion

    def _score_with(self, ranker: Ranker, slates: Sequence[Slate]) -> list[Any]:
        return list(self.engine.score(ranker, slates))  # the engine raises if a ranker fails

    @property
    def fingerprint(self) -> str | None:
        """A name for everything that the scores depend on; None if a ranker has none."""
        marks = [getattr(ranker, "fingerprint", None) for ranker in (self.base, self.first_stage_ranker) if ranker]
        return None if None in marks else fingerprint(self.name, self.docs.fingerprint, marks)

    @property
    def family(self) -> str:
        return str(getattr(self.base, "family", "other"))

    @property
    def volatile(self) -> bool:
        """True if a server computes the scores."""
        return any(getattr(ranker, "volatile", False) is True for ranker in (self.base, self.first_stage_ranker))

    @property
    def remark(self) -> str:
        """The remark of the base, and a note if no alarm is possible."""
        said = [str(getattr(self.base, "remark", "") or "")]
        if vars(self).get("alarm_threshold") == inf:  # known after lists were scored
            rate = f"a rate of false alarms of {self.model.false_alarms:g}"
            said.append(f"no alarm is ever raised, because {len(self.docs)} documents are too few to estimate {rate}")
        return "; ".join(filter(None, said))

    @property
    def counters(self) -> Counter[str]:
        counts: Counter[str] | None = getattr(self.base, "counters", None)
        return Counter() if counts is None else counts

    @property
    def notice(self) -> str:
        return str(getattr(self.base, "notice", "") or "")


def lower_suspicious_scores(
    scores: Scores, alarms: NDArray[np.bool_], first_stage_scores: Scores | None = None
) -> Scores:
    """Return the scores with suspicious documents below all others, or at most at their ranks by a first stage.

    >>> scores, suspicious = np.array([9.0, 8.0, 7.0, 6.0]), np.array([True, False, False, False])
    >>> lower_suspicious_scores(scores, suspicious).argsort()[::-1].tolist()
    [1, 2, 3, 0]
    >>> lower_suspicious_scores(scores, suspicious, np.array([2.0, 3.0, 1.0, 1.0])).argsort()[::-1].tolist()
    [1, 0, 2, 3]
    """
    size = len(scores)
    if first_stage_scores is None:
        limits = np.full(size, size - int(alarms.sum()))  # the first rank below all others
    else:
        limits = np.empty(size, np.int64)
        limits[_sort_by_score(first_stage_scores, alarms)] = np.arange(size)
    waiting, least = _sort_by_score(scores, alarms).tolist(), np.float32(np.inf)
    changed = np.array(scores, dtype=np.float32)
    for rank in range(size):
        # there is always one: of the n documents for the last n ranks, at least one may have the first of these ranks
        taken = next(i for i in waiting if not alarms[i] or limits[i] <= rank)
        waiting.remove(taken)
        if alarms[taken]:
            changed[taken] = min(changed[taken], np.nextafter(least, np.float32(-np.inf)))
        least = min(least, changed[taken])
    return changed


def _sort_by_score(scores: Scores, alarms: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the order, best first, by float32 as rankings are; suspicious documents come last among ties."""
    return np.lexsort((alarms, -np.asarray(scores, dtype=np.float32)))


def _refuse_target_lists(*_: object) -> NoReturn:
    raise BadInput("a detector of a guarded ranker has the documents, but no lists of an attacker")
