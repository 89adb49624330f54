"""The loops over postings and tokens, compiled by numba. Import this module only where something is searched or built.

Every kernel releases the interpreter lock, so that plain threads run them side by side; none of them starts threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from shaketable.index.inverted import Postings
    from shaketable.index.search import Curve, Weighed

Array = NDArray[Any]
Function = TypeVar("Function", bound=Callable[..., Any])

JIT: Any = numba  # untyped in some versions, typed in others
THREADS: int = JIT.config.NUMBA_NUM_THREADS
SPACE = ord(" ")
HASH_START, HASH_FACTOR = -3750763034362895579, 1099511628211  # FNV-1a
NO_KEY = -(2**63)
NEVER = -math.inf  # the accumulator of a document that no query term has reached
LOOKUP = 16  # what finding a posting costs, in postings read one after the other
SLACK = 1e-6  # relative; more than what separates two scores that are one in float32


def compiled(function: Function) -> Function:
    """Machine code, kept on disk for the next process where some folder can be written."""
    njit = partial(JIT.njit, nogil=True, error_model="numpy")
    try:
        return cast(Function, njit(cache=True)(function))
    except RuntimeError:  # numba finds no folder for its cache
        return cast(Function, njit(function))


@compiled
def number_words(
    data: Array,
    ends: Array,
    done: int,
    numbers: Array,
    filled: int,
    sizes: Array,
    slots: Array,
    letters: Array,
    word_ends: Array,
    words: int,
) -> tuple[int, int, int]:
    """Number the words of texts that lie between `ends` in `data`, each word followed by at least one space.

    New words get the next number and a slot in the hash table: 31 bits of hash, then 32 of number + 1; 0 is a free
    slot. Stops before a text whose words might not all find room; returns how many texts are done, how many numbers
    have been filled in and how many words are known.
    """
    while done < len(ends) - 1:
        size = ends[done + 1] - ends[done]
        if words + size // 2 >= len(word_ends) or word_ends[words] + size > len(letters):
            break
        before, start, hashed = filled, ends[done], HASH_START
        for p in range(ends[done], ends[done + 1]):
            if data[p] != SPACE:
                hashed = (hashed ^ data[p]) * HASH_FACTOR
                continue
            if p > start:
                short = (hashed ^ (hashed >> 32)) & 0x7FFFFFFF
                slot = slot_of(slots, short, data, start, p, letters, word_ends)
                if slots[slot] == 0:
                    end = word_ends[words]
                    for at in range(start, p):
                        letters[end] = data[at]
                        end += 1
                    words += 1
                    word_ends[words] = end
                    slots[slot] = (short << 32) | words
                numbers[filled] = (slots[slot] & 0xFFFFFFFF) - 1
                filled += 1
            start, hashed = p + 1, HASH_START
        sizes[done] = filled - before
        done += 1
    return done, filled, words


@compiled
def slot_of(slots: Array, hashed: int, data: Array, start: int, end: int, letters: Array, word_ends: Array) -> int:
    """The slot of the word `data[start:end]`, or the free one where it belongs."""
    slot = hashed & (len(slots) - 1)
    while slots[slot]:
        if slots[slot] >> 32 == hashed:
            word = (slots[slot] & 0xFFFFFFFF) - 1
            if word_ends[word + 1] - word_ends[word] == end - start:
                at, known = start, word_ends[word]
                while at < end and letters[known] == data[at]:
                    at, known = at + 1, known + 1
                if at == end:
                    break
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@compiled
def rehash(slots: Array, size: int) -> Array:
    """The same words in a table of another size, a power of two."""
    larger = np.zeros(size, np.int64)
    for entry in slots:
        if entry:
            slot = (entry >> 32) & (size - 1)
            while larger[slot]:
                slot = (slot + 1) & (size - 1)
            larger[slot] = entry
    return larger


@compiled
def count_terms(tokens: Array, starts: Array, terms: int) -> tuple[Array, Array, int]:
    """For each term the number of documents that have it and of its occurrences; and the most it has in one."""
    df, cf = np.zeros(terms, np.int64), np.zeros(terms, np.int64)
    last, inside = np.full(terms, -1, np.int64), np.zeros(terms, np.int64)
    most = 0
    for doc in range(len(starts) - 1):
        for p in range(starts[doc], starts[doc + 1]):
            token = tokens[p]
            cf[token] += 1
            if last[token] != doc:
                last[token] = doc
                inside[token] = 0
                df[token] += 1
            inside[token] += 1
            most = max(most, inside[token])
    return df, cf, most


@compiled
def invert(tokens: Array, starts: Array, order: Array, first: Array, docs: Array, counts: Array) -> None:
    """Fill in the postings, the documents numbered anew: number 0 is the one that `order` names first."""
    free = first[:-1].copy()
    last = np.full(len(free), -1, np.int64)
    for number in range(len(order)):
        doc = order[number]
        for p in range(starts[doc], starts[doc + 1]):
            token = tokens[p]
            if last[token] != number:
                last[token] = number
                docs[free[token]] = number
                free[token] += 1
            counts[free[token] - 1] += 1


@compiled
def weight(log: bool, term: float, tf: float, norm: float) -> float:
    """What one term adds: term · ln(1 + tf / norm), or term · tf / (tf + norm)."""
    return term * math.log1p(tf / norm) if log else term * (tf / (tf + norm))


@compiled
def peaks(postings: Postings, curve: Curve) -> Array:
    """For each term the largest tf / norm of any document: its weight there is its largest."""
    found = np.zeros(len(postings.first) - 1)
    for term in range(len(found)):
        for p in range(postings.first[term], postings.first[term + 1]):
            norm = curve.base + curve.slope * postings.lengths[postings.docs[p]]
            found[term] = max(found[term], min(postings.counts[p] / norm, 1e300))  # the norm may be zero
    return found


@compiled
def key(score: float, doc: int) -> np.int64:
    """One integer that orders (score as float32, document number)."""
    bits = np.float32(score + 0.0).view(np.int32)  # + 0.0: no negative zero
    return (np.int64(bits ^ ((bits >> 31) & 0x7FFFFFFF)) << 32) | doc


@compiled
def score_of(key: int) -> float:
    """The float32 score in a key."""
    bits = np.int32(key >> 32)
    return float(np.int32(bits ^ ((bits >> 31) & 0x7FFFFFFF)).view(np.float32))


@compiled
def sift(heap: Array, size: int, new: np.int64) -> None:
    """Put a key in the place of the smallest, which is the first; none is smaller than its parent at (i - 1) // 2."""
    at, child = 0, 1
    while child < size:
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= new:
            break
        heap[at] = heap[child]
        at, child = child, 2 * child + 1
    heap[at] = new


