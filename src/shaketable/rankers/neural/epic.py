"""EPIC: query and text as vectors over the vocabulary; a text also has weight on words that it does not contain.

    a(x)     = ln(1 + softplus(x))
    q[v]     = Σ_{i: piece i is v} a(w_q · h_i + b_q)
    d[v]     = σ(w_c · h_[CLS] + b_c) · max_j a(MLM(h_j)[v]) · a(w_d · h_j + b_d)
    score    = q · d

i and j run over the pieces of the text, not over [CLS] and [SEP]; the states h are those of a masked language model,
and MLM is its head (`rankers.neural.masked`).

MacAvaney, Nardini, Perego, Tonellotto, Goharian, Frieder. Expansion via prediction of importance with
contextualization. SIGIR 2020. Dropout before w_q and w_d, and no [CLS] among the pieces, are as in the authors' code
(OpenNIR).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from shaketable.core.errors import BadInput
from shaketable.nlp import checkpoints
from shaketable.nlp.checkpoints import Transformer
from shaketable.rankers.neural import pretrained_models
from shaketable.rankers.neural.masked import MaskedLM
from shaketable.rankers.neural.net import EncodedTexts, TokenAlignment
from shaketable.rankers.neural.pretrained_encoder import PretrainedEncoder
from shaketable.rankers.neural.shapes import EPICShape
from shaketable.rankers.neural.tokens import Ids, SpecialTokenFrame, make_attention_mask, pad_rows


@dataclass(frozen=True)
class TokenizedText:
    """A query or a text as tokens; those in `piece_range` are its own, the others are special."""

    ids: Ids
    piece_range: range
    is_query: bool
    truncated: bool

    @property
    def length(self) -> int:
        return len(self.ids)


class EPIC(PretrainedEncoder):
    """A masked language model with three heads: the importance of query pieces, of text pieces, and of a text."""

    kind: ClassVar[str] = "epic"
    shape_class: ClassVar[type[EPICShape]] = EPICShape
    encoder: MaskedLM
    shape: EPICShape

    def __init__(self, encoder: MaskedLM, tokenizer: Any, shape: EPICShape):
        super().__init__(encoder, tokenizer, shape)
        size = encoder.config.hidden_size
        self.query_importance = nn.Linear(size, 1)
        self.text_importance = nn.Linear(size, 1)
        self.quality = nn.Linear(size, 1)
        self.dropout = nn.Dropout(shape.dropout)
        self._frame = SpecialTokenFrame.from_tokenizer(tokenizer, texts=1)

    @classmethod
    def from_checkpoint(cls, checkpoint: str, shape: EPICShape) -> Self:
        path = pretrained_models.find_checkpoint_folder(checkpoint)
        encoder, tokenizer = MaskedLM.from_checkpoint(path), checkpoints.read_tokenizer(path)
        checkpoints.check_vocabulary(path, tokenizer, encoder)
        return cls(encoder, tokenizer, cls.fit_shape(shape, path, tokenizer, encoder))

    @classmethod
    def fit_shape(cls, shape: EPICShape, path: Path, tokenizer: Any, encoder: Transformer) -> EPICShape:
        if shape.keep < 0:
            raise BadInput(f"epic: keep should be the number of vector entries to keep, or 0 for all, not {shape.keep}")
        if not len(SpecialTokenFrame.from_tokenizer(tokenizer, texts=1).special_ids[0]):
            raise BadInput(
                "has a tokenizer that puts no token before a text, and EPIC reads a text's quality there", path
            )
        return replace(
            shape, max_length=pretrained_models.resolve_max_length(path, tokenizer, encoder, shape.max_length)
        )

    def prepare_queries(self, queries: Sequence[str]) -> list[TokenizedText]:
        return self._tokenize_texts(queries, is_query=True)

    def prepare_texts(self, texts: Sequence[str]) -> list[TokenizedText]:
        return self._tokenize_texts(texts, is_query=False)

    def align_tokens(self, text: str, query: str = "") -> TokenAlignment:
        (limit,) = self._frame.fit_lengths([len(pieces) for pieces in self.pieces([text])], self.shape.max_length)
        return self.pieces.align_tokens(text, lookup=1, start=len(self._frame.special_ids[0]), limit=limit)

    def _tokenize_texts(self, texts: Sequence[str], is_query: bool) -> list[TokenizedText]:
        before, after = map(len, self._frame.special_ids)
        rows = [self._frame.wrap_texts([ids], self.shape.max_length) for ids in self.pieces(texts)]
        return [TokenizedText(row.ids, range(before, row.length - after), is_query, row.truncated) for row in rows]

    def pack(self, prepared: Sequence[TokenizedText]) -> dict[str, Tensor]:
        """Return a batch; the mask of its own pieces is called "asked" for queries and "said" for texts."""
        ids = pad_rows([row.ids for row in prepared], self.tokenizer.pad_token_id)
        own = torch.zeros(ids.shape, dtype=torch.bool)
        for row, place in zip(prepared, own, strict=True):
            place[row.piece_range.start : row.piece_range.stop] = True
        mask = make_attention_mask([row.length for row in prepared], ids.shape[1])
        return {"ids": ids, "mask": mask, "asked" if prepared[0].is_query else "said": own}

    def encode(self, **batch: Tensor) -> EncodedTexts:
        states = self.encoder.compute_states(input_ids=batch["ids"], attention_mask=batch["mask"])  # [n, t, h]
        if "asked" in batch:
            vectors = self._encode_query(states, batch["ids"], batch["asked"])
        else:
            vectors = self._encode_text(states, batch["said"])
        return EncodedTexts(vectors[:, None, :], torch.ones(len(vectors), 1, dtype=torch.bool, device=vectors.device))

    def _encode_query(self, states: Tensor, ids: Tensor, asked: Tensor) -> Tensor:
        weights = log1p_softplus(self.query_importance(self.dropout(states)))[..., 0] * asked  # [n, t]
        vectors = weights.new_zeros(len(ids), self.embedding().num_embeddings)
        return vectors.scatter_add(1, ids, weights)  # [n, v]

    def _encode_text(self, states: Tensor, said: Tensor) -> Tensor:
        """Encode one text at a time, without padding: the logits of a whole batch would be large."""
        vectors = torch.stack(
            [self._max_pool_pieces(row[own]) for row, own in zip(states, said, strict=True)]
        )  # [n, v]
        vectors = vectors * self.quality(states[:, 0]).sigmoid()
        if 0 < self.shape.keep < vectors.shape[1]:
            kept = vectors.topk(self.shape.keep, dim=1)
            vectors = torch.zeros_like(vectors).scatter(1, kept.indices, kept.values)
        return vectors

    def _max_pool_pieces(self, states: Tensor) -> Tensor:
        """Return max_j over the pieces of one text: [t, h] -> [v].

        The gradient flows only to the winning piece. So with gradients, the winners are found first without gradients,
        and the values of all pieces need not be kept for the backward pass.
        """
        if not len(states):
            return states.new_zeros(self.embedding().num_embeddings)
        logits = self.encoder.compute_logits(states)  # [t, v]
        importance = log1p_softplus(self.text_importance(self.dropout(states)))  # [t, 1]
        if not torch.is_grad_enabled():
            return (log1p_softplus(logits) * importance).amax(0)
        with torch.no_grad():
            winners = (log1p_softplus(logits) * importance).max(0).indices  # [v]
        return log1p_softplus(logits.gather(0, winners[None])[0]) * importance[winners, 0]

    def config(self) -> dict[str, Any]:
        return {"encoder": self.encoder.to_config(), "shape": asdict(self.shape)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], folder: Path) -> Self:
        encoder = MaskedLM.from_config(config["encoder"])
        return cls(encoder, checkpoints.read_tokenizer(folder), EPICShape(**config["shape"]))


def log1p_softplus(values: Tensor) -> Tensor:
    """Return a(x) of the paper, which is positive and grows slowly."""
    return softplus(values).log1p()
