"""Texts as term numbers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shaketable.core.documents import Collection, Doc, Slate
from shaketable.core.registries import RANKERS
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.nlp.analyzer import Analyzer
from shaketable.retrieval import inverted_index
from shaketable.retrieval.term_numbers import STOP_TERM, UNKNOWN_TERM, TermNumbering, TextCache

TEXTS = st.lists(st.text(st.sampled_from("abcé 東the\ud800.") | st.characters(exclude_categories=())), max_size=20)


def fresh(limit: int = 1_000_000) -> tuple[TermNumbering, dict[str, int]]:
    terms: dict[str, int] = {}
    return TermNumbering(Analyzer(), lambda new: [terms.setdefault(t, len(terms)) for t in new], limit), terms


@settings(deadline=None)  # kernels are compiled on the way
@given(st.lists(TEXTS, max_size=4), st.sampled_from([0, 3, 1_000_000]))
def test_the_kernel_reads_as_the_tokenizer_does(blocks: list[list[str]], limit: int) -> None:
    vocabulary, terms = fresh(limit)
    for texts in blocks:
        tokens, sizes = vocabulary(texts)
        names = {number: term for term, number in terms.items()}
        rows = np.split(tokens, np.cumsum(sizes)[:-1]) if texts else []
        assert [[names[t] for t in row] for row in rows] == [Analyzer()(text) for text in texts]


def test_colliding_words_are_distinguished() -> None:
    """Short words, words that share their first eight letters, and words that end in NUL, in a table that grows."""
    short = [f"{a}{b}{c}" for a in "qwzxjkvbnmpl" for b in "0123456789abc" for c in "0123456789abc"]
    words = short + [f"shaketable{word}" for word in short] + ["a", "a\0", "a\0\0", "abcdefgh", "abcdefgh\0"]
    terms: dict[str, int] = {}
    plain = Analyzer(split="space", stopwords="none", stemmer="none")
    vocabulary = TermNumbering(plain, lambda new: [terms.setdefault(t, len(terms)) for t in new])
    tokens, sizes = vocabulary([" ".join(words), " ".join(reversed(words))])
    assert sizes.tolist() == [len(words)] * 2
    assert tokens[: len(words)].tolist() == list(range(len(words))) == tokens[len(words) :].tolist()[::-1]
    assert list(terms) == words


def test_each_word_is_asked_for_once() -> None:
    asked: list[str] = []

    def unknown(terms: list[str]) -> list[int]:
        asked.extend(terms)
        return [UNKNOWN_TERM] * len(terms)

    vocabulary = TermNumbering(Analyzer(), unknown)
    tokens, sizes = vocabulary(["the boat boats", "boat"])
    vocabulary(["boat"])
    assert asked == ["boat", "boat"]  # of "boat" and of "boats"
    assert tokens.tolist() == [UNKNOWN_TERM] * 3
    assert sizes.tolist() == [2, 1]
    assert STOP_TERM not in tokens


def test_rows_are_cached_up_to_the_limit() -> None:
    read: list[str] = []
    vocabulary, _ = fresh()

    def record_texts(texts):  # type: ignore[no-untyped-def]
        read.extend(texts := list(texts))
        return vocabulary(texts)

    texts = TextCache(record_texts, max_terms=4)  # type: ignore[arg-type]
    one, two = Doc("red boat"), Doc("boat", title="blue")
    assert texts.read([one, two, one]).rows.tolist() == [0, 1, 0]
    assert [array.tolist() for array in texts.read([])[1:]] == [[0, 1, 2, 1], [0, 2, 4]]
    assert texts.read([two, Doc("blue boat")]).rows.tolist() == [1, 2]  # the same text, but another title
    assert read == ["red boat", "blue boat", "blue boat"]
    assert texts.read([two]).rows.tolist() == [1]
    assert texts.read([two, Doc("sea")]).rows.tolist() == [0, 1]  # forgotten, and read again
    assert read[3:] == ["blue boat", "sea"]
    assert texts.read([]).rows.tolist() == []


def test_texts_are_added_while_arrays_of_the_cache_are_in_use() -> None:
    """A kernel that was just compiled keeps its arguments for a while."""
    vocabulary, _ = fresh()
    texts = TextCache(vocabulary)
    held = texts.read([Doc("red boat")])
    later = texts.read([Doc("blue boat")])
    assert [array.tolist() for array in later] == [[1], [0, 1, 2, 1], [0, 2, 4]]
    assert [array.tolist() for array in held] == [[0], [0, 1], [0, 2]]


@pytest.mark.parametrize("spec", ["bm25", "ql", "rm3"])
def test_threads_give_the_scores_and_lists_of_one_thread(spec: str) -> None:
    """Texts and queries with new words, many at a time: all rankers of an index share its vocabulary."""
    rng = Random(3)
    words = ["".join(rng.choices("abcdefghij", k=4)) for _ in range(3000)]
    docs = {f"d{i}": Doc(" ".join(rng.choices(words, k=30))) for i in range(200)}
    queries = [" ".join(rng.choices(words, k=3)) for _ in range(200)]
    slates = [Slate(query, tuple(Doc(" ".join(rng.choices(words, k=20))) for _ in range(5))) for query in queries]

    def open_ranker() -> Any:
        inverted_index._open_indexes.clear()
        return RANKERS.build(spec).open(Collection("texts", MemoryCorpus(docs), {}))

    def answer(ranker: Any, number: int) -> tuple[list[float], dict[str, float]]:
        return ranker.score([slates[number]])[0].tolist(), ranker.search([queries[number]], 10)[0]

    alone = open_ranker()
    expected = [answer(alone, number) for number in range(len(queries))]
    for _ in range(3):
        shared = open_ranker()
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(lambda number, ranker=shared: answer(ranker, number), range(len(queries)))) == expected
