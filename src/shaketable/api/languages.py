"""The languages of an audit: those that the user names, and those of the collection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shaketable.core.documents import Query
from shaketable.core.languages import parse_languages
from shaketable.core.protocols import Task
from shaketable.tasks.languages import LanguagesTask, list_collection_languages


def add_languages(
    tasks: Sequence[Task], languages: str | Iterable[str], queries: Mapping[str, Query], *, named: bool
) -> list[Task]:
    """Return the tasks, with the task languages if the user names languages, or if queries are not in English.

    `named` is True if the user chose the tasks; then the languages of the queries add no task.
    """
    wanted = parse_languages(languages) if languages else ()
    if any(isinstance(task, LanguagesTask) for task in tasks):
        return [LanguagesTask(wanted) if wanted and isinstance(task, LanguagesTask) else task for task in tasks]
    asked = wanted or (not named and list_collection_languages(queries))
    return [*tasks, LanguagesTask(wanted)] if asked else [*tasks]