@compiled
def best(docs: Array, count: int, totals: Array, heap: Array, size: int) -> float:
    """Fill a heap with the `size` largest keys of `count` documents, which are not fewer; returns the lowest score."""
    for i in range(size):
        heap[i] = NO_KEY
    lowest = NEVER
    for i in range(count - 1, -1, -1):  # high numbers first: of documents that tie, the later ones then change nothing
        doc = docs[i]
        if np.float32(totals[doc]) >= lowest and key(totals[doc], doc) > heap[0]:
            sift(heap, size, key(totals[doc], doc))
            lowest = score_of(heap[0]) if heap[0] != NO_KEY else NEVER
    return lowest


@compiled
def below(score: float) -> float:
    """What no score that may tie with this one is under: float32 rounds, and sums of bounds do too."""
    return score - SLACK * abs(score) - 1e-9


@compiled
def at_least(docs: Array, start: int, end: int, doc: int) -> int:
    """The first place from `start` on where a posting's document is not before `doc`: leaps, then halves."""
    leap = 1
    while start + leap < end and docs[start + leap] < doc:
        start += leap
        leap *= 2
    end = min(end, start + leap)
    while start < end:
        middle = (start + end) >> 1
        if docs[middle] < doc:
            start = middle + 1
        else:
            end = middle
    return start


