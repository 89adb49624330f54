"""Recognition of documents and queries after a change of their texts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from shaketable.nlp.characters import HOMOGLYPHS, INVISIBLE_CHARACTERS

UNKNOWN = -1
"""The number of a text that is not recognised."""
MIN_SHARED = 0.3
"""The share of a text's distinctive words, or of the original's if it has fewer, that both must have in common."""
MIN_WHOLE = 0.98
"""The share of an original's distinctive words from which a text contains all of it."""
MIN_BIGRAMS = 0.5
"""The share of a text's word bigrams that must occur in the original if the text has less than `MIN_SHARED` of its
distinctive words. A part of a document meets this, a copy of the query below a title does not.
"""
MIN_PART_WORDS = 12
"""The least number of words of a part of a document, because some documents contain a whole query."""
MAX_TEXT_SHARE = 0.2
"""Features of more than this share of the texts are ignored; they do not identify a text and take most of the time."""
MAX_REMEMBERED_TEXTS = 200_000
"""The number of recognised texts from which a worker clears its memo, to limit memory."""
_PLAIN = str.maketrans({mimic: letter for letter, mimic in HOMOGLYPHS.items()} | dict.fromkeys(INVISIBLE_CHARACTERS))
_WORD = re.compile(r"[^\W_]+")


@lru_cache(maxsize=10_000)
def split_words(text: str) -> tuple[str, ...]:
    """Return the words of a text without case, accents, punctuation, invisible characters and look-alike letters.

    >>> split_words("Caf\\u00e9s, N\\u200bo.\\u00a01: \\u0441offee")
    ('cafes', 'no', '1', 'coffee')
    """
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text.translate(_PLAIN))
        text = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    return tuple(_WORD.findall(text.casefold()))


def list_trigrams(text: str) -> list[str]:
    """Return the character trigrams of the words of a text, with word boundaries."""
    return [
        padded[i : i + 3] for word in split_words(text) for padded in (f" {word} ",) for i in range(len(padded) - 2)
    ]


def list_bigrams(text: str) -> set[tuple[str, str]]:
    """Return the pairs of neighbouring words of a text."""
    words = split_words(text)
    return set(pairwise(words))


class NearestTexts:
    """An index of texts: identity first, then the largest weighted share of common features.

    Features are words, or character trigrams for short texts, in which one typing error changes a large share of the
    words. A short text is always recognised, as long as one trigram is known. The texts from `fixed_from` on are
    recognised by identity only.
    """

    def __init__(self, texts: Sequence[str], trigrams: bool = False, fixed_from: int | None = None):
        self._texts, self._is_short = texts[:fixed_from], trigrams
        self._features = list_trigrams if trigrams else split_words
        self._same = {split_words(text): number for number, text in reversed([*enumerate(texts)])}
        self._memo: dict[str, int] = {}
        features = [set(self._features(text)) for text in self._texts]
        counts: dict[str, int] = {}
        for feature in (feature for some in features for feature in some):
            counts[feature] = counts.get(feature, 0) + 1
        most = max(2.0, len(self._texts) * (1.0 if trigrams else MAX_TEXT_SHARE))
        self._numbers = {feature: i for i, feature in enumerate(f for f, count in counts.items() if count <= most)}
        weights = np.array([np.log1p(len(self._texts) / counts[feature]) for feature in self._numbers])
        present = self._build_matrix(features)
        self._weighted = csr_array(present.multiply(weights[None, :])).T.tocsr()
        self._totals = np.asarray(self._weighted.sum(axis=0)).ravel()
        self._weights = weights

    def find(self, texts: Iterable[str]) -> NDArray[np.int64]:
        """Return the number of the nearest text of each text, or `UNKNOWN`."""
        wanted = list(texts)
        if len(self._memo) > MAX_REMEMBERED_TEXTS:
            self._memo.clear()
        new = list(dict.fromkeys(text for text in wanted if text not in self._memo))
        changed = []
        for text in new:
            if (same := self._same.get(split_words(text))) is None:
                changed.append(text)
            else:
                self._memo[text] = same
        if changed:
            self._memo.update(zip(changed, self._find_nearest(changed).tolist(), strict=True))
        return np.array([self._memo[text] for text in wanted], dtype=np.int64)

    def _find_nearest(self, texts: Sequence[str]) -> NDArray[np.int64]:
        features = self._build_matrix([set(self._features(text)) for text in texts])
        shared = csr_array(features @ self._weighted)
        own = features @ self._weights
        found = np.full(len(texts), UNKNOWN, dtype=np.int64)
        for row, (start, end) in enumerate(zip(shared.indptr[:-1], shared.indptr[1:], strict=True)):
            if start == end:
                continue
            numbers, common = shared.indices[start:end], shared.data[start:end]
            totals = self._totals[numbers]
            # a text with an inserted sentence of another document still has all of its original
            whole = common >= MIN_WHOLE * totals
            best = int(np.argmax(np.where(whole, common, -1.0) if whole.any() else common / np.sqrt(totals)))
            number, total = int(numbers[best]), float(self._totals[numbers[best]])
            if self._is_short or (
                common[best] >= MIN_SHARED * min(total, own[row])
                and (common[best] >= MIN_SHARED * total or self._is_part(texts[row], number))
            ):
                found[row] = number
        return found

    def _is_part(self, text: str, number: int) -> bool:
        """Return True if most word bigrams of a text of some length are in a known text."""
        wanted = list_bigrams(text)
        if len(split_words(text)) < MIN_PART_WORDS:
            return False
        return len(wanted & list_bigrams(self._texts[number])) >= MIN_BIGRAMS * len(wanted) > 0

    def _build_matrix(self, features: Sequence[set[str]]) -> csr_array:
        columns = [sorted(self._numbers[f] for f in some if f in self._numbers) for some in features]
        ends = np.cumsum([0, *map(len, columns)])
        flat = np.array([number for some in columns for number in some], dtype=np.int64)
        return csr_array((np.ones(len(flat)), flat, ends), shape=(len(features), len(self._numbers)))
