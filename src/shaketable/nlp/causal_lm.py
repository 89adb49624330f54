"""Probabilities of texts by a causal language model of transformers, such as GPT-2 and Llama.

A long text is read in windows. Each window follows the model's beginning-of-text token.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shaketable.core.errors import BadInput, MissingExtra
from shaketable.nlp import checkpoints
from shaketable.nlp.resources import find_hub_cache, find_model_folder

Floats = NDArray[np.float64]
MAX_WINDOW_PIECES = 512
MAX_BATCH_PIECES = 1024
"""The tokens of a batch, with padding: the model computes a logit for each of them and each vocabulary entry."""
MAX_CACHED_PIECES = 4_000_000
CAUSALITY_TOLERANCE = 1e-3
"""The rounding error of log10 p."""


@dataclass(eq=False)
class CausalLM:
    """A causal language model with its tokenizer; its units are subwords, those of `NGramModel` are words."""

    tokenizer: Any
    model: Any
    begin: int
    """The token before each window."""
    window: int
    _cache: dict[tuple[int, ...], Floats] = field(default_factory=dict, repr=False)
    _cached_pieces: int = 0

    def log_probs(self, texts: Sequence[str]) -> list[Floats]:
        """Return log10 p of each token of a text, given the tokens before it; 0 for an empty text."""
        windows = [list(self._split(text)) for text in texts]
        self._fill_cache([one for some in windows for one in some])
        return [np.concatenate([self._cache[one] for one in some]) if some else np.zeros(1) for some in windows]

    def perplexity(self, texts: Sequence[str]) -> Floats:
        """Return 10^(-log10 p per token) of each text."""
        return np.array([10.0 ** -logs.mean() for logs in self.log_probs(texts)])

    def _split(self, text: str) -> Iterator[tuple[int, ...]]:
        whole = text.encode("utf-8", "replace").decode()
        ids = self.tokenizer(whole, add_special_tokens=False, split_special_tokens=True, verbose=False)["input_ids"]
        for start in range(0, len(ids), self.window):
            yield tuple(ids[start : start + self.window])

    def _fill_cache(self, windows: Sequence[tuple[int, ...]]) -> None:
        if self._cached_pieces > MAX_CACHED_PIECES:
            self._cache.clear()
            self._cached_pieces = 0
        new = sorted({one for one in windows if one not in self._cache}, key=lambda one: (len(one), one))
        while new:
            batch = new[-max(1, MAX_BATCH_PIECES // len(new[-1])) :]
            del new[-len(batch) :]
            self._cache |= zip(batch, self._score_batch(batch), strict=True)
            self._cached_pieces += sum(map(len, batch))

    def _score_batch(self, batch: Sequence[tuple[int, ...]]) -> list[Floats]:
        """Return log10 p of the tokens of each window. Padding follows a window, so no token attends to it."""
        import torch

        longest = max(map(len, batch))
        rows = torch.tensor([(self.begin, *one, *([self.begin] * (longest - len(one)))) for one in batch])
        found = []
        with torch.inference_mode():
            inputs = rows[:, :-1]
            all_logits = self.model(input_ids=inputs, attention_mask=torch.ones_like(inputs), use_cache=False).logits
            for row, logits, one in zip(rows, all_logits, batch, strict=True):
                logits = logits[: len(one)]
                taken = logits.gather(1, row[1 : len(one) + 1, None])[:, 0]
                found.append((taken - logits.logsumexp(1)).double().numpy() / np.log(10))
        return found


@lru_cache(maxsize=1)
def open_causal_lm(name: str) -> CausalLM:
    """Open a model by its folder, or by its name in our resources or in the hub's cache, without a download."""
    try:
        from transformers import AutoModelForCausalLM
    except ImportError as error:
        raise MissingExtra("neural", f"the language model {name}") from error
    folder = find_model_folder(name)
    if folder is None or folder.parent == find_hub_cache():
        folder = checkpoints.fetch_from_hub(name, local_only=True)
    config = checkpoints.read_config(folder)
    tokenizer = checkpoints.read_tokenizer(folder, needs_padding=False)
    model, missing = checkpoints.read_model(AutoModelForCausalLM, folder, config)
    if missing:
        lacking = checkpoints.format_few_names(missing)
        raise BadInput(f"has no weights for {lacking}: is this a causal language model such as GPT-2?", folder)
    checkpoints.check_vocabulary(folder, tokenizer, model)
    begin = next((i for i in (tokenizer.bos_token_id, tokenizer.eos_token_id) if i is not None), None)
    if begin is None:
        raise BadInput("has a tokenizer without a token for the beginning or the end of a text", folder)
    window = min(MAX_WINDOW_PIECES, getattr(config, "max_position_embeddings", None) or MAX_WINDOW_PIECES)
    opened = CausalLM(tokenizer, model.eval(), begin, window)
    # The same transformers class opens encoders such as BERT, which attend to later tokens.
    pieces = next(opened._split("A tree of the forest"), (begin, begin))
    (whole,), (first,) = opened._score_batch([pieces]), opened._score_batch([pieces[:1]])
    if not abs(whole[0] - first[0]) <= CAUSALITY_TOLERANCE:
        raise BadInput("is not a causal language model: the words after a word change its probability", folder)
    return opened
