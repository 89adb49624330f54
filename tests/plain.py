"""Plain functions of a user's file that record their calls below the home folder: "tests.plain:NAME"."""

from __future__ import annotations

from collections.abc import Sequence

from shaketable.core.home import home_folder

CALLS = "calls.txt"


def count_pairs() -> int:
    """The number of texts that were scored since the last count, by any process."""
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
    """The same, and it says that it is pointwise."""
    return overlap(query, texts)


twin.pointwise = True  # type: ignore[attr-defined]


def normalised(query: str, texts: Sequence[str]) -> list[float]:
    """Divided by the best of the list."""
    scores = overlap(query, texts)
    return [score / (max(scores) or 1.0) for score in scores]


def disguised(query: str, texts: Sequence[str]) -> list[float]:
    """List-wise for some queries only."""
    return normalised(query, texts) if len(query) % 5 == 0 else overlap(query, texts)


def disguised_twin(query: str, texts: Sequence[str]) -> list[float]:
    """The same, and it says that it is list-wise."""
    return disguised(query, texts)


disguised_twin.pointwise = False  # type: ignore[attr-defined]
