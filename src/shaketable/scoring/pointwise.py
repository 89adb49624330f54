"""The detection of pointwise rankers among those that do not declare it.

A few lists are scored whole, in two parts and in reverse order. If all scores agree, a score depends on query and text
alone, and the engine caches scores by text. Later it scores some texts again among others, at increasing intervals. A
ranker that turns out to be list-wise has its scores discarded, and the work starts over with whole lists.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from shaketable.core.documents import Doc, Scores, Slate
from shaketable.core.errors import RankerFailed, quote_value
from shaketable.scoring.store import Store
from shaketable.scoring.traits import RankerTraits
from shaketable.scoring.units import digest_texts

AskRanker = Callable[[Sequence[Slate]], Sequence[Scores]]
"""A function that scores slates in one call of the ranker, without the cache."""
ScoredPair = tuple[str, Doc, float]

CHECKED_LISTS, CHECKED_DOCUMENTS = 3, 10
"""The lists that a detection scores, and the documents of each."""
TOLERANCE = 1e-5
"""The difference between scores of a text in two lists, relative to the largest score, that is only rounding."""
MAX_NOISE_SHARE = 0.01
"""The largest noise, relative to the range of the scores of a list, at which a difference can be told from noise."""
FIRST_CHECK_PAIRS, CHECK_GROWTH = 500, 1.5
"""The number of scored pairs at the first check during a run, and its growth to the next check."""
RECHECKED_QUERIES, RECHECKED_DOCUMENTS = 8, 3
"""The queries of a check during a run, and the documents of each, which are scored with one document more."""
STORED_FORMAT = "<?Idd"


class PointwiseRefuted(BaseException):
    """A signal that a ranker that seemed to be pointwise is list-wise, so that the caller starts over.

    It is no `Exception`, because tasks go on after some exceptions, with scores that are wrong.
    """


@dataclass
class PointwiseCheck:
    """The evidence on a ranker that does not declare whether it is pointwise.

    `noise` is the largest difference between two answers to the same request, `list_effect` the largest difference
    between the scores of a text in two lists, relative to the score (or to 1 if the score is smaller).
    """

    pointwise: bool
    list_count: int = 0
    noise: float = 0.0
    list_effect: float = 0.0
    refutation: str = ""
    scored: int = 0
    next_check: int = FIRST_CHECK_PAIRS
    keys: list[bytes] = field(default_factory=list, repr=False)
    """The cache keys of the scores of this run."""

    @property
    def remark(self) -> str:
        """A sentence for readers of the results; "" if no list could be checked."""
        checked = f"(checked on {self.list_count} list{'s' * (self.list_count != 1)})"
        if self.refutation or not self.list_count:
            return self.refutation
        if self.pointwise:
            return f"it scores each text alone {checked}, so its scores are cached by text"
        return f"its score of a text depends on the other texts of the list {checked}, so lists are scored whole"

    def split_at_checks(self, todo: list[int]) -> Iterator[tuple[list[int], bool]]:
        """Yield the work up to each check, and whether a check is due after it; work must be done when yielded."""
        while todo:
            part, todo = todo[: self.next_check - self.scored], todo[self.next_check - self.scored :]
            self.scored += len(part)
            due = self.scored >= self.next_check
            if due:
                self.next_check = int(self.next_check * CHECK_GROWTH)
            yield part, due

    def find_dependence(self, ask: AskRanker, scored: Iterable[ScoredPair]) -> str | None:
        """Return a query for which the score of a text depends on the other texts; None if none was found."""
        wanted = _draw_other_lists(scored)
        if not wanted:
            return None
        slates = [slate for slate, _ in wanted]
        answers = ask(slates)
        if _find_difference(wanted, answers, self.noise) is None:
            return None
        again = ask(slates)  # the ranker may have become noisier since the detection
        self.noise = max(self.noise, *(_largest_difference(a, b) for a, b in zip(answers, again, strict=True)))
        return _find_difference(wanted, answers, self.noise)


@dataclass
class PointwiseDetection:
    """The evidence on all rankers of an engine, by their names in cache keys."""

    checks: dict[tuple[str, ...], PointwiseCheck] = field(default_factory=dict)
    _refuted: dict[str, PointwiseCheck] = field(default_factory=dict)
    """The refuted rankers by their names in results: another collection may open them as other objects."""

    def resolve_traits(self, traits: RankerTraits, key: tuple[str, ...]) -> RankerTraits:
        """Return the traits of a ranker that does not declare `pointwise`, with what was found."""
        check = self.checks.get(key)
        if check is None or not check.pointwise:
            return traits
        # scores that differ between batches would depend on the chunks, so near scores must tie
        return replace(traits, pointwise=True, detected=True, noise=max(traits.noise, 2 * check.list_effect))

    def resolve(
        self,
        name: str,
        key: tuple[str, ...],
        store: Store | None,
        ask: AskRanker,
        make_lists: Callable[[], Sequence[Slate]],
    ) -> list[tuple[Slate, Scores]]:
        """Check a ranker, unless it was checked before; return lists with scores that may be cached by text."""
        if key in self.checks:
            return []
        if check := self._refuted.get(name) or _read_check(store, key):
            self.checks[key] = check
            return []
        self.checks[key] = PointwiseCheck(False)
        with suppress(RankerFailed):  # the ranker fails again when it is used, and that failure is reported
            self.checks[key], scored = detect_pointwise(ask, make_lists())
            return scored if self.checks[key].pointwise else []
        return []

    def store_check(self, key: tuple[str, ...], store: Store | None) -> None:
        """Write the evidence on a ranker to the store, for later runs, unless the store has it."""
        if _read_check(store, key) is None:
            _write_check(store, key, self.checks[key])

    def refute(
        self, name: str, key: tuple[str, ...], query: str, store: Store | None
    ) -> tuple[PointwiseCheck, list[bytes]]:
        """Record that a ranker is list-wise, delete its scores from the store, and return their cache keys."""
        wrong = self.checks[key]
        sentence = (
            f"it seemed to score each text alone, but for the query {quote_value(query)} its score of a text depends "
            "on the other texts; its scores were discarded, and lists are scored whole"
        )
        check = PointwiseCheck(False, wrong.list_count, refutation=sentence)
        self.checks[key] = self._refuted[name] = check
        _write_check(store, key, check)
        if store is not None:
            store.delete(wrong.keys)
        return check, wrong.keys


def _read_check(store: Store | None, key: tuple[str, ...]) -> PointwiseCheck | None:
    stored_key = digest_texts(b"pointwise", *key)
    known = store.get([stored_key]).get(stored_key) if store else None
    return None if known is None else PointwiseCheck(*struct.unpack(STORED_FORMAT, known))


def _write_check(store: Store | None, key: tuple[str, ...], check: PointwiseCheck) -> None:
    if store is not None and check.list_count:
        value = struct.pack(STORED_FORMAT, check.pointwise, check.list_count, check.noise, check.list_effect)
        store.put([(digest_texts(b"pointwise", *key), value)])


def detect_pointwise(ask: AskRanker, lists: Sequence[Slate]) -> tuple[PointwiseCheck, list[tuple[Slate, Scores]]]:
    """Return the evidence from a few lists, and these lists with their scores.

    Each composition is one call of the ranker: a ranker may also use the other lists of a call.
    """
    some = [Slate(one.query, one.docs[:CHECKED_DOCUMENTS]) for one in lists if len(one.docs) > 1][:CHECKED_LISTS]
    if not some:
        return PointwiseCheck(False), []
    whole = list(ask(some[:1]))
    noise = _largest_difference(whole[0], ask(some[:1])[0])
    whole += ask(some[1:]) if some[1:] else []
    halves = ask([half for one in some for half in _halve(one)])
    in_parts = [np.concatenate(halves[2 * i : 2 * i + 2]) for i in range(len(some))]
    turned = ask([Slate(one.query, one.docs[::-1]) for one in reversed(some)])
    in_reverse = [scores[::-1] for scores in reversed(turned)]
    check = PointwiseCheck(noise <= MAX_NOISE_SHARE * float(np.ptp(whole[0])), len(some), noise)
    for other in (in_parts, in_reverse):
        for expected, scores in zip(whole, other, strict=True):
            check.pointwise &= _agree(expected, scores, noise)
            effect = np.abs(scores - expected) / np.maximum(1.0, np.abs(expected))
            check.list_effect = max(check.list_effect, float(effect.max()))
    return check, list(zip(some, whole, strict=True))


def _halve(slate: Slate) -> tuple[Slate, Slate]:
    middle = len(slate.docs) // 2
    return Slate(slate.query, slate.docs[:middle]), Slate(slate.query, slate.docs[middle:])


def _draw_other_lists(scored: Iterable[ScoredPair]) -> list[tuple[Slate, Scores]]:
    """Return lists of texts in another composition than before, with their known scores.

    A list has the texts with the lowest scores of a query, because a list-wise score often depends on the best text,
    and begins with a text of another query, whose score is NaN.
    """
    by_query: dict[str, list[tuple[float, Doc]]] = {}
    for query, doc, score in scored:
        by_query.setdefault(query, []).append((score, doc))
    queries = list(by_query)
    step = -(-len(queries) // RECHECKED_QUERIES) or 1
    wanted = []
    for i in range(0, len(queries), step):
        lowest = sorted(by_query[queries[i]], key=lambda entry: entry[0])[:RECHECKED_DOCUMENTS]
        companion = by_query[queries[i - 1]][0][1]
        slate = Slate(queries[i], (companion, *(doc for _, doc in lowest)))
        wanted.append((slate, np.array([np.nan, *(score for score, _ in lowest)])))
    return wanted


def _find_difference(wanted: Sequence[tuple[Slate, Scores]], answers: Sequence[Scores], noise: float) -> str | None:
    for (slate, expected), scores in zip(wanted, answers, strict=True):
        known = ~np.isnan(expected)
        if not _agree(expected[known], scores[known], noise):
            return slate.query
    return None


def _agree(expected: Scores, scores: Scores, noise: float) -> bool:
    """Return True if scores of the same texts differ by no more than rounding and noise."""
    scale = max(float(np.abs(expected).max(initial=0)), float(np.abs(scores).max(initial=0)))
    return _largest_difference(expected, scores) <= TOLERANCE * scale + 2 * noise


def _largest_difference(one: Scores, other: Scores) -> float:
    return float(np.abs(one - other).max(initial=0))
