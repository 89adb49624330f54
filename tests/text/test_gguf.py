"""GGUF files: what is written is read, block by block, and damage is a sentence."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.errors import BadInput
from shaketable.text.gguf import read_gguf
from tests.text.gguf_files import F32, Q4_1, Q8_0, packed, write_gguf

SETTINGS = {"name": "tree", "layers": 3, "base": 0.5, "bare": True, "tokens": ["a", "é"], "kinds": [1, -2]}


def test_settings_and_plain_numbers_come_back(tmp_path: Path):
    values = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
    file = read_gguf(write_gguf(tmp_path / "f.gguf", SETTINGS, {"w": (values, F32), "h": (values[0], F32)}))
    assert file.settings == SETTINGS
    assert np.array_equal(file.tensors["w"], values)
    assert np.array_equal(file.tensors["h"], values[0])
    assert {tensor.dtype for tensor in file.tensors.values()} == {np.dtype(np.float32)}


def test_blocks_by_hand(tmp_path: Path):
    """x = d q for 8 bits; x = d q + m for 4, the low halves of the bytes first."""
    eight = np.array([0.5, *range(-15, 16)], dtype=np.float32)
    eight[0] = 127.0  # so that d is 1
    four = np.concatenate((np.arange(16), np.arange(16)[::-1])) * 0.5 - 2.0
    path = write_gguf(tmp_path / "f.gguf", {}, {"four": (four, Q4_1), "eight": (eight, Q8_0)})
    file = read_gguf(path)
    assert np.array_equal(file.tensors["eight"], eight)
    assert np.array_equal(file.tensors["four"], four)
    assert packed(four, Q4_1) == np.array([0.5, -2.0], "<f2").tobytes() + bytes(i | (15 - i) << 4 for i in range(16))


@pytest.mark.parametrize(("kind", "steps"), [(Q8_0, 254), (Q4_1, 15)])
def test_blocks_lose_half_a_step_at_most(kind: int, steps: int, tmp_path: Path):
    values = np.random.default_rng(0).normal(size=(8, 64)).astype(np.float32)
    found = read_gguf(write_gguf(tmp_path / "f.gguf", {}, {"w": (values, kind)})).tensors["w"]
    blocks, back = values.reshape(-1, 32), found.reshape(-1, 32)
    width = 2 * abs(blocks).max(1) if kind == Q8_0 else np.ptp(blocks, axis=1)
    assert (abs(blocks - back).max(1) <= 0.6 * width / steps + 2e-3).all()


def test_what_is_no_such_file(tmp_path: Path):
    with pytest.raises(BadInput, match="cannot be read"):
        read_gguf(tmp_path / "nowhere.gguf")
    whole = write_gguf(tmp_path / "f.gguf", SETTINGS, {"w": (np.ones((2, 32)), Q8_0)}).read_bytes()
    damaged = {
        "does not begin": b"GGML" + whole[4:],
        "version is 1": whole[:4] + struct.pack("<I", 1) + whole[8:],
        "ends too early": whole[:100],
        "does not lie in it": whole[:-1],
        "a tensor of kind 99": write_gguf(tmp_path / "g.gguf", {}, {"w": (np.ones(2), F32)})
        .read_bytes()
        .replace(struct.pack("<QIQ", 2, F32, 0), struct.pack("<QIQ", 2, 99, 0)),
    }
    for message, content in damaged.items():
        (tmp_path / "d.gguf").write_bytes(content)
        with pytest.raises(BadInput, match=rf"d\.gguf: is not a whole GGUF file.*{message}"):
            read_gguf(tmp_path / "d.gguf")


@given(st.data())
def test_no_damage_is_more_than_a_sentence(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("gguf")
    whole = bytearray(write_gguf(folder / "f.gguf", SETTINGS, {"w": (np.ones((2, 32)), Q8_0)}).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at : at + 8] = data.draw(st.binary(min_size=1, max_size=8))
    (folder / "d.gguf").write_bytes(whole)
    with suppress(BadInput):
        read_gguf(folder / "d.gguf")
