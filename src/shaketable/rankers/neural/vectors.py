"""The vectors of a collection's documents: computed once, stored on disk, memory-mapped, searched exactly."""

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
from shaketable.files.scratch import find_writable_path

Floats = NDArray[np.float32]
Encode = Callable[[Sequence[str]], list[Floats]]

FORMAT_VERSION = 2  # of the files
DOCUMENTS_PER_BLOCK = 4096  # documents encoded at a time
VECTORS_PER_BLOCK = 1 << 16  # vectors compared at a time
QUERIES_PER_BLOCK = 256  # queries compared at a time
SCORE_TOLERANCE = 1e-4
"""The margin for selecting candidates by float32 products; float64 products decide."""


@dataclass(frozen=True, eq=False)
class VectorStore:
    """One vector for each distinct text, and its documents. Documents are numbered in the order of their docnos."""

    vectors: Floats
    """[texts, d]"""
    text_digests: PackedStrings
    """The digest of each text."""
    docnos: PackedStrings
    text_numbers: NDArray[np.int64]
    """The text number of each document."""
    remark: str = ""
    """A remark for readers on how the vectors were computed."""

    def find(self, text: str) -> int:
        """Return the number of a text, -1 if it is missing."""
        return self.text_digests.find(_digest_text(text))

    def search(self, queries: Floats, k: int) -> list[dict[str, float]]:
        """Return the best k documents of each query, best first: highest float32 score, then highest docno."""
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
        """Return the texts that may be among the best k of each query."""
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
    """Return the stored vectors, or compute and store them; `name` identifies encoder and corpus."""
    folder, remark = _find_store_folder(name)
    try:
        if folder.is_dir():
            return replace(read_vector_store(folder), remark=remark)
    except Damaged as error:
        arrays.discard_array_folder(folder)
        folder, _ = find_writable_path(folder)
        remark = f"the vectors of the collection were computed again, because the cached ones are damaged ({error})"
    stayed = folder.exists()  # damaged and not removable
    try:
        build_vector_store(corpus, folder, encode)
        return replace(read_vector_store(folder, written=not stayed), remark=remark)
    except OSError as error:
        raise BadInput(f"the vectors of the collection cannot be cached ({error.strerror})", folder) from error


def find_vector_store(name: str) -> VectorStore | None:
    """Return the stored vectors, or None if they are missing or unreadable."""
    folder, _ = _find_store_folder(name)
    try:
        return read_vector_store(folder) if folder.is_dir() else None
    except BadInput:
        return None  # the search computes them again and reports it


def build_vector_store(corpus: Corpus, folder: Path, encode: Encode) -> None:
    """Encode each distinct text of the corpus and write the folder atomically; an existing folder is kept."""
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
    """Return the memory-mapped vectors of a folder; raise `Damaged` if they differ from the written ones."""
    _, found = arrays.read_arrays(folder, just_written=written)

    def ids(name: str) -> PackedStrings:
        return PackedStrings.from_arrays(
            {key: found[f"{name}.{key}"] for key in ("blob", "offsets", "hashes", "places")}
        )

    return VectorStore(found["vectors"], ids("texts"), ids("docnos"), found["places"])


def _find_store_folder(name: str) -> tuple[Path, str]:
    """Return the folder of stored vectors, or the folder to store them in, and a remark if they cannot be kept."""
    kept = home_folder() / "vectors" / fingerprint(name, FORMAT_VERSION)
    return (kept, "") if kept.is_dir() else find_writable_path(kept)


def _digest_text(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _iter_blocks(items: Iterable[tuple[str, Doc]]) -> Iterator[list[tuple[str, Doc]]]:
    remaining = iter(items)
    while block := list(islice(remaining, DOCUMENTS_PER_BLOCK)):
        yield block
