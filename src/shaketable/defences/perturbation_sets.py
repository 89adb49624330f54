"""Perturbation sets: the words from which a smoothed ranker draws, and the overlap of two such sets.

    S_w   the synonyms of a word w, by which an attack may replace it
    P_w   the perturbation set of w, from which a word is drawn; it contains w
    q_w   min over u in S_w of |P_w ∩ P_u| / |P_w|: the share of P_w that stays for any synonym

Synonyms form a graph. A component with at most `max_set_words` words is the perturbation set of all its words, so
q_w = 1 and a substitution changes nothing. In a larger component the set of a word has the `max_set_words` words of the
component that are nearest to it. A word without synonyms has P_w = {w}. So a word and its synonyms have sets of the
same size, and q_w is 1 less the total variation between the two uniform distributions that differ most.

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

from shaketable.core.errors import BadInput, quote_value
from shaketable.core.registries import SYNONYMS
from shaketable.nlp.embedding_neighbours import SMALLEST_FLOAT, NeighbourVectors
from shaketable.nlp.synonyms import CounterfittedSynonyms, SynonymSource

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FindNearest: TypeAlias = Callable[[Ints], Iterable[Ints]]
"""The words of a component -> for each word the words nearest to it, itself first."""

DEFAULT_TAU, MAX_SET_WORDS, REMOVED_DIRECTIONS = 0.9, 100, 8
"""The least similarity of synonyms, the words of a perturbation set, and the directions removed from vectors."""
WORDS_PER_BLOCK = 512  # words compared with all others at a time
PAIRS_PER_BLOCK = 1 << 16  # pairs of synonyms whose sets are compared at a time
TOKEN_PATTERN = re.compile(r"\S+")
PUNCTUATION = frozenset(string.punctuation)
_DROP_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, eq=False)
class PerturbationSets:
    """The words of a collection that have synonyms, each with S_w, P_w and q_w.

    Words are looked up and drawn in lower case. If a drawn word had the case of the word that it replaces, words of
    different case would have disjoint sets. A word without synonyms is kept unchanged. So is a word with punctuation
    other than one mark at its end, such as "(boat)"; certificates do not cover its substitution.
    """

    synonyms: Mapping[str, tuple[str, ...]]
    perturbations: Mapping[str, tuple[str, ...]]
    overlaps: Mapping[str, float]

    @cached_property
    def fingerprint(self) -> str:
        """A name for the content of all perturbation sets, on which draws depend."""
        name = blake2b(digest_size=16)
        for word in sorted(self.perturbations):
            name.update(repr((word, self.perturbations[word])).encode("utf-8", "surrogatepass"))
        return name.hexdigest()

    def find_overlaps(self, *texts: str) -> Floats:
        """Return q_w of each word occurrence of texts; 1 for a word without synonyms."""
        found = (self.overlaps.get(text[a:b].lower(), 1.0) for text in texts for a, b in find_core_spans(text))
        return np.fromiter(found, np.float64)

    def sample_texts(self, texts: Sequence[str], rng: np.random.Generator, count: int) -> list[tuple[str, ...]]:
        """Draw `count` copies of texts, usually a title and a body, with each word w replaced by a random word of P_w.

        The words of P_w are equally likely, and words are drawn independently. A larger `count` starts with the same
        draws.
        """
        parts = [self._split_text(text) for text in texts]
        sizes = np.array([len(some) for _, sets in parts for some in sets], dtype=np.float64)
        picks = (rng.random((count, len(sizes))) * sizes).astype(np.int64)
        return [tuple(_join_parts(parts, row)) for row in picks.tolist()]

    def compute_pattern(self, text: str) -> str:
        """Return the text with each word replaced by the first word of its set.

        Texts with the same pattern have the same draws from the same random numbers. All words of a whole component
        share the first word, so a synonym in such a component does not change the pattern; other sets begin with the
        word itself.
        """
        stays, sets = self._split_text(text)
        return "".join(_join_parts([(stays, sets)], [0] * len(sets)))

    def has_fixed_pattern(self, *texts: str) -> bool:
        """Return True if no synonym changes the pattern of these texts."""
        words = {text[a:b].lower() for text in texts for a, b in find_core_spans(text)}
        first = {word: self.perturbations[word][0] for word in words if word in self.synonyms}
        return all(self.perturbations[u][0] == own for word, own in first.items() for u in self.synonyms[word])

    def _split_text(self, text: str) -> tuple[list[str], list[tuple[str, ...]]]:
        """Split a text into the parts before, between and after replaced words, and the sets of these words."""
        stays, sets, last = [], [], 0
        for start, end in find_core_spans(text):
            if some := self.perturbations.get(text[start:end].lower()):
                stays.append(text[last:start])
                sets.append(some)
                last = end
        return [*stays, text[last:]], sets


def _join_parts(parts: list[tuple[list[str], list[tuple[str, ...]]]], picks: list[int]) -> Iterator[str]:
    at = 0
    for stays, sets in parts:
        words = [some[pick] for some, pick in zip(sets, picks[at : at + len(sets)], strict=True)]
        at += len(sets)
        yield "".join(piece for pair in zip(stays, [*words, ""], strict=True) for piece in pair)


def find_core_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of the words of a text: separated by white space, without one punctuation mark at the end.

    >>> text = "A boat, (a ship!)"
    >>> [text[start:end] for start, end in find_core_spans(text)]
    ['A', 'boat', '(a', 'ship!']
    """
    return [(match.start(), match.end() - (match.group()[-1] in PUNCTUATION)) for match in TOKEN_PATTERN.finditer(text)]


