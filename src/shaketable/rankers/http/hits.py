"""Hits of a search engine: their ids, scores and texts, and the corpus that they make up."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from threading import Lock
from typing import Any, ClassVar
from urllib.parse import quote

import numpy as np

from shaketable.core.documents import Doc, fingerprint
from shaketable.core.home import home_folder
from shaketable.datasets.limits import MAX_ID_CHARS
from shaketable.rankers.http.json_paths import get_field, join_text
from shaketable.scoring.store import Store
from shaketable.scoring.units import digest_texts
from shaketable.scoring.validation import MAX_ABS_SCORE


@dataclass(frozen=True)
class HitFields:
    """The fields of a hit: `text` has the parts of the text; it is empty if the document is a text, None without."""

    id: str
    text: tuple[str, ...] | None
    score: str


@dataclass(frozen=True)
class Hit:
    """A document that an engine found. The score is None if the engine gives none, as for a sorted list."""

    docno: str
    score: float | None
    text: str


def parse_hits(rows: Sequence[Any], document: str, fields: HitFields) -> list[Hit]:
    """Return the hits of an answer, in the order of the engine; raise a ValueError if one has no id.

    A document that occurs twice counts at its first rank.
    """
    found: dict[str, Hit] = {}
    for row in rows:
        docno = _parse_id(get_field(row, fields.id))
        if not docno:
            raise ValueError(f"a hit has no id in the field {fields.id!r}")
        inside = get_field(row, document) if document else row
        parts = (
            [] if fields.text is None else [inside] if not fields.text else [get_field(inside, n) for n in fields.text]
        )
        text = " ".join(filter(None, map(join_text, parts)))
        found.setdefault(docno, Hit(docno, _parse_score(get_field(row, fields.score)), text))
    return list(found.values())


def order_scores(hits: Sequence[Hit]) -> dict[str, float]:
    """Return docno -> score in the order of the engine, which users see.

    Rankings are sorted by float32 score, so tied scores are lowered by the smallest step each. If an engine gives no
    scores, or sorts by something else, the score is 1 / rank.

    >>> list(order_scores([Hit("a", 2.0, ""), Hit("b", 2.0, ""), Hit("c", 1.0, "")]).values())
    [2.0, 1.9999998807907104, 1.0]
    >>> order_scores([Hit("a", None, ""), Hit("b", None, "")])
    {'a': 1.0, 'b': 0.5}
    """
    known = [hit.score for hit in hits if hit.score is not None]
    if len(known) < len(hits) or any(a < b for a, b in pairwise(known)):
        return {hit.docno: 1 / rank for rank, hit in enumerate(hits, 1)}
    scores: dict[str, float] = {}
    above = np.float32(np.inf)
    for hit, score in zip(hits, known, strict=True):
        value = np.float32(score)
        lowered = value >= above
        above = np.nextafter(above, np.float32(-np.inf)) if lowered else value
        scores[hit.docno] = float(above) if lowered else score
    return scores


def _parse_id(value: Any) -> str:
    """Return an id as a text without spaces, because run files separate columns by spaces."""
    text = join_text(value[:1] if isinstance(value, list) else value).strip()[:MAX_ID_CHARS]
    return text if text.isprintable() and " " not in text else quote(text, safe="/:?=&#@")


def _parse_score(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= MAX_ABS_SCORE else None


@dataclass(eq=False)
class HitCorpus(Mapping[str, Doc]):
    """The documents that search engines returned: a corpus of unknown size, in which known documents can be looked up.

    Texts are also stored under $SHAKETABLE_HOME, because a cached list has no texts. `listed` are the documents that
    rankers may take statistics from; with `made_up`, as in a dry run, an unknown document is made up.
    """

    is_partial: ClassVar[bool] = True
    listed: tuple[str, ...] = ()
    made_up: bool = False
    _docs: dict[str, Doc] = field(default_factory=dict, repr=False)
    _sources: dict[str, None] = field(default_factory=dict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)
    """Searches run in several threads, and a store serves one at a time."""

    def add_source(self, address: str) -> None:
        """Add an engine, whose stored hits are then found."""
        self._sources[address] = None

    def add(self, address: str, hits: Sequence[Hit]) -> None:
        """Add the documents of hits."""
        with self._lock:
            if new := [hit for hit in hits if hit.docno not in self._docs]:
                self._store.put((_build_key(address, hit.docno), json.dumps(hit.text).encode()) for hit in new)
                self._docs.update((hit.docno, Doc(hit.text)) for hit in new)

    def list_documents(self, docnos: Sequence[str]) -> HitCorpus:
        """Return a corpus that shares all documents, and whose listed documents are these."""
        return HitCorpus(tuple(sorted(docnos)), self.made_up, self._docs, self._sources, self._lock)

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint("hits", *((docno, self[docno].body) for docno in self.listed))

    @cached_property
    def _store(self) -> Store:
        return Store(home_folder() / "hits.sqlite")

    def __getitem__(self, docno: str) -> Doc:
        if docno not in self._docs:
            keys = [_build_key(address, docno) for address in self._sources]
            with self._lock:
                stored = list(self._store.get(keys).values()) if not self.made_up else []
            if not stored and not self.made_up:
                raise KeyError(docno)
            self._docs[docno] = Doc(json.loads(stored[0]) if stored else docno)
        return self._docs[docno]

    def __contains__(self, docno: object) -> bool:
        try:
            return isinstance(docno, str) and bool(self[docno])
        except KeyError:
            return False

    def __iter__(self) -> Iterator[str]:
        return iter(self.listed)

    def __len__(self) -> int:
        return len(self.listed)


def _build_key(address: str, docno: str) -> bytes:
    return digest_texts(b"hit", address, docno)
