"""A bi-encoder: one vector for the query, one for the text, and their cosine.

    score = cos(pool(BERT("[CLS] q [SEP]")), pool(BERT("[CLS] d [SEP]")))

Reimers, Gurevych. Sentence-BERT: sentence embeddings using siamese BERT-networks. EMNLP 2019.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from tokenizers import normalizers
from torch import Tensor
from torch.nn.functional import normalize

from shaketable.core.errors import BadInput
from shaketable.nlp.checkpoints import Transformer, resolve_inside
from shaketable.rankers.neural import pretrained_models
from shaketable.rankers.neural.fast_inference import shorten_last_layer
from shaketable.rankers.neural.net import EncodedTexts, TokenAlignment
from shaketable.rankers.neural.pretrained_encoder import PretrainedEncoder
from shaketable.rankers.neural.shapes import DenseShape
from shaketable.rankers.neural.tokens import SpecialTokenFrame, TokenRow, make_attention_mask, pad_rows


def pool_mean(states: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of the tokens."""
    return (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)


def pool_first(states: Tensor, mask: Tensor) -> Tensor:
    """Return the first token, which is [CLS]."""
    return states[:, 0]


def pool_last(states: Tensor, mask: Tensor) -> Tensor:
    """Return the last token that is not padding."""
    return states[torch.arange(len(states)), mask.sum(1) - 1]


def pool_max(states: Tensor, mask: Tensor) -> Tensor:
    """Return the largest value in each dimension."""
    return states.masked_fill(mask[..., None] == 0, float("-inf")).amax(1)


POOLINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mean": pool_mean,
    "cls": pool_first,
    "lasttoken": pool_last,
    "max": pool_max,
}
"""Pooling functions by their sentence-transformers names: token states [n, t, d] and padding mask [n, t] to one vector
per text [n, d]."""


class BiEncoder(PretrainedEncoder):
    """A transformer whose token states are pooled into one vector."""

    kind: ClassVar[str] = "dense"
    shape_class: ClassVar[type[DenseShape]] = DenseShape
    shape: DenseShape

    def __init__(self, encoder: Transformer, tokenizer: Any, shape: DenseShape):
        super().__init__(encoder, lower_case_first(tokenizer) if shape.lower_case else tokenizer, shape)
        self._frame = SpecialTokenFrame.from_tokenizer(tokenizer, texts=1)
        if shape.pooling == "cls":
            shorten_last_layer(encoder)

    @classmethod
    def fit_shape(cls, shape: DenseShape, path: Path, tokenizer: Any, encoder: Transformer) -> DenseShape:
        if shape.pooling not in POOLINGS:
            raise BadInput(f"there is no pooling {shape.pooling!r}; there are {', '.join(POOLINGS)}")
        return replace(
            shape, max_length=pretrained_models.resolve_max_length(path, tokenizer, encoder, shape.max_length)
        )

    def prepare_queries(self, queries: Sequence[str]) -> list[TokenRow]:
        return self._prepare(queries, self.shape.query_prefix)

    def prepare_texts(self, texts: Sequence[str]) -> list[TokenRow]:
        return self._prepare(texts, self.shape.passage_prefix)

    def _prepare(self, texts: Sequence[str], prefix: str) -> list[TokenRow]:
        pieces = self.pieces([prefix + text for text in texts])
        return [self._frame.wrap_texts([ids], self.shape.max_length) for ids in pieces]

    def align_tokens(self, text: str, query: str = "") -> TokenAlignment:
        prefix = self.shape.passage_prefix
        (limit,) = self._frame.fit_lengths(
            [len(pieces) for pieces in self.pieces([prefix + text])], self.shape.max_length
        )
        return self.pieces.align_tokens(
            text, lookup=1, start=len(self._frame.special_ids[0]), limit=limit, prompt=prefix
        )

    def pack(self, prepared: Sequence[TokenRow]) -> dict[str, Tensor]:
        ids = pad_rows([row.ids for row in prepared], self.tokenizer.pad_token_id)
        # if a tokenizer adds no special tokens, an empty text has no tokens: it becomes one padding token
        return {"ids": ids, "mask": make_attention_mask([max(1, row.length) for row in prepared], ids.shape[1])}

    def encode(self, **batch: Tensor) -> EncodedTexts:
        states = self.encoder(input_ids=batch["ids"], attention_mask=batch["mask"]).last_hidden_state  # [n, t, d]
        vectors = POOLINGS[self.shape.pooling](states, batch["mask"])  # [n, d]
        vectors = normalize(vectors, dim=1) if self.shape.cosine else vectors
        return EncodedTexts(vectors[:, None, :], torch.ones(len(vectors), 1, dtype=torch.bool, device=vectors.device))


