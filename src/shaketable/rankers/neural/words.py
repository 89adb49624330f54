"""Words as numbers, for nets on words: the vocabulary, vectors from text files, letter trigrams.

A word outside the vocabulary has the zero vector, so it is similar to no other word; but it has its own number, so an
exact match is still found.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import normalize

from shaketable.core.documents import Corpus
from shaketable.core.errors import BadInput
from shaketable.files.atomic import atomic_write
from shaketable.files.reading import read_json
from shaketable.nlp.analyzer import Analyzer
from shaketable.nlp.word_vectors import MAX_FREQUENT_WORDS
from shaketable.nlp.word_vectors import read_vectors as read_vectors
from shaketable.nlp.words import find_word_spans
from shaketable.rankers.neural.net import Net, TokenAlignment, Word
from shaketable.rankers.neural.shapes import WordsRead
from shaketable.rankers.neural.text_cache import ArrayCache
from shaketable.rankers.neural.tokens import pad_rows

Ids = NDArray[np.int64]
Floats = NDArray[np.float32]

VOCABULARY_FILE = "vocabulary.json"
ID_CACHE_BYTES = 64 << 20  # numbers and their texts


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The words (or letter trigrams) with a vector, numbered from 1, and the tokenizer of texts.

    >>> vocabulary = Vocabulary(("shake", "table"), Analyzer(stemmer="none"))
    >>> vocabulary.to_ids("Shake the table")
    array([1, 2])
    >>> strange, same = vocabulary.to_ids("Tables tables")
    >>> bool(strange == same > len(vocabulary))
    True
    """

    words: tuple[str, ...]
    tokenizer: Analyzer

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words, 1)}

    def to_ids(self, text: str) -> Ids:
        """Return the number of each word; unknown words get larger, practically unique numbers."""
        numbers, beyond = self.numbers, len(self.words) + 1
        found = (
            numbers.get(word) or beyond + crc32(word.encode("utf-8", "surrogatepass")) for word in self.tokenizer(text)
        )
        return np.fromiter(found, np.int64)

    def write(self, folder: Path) -> None:
        with atomic_write(folder / VOCABULARY_FILE) as out:
            json.dump({"tokenizer": asdict(self.tokenizer), "words": self.words}, out, ensure_ascii=False)

    @classmethod
    def read(cls, folder: Path) -> Self:
        path = folder / VOCABULARY_FILE
        about = read_json(path)
        try:
            return cls(tuple(map(str, about["words"])), Analyzer(**about["tokenizer"]))
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput(f"is not a saved vocabulary of a model ({error!r})", path) from error


def select_most_frequent(parts: Iterable[Iterable[str]], limit: int, min_count: int = 2) -> tuple[str, ...]:
    """Return the items that occur at least `min_count` times, most frequent first, at most `limit`.

    >>> select_most_frequent(["abracadabra"], limit=3)
    ('a', 'b', 'r')
    """
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update(part)
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    return tuple(word for word in ordered[:limit] if counts[word] >= min_count)


def collect_words(corpus: Corpus, tokenizer: Analyzer, limit: int = MAX_FREQUENT_WORDS) -> tuple[str, ...]:
    """Return the frequent words of a collection, for vectors to be learned."""
    return select_most_frequent((tokenizer(doc.text) for _, doc in corpus.items()), limit)


def letter_trigrams(word: str) -> list[str]:
    """Return the letter trigrams of a word, with a mark at its start and end.

    >>> letter_trigrams("table")
    ['#ta', 'tab', 'abl', 'ble', 'le#']
    """
    marked = f"#{word}#"
    return [marked[at : at + 3] for at in range(len(marked) - 2)]


def align_terms(text: str, tokenizer: Analyzer, limit: int | None = None) -> list[Word]:
    """Return the words of a text with their terms, among the first `limit` terms of the text.

    No term spans a space, so the terms of a text are those of its parts.

    >>> text = "The shake-table moves."
    >>> [(text[word.start : word.end], word.tokens) for word in align_terms(text, Analyzer(), limit=2)]
    [('The', ()), ('shake-table', (0, 1)), ('moves', ())]
    """
    found: list[Word] = []
    places = iter([*find_word_spans(text), (len(text) + 1, 0)])
    start, end = next(places)
    at = 0
    for part in re.finditer(r"\S+", text):
        after = at + len(tokenizer(part[0]))
        if start < part.end():
            found.append(Word(start, end, tuple(range(at, after if limit is None else min(after, limit)))))
            start, end = next(places)
        at = after
    return found


