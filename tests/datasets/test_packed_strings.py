"""Ids: strings in arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.errors import BadInput
from shaketable.datasets import packed_strings as module
from shaketable.datasets.packed_strings import PackedStrings

ANY_TEXT = st.text(st.characters(exclude_categories=()))  # lone surrogates too


@given(st.lists(ANY_TEXT, unique=True), ANY_TEXT)
def test_behaves_as_a_list(strings: list[str], other: str) -> None:
    ids = PackedStrings.build(strings)
    assert len(ids) == len(strings)
    assert list(ids) == strings == [ids[i] for i in range(len(ids))]
    assert [ids.find(s) for s in strings] == list(range(len(strings)))
    assert ids.find(other) == (strings.index(other) if other in strings else -1)
    assert (other in ids) == (other in strings)
    assert ids.find_many([*strings, other]).tolist() == [ids.find(s) for s in [*strings, other]]


@given(st.lists(ANY_TEXT, unique=True, min_size=1), st.data())
def test_take_is_many_lookups(strings: list[str], data: st.DataObject) -> None:
    numbers = data.draw(st.lists(st.integers(0, len(strings) - 1)))
    assert PackedStrings.build(strings).take(np.array(numbers, dtype=np.int64)) == [strings[n] for n in numbers]


def test_a_string_that_comes_twice_is_refused() -> None:
    with pytest.raises(BadInput, match="'b' occurs twice"):
        PackedStrings.build(["a", "b", "c", "b"])


def test_out_of_range() -> None:
    ids = PackedStrings.build(["a"])
    for number in (1, -1):
        with pytest.raises(IndexError):
            ids[number]
    assert 7 not in ids


def test_colliding_hashes_are_distinguished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_hash_string", lambda text: len(text).to_bytes(8, "little"))
    ids = PackedStrings.build(["aa", "b", "cc", "dd"])
    asked = ["aa", "b", "cc", "dd", "ee", "f", ""]
    assert [ids.find(s) for s in asked] == [0, 1, 2, 3, -1, -1, -1] == ids.find_many(asked).tolist()
    with pytest.raises(BadInput, match="'aa' occurs twice"):
        PackedStrings.build(["aa", "b", "cc", "aa"])


def test_through_mapped_files(tmp_path: Path) -> None:
    strings = [f"doc-{i}é" for i in range(20_000)]
    for name, array in PackedStrings.build(strings).to_arrays().items():
        np.save(tmp_path / f"{name}.npy", array)
    ids = PackedStrings.from_arrays({path.stem: np.load(path, mmap_mode="r") for path in tmp_path.glob("*.npy")})
    assert list(ids) == strings
    assert ids.find("doc-19999é") == 19_999
    assert ids.find("doc-20000é") == -1
