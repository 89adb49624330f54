"""How probable a text is, to a model of the collection's language or to one of English at large."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shaketable.attacks.knowledge import Knowledge
from shaketable.index.ngrams import open_ngrams
from shaketable.text.llama import small_model
from shaketable.text.ngrams import NGrams
from shaketable.types import Corpus, Doc, fingerprint

Floats = NDArray[np.float64]
LANGUAGE_MODELS = ("ngrams", "smollm2")
"""Their names."""


class LanguageModel(Protocol):
    """Says how probable texts are.

    `logs` are log10 p of each word or piece of a word, given those before it; `perplexity` is 10^(-their mean).
    """

    def logs(self, texts: Sequence[str]) -> list[Floats]: ...
    def perplexity(self, texts: Sequence[str]) -> Floats: ...


def language_model(name: str, knowledge: Knowledge) -> LanguageModel:
    """The language model of a name: n-grams of the attacker's documents, or the small neural one; opened once."""
    key = "language model", name
    if key not in knowledge.shared:
        knowledge.shared[key] = small_model() if name == "smollm2" else open_halves(knowledge.docs)
    model: LanguageModel = knowledge.shared[key]
    return model


@dataclass(frozen=True, eq=False)
class Halves:
    """Two models of n-grams, each learned from half of the documents; the one that finds a text less probable is heard.

    A model that has read a document finds it probable for that reason alone, and any change of it improbable. Of two
    models one has not read it, and as a rule that one is heard: so a text of the collection is looked at as a new one.
    """

    models: tuple[NGrams, NGrams]

    def logs(self, texts: Sequence[str]) -> list[Floats]:
        """log10 p of each word of a text, and of its end."""
        left, right = (model.logs(texts) for model in self.models)
        return [a if a.mean() <= b.mean() else b for a, b in zip(left, right, strict=True)]

    def perplexity(self, texts: Sequence[str]) -> Floats:
        """Of each text, by the model that wavers more."""
        return 10.0 ** -np.array([logs.mean() for logs in self.logs(texts)])


def open_halves(docs: Corpus) -> Halves:
    """The models of a corpus, from disk if they were made before."""
    return Halves((open_ngrams(_Half(docs, 0)), open_ngrams(_Half(docs, 1))))


@dataclass(frozen=True, eq=False)
class _Half:
    """Those documents of a corpus whose docnos have an even hash, or an odd one."""

    docs: Corpus
    which: int

    @property
    def fingerprint(self) -> str:
        return fingerprint("half", self.which, self.docs.fingerprint)

    def __getitem__(self, docno: str, /) -> Doc:
        if docno not in self:
            raise KeyError(docno)
        return self.docs[docno]

    def __contains__(self, docno: object, /) -> bool:
        return isinstance(docno, str) and docno in self.docs and self._has(docno)

    def __iter__(self) -> Iterator[str]:
        return filter(self._has, self.docs)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def items(self) -> Iterator[tuple[str, Doc]]:
        return ((docno, doc) for docno, doc in self.docs.items() if self._has(docno))

    def _has(self, docno: str) -> bool:
        return blake2b(docno.encode("utf-8", "surrogatepass"), digest_size=1).digest()[0] % 2 == self.which
