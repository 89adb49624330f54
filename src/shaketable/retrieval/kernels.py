"""The loops over postings and tokens, compiled by numba. Import this module only to search or to build an index.

Every kernel releases the GIL, so that threads run them in parallel; no kernel starts threads.
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
    from shaketable.retrieval.inverted_index import CommonTerms, Postings
    from shaketable.retrieval.search import WeightCurve, WeightedQueries

Array = NDArray[Any]
Function = TypeVar("Function", bound=Callable[..., Any])

NUMBA: Any = numba  # typed in only some numba versions
NUMBA_THREADS: int = NUMBA.config.NUMBA_NUM_THREADS
SPACE_BYTE = ord(" ")
HASH_FACTOR = -7046029254386353131  # 2^64 divided by the golden ratio
MAX_INT31 = 0x7FFFFFFF  # 31 bits; above any document number
NO_KEY = -(2**63)
UNREACHED_TOTAL = -math.inf  # the total of a document without a query term so far
ROUNDING_MARGIN = 1 + 1e-9  # factor on upper bounds that exceeds the rounding error of sums
TIE_TOLERANCE = 1e-6  # relative; more than the distance between two scores that are equal in float32
OVERFLOW_COUNT = 255  # stands for a count that does not fit a byte
MAX_SCANNED_TERMS = 32  # a text is read once for each term of a query; for longer queries all terms are counted at once
WINDOW_DOCUMENTS = 4096  # documents per window; their totals fit the L1 cache


def compile_kernel(function: Function) -> Function:
    """Return the compiled function, cached on disk if a folder is writable."""
    njit = partial(NUMBA.njit, nogil=True, error_model="numpy")
    try:
        return cast(Function, njit(cache=True)(function))
    except RuntimeError:  # numba finds no writable cache folder
        return cast(Function, njit(function))


@compile_kernel
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
    """Assign numbers to the words of the texts between `ends` in `data`; at least one space follows each word.

    A new word gets the next number and a slot in the hash table. The second half of a slot is 0 if the slot is free;
    otherwise it holds length and number + 1. The first half holds the word if it has at most eight bytes, otherwise its
    hash, so that most lookups need one comparison. The kernel splits a text before it looks up the first word, so that
    the processor can overlap lookups. It stops before a text whose words might not fit, and returns the number of texts
    done, of numbers filled in and of known words.
    """
    longest = 0
    for i in range(done, len(ends) - 1):
        longest = max(longest, ends[i + 1] - ends[i])
    codes, starts = np.empty(longest // 2, np.int64), np.empty(longest // 2, np.int64)
    lengths = np.empty(longest // 2, np.int64)
    while done < len(ends) - 1:
        size = ends[done + 1] - ends[done]
        if words + size // 2 >= len(word_ends) or word_ends[words] + size > len(letters):
            break
        count, start, eight, hashed = 0, ends[done], 0, 0
        for p in range(ends[done], ends[done + 1]):
            byte, length = np.int64(data[p]), p - start
            if byte != SPACE_BYTE:
                if length & 7 == 0:
                    hashed, eight = (hashed ^ eight) * HASH_FACTOR, 0
                eight |= byte << ((length & 7) * 8)
                continue
            if length:
                codes[count] = eight if length <= 8 else (hashed ^ eight) * HASH_FACTOR
                starts[count], lengths[count] = start, length
                count += 1
            start, eight, hashed = p + 1, 0, 0
        for i in range(count):
            code, length = codes[i], lengths[i]
            slot = find_first_slot(slots, code)
            if slots[slot, 0] != code or slots[slot, 1] >> 32 != length or length > 8:
                slot = find_slot(slots, code, length, data, starts[i], letters, word_ends)
                if slots[slot, 1] == 0:
                    for j in range(length):
                        letters[word_ends[words] + j] = data[starts[i] + j]
                    words += 1
                    word_ends[words] = word_ends[words - 1] + length
                    slots[slot, 0], slots[slot, 1] = code, (length << 32) | words
            numbers[filled + i] = (slots[slot, 1] & 0xFFFFFFFF) - 1
        sizes[done] = count
        filled += count
        done += 1
    return done, filled, words


@compile_kernel
def find_first_slot(slots: Array, code: int) -> int:
    """Return the first slot to probe, which depends on all bits of the code."""
    mixed = code * HASH_FACTOR
    return ((mixed ^ (mixed >> 32)) * HASH_FACTOR >> 32) & (len(slots) - 1)


@compile_kernel
def find_slot(slots: Array, code: int, length: int, data: Array, start: int, letters: Array, word_ends: Array) -> int:
    """Return the slot of the word at `start`, or the free slot for it."""
    slot = find_first_slot(slots, code)
    while slots[slot, 1]:
        if slots[slot, 0] == code and slots[slot, 1] >> 32 == length:
            known = word_ends[(slots[slot, 1] & 0xFFFFFFFF) - 1]
            same = 0
            while same < length and letters[known + same] == data[start + same]:
                same += 1
            if same == length:
                break
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@compile_kernel
def rehash(slots: Array, size: int) -> Array:
    """Return a table of another size, a power of two, with the same words."""
    larger = np.zeros((size, 2), np.int64)
    for old in range(len(slots)):
        if slots[old, 1]:
            slot = find_first_slot(larger, slots[old, 0])
            while larger[slot, 1]:
                slot = (slot + 1) & (size - 1)
            larger[slot, 0], larger[slot, 1] = slots[old, 0], slots[old, 1]
    return larger


@compile_kernel
def count_terms(tokens: Array, starts: Array, terms: int) -> tuple[Array, Array, int]:
    """Return the document frequency and the collection frequency of each term, and the largest count in a document."""
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


@compile_kernel
def fill_postings(tokens: Array, starts: Array, order: Array, first: Array, docs: Array, counts: Array) -> None:
    """Fill in the postings; document number 0 is the first document of `order`."""
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


@compile_kernel
def term_weight(log: bool, term: float, tf: float, norm: float) -> float:
    """Return the weight of one term: term · ln(1 + tf / norm), or term · tf / (tf + norm)."""
    return term * math.log(1.0 + tf / norm) if log else term * (tf / (tf + norm))


@compile_kernel
def find_max_tf_ratios(postings: Postings, curve: WeightCurve) -> Array:
    """Return the largest tf / norm of each term over all documents, which gives its largest weight."""
    found = np.zeros(len(postings.first) - 1)
    for term in range(len(found)):
        for p in range(postings.first[term], postings.first[term + 1]):
            norm = curve.base + curve.slope * postings.lengths[postings.docs[p]]
            found[term] = max(found[term], min(postings.counts[p] / norm, 1e300))  # the norm may be zero
    return found


@compile_kernel
def make_sort_key(score: float, doc: int) -> np.int64:
    """Return an integer key that sorts by float32 score, then by document number (a lower number has a larger key)."""
    bits = np.float32(score + 0.0).view(np.int32)  # + 0.0: no negative zero
    return (np.int64(bits ^ ((bits >> 31) & MAX_INT31)) << 32) | (MAX_INT31 - doc)


@compile_kernel
def score_from_key(key: int) -> float:
    """Return the float32 score of a key."""
    bits = np.int32(key >> 32)
    return float(np.int32(bits ^ ((bits >> 31) & MAX_INT31)).view(np.float32))


@compile_kernel
def replace_smallest(heap: Array, values: Array, size: int, new: np.int64, value: float) -> None:
    """Replace the smallest key, at the root of the min-heap; the parent of i is (i - 1) // 2."""
    at, child = 0, 1
    while child < size:
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= new:
            break
        heap[at], values[at] = heap[child], values[child]
        at, child = child, 2 * child + 1
    heap[at], values[at] = new, value


