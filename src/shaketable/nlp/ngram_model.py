"""A language model of word n-grams: the probability of a text under the language of a collection.

    p(w | h) = max(0, a(h w) - D(a(h w))) / Σ_v a(h v)  +  γ(h) · p(w | h')

Interpolated Kneser-Ney with modified discounts: h' is the context h without its first word; a(·) is a count for the
longest n-grams and for those that begin a text, and for all others the number of different words before them; D has one
value for a = 1, one for 2 and one for 3 and more; γ(h) is the discounted mass, so that p sums to 1. The lowest order
is the uniform distribution over all words, the end of a text, and one token for all unknown words.

Chen, Goodman. An empirical study of smoothing techniques for language modeling. Computer Speech and Language 1999.
Heafield, Pouzyrevsky, Clark, Koehn. Scalable modified Kneser-Ney language model estimation. ACL 2013.

Why not a library: KenLM is on PyPI as C++ source only, takes CMake and minutes to build, and its Python module reads
models but does not make them (that is a program of its own, which needs Boost). NLTK makes them, without the modified
discounts, out of Python dictionaries.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shaketable.core.documents import fingerprint
from shaketable.core.errors import BadInput
from shaketable.nlp.analyzer import Analyzer, Memo

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FORMAT_VERSION = 1  # raise it when the model of the same texts changes
UNKNOWN, START, END, FIRST_WORD = range(4)
"""The numbers of unknown words, of the start and the end of a text, and of the first known word."""
MAX_TRAINING_WORDS = 20_000_000
"""The most words that a model learns from: building takes some 100 bytes for each of them."""
BLOCK_TEXTS = 4096  # texts scored at a time
PREFIX_SHIFT_BITS = 32
DEFAULT_DISCOUNTS = 0.5, 1.0, 1.5
"""The discounts if there are too few n-grams to estimate them."""


class NGramTable(NamedTuple):
    """The n-grams of one length. A key is the row of the first n - 1 words in the previous table, and the last word."""

    keys: NDArray[np.uint64]
    """Sorted keys; empty for single words, whose row is their number."""
    logs: NDArray[np.float32]
    """log10 p(last word | the words before it)"""
    weights: NDArray[np.float32]
    """log10 γ of the n-gram as a context; empty for the longest n-grams."""

    def find(self, prefixes: Ints, words: Ints) -> Ints:
        """Return the rows of n-grams, -1 if there is none; a missing prefix is also -1."""
        rows = np.full(len(words), -1, np.int64)
        there = np.flatnonzero(prefixes >= 0)
        if len(self.keys) and len(there):
            keys = _pack_keys(prefixes[there], words[there])
            order = np.argsort(keys)  # sorted keys are found several times as fast
            keys, there = keys[order], there[order]
            places = np.searchsorted(self.keys, keys).clip(max=len(self.keys) - 1)
            same = self.keys[places] == keys
            rows[there[same]] = places[same]
        return rows


@dataclass(frozen=True, eq=False)
class NGramModel:
    """An n-gram model; `word_hashes` is sorted, and a word's number is its index plus `FIRST_WORD`.

    >>> model = learn_ngrams(["the boat", "the red boat", "the tea"], order=2)
    >>> likely, odd = model.perplexity(["the red boat", "boat red the"])
    >>> bool(likely < odd)
    True
    """

    fingerprint: str
    analyzer: Analyzer
    word_hashes: NDArray[np.uint64]
    tables: tuple[NGramTable, ...]
    remark: str = ""
    """A note on a cached model that could not be used."""

    @property
    def order(self) -> int:
        """The length of the longest n-grams, in words."""
        return len(self.tables)

    def log_probs(self, texts: Sequence[str]) -> list[Floats]:
        """Return log10 p of each word of a text and of its end, given the words before."""
        found: list[Floats] = []
        for start in range(0, len(texts), BLOCK_TEXTS):
            found += self._score_block(texts[start : start + BLOCK_TEXTS])
        return found

    def score(self, texts: Sequence[str]) -> Floats:
        """Return log10 p per word of each text, with its end as one more word; higher is more probable."""
        return np.array([logs.mean() for logs in self.log_probs(texts)])

    def perplexity(self, texts: Sequence[str]) -> Floats:
        """Return the perplexity of each text: 10^(-log10 p per word)."""
        return 10.0 ** -self.score(texts)

    def find_word_number(self, word: str) -> int:
        """Return the number of a word."""
        return self._word_number_memo[word]

    def compute_conditional_logs(self, words: NDArray[np.integer[Any]], positions: NDArray[np.integer[Any]]) -> Floats:
        """Return log10 p of each word number, given the words before it, back to the last one at position 0.

        This is p of the longest known n-gram that ends at the word, times γ of each longer known context.
        """
        last: Ints = words.astype(np.int64)
        logs: Floats = self.tables[0].logs[last].astype(np.float64)
        context = last
        for before, table in zip(self.tables, self.tables[1:], strict=False):
            context = np.where(positions > 0, np.roll(context, 1), -1)  # the n-gram that ends at the previous word
            found = table.find(context, last)
            logs = np.where(found >= 0, _take_rows(table.logs, found), logs + _take_rows(before.weights, context))
            context = found
        return logs

    @cached_property
    def _word_number_memo(self) -> Memo[int]:
        def number(word: str) -> int:
            name = np.uint64(_hash_word(word))
            place = int(np.searchsorted(self.word_hashes, name))
            return FIRST_WORD + place if place < len(self.word_hashes) and self.word_hashes[place] == name else UNKNOWN

        return Memo(number)

    def _score_block(self, texts: Sequence[str]) -> list[Floats]:
        memo = self._word_number_memo
        rows = [[memo[word] for word in self.analyzer.split_words(text)] for text in texts]
        sizes = np.array([len(row) + 2 for row in rows])
        words = np.fromiter(chain.from_iterable((START, *row, END) for row in rows), np.int64, int(sizes.sum()))
        ends = np.cumsum(sizes)
        logs = self.compute_conditional_logs(words, np.arange(len(words)) - np.repeat(ends - sizes, sizes))
        return [logs[end - size + 1 : end] for end, size in zip(ends.tolist(), sizes.tolist(), strict=True)]


def learn_ngrams(
    texts: Iterable[str],
    order: int = 3,
    analyzer: Analyzer | None = None,
    max_words: int = MAX_TRAINING_WORDS,
    name: str = "",
) -> NGramModel:
    """Read texts once, up to `max_words` words, and return a model. No n-gram crosses texts."""
    if not 1 <= order <= 9:
        raise BadInput(f"a language model has n-grams of 1 to 9 words, not {order}")
    analyzer = analyzer or Analyzer(stopwords="none", stemmer="none")
    numbers: dict[str, int] = {}
    read = array("i")
    for text in texts:
        if len(read) >= max_words:
            break
        said = islice(analyzer.split_words(text), max_words)
        read.append(START)
        read.extend([numbers.setdefault(word, len(numbers) + FIRST_WORD) for word in said])
        read.append(END)
    hashes = np.fromiter(map(_hash_word, numbers), np.uint64, len(numbers))
    known, places = np.unique(hashes, return_inverse=True)
    final = np.concatenate((np.arange(FIRST_WORD), places.reshape(-1) + FIRST_WORD))
    tokens = final[np.frombuffer(read, np.int32)].astype(np.int32) if read else np.empty(0, np.int32)
    return NGramModel(
        name or fingerprint("ngrams", FORMAT_VERSION),
        analyzer,
        known,
        _build_tables(tokens, len(known) + FIRST_WORD, order),
    )


class _NGramCounts(NamedTuple):
    """The n-grams of one length in a text: their keys, rows of their first and their last n - 1 words, and counts."""

    keys: NDArray[np.uint64]
    prefixes: NDArray[np.int32]
    suffixes: NDArray[np.int32]
    begins_text: NDArray[np.bool_]
    """True for n-grams at the start of a text."""
    counts: Ints


def _build_tables(tokens: NDArray[np.int32], size: int, order: int) -> tuple[NGramTable, ...]:
    """Return the tables of a model of tokens, which are numbers below `size`."""
    counted = _count_ngrams(tokens, size, order)
    tables: list[NGramTable] = []
    shorter = np.full(size, 1 / (size - 1))  # the uniform distribution; the start of a text is never predicted
    shorter[START] = 0
    for n, grams in enumerate(counted):
        last = n == len(counted) - 1
        adjusted = grams.counts if last else np.bincount(counted[n + 1].suffixes, minlength=len(grams.counts))
        adjusted = np.where(grams.begins_text, grams.counts, adjusted)
        if n == 0:
            adjusted[START] = 0
        contexts = len(tables[-1].logs) if tables else 1
        own, weights = _interpolate(adjusted, grams.prefixes, contexts)
        if tables:
            tables[-1] = tables[-1]._replace(weights=_to_log10(weights))
        probabilities = own + weights[grams.prefixes] * shorter[grams.suffixes]
        tables.append(NGramTable(grams.keys, _to_log10(probabilities), np.empty(0, np.float32)))
        shorter = probabilities
    return tuple(tables)


def _count_ngrams(tokens: NDArray[np.int32], size: int, order: int) -> list[_NGramCounts]:
    """Return the n-grams of each length, numbered in the order of their keys."""
    numbers = np.arange(len(tokens), dtype=np.int32)
    place = numbers - np.maximum.accumulate(np.where(tokens == START, numbers, 0))  # position in the text
    everything = np.arange(size, dtype=np.int32)
    counted = [
        _NGramCounts(
            np.empty(0, np.uint64),
            np.zeros(size, np.int32),
            everything,
            everything == START,
            np.bincount(tokens, minlength=size),
        )
    ]
    rows = tokens  # the row of the n-gram that ends at each token
    for n in range(2, order + 1):
        at = np.flatnonzero(place >= n - 1).astype(np.int32)
        keys = _pack_keys(rows[at - 1], tokens[at])
        rising = np.argsort(keys)
        at, keys = at[rising], keys[rising]
        del rising
        new = np.concatenate((keys[:1] == keys[:1], keys[1:] != keys[:-1]))
        where, keys = at[new], keys[new]  # one occurrence of each n-gram
        counts = np.diff(np.append(np.flatnonzero(new), len(new)))
        prefixes = (keys >> np.uint64(PREFIX_SHIFT_BITS)).astype(np.int32)
        counted.append(_NGramCounts(keys, prefixes, rows[where], place[where] == n - 1, counts))
        rows = np.full(len(tokens), -1, np.int32)
        rows[at] = np.cumsum(new, dtype=np.int32) - 1
    return counted


def _interpolate(adjusted: Ints, prefixes: NDArray[np.int32], contexts: int) -> tuple[Floats, Floats]:
    """Return the discounted share of each n-gram, and γ of each context, the discounted mass."""
    discounts = np.array((0.0, *estimate_discounts(adjusted)))[np.minimum(adjusted, 3)]
    totals = np.bincount(prefixes, adjusted, contexts)
    there = totals > 0
    safe = np.where(there, totals, 1.0)
    weights = np.where(there, np.bincount(prefixes, discounts, contexts) / safe, 1.0)
    return (adjusted - discounts) / safe[prefixes], weights


def estimate_discounts(adjusted: Ints) -> tuple[float, float, float]:
    """Return D_1, D_2 and D_3+, from the numbers of n-grams with counts 1 to 4 (Chen, Goodman, eq. 26).

    >>> estimate_discounts(np.array([1] * 8 + [2] * 4 + [3] * 2 + [4]))
    (0.5, 1.25, 2.0)
    """
    n1, n2, n3, n4 = np.bincount(np.minimum(adjusted, 5), minlength=5)[1:5].tolist()
    if not (n1 and n2 and n3):
        return DEFAULT_DISCOUNTS
    share = n1 / (n1 + 2 * n2)
    found = 1 - 2 * share * n2 / n1, 2 - 3 * share * n3 / n2, 3 - 4 * share * n4 / n3
    return found if all(0 < d <= most for most, d in enumerate(found, 1)) else DEFAULT_DISCOUNTS


def _pack_keys(prefixes: NDArray[np.integer[Any]], words: NDArray[np.integer[Any]]) -> NDArray[np.uint64]:
    return (prefixes.astype(np.uint64) << np.uint64(PREFIX_SHIFT_BITS)) | words.astype(np.uint64)


def _take_rows(values: NDArray[np.float32], rows: Ints) -> Floats:
    """Return the values of rows, 0 for row -1."""
    taken = np.zeros(len(rows))
    there = rows >= 0
    taken[there] = values[rows[there]]
    return taken


def _to_log10(values: Floats) -> NDArray[np.float32]:
    with np.errstate(divide="ignore"):
        return np.log10(values).astype(np.float32)


def _hash_word(word: str) -> int:
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
