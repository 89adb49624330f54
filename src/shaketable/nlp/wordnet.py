"""A reader of the WordNet files that NLTK and Princeton distribute, without a library.

The index files list the senses of a word by frequency. A data file has one sense per line, and the number of a sense is
its byte offset. Loading reads the files into memory and splits the index; senses are parsed on demand.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from shaketable.core.errors import BadInput, quote_value
from shaketable.core.home import home_folder

PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")
MAX_BYTES = 256 << 20
"""The largest total size of the files; WordNet 3.0 has 30 million bytes."""


@dataclass(frozen=True)
class WordNet:
    """The words of WordNet: `index` has the line of each word by part of speech, `data` the senses."""

    index: dict[str, dict[bytes, bytes]]
    data: dict[str, bytes]
    path: Path = field(default=Path("WordNet"), compare=False)
    """The source of the files, for error messages."""

    def find_synonyms(self, word: str, pos: str | None = None) -> tuple[str, ...]:
        """Return the words that share a sense with this one: nouns, then verbs, frequent senses first."""
        found: dict[str, None] = {}
        for sense in self.iterate_senses(word, pos):
            found.update(dict.fromkeys(sense))
        found.pop(word, None)
        return tuple(found)

    def iterate_senses(self, word: str, pos: str | None = None) -> Iterator[tuple[str, ...]]:
        """Yield the words of each sense, in lower case, with spaces instead of underscores."""
        key = _to_key(word)
        for part in PARTS_OF_SPEECH if pos is None else (pos,):
            line = self.index[part].get(key)
            if line is None:
                continue
            try:
                fields = line.split()  # pos, senses, pointers, their symbols, senses, tagged senses, offsets
                senses = int(fields[1])
                if not 0 < senses <= len(fields) - 2:
                    raise ValueError(f"{senses} senses")
                words = [self._read_sense_words(part, int(offset)) for offset in fields[-senses:]]
            except (ValueError, IndexError) as error:  # UnicodeDecodeError is one of them
                raise BadInput(
                    f"is damaged where the {part} {quote_value(word)} should be ({error})", self.path
                ) from error
            yield from words

    def count_senses(self, pos: str) -> Iterator[tuple[str, int]]:
        """Yield the words of a part of speech and their numbers of senses."""
        for key, line in self.index[pos].items():
            try:
                yield key.decode().replace("_", " "), int(line.split(maxsplit=2)[1])
            except (ValueError, IndexError) as error:
                raise BadInput(f"is damaged where a {pos} should be ({error})", self.path) from error

    def _read_sense_words(self, pos: str, offset: int) -> tuple[str, ...]:
        data = self.data[pos]
        fields = data[offset : data.index(b"|", offset)].split()  # offset, file, type, words in hex, then word, id, ...
        if int(fields[0]) != offset:
            raise ValueError(f"no sense begins at {offset}")
        words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
        return tuple(
            w.decode().partition("(")[0].replace("_", " ").lower() for w in words
        )  # "(a)": position of an adjective

    def __contains__(self, word: str) -> bool:
        key = _to_key(word)
        return any(key in words for words in self.index.values())


def list_wordnet_paths() -> list[Path]:
    """Return the paths that may hold WordNet, as a folder or as the zip file of NLTK."""
    roots = [Path(p) for p in os.environ.get("NLTK_DATA", "").split(os.pathsep) if p]
    roots += [Path.home() / "nltk_data", home_folder() / "resources"]
    return [root / "corpora" / name for root in roots for name in ("wordnet", "wordnet.zip")]


def find_wordnet_path() -> Path | None:
    """Return the first path that holds WordNet."""
    return next((p for p in list_wordnet_paths() if p.is_file() or (p / "index.noun").is_file()), None)


def open_wordnet() -> WordNet:
    """Open WordNet from the first path that holds it."""
    path = find_wordnet_path()
    if path is None:
        raise BadInput(
            f"WordNet is in none of {', '.join(map(str, list_wordnet_paths()))}; "
            "unpack it there or point NLTK_DATA to the folder that has corpora/wordnet.zip"
        )
    return read_wordnet(path)


@lru_cache(maxsize=1)
def read_wordnet(path: Path) -> WordNet:
    """Read a folder of index and data files, or a zip of one."""
    names = [f"{kind}.{pos}" for kind in ("index", "data") for pos in PARTS_OF_SPEECH]
    try:
        if path.is_dir():
            _refuse_oversized(sum((path / name).stat().st_size for name in names), path)
            files = {name: (path / name).read_bytes() for name in names}
        else:
            with zipfile.ZipFile(path) as archive:
                _refuse_oversized(sum(archive.getinfo(f"wordnet/{name}").file_size for name in names), path)
                files = {name: archive.read(f"wordnet/{name}") for name in names}
    except (OSError, KeyError, ValueError, EOFError, RuntimeError, zlib.error, zipfile.BadZipFile) as error:
        raise BadInput(f"is not a complete WordNet ({error})", path) from error  # RuntimeError: zip with a password
    return WordNet(
        {pos: _parse_index(files[f"index.{pos}"]) for pos in PARTS_OF_SPEECH},
        {pos: files[f"data.{pos}"] for pos in PARTS_OF_SPEECH},
        path,
    )


def _refuse_oversized(size: int, path: Path) -> None:
    if size > MAX_BYTES:
        raise BadInput(f"has {size:,} bytes; WordNet has far fewer than {MAX_BYTES:,}", path)


def _to_key(word: str) -> bytes:
    return word.replace(" ", "_").encode("utf-8", "surrogatepass")


def _parse_index(index: bytes) -> dict[bytes, bytes]:
    """Return word -> the rest of its line; the indented licence is skipped."""
    rows = (line.partition(b" ") for line in index.splitlines() if not line.startswith(b" "))
    return {word: rest for word, _, rest in rows}