@compiled
def search(
    postings: Postings,
    peaks: Array,
    curve: Curve,
    queries: Weighed,
    lane: int,
    lanes: int,
    found: Array,
    best_docs: Array,
    best_scores: Array,
) -> None:
    """The best documents of every `lanes`-th query: exact scores, float32 ties to the higher document number.

    Terms come with the negative ones first and then, roughly, from heavy to light. While a document not met so far
    could still be among the best, a term's postings are all added up. From then on only documents that can still
    reach the k-th score seen so far are followed: looked up in the postings if they are few, else met on the way.
    A document's weights are added in the order of the terms, whichever way it went, so its score is always the same.
    """
    first, docs, counts, lengths = postings
    starts, terms, weights, scales, sizes = queries
    log, base, slope, shrink = curve
    k = best_docs.shape[1]
    heap = np.empty(k, np.int64)
    rest = np.empty(len(terms) + 1)  # what a term and those after it can add at most
    totals = np.full(len(lengths), NEVER)
    touched, alive = np.empty(len(lengths), np.int32), np.empty(len(lengths), np.int32)
    priors = np.empty(lengths.max() + 1)
    for length in range(len(priors)):
        priors[length] = -math.log1p(shrink * length)
    for query in range(lane, len(sizes), lanes):
        begin, end = starts[query], starts[query + 1]
        rest[end] = 0.0
        for i in range(end - 1, begin - 1, -1):
            rest[i] = rest[i + 1] + max(0.0, weight(log, weights[i], scales[i] * peaks[terms[i]], 1.0))
        met, floor, i = 0, NEVER, begin
        while i < end and (rest[i] >= floor or weights[i] < 0):
            for p in range(first[terms[i]], first[terms[i] + 1]):
                doc = docs[p]
                total = totals[doc]
                if total == NEVER:
                    total = sizes[query] * priors[lengths[doc]]
                    touched[met] = doc
                    met += 1
                totals[doc] = total + weight(log, weights[i], scales[i] * counts[p], base + slope * lengths[doc])
            i += 1
            if met >= k and rest[i] < rest[begin] - rest[i]:
                floor = below(best(touched, met, totals, heap, k))
        follow, left = touched, met
        while i < end:
            need = floor - rest[i]
            kept = 0
            for j in range(left):
                doc = alive[kept] = follow[j]
                kept += totals[doc] >= need
            follow, left = alive, kept
            start, stop = first[terms[i]], first[terms[i] + 1]
            if left * LOOKUP < stop - start:
                p, before = start, np.int32(-1)
                for j in range(left):
                    doc = alive[j]
                    p = at_least(docs, p if doc > before else start, stop, doc)
                    before = doc
                    if p < stop and docs[p] == doc:
                        totals[doc] += weight(log, weights[i], scales[i] * counts[p], base + slope * lengths[doc])
            else:
                for p in range(start, stop):
                    doc = docs[p]
                    if totals[doc] >= need:
                        totals[doc] += weight(log, weights[i], scales[i] * counts[p], base + slope * lengths[doc])
            i += 1
            if i < end:
                floor = below(best(alive, left, totals, heap, k))
        found[query] = size = min(k, left)
        best(follow, left, totals, heap, size)
        for rank in range(size - 1, -1, -1):
            doc = heap[0] & 0x7FFFFFFF
            best_docs[query, rank], best_scores[query, rank] = doc, totals[doc]
            sift(heap, rank, heap[rank])
        for j in range(met):
            totals[touched[j]] = NEVER


@compiled
def score(
    tokens: Array, starts: Array, curve: Curve, queries: Weighed, owners: Array, texts: Array, scores: Array
) -> None:
    """The score of each pair (query, text), by the same sums in the same order as `search`."""
    for pair in range(len(scores)):
        query, start, end = owners[pair], starts[texts[pair]], starts[texts[pair] + 1]
        norm = curve.base + curve.slope * (end - start)
        total = queries.sizes[query] * -math.log1p(curve.shrink * (end - start))
        for i in range(queries.starts[query], queries.starts[query + 1]):
            tf = 0
            for p in range(start, end):
                tf += tokens[p] == queries.terms[i]
            if tf:
                total += weight(curve.log, queries.weights[i], queries.scales[i] * tf, norm)
        scores[pair] = total
