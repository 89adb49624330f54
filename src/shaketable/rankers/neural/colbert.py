"""ColBERT: one vector per token; each query vector is matched with its nearest text vector.

    E_q = normalize(W · BERT("[CLS] [Q] q_1 ... q_l [SEP] [MASK] ... [MASK]"))
    E_d = keep(normalize(W · BERT("[CLS] [D] d_1 ... d_n [SEP]")))      keep: all but punctuation
    score = Σ_i max_j E_q,i · E_d,j

Khattab, Zaharia. ColBERT: efficient and effective passage search via contextualized late interaction over BERT.
SIGIR 2020, eqs. 1-3.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import normalize

from shaketable.core.errors import BadInput
from shaketable.nlp.checkpoints import Transformer
from shaketable.rankers.neural import pretrained_models
from shaketable.rankers.neural.net import EncodedTexts, TokenAlignment
from shaketable.rankers.neural.pretrained_encoder import PretrainedEncoder
from shaketable.rankers.neural.shapes import ColBERTShape
from shaketable.rankers.neural.tokens import Ids, make_attention_mask, pad_rows, truncate_lengths

QUERY_MARKER, TEXT_MARKER = "[unused0]", "[unused1]"
"""The tokens for [Q] and [D]."""


@dataclass(frozen=True)
class MarkedTokens:
    """A query or a text as tokens: how many are attended to, and which are compared."""

    ids: Ids
    attended_tokens: int
    compared_mask: NDArray[np.bool_]
    truncated: bool

    @property
    def length(self) -> int:
        return len(self.ids)


class ColBERT(PretrainedEncoder):
    """An encoder and a linear map to small vectors.

    As in the authors' code, the [MASK] tokens that fill up a query are compared, but no token attends to them.
    """

    kind: ClassVar[str] = "colbert"
    shape_class: ClassVar[type[ColBERTShape]] = ColBERTShape
    shape: ColBERTShape

    def __init__(self, encoder: Transformer, tokenizer: Any, shape: ColBERTShape):
        super().__init__(encoder, tokenizer, shape)
        self.linear = nn.Linear(encoder.config.hidden_size, shape.dim, bias=False)
        self._query_mark, self._text_mark = tokenizer.convert_tokens_to_ids([QUERY_MARKER, TEXT_MARKER])
        self._punctuation = np.unique(np.concatenate(self.pieces(list(string.punctuation))))

    @classmethod
    def fit_shape(cls, shape: ColBERTShape, path: Path, tokenizer: Any, encoder: Transformer) -> ColBERTShape:
        needed = {QUERY_MARKER, TEXT_MARKER, tokenizer.mask_token, tokenizer.cls_token, tokenizer.sep_token}
        if not needed <= tokenizer.get_vocab().keys():
            raise BadInput(
                f"has no {QUERY_MARKER}, {TEXT_MARKER} and [MASK] in its vocabulary; ColBERT needs one like BERT's",
                path,
            )
        pretrained_models.resolve_max_length(path, tokenizer, encoder, max(shape.query_length, shape.text_length))
        return shape

    def prepare_queries(self, queries: Sequence[str]) -> list[MarkedTokens]:
        """Tokenise queries, padded with [MASK] to the query length."""
        marked = []
        for pieces in self.pieces(queries):
            ids, truncated = self._add_special_tokens(self._query_mark, pieces, self.shape.query_length)
            augmented = np.full(self.shape.query_length, self.tokenizer.mask_token_id, np.int32)
            augmented[: len(ids)] = ids
            marked.append(MarkedTokens(augmented, len(ids), np.ones(len(augmented), np.bool_), truncated))
        return marked

    def prepare_texts(self, texts: Sequence[str]) -> list[MarkedTokens]:
        """Tokenise texts; punctuation is read but not compared."""
        marked = []
        for pieces in self.pieces(texts):
            ids, truncated = self._add_special_tokens(self._text_mark, pieces, self.shape.text_length)
            marked.append(MarkedTokens(ids, len(ids), ~np.isin(ids, self._punctuation), truncated))
        return marked

    def align_tokens(self, text: str, query: str = "") -> TokenAlignment:
        """Return the alignment: the text follows [CLS] and [D], and [SEP] follows the text."""
        return self.pieces.align_tokens(text, lookup=1, start=2, limit=self.shape.text_length - 3)

    def _add_special_tokens(self, mark: int, pieces: Ids, limit: int) -> tuple[Ids, bool]:
        (size,) = truncate_lengths([len(pieces)], limit - 3)
        ids = np.array([self.tokenizer.cls_token_id, mark, *pieces[:size], self.tokenizer.sep_token_id], np.int32)
        return ids, size < len(pieces)

    def pack(self, prepared: Sequence[MarkedTokens]) -> dict[str, Tensor]:
        ids = pad_rows([row.ids for row in prepared], self.tokenizer.pad_token_id)
        mask = make_attention_mask([row.attended_tokens for row in prepared], ids.shape[1])
        return {"ids": ids, "mask": mask, "kept": pad_rows([row.compared_mask for row in prepared], 0).bool()}

    def encode(self, **batch: Tensor) -> EncodedTexts:
        states = self.encoder(input_ids=batch["ids"], attention_mask=batch["mask"]).last_hidden_state  # [n, t, h]
        return EncodedTexts(normalize(self.linear(states), dim=2), batch["kept"])  # [n, t, d], [n, t]
