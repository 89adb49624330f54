"""The other collections of an audit, which only tasks that compare corpora use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from shaketable.api.options import CollectionLike
from shaketable.core.documents import Collection
from shaketable.core.errors import BadInput
from shaketable.core.protocols import Task


def add_corpora(tasks: Iterable[Task], others: Iterable[CollectionLike]) -> list[Task]:
    """Return the tasks, with the other collections added to those that compare corpora."""
    texts = []
    for other in others:
        if isinstance(other, Collection) and not other.source:
            raise BadInput(f"collection {other.name} exists in memory only; save it to a folder and pass its path")
        texts.append(other.source if isinstance(other, Collection) else str(other))
    added: list[Task] = []
    for task in tasks:
        known = getattr(task, "corpora", None)
        added.append(task if known is None else replace(task, corpora=(*known, *texts)))  # type: ignore[type-var]
    if not any(hasattr(task, "corpora") for task in added):
        raise BadInput(
            "only the task corpus-shift uses several collections; add --task corpus-shift, or give one --data"
        )
    return added
