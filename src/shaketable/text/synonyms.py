"""Which words may stand in for a word: the sources, each behind one method.

A word is looked up in lower case; what comes back are single words in lower case, nearest first, never the word itself.
A source of base forms is asked for the word as it stands; failing that, for the base form of which it is an inflection,
and the synonyms then get that inflection: "boats" gives "ships", "bought" gives "purchased". Where English has no such
form, or where it cannot be told which of two is meant, the synonym is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from shaketable.errors import BadInput, check_within, quoted
from shaketable.files import lines
from shaketable.text import counterfitting
from shaketable.text.forms import plurals, verb_forms
from shaketable.text.inflection import ending_on, lemmas
from shaketable.text.neighbours import Lists, Neighbours, neighbours_path, read_neighbours
from shaketable.text.thesaurus import Thesaurus as Table
from shaketable.text.thesaurus import bundled, read_thesaurus
from shaketable.text.tokens import Memo
from shaketable.text.wordnet import read_wordnet, wordnet

SINGLE = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
"""A single word: letters, and hyphens and apostrophes between them."""

ByPart: TypeAlias = Callable[[str, Sequence[str] | None], Iterable[tuple[str, str]]]
"""A base form and parts of speech (None: all) -> parts of speech and synonyms, nearest first."""


class Synonyms(Protocol):
    """A source of synonyms: a word -> single words that may stand in for it, nearest first.

    It may also have a `note`: what a reader of results should know of the source on this machine, or nothing.
    """

    def of(self, word: str) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Thesaurus:
    """The thesaurus that comes with the package, all parts of speech.

    >>> Thesaurus().of("boats"), Thesaurus().of("bought")
    (('ships', 'vessels'), ('purchased',))
    """

    def of(self, word: str) -> tuple[str, ...]:
        return self._memo[word]

    @cached_property
    def _memo(self) -> Memo[tuple[str, ...]]:
        return _inflecting(_by_part(bundled()))


@dataclass(frozen=True)
class WordNet:
    """The words that share a sense with a word in WordNet, frequent senses first; a folder or a zip, or one found."""

    path: str = ""

    def of(self, word: str) -> tuple[str, ...]:
        return self._memo[word]

    @cached_property
    def _memo(self) -> Memo[tuple[str, ...]]:
        words = read_wordnet(Path(self.path)) if self.path else wordnet()

        def of(word: str, parts: Sequence[str] | None) -> Iterator[tuple[str, str]]:
            for part in parts or words.index:
                yield from ((part, other) for other in words.synonyms(word, part))

        return _inflecting(of)


@dataclass(frozen=True)
class Counterfitted:
    """The nearest words in counter-fitted vectors, up to `count` whose cosine is at least `threshold`.

    `path` is a file of such vectors, or of lists of neighbours in JSON. Without it vectors are counter-fitted here, once,
    if `vectors`, `synonyms` or `antonyms` names a file (see `counterfitting.inputs`); if none does, the first of these
    in the folder for resources counts: fitted vectors, vectors and pairs to fit, lists. Lists carry no similarities:
    whoever made them chose the threshold, this one does not apply, and `note` says so.

    The defaults are those of paper 003's attack; PRADA's are 0.7 and 50.
    """

    threshold: float = 0.5
    count: int = 40
    path: str = ""
    vectors: str = ""
    synonyms: str = ""
    antonyms: str = ""

    def __post_init__(self) -> None:
        check_within("counterfitted", self, threshold=(-1, 1), count=(1, 1000))
        if self.path and (self.vectors or self.synonyms or self.antonyms):
            raise BadInput("counterfitted: path names vectors that are fitted already; leave out it, or what is to be fitted")

    @property
    def note(self) -> str:
        """What became of the threshold, or of vectors on disk; mostly nothing."""
        near, remark = self._near
        return "lists of neighbours carry no similarities: the threshold does not apply" if near is None else remark

    def of(self, word: str) -> tuple[str, ...]:
        return self._memo[word]

    @cached_property
    def _memo(self) -> Memo[tuple[str, ...]]:
        near = self._near.neighbours
        return Memo(lambda word: _single(word, near.near(word.lower(), self.count, self.threshold)))


@dataclass(frozen=True)
class Listed:
    """A file of your own: a word and its synonyms a line, parted by tabs, or groups in the thesaurus' format.

    Words of the first form stand for themselves alone; groups are inflected as the bundled ones are.
    """

    path: str

    def of(self, word: str) -> tuple[str, ...]:
        return self._memo[word]

    @cached_property
    def _memo(self) -> Memo[tuple[str, ...]]:
        path = Path(self.path)
        first = next((line for _, line in lines(path) if not line.startswith("#")), None)
        if first is None:
            raise BadInput("holds no words", path)
        if "\t" not in first:
            return _inflecting(_by_part(read_thesaurus(path)))
        table = _read_table(path)
        return Memo(lambda word: _single(word, table.get(word.lower(), ())))
