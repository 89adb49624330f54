"""The vectors of a collection's documents: made once, kept on disk, mapped into memory, searched exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shaketable import files
from shaketable.data import arrays
from shaketable.data.ids import Ids
from shaketable.errors import BadInput, Damaged
from shaketable.types import Corpus, Doc, fingerprint

Floats = NDArray[np.float32]
Encode = Callable[[Sequence[str]], list[Floats]]

FORMAT = 2  # of the files
BLOCK = 4096  # documents encoded at a time
ROWS = 1 << 16  # vectors compared at a time
QUERIES = 256  # queries compared at a time
SLACK = 1e-4
"""Products in float32 choose the candidates, with this much to spare; products in float64 decide."""


@dataclass(frozen=True, eq=False)
class Shelf:
    """One vector for each distinct text, and the documents that have it. Documents are numbered by their docnos."""

    vectors: Floats
    """[texts, d]"""
    texts: Ids
    """The digest of each text."""
    docnos: Ids
    places: NDArray[np.int64]
    """For each document the number of its text."""
    remark: str = ""
    """What a reader should know of how these vectors came about, in a sentence."""

    def find(self, text: str) -> int:
        """The number of a text, -1 if it is not there."""
        return self.texts.find(_digest(text))

    def search(self, queries: Floats, k: int) -> list[dict[str, float]]:
        """For each query the best k documents, best first: highest float32 score, then highest docno."""
        owners = np.argsort(self.places, kind="stable")  # documents by text
        firsts = np.searchsorted(self.places[owners], np.arange(len(self.vectors) + 1))
        found: list[dict[str, float]] = []
        for start in range(0, len(queries), QUERIES):
            some = queries[start : start + QUERIES]
            for query, near in zip(some, self._candidates(some, k), strict=True):
                scores = (self.vectors[near].astype(np.float64) @ query.astype(np.float64)).astype(np.float32)
                docs = np.concatenate([owners[firsts[text] : firsts[text + 1]] for text in near])
                each = np.repeat(scores, firsts[near + 1] - firsts[near])
                best = np.lexsort((-docs, -each))[:k]
                found.append(dict(zip(self.docnos.take(docs[best]), each[best].tolist(), strict=True)))
        return found

    def _candidates(self, queries: Floats, k: int) -> list[NDArray[np.int64]]:
        """For each query the texts that may be among its best k."""
        numbers: list[list[NDArray[np.int64]]] = [[] for _ in queries]
        for start in range(0, len(self.vectors), ROWS):
            products = queries @ self.vectors[start : start + ROWS].T  # [queries, rows]
            kth = max(0, products.shape[1] - k)
            floors = np.partition(products, kth, axis=1)[:, kth] - SLACK * np.maximum(1, np.abs(products).max(axis=1))
            for some, row, floor in zip(numbers, products, floors, strict=True):
                some.append(start + np.flatnonzero(row >= floor))
        return [np.concatenate(some) for some in numbers]


def open_shelf(corpus: Corpus, name: str, encode: Encode) -> Shelf:
    """The vectors on disk, or new ones, which are kept there; `name` tells encoder and corpus."""
    folder, remark = _folder(name), ""
    try:
        if folder.is_dir():
            return read_shelf(folder)
    except Damaged as error:
        arrays.discard(folder)
        remark = f"the vectors of the collection were made again, for those on disk were damaged ({error})"
    stayed = folder.exists()  # damaged, and not to be removed
    try:
        build(corpus, folder, encode)
        return replace(read_shelf(folder, written=not stayed), remark=remark)
    except OSError as error:
        raise BadInput(f"the vectors of the collection cannot be kept ({error.strerror})", folder) from error


def kept_shelf(name: str) -> Shelf | None:
    """The vectors on disk, if they are there and can be read."""
    folder = _folder(name)
    try:
        return read_shelf(folder) if folder.is_dir() else None
    except BadInput:
        return None  # whoever searches makes them again, and says so


def build(corpus: Corpus, folder: Path, encode: Encode) -> None:
    """Read the corpus once and encode each distinct text. The folder appears when it is whole; who was first, stays."""
    texts: dict[str, int] = {}
    docnos: list[str] = []
    places: list[int] = []
    with arrays.kept(folder, {}) as writer:
        for block in _blocks(corpus.items()):
            named = {docno: _digest(doc.text) for docno, doc in block}
            fresh = {named[docno]: doc.text for docno, doc in block if named[docno] not in texts}
            if fresh:
                writer.append("vectors", np.concatenate(encode(list(fresh.values()))))
                texts.update(zip(fresh, range(len(texts), len(texts) + len(fresh)), strict=True))
            docnos += named
            places += (texts[digest] for digest in named.values())
        order = sorted(range(len(docnos)), key=docnos.__getitem__)
        for part, ids in (("docnos", Ids.build(docnos[i] for i in order)), ("texts", Ids.build(texts))):
            for key, array in ids.arrays().items():
                writer.append(f"{part}.{key}", array)
        writer.append("places", np.array(places, np.int64)[order])


def read_shelf(folder: Path, *, written: bool = False) -> Shelf:
    """The vectors in a folder, mapped; `Damaged` if they are not as they were written, which may have been just now."""
    _, found = arrays.read_arrays(folder, written=written)

    def ids(name: str) -> Ids:
        return Ids.from_arrays({key: found[f"{name}.{key}"] for key in ("blob", "offsets", "hashes", "places")})

    return Shelf(found["vectors"], ids("texts"), ids("docnos"), found["places"])


def _folder(name: str) -> Path:
    return files.home() / "vectors" / fingerprint(name, FORMAT)


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _blocks(items: Iterable[tuple[str, Doc]]) -> Iterator[list[tuple[str, Doc]]]:
    remaining = iter(items)
    while block := list(islice(remaining, BLOCK)):
        yield block
