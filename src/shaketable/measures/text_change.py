"""The size of a document change: changed words, and the similarity of the two texts by an encoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shaketable.core.documents import Doc
from shaketable.core.errors import BadInput
from shaketable.nlp.sentences import split_sentences

Encode: TypeAlias = Callable[[Sequence[str]], NDArray[Any]]
"""A function from texts to vectors [texts, dimensions], of any length."""


def count_changed_words(before: Doc, after: Doc) -> int:
    """Return the number of words that differ, with title and body compared separately; white space separates words.

    For texts with equal numbers of words, it is the Hamming distance. Otherwise it counts the words that a diff
    replaces, adds and removes.

    >>> count_changed_words(Doc("a red boat"), Doc("a blue ship"))
    2
    >>> count_changed_words(Doc("a red boat"), Doc("a very red boat"))
    1
    """
    return _count_changed(before.title, after.title) + _count_changed(before.body, after.body)


def _count_changed(before: str, after: str) -> int:
    left, right = before.split(), after.split()
    if len(left) == len(right):
        return sum(a != b for a, b in zip(left, right, strict=True))
    codes = SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
    return sum(max(b - a, d - c) for kind, a, b, c, d in codes if kind != "equal")


def align_sentences(before: Doc, after: Doc) -> list[tuple[str, str]] | None:
    """Return the aligned sentences of two texts, with title and body separate; None if the numbers of sentences differ.

    >>> align_sentences(Doc("It rains. We stay."), Doc("It pours. We stay."))
    [('It rains.', 'It pours.'), ('We stay.', 'We stay.')]
    >>> align_sentences(Doc("It rains. We stay."), Doc("It rains, so we stay.")) is None
    True
    """
    pairs: list[tuple[str, str]] = []
    for left, right in ((before.title, after.title), (before.body, after.body)):
        ours, theirs = split_sentences(left), split_sentences(right)
        if len(ours) != len(theirs):
            return None
        pairs += zip(ours, theirs, strict=True)
    return pairs


@dataclass(frozen=True, eq=False)
class TextSimilarities:
    """The similarities of texts before and after, a number for each pair of documents.

    `doc` is the cosine of their vectors and `sentence` its mean over aligned sentences; if the numbers of sentences
    differ, or there are none, it is that of the documents. The angular ones are 1 - arccos(cosine), in radians and not
    divided by π, so they range from 1 - π to 1, as in TextFooler and later attacks.
    """

    doc: NDArray[np.float64]
    sentence: NDArray[np.float64]
    doc_angular: NDArray[np.float64]
    sentence_angular: NDArray[np.float64]


def compute_similarities(encode: Encode, befores: Sequence[Doc], afters: Sequence[Doc]) -> TextSimilarities:
    """Return the similarity of each document to its former text; the encoder is called once for all distinct texts.

    The similarity of an unchanged text is exactly 1. The cosine with a zero vector is 0.
    """
    documents = [(left.text, right.text) for left, right in zip(befores, afters, strict=True)]
    parts = [align_sentences(left, right) for left, right in zip(befores, afters, strict=True)]
    cosines = _compute_cosines(encode, [*documents, *(pair for some in parts for pair in some or ())])
    cuts = np.cumsum([len(documents), *(len(some or ()) for some in parts)])
    doc, doc_angular = cosines[: cuts[0]], 1 - np.arccos(cosines[: cuts[0]])
    sentence, sentence_angular = doc.copy(), doc_angular.copy()
    for number, (first, last) in enumerate(pairwise(cuts)):
        if last > first:
            sentence[number] = cosines[first:last].mean()
            sentence_angular[number] = 1 - np.arccos(cosines[first:last]).mean()
    return TextSimilarities(doc, sentence, doc_angular, sentence_angular)


def _compute_cosines(encode: Encode, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
    """Return the cosine of the vectors of each pair of texts, 1 for equal texts."""
    changed = [pair for pair in pairs if pair[0] != pair[1]]
    cosines = np.ones(len(pairs))
    if not changed:
        return cosines
    texts = {text: number for number, text in enumerate(dict.fromkeys(text for pair in changed for text in pair))}
    vectors = np.asarray(encode(list(texts)), dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
        raise BadInput(
            f"the encoder did not return a finite vector for each of {len(texts)} texts: shape {vectors.shape}"
        )
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    left, right = (vectors[[texts[pair[side]] for pair in changed]] for side in (0, 1))
    cosines[[pair[0] != pair[1] for pair in pairs]] = np.clip((left * right).sum(axis=1), -1, 1)
    return cosines
