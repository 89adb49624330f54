"""Healthy servers, and servers with one planted fault each."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from math import exp, log, sqrt
from threading import Lock
from typing import Any
from zlib import crc32

from tests.servers import Answer, rows

from shaketable.core.documents import Doc, Slate
from shaketable.core.registries import RANKERS
from shaketable.datasets.known_answers import build_question_collection

Scorer = Callable[[str, str], float]
"""A function from a query and a text to a score."""
Rescore = Callable[[list[float]], list[float]]
MAX_QUERY_WORDS = 8


def split_words(text: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in text.lower()).split()


def score_coverage(query: str, text: str) -> float:
    """Return the weighted share of the query words in the text; long queries are truncated, as in many models."""
    words, found = split_words(query)[:MAX_QUERY_WORDS], set(split_words(text))
    return sum(log(2 + len(word)) * (word in found) for word in words) / max(1, len(words))


def count_trigrams(text: str) -> Counter[str]:
    joined = " ".join(split_words(text))
    return Counter(joined[i : i + 3] for i in range(len(joined) - 2))


def score_trigrams(query: str, text: str) -> float:
    """Return the cosine of the trigram counts."""
    one, other = count_trigrams(query), count_trigrams(text)
    sizes = sqrt(sum(n * n for n in one.values()) * sum(n * n for n in other.values()))
    return sum(n * other[part] for part, n in one.items()) / sizes if sizes else 0.0


def open_scorer(spec: str) -> Scorer:
    """Return a built-in ranker as a scorer of single texts."""
    ranker = RANKERS.build(spec).open(build_question_collection())
    lock = Lock()  # a ranker is called by one thread at a time

    def score(query: str, text: str) -> float:
        with lock:
            return float(ranker.score([Slate(query, (Doc(text),))])[0][0])

    return score


@lru_cache(maxsize=1)
def open_bases() -> Mapping[str, Scorer]:
    bases = {
        "bm25": open_scorer("bm25"),
        "ql": open_scorer("ql"),
        "coverage": score_coverage,
        "trigrams": score_trigrams,
        "bm25(b=0)": open_scorer("bm25(b=0)"),
    }
    return {name: lru_cache(maxsize=None)(base) for name, base in bases.items()}


def sigmoid(scores: list[float]) -> list[float]:
    return [1 / (1 + exp(-score)) for score in scores]


def softmax(scores: list[float]) -> list[float]:
    sizes = [exp(score - max(scores)) for score in scores]
    return [size / sum(sizes) for size in sizes]


def add_noise(rng: random.Random, scores: list[float]) -> list[float]:
    return [score + rng.gauss(0, 0.02) for score in scores]


def make_healthy() -> dict[str, Callable[[int], PlantedServer]]:
    """Return 30 healthy servers: five scorers with six forms of scores."""
    forms: dict[str, Callable[[int], Rescore]] = {
        "raw": lambda seed: list,
        "sigmoid": lambda seed: sigmoid,
        "softmax over the list": lambda seed: softmax,
        "noise": lambda seed: partial(add_noise, random.Random(seed)),
        "three digits": lambda seed: lambda scores: [round(score, 3) for score in scores],
        "negative": lambda seed: lambda scores: [score - 100 for score in scores],
    }
    return {
        f"{base}, {form}": lambda seed, base=base, form=form: PlantedServer(base, seed, rescore=forms[form](seed))
        for base, form in product(open_bases(), forms)
    }


@dataclass
class PlantedServer:
    """A server in Cohere's format: a scorer, a change of its scores, and a change of whole answers."""

    base: str
    seed: int = 0
    rescore: Rescore = list
    score: Callable[[Scorer, str, str], float] | None = None
    change: Callable[[random.Random, list[str], list[float]], list[float] | None] | None = None
    """Changes the scores of one answer; None leaves out the last result."""

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)

    def score_list(self, query: str, texts: list[str]) -> list[float] | None:
        scorer = open_bases()[self.base]
        one = self.score or (lambda base, query, text: base(query, text))
        scores = self.rescore([one(scorer, query, text) for text in texts])
        return self.change(self._rng, texts, scores) if self.change else scores

    def __call__(self, nth: int, body: Any) -> Answer:
        texts = body["documents"]
        scores = self.score_list(body["query"], texts)
        if scores is None:
            scores = [0.0] * (len(texts) - 1)
        ranked = sorted(enumerate(scores), key=lambda row: -row[1])
        return 200, rows(*ranked), {}


def fail_open(share: float, answer: Callable[[int], list[float] | None], longer_than: int = 4) -> Any:
    """Return a change that replaces a share of the answers to longer lists."""

    def change(rng: random.Random, texts: list[str], scores: list[float]) -> list[float] | None:
        return answer(len(texts)) if len(texts) > longer_than and rng.random() < share else scores

    return change


def hash_to_number(text: str) -> float:
    """Return a fixed random number between -1 and 1 for a text."""
    return crc32(text.encode()) / 2**31 - 1


def score_untrained(base: Scorer, query: str, text: str) -> float:
    return 0.02 * hash_to_number("head") * 8 * (1 if base(query, text) > 1 else -1) + 0.002 * hash_to_number(
        query + text
    )


