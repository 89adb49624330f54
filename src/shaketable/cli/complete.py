"""Names that the shell completes: those of the catalogues, and imports of nothing that takes time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

Complete = Callable[[Any, str], Iterator[str]]


def _names(found: Callable[[], Iterable[str]]) -> Complete:
    """Complete what is typed from names that are found when somebody asks.

    What has been given to the same option before is not offered again.
    """

    def complete(ctx: Any, incomplete: str) -> Iterator[str]:
        given = {one for values in ctx.params.values() if isinstance(values, list | tuple) for one in values}
        yield from (name for name in found() if name.startswith(incomplete) and name not in given)

    return complete


def _of(catalogue: str) -> Complete:
    def found() -> Iterable[str]:
        from shaketable import registry

        names: Iterable[str] = getattr(registry, catalogue)
        return names

    return _names(found)


def _measures() -> Iterable[str]:
    from shaketable.door.catalogue import listed as rows

    return rows("measures")


def _categories() -> Iterable[str]:
    from shaketable.edit.taxonomy import KEEPING

    return KEEPING


def _learners() -> Iterable[str]:
    from shaketable.registry import LEARNERS, WRITERS

    return [*LEARNERS, *WRITERS]


def _probes() -> Iterable[str]:
    from shaketable.registry import PROBES

    return [name.replace("_", "-") for name in PROBES]


rankers, tasks, recipes = _of("RANKERS"), _of("TASKS"), _of("ATTACKS")
goals, defences, methods = _of("GOALS"), _of("DEFENCES"), _of("EDITS")
measures, categories, learners, probes = map(_names, (_measures, _categories, _learners, _probes))


def listed(ctx: Any, incomplete: str) -> Iterator[str]:
    """The names of the kind that stands before: `shaketable list rankers <TAB>`."""
    from shaketable.door.catalogue import CATALOGUES

    kind = ctx.params.get("kind")
    yield from (name for name in CATALOGUES.get(str(kind), ()) if name.startswith(incomplete))
