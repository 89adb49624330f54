"""The representations of a list's documents in a neural ranker, before and after an attack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shaketable.core.attack_types import AdversarialDocument
from shaketable.measures.projection import tsne

if TYPE_CHECKING:
    import pandas as pd

    from shaketable.attacks.target import Target
    from shaketable.experiment import Experiment

Vectors = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ListRepresentations:
    """The inputs of the last layer of a neural ranker for a list, and for the texts that attacks changed."""

    query: str
    docnos: tuple[str, ...]
    vectors_before: Vectors
    """[documents, d]"""
    changed_indices: tuple[int, ...]
    """The indices of the documents that attacks changed."""
    vectors_after: Vectors
    """[changed documents, d]"""
    relevant: frozenset[str] = frozenset()
    scores: tuple[float, ...] = ()
    """The scores of the documents before the attack; empty if they are unknown."""


def represent_lists(
    experiment: Experiment, name: str, target: Target, attacked: Sequence[AdversarialDocument]
) -> Iterator[ListRepresentations]:
    """Yield the representations of the first list and of each list with changed documents, if the ranker provides them.

    A representation is the input of the last layer: `rankers.neural.scoring.NeuralRanker.represent_pairs`.
    """
    represent_pairs = getattr(experiment.get_ranker(name), "represent_pairs", None)
    by_query: dict[str, list[AdversarialDocument]] = {next(iter(target.target_lists)): []}
    for one in attacked:
        for qid in one.queries:
            by_query.setdefault(qid, []).append(one)
    for qid, some in by_query.items():
        if represent_pairs is None:
            return
        pool = target.target_lists[qid]
        found = represent_pairs([(pool.query, doc.text) for doc in (*pool.docs, *(one.doc for one in some))])
        if found is None:
            return
        before, after = np.split(found.astype(np.float64), [len(pool.docs)])
        changed = tuple(pool.index_by_docno[one.docno] for one in some)
        relevant = frozenset(docno for docno, grade in experiment.qrels.get(qid, {}).items() if grade > 0)
        scores = tuple(map(float, pool.scores))
        yield ListRepresentations(pool.query, pool.docnos, before, changed, after, relevant, scores)


def displacement(lists: Iterable[ListRepresentations]) -> float:
    """Return the distance of changed texts from their originals, in mean distances of two documents of the list.

        mean over changed documents of  |φ(q, d') - φ(q, d)| / mean over pairs of the list of |φ(q, d_i) - φ(q, d_j)|

    The result is NaN if nothing was changed. Figure 2 of paper 003 shows it.

    >>> line = np.array([[0.0], [1.0], [2.0]])
    >>> displacement([ListRepresentations("q", ("a", "b", "c"), line, (2,), np.array([[0.0]]))])  # 2 of 4/3
    1.5
    """
    from scipy.spatial.distance import pdist

    shares: list[float] = []
    for one in lists:
        moved = np.linalg.norm(one.vectors_after - one.vectors_before[list(one.changed_indices)], axis=1)
        spread = float(pdist(one.vectors_before).mean()) if len(one.vectors_before) > 1 else 0.0
        shares += (moved / spread).tolist() if spread else []
    return float(np.mean(shares)) if shares else nan


def build_representation_map(representations: ListRepresentations) -> pd.DataFrame:
    """Return t-SNE coordinates of the documents of a list, with their scores, and of its changed texts."""
    import pandas as pd

    text_roles = [
        "original" if number in representations.changed_indices else "other"
        for number in range(len(representations.docnos))
    ]
    moved = [representations.docnos[number] for number in representations.changed_indices]
    documents = [*representations.docnos, *moved]
    scores = representations.scores or (nan,) * len(representations.docnos)
    return pd.DataFrame(
        {
            "query": representations.query,
            "document": documents,
            "text": [*text_roles, *["attacked"] * len(moved)],
            "relevant": ["★" if docno in representations.relevant else "" for docno in documents],
            "score": [*scores, *(nan for _ in moved)],
            "pair": [docno if docno in moved else None for docno in documents],
            **dict(
                zip(
                    "xy",
                    tsne(np.concatenate([representations.vectors_before, representations.vectors_after])).T,
                    strict=True,
                )
            ),
        }
    )
