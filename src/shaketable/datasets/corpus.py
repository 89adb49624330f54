"""Corpora that map a docno to its document: a JSONL file on disk, or a dictionary in memory."""

from __future__ import annotations

import json
import mmap
import shutil
from abc import abstractmethod
from array import array
from collections.abc import ItemsView, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shaketable.core.documents import Doc
from shaketable.core.errors import BadInput, quote_value, truncate
from shaketable.datasets.corpus_copies import CorpusCopy, Output, open_copy
from shaketable.datasets.limits import MAX_ID_CHARS, check_id
from shaketable.datasets.packed_strings import PackedStrings
from shaketable.files.checksums import digest_file
from shaketable.files.reading import BOM, MAX_LINE_BYTES, explain_read_errors, open_binary, parse_json


class StreamedCorpus(Mapping[str, Doc]):
    """A corpus whose `items()` streams the source with `iter_items` instead of looking up each docno."""

    @abstractmethod
    def iter_items(self) -> Iterator[tuple[str, Doc]]:
        """Yield each docno and its document, in source order."""

    def items(self) -> ItemsView[str, Doc]:
        return _Pairs(self)


class _Pairs(ItemsView[str, Doc]):
    _mapping: StreamedCorpus

    def __iter__(self) -> Iterator[tuple[str, Doc]]:
        return self._mapping.iter_items()


@dataclass(frozen=True)
class MemoryCorpus(Mapping[str, Doc]):
    """A corpus held in memory.

    >>> corpus = MemoryCorpus({"d1": Doc("a boat"), "d2": Doc("a train")})
    >>> corpus["d2"].text, "d3" in corpus
    ('a train', False)
    """

    docs: Mapping[str, Doc]

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the content that does not depend on the order."""
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
    """A corpus in a JSONL file: ids and offsets are in memory, texts are read on access.

    Each line is an object with "_id", "text" and, where known, "title" and "url" (or "metadata": {"url": ...}).
    """

    path: Path
    fingerprint: str
    ids: PackedStrings = field(repr=False)
    starts: NDArray[np.int64] = field(repr=False)
    """The byte offset of each document, then the file size; a document's range includes the blank lines after it."""
    notice: str = ""
    """A sentence about this process, such as a damaged copy that was made again; "" if none."""

    @classmethod
    def read(cls, path: Path) -> JsonlCorpus:
        """Read and check the file in one pass; a gzipped file is first unpacked into the home folder."""
        if path.suffix != ".gz":
            return cls._read_plain(path, path)
        with explain_read_errors(path):
            digest = digest_file(path)
        return cls.read_copy(open_copy(path, digest, lambda out: _unpack(path, out)), path)

    @classmethod
    def read_copy(cls, copy: CorpusCopy, path: Path) -> JsonlCorpus:
        """Read a sound copy of the user's file `path`; errors are errors of that file."""
        try:
            return replace(cls._read_plain(copy.path, path), notice=copy.remark)
        except BadInput:
            copy.remove()
            raise

    @classmethod
    def _read_plain(cls, plain: Path, path: Path) -> JsonlCorpus:
        starts, digest = array("q"), blake2b(digest_size=16)

        def docnos() -> Iterator[str]:
            for _, start, line, docno in _iter_entries(plain, path):
                starts.append(start)
                digest.update(line)
                yield docno

        try:
            ids = PackedStrings.build(docnos())
        except BadInput:
            _refuse_duplicate_ids(plain, path)
            raise
        text = ids.blob.tobytes().decode()
        if " " in text or not text.isprintable() or np.diff(ids.offsets).max(initial=0) > MAX_ID_CHARS:
            for number, _, _, docno in _iter_entries(plain, path):
                check_id(docno, "id", path, number)
        if not starts:
            raise BadInput("holds no documents", path)
        starts.append(plain.stat().st_size)
        return cls(plain, digest.hexdigest(), ids, np.frombuffer(starts, np.int64))

    @cached_property
    def _bytes(self) -> mmap.mmap:
        with explain_read_errors(self.path), self.path.open("rb") as raw:
            return mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ)

    def _read_at(self, number: int) -> tuple[str, Doc]:
        start, end = self.starts[number : number + 2].tolist()
        try:
            docno, fields = parse_record(self._bytes[start:end].decode(), self.path)
            return docno, make_document(fields)
        except (BadInput, UnicodeDecodeError) as error:
            raise self._make_changed_error() from error

    def _make_changed_error(self) -> BadInput:
        return BadInput("changed after it was loaded; load it again", self.path)

    def __getitem__(self, docno: str) -> Doc:
        if (number := self.ids.find(docno)) < 0:
            raise KeyError(docno)
        found, doc = self._read_at(number)
        if found != docno:
            raise self._make_changed_error()
        return doc

    def __contains__(self, docno: object) -> bool:
        return docno in self.ids

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    def __len__(self) -> int:
        return len(self.ids)

    def iter_items(self) -> Iterator[tuple[str, Doc]]:
        return map(self._read_at, range(len(self)))


