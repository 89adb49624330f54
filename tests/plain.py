"""Plain functions of a user's file that record their calls below the home folder: "tests.plain:NAME"."""

from __future__ import annotations

from collections.abc import Sequence

from shaketable.core.home import home_folder

CALLS = "calls.txt"


def count_pairs() -> int:
    """Return the number of texts that all processes scored since the last count."""
    path = home_folder() / CALLS
    found = sum(map(int, path.read_text().split())) if path.exists() else 0
    path.unlink(missing_ok=True)
    return found


def overlap(query: str, texts: Sequence[str]) -> list[float]:
    with (home_folder() / CALLS).open("a") as out:
        out.write(f"{len(texts)}\n")
    words = set(query.lower().split())
    return [len(words & set(text.lower().split())) / (1 + len(text)) for text in texts]


def twin(query: str, texts: Sequence[str]) -> list[float]:
    """Score like `overlap`, and declare to be pointwise."""
    return overlap(query, texts)


twin.pointwise = True  # type: ignore[attr-defined]


def divide_by_best(query: str, texts: Sequence[str]) -> list[float]:
    """Divide by the best score of the list."""
    scores = overlap(query, texts)
    return [score / (max(scores) or 1.0) for score in scores]


def divide_for_some(query: str, texts: Sequence[str]) -> list[float]:
    """Divide by the best score for some queries."""
    return divide_by_best(query, texts) if len(query) % 5 == 0 else overlap(query, texts)


def divide_for_some_twin(query: str, texts: Sequence[str]) -> list[float]:
    """Score like `divide_for_some`, and declare to be list-wise."""
    return divide_for_some(query, texts)


divide_for_some_twin.pointwise = False  # type: ignore[attr-defined]