@compile_kernel
def find_posting(docs: Array, start: int, end: int, doc: int) -> int:
    """Return the first position from `start` whose document is not before `doc`, by galloping, then binary search."""
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


@compile_kernel
def find_initial_threshold(
    postings: Postings,
    curve: WeightCurve,
    queries: WeightedQueries,
    query: int,
    priors: Array,
    heap: Array,
    values: Array,
) -> float:
    """Return a score that at least k documents exceed: the k-th best for the heaviest term with k documents."""
    first, docs, counts, lengths = postings
    i, end = queries.starts[query], queries.starts[query + 1]
    if i == end or queries.weights[i] < 0:
        return UNREACHED_TOTAL
    while i < end and first[queries.terms[i] + 1] - first[queries.terms[i]] < len(heap):
        i += 1
    if i == end:
        return UNREACHED_TOTAL
    heap[:] = NO_KEY
    values[:] = UNREACHED_TOTAL
    for p in range(first[queries.terms[i]], first[queries.terms[i] + 1]):
        length = lengths[docs[p]]
        norm = curve.base + curve.slope * length
        value = queries.sizes[query] * priors[length]
        value += term_weight(curve.log, queries.weights[i], queries.scales[i] * counts[p], norm)
        if value > values[0]:
            replace_smallest(heap, values, len(heap), make_sort_key(value, docs[p]), value)
    return float(values[0] - abs(values[0]) * TIE_TOLERANCE - 1e-30)  # below the k-th best even if that is 0