def parse_record(line: str, path: Path, number: int | None = None) -> tuple[str, dict[str, Any]]:
    """Return the id and the fields of one line of a corpus or query file; raise `BadInput` if the line is invalid."""
    fields = parse_json(line, path, number)
    if not isinstance(fields, dict):
        raise BadInput('is not an object; write {"_id": ..., "text": ...}', path, number)
    if "_id" not in fields or "text" not in fields:
        lacking, there = (
            "text" if "_id" in fields else "_id",
            truncate(json.dumps(", ".join(fields))[1:-1]) or "nothing",
        )
        raise BadInput(f'has no "{lacking}"; each line needs "_id" and "text", this one has: {there}', path, number)
    name = fields["_id"]
    if isinstance(name, int) and not isinstance(name, bool):
        name = str(name)
    if not isinstance(name, str) or not name:
        shown = json.dumps(name) if name is None or isinstance(name, str | float | bool) else f"a {type(name).__name__}"
        raise BadInput(f'"_id" is {shown}; it must be a string that is not empty', path, number)
    for key in ("text", "title", "url", "kind", "description"):
        if not isinstance(fields.get(key, ""), str):
            if fields[key] is not None or key == "text":
                raise BadInput(f'"{key}" of {quote_value(name)} is not a string', path, number)
            fields[key] = ""
    return name, fields


def get_field(fields: Mapping[str, Any], name: str) -> str:
    """Return a field, or the field of that name under "metadata", where BEIR keeps additional fields."""
    if value := fields.get(name):
        return str(value)
    metadata = fields.get("metadata")
    value = metadata.get(name) if isinstance(metadata, dict) else None
    return value if isinstance(value, str) else ""


def make_document(fields: Mapping[str, Any]) -> Doc:
    """Return the document described by the fields of a line."""
    return Doc(body=fields["text"], title=fields.get("title", ""), url=get_field(fields, "url"))


def _iter_entries(plain: Path, shown: Path) -> Iterator[tuple[int, int, bytes, str]]:
    """Yield line number, byte offset, line and docno of each document. Errors name the user's file, `shown`."""
    start = 0
    with open_binary(plain) as raw:
        for number, line in enumerate(iter(partial(raw.readline, MAX_LINE_BYTES + 1), b""), 1):
            if len(line) > MAX_LINE_BYTES:
                raise BadInput(f"has a line of more than {MAX_LINE_BYTES:,} bytes", shown, number)
            end = start + len(line)
            if number == 1 and line.startswith(BOM):
                line, start = line.removeprefix(BOM), len(BOM)
            if not line.isspace() and line:
                try:
                    docno, _ = parse_record(line.decode().rstrip("\r\n"), shown, number)
                except UnicodeDecodeError as error:
                    raise BadInput("is not UTF-8 text", shown, number) from error
                yield number, start, line, docno
            start = end


def _refuse_duplicate_ids(plain: Path, shown: Path) -> None:
    """Raise `BadInput` for the first duplicate id; a second pass finds its line number."""
    seen: dict[str, int] = {}
    for number, _, _, docno in _iter_entries(plain, shown):
        if (first := seen.setdefault(docno, number)) != number:
            raise BadInput(f"the id {quote_value(docno)} is taken; line {first} has it too", shown, number)


def _unpack(path: Path, out: Output) -> None:
    with open_binary(path) as text:
        shutil.copyfileobj(text, out, 1 << 20)
