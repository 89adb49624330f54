"""What an edit lacks on this machine."""

from __future__ import annotations

from shaketable.chance import draws_for
from shaketable.errors import ShaketableError
from shaketable.text.resources import model_folder, model_places
from shaketable.types import Context, Edit

PROBE = "how to bake good bread"


def missing(edit: Edit) -> str:
    """Why an edit cannot work here, or an empty text; no network is asked, no model loaded."""
    model = getattr(edit, "model", None)
    if model is not None:
        if model_folder(model) is None:
            places = ", ".join(map(str, model_places(model)))
            return f"the model {model} is not at {places}; get it with: hf download {model}"
        return ""
    try:
        edit.apply(PROBE, draws_for(0, PROBE), Context(PROBE))
    except ShaketableError as error:
        return str(error)
    return ""