@compile_kernel
def search_best(
    postings: Postings,
    common: CommonTerms,
    max_tf_ratios: Array,
    curve: WeightCurve,
    queries: WeightedQueries,
    thread: int,
    threads: int,
    found: Array,
    best_docs: Array,
    best_scores: Array,
) -> None:
    """Find the best documents of every `threads`-th query: exact scores, float32 ties to the lower document number.

    Terms are ordered with negative weights first and then, roughly, from heavy to light. The kernel processes one
    window of document numbers at a time. A document must beat the lowest of the current best k. The last terms, which
    together could not lift a document above that threshold, are only looked up for documents that have an earlier term
    and can still enter the top k. The weights of a document are always added in the order of the terms, so its score
    is always the same.

    Turtle, Flood. Query evaluation: strategies and optimizations. IPM 1995 (MaxScore).
    """
    first, docs, counts, lengths = postings
    starts, terms, weights, scales, sizes = queries
    log, base, slope, shrink = curve
    k = best_docs.shape[1]
    heap, values = np.empty(k, np.int64), np.empty(k)
    rest = np.empty(len(terms) + 1)  # upper bound of a term and all later terms
    at = np.empty(len(terms), np.int64)  # the next posting of each term
    totals = np.full(WINDOW_DOCUMENTS, UNREACHED_TOTAL)
    touched, alive = np.empty(WINDOW_DOCUMENTS, np.int32), np.empty(WINDOW_DOCUMENTS, np.int32)
    priors = np.empty(lengths.max() + 1)
    for length in range(len(priors)):
        priors[length] = -math.log1p(shrink * length)
    for query in range(thread, len(sizes), threads):
        begin, end = starts[query], starts[query + 1]
        rest[end] = 0.0
        for i in range(end - 1, begin - 1, -1):
            bound = term_weight(log, weights[i], scales[i] * max_tf_ratios[terms[i]], 1.0)
            rest[i] = rest[i + 1] + max(0.0, bound) * ROUNDING_MARGIN
            at[i] = first[terms[i]]
        lowest = find_initial_threshold(postings, curve, queries, query, priors, heap, values)
        heap[:] = NO_KEY
        read, pushed = end, 0
        while True:
            while read > begin and rest[read - 1] <= lowest and weights[read - 1] >= 0:
                read -= 1
            low = MAX_INT31
            for i in range(begin, read):
                if at[i] < first[terms[i] + 1]:
                    low = min(low, docs[at[i]])
            if low == MAX_INT31:
                break
            met = 0
            for i in range(begin, read):
                p, stop = at[i], first[terms[i] + 1]
                while p < stop and docs[p] < low + WINDOW_DOCUMENTS:
                    doc = docs[p]
                    total = totals[doc - low]
                    if total == UNREACHED_TOTAL:
                        total = sizes[query] * priors[lengths[doc]]
                        touched[met] = doc
                        met += 1
                    norm = base + slope * lengths[doc]
                    totals[doc - low] = total + term_weight(log, weights[i], scales[i] * counts[p], norm)
                    p += 1
                at[i] = p
            left = 0
            for j in range(met):
                alive[left] = touched[j]
                left += totals[touched[j] - low] + rest[read] > lowest
            for i in range(read, end):
                p, stop, row, kept, before = at[i], first[terms[i] + 1], common.rows[terms[i]], 0, 0
                for j in range(left):
                    doc = alive[j]
                    if totals[doc - low] + rest[i] <= lowest:
                        continue
                    alive[kept] = doc
                    kept += 1
                    tf = np.int64(OVERFLOW_COUNT if row < 0 else common.counts[row, doc])
                    if tf == OVERFLOW_COUNT:
                        p = find_posting(docs, p if doc >= before else at[i], stop, doc)
                        before = doc
                        tf = np.int64(counts[p] if p < stop and docs[p] == doc else 0)
                    if tf:
                        norm = base + slope * lengths[doc]
                        totals[doc - low] += term_weight(log, weights[i], scales[i] * tf, norm)
                at[i], left = p, kept
            for j in range(left):
                total = totals[alive[j] - low]
                new = make_sort_key(total, alive[j])
                if new > heap[0]:
                    replace_smallest(heap, values, k, new, total)
                    pushed += 1
            if pushed >= k:
                lowest = max(lowest, score_from_key(heap[0]))
            for j in range(met):
                totals[touched[j] - low] = UNREACHED_TOTAL
        found[query] = min(k, pushed)
        for rank in range(k - 1, -1, -1):
            best_docs[query, rank], best_scores[query, rank] = MAX_INT31 - (heap[0] & MAX_INT31), values[0]
            replace_smallest(heap, values, rank, heap[rank], values[rank])


