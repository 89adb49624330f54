"""Adversarial training examples: documents of the queries to learn from, as an attack on the ranker itself left them.

An attack on a ranker in the wild sees places, and keeps what moves a document up. Here the ranker is our own, and of
what is wanted there is more than places tell: the neighbour of a document whose score gains most (paper 003, Eq. 10),
whether or not it passes another one. So attacks are shown a finer scale: the place of a score among all numbers that
float32 has. A document whose score nothing raised stays as it is.

What is made is kept under $SHAKETABLE_HOME/adversaries, named by all that it depends on, with a checksum: a file that
has changed is made again. It is made in parts of some queries, and a part that was finished is not made again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any

import numpy as np

from shaketable.attacks.drive import drive
from shaketable.attacks.goals import Promote
from shaketable.attacks.target import Scored, Target
from shaketable.chance import draws_for
from shaketable.data.attacked import read_attacked, write_attacked
from shaketable.errors import BadInput
from shaketable.files import digests, home, written_whole
from shaketable.registry import files_named
from shaketable.score.road import settled
from shaketable.types import (
    Attack,
    Attacked,
    Collection,
    Failure,
    Run,
    Watch,
    fingerprint,
    ranking,
    unwatched,
)

SCHEMA = "adversaries/1"
PART = 32
"""Queries of a part: what is lost at most when a process is killed."""


@dataclass(frozen=True)
class Examples:
    """Which adversarial examples are made: by which recipe, of how many documents a query, for how many queries.

    0 queries are all of them.
    """

    recipe: str = "white_wsra"
    documents: int = 10
    queries: int = 0


class OpenTarget(Target):
    """A target that shows scores: a document's place is that of its score among the numbers of float32.

    The order of its lists is what it was.
    """

    def standing(self, lists: Sequence[Scored]) -> list[int]:
        return [
            0 if scores is None else place_of(float(settled(scores, self.noise)[pool.number(docno)]))
            for pool, docno, scores in lists
        ]


def place_of(score: float) -> int:
    """The place of a score among all numbers that float32 has, from infinity at 1 down; scores are ranked by these.

    >>> place_of(float("inf")), place_of(0.0) == place_of(-0.0), place_of(1.0) - place_of(float(np.nextafter(
    ...     np.float32(1), np.float32(2))))
    (1, True, 1)
    """
    infinity, number = (int(np.float32(x).view(np.int32)) for x in (np.inf, score + 0.0))
    return 1 + infinity - (number if number >= 0 else -(number & 0x7FFFFFFF))


def by_score(target: Target) -> Target:
    """The same target, whose places tell the smallest differences in score."""
    return OpenTarget(target.score, target.pointwise, target.noise, target.pools)


Documents = Mapping[str, Sequence[str]]
"""query id -> the docnos to attack."""


def drawn(collection: Collection, candidates: Run, qids: Sequence[str], examples: Examples, seed: int) -> Documents:
    """The documents to attack: of each query some candidates that are not relevant, those that nobody judged included.

    A query with fewer than two candidates has no list to move in.
    """
    if examples.queries and examples.queries < len(qids):
        some = set(draws_for(seed, "adversaries, queries").shuffled(sorted(qids))[: examples.queries])
        qids = [qid for qid in qids if qid in some]
    chosen: dict[str, Sequence[str]] = {}
    for qid in qids:
        grades, listed = collection.qrels.get(qid, {}), ranking(candidates.get(qid, {}))
        fitting = [docno for docno in listed if grades.get(docno, 0) <= 0 and docno in collection.docs]
        if fitting and len(listed) > 1:
            draws = draws_for(seed, "adversaries, documents", qid)
            chosen[qid] = draws.shuffled(fitting)[: examples.documents]
    if not chosen:
        raise BadInput(
            f"collection {collection.name}: no query to learn from has candidates that are not relevant, so there is "
            "nothing to attack"
        )
    return chosen


@dataclass(frozen=True)
class Cost:
    """What adversarial examples cost: seconds, and pairs of a query and a text that the ranker was asked for."""

    seconds: float = 0.0
    pairs: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(round(self.seconds + other.seconds, 1), self.pairs + other.pairs)


@dataclass(frozen=True)
class Kept:
    """Adversarial examples on disk: the file, what is in it, and what they cost when they were made."""

    path: Path
    documents: int
    changed: int
    failed: int
    cost: Cost

    def about(self) -> dict[str, Any]:
        """The numbers, for the card of a model."""
        numbers = {"documents": self.documents, "changed": self.changed, "failed": self.failed}
        return numbers | {"seconds": self.cost.seconds, "pairs": self.cost.pairs}


@dataclass(frozen=True, eq=False)
class Making:
    """All that adversarial examples are made with; `attack` and `target` are opened when they are needed.

    `target` is given queries and hands out the ranker with their lists read. `mark` names the ranker and the
    candidates.
    """

    ranker: str
    mark: str
    collection: Collection
    recipe: str
    documents: Documents
    attack: Callable[[], Attack]
    target: Callable[[Sequence[str]], Target]
    seed: int = 0
    watch: Watch = unwatched

    @cached_property
    def path(self) -> Path:
        """Where they are kept."""
        docnos = [(qid, tuple(some)) for qid, some in self.documents.items()]
        recipe = self.recipe, digests(files_named(self.recipe))
        parts = (SCHEMA, self.mark, self.collection.fingerprint, recipe, docnos, self.seed)
        return home() / "adversaries" / f"{fingerprint(*parts)}.jsonl"

    def run(self, say: Callable[[str], None] = lambda message: None) -> Kept:
        """The examples, made now unless they are kept already; `say` is told how long it may take."""
        if not self._is_whole():
            self._make(say)
        rows = read_attacked(self.path)
        changed = sum(one.doc != self.collection.docs[one.docno] for one in rows)
        failed = sum(map(len, self.documents.values())) - len(rows)
        return Kept(self.path, len(rows), changed, failed, self._cost())

    def _make(self, say: Callable[[str], None]) -> None:
        attack: Attack | None = None
        rows: list[Attacked] = []
        qids = list(self.documents)
        count = sum(map(len, self.documents.values()))
        say(f"attacking {count:,} documents of {len(qids):,} queries with {self.recipe}, once; what is made is kept")
        for start in range(0, len(qids), PART):
            part = self._part(start)
            if part.is_file():
                rows += read_attacked(part)
                continue
            began = time.perf_counter()
            attack = attack or self.attack()
            found, pairs = self._attacked(attack, qids[start : start + PART])
            rows += found
            if found:
                write_attacked(found, part)
            seconds = time.perf_counter() - began
            self._note(self._cost() + Cost(seconds, pairs))
            if (left := len(qids) - start - PART) > 0 and start == 0:
                say(f"the first {PART} queries took {seconds:.0f} s, the others may take {seconds / PART * left:.0f} s")
        if not rows:
            raise BadInput(f"{self.recipe} failed on all documents that it was to attack, so there is nothing to learn")
        write_attacked(rows, self.path)
        self._note(self._cost(), _digest(self.path))
        self._tidy(range(0, len(qids), PART))

    def _is_whole(self) -> bool:
        """Are they there, as they were written?"""
        return self.path.is_file() and self._noted().get("checksum") == _digest(self.path)

    def _attacked(self, attack: Attack, qids: Sequence[str]) -> tuple[list[Attacked], int]:
        """The documents of some queries as the attack left them, and the pairs that were asked for."""
        plain = self.target(qids)
        fine = by_score(plain)
        docs = self.collection.docs
        wanted = [(docno, docs[docno], [qid]) for qid in qids if qid in plain.pools for docno in self.documents[qid]]
        cases = fine.cases(wanted, Promote())
        what = f"attacking with {self.recipe}"
        outcomes = drive(attack, cases, fine, seed=self.seed, watch=self.watch, what=what)
        done = [(c, o) for c, o in zip(cases, outcomes, strict=True) if not isinstance(o, Failure)]
        before = {case.name: case.places for case in plain.cases(wanted, Promote())}
        after = plain.places([(case, outcome.doc) for case, outcome in done])  # known by now
        rows = [
            Attacked(
                {case.lists[0].qid: case.query},
                case.docno,
                outcome.doc,
                case.doc,
                self.recipe,
                self.ranker,
                before[case.name],
                places or (),
                outcome.trials,
            )
            for (case, outcome), places in zip(done, after, strict=True)
        ]
        return rows, sum(len(pool.docnos) for pool in plain.pools.values()) + sum(o.pairs for _, o in done)

    def _part(self, start: int) -> Path:
        return self.path.with_suffix("") / f"part-{start:08}.jsonl"

    def _cost(self) -> Cost:
        noted = self._noted()
        return Cost(noted.get("seconds", 0.0), noted.get("pairs", 0))

    def _noted(self) -> dict[str, Any]:
        """What was written down so far; nothing, if that cannot be read."""
        with suppress(OSError, ValueError):
            noted = json.loads(self.path.with_suffix(".json").read_text(encoding="utf-8"))
            if isinstance(noted, dict):
                return noted
        return {}

    def _note(self, cost: Cost, checksum: str = "") -> None:
        with written_whole(self.path.with_suffix(".json")) as out:
            json.dump({"seconds": cost.seconds, "pairs": cost.pairs, "checksum": checksum}, out)

    def _tidy(self, starts: Iterable[int]) -> None:
        for start in starts:
            self._part(start).unlink(missing_ok=True)
        with suppress(OSError):
            self.path.with_suffix("").rmdir()


def _digest(path: Path) -> str:
    with path.open("rb") as raw:
        return file_digest(raw, lambda: blake2b(digest_size=16)).hexdigest()
