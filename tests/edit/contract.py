"""What every edit must keep: see `types.Edit`."""

from __future__ import annotations

from collections.abc import Sequence

from shaketable.chance import draws_for
from shaketable.testing import require
from shaketable.types import Context, Edit

TEXTS = (
    "",
    " ",
    "\t\n",
    "a",
    "tea",
    "it is what it is",
    "what is durable medical equipment?",
    "flu symptoms",
    "RED  boat\ton the LAKE",
    "aaaa aaaa",
    "noon",
    "1984",
    "c++ vs. c#",
    "don't panic!",
    "café crème e\u0301te\u0301",
    "İstanbul ﬁne straße",
    "東京 の 天気",
    "погода в москве",
    "طقس القاهرة",
    "🙂 🙂🙃",
    "smile 🙂 please",
    "\u200b\u0301 \ufeff",
    "\ud800 lone surrogate",
    "x" * 10_000,
    "boat " * 2_000,
    "- -- --- ... ?!",
)
"""What an edit is tried on unless the caller has better: nothing, one word, stop-words, many scripts, far too much."""


def check_edit(edit: Edit, texts: Sequence[str] | None = None, draws: int = 5) -> None:
    """What every edit must keep: see `types.Edit`."""
    name = type(edit).__name__
    require(isinstance(edit.category, str) and bool(edit.category), f"{name}: category must be a text")
    context = Context("red boat", "boats that are red", ("harbour", "sail", "anchor"))
    for text in texts or TEXTS:
        for draw in range(draws):
            try:
                once, twice = (edit.apply(text, draws_for(7, text, draw), context) for _ in range(2))
            except Exception as error:
                raise AssertionError(f"{name}: {text[:40]!r} must not break it, it raised {error!r}") from error
            require(once == twice, f"{name}: the same draws must give the same text, {text[:40]!r} gave two")
            if once is None:
                continue
            require(isinstance(once, str), f"{name}: it must give a text or None, not {once!r}")
            require(bool(once.strip()), f"{name}: an empty text is not an edit; None says that it does not apply")
            changed = once.split() != text.split()
            require(changed, f"{name}: it must not return the text it was given, {text[:40]!r} came back")
    many = getattr(edit, "apply_many", None)
    if many:
        given = [text for text in texts or TEXTS if len(text) < 100]
        rolls, contexts = [draws_for(7, text) for text in given], [context] * len(given)
        alone = [edit.apply(text, draws_for(7, text), context) for text in given]
        require(many(given, rolls, contexts) == alone, f"{name}: apply_many must do what apply does to each text")
