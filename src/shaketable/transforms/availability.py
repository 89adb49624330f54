"""A check whether a transform is available on this machine."""

from __future__ import annotations

from shaketable.core.errors import ShaketableError
from shaketable.core.protocols import Transform, TransformContext
from shaketable.core.seeding import make_item_rng
from shaketable.nlp.resources import find_model_folder, list_model_paths

PROBE_QUERY = "how to bake good bread"


def find_unavailable_reason(transform: Transform) -> str:
    """Return the reason why a transform is unavailable, or ""; uses no network and loads no model."""
    model = getattr(transform, "model", None)
    if model is not None:
        if find_model_folder(model) is None:
            places = ", ".join(map(str, list_model_paths(model)))
            return f"the model {model} is not at {places}; get it with: hf download {model}"
        return ""
    try:
        transform.apply(PROBE_QUERY, make_item_rng(0, PROBE_QUERY), TransformContext(PROBE_QUERY))
    except ShaketableError as error:
        return str(error)
    return ""
