"""Compact letter displays: the pairs of systems that do not differ, as shared letters."""

from __future__ import annotations

from string import ascii_letters

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shaketable.core.errors import BadInput


def compute_letter_display(differ: ArrayLike) -> list[str]:
    """Return a compact letter display: the letters of each system, from a matrix of the pairs that differ.

    Two systems share a letter if, and only if, they do not differ. Each letter covers a maximal group of systems, and
    no letter is redundant. The number of letters need not be minimal, since minimising it is a hard problem. "a" comes
    first from the top; after "z" come capitals, then letters with a number.

    >>> compute_letter_display([[False, False, True], [False, False, False], [True, False, False]])
    ['a', 'ab', 'b']

    Piepho. An algorithm for a letter-based representation of all-pairwise comparisons. J. Comp. Graph. Stat. 2004.
    Gramm, Guo, Hüffner, Niedermeier, Piepho, Schmid. Algorithms for compact letter displays. CSDA 2007.
    """
    alike = ~np.asarray(differ, dtype=np.bool_)
    if alike.ndim != 2 or alike.shape[0] != alike.shape[1] or (alike != alike.T).any() or not alike.diagonal().all():
        raise BadInput(
            "letters need a symmetric matrix of the pairs of systems that differ; no system differs from itself"
        )
    count = len(alike)
    groups: list[NDArray[np.int64]] = []
    open_pairs = alike.copy()  # pairs not yet covered by a group, including each system with itself
    for system in range(count):
        while open_pairs[system].any():
            partner = int(np.flatnonzero(open_pairs[system])[0])
            group = _grow_group(sorted({system, partner}), alike, open_pairs)
            groups.append(group)
            open_pairs[np.ix_(group, group)] = False
    kept = _drop_redundant_groups(groups, count)
    kept.sort(key=lambda group: group.tolist())
    marks = [""] * count
    for number, group in enumerate(kept):
        for system in group.tolist():
            marks[system] += _format_letter(number)
    return marks


def _grow_group(members: list[int], alike: NDArray[np.bool_], open_pairs: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return a maximal group with these members; the system that covers most open pairs is added next."""
    while True:
        fit = np.asarray(alike[members].all(axis=0))
        fit[members] = False
        if not fit.any():
            break
        closes = np.where(fit, open_pairs[members].sum(axis=0), -1)
        members.append(int(closes.argmax()))
    return np.sort(np.array(members, dtype=np.int64))


def _drop_redundant_groups(groups: list[NDArray[np.int64]], count: int) -> list[NDArray[np.int64]]:
    """Return the groups without those whose pairs are all in other groups; the smallest are tried first."""
    times = np.zeros((count, count), dtype=np.int64)
    for group in groups:
        times[np.ix_(group, group)] += 1
    kept = []
    for group in sorted(groups, key=len):
        block = np.ix_(group, group)
        if (times[block] > 1).all():
            times[block] -= 1
        else:
            kept.append(group)
    return kept


def _format_letter(number: int) -> str:
    again, at = divmod(number, len(ascii_letters))
    return ascii_letters[at] + (str(again + 1) if again else "")
