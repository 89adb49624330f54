"""Splits of queries into train, validation and test sets.

The split of a query depends on the seed and on the ids, not on the order of the queries.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from shaketable.core.documents import Collection
from shaketable.core.errors import BadInput
from shaketable.core.seeding import make_item_rng

TRAIN, VALIDATION, TEST = "train", "validation", "test"


@dataclass(frozen=True)
class Fold:
    """The train, validation and test queries of one fold."""

    train: tuple[str, ...]
    valid: tuple[str, ...]
    test: tuple[str, ...]


def make_folds(qids: Sequence[str], k: int = 5, seed: int = 0) -> list[Fold]:
    """Return k folds: each part is the test set once, the next part validates, the others train, as in LETOR.

    >>> [len(part) for part in vars(make_folds("abcdefghij", k=5)[0]).values()]
    [6, 2, 2]
    """
    if not 3 <= k <= len(qids):
        raise BadInput(
            f"{len(qids)} queries cannot be split into {k} folds; each fold needs train, validation and test queries"
        )
    order = shuffle_queries(qids, seed)
    positions = {qid: place for place, qid in enumerate(qids)}
    parts = [sorted(order[start::k], key=positions.__getitem__) for start in range(k)]
    dealt = []
    for i in range(k):
        rest = [qid for p in range(k) if p not in (i, (i + 1) % k) for qid in parts[p]]
        dealt.append(Fold(tuple(sorted(rest, key=positions.__getitem__)), tuple(parts[(i + 1) % k]), tuple(parts[i])))
    return dealt


def split_by_query(collection: Collection, ratio: str, seed: int = 0) -> Collection:
    """Return the collection with its judged queries split into train, validation and test, as in "60/20/20"."""
    numbers = [int(part) if re.fullmatch("[0-9]{1,3}", part) else -1 for part in ratio.split("/")]
    if len(numbers) != 3 or min(numbers) < 0 or sum(numbers) != 100 or not numbers[2]:
        raise BadInput(f"a split ratio is three percentages that sum to 100, such as 60/20/20, not {ratio!r}")
    judged = [qid for qid in collection.queries if collection.qrels.get(qid)]
    order = shuffle_queries(judged, seed)
    ends = [round(len(order) * sum(numbers[:i]) / 100) for i in range(4)]
    names = (TRAIN, VALIDATION, TEST)
    parts = {name: set(order[ends[i] : ends[i + 1]]) for i, name in enumerate(names)}
    empty = [name for name, share in zip(names, numbers, strict=True) if share and not parts[name]]
    if empty:
        raise BadInput(
            f"{collection.name} has too few judged queries ({len(judged)}) for {ratio}: {empty[0]} would be empty"
        )
    splits = {name: tuple(qid for qid in judged if qid in part) for name, part in parts.items() if part}
    return replace(collection, splits=splits)


def split_held_out(qids: Sequence[str], seed: int, share: float = 0.2) -> tuple[list[str], list[str]]:
    """Return the remaining queries and the held-out share; at least one query is held out."""
    if len(qids) < 2:
        raise BadInput(f"{len(qids)} queries are too few to learn from and to validate on")
    held = set(shuffle_queries(qids, seed, "valid")[: max(1, int(len(qids) * share))])
    return [qid for qid in qids if qid not in held], [qid for qid in qids if qid in held]


def find_validation_split(collection: Collection) -> str | None:
    """Return the name of the collection's validation split; None if it has none."""
    return next((name for name in (VALIDATION, "dev") if name in collection.splits), None)


def shuffle_queries(qids: Sequence[str], seed: int, purpose: str = "fold") -> list[str]:
    """Return the queries in an order that depends only on the seed and their ids."""
    return sorted(qids, key=lambda qid: (make_item_rng(seed, purpose, qid).random_bits(), qid))
