"""Scoring of slates: pairs of all queries together, sorted by length, in batches that fill a token budget.

An encoder computes the vectors of each distinct query and text once and caches them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from shaketable.core.documents import Corpus, Scores, Slate, fingerprint
from shaketable.core.errors import BadInput, RankerFailed
from shaketable.executors import device
from shaketable.rankers.neural.dense import BiEncoder
from shaketable.rankers.neural.fast_inference import OneDnnLinear, has_onednn_linear
from shaketable.rankers.neural.net import Encoder, Net
from shaketable.rankers.neural.text_cache import ArrayCache
from shaketable.rankers.neural.vectors import VectorStore, find_vector_store, open_vector_store

Floats = NDArray[np.float32]
Out = TypeVar("Out")

TOKENS_PER_BATCH = {"cpu": 2048, "cuda": 65536}
"""Tokens per batch, padding included. A larger batch on a CPU has more padding and fits its caches less."""
CHARS_PER_TOKEN = 3
"""A low estimate of the characters of a token, so that the queries fit into a batch too."""
TEXTS_PER_WINDOW = 4096  # texts tokenised, sorted and scored at a time
VECTOR_CACHE_BYTES = 1 << 30  # vectors and their texts
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

SCORE_LAYER_NAMES = ("combine", "model.classifier", "model.classifier.out_proj", "model.score")
"""Names of the layer that computes the score: in kernel rankers, and in transformers with a classification head."""

SCORE_NOISE = {"float32": 1e-6, "bfloat16": 2**-8, "float16": 2**-11}
"""The difference of a score between batches, relative to its size: measured for float32."""


@dataclass(eq=False)
class NeuralRanker:
    """A net that scores slates. It counts the texts that it read and those that it truncated."""

    name: str
    fingerprint: str
    net: Net
    precision: str = "float32"
    counters: Counter[str] = field(default_factory=Counter)
    pointwise: ClassVar[bool] = True
    pads_texts: ClassVar[bool] = True

    @property
    def family(self) -> str:
        """The class of ranker."""
        return self.net.family

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise BadInput(f"{self.name}: precision should be {' or '.join(PRECISIONS)}, not {self.precision!r}")
        self.device = select_device()
        self.batch_tokens = device.get_device_settings().batch_tokens or TOKENS_PER_BATCH[self.device.type]
        if self.net.mixes_rows:
            self.batch_tokens = 1
        self.net.eval().to(self.device)

    @property
    def texts_read(self) -> int:
        return self.counters["read"]

    @property
    def texts_truncated(self) -> int:
        return self.counters["truncated"]

    @property
    def num_gpus(self) -> float:
        """The GPUs that a cluster worker needs."""
        return float(self.device.type == "cuda")

    @property
    def batch_chars(self) -> int:
        """The characters of the texts in a call: they fit one batch."""
        return CHARS_PER_TOKEN * self.batch_tokens

    @property
    def noise(self) -> float:
        """The noise of a score: the lengths of the other texts in a batch change its last digits."""
        return SCORE_NOISE[self.precision]

    @property
    def remark(self) -> str:
        """The remark on the scores for readers."""
        if not self.texts_truncated:
            return ""
        return f"{self.texts_truncated:,} of {self.texts_read:,} texts were too long and were truncated"

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        """Return one array per slate."""
        pairs = [(slate.query, doc.text) for slate in slates for doc in slate.docs]
        scores: list[float] = []
        for start in range(0, len(pairs), TEXTS_PER_WINDOW):
            scores += self._run_in_batches(self.net.prepare(pairs[start : start + TEXTS_PER_WINDOW]), self._score_batch)
        ends = np.cumsum([len(slate.docs) for slate in slates])
        return np.split(np.array(scores, dtype=np.float64), ends[:-1]) if slates else []

    def represent_pairs(self, pairs: Sequence[tuple[str, str]]) -> Floats | None:
        """Return the input of the last layer for each pair of query and text: [n, d].

        It is the kernel features for K-NRM and Conv-KNRM, and the pooled first token for a cross-encoder; None for a
        net whose score is not computed by one linear layer.
        """
        layer = find_score_layer(self.net)
        if layer is None:
            return None
        seen: list[Tensor] = []

        def call(prepared: Sequence[Any]) -> list[Floats]:
            seen.clear()
            self._run_forward(self.net, self.net.collate(prepared))
            return [row.numpy() for row in seen[0].float().cpu()]

        hook = layer.register_forward_pre_hook(lambda module, arguments: seen.append(arguments[0]))
        try:
            rows = self._run_in_batches(self.net.prepare(pairs), call)
        finally:
            hook.remove()
        return np.stack(rows) if rows else np.empty((0, layer.in_features), dtype=np.float32)

    def _score_batch(self, prepared: Sequence[Any]) -> list[float]:
        found: list[float] = self._run_forward(self.net, self.net.collate(prepared)).float().tolist()
        return found

    def _run_forward(self, function: Callable[..., Any], batch: dict[str, Tensor]) -> Any:
        """Run a forward pass without gradients, in mixed precision if requested, and return its output."""
        mixed = self.precision != "float32"
        # sums of many cosines, as of ColBERT, would change by more than 1e-6 of a score
        suits = not mixed and self.device.type == "cpu" and not isinstance(self.net, Encoder)
        faster = OneDnnLinear() if suits and has_onednn_linear() else nullcontext()
        with (
            torch.inference_mode(),
            torch.autocast(self.device.type, PRECISIONS[self.precision], enabled=mixed),
            faster,
        ):
            return function(**{name: tensor.to(self.device) for name, tensor in batch.items()})

    def _run_in_batches(self, prepared: Sequence[Any], call: Callable[[Sequence[Any]], Sequence[Out]]) -> list[Out]:
        """Return the output of `call` for each input, in order."""
        self.counters["read"] += len(prepared)
        self.counters["truncated"] += sum(one.truncated for one in prepared)
        outs: dict[int, Out] = {}
        for part in make_batches([one.length for one in prepared], self.batch_tokens):
            outs.update(zip(part, self._run_batch([prepared[i] for i in part], call), strict=True))
        return [outs[i] for i in range(len(prepared))]

    def _run_batch(self, batch: Sequence[Any], call: Callable[[Sequence[Any]], Sequence[Out]]) -> list[Out]:
        """Run a batch; halve it if it does not fit into memory. Later batches are smaller."""
        try:
            return list(call(batch))
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if len(batch) == 1:
                raise RankerFailed(
                    f"ranker {self.name}: memory is too small for a text of {batch[0].length} tokens alone; "
                    "lower max_length, or use a smaller model"
                ) from error
        self.batch_tokens = max(1, self.batch_tokens // 2)
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        middle = len(batch) // 2
        return self._run_batch(batch[:middle], call) + self._run_batch(batch[middle:], call)


@dataclass(eq=False)
class EncoderRanker(NeuralRanker):
    """A ranker that encodes queries and texts separately."""

    net: Encoder
    _query_cache: ArrayCache[Floats] = field(default_factory=lambda: ArrayCache(VECTOR_CACHE_BYTES // 8), repr=False)
    _text_cache: ArrayCache[Floats] = field(default_factory=lambda: ArrayCache(VECTOR_CACHE_BYTES), repr=False)
    pads_texts: ClassVar[bool] = False  # known texts are compared with a query faster together

    @property
    def batch_chars(self) -> int:
        """The characters of the texts in a call: those of several batches, because most texts are known."""
        return 8 * super().batch_chars

    def score(self, slates: Sequence[Slate]) -> list[Scores]:
        """Return one array per slate."""
        queries = self.encode_queries([slate.query for slate in slates])
        scores: list[Scores] = []
        for some in split_windows(slates):
            texts = iter(
                self._text_cache.get_or_make([doc.text for slate in some for doc in slate.docs], self.encode_texts)
            )
            for slate in some:
                scores.append(score_maxsim(queries[len(scores)], [next(texts) for _ in slate.docs]))
        return scores

    def encode_queries(self, queries: Sequence[str]) -> list[Floats]:
        """Return the vectors of each query: [a, d]."""
        return self._query_cache.get_or_make(queries, lambda fresh: self._encode(fresh, self.net.prepare_queries))

    def encode_texts(self, texts: Sequence[str]) -> list[Floats]:
        """Return the vectors of each text: [t, d], without the cache."""
        return self._encode(texts, self.net.prepare_texts)

    def _encode(self, texts: Sequence[str], prepare: Callable[[Sequence[str]], list[Any]]) -> list[Floats]:
        found: list[Floats] = []
        for start in range(0, len(texts), TEXTS_PER_WINDOW):
            found += self._run_in_batches(prepare(texts[start : start + TEXTS_PER_WINDOW]), self._encode_batch)
        return found

    def _encode_batch(self, prepared: Sequence[Any]) -> list[Floats]:
        values, kept = self._run_forward(self.net.encode, self.net.pack(prepared))
        rows: list[Tensor] = [matrix[keep] for matrix, keep in zip(values.float().cpu(), kept.cpu(), strict=True)]
        return [row.numpy() for row in rows]


@dataclass(eq=False)
class DenseRanker(EncoderRanker):
    """A bi-encoder ranker. It also searches: the vectors of a collection are computed once and kept on disk."""

    corpus: Corpus = field(kw_only=True, repr=False)
    origin: str = field(default="", kw_only=True, repr=False)
    """A sentence on the copy of the weights that is used; "" if the spec of the model names it."""

    @cached_property
    def vector_store(self) -> VectorStore:
        """The vectors of the collection."""
        return open_vector_store(
            self.corpus, self._store_name, lambda texts: self._text_cache.get_or_make(texts, self._encode_anew)
        )

    @cached_property
    def _saved_store(self) -> VectorStore | None:
        """The vectors of the collection, if an earlier search computed them."""
        return find_vector_store(self._store_name)

    @property
    def _store_name(self) -> str:
        return fingerprint(self.fingerprint, self.corpus.fingerprint)

    @property
    def notice(self) -> str:
        """The origin of the weights, and the report on damaged vectors."""
        store: VectorStore | None = self.__dict__.get("vector_store")
        return "; ".join(filter(None, (self.origin, store.remark if store else "")))

    def search(self, queries: Sequence[str], k: int) -> list[dict[str, float]]:
        """Return the k documents with the nearest vectors, by exact search over the whole collection."""
        if k < 1:
            raise BadInput(f"k must be at least 1, not {k}")
        if not queries or not len(self.corpus):
            return [{} for _ in queries]
        return self.vector_store.search(np.concatenate(self.encode_queries(queries)), k)

    def encode_texts(self, texts: Sequence[str]) -> list[Floats]:
        """Return the vectors of each text, from the vector store if it exists and has the text."""
        store: VectorStore | None = self.__dict__.get("vector_store") or self._saved_store
        if store is None:
            return self._encode_anew(texts)
        places = [store.find(text) for text in texts]
        fresh = iter(self._encode_anew([text for text, place in zip(texts, places, strict=True) if place < 0]))
        return [next(fresh) if place < 0 else np.array(store.vectors[place : place + 1]) for place in places]

    def _encode_anew(self, texts: Sequence[str]) -> list[Floats]:
        return super().encode_texts(texts)


def make_ranker(name: str, net_fingerprint: str, net: Net, corpus: Corpus, precision: str = "float32") -> NeuralRanker:
    """Return the ranker for a net; `net_fingerprint` identifies its weights and settings."""
    net_fingerprint = fingerprint(net_fingerprint, precision)
    if isinstance(net, BiEncoder):
        return DenseRanker(name, net_fingerprint, net, precision, corpus=corpus)
    if isinstance(net, Encoder):
        return EncoderRanker(name, net_fingerprint, net, precision)
    return NeuralRanker(name, net_fingerprint, net, precision)


def select_device() -> torch.device:
    """Return the device for nets from the device settings (`executors.device`)."""
    wanted = device.get_device_settings().device
    if wanted == "cuda" and not torch.cuda.is_available():
        raise BadInput("torch sees no GPU that CUDA can use here; leave --device out, or choose cpu")
    return torch.device(wanted if wanted != "auto" else "cuda" if torch.cuda.is_available() else "cpu")


def find_score_layer(net: nn.Module) -> nn.Linear | None:
    """Return the linear layer that computes the score of a net, found by its name; None if there is none."""
    modules = dict(net.named_modules())
    return next((modules[name] for name in SCORE_LAYER_NAMES if isinstance(modules.get(name), nn.Linear)), None)


def score_maxsim(query: Floats, texts: Sequence[Floats]) -> Scores:
    """Return Σ_i max_j q_i · d_j for each text; one product covers the vectors of all texts.

    Single vectors are multiplied in float64, so equal texts tie in any list. If a query's vector is mostly zeros, as
    over a vocabulary, only its nonzero dimensions are used.
    """
    if not texts:
        return np.empty(0)
    if len(query) == 1 and all(len(text) == 1 for text in texts):
        used = np.flatnonzero(query[0])
        part = used if 8 * len(used) < query.shape[1] else slice(None)
        scores: Scores = np.stack([text[0, part] for text in texts]).astype(np.float64) @ query[0, part].astype(
            np.float64
        )
    else:
        stacked = np.concatenate(texts)  # [Σt, d]
        starts = np.cumsum([0, *(len(text) for text in texts[:-1])])
        nearest = np.maximum.reduceat(stacked @ query.T, starts, axis=0)  # [n, a]
        scores = nearest.sum(axis=1, dtype=np.float64)
    return scores


def make_batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Yield the row indexes of each batch, longest first; a batch padded to its longest row stays within the budget.

    >>> list(make_batches([3, 9, 4, 2], budget=8))
    [[1], [2, 0], [3]]
    """
    order = np.argsort(-np.array(lengths, dtype=np.int64), kind="stable").tolist()
    start = 0
    while start < len(order):
        size = max(1, budget // max(1, lengths[order[start]]))
        yield order[start : start + size]
        start += size


def split_windows(slates: Sequence[Slate]) -> Iterator[list[Slate]]:
    """Yield groups of consecutive slates with at most `TEXTS_PER_WINDOW` documents together, or a single slate."""
    some: list[Slate] = []
    size = 0
    for slate in slates:
        if some and size + len(slate.docs) > TEXTS_PER_WINDOW:
            yield some
            some, size = [], 0
        some.append(slate)
        size += len(slate.docs)
    if some:
        yield some


def is_out_of_memory(error: BaseException) -> bool:
    """Return True for an out-of-memory error; CUDA has its own class, the CPU allocator only a message."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error)
