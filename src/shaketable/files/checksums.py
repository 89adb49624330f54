"""Checksums of files, and JSON files that carry their own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shaketable.core.errors import BadInput, Damaged
from shaketable.files.reading import explain_read_errors

if TYPE_CHECKING:
    pass


CHECKSUM_KEY = "checksum"


def digest_file(path: Path) -> str:
    """Names the content of a file."""
    with path.open("rb") as raw:
        return file_digest(raw, lambda: blake2b(digest_size=16)).hexdigest()


def digest_files(paths: Iterable[Path]) -> list[str]:
    """Names the content of files, in the order of their paths; one that cannot be read is refused in a sentence."""
    found = []
    for path in sorted(set(paths)):
        with explain_read_errors(path):
            found.append(digest_file(path))
    return found


def seal_json(about: Mapping[str, Any]) -> str:
    """An object as JSON, with a checksum of all that it says."""
    return json.dumps({**about, CHECKSUM_KEY: _compute_checksum(about)}, indent=1) + "\n"


def read_sealed_json(path: Path) -> dict[str, Any]:
    """The object that `seal_json` made the text of; `Damaged` if the file says anything else by now."""
    try:
        about = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise Damaged("is missing", path) from error
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", path) from error
    except (ValueError, RecursionError) as error:
        raise Damaged(f"is not JSON that can be read ({error})", path) from error
    if not isinstance(about, dict) or about.pop(CHECKSUM_KEY, None) != _compute_checksum(about):
        raise Damaged("has no checksum, or another one than what it says: it was damaged, or changed by hand", path)
    return about


def _compute_checksum(about: Mapping[str, Any]) -> str:
    plain = json.loads(json.dumps(about))  # tuples become lists and keys become strings, as they do on the disk
    return blake2b(json.dumps(plain, sort_keys=True).encode(), digest_size=16).hexdigest()