def count_vocabulary(texts: Iterable[str]) -> Counter[str]:
    """Return the counts of the words of texts in lower case, without punctuation, split at white space.

    >>> count_vocabulary(["The boat, a Boat!"])
    Counter({'boat': 2, 'the': 1, 'a': 1})
    """
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text.lower().translate(_DROP_PUNCTUATION).split())
    return counts


def build_perturbation_sets(
    texts: Iterable[str], synonyms: str, tau: float = DEFAULT_TAU, max_set_words: int = MAX_SET_WORDS
) -> PerturbationSets:
    """Build the sets of the words of texts from a source of synonyms, given as a spec such as "counterfitted".

    Counter-fitted vectors are compared by `tau`; the source's own threshold and number are ignored. All other sources,
    including lists of neighbours, give lists; then `tau` is ignored.
    """
    source, counts = SYNONYMS.build(synonyms), count_vocabulary(texts)
    if isinstance(source, CounterfittedSynonyms) and isinstance(near := source.neighbours, NeighbourVectors):
        return build_from_vectors(near, counts, tau, max_set_words)
    return build_from_lists(source, counts, max_set_words)


def build_from_vectors(
    vectors: NeighbourVectors,
    counts: Mapping[str, int],
    tau: float = DEFAULT_TAU,
    max_set_words: int = MAX_SET_WORDS,
    directions: int = REMOVED_DIRECTIONS,
) -> PerturbationSets:
    """Build the sets of words from their vectors.

        S_w = {u ≠ w : v_w · v_u > tau}

    where v are the vectors of the words in `counts` that have one, after `all_but_the_top`; both words occur more than
    once. As in the authors' code, a word with more than `max_set_words` synonyms in a component of more than
    `max_set_words` words is refused, because its set would lack synonyms. Ties are broken alphabetically.
    """
    words = sorted(word for word in counts if word in vectors.row_numbers)
    if not words:
        return PerturbationSets({}, {}, {})
    rows = all_but_the_top(vectors.rows[[vectors.row_numbers[word] for word in words]], directions)
    frequent = [i for i, word in enumerate(words) if counts[word] > 1]
    words, rows = [words[i] for i in frequent], rows[frequent]
    pairs = _find_synonym_pairs(rows, tau)

    def find_nearest(members: Ints) -> Iterator[Ints]:
        degrees = np.bincount(pairs[:, 0], minlength=len(words))[members]
        if degrees.max() > max_set_words:
            word = quote_value(words[members[degrees.argmax()]])
            what = f"{word} has {degrees.max():,} synonyms, and a perturbation set has {max_set_words:,} words at most"
            raise BadInput(f"{what}; raise tau, or the maximum size of a set")
        space = rows[members]
        for start in range(0, len(members), WORDS_PER_BLOCK):
            products = space[start : start + WORDS_PER_BLOCK] @ space.T
            own = np.arange(len(products))
            products[own, start + own] = np.inf  # vectors are not normalised, so a word need not be nearest to itself
            yield from members[np.argsort(-products, axis=1, kind="stable")[:, :max_set_words]]

    return _build_from_pairs(words, pairs, find_nearest, max_set_words)


def build_from_lists(
    source: SynonymSource, counts: Mapping[str, int], max_set_words: int = MAX_SET_WORDS
) -> PerturbationSets:
    """Build the sets of words from lists of synonyms, without vectors.

    Two words that occur more than once are synonyms if one is in the list of the other. In a component of more than
    `max_set_words` words, the set of a word is found breadth-first: the word, its own list, the words that list it in
    alphabetical order, then the same for each of these in their order, up to `max_set_words` words.
    """
    words = sorted(word for word, count in counts.items() if count > 1)
    index_by_word = {word: i for i, word in enumerate(words)}
    lists = [[index_by_word[other] for other in source.lookup(word) if other in index_by_word] for word in words]
    listing: list[list[int]] = [[] for _ in words]
    for index, others in enumerate(lists):
        for other in others:
            listing[other].append(index)
    beside = [list(dict.fromkeys(own + back)) for own, back in zip(lists, listing, strict=True)]
    edges = [(index, other) for index, others in enumerate(beside) for other in others]

    def find_nearest(members: Ints) -> Iterator[Ints]:
        for index in members.tolist():
            reached = [index]
            for at in reached:  # grows in the loop
                fresh = [other for other in beside[at] if other not in reached]
                reached += fresh[: max_set_words - len(reached)]
                if len(reached) == max_set_words:
                    break
            yield np.array(reached, np.int64)

    return _build_from_pairs(words, np.array(edges, np.int64).reshape(-1, 2), find_nearest, max_set_words)