def lower_case_first(tokenizer: Any) -> Any:
    """Make a tokenizer lower-case its input before anything else, as sentence-transformers does; return it."""
    if not tokenizer.is_fast:
        raise BadInput("its files ask for lower case, but its tokenizer is not a fast one; save it as tokenizer.json")
    backend = tokenizer.backend_tokenizer
    known: Any = backend.normalizer
    is_sequence = isinstance(known, normalizers.Sequence)
    steps: list[Any] = list(known) if is_sequence else [known] if known is not None else []
    if not any(isinstance(step, normalizers.Lowercase) for step in steps):
        backend.normalizer = normalizers.Sequence([normalizers.Lowercase(), *steps])
    return tokenizer


def read_shape(path: Path) -> DenseShape:
    """Read the shape from the files of a sentence-transformers model; reject unsupported settings."""
    try:
        return _parse_shape(path)
    except (TypeError, KeyError, AttributeError) as error:
        raise BadInput(f"has invalid files of sentence-transformers ({error!r})", path) from error


def _parse_shape(path: Path) -> DenseShape:
    rows = _read_optional_json(path / "modules.json")
    modules = {str(row["type"]).rpartition(".")[2]: resolve_inside(path, row["path"]) for row in rows}
    if not modules:
        raise BadInput(
            "has no modules.json, so it is not a sentence-transformers model; try dense(checkpoint=...)", path
        )
    about, reading = (
        _read_optional_json(path / "config_sentence_transformers.json"),
        _read_optional_json(path / "sentence_bert_config.json"),
    )
    pooling = _read_optional_json(modules.get("Pooling", path) / "config.json") if "Pooling" in modules else {}
    mode: Any = (
        pooling.get("pooling_mode") or [name for key, name in _OLD_POOLING_KEYS.items() if pooling.get(key)] or "mean"
    )
    mode = mode[0] if isinstance(mode, list) and len(mode) == 1 else mode
    prompts = about.get("prompts") or {}
    similarity = about.get("similarity_fn_name") or "cosine"
    refusals = {
        f"has a layer {' or '.join(modules)}": not modules.keys() <= {"Transformer", "Pooling", "Normalize"},
        f"pools its tokens by {mode}": mode not in list(POOLINGS),
        f"compares by {similarity}": similarity not in ("cosine", "dot"),
        "leaves its prompts out of the pooling": any(prompts.values()) and not pooling.get("include_prompt", True),
    }
    if refused := [what for what, holds in refusals.items() if holds]:
        raise BadInput(f"{refused[0]}, which st:NAME does not support", path)
    length = reading.get("max_seq_length") or 0
    if not isinstance(length, int):
        raise TypeError(f"max_seq_length {length!r}")
    return DenseShape(
        max_length=length,
        pooling=mode,
        cosine=similarity == "cosine" or "Normalize" in modules,
        query_prefix=_get_prefix(prompts, "query"),
        passage_prefix=_get_prefix(prompts, "document", "passage", "corpus"),
        lower_case=bool(reading.get("do_lower_case")),
    )


def _get_prefix(prompts: Mapping[str, Any], *names: str) -> str:
    """Return the first prompt of these names that is not empty; "" if there is none."""
    prefix = next((prompts[name] for name in names if prompts.get(name)), "")
    if not isinstance(prefix, str):
        raise TypeError(f"prompt {prefix!r}")
    return prefix


_OLD_POOLING_KEYS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "lasttoken",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
}


def _read_optional_json(path: Path) -> Any:
    """Return the content of a JSON file; {} if it does not exist."""
    if not path.is_file():
        return {}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadInput(f"is not JSON ({error})", path) from error
