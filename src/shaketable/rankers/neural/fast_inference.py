"""Two ways to compute the same scores faster: linear layers by oneDNN, and a last layer for the first token alone.

Both apply only while scores are computed (torch.inference_mode), so gradients and training see the plain net.
docs/choices.md has the measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear, scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

MIN_WEIGHTS = 1 << 14
"""The smallest layer, in weights, for which oneDNN is worth its call."""
LAYER_CLASSES = ("BertLayer", "RobertaLayer", "XLMRobertaLayer", "CamembertLayer", "ElectraLayer")
"""The layers of transformers that have the parts of BERT's layer."""


class OneDnnLinear(TorchFunctionMode):
    """A context in which oneDNN computes the float32 linear layers of a CPU.

    torch uses MKL for them, which is slow on processors of other makers than Intel.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Replace linear layers that are large enough; call other functions as they are."""
        if func is linear and not kwargs and _suits_onednn(*args[:2]):
            return _call_onednn(*args)
        return func(*args, **(kwargs or {}))


@cache
def has_onednn_linear() -> bool:
    """Return True if this version of torch offers the operator, with the results of the plain one."""
    inputs, weights, bias = torch.arange(6.0).view(2, 3), torch.arange(12.0).view(4, 3), torch.arange(4.0)
    try:
        return bool(torch.allclose(_call_onednn(inputs, weights, bias), linear(inputs, weights, bias)))
    except (AttributeError, RuntimeError, TypeError, NotImplementedError):
        return False


def _suits_onednn(inputs: Tensor, weights: Tensor) -> bool:
    plain = inputs.dtype == weights.dtype == torch.float32 and inputs.device.type == "cpu"
    return plain and weights.numel() >= MIN_WEIGHTS and weights.dim() == 2 and inputs.dim() > 1 and inputs.numel() > 0


def _call_onednn(inputs: Tensor, weights: Tensor, bias: Tensor | None = None) -> Tensor:
    # the operator that torch.compile uses; it has no public name
    found: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, weights, bias, "none", [], "")
    return found


def shorten_last_layer(model: Any) -> None:
    """Let the last layer of an encoder compute the first token alone, if its user reads nothing but that token.

    The other tokens are still its keys and values, so the first token does not change. Encoders of other types than
    BERT's, and computations with gradients, stay as they are.
    """
    encoder = getattr(getattr(model, "base_model", None), "encoder", None)
    layers = getattr(encoder, "layer", None)
    if not layers or type(layers[-1]).__name__ not in LAYER_CLASSES:
        return
    config = model.config
    if config._attn_implementation == "sdpa" and not config.is_decoder and not config.chunk_size_feed_forward:
        layers[-1].forward = partial(_run_last_layer, layers[-1], layers[-1].forward)


def restore_last_layer(model: Any) -> None:
    """Let the last layer compute every token again, for a net whose user reads other tokens too."""
    encoder = getattr(getattr(model, "base_model", None), "encoder", None)
    for layer in getattr(encoder, "layer", ()):
        vars(layer).pop("forward", None)


def _run_last_layer(
    layer: Any,
    plain: Callable[..., Tensor],
    states: Tensor,
    attention_mask: Tensor | None = None,
    *args: Any,
    **rest: Any,
) -> Tensor:
    """Return the first token's state [n, 1, d] in inference mode, else the states of all tokens [n, t, d]."""
    if not torch.is_inference_mode_enabled():
        return plain(states, attention_mask, *args, **rest)
    attention = layer.attention.self
    size = attention.attention_head_size

    def split_heads(values: Tensor) -> Tensor:
        return values.view(len(values), values.shape[1], -1, size).transpose(1, 2)  # [n, heads, t, size]

    first = states[:, :1]
    mixed = scaled_dot_product_attention(
        split_heads(attention.query(first)),
        split_heads(attention.key(states)),
        split_heads(attention.value(states)),
        attn_mask=None if attention_mask is None else attention_mask[:, :, :1],
    )
    attended = layer.attention.output(mixed.transpose(1, 2).flatten(2), first)
    found: Tensor = layer.output(layer.intermediate(attended), attended)
    return found
