"""The inverted index of a corpus: the documents and counts of each term, stored on disk and memory-mapped."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from shaketable.core.documents import Corpus, fingerprint
from shaketable.core.errors import BadInput, Damaged
from shaketable.core.home import home_folder
from shaketable.datasets.packed_strings import PackedStrings
from shaketable.files import arrays
from shaketable.nlp.analyzer import Analyzer
from shaketable.retrieval.term_numbers import BLOCK_TEXTS, UNKNOWN_TERM, TermNumbering, TextCache, split_blocks

LOG = logging.getLogger(__name__)

INDEX_FORMAT = 2  # increase it when the files or the terms of a text change


class Postings(NamedTuple):
    """The documents of each term. Documents are numbered in descending docno order, which is how ties are broken."""

    first: NDArray[np.int64]
    """The start of each term's postings in `docs` and `counts`, then the end of the last."""
    docs: NDArray[np.int32]
    counts: NDArray[np.unsignedinteger[Any]]
    """In the smallest type that holds the largest count."""
    lengths: NDArray[np.unsignedinteger[Any]]
    """Document lengths in terms; two bytes each if possible, because search reads them at random."""


class CommonTerms(NamedTuple):
    """A dense copy of the counts of the most common terms, one byte per document, for direct lookup."""

    rows: NDArray[np.int32]
    """The row of each term in `counts`, or -1."""
    counts: NDArray[np.uint8]


class QueryBags(NamedTuple):
    """Queries as bags of index terms; counts may be fractional."""

    starts: NDArray[np.int64]
    terms: NDArray[np.int64]
    counts: NDArray[np.float64]

    @classmethod
    def from_triples(
        cls, queries: int, owners: NDArray[np.int64], terms: NDArray[np.integer[Any]], counts: NDArray[np.float64]
    ) -> QueryBags:
        """Return bags from (query, term, count) triples in any order; counts of the same query and term are added."""
        width = int(terms.max(initial=0)) + 1
        pairs, place = np.unique(owners * width + terms, return_inverse=True)
        starts = np.searchsorted(pairs, np.arange(queries + 1) * width)
        return cls(starts, pairs % width, np.bincount(place, counts, len(pairs)).astype(np.float64))


@dataclass(frozen=True, eq=False)
class InvertedIndex:
    """Term counts of a corpus, and its collection statistics."""

    fingerprint: str
    analyzer: Analyzer
    docnos: PackedStrings
    terms: PackedStrings
    postings: Postings
    cf: NDArray[np.int64]
    """The number of occurrences of each term."""
    remark: str = ""
    """A sentence for the user about how the index was opened."""

    @cached_property
    def df(self) -> NDArray[np.int64]:
        """The number of documents that contain each term."""
        return np.diff(self.postings.first)

    @cached_property
    def common_terms(self) -> CommonTerms:
        """Terms in more than a quarter of the documents; a dense row takes less memory than their postings."""
        first, docs, counts, lengths = self.postings
        terms = np.flatnonzero(self.df * 4 > len(lengths))
        rows = np.full(len(self.df), -1, np.int32)
        rows[terms] = np.arange(len(terms))
        table = np.zeros((len(terms), len(lengths)), np.uint8)
        for row, term in enumerate(terms):
            span = slice(first[term], first[term + 1])
            table[row, docs[span]] = np.minimum(counts[span], 255)
        return CommonTerms(rows, table)

    @cached_property
    def token_count(self) -> int:
        """The total number of terms in all documents."""
        return int(self.postings.lengths.sum())

    @cached_property
    def text_cache(self) -> TextCache:
        """The terms of recent texts, shared by all rankers over this index."""
        return TextCache(self._numbering)

    def make_bags(self, queries: Sequence[str]) -> QueryBags:
        """Return the queries as bags; terms that are not in the collection are skipped."""
        terms, sizes = self._numbering(queries)
        owners = np.repeat(np.arange(len(queries)), sizes)
        known = terms != UNKNOWN_TERM
        return QueryBags.from_triples(len(queries), owners[known], terms[known], np.ones(np.count_nonzero(known)))

    @cached_property
    def _numbering(self) -> TermNumbering:
        def numbers(terms: list[str]) -> NDArray[np.int64]:
            found = self.terms.find_many(terms)
            found[found < 0] = UNKNOWN_TERM
            return found

        return TermNumbering(self.analyzer, numbers)


