"""Language models that score texts: n-grams of the collection or a causal language model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shaketable.attacks.knowledge import AttackerKnowledge
from shaketable.core.documents import Corpus, Doc, fingerprint
from shaketable.nlp.causal_lm import open_causal_lm
from shaketable.nlp.ngram_model import NGramModel
from shaketable.retrieval.ngram_models import open_ngrams

Floats = NDArray[np.float64]
NGRAMS = "ngrams"
MODEL_VALUES = f"{NGRAMS}, or the folder or the name of a causal language model"
"""The valid values of a language model parameter, for error messages."""


class LanguageModel(Protocol):
    """A model of text probability.

    `log_probs` are log10 p of each word or word piece given the previous ones; `perplexity` is 10^(-their mean).
    """

    def log_probs(self, texts: Sequence[str]) -> list[Floats]: ...
    def perplexity(self, texts: Sequence[str]) -> Floats: ...


def open_language_model(name: str, knowledge: AttackerKnowledge) -> LanguageModel:
    """Open n-grams of the attacker's documents, or a causal language model by folder or hub name; cached."""
    key = "language model", name
    if key not in knowledge.cache:
        knowledge.cache[key] = open_cross_fitted_lm(knowledge.docs) if name == NGRAMS else open_causal_lm(name)
    model: LanguageModel = knowledge.cache[key]
    return model


@dataclass(frozen=True, eq=False)
class CrossFittedLM:
    """Two n-gram models, each trained on half of the documents; the lower probability of a text counts.

    A model assigns a high probability to a document it was trained on, and a low one to any change of it. One of the
    two models has not seen the document, and usually gives the lower probability. A text of the collection is thus
    scored like a new one.
    """

    models: tuple[NGramModel, NGramModel]

    def log_probs(self, texts: Sequence[str]) -> list[Floats]:
        """Return log10 p of each word of a text and of its end."""
        left, right = (model.log_probs(texts) for model in self.models)
        return [a if a.mean() <= b.mean() else b for a, b in zip(left, right, strict=True)]

    def perplexity(self, texts: Sequence[str]) -> Floats:
        """Return the perplexity of each text under the model with the higher perplexity."""
        return 10.0 ** -np.array([logs.mean() for logs in self.log_probs(texts)])


def open_cross_fitted_lm(docs: Corpus) -> CrossFittedLM:
    """Return the models of a corpus, from disk if cached."""
    return CrossFittedLM((open_ngrams(_Half(docs, 0)), open_ngrams(_Half(docs, 1))))


@dataclass(frozen=True, eq=False)
class _Half:
    """The documents of a corpus whose docnos have an even, or an odd, hash."""

    docs: Corpus
    parity: int

    @property
    def fingerprint(self) -> str:
        return fingerprint("half", self.parity, self.docs.fingerprint)

    def __getitem__(self, docno: str, /) -> Doc:
        if docno not in self:
            raise KeyError(docno)
        return self.docs[docno]

    def __contains__(self, docno: object, /) -> bool:
        return isinstance(docno, str) and docno in self.docs and self._is_in_half(docno)

    def __iter__(self) -> Iterator[str]:
        return filter(self._is_in_half, self.docs)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def items(self) -> Iterator[tuple[str, Doc]]:
        return ((docno, doc) for docno, doc in self.docs.items() if self._is_in_half(docno))

    def _is_in_half(self, docno: str) -> bool:
        return blake2b(docno.encode("utf-8", "surrogatepass"), digest_size=1).digest()[0] % 2 == self.parity