def all_but_the_top(vectors: NDArray[np.floating], directions: int = REMOVED_DIRECTIONS) -> Floats:
    """Remove from vectors the directions that most words share.

        v = x - μ - Σ_i (x · e_i) e_i

    x are the vectors with length 1, μ is their mean, and e_i are the first principal directions of x - μ. As in the
    authors' code, the projection of x is subtracted, not that of x - μ, and v is not normalised again. So `tau` is a
    threshold of a dot product, not of a cosine.

    Mu, Viswanath. All-but-the-top: simple and effective postprocessing for word representations. ICLR 2018.
    """
    rows = np.asarray(vectors, np.float64)
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), float(SMALLEST_FLOAT))
    centred = unit - unit.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)  # in ascending order
    top = axes[:, ::-1][:, :directions]
    return np.asarray(centred - (unit @ top) @ top.T)


def _find_synonym_pairs(rows: Floats, tau: float) -> Ints:
    """Return the pairs of words whose product is above tau, in both orders, sorted by the first word.

    All pairs are compared in 32 bits, and those near or above tau again in 64.
    """
    single = rows.astype(np.float32)
    found = [np.empty((0, 2), np.int64)]
    for start in range(0, len(rows), WORDS_PER_BLOCK):
        left, right = np.nonzero(single[start : start + WORDS_PER_BLOCK] @ single[start:].T > tau - 1e-5)
        pairs = np.stack((left, right), axis=1)[left < right] + start
        above = np.einsum("ij,ij->i", rows[pairs[:, 0]], rows[pairs[:, 1]]) > tau
        found.append(pairs[above])
    pairs = np.concatenate(found)
    both = np.concatenate((pairs, pairs[:, ::-1]))
    return both[np.lexsort((both[:, 1], both[:, 0]))]


def _build_from_pairs(
    words: Sequence[str], pairs: Ints, find_nearest: FindNearest, max_set_words: int
) -> PerturbationSets:
    """Build the sets of words from pairs of synonyms, in both orders, sorted by the first word."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count = len(words)
    graph = coo_array((np.ones(len(pairs), np.int8), (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    groups: list[Ints] = []
    if count:
        labels = connected_components(graph, directed=False)[1]
        order = np.argsort(labels, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    perturbations: dict[str, tuple[str, ...]] = {}
    chosen: dict[int, Ints] = {}
    for members in groups:
        if 1 < len(members) <= max_set_words:
            perturbations |= dict.fromkeys((words[i] for i in members), tuple(words[i] for i in members))
        elif len(members) > max_set_words:
            chosen |= dict(zip(members.tolist(), find_nearest(members), strict=True))
    perturbations |= {words[index]: tuple(words[i] for i in some) for index, some in chosen.items()}
    synonyms: dict[str, list[str]] = {}
    for index, other in pairs.tolist():
        synonyms.setdefault(words[index], []).append(words[other])
    overlaps = dict.fromkeys(synonyms, 1.0) | {
        words[i]: share for i, share in _compute_overlaps(chosen, pairs, count).items()
    }
    return PerturbationSets({word: tuple(others) for word, others in synonyms.items()}, perturbations, overlaps)


def _compute_overlaps(partial_sets: Mapping[int, Ints], pairs: Ints, count: int) -> dict[int, float]:
    """Return q_w of the words whose sets are not their whole component."""
    from scipy.sparse import csr_array

    if not partial_sets:
        return {}
    rows = np.full(count, -1, np.int64)
    rows[list(partial_sets)] = np.arange(len(partial_sets))
    sizes = np.array([len(some) for some in partial_sets.values()])
    columns = np.concatenate(list(partial_sets.values()))
    inside = csr_array(
        (np.ones(len(columns), np.int32), columns, np.append(0, np.cumsum(sizes))), shape=(len(partial_sets), count)
    )
    edges = rows[pairs[rows[pairs[:, 0]] >= 0]]
    least = np.ones(len(partial_sets))
    for start in range(0, len(edges), PAIRS_PER_BLOCK):
        left, right = edges[start : start + PAIRS_PER_BLOCK].T
        common = np.asarray(inside[left].multiply(inside[right]).sum(axis=1)).ravel()
        np.minimum.at(least, left, common / sizes[left])
    return dict(zip(partial_sets, least.tolist(), strict=True))
