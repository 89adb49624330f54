"""Confusion of labels, against another library and by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.errors import BadInput
from shaketable.measures.confusion import compute_confusion

PAIRS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abcd"))).map(lambda pairs: [*pairs, ("a", "d")])
"""Two labels at least: of one alone the other library warns."""


def test_by_hand() -> None:
    found = compute_confusion(["a", "a", "a", "b"], ["a", "b", "a", "b"])
    table = found.to_frame().set_index("kind")
    assert found.counts.tolist() == [[2, 1], [0, 1]]
    assert found.accuracy == 0.75
    assert table.loc["a", ["precision", "recall", "F1"]].tolist() == pytest.approx([1, 2 / 3, 0.8])
    assert table.loc["b", ["precision", "recall", "F1"]].tolist() == pytest.approx([0.5, 1, 2 / 3])
    assert found.macro_f1 == pytest.approx((0.8 + 2 / 3) / 2)
    assert table["as b"].tolist() == [1, 1]


@given(PAIRS)
def test_another_library_agrees(pairs: list[tuple[str, str]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    truth, guesses = [t for t, _ in pairs], [g for _, g in pairs]
    found = compute_confusion(truth, guesses)
    assert found.counts.tolist() == metrics.confusion_matrix(truth, guesses, labels=list(found.labels)).tolist()
    assert found.accuracy == pytest.approx(metrics.accuracy_score(truth, guesses))
    assert found.macro_f1 == pytest.approx(metrics.f1_score(truth, guesses, average="macro", zero_division=0))


@pytest.mark.parametrize(("truth", "guesses"), [([], []), (["a"], [])])
def test_labels_of_different_length_are_refused(truth: list[str], guesses: list[str]) -> None:
    with pytest.raises(BadInput, match="cannot be compared"):
        compute_confusion(truth, guesses)
