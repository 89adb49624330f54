"""Texts before and after: words that differ, sentences in pairs, and similarity by an encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shaketable.core.documents import Doc
from shaketable.core.errors import BadInput
from shaketable.measures.text_change import align_sentences, compute_similarities, count_changed_words

WORDS = ("boat", "ship", "rain")


def count_words(texts: Sequence[str]) -> NDArray[Any]:
    """Count three words in each text; the vectors do not have unit length."""
    return np.array([[text.lower().count(word) for word in WORDS] for text in texts], dtype=np.float32)


def test_similarity_by_hand() -> None:
    before, after = Doc("A boat. Rain."), Doc("A ship. Rain.")
    found = compute_similarities(count_words, [before], [after])
    assert found.doc.tolist() == pytest.approx([0.5])  # (1, 0, 1) and (0, 1, 1)
    assert found.sentence.tolist() == pytest.approx([0.5])  # 0 for the first sentence, 1 for the second
    assert found.doc_angular.tolist() == pytest.approx([1 - np.pi / 3])  # arccos 1/2 is a sixth of a turn
    assert found.sentence_angular.tolist() == pytest.approx([((1 - np.pi / 2) + 1) / 2])


def test_another_number_of_sentences_falls_back_to_the_documents() -> None:
    same, split = Doc("A boat, a ship. Rain."), Doc("A boat. A boat. Rain.")
    assert align_sentences(same, split) is None
    found = compute_similarities(count_words, [same, same], [split, same])
    assert found.doc.tolist() == pytest.approx([3 / np.sqrt(3 * 5), 1])  # (1, 1, 1) and (2, 0, 1)
    assert found.sentence.tolist() == found.doc.tolist()
    assert found.sentence_angular.tolist() == found.doc_angular.tolist()


def test_titles_have_sentences_of_their_own() -> None:
    before, after = Doc("It sank. Rain fell.", title="A boat"), Doc("It sank. Rain fell.", title="A ship")
    pairs = [("A boat", "A ship"), ("It sank.", "It sank."), ("Rain fell.", "Rain fell.")]
    assert align_sentences(before, after) == pairs
    assert compute_similarities(count_words, [before], [after]).sentence.tolist() == pytest.approx([2 / 3])
    assert align_sentences(before, Doc("A ship. It sank. Rain fell.")) is None  # as many, but not in the same parts


def test_the_encoder_reads_changed_texts_once() -> None:
    asked: list[list[str]] = []

    def record_calls(texts: Sequence[str]) -> NDArray[Any]:
        asked.append(list(texts))
        return count_words(texts)

    first, second = Doc("A boat. Rain."), Doc("A ship. Rain.")
    compute_similarities(record_calls, [first, first, second], [second, second, second])
    assert asked == [["A boat. Rain.", "A ship. Rain.", "A boat.", "A ship."]]
    compute_similarities(record_calls, [first], [first])
    assert len(asked) == 1


def test_unchanged_texts_have_similarity_1_and_zero_vectors_0() -> None:
    unchanged = Doc("A third of a boat.")
    found = compute_similarities(
        count_words, [unchanged, Doc(""), Doc("Nothing here.")], [unchanged, Doc(""), Doc("A boat.")]
    )
    assert found.doc.tolist() == [1.0, 1.0, 0.0]
    assert found.doc_angular.tolist() == pytest.approx([1.0, 1.0, 1 - np.pi / 2])
    assert found.sentence.tolist() == [1.0, 1.0, 0.0]


def test_vectors_in_one_direction_are_alike_whatever_their_length() -> None:
    found = compute_similarities(
        count_words, [Doc("boat " * 3), Doc("boat ship rain")], [Doc("boat"), Doc("boat ship rain " * 7)]
    )
    assert found.doc.tolist() == pytest.approx([1, 1])
    assert (found.doc <= 1).all()
    assert np.isfinite(found.doc_angular).all()


def test_no_documents() -> None:
    found = compute_similarities(count_words, [], [])
    assert found.doc.shape == found.sentence.shape == found.doc_angular.shape == found.sentence_angular.shape == (0,)


@pytest.mark.parametrize("answer", [np.zeros(2), np.zeros((1, 3)), np.full((2, 3), np.nan)])
def test_an_encoder_that_gives_something_else(answer: NDArray[Any]) -> None:
    with pytest.raises(BadInput, match="did not return a finite vector for each of 2 texts"):
        compute_similarities(lambda texts: answer, [Doc("boat")], [Doc("ship")])


def test_words_that_differ() -> None:
    assert count_changed_words(Doc("a b c", title="t"), Doc("a x c", title="u")) == 2
    assert count_changed_words(Doc("a b c"), Doc("q a b c")) == 1  # by place alone it would be four