def score_with_prefix(query_prefix: str, base: Scorer, query: str, text: str) -> float:
    """Score like a model that was trained with prefixes: without them, the scores are mostly noise."""
    if query.startswith(query_prefix):
        return base(query.removeprefix(query_prefix), text)
    return 0.2 * base(query, text) + 2.5 * hash_to_number(f"{query}|{text}")


def score_segments(noise: float, base: Scorer, first: str, second: str) -> float:
    """Score like a cross-encoder that was trained with queries as the first segment."""
    score = base(first, second)
    return score if len(first) < len(second) else 0.4 * score + noise * hash_to_number(f"{first}|{second}")


def score_truncated(words: int, base: Scorer, query: str, text: str) -> float:
    return base(query, " ".join(text.split()[:words]))


def shift_by_padding(rng: random.Random, texts: list[str], scores: list[float]) -> list[float]:
    """Change each score by the padding of its text, as a model without an attention mask does."""
    longest = max(len(text.split()) for text in texts)
    return [s - 0.01 * abs(s) * min(longest - len(t.split()), 60) for s, t in zip(scores, texts, strict=True)]


def scale_batches(rng: random.Random, texts: list[str], scores: list[float]) -> list[float]:
    return [score * 0.9 for score in scores] if len(texts) > 1 else scores


def prefer_first(weight: float, rng: random.Random, texts: list[str], scores: list[float]) -> list[float]:
    return [score - weight * i for i, score in enumerate(scores)]


def score_by_position(n: int) -> list[float]:
    return [1 - i / 100 for i in range(n)]


def make_broken() -> list[tuple[str, str, Callable[[int], PlantedServer]]]:
    """Return 30 broken servers: the kind of the fault, a description, and the server by seed."""
    changed: list[tuple[str, str, str, Any]] = [
        ("fails open", "3 %, input order", "bm25", fail_open(0.03, score_by_position)),
        ("fails open", "3 %, score 0.5", "coverage", fail_open(0.03, lambda n: [0.5] * n)),
        ("fails open", "5 %, score 0", "trigrams", fail_open(0.05, lambda n: [0.0] * n)),
        ("fails open", "5 %, fewer results", "ql", fail_open(0.05, lambda n: None)),
        ("fails open", "10 %, input order", "coverage", fail_open(0.1, score_by_position)),
        ("fails open", "always, from 16 texts", "bm25", fail_open(1.0, score_by_position, 15)),
        ("input order", "always", "bm25", lambda rng, texts, scores: score_by_position(len(texts))),
        ("input order", "sorted without indexes", "ql", lambda rng, texts, scores: sorted(scores)[::-1]),
        ("constant scores", "0", "bm25", lambda rng, texts, scores: [0.0 for _ in texts]),
        ("constant scores", "0.5", "bm25", lambda rng, texts, scores: [0.5 for _ in texts]),
        ("inverted scores", "negative", "bm25", lambda rng, texts, scores: [-s for s in scores]),
        ("inverted scores", "distance", "trigrams", lambda rng, texts, scores: [1 - s for s in scores]),
        ("random answers", "noise", "bm25", lambda rng, texts, scores: [rng.random() for _ in texts]),
        ("order dependence", "earlier is better", "bm25", partial(prefer_first, 1.0)),
        ("order dependence", "later is better", "coverage", partial(prefer_first, -0.3)),
        ("order dependence", "weak", "ql", partial(prefer_first, 0.1)),
        ("batch differs", "padding", "bm25", shift_by_padding),
        ("batch differs", "padding", "coverage", shift_by_padding),
        ("batch differs", "single requests", "ql", scale_batches),
    ]
    scored: list[tuple[str, str, str, Any]] = [
        ("swapped roles", "", "bm25", lambda base, query, text: score_segments(2.5, base, text, query)),
        ("swapped roles", "", "ql", lambda base, query, text: score_segments(0.7, base, text, query)),
        ("untrained head", "tiny logits", "bm25", score_untrained),
        ("untrained head", "tiny logits", "bm25(b=0)", score_untrained),
        ("missing template", "E5", "bm25", partial(score_with_prefix, "query: ")),
        ("missing template", "Nomic", "ql", partial(score_with_prefix, "search_query: ")),
        ("missing template", "BGE", "bm25", partial(score_with_prefix, "Represent this sentence")),
        ("truncation", "16 words", "bm25", partial(score_truncated, 16)),
        ("truncation", "40 words", "ql", partial(score_truncated, 40)),
        ("query ignored", "", "bm25", lambda base, query, text: hash_to_number(text)),
        ("wrong answers", "another model", "bm25", lambda base, query, text: hash_to_number(f"{query}|{text}")),
    ]
    return [
        *(
            (kind, f"{base}, {what}", lambda seed, base=base, change=change: PlantedServer(base, seed, change=change))
            for kind, what, base, change in changed
        ),
        *(
            (kind, f"{base}, {what}", lambda seed, base=base, score=score: PlantedServer(base, seed, score=score))
            for kind, what, base, score in scored
        ),
    ]
