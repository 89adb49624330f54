"""A transform that calls your own function `f(text, rng)`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from shaketable.core.errors import BadInput, explain_user_errors
from shaketable.core.import_object import import_object
from shaketable.core.protocols import TransformContext
from shaketable.core.seeding import ItemRandom


@dataclass(frozen=True)
class FunctionTransform:
    """Your own function f(text, rng), written MODULE:FUNCTION.

    The function returns the new text, or None if it does not apply. It must draw all random numbers from `rng`
    (`core.seeding.ItemRandom`). Its attribute `category` sets the category of the transform. Its attribute `sources`
    names the evidence that must not judge its texts. An unchanged or empty text counts as not applicable.
    """

    target: str = field(
        metadata={"says": "The function: module:function or ./file.py:function.", "example": "./mine.py:shout"}
    )

    def apply(self, text: str, rng: ItemRandom, context: TransformContext) -> str | None:
        """Return the text that the function returns, or None if it does not apply."""
        with explain_user_errors(f"{self.target} failed on {text!r}"):
            changed = self._function(text, rng)
        if changed is not None and not isinstance(changed, str):
            raise BadInput(f"{self.target}: a transform must return a text or None, not {changed!r}")
        return changed if changed and changed.split() and changed.split() != text.split() else None

    @property
    def category(self) -> str:
        """The category of query variation; empty if the function names none."""
        return str(getattr(self._function, "category", ""))

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources of evidence that must not judge the texts."""
        return tuple(getattr(self._function, "sources", ()))

    @cached_property
    def _function(self) -> Callable[[str, ItemRandom], str | None]:
        found = import_object(self.target)
        if not callable(found):
            raise BadInput(f"{self.target} is {type(found).__name__}, not a function f(text, rng)")
        function: Callable[[str, ItemRandom], str | None] = found
        return function
