"""Checksums of files, and JSON files that contain their own checksum."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import IO, Any
from zlib import crc32

from shaketable.core.errors import BadInput, Damaged
from shaketable.files.reading import explain_read_errors

CHECKSUM_KEY = "checksum"
CHECKSUM_BLOCK_BYTES = 1 << 20


def digest_file(path: Path) -> str:
    """Return a digest of a file's content."""
    with path.open("rb") as raw:
        return file_digest(raw, lambda: blake2b(digest_size=16)).hexdigest()


def digest_files(paths: Iterable[Path]) -> list[str]:
    """Return digests of files in the order of their paths; an unreadable file raises `BadInput`."""
    found = []
    for path in sorted(set(paths)):
        with explain_read_errors(path):
            found.append(digest_file(path))
    return found


def compute_crc32(raw: IO[bytes]) -> int:
    """Return the CRC-32, which is four times as fast as a cryptographic hash and detects every flipped bit."""
    value, block = 0, memoryview(bytearray(CHECKSUM_BLOCK_BYTES))
    while size := raw.readinto(block):  # type: ignore[attr-defined]
        value = crc32(block[:size], value)
    return value


def seal_json(about: Mapping[str, Any]) -> str:
    """Return an object as JSON with a checksum of its content."""
    return json.dumps({**about, CHECKSUM_KEY: _compute_checksum(about)}, indent=1) + "\n"


def read_sealed_json(path: Path) -> dict[str, Any]:
    """Return the object that `seal_json` wrote; raise `Damaged` if the file has changed."""
    try:
        about = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise Damaged("is missing", path) from error
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", path) from error
    except (ValueError, RecursionError) as error:
        raise Damaged(f"is not valid JSON ({error})", path) from error
    if not isinstance(about, dict) or about.pop(CHECKSUM_KEY, None) != _compute_checksum(about):
        raise Damaged("has a missing or wrong checksum: it was damaged or edited", path)
    return about


def _compute_checksum(about: Mapping[str, Any]) -> str:
    plain = json.loads(json.dumps(about))  # tuples become lists and keys become strings, as in the file
    return blake2b(json.dumps(plain, sort_keys=True).encode(), digest_size=16).hexdigest()
