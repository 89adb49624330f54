"""Shell completion of names from the registries, without heavy imports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

Completer = Callable[[Any, str], Iterator[str]]


def _complete_from(list_names: Callable[[], Iterable[str]]) -> Completer:
    """Return a completer for names listed on demand; it omits names that are already given."""

    def complete(ctx: Any, incomplete: str) -> Iterator[str]:
        given = {one for values in ctx.params.values() if isinstance(values, list | tuple) for one in values}
        yield from (name for name in list_names() if name.startswith(incomplete) and name not in given)

    return complete


def _complete_registry(registry_name: str) -> Completer:
    def found() -> Iterable[str]:
        from shaketable.core import registries

        names: Iterable[str] = getattr(registries, registry_name)
        return names

    return _complete_from(found)


def _list_measures() -> Iterable[str]:
    from shaketable.api.listing import list_entries as rows

    return rows("measures")


def _list_categories() -> Iterable[str]:
    from shaketable.transforms.categories import LANGUAGE_CATEGORIES, MEANING_PRESERVING

    return (*MEANING_PRESERVING, *LANGUAGE_CATEGORIES)


def _list_learners() -> Iterable[str]:
    from shaketable.core.registries import LEARNERS, WRITERS

    return [*LEARNERS, *WRITERS]


def _list_probes() -> Iterable[str]:
    from shaketable.core.registries import PROBES

    return [name.replace("_", "-") for name in PROBES]


rankers, tasks, recipes = _complete_registry("RANKERS"), _complete_registry("TASKS"), _complete_registry("RECIPES")
goals, defences, transforms = (
    _complete_registry("GOALS"),
    _complete_registry("DEFENCES"),
    _complete_registry("TRANSFORMS"),
)
measures, categories, learners, probes = map(
    _complete_from, (_list_measures, _list_categories, _list_learners, _list_probes)
)


def complete_entries(ctx: Any, incomplete: str) -> Iterator[str]:
    """Complete the names of a registry: `shaketable list rankers <TAB>`."""
    from shaketable.api.listing import REGISTRIES

    kind = ctx.params.get("kind")
    yield from (name for name in REGISTRIES.get(str(kind), ()) if name.startswith(incomplete))
