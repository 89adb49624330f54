"""DocT5Query: a lexical ranker over documents expanded with queries that they might answer.

Any text can be expanded, also a changed one. Expansions are cached in one file; the key is the text and the model. The
index of the expanded collection is cached like any other index.
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

FORMAT_VERSION = 1  # of the expansions; raise it when the same model would write different text
BLOCK_DOCUMENTS = 128  # documents expanded between two writes to the cache


@dataclass(frozen=True)
class DocT5Query:
    """DocT5Query: BM25 over texts, of the collection too, extended with n queries sampled from a T5.

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
        """Return the ranker; expand the collection first if needed, which is slow but can be resumed."""
        expander = DocumentExpander(self.expander, self.n)
        expanded = ExpandedCorpus(collection.docs, expander)
        return ExpandedRanker(RANKERS.spec(self), self.base.open(replace(collection, docs=expanded)), expander)


@dataclass(frozen=True, eq=False)
class DocumentExpander:
    """A document expander with a cache keyed by text."""

    model: str
    n: int

    @cached_property
    def fingerprint(self) -> str:
        """A digest of everything expansions depend on, except the text."""
        folder = import_net_module("pretrained_models").find_checkpoint_folder(self.model)
        return fingerprint(
            FORMAT_VERSION,
            checkpoints.fingerprint_checkpoint(folder),
            self.n,
            (TOP_K, MAX_QUERY_TOKENS, MAX_TEXT_TOKENS),
        )

    def expand(self, docs: Sequence[Doc]) -> list[Doc]:
        """Return the documents with the queries appended to their bodies."""
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
    """A corpus whose documents are expanded when they are read."""

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
    """A lexical ranker that scores each text with its expansion."""

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
        """The report on a damaged index."""
        return self.base.notice

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        docs = iter(self.expander.expand([doc for slate in slates for doc in slate.docs]))
        return self.base.score([Slate(slate.query, tuple(next(docs) for _ in slate.docs)) for slate in slates])

    def search(self, queries: Sequence[str], k: int) -> list[dict[str, float]]:
        """Return the top k documents whose expanded text contains a word of the query."""
        return self.base.search(queries, k)
