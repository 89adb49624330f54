"""The vectors of a collection's documents: made once, kept on disk, mapped into memory, searched exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shaketable.core.documents import Corpus, Doc, fingerprint
from shaketable.core.errors import BadInput, Damaged
from shaketable.core.home import home_folder
from shaketable.datasets.packed_strings import PackedStrings
from shaketable.files import arrays

Floats = NDArray[np.float32]
Encode = Callable[[Sequence[str]], list[Floats]]

FORMAT_VERSION = 2  # of the files
DOCUMENTS_PER_BLOCK = 4096  # documents encoded at a time
VECTORS_PER_BLOCK = 1 << 16  # vectors compared at a time
QUERIES_PER_BLOCK = 256  # queries compared at a time
SCORE_TOLERANCE = 1e-4
"""Products in float32 choose the candidates, with this much to spare; products in float64 decide."""


@dataclass(frozen=True, eq=False)
class VectorStore:
    """One vector for each distinct text, and the documents that have it. Documents are numbered by their docnos."""

    vectors: Floats
    """[texts, d]"""
    text_digests: PackedStrings
    """The digest of each text."""
    docnos: PackedStrings
    text_numbers: NDArray[np.int64]
    """For each document the number of its text."""
    remark: str = ""
    """What a reader should know of how these vectors came about, in a sentence."""

    def find(self, text: str) -> int:
        """The number of a text, -1 if it is not there."""
        return self.text_digests.find(_digest_text(text))

    def search(self, queries: Floats, k: int) -> list[dict[str, float]]:
        """For each query the best k documents, best first: highest float32 score, then highest docno."""
        owners = np.argsort(self.text_numbers, kind="stable")  # documents by text
        firsts = np.searchsorted(self.text_numbers[owners], np.arange(len(self.vectors) + 1))
        found: list[dict[str, float]] = []
        for start in range(0, len(queries), QUERIES_PER_BLOCK):
            some = queries[start : start + QUERIES_PER_BLOCK]
            for query, near in zip(some, self._select_candidates(some, k), strict=True):
                scores = (self.vectors[near].astype(np.float64) @ query.astype(np.float64)).astype(np.float32)
                docs = np.concatenate([owners[firsts[text] : firsts[text + 1]] for text in near])
                each = np.repeat(scores, firsts[near + 1] - firsts[near])
                best = np.lexsort((-docs, -each))[:k]
                found.append(dict(zip(self.docnos.take(docs[best]), each[best].tolist(), strict=True)))
        return found

    def _select_candidates(self, queries: Floats, k: int) -> list[NDArray[np.int64]]:
        """For each query the texts that may be among its best k."""
        numbers: list[list[NDArray[np.int64]]] = [[] for _ in queries]
        for start in range(0, len(self.vectors), VECTORS_PER_BLOCK):
            products = queries @ self.vectors[start : start + VECTORS_PER_BLOCK].T  # [queries, rows]
            kth = max(0, products.shape[1] - k)
            floors = np.partition(products, kth, axis=1)[:, kth] - SCORE_TOLERANCE * np.maximum(
                1, np.abs(products).max(axis=1)
            )
            for some, row, floor in zip(numbers, products, floors, strict=True):
                some.append(start + np.flatnonzero(row >= floor))
        return [np.concatenate(some) for some in numbers]


def open_vector_store(corpus: Corpus, name: str, encode: Encode) -> VectorStore:
    """The vectors on disk, or new ones, which are kept there; `name` tells encoder and corpus."""
    folder, remark = _store_folder(name), ""
    try:
        if folder.is_dir():
            return read_vector_store(folder)
    except Damaged as error:
        arrays.discard_array_folder(folder)
        remark = f"the vectors of the collection were made again, for those on disk were damaged ({error})"
    stayed = folder.exists()  # damaged, and not to be removed
    try:
        build_vector_store(corpus, folder, encode)
        return replace(read_vector_store(folder, written=not stayed), remark=remark)
    except OSError as error:
        raise BadInput(f"the vectors of the collection cannot be kept ({error.strerror})", folder) from error


def find_vector_store(name: str) -> VectorStore | None:
    """The vectors on disk, if they are there and can be read."""
    folder = _store_folder(name)
    try:
        return read_vector_store(folder) if folder.is_dir() else None
    except BadInput:
        return None  # the search computes them again and says so


def build_vector_store(corpus: Corpus, folder: Path, encode: Encode) -> None:
    """Read the corpus once and encode each distinct text. The folder appears when it is whole; who was first, stays."""
    texts: dict[str, int] = {}
    docnos: list[str] = []
    places: list[int] = []
    with arrays.atomic_array_folder(folder, {}) as writer:
        for block in _iter_blocks(corpus.items()):
            named = {docno: _digest_text(doc.text) for docno, doc in block}
            fresh = {named[docno]: doc.text for docno, doc in block if named[docno] not in texts}
            if fresh:
                writer.append("vectors", np.concatenate(encode(list(fresh.values()))))
                texts.update(zip(fresh, range(len(texts), len(texts) + len(fresh)), strict=True))
            docnos += named
            places += (texts[digest] for digest in named.values())
        order = sorted(range(len(docnos)), key=docnos.__getitem__)
        for part, ids in (
            ("docnos", PackedStrings.build(docnos[i] for i in order)),
            ("texts", PackedStrings.build(texts)),
        ):
            for key, array in ids.to_arrays().items():
                writer.append(f"{part}.{key}", array)
        writer.append("places", np.array(places, np.int64)[order])


def read_vector_store(folder: Path, *, written: bool = False) -> VectorStore:
    """The vectors in a folder, mapped; `Damaged` if they are not as they were written, which may have been just now."""
    _, found = arrays.read_arrays(folder, just_written=written)

    def ids(name: str) -> PackedStrings:
        return PackedStrings.from_arrays(
            {key: found[f"{name}.{key}"] for key in ("blob", "offsets", "hashes", "places")}
        )

    return VectorStore(found["vectors"], ids("texts"), ids("docnos"), found["places"])


def _store_folder(name: str) -> Path:
    return home_folder() / "vectors" / fingerprint(name, FORMAT_VERSION)


def _digest_text(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _iter_blocks(items: Iterable[tuple[str, Doc]]) -> Iterator[list[tuple[str, Doc]]]:
    remaining = iter(items)
    while block := list(islice(remaining, DOCUMENTS_PER_BLOCK)):
        yield block