class WordPair(NamedTuple):
    """A query and a text as word numbers."""

    query: Ids
    text: Ids
    truncated: bool

    @property
    def length(self) -> int:
        return len(self.query) + len(self.text)


class WordVectorNet(Net):
    """The base of nets that compare query words with text words: tokenisation and word vectors.

    `forward` of a subclass receives word numbers, 0 for padding: query [n, q], text [n, t]. It must look up the vectors
    of the query first and those of the text next, each once (`align_tokens` relies on it).
    """

    def __init__(self, vocabulary: Vocabulary, dim: int, shape: WordsRead):
        super().__init__()
        self.vocabulary = vocabulary
        self.shape = shape
        self.frozen = False
        self.words = nn.Embedding(len(vocabulary) + 1, dim, padding_idx=0)
        self._id_cache: ArrayCache[Ids] = ArrayCache(ID_CACHE_BYTES)

    def load_vectors(self, vectors: Floats, frozen: bool) -> None:
        """Set pretrained vectors, in the order of the vocabulary: [words, d]; frozen vectors are not trained."""
        with torch.no_grad():
            self.words.weight[1:] = torch.from_numpy(vectors)
        self.freeze(frozen)

    def freeze(self, frozen: bool) -> None:
        self.frozen = frozen
        self.words.weight.requires_grad_(not frozen)

    def prepare(self, pairs: Sequence[tuple[str, str]]) -> list[WordPair]:
        queries, texts = self._to_ids([query for query, _ in pairs]), self._to_ids([text for _, text in pairs])
        most, longest = self.shape.query_length, self.shape.text_length
        return [WordPair(q[:most], t[:longest], len(t) > longest) for q, t in zip(queries, texts, strict=True)]

    def _to_ids(self, texts: Sequence[str]) -> list[Ids]:
        return self._id_cache.get_or_make(texts, lambda fresh: [self.vocabulary.to_ids(text) for text in fresh])

    def collate(self, prepared: Sequence[WordPair]) -> dict[str, Tensor]:
        return {"query": pad_rows([p.query for p in prepared], 0), "text": pad_rows([p.text for p in prepared], 0)}

    @abstractmethod
    def forward(self, query: Tensor, text: Tensor) -> Tensor:  # type: ignore[override]
        """Return one score per pair: [n]."""

    def look_up_vectors(self, ids: Tensor) -> Tensor:
        """Return word vectors: [n, w] -> [n, w, d]; unknown words and padding have the zero vector."""
        found: Tensor = self.words(ids.where(ids <= len(self.vocabulary), 0))
        return found

    def cosines(self, query: Tensor, text: Tensor) -> Tensor:
        """Return the cosine of each query word and each text word: [n, q, t]; 1 for equal words, known or not."""
        near = normalize(self.look_up_vectors(query), dim=2) @ normalize(self.look_up_vectors(text), dim=2).transpose(
            1, 2
        )
        return near.masked_fill(match_words(query, text), 1.0)

    def embedding(self) -> nn.Embedding:
        return self.words

    @property
    def no_gradients_reason(self) -> str:
        return ""

    def align_tokens(self, text: str, query: str = "") -> TokenAlignment:
        """Return the alignment; a word outside the vocabulary has no vector of its own."""
        longest = self.shape.text_length
        (ids,) = self._to_ids([text])
        rows = np.where(ids <= len(self.vocabulary), ids, -1)[:longest]
        return TokenAlignment(align_terms(text, self.vocabulary.tokenizer, longest), rows, lookup=1, start=0)

    def decode_vocabulary(self) -> list[str]:
        """Return the words of the vocabulary; stems, if texts are stemmed."""
        return list(self.vocabulary.words)

    def config(self) -> dict[str, Any]:
        return {"dim": self.words.embedding_dim, "frozen": self.frozen, "shape": asdict(self.shape)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], folder: Path) -> Self:
        net = cls(Vocabulary.read(folder), config["dim"], cls.shape_class(**config["shape"]))
        net.freeze(config["frozen"])
        return net

    def save_vocabulary(self, folder: Path) -> None:
        self.vocabulary.write(folder)


def match_words(query: Tensor, text: Tensor) -> Tensor:
    """Return True where a query word equals a text word: [n, q], [n, t] -> [n, q, t]."""
    return (query[:, :, None] == text[:, None, :]) & (query != 0)[:, :, None]
