"""Documents by their docno: a JSONL file that stays on disk, or a dictionary in memory."""

from __future__ import annotations

import gzip
import json
import mmap
import shutil
import zlib
from abc import abstractmethod
from array import array
from collections.abc import ItemsView, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from shaketable.data.ids import Ids
from shaketable.errors import BadInput
from shaketable.files import home, open_binary, written_whole_binary
from shaketable.types import Doc

BOM = b"\xef\xbb\xbf"


class StreamedCorpus(Mapping[str, Doc]):
    """A corpus that is read in passes: `items()` follows `pairs()` instead of looking up every docno."""

    @abstractmethod
    def pairs(self) -> Iterator[tuple[str, Doc]]:
        """Every docno and its document, in the order of the source."""

    def items(self) -> ItemsView[str, Doc]:
        return _Pairs(self)


class _Pairs(ItemsView[str, Doc]):
    _mapping: StreamedCorpus

    def __iter__(self) -> Iterator[tuple[str, Doc]]:
        return self._mapping.pairs()


@dataclass(frozen=True)
class MemoryCorpus(Mapping[str, Doc]):
    """Documents that are in memory already.

    >>> corpus = MemoryCorpus({"d1": Doc("a boat"), "d2": Doc("a train")})
    >>> corpus["d2"].text, "d3" in corpus
    ('a train', False)
    """

    docs: Mapping[str, Doc]

    @cached_property
    def fingerprint(self) -> str:
        """Names the content, whatever its order."""
        digest = blake2b(digest_size=16)
        for docno, doc in sorted(self.docs.items(), key=lambda item: item[0]):
            digest.update(repr((docno, doc.title, doc.url, doc.body)).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def __getitem__(self, docno: str) -> Doc:
        return self.docs[docno]

    def __contains__(self, docno: object) -> bool:
        return docno in self.docs

    def __iter__(self) -> Iterator[str]:
        return iter(self.docs)

    def __len__(self) -> int:
        return len(self.docs)

    def items(self) -> ItemsView[str, Doc]:
        return self.docs.items()


@dataclass(frozen=True, eq=False)
class JsonlCorpus(StreamedCorpus):
    """Documents of a JSONL file: ids and places in memory, texts on disk until asked for.

    Each line is an object with "_id", "text" and, where known, "title" and "url" (or "metadata": {"url": ...}).
    """

    path: Path
    fingerprint: str
    ids: Ids = field(repr=False)
    starts: NDArray[np.int64] = field(repr=False)
    """Where each document begins, and last where the file ends: what lies between two is one line, blank ones after."""

    @classmethod
    def read(cls, path: Path) -> JsonlCorpus:
        """Pass over the file once and check every line; a gzipped file is unpacked into the home folder first."""
        plain = _unpacked(path) if path.suffix == ".gz" else path
        starts = array("q")
        digest = blake2b(digest_size=16)
        try:
            ids = Ids.build(_scan(plain, path, starts, digest))
        except _Twice as error:
            raise BadInput(str(error), path) from error
        if not len(ids):
            raise BadInput("holds no documents", path)
        return cls(plain, digest.hexdigest(), ids, np.frombuffer(starts, dtype=np.int64))
