"""Transforms that reorder words or sentences, or delete a sentence."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np

from shaketable.core.protocols import TransformContext
from shaketable.core.seeding import ItemRandom
from shaketable.nlp.parser import Parsed, Span, find_offsets
from shaketable.transforms.categories import ORDERING

Item = TypeVar("Item")


@dataclass(frozen=True)
class RandomOrderSwap:
    """Swap two random words that differ, stop-words included.

    Penha, Câmara, Hauff. Evaluating the robustness of retrieval pipelines with query variation generators. ECIR 2022.
    """

    category: ClassVar[str] = ORDERING

    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None:
        words = text.split()
        if len(words) < 2:
            return None
        i = rng.randbelow(len(words))
        others = [j for j, word in enumerate(words) if word != words[i]]
        if not others:
            return None
        j = rng.choice(others)
        words[i], words[j] = words[j], words[i]
        return " ".join(words)


def shuffle_items(items: Sequence[Item], rng: ItemRandom) -> list[Item]:
    """Return the items in random order; numpy is much faster than `rng.permutation` for long texts."""
    order = np.random.default_rng(rng.random_bits()).permutation(len(items))
    return [items[i] for i in order.tolist()]


def permute_words(words: Sequence[str], positions: Sequence[int], rng: ItemRandom) -> list[str]:
    """Return the words with those at the given positions shuffled among themselves."""
    dealt = list(words)
    for position, source in zip(positions, shuffle_items(positions, rng), strict=True):
        dealt[position] = words[source]
    return dealt


def shuffle_words(parsed: Parsed, keep_phrases: bool, rng: ItemRandom) -> list[str]:
    """Shuffle all tokens, or all noun phrases and the tokens outside them."""
    units = _group_movable_tokens(parsed, Span(0, len(parsed.tokens)), keep_phrases)
    return [word for unit in shuffle_items(units, rng) for word in unit]


def shuffle_sentence_words(parsed: Parsed, keep_phrases: bool, rng: ItemRandom) -> list[str]:
    """Shuffle the tokens within each sentence; the last token, or the last kept noun phrase, stays last."""
    words: list[str] = []
    for span in parsed.sentences:
        *moved, last = _group_movable_tokens(parsed, span, keep_phrases)
        words += (word for unit in (*shuffle_items(moved, rng), last) for word in unit)
    return words


def _group_movable_tokens(parsed: Parsed, span: Span, keep_phrases: bool) -> list[list[str]]:
    """Return the units that move: each token, or each noun phrase and each token outside them."""
    if not keep_phrases:
        return [[word] for word in parsed.list_words(span)]
    # the chunks are in the order of the text
    first, last = (bisect_left(parsed.chunks, Span(end, 0)) for end in span)
    ends = {chunk.start: chunk.end for chunk in parsed.chunks[first:last] if chunk.end <= span.end}
    found: list[list[str]] = []
    i = span.start
    while i < span.end:
        end = ends.get(i, i + 1)
        found.append(parsed.list_words(Span(i, end)))
        i = end
    return found


def replace_noun_phrases(parsed: Parsed, phrases: Sequence[Span]) -> list[str]:
    """Return the tokens with the noun phrases replaced by `phrases`, in order."""
    words: list[str] = []
    done = 0
    for slot, phrase in zip(parsed.chunks, phrases, strict=True):
        words += parsed.list_words(Span(done, slot.start))
        words += parsed.list_words(phrase)
        done = slot.end
    return words + parsed.list_words(Span(done, len(parsed.tokens)))


def shuffle_some_words(parsed: Parsed, count: int, rng: ItemRandom) -> list[str]:
    """Shuffle `count` random tokens among their positions."""
    return permute_words(parsed.list_words(), shuffle_items(range(len(parsed.tokens)), rng)[:count], rng)


def find_prepositions(parsed: Parsed) -> list[int]:
    """Return the token positions of the prepositions."""
    return [i for i, token in enumerate(parsed.tokens) if token.tag == "ADP"]


def overwrite_with_prepositions(parsed: Parsed, text: str, rng: ItemRandom) -> list[str]:
    """Shuffle the prepositions as the program of paper 001 does.

    That program uses the character offset of a preposition as a token position. It overwrites the token at that
    position and moves no preposition.
    """
    words, positions = parsed.list_words(), find_prepositions(parsed)
    offsets = find_offsets(text, parsed.tokens)
    dealt = list(words)
    for position, source in zip(positions, shuffle_items(positions, rng), strict=True):
        if offsets[position].start < len(words):
            dealt[offsets[position].start] = words[source]
    return dealt


def order_sentences(parsed: Parsed, sentences: Sequence[Span]) -> list[str]:
    """Return the tokens of the sentences in the given order."""
    return [word for span in sentences for word in parsed.list_words(span)]


def move_sentence_to_end(sentences: Sequence[str], number: int) -> str:
    """Join the sentences with the sentence at this position last."""
    return " ".join([*sentences[:number], *sentences[number + 1 :], sentences[number]])


def delete_sentence(text: str, starts: Sequence[int], number: int) -> str:
    """Return the text without the sentence at this position; `starts` holds the offset of each sentence."""
    return (text[: starts[number]] + text[[*starts, len(text)][number + 1] :]).strip()
