"""Your own pairs: the expected preference of a ranker, one pair per line.

    {"query": "opening hours", "a": "Open from nine to five.", "b": "We are a family business.", "expect": "a"}

`expect` is "a", "b" or "same"; `id`, `title_a` and `title_b` are optional. A line with two queries and two texts, in
NevIR's layout or ours (`datasets.pairs`), stands for two pairs: each query with the text that answers it. Other
published layouts do not say which text should be preferred; the error names the probe that reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Literal, cast

from shaketable.core.documents import Doc
from shaketable.core.errors import BadInput, quote_value
from shaketable.core.protocols import TextPair
from shaketable.datasets.pairs import (
    Row,
    check_texts,
    get_row_id,
    is_crossed,
    parse_crossed_pair,
    read_json_objects,
)
from shaketable.probes.context import ProbeContext
from shaketable.probes.minimal_pairs import make_both_directions

Expected = Literal["a", "b", "same"]
EXPECTED_VALUES: tuple[Expected, ...] = ("a", "b", "same")
REQUIRED_FIELDS = ("query", "a", "b", "expect")
TITLE_FIELDS = ("title_a", "title_b")
PUBLISHED_LAYOUTS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("article", "sentences"): ("factuality",),
    ("question", "answer", "passage"): ("factuality",),
    ("title", "summary", "body"): ("summaries",),
    ("query", "a", "b"): ("source_bias",),
    ("a", "b"): ("fluency", "simplification"),
}
"""The fields of published layouts -> the probes that read them; the first layout that fits a line counts."""


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
    for number, row in read_json_objects(path, ()):
        for one in _parse_crossed(row, path, number) if is_crossed(row) else (parse_expectation(row, path, number),):
            if (before := places.setdefault(one.id, number)) != number:
                raise BadInput(f"the id {quote_value(one.id)} is taken; line {before} has it too", path, number)
            yield one
    if not places:
        raise BadInput("has no pairs", path)


def _parse_crossed(row: Row, path: Path, number: int) -> Iterator[ExpectedPreference]:
    """Yield both directions of a crossed pair: the first query expects text a, the second text b."""
    pair = parse_crossed_pair(row, path, number)
    for expect, contrast in zip(EXPECTED_VALUES, make_both_directions(pair), strict=False):
        name = f"{pair.qid}-{expect}"
        yield ExpectedPreference(replace(contrast, qid=name), expect, name)


def parse_expectation(row: Row, path: Path, number: int) -> ExpectedPreference:
    """Return the expected preference of a line with one query."""
    if "expect" not in row:
        refuse_published_layout(row, path, number)
    check_texts(row, REQUIRED_FIELDS, path, number)
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
    first, second = (b, a) if expect == "b" else (a, b)
    return ExpectedPreference(TextPair(row["query"], first, second, qid=name), expect, name)


def refuse_published_layout(row: Row, path: Path, number: int) -> None:
    """Raise `BadInput` that names the probe for a line in the layout of a published data set."""
    for fields, probes in PUBLISHED_LAYOUTS.items():
        if set(fields) <= row.keys():
            specs = " or ".join(f"--probe \"{name}(path='{path}')\"" for name in probes)
            raise BadInput(
                f'has no "expect", so it does not say which text should be preferred; add it, or read the file as a '
                f"published data set with {specs}",
                path,
                number,
            )


@dataclass(frozen=True)
class UserPairs:
    """Compare the text you expect to win (+) with the other; reads a file of your pairs: query, a, b and expect.

    The pairs come in file order, one for each line, including those with "same"; `expectations` tells them apart.
    """

    path: str = field(metadata={"says": "The file of pairs.", "example": "pairs.jsonl"})

    strategy: ClassVar[str] = "own"
    symmetric: ClassVar[bool] = False

    def unavailable_reason(self, context: ProbeContext) -> str:
        """Return a description of the missing file, or "" if the file exists."""
        if Path(self.path).is_file():
            return ""
        if Path(self.path).is_dir():
            return (
                f"{quote_value(self.path)} is a folder; name a file of pairs, or read a published data set with "
                f"--probe \"NAME(path='{self.path}')\", where NAME is fluency, simplification, negation, ..."
            )
        return (
            f'there is no file {quote_value(self.path)}: it should have lines of JSON with "query", "a", "b" and '
            '"expect"'
        )

    def expectations(self) -> tuple[ExpectedPreference, ...]:
        """Return the expected preferences in file order."""
        return tuple(read_expectations(Path(self.path)))

    def draw_pairs(self, context: ProbeContext) -> Iterator[TextPair]:
        return (expectation.contrast for expectation in self.expectations())
