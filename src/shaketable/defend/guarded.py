"""A ranker with a guard before it: a text that a detector finds suspicious cannot climb by what the ranker thinks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nsmallest
from math import inf
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from shaketable.attacks.detect import threshold
from shaketable.attacks.knowledge import Knowledge
from shaketable.chance import draws_for
from shaketable.errors import BadInput, check
from shaketable.registry import DETECTORS, RANKERS
from shaketable.score.road import Road
from shaketable.text.language import language_tool
from shaketable.types import Collection, Corpus, Doc, Ranker, Scores, Slate, Suspicion, fingerprint

CLEAN = 10_000
"""Documents of the collection, at most, that a threshold is told on."""
KNOWN = 100_000
"""Texts whose suspicion is remembered."""


@dataclass(frozen=True)
class Guarded:
    """A ranker whose suspicious documents stand below all others, or no higher than a first stage would have them.

    base            the ranker that orders the list
    detector        who suspects, from `registry.DETECTORS`
    false_alarms    the share of clean texts that are suspected; the threshold is told on the collection's documents
    first_stage     a ranker that vouches for a suspicious document: it stands where the worse of both puts it.
                    Without one, nobody does, and it stands below all that are not suspicious

    Places are given from the first to the last, each to the document that the base likes best among those that may
    stand there. So documents that nobody suspects keep their order, and none of them loses a place. Where scores tie,
    the suspicious document comes last. A first stage reads the text as it is: one that counts words is no help against
    words that were written to be counted.
    """

    base: str
    detector: str = "spamicity"
    false_alarms: float = 0.01
    first_stage: str = ""

    def __post_init__(self) -> None:
        check("guarded", 0 < self.false_alarms < 1, "false_alarms", "between 0 and 1, and neither", self.false_alarms)
        DETECTORS.build(self.detector)
        base = RANKERS.build(self.base)
        if self.first_stage and RANKERS.build(self.first_stage) == base:
            raise BadInput(f"guarded: {self.base} cannot vouch for what it ranks itself; leave out first_stage")

    def open(self, collection: Collection) -> GuardedRanker:
        """The base and the first stage, opened; what is suspicious is told when the first list is scored."""
        base = RANKERS.build(self.base).open(collection)
        first = RANKERS.build(self.first_stage).open(collection) if self.first_stage else None
        return GuardedRanker(RANKERS.spec(self), self, base, first, collection.docs)


@dataclass(eq=False)
class GuardedRanker:
    """A guarded ranker, opened on a collection: what becomes of a document depends on the list, so it ranks lists."""

    name: str
    model: Guarded
    base: Ranker
    first: Ranker | None
    docs: Corpus
    road: Road = field(default_factory=Road, repr=False)
    """Of its own: a list with one changed text is asked for again and again, and its other texts are known."""
    _known: dict[Doc, bool] = field(default_factory=dict, repr=False)

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        """The base's scores; those of suspicious documents are lowered until they stand where they may."""
        slates = list(slates)
        scores = self._asked(self.base, slates)
        alarms = [self.alarms(slate.docs) for slate in slates]
        guarded = [i for i, some in enumerate(alarms) if some.any()]
        first = self._asked(self.first, [slates[i] for i in guarded]) if self.first else [None] * len(guarded)
        for i, vouched in zip(guarded, first, strict=True):
            scores[i] = lowered(scores[i], alarms[i], vouched)
        return scores

    def alarms(self, docs: Sequence[Doc]) -> NDArray[np.bool_]:
        """Which documents are suspicious."""
        if len(self._known) > KNOWN:
            self._known.clear()
        if fresh := [doc for doc in dict.fromkeys(docs) if doc not in self._known]:
            self._known.update(zip(fresh, (self._suspicion(fresh) > self.limit).tolist(), strict=True))
        return np.array([self._known[doc] for doc in docs], dtype=np.bool_)

    @cached_property
    def limit(self) -> float:
        """What suspicion must exceed for an alarm, told on the collection's documents, or a sample of them."""
        docnos = nsmallest(CLEAN, self.docs, key=lambda docno: draws_for(0, "clean", docno).bits())
        return threshold(self._suspicion([self.docs[docno] for docno in docnos]), self.model.false_alarms)

    @cached_property
    def _suspicion(self) -> Suspicion:
        suspicion: Suspicion = DETECTORS.build(self.model.detector).open(
            Knowledge(self.docs, _unknown, _unknown, language_tool("light"))
        )
        return suspicion

    def _asked(self, ranker: Ranker, slates: Sequence[Slate]) -> list[Any]:
        return list(self.road.score(ranker, slates))  # which raises where a ranker fails

    @property
    def fingerprint(self) -> str | None:
        """Names all that the scores depend on, if the rankers can."""
        marks = [getattr(ranker, "fingerprint", None) for ranker in (self.base, self.first) if ranker]
        return None if None in marks else fingerprint(self.name, self.docs.fingerprint, marks)

    @property
    def family(self) -> str:
        return str(getattr(self.base, "family", "other"))

    @property
    def volatile(self) -> bool:
        """Whether a server stands behind it."""
        return any(getattr(ranker, "volatile", False) is True for ranker in (self.base, self.first))

    @property
    def remark(self) -> str:
        """What the base says, and whether there could be an alarm at all."""
        said = [str(getattr(self.base, "remark", "") or "")]
        if vars(self).get("limit") == inf:  # it is known when lists were scored
            rate = f"a rate of false alarms of {self.model.false_alarms:g}"
            said.append(f"no alarm is ever raised, for {len(self.docs)} documents are too few to tell {rate}")
        return "; ".join(filter(None, said))

    @property
    def counted(self) -> Counter[str]:
        counts: Counter[str] | None = getattr(self.base, "counted", None)
        return Counter() if counts is None else counts

    @property
    def notice(self) -> str:
        return str(getattr(self.base, "notice", "") or "")


def lowered(scores: Scores, alarms: NDArray[np.bool_], vouched: Scores | None = None) -> Scores:
    """Scores under which suspicious documents stand below the others, or no higher than by the scores of a first stage.

    >>> suspicious = np.array([True, False, False, False])
    >>> lowered(np.array([9.0, 8.0, 7.0, 6.0]), suspicious).argsort()[::-1].tolist()
    [1, 2, 3, 0]
    >>> lowered(np.array([9.0, 8.0, 7.0, 6.0]), suspicious, np.array([2.0, 3.0, 1.0, 1.0])).argsort()[::-1].tolist()
    [1, 0, 2, 3]
    """
    size = len(scores)
    if vouched is None:
        limits = np.full(size, size - int(alarms.sum()))  # the first place below all that are not suspicious
    else:
        limits = np.empty(size, np.int64)
        limits[_order(vouched, alarms)] = np.arange(size)
    waiting, least = _order(scores, alarms).tolist(), np.float32(np.inf)
    changed = np.array(scores, dtype=np.float32)
    for place in range(size):
        # there always is one: of n documents that wait for the last n places, a limit lets one stand at the first
        taken = next(i for i in waiting if not alarms[i] or limits[i] <= place)
        waiting.remove(taken)
        if alarms[taken]:
            changed[taken] = min(changed[taken], np.nextafter(least, np.float32(-np.inf)))
        least = min(least, changed[taken])
    return changed


def _order(scores: Scores, alarms: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Best first, by float32 as rankings are; a suspicious document comes after those that it ties with."""
    return np.lexsort((alarms, -np.asarray(scores, dtype=np.float32)))


def _unknown(*_: object) -> NoReturn:
    raise BadInput("a detector of a guarded ranker knows the documents, and no lists of an attacker's")
