"""DocT5Query: a lexical ranker over documents to which queries were added that they might answer.

Any text can be expanded, so one that was edited is expanded anew; expansions are kept in one file, named by the text
and by the model that wrote them. An index of the expanded collection is kept like any other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import ClassVar

from shaketable.data.corpus import StreamedCorpus
from shaketable.edit.expand import EXPANDER, LIKELIEST, LONGEST, READ, Sampler, appended
from shaketable.errors import check
from shaketable.files import home
from shaketable.index.texts import blocks
from shaketable.rankers.lexical import BM25, QL, QLJM, LexicalRanker
from shaketable.rankers.neural import _nets as nets
from shaketable.registry import RANKERS
from shaketable.score.store import Store
from shaketable.types import Collection, Corpus, Doc, Scores, Slate, fingerprint

FORMAT = 1  # of what is written for a text; raise it when the same model would write something else
BLOCK = 128  # documents expanded before what was written is kept


@dataclass(frozen=True)
class DocT5Query:
    """DocT5Query: BM25 over texts with n queries added that a T5 has sampled for them, those of the collection too.

    Nogueira, Lin. From doc2query to docTTTTTquery. 2019. MacAvaney et al. ABNIRML. TACL 2022, 3.2, has n = 4.
    """

    expander: str = EXPANDER
    n: int = 4
    base: BM25 | QL | QLJM = field(default_factory=BM25)
    extra: ClassVar[str] = "neural"

    def __post_init__(self) -> None:
        check("doct5query", isinstance(self.base, BM25 | QL | QLJM), "base", "bm25, ql or ql_jm", self.base)
        check("doct5query", isinstance(self.n, int) and self.n >= 1, "n", "1 or more", self.n)

    def open(self, collection: Collection) -> ExpandedRanker:
        """Expands the collection if that was not done before, which takes a while; cut off, it goes on."""
        expander = Expander(self.expander, self.n)
        expanded = Expanded(collection.docs, expander)
        return ExpandedRanker(RANKERS.spec(self), self.base.open(replace(collection, docs=expanded)), expander)


@dataclass(frozen=True, eq=False)
class Expander:
    """Expands texts, each of them once: what was written is remembered by the text."""

    model: str
    n: int

    @cached_property
    def fingerprint(self) -> str:
        """Names all that expansions depend on, beside the text."""
        checkpoints = nets("checkpoints")
        return fingerprint(
            FORMAT, checkpoints.contents(checkpoints.checkpoint_folder(self.model)), self.n, (LIKELIEST, LONGEST, READ)
        )

    def expand(self, docs: Sequence[Doc]) -> list[Doc]:
        """The documents, with the queries at the end of their bodies."""
        texts = dict.fromkeys(doc.text for doc in docs)
        keys = {self._key(text): text for text in texts}
        queries: dict[str, list[str]] = {
            keys[key]: json.loads(value) for key, value in self._store.get(list(keys)).items()
        }
        fresh = [text for text in texts if text not in queries]
        for block in blocks(fresh, BLOCK):
            written = dict(zip(block, self._sampler.queries(block, self.n), strict=True))
            self._store.put((self._key(text), json.dumps(some).encode()) for text, some in written.items())
            queries |= written
        return [replace(doc, body=appended(doc.body, queries[doc.text])) for doc in docs]

    @cached_property
    def _sampler(self) -> Sampler:
        checkpoints = nets("checkpoints")
        path = checkpoints.checkpoint_folder(self.model)
        return Sampler(checkpoints.read_t5(path).eval(), checkpoints.read_tokenizer(path))

    @cached_property
    def _store(self) -> Store:
        return Store(home() / "expansions.sqlite")

    def _key(self, text: str) -> bytes:
        name = self.fingerprint.encode() + b"\0" + text.encode("utf-8", "surrogatepass")
        return blake2b(name, digest_size=16).digest()


@dataclass(frozen=True, eq=False)
class Expanded(StreamedCorpus):
    """A corpus whose documents are expanded where they are read."""

    corpus: Corpus
    expander: Expander

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint("expanded", self.corpus.fingerprint, self.expander.fingerprint)

    def __getitem__(self, docno: str) -> Doc:
        return self.expander.expand([self.corpus[docno]])[0]

    def __contains__(self, docno: object) -> bool:
        return docno in self.corpus

    def __iter__(self) -> Iterator[str]:
        return iter(self.corpus)

    def __len__(self) -> int:
        return len(self.corpus)

    def pairs(self) -> Iterator[tuple[str, Doc]]:
        for block in blocks(self.corpus.items(), BLOCK):
            yield from zip((docno for docno, _ in block), self.expander.expand([doc for _, doc in block]), strict=True)


@dataclass(frozen=True, eq=False)
class ExpandedRanker:
    """A lexical ranker that reads each text with its expansion."""

    name: str
    base: LexicalRanker
    expander: Expander
    pointwise: ClassVar[bool] = True
    family: ClassVar[str] = "traditional"
    cached: ClassVar[bool] = False

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.name, self.base.fingerprint)

    @property
    def notice(self) -> str:
        """What became of an index that was damaged."""
        return self.base.notice

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        docs = iter(self.expander.expand([doc for slate in slates for doc in slate.docs]))
        return self.base.score([Slate(slate.query, tuple(next(docs) for _ in slate.docs)) for slate in slates])

    def search(self, queries: Sequence[str], k: int) -> list[dict[str, float]]:
        """The documents that have, with their expansions, a word of the query."""
        return self.base.search(queries, k)