def open_index(corpus: Corpus, analyzer: Analyzer) -> InvertedIndex:
    """Return the index of a corpus: the open one, the one on disk, or a new one, which is saved if possible."""
    name = fingerprint(corpus.fingerprint, analyzer.fingerprint, INDEX_FORMAT)
    index = _open_indexes.get(name)
    if index is None:
        index = _open_indexes[name] = _read_or_build(corpus, analyzer, name)
    return index


def _read_or_build(corpus: Corpus, analyzer: Analyzer, name: str) -> InvertedIndex:
    """Return the index in the home folder; rebuild it if it is damaged."""
    folder, remark = home_folder() / "indexes" / name, ""
    try:
        if folder.is_dir():
            LOG.info("The index of the documents is in %s.", folder)
            return read_index(folder)
    except BadInput as error:
        if isinstance(error, Damaged):
            arrays.discard_array_folder(folder)
        remark = f"the index was built again, because the cached one is damaged ({error})"
    started = time.perf_counter()
    index = build_index(corpus, analyzer, name)
    LOG.info("The documents were indexed in %.1f seconds, for %s.", time.perf_counter() - started, folder)
    stayed = folder.exists()  # the folder is damaged and cannot be removed
    try:
        save_index(index, folder)
        index = read_index(folder, just_written=not stayed)
    except (OSError, BadInput) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        remark = remark or f"the index cannot be cached in {folder.parent} ({reason}); the next run builds it again"
    return replace(index, remark=remark) if remark else index


_open_indexes: WeakValueDictionary[str, InvertedIndex] = WeakValueDictionary()


def build_index(corpus: Corpus, analyzer: Analyzer, name: str = "") -> InvertedIndex:
    """Return a new index, built in one pass over the corpus with 4 bytes of memory per term."""
    from shaketable.retrieval import kernels

    terms: dict[str, int] = {}
    numbering = TermNumbering(analyzer, lambda new: [terms.setdefault(term, len(terms)) for term in new])
    docnos: list[str] = []
    rows, sizes = bytearray(), bytearray()
    for block in split_blocks(corpus.items(), BLOCK_TEXTS):
        docnos += (docno for docno, _ in block)
        tokens, lengths = numbering(doc.text for _, doc in block)
        rows += tokens.data
        sizes += lengths.data
    order = np.array(sorted(range(len(docnos)), key=docnos.__getitem__, reverse=True), dtype=np.int64)
    lengths, tokens = np.frombuffer(sizes, np.int64), np.frombuffer(rows, np.int32)
    starts = _to_offsets(lengths)
    df, cf, most = kernels.count_terms(tokens, starts, len(terms))
    first = _to_offsets(df)
    docs, counts = np.empty(first[-1], np.int32), np.zeros(first[-1], np.min_scalar_type(most))
    kernels.fill_postings(tokens, starts, order, first, docs, counts)
    small = np.result_type(np.uint16, np.min_scalar_type(lengths.max(initial=0)))
    postings = Postings(first, docs, counts, lengths[order].astype(small))
    for part in postings:
        part.setflags(write=False)  # read-only like mapped arrays, so that numba compiles one version only
    return InvertedIndex(
        name, analyzer, PackedStrings.build(docnos[i] for i in order), PackedStrings.build(terms), postings, cf
    )


def save_index(index: InvertedIndex, folder: Path) -> None:
    """Write an index completely or not at all (OSError). An existing index is kept."""
    about = {"fingerprint": index.fingerprint, "tokenizer": asdict(index.analyzer)}
    parts: dict[str, Mapping[str, Any]] = {
        "docnos": index.docnos.to_arrays(),
        "terms": index.terms.to_arrays(),
        "postings": index.postings._asdict(),
    }
    with arrays.atomic_array_folder(folder, about) as writer:
        for part, held in parts.items():
            for name, array in held.items():
                writer.append(f"{part}.{name}", array)
        writer.append("cf", index.cf)


def read_index(folder: Path, *, just_written: bool = False) -> InvertedIndex:
    """Return the memory-mapped index in a folder; raise `Damaged` if the files are not as written."""
    about, found = arrays.read_arrays(folder, just_written=just_written)

    def part(name: str) -> dict[str, Any]:
        return {key.removeprefix(name): array for key, array in found.items() if key.startswith(name)}

    return InvertedIndex(
        about["fingerprint"],
        Analyzer(**about["tokenizer"]),
        PackedStrings.from_arrays(part("docnos.")),
        PackedStrings.from_arrays(part("terms.")),
        Postings(**part("postings.")),
        found["cf"],
    )


def _to_offsets(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(sizes)))
