"""An edit out of a function of the user's: `f(text, draws)` is enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from shaketable.chance import Draws
from shaketable.errors import BadInput, users_code
from shaketable.objects import located
from shaketable.types import Context


@dataclass(frozen=True)
class FunctionEdit:
    """Your own function f(text, draws), written MODULE:FUNCTION.

    It gives the new text, or None where it does not apply; all its chance must come from the draws (`chance.Draws`).
    The category is the function's attribute `category`, if it has one, and its attribute `made_with` names the sources
    of evidence that are not to judge what it makes. What comes back as it went in, or empty, counts as not applicable.
    """

    target: str

    def apply(self, text: str, draws: Draws, context: Context) -> str | None:
        """What the function makes of the text."""
        with users_code(f"{self.target} failed on {text!r}"):
            changed = self._function(text, draws)
        if changed is not None and not isinstance(changed, str):
            raise BadInput(f"{self.target}: an edit gives a text or None, not {changed!r}")
        return changed if changed and changed.split() and changed.split() != text.split() else None

    @property
    def category(self) -> str:
        """The place in the taxonomy of query variations; empty where the function does not say it."""
        return str(getattr(self._function, "category", ""))

    @property
    def made_with(self) -> tuple[str, ...]:
        """The sources of evidence that must not judge what it makes."""
        return tuple(getattr(self._function, "made_with", ()))

    @cached_property
    def _function(self) -> Callable[[str, Draws], str | None]:
        found = located(self.target)
        if not callable(found):
            raise BadInput(f"{self.target} is {type(found).__name__}, not a function f(text, draws)")
        function: Callable[[str, Draws], str | None] = found
        return function
