"""Your own pairs: the expected preference of a ranker, one pair per line.

    {"query": "opening hours", "a": "Open from nine to five.", "b": "We are a family business.", "expect": "a"}

`expect` is "a", "b" or "same"; `id`, `title_a` and `title_b` are optional.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, cast

from shaketable.core.documents import Doc
from shaketable.core.errors import BadInput, quote_value
from shaketable.core.protocols import TextPair
from shaketable.datasets.pairs import get_row_id, read_json_objects
from shaketable.probes.context import ProbeContext

Expected = Literal["a", "b", "same"]
EXPECTED_VALUES = ("a", "b", "same")
REQUIRED_FIELDS = ("query", "a", "b", "expect")
TITLE_FIELDS = ("title_a", "title_b")


@dataclass(frozen=True, slots=True)
class ExpectedPreference:
    """An expected preference for one pair; the first text should be preferred.

    If `expect` is "same", neither text should be preferred and the texts are in file order.
    """

    contrast: TextPair
    expect: Expected
    id: str


def read_expectations(path: Path) -> Iterator[ExpectedPreference]:
    """Yield the pairs of a file; raise `BadInput` with the line number at the first invalid line."""
    places: dict[str, int] = {}
    for number, row in read_json_objects(path, REQUIRED_FIELDS):
        if row["expect"] not in EXPECTED_VALUES:
            raise BadInput(f'"expect" should be "a", "b" or "same", not {quote_value(row["expect"])}', path, number)
        expect = cast(Expected, row["expect"])
        for title in TITLE_FIELDS:
            if not isinstance(row.get(title, ""), str):
                raise BadInput(f'"{title}" should be a text, not {quote_value(row[title])}', path, number)
        a, b = (Doc(row[text], row.get(title, "")) for text, title in zip("ab", TITLE_FIELDS, strict=True))
        if a.text == b.text and expect != "same":
            raise BadInput(f'the two texts are the same, so "{expect}" cannot be preferred', path, number)
        name = get_row_id(row, number, path)
        if (before := places.setdefault(name, number)) != number:
            raise BadInput(f"the id {quote_value(name)} is taken; line {before} has it too", path, number)
        first, second = (b, a) if expect == "b" else (a, b)
        yield ExpectedPreference(TextPair(row["query"], first, second, qid=name), expect, name)
    if not places:
        raise BadInput("has no pairs", path)


@dataclass(frozen=True)
class UserPairs:
    """Compare the text you expect to win (+) with the other; reads a file of your pairs: query, a, b and expect.

    The pairs come in file order, one for each line, including those with "same"; `expectations` tells them apart.
    """

    path: str

    strategy: ClassVar[str] = "own"
    symmetric: ClassVar[bool] = False

    def unavailable_reason(self, context: ProbeContext) -> str:
        """Return a description of the missing file, or "" if the file exists."""
        if Path(self.path).is_file():
            return ""
        return (
            f'there is no file {quote_value(self.path)}: it should have lines of JSON with "query", "a", "b" and '
            '"expect"'
        )

    def expectations(self) -> tuple[ExpectedPreference, ...]:
        """Return the expected preferences in file order."""
        return tuple(read_expectations(Path(self.path)))

    def draw_pairs(self, context: ProbeContext) -> Iterator[TextPair]:
        return (expectation.contrast for expectation in self.expectations())
