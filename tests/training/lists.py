"""Feature data that tests of learners share."""

from __future__ import annotations

import numpy as np

from shaketable.datasets.letor import Letor


def letor(*lists: list[tuple[int, list[float]]], names: tuple[str, ...] = ()) -> Letor:
    """Return queries q0, q1, ... of rows (label, features)."""
    rows = [row for rows in lists for row in rows]
    return Letor(
        np.array([features for _, features in rows], np.float32),
        np.array([label for label, _ in rows], np.int64),
        np.cumsum([0] + [len(rows) for rows in lists]),
        tuple(f"q{i}" for i in range(len(lists))),
        tuple(f"d{i}" for i in range(len(rows))),
        names,
    )


def make_planted_lists(queries: int = 40, docs: int = 12, dims: int = 6, seed: int = 0, noise: float = 0.5) -> Letor:
    """Return lists with grades 0 to 2, which depend on the first two features and noise."""
    rng = np.random.default_rng(seed)
    features = rng.random((queries * docs, dims)).astype(np.float32)
    worth = 2 * features[:, 0] - features[:, 1] + noise * rng.normal(size=len(features))
    labels = np.digitize(worth, np.quantile(worth, [0.6, 0.9]))
    starts = np.arange(queries + 1) * docs
    qids, docnos = tuple(f"q{i}" for i in range(queries)), tuple(f"d{i}" for i in range(len(features)))
    return Letor(features, labels, starts, qids, docnos)


def nothing_to_learn() -> Letor:
    """Return a query with one document, and one whose documents have the same label."""
    return letor([(2, [0.5])], [(1, [0.1]), (1, [0.9])])
