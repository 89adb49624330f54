"""Natural, boundary and robust ranking error of one query's list.

Liu, Zhang, Zhang, Chen, de Rijke, Guo, Cheng. Perturbation-invariant adversarial training for neural ranking models:
Improving the effectiveness-robustness trade-off. AAAI 2024, definitions of the errors and Theorem 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shaketable.core.errors import BadInput


@dataclass(frozen=True)
class RankingError:
    """The errors of one list as shares of its documents; the last two also as shares of the attacked documents.

    `natural` is the share of documents that are not at a true rank, `boundary` the share that are, but whose attacked
    text is not, and `robust` their sum. `bound` is the share whose attacked text changes its rank at all;
    `boundary` never exceeds it (Theorem 1). An attack can show that a harmful text exists but not that none does, so
    `boundary`, `robust` and `bound` are lower bounds of the paper's definitions unless every text was tried. A document
    that was not attacked counts as unmoved. Shares of nothing are NaN.
    """

    natural: float
    boundary: float
    robust: float
    bound: float
    boundary_attacked: float
    bound_attacked: float
    documents: int
    attacked: int


def find_true_rank_ranges(ranking: Sequence[str], grades: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Return the first and the last true rank of each document: those of the block of its grade.

    The documents are ordered by grade, and documents of one grade may have any order. Without a judgement, or with a
    grade below 0, a document has grade 0.

    >>> find_true_rank_ranges(["a", "b", "c", "d"], {"b": 1, "c": 2, "d": 1})
    {'a': (4, 4), 'b': (2, 3), 'c': (1, 1), 'd': (2, 3)}
    """
    if len(set(ranking)) < len(ranking):
        raise BadInput("a ranking contains a document twice")
    known = {docno: max(grades.get(docno, 0), 0) for docno in ranking}
    blocks, last = {}, 0
    for grade, size in sorted(Counter(known.values()).items(), reverse=True):
        blocks[grade] = last + 1, last + size
        last += size
    return {docno: blocks[grade] for docno, grade in known.items()}


def ranking_error(
    ranking: Sequence[str], grades: Mapping[str, int], attacked_ranks: Mapping[str, Sequence[int]]
) -> RankingError:
    """Return the errors of a list, best document first, from the ranks of attacked texts in it.

    `attacked_ranks` holds, for each attacked document, the ranks, from 1, of the texts that replaced it, one at a time.
    A document at its true rank crosses the boundary if such a text ranks above its block or, for a document of the
    best grade, below its block.

    >>> found = ranking_error(["a", "b", "c"], {"a": 2, "b": 1}, {"a": [1], "c": [1, 3]})
    >>> found.natural, round(found.boundary, 3), found.boundary_attacked
    (0.0, 0.333, 0.5)
    """
    blocks, count = find_true_rank_ranges(ranking, grades), len(ranking)
    for docno, ranks in attacked_ranks.items():
        if docno not in blocks:
            raise BadInput(f"the document {docno} was attacked, but it is not in the list")
        if wrong := [rank for rank in ranks if not 1 <= rank <= count]:
            raise BadInput(f"the document {docno} reached rank {wrong[0]} of a list of {count}")
    rank_of = {docno: rank for rank, docno in enumerate(ranking, start=1)}
    right = {docno for docno, (first, last) in blocks.items() if first <= rank_of[docno] <= last}
    crossing = sum(
        docno in right and any(_crosses_boundary(rank, *blocks[docno]) for rank in ranks)
        for docno, ranks in attacked_ranks.items()
    )
    moved = sum(any(rank != rank_of[docno] for rank in ranks) for docno, ranks in attacked_ranks.items())
    return RankingError(
        natural=_share(count - len(right), count),
        boundary=_share(crossing, count),
        robust=_share(count - len(right) + crossing, count),
        bound=_share(moved, count),
        boundary_attacked=_share(crossing, len(attacked_ranks)),
        bound_attacked=_share(moved, len(attacked_ranks)),
        documents=count,
        attacked=len(attacked_ranks),
    )


def _crosses_boundary(rank: int, first: int, last: int) -> bool:
    """Return True if a document with these true ranks passed its neighbour above, or below for the best block.

    The neighbour's rank is first - 1, and last + 1 for the best block; the paper's product of differences from it is
    0 or less exactly there.
    """
    return rank > last if first == 1 else rank < first


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")
