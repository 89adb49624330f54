"""GGUF files for tests, written by the format's description."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

F32, Q4_1, Q8_0 = 0, 3, 8


def packed(values: np.ndarray, kind: int) -> bytes:
    """Numbers in the blocks of a kind, as a quantiser makes them."""
    if kind == F32:
        return values.astype("<f4").tobytes()
    out = []
    for block in values.reshape(-1, 32).astype(np.float64):
        if kind == Q8_0:
            scale = np.float16(abs(block).max() / 127 or 1)
            out.append(scale.tobytes() + np.rint(block / float(scale)).astype(np.int8).tobytes())
        else:
            least = np.float16(block.min())
            scale = np.float16((block.max() - block.min()) / 15 or 1)
            numbers = np.clip(np.rint((block - float(least)) / float(scale)), 0, 15).astype(np.uint8)
            out.append(scale.tobytes() + least.tobytes() + (numbers[:16] | numbers[16:] << 4).tobytes())
    return b"".join(out)


def string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def setting(value: Any) -> bytes:
    match value:
        case bool():
            return struct.pack("<I?", 7, value)
        case int():
            return struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case str():
            return struct.pack("<I", 8) + string(value)
        case [str(), *_]:
            return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(string, value))
        case _:
            return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)


def write_gguf(
    path: Path, settings: Mapping[str, Any], tensors: Mapping[str, tuple[np.ndarray, int]] | None = None
) -> Path:
    """A file of version 3 with these settings, and tensors of these kinds."""
    path.write_bytes(gguf(settings, tensors or {}))
    return path


def gguf(settings: Mapping[str, Any], tensors: Mapping[str, tuple[np.ndarray, int]]) -> bytes:
    """What is in such a file."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(settings))
    head += b"".join(string(key) + setting(value) for key, value in settings.items())
    body = b""
    for name, (values, kind) in tensors.items():
        body += bytes(-len(body) % 32)
        shape: Sequence[int] = values.shape[::-1]
        head += string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, len(body))
        body += packed(values, kind)
    return head + bytes(-len(head) % 32) + body
