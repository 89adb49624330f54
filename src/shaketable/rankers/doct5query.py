"""DocT5Query: a lexical ranker over documents expanded with queries that they might answer.

Any text can be expanded, so a changed text is expanded again. Expansions are cached in one file, under the text and the
model that wrote them. The index of the expanded collection is cached like any other index.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import ClassVar

from shaketable.core.documents import Collection, Corpus, Doc, Scores, Slate, fingerprint
from shaketable.core.errors import check_parameter
from shaketable.core.home import home_folder
from shaketable.core.registries import RANKERS
from shaketable.datasets.corpus import StreamedCorpus
from shaketable.nlp import checkpoints
from shaketable.rankers.lexical import BM25, QL, QLJM, LexicalRanker
from shaketable.rankers.neural.models import import_net_module
from shaketable.retrieval.term_numbers import split_blocks
from shaketable.scoring.store import Store
from shaketable.transforms.add_queries import (
    DEFAULT_MODEL,
    MAX_QUERY_TOKENS,
    MAX_TEXT_TOKENS,
    TOP_K,
    QuerySampler,
    append_queries,
)

FORMAT_VERSION = 1  # of what is written for a text; raise it when the same model would write something else
BLOCK_DOCUMENTS = 128  # documents expanded before what was written is kept


@dataclass(frozen=True)
class DocT5Query:
    """DocT5Query: BM25 over texts with n queries added that a T5 has sampled for them, those of the collection too.

    Nogueira, Lin. From doc2query to docTTTTTquery. 2019. MacAvaney et al. ABNIRML. TACL 2022, 3.2, has n = 4.
    """

    expander: str = DEFAULT_MODEL
    n: int = 4
    base: BM25 | QL | QLJM = field(default_factory=BM25)
    extra: ClassVar[str] = "neural"

    def __post_init__(self) -> None:
        check_parameter("doct5query", isinstance(self.base, BM25 | QL | QLJM), "base", "bm25, ql or ql_jm", self.base)
        check_parameter("doct5query", isinstance(self.n, int) and self.n >= 1, "n", "1 or more", self.n)

    def open(self, collection: Collection) -> ExpandedRanker:
        """Expands the collection if that was not done before, which takes a while; cut off, it goes on."""
        expander = DocumentExpander(self.expander, self.n)
        expanded = ExpandedCorpus(collection.docs, expander)
        return ExpandedRanker(RANKERS.spec(self), self.base.open(replace(collection, docs=expanded)), expander)


@dataclass(frozen=True, eq=False)
class DocumentExpander:
    """Expands texts, each of them once: what was written is remembered by the text."""

    model: str
    n: int

    @cached_property
    def fingerprint(self) -> str:
        """Names all that expansions depend on, beside the text."""
        folder = import_net_module("pretrained_models").find_checkpoint_folder(self.model)
        return fingerprint(
            FORMAT_VERSION,
            checkpoints.fingerprint_checkpoint(folder),
            self.n,
            (TOP_K, MAX_QUERY_TOKENS, MAX_TEXT_TOKENS),
        )

    def expand(self, docs: Sequence[Doc]) -> list[Doc]:
        """The documents, with the queries at the end of their bodies."""
        texts = dict.fromkeys(doc.text for doc in docs)
        keys = {self._key(text): text for text in texts}
        queries: dict[str, list[str]] = {
            keys[key]: json.loads(value) for key, value in self._store.get(list(keys)).items()
        }
        fresh = [text for text in texts if text not in queries]
        for block in split_blocks(fresh, BLOCK_DOCUMENTS):
            written = dict(zip(block, self._sampler.sample_queries(block, self.n), strict=True))
            self._store.put((self._key(text), json.dumps(some).encode()) for text, some in written.items())
            queries |= written
        return [replace(doc, body=append_queries(doc.body, queries[doc.text])) for doc in docs]

    @cached_property
    def _sampler(self) -> QuerySampler:
        pretrained_models = import_net_module("pretrained_models")
        path = pretrained_models.find_checkpoint_folder(self.model)
        return QuerySampler(pretrained_models.read_t5(path).eval(), checkpoints.read_tokenizer(path))

    @cached_property
    def _store(self) -> Store:
        return Store(home_folder() / "expansions.sqlite")

    def _key(self, text: str) -> bytes:
        name = self.fingerprint.encode() + b"\0" + text.encode("utf-8", "surrogatepass")
        return blake2b(name, digest_size=16).digest()


@dataclass(frozen=True, eq=False)
class ExpandedCorpus(StreamedCorpus):
    """A corpus whose documents are expanded where they are read."""

    corpus: Corpus
    expander: DocumentExpander

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

    def iter_items(self) -> Iterator[tuple[str, Doc]]:
        for block in split_blocks(self.corpus.items(), BLOCK_DOCUMENTS):
            yield from zip((docno for docno, _ in block), self.expander.expand([doc for _, doc in block]), strict=True)


@dataclass(frozen=True, eq=False)
class ExpandedRanker:
    """A lexical ranker that reads each text with its expansion."""

    name: str
    base: LexicalRanker
    expander: DocumentExpander
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
