"""Perturbation sets: the words among which a smoothed ranker draws, and how far two such sets overlap.

    S_w   the synonyms of a word w: what an attack may write in its place
    P_w   the perturbation set of w: what the word is drawn from, w itself among them
    q_w   min over u in S_w of |P_w ∩ P_u| / |P_w|: the share of P_w that stays, whichever synonym is written

Synonyms make a graph. A component of it that has at most `most` words is the perturbation set of all its words, so that
q_w = 1: a substitution changes nothing at all. In a larger component each word has the `most` words of the component
that are nearest to it. A word without synonyms has P_w = {w}. So a word and its synonyms have sets of one size, and
q_w is 1 less the total variation between the two uniform distributions that are furthest apart.

Ye, Gong, Liu. SAFER: a structure-free approach for certified robustness to adversarial word substitutions. ACL 2020.
Wu, Zhang, Guo, Chen, Fan, de Rijke, Cheng. Certified robustness to word substitution ranking attack for neural ranking
models. CIKM 2022.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shaketable.errors import BadInput, quoted
from shaketable.registry import SYNONYMS
from shaketable.text.neighbours import TINY, Vectors
from shaketable.text.synonyms import Counterfitted, Synonyms

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Nearest: TypeAlias = Callable[[Ints], Iterable[Ints]]
"""The words of a component -> for each of them those that are nearest to it, itself first."""

TAU, MOST, DIRECTIONS = 0.9, 100, 8
"""The least similarity of synonyms, the words of a perturbation set, and the directions that vectors lose."""
ROWS = 512  # words compared with all others at a time
EDGES = 1 << 16  # pairs of synonyms whose sets are compared at a time
TOKEN = re.compile(r"\S+")
MARKS = frozenset(string.punctuation)
_DROP = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, eq=False)
class Sets:
    """The words of a collection that have synonyms, each with S_w, P_w and q_w.

    A word is looked up in lower case, and what is drawn is in lower case: were it written as the word that it replaces,
    an attack could tell the two by their case, and their sets would have nothing in common. A word without synonyms is
    kept to the letter, and so is one with other marks about it than one at its end, as in "(boat)": to write a synonym
    there is none of the substitutions that a certificate speaks of.
    """

    synonyms: Mapping[str, tuple[str, ...]]
    perturbations: Mapping[str, tuple[str, ...]]
    overlaps: Mapping[str, float]

    @cached_property
    def fingerprint(self) -> str:
        """Names the content of all perturbation sets, on which draws depend."""
        name = blake2b(digest_size=16)
        for word in sorted(self.perturbations):
            name.update(repr((word, self.perturbations[word])).encode("utf-8", "surrogatepass"))
        return name.hexdigest()

    def shares(self, *texts: str) -> Floats:
        """q_w of each word occurrence of texts; 1 for a word that has no synonyms."""
        found = (self.overlaps.get(text[a:b].lower(), 1.0) for text in texts for a, b in cores(text))
        return np.fromiter(found, np.float64)

    def draws(self, texts: Sequence[str], rng: np.random.Generator, count: int) -> list[tuple[str, ...]]:
        """Texts, usually a title and a body, as they are drawn from Π `count` times.

        Each word w of each text is replaced by a word of P_w, all alike and each for itself; all else stays. The first
        draws of many are those of few.
        """
        parts = [self._parts(text) for text in texts]
        sizes = np.array([len(some) for _, sets in parts for some in sets], dtype=np.float64)
        picks = (rng.random((count, len(sizes))) * sizes).astype(np.int64)
        return [tuple(_joined(parts, row)) for row in picks.tolist()]

    def pattern(self, text: str) -> str:
        """A text with the first word of its set in the place of each word.

        Texts of one pattern have the same draws from the same random numbers. A whole component has one first word, so
        a synonym in such a component leaves the pattern as it is; other sets begin with the word itself.
        """
        stays, sets = self._parts(text)
        return "".join(_joined([(stays, sets)], [0] * len(sets)))

    def fixed(self, *texts: str) -> bool:
        """Do texts keep their pattern, whichever synonyms are written in them?"""
        words = {text[a:b].lower() for text in texts for a, b in cores(text)}
        first = {word: self.perturbations[word][0] for word in words if word in self.synonyms}
        return all(self.perturbations[u][0] == own for word, own in first.items() for u in self.synonyms[word])

    def _parts(self, text: str) -> tuple[list[str], list[tuple[str, ...]]]:
        """What stays of a text, before, between and after the words that are drawn, and the sets of these."""
        stays, sets, last = [], [], 0
        for start, end in cores(text):
            if some := self.perturbations.get(text[start:end].lower()):
                stays.append(text[last:start])
                sets.append(some)
                last = end
        return [*stays, text[last:]], sets


def _joined(parts: list[tuple[list[str], list[tuple[str, ...]]]], picks: list[int]) -> Iterator[str]:
    at = 0
    for stays, sets in parts:
        words = [some[pick] for some, pick in zip(sets, picks[at : at + len(sets)], strict=True)]
        at += len(sets)
        yield "".join(piece for pair in zip(stays, [*words, ""], strict=True) for piece in pair)


def cores(text: str) -> list[tuple[int, int]]:
    """The places of a text's words: what stands between white space, but for one mark of punctuation at its end.

    >>> text = "A boat, (a ship!)"
    >>> [text[start:end] for start, end in cores(text)]
    ['A', 'boat', '(a', 'ship!']
    """
    return [(match.start(), match.end() - (match.group()[-1] in MARKS)) for match in TOKEN.finditer(text)]


def vocabulary(texts: Iterable[str]) -> Counter[str]:
    """How often each word occurs: texts in lower case, without punctuation, cut at white space.

    >>> vocabulary(["The boat, a Boat!"])
    Counter({'boat': 2, 'the': 1, 'a': 1})
    """
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text.lower().translate(_DROP).split())
    return counts


def sets_for(texts: Iterable[str], synonyms: str, tau: float = TAU, most: int = MOST) -> Sets:
    """The sets of the words of texts by a source of synonyms, which is given as a text such as "counterfitted".

    Of counter-fitted vectors the vectors count, by `tau`, and not the threshold and number of the source. Of all other
    sources, lists of neighbours among them, the lists count, and not `tau`.
    """
    source, counts = SYNONYMS.build(synonyms), vocabulary(texts)
    if isinstance(source, Counterfitted) and isinstance(near := source.neighbours, Vectors):
        return from_vectors(near, counts, tau, most)
    return from_lists(source, counts, most)


def from_vectors(
    vectors: Vectors, counts: Mapping[str, int], tau: float = TAU, most: int = MOST, directions: int = DIRECTIONS
) -> Sets:
    """The sets of words by their vectors.

        S_w = {u ≠ w : v_w · v_u > tau}

    where v are the vectors of the words that have one and are in `counts`, after `all_but_the_top`; both words occur
    more than once. A word with more than `most` synonyms in a component of more than `most` words is refused, as the
    authors' code has it: its set would leave out synonyms. Of words that are equally near the first by alphabet count.
    """
    words = sorted(word for word in counts if word in vectors.places)
    if not words:
        return Sets({}, {}, {})
    rows = all_but_the_top(vectors.rows[[vectors.places[word] for word in words]], directions)
    frequent = [i for i, word in enumerate(words) if counts[word] > 1]
    words, rows = [words[i] for i in frequent], rows[frequent]
    pairs = _alike(rows, tau)

    def nearest(members: Ints) -> Iterator[Ints]:
        degrees = np.bincount(pairs[:, 0], minlength=len(words))[members]
        if degrees.max() > most:
            word = quoted(words[members[degrees.argmax()]])
            what = f"{word} has {degrees.max():,} synonyms, and a perturbation set has {most:,} words at most"
            raise BadInput(f"{what}; raise tau, or the words of a set")
        space = rows[members]
        for start in range(0, len(members), ROWS):
            products = space[start : start + ROWS] @ space.T
            own = np.arange(len(products))
            products[own, start + own] = np.inf  # vectors have no length 1: a word need not be the nearest to itself
            yield from members[np.argsort(-products, axis=1, kind="stable")[:, :most]]

    return _sets(words, pairs, nearest, most)


def from_lists(source: Synonyms, counts: Mapping[str, int], most: int = MOST) -> Sets:
    """The sets of words by lists of synonyms, where there are no vectors to measure by.

    Two words that occur more than once are synonyms if one is in the list of the other. In a component of more than
    `most` words the set of a word is the word, its own list, those that have it in theirs by alphabet, then the same
    for each of these in their order, and so on until there are `most`.
    """
    words = sorted(word for word, count in counts.items() if count > 1)
    places = {word: i for i, word in enumerate(words)}
    lists = [[places[other] for other in source.of(word) if other in places] for word in words]
    listing: list[list[int]] = [[] for _ in words]
    for place, others in enumerate(lists):
        for other in others:
            listing[other].append(place)
    beside = [list(dict.fromkeys(own + back)) for own, back in zip(lists, listing, strict=True)]
    edges = [(place, other) for place, others in enumerate(beside) for other in others]

    def nearest(members: Ints) -> Iterator[Ints]:
        for place in members.tolist():
            reached = [place]
            for at in reached:  # which grows on the way
                fresh = [other for other in beside[at] if other not in reached]
                reached += fresh[: most - len(reached)]
                if len(reached) == most:
                    break
            yield np.array(reached, np.int64)

    return _sets(words, np.array(edges, np.int64).reshape(-1, 2), nearest, most)


def all_but_the_top(vectors: NDArray[np.floating], directions: int = DIRECTIONS) -> Floats:
    """Vectors without what most words have in common.

        v = x - μ - Σ_i (x · e_i) e_i

    x are the vectors with length 1, μ is their mean, and e_i are the first principal directions of x - μ. As in the
    authors' code it is the projection of x that is taken away, not that of x - μ, and v is not given length 1 again; so
    what is compared with `tau` is a product, and no cosine.

    Mu, Viswanath. All-but-the-top: simple and effective postprocessing for word representations. ICLR 2018.
    """
    rows = np.asarray(vectors, np.float64)
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), float(TINY))
    centred = unit - unit.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)  # the least first
    top = axes[:, ::-1][:, :directions]
    return np.asarray(centred - (unit @ top) @ top.T)


def _alike(rows: Floats, tau: float) -> Ints:
    """Pairs of words whose product is above tau, in both orders, by the first word.

    All pairs are compared in 32 bits, and those that may be above in 64.
    """
    single = rows.astype(np.float32)
    found = [np.empty((0, 2), np.int64)]
    for start in range(0, len(rows), ROWS):
        left, right = np.nonzero(single[start : start + ROWS] @ single[start:].T > tau - 1e-5)
        pairs = np.stack((left, right), axis=1)[left < right] + start
        above = np.einsum("ij,ij->i", rows[pairs[:, 0]], rows[pairs[:, 1]]) > tau
        found.append(pairs[above])
    pairs = np.concatenate(found)
    both = np.concatenate((pairs, pairs[:, ::-1]))
    return both[np.lexsort((both[:, 1], both[:, 0]))]


def _sets(words: Sequence[str], pairs: Ints, nearest: Nearest, most: int) -> Sets:
    """The sets of words whose synonyms are known as pairs, in both orders, by the first word."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count = len(words)
    graph = coo_array((np.ones(len(pairs), np.int8), (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    labels = connected_components(graph, directed=False)[1] if count else np.empty(0, np.int32)
    order = np.argsort(labels, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1) if count else []
    perturbations: dict[str, tuple[str, ...]] = {}
    chosen: dict[int, Ints] = {}
    for members in groups:
        if 1 < len(members) <= most:
            perturbations |= dict.fromkeys((words[i] for i in members), tuple(words[i] for i in members))
        elif len(members) > most:
            chosen |= dict(zip(members.tolist(), nearest(members), strict=True))
    perturbations |= {words[place]: tuple(words[i] for i in some) for place, some in chosen.items()}
    synonyms: dict[str, list[str]] = {}
    for place, other in pairs.tolist():
        synonyms.setdefault(words[place], []).append(words[other])
    overlaps = dict.fromkeys(synonyms, 1.0) | {words[i]: share for i, share in _shares(chosen, pairs, count).items()}
    return Sets({word: tuple(others) for word, others in synonyms.items()}, perturbations, overlaps)


def _shares(chosen: Mapping[int, Ints], pairs: Ints, count: int) -> dict[int, float]:
    """q_w of the words whose sets are not their whole component."""
    from scipy.sparse import csr_array

    if not chosen:
        return {}
    rows = np.full(count, -1, np.int64)
    rows[list(chosen)] = np.arange(len(chosen))
    sizes = np.array([len(some) for some in chosen.values()])
    columns = np.concatenate(list(chosen.values()))
    inside = csr_array(
        (np.ones(len(columns), np.int32), columns, np.append(0, np.cumsum(sizes))), shape=(len(chosen), count)
    )
    edges = rows[pairs[rows[pairs[:, 0]] >= 0]]
    least = np.ones(len(chosen))
    for start in range(0, len(edges), EDGES):
        left, right = edges[start : start + EDGES].T
        common = np.asarray(inside[left].multiply(inside[right]).sum(axis=1)).ravel()
        np.minimum.at(least, left, common / sizes[left])
    return dict(zip(chosen, least.tolist(), strict=True))