@compile_kernel
def count_query_terms(tokens: Array, terms: Array, places: Array) -> Array:
    """Return how often each of the terms occurs; `places` is -1 for every term number, before and after."""
    counts = np.zeros(len(terms), np.int64)
    for i in range(len(terms)):
        places[terms[i]] = i
    for token in tokens:
        if 0 <= token < len(places) and places[token] >= 0:
            counts[places[token]] += 1
    for i in range(len(terms)):
        places[terms[i]] = -1
    return counts


@compile_kernel
def score_pairs(
    tokens: Array,
    starts: Array,
    curve: WeightCurve,
    queries: WeightedQueries,
    owners: Array,
    texts: Array,
    scores: Array,
) -> None:
    """Compute the score of each pair (query, text), with the same sums in the same order as `search_best`."""
    has_long = len(queries.terms) > MAX_SCANNED_TERMS and np.diff(queries.starts).max() > MAX_SCANNED_TERMS
    places, counts = np.full(queries.terms.max() + 1 if has_long else 0, -1), np.zeros(0, np.int64)
    for pair in range(len(scores)):
        query, start, end = owners[pair], starts[texts[pair]], starts[texts[pair] + 1]
        first, last = queries.starts[query], queries.starts[query + 1]
        norm = curve.base + curve.slope * (end - start)
        total = 0.0 - queries.sizes[query] * math.log1p(curve.shrink * (end - start))
        is_long = last - first > MAX_SCANNED_TERMS
        if is_long:
            counts = count_query_terms(tokens[start:end], queries.terms[first:last], places)
        for i in range(first, last):
            tf = 0
            if is_long:
                tf = counts[i - first]
            else:
                for p in range(start, end):
                    tf += tokens[p] == queries.terms[i]
            if tf:
                total += term_weight(curve.log, queries.weights[i], queries.scales[i] * tf, norm)
        scores[pair] = total
