"""DocT5Query: documents with appended queries that a model samples for them.

A sample depends on the text and on the sample number, not on the other texts of the batch.

Nogueira, Lin. From doc2query to docTTTTTquery. 2019. The settings are those of paper 001 (3.2): four queries, top-10
sampling, at most 64 tokens of a query and 1,024 of a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shaketable.core.seeding import make_numpy_rng
from shaketable.transforms.categories import DOCUMENT
from shaketable.transforms.generated import open_generator

if TYPE_CHECKING:
    from shaketable.core.protocols import TransformContext
    from shaketable.core.seeding import ItemRandom

DEFAULT_MODEL = "castorini/doc2query-t5-base-msmarco"
TOP_K, MAX_QUERY_TOKENS, MAX_TEXT_TOKENS = 10, 64, 1024
BATCH_TEXTS = 8


@dataclass(frozen=True)
class AddQueries:
    """Append queries that the text might answer, sampled from a T5 trained to write them (DocT5Query).

    The samples do not use `rng`. A document transform has no category of query variation.
    """

    model: str = DEFAULT_MODEL
    n: int = 4
    category: ClassVar[str] = DOCUMENT

    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None:
        return self.apply_many([text], [rng], [context])[0]

    def apply_many(
        self, texts: Sequence[str], rngs: Sequence[ItemRandom], contexts: Sequence[TransformContext]
    ) -> list[str | None]:
        """Return each text with its sampled queries, or None if there are none."""
        loaded = open_generator(self.model)
        found = QuerySampler(loaded.model, loaded.tokenizer).sample_queries(texts, self.n)
        return [append_queries(text, some) if some else None for text, some in zip(texts, found, strict=True)]


def append_queries(text: str, queries: Sequence[str]) -> str:
    """Return the text followed by the queries.

    >>> append_queries("Tides follow the moon.", ["what makes tides", "moon tides"])
    'Tides follow the moon. what makes tides moon tides'
    """
    return " ".join([text, *queries]).strip()


@dataclass(frozen=True)
class QuerySampler:
    """A sequence-to-sequence model that samples queries."""

    model: Any
    tokenizer: Any
    seed: int = 0

    def sample_queries(self, texts: Sequence[str], n: int) -> list[list[str]]:
        """Return up to n non-empty queries for each text; a blank text gets none."""
        clean = [" ".join(text.encode("utf-8", "replace").decode().split()) for text in texts]
        distinct = sorted({text for text in clean if text}, key=lambda text: (len(text), text))
        found: dict[str, list[str]] = {"": []}
        for start in range(0, len(distinct), BATCH_TEXTS):
            some = distinct[start : start + BATCH_TEXTS]
            found.update(zip(some, self._sample_batch(some, n), strict=True))
        return [found[text] for text in clean]

    def _sample_batch(self, texts: Sequence[str], n: int) -> list[list[str]]:
        import torch
        from transformers.modeling_outputs import BaseModelOutput

        device = self.model.device
        inputs = self.tokenizer(
            list(texts), return_tensors="pt", padding=True, truncation=True, max_length=MAX_TEXT_TOKENS, verbose=False
        )
        draws = np.stack(
            [make_numpy_rng(self.seed, "queries", text, i).random(MAX_QUERY_TOKENS) for text in texts for i in range(n)]
        )
        with torch.inference_mode():
            mask = inputs["attention_mask"].to(device)
            read = self.model.get_encoder()(input_ids=inputs["input_ids"].to(device), attention_mask=mask)
            output = self.model.generate(
                encoder_outputs=BaseModelOutput(read.last_hidden_state.repeat_interleave(n, 0)),
                attention_mask=mask.repeat_interleave(n, 0),
                logits_processor=[_SeededTopKSampling(torch.from_numpy(draws).to(device))],
                do_sample=False,
                num_beams=1,
                max_length=MAX_QUERY_TOKENS,
            )
        written = [" ".join(text.split()) for text in self.tokenizer.batch_decode(output, skip_special_tokens=True)]
        return [[query for query in written[i * n : (i + 1) * n] if query] for i in range(len(texts))]


@dataclass(frozen=True)
class _SeededTopKSampling:
    """A logits processor that keeps one of the top k tokens, selected by a uniform number for each row and step.

    Greedy decoding after this processor equals sampling, with separate random numbers for each row.
    """

    uniform_numbers: Any

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        top = scores.topk(min(TOP_K, scores.shape[1]), dim=1)
        shares = top.values.double().softmax(1).cumsum(1)
        drawn = self.uniform_numbers[:, input_ids.shape[1] - 1, None]
        picked = (shares <= drawn).sum(1, keepdim=True).clamp(max=shares.shape[1] - 1)
        return scores.new_full(scores.shape, float("-inf")).scatter(1, top.indices.gather(1, picked), 0.0)
