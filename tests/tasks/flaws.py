"""Rankers of the bundled sample that are sound by construction, and copies with one flaw each.

A sound ranker scores by the judgements, with a little noise for each query and document. It recognises a changed
document by its words. A flaw acts on all queries, or on a seeded quarter of them.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from shaketable.core.documents import Collection
from shaketable.core.seeding import make_item_rng
from shaketable.datasets.sample import read_sample
from shaketable.experiment import Experiment

PENALTY = 10.0
"""More than any difference of two sound scores."""


def normalise(text: str) -> frozenset[str]:
    """Return the words of a text without case, accents and Unicode form."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    return frozenset(re.findall("[a-z]{2,}", "".join(c for c in plain if not unicodedata.combining(c))))


@cache
def sample() -> Collection:
    return read_sample()


@cache
def documents_by_word() -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for docno, doc in sample().docs.items():
        for word in normalise(doc.text):
            found.setdefault(word, []).append(docno)
    return found


@cache
def recognise(text: str) -> str:
    """Return the document that shares most words with the text."""
    known = documents_by_word()
    return max(Counter(docno for word in normalise(text) for docno in known.get(word, ())).items(), key=lambda x: x[1])[
        0
    ]


@cache
def is_affected(query: str, share: float) -> bool:
    """Whether the flaw acts on the query: exactly the given share of the test queries, drawn by seed."""
    texts = sorted(sample().queries[qid].text for qid in sample().splits["test"])
    return query in make_item_rng(7, "affected").permutation(texts)[: round(share * len(texts))]


@cache
def score_soundly(query: str, docno: str) -> float:
    qid = next(qid for qid, known in sample().queries.items() if known.text == query)
    return sample().qrels[qid].get(docno, 0) + 0.9 * make_item_rng(3, "sound", qid, docno).random()


Flaw = Callable[[str, str, float], float]
"""What a flaw makes of a query, a text and its sound score."""


@dataclass
class Planted:
    """A ranker that scores soundly, but for its flaw on a share of the queries."""

    flaw: Flaw | None = None
    share: float = 1.0
    pointwise: bool = True
    name: str = "planted"

    def open(self, collection):
        return self

    def score(self, slates):
        return [
            self.adjust(slate.query, np.array([self._score(slate.query, d.text) for d in slate.docs]))
            for slate in slates
        ]

    def _score(self, query: str, text: str) -> float:
        score = score_soundly(query, recognise(text))
        return self.flaw(query, text, score) if self.flaw and is_affected(query, self.share) else score

    def adjust(self, query, scores):
        return scores


class OrderBiased(Planted):
    """Scores that sink with the input position."""

    def adjust(self, query, scores):
        return scores - PENALTY * np.arange(len(scores)) if is_affected(query, self.share) else scores


class Noisy(Planted):
    """Scores that are new with every call."""

    calls = 0

    def adjust(self, query, scores):
        self.calls += 1
        noise = make_item_rng(self.calls, "noise")
        return scores + [2 * noise.random() for _ in scores] if is_affected(query, self.share) else scores


class Saturated(Planted):
    """Scores that are rounded and cut off at 1."""

    def adjust(self, query, scores):
        return np.minimum(1.0, np.round(scores)) if is_affected(query, self.share) else scores


class ListNormalised(Planted):
    """Scores divided by the best of the list, declared as pointwise: no shuffle shows it."""

    def adjust(self, query, scores):
        return scores / scores.max()


def experiment(ranker: Planted, **more) -> Experiment:
    return Experiment(sample(), {"planted": ranker}, split="test", seed=1, **more)
