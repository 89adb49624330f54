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
from shaketable.text.neighbours import Neighbours, places, read_neighbours
from shaketable.text.thesaurus import Thesaurus as Table
from shaketable.text.thesaurus import bundled, read_thesaurus
from shaketable.text.tokens import Memo
from shaketable.text.wordnet import read_wordnet, wordnet

SINGLE = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
"""A single word: letters, and hyphens and apostrophes between them."""

LISTS = "lists of neighbours carry no similarities: the threshold does not apply"
ENDING_POS = {"s": ("noun", "verb"), "ed": ("verb",), "ing": ("verb",)}

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
    (('crafts',), ('purchased',))
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

    `path` is a file of such vectors, or of lists of neighbours in JSON. If `vectors`, `synonyms` or `antonyms` names a
    file, vectors are counter-fitted here, once (see `counterfitting.inputs`). If none is named, the first of these in
    the folder for resources counts: fitted vectors; vectors and pairs to fit; lists. Lists carry no similarities:
    whoever made them chose the threshold, the one given here does not apply to them, and `note` says so.

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
            raise BadInput("counterfitted: path is for what is fitted already; give it, or vectors and pairs to fit")

    def of(self, word: str) -> tuple[str, ...]:
        return self._memo[word]

    @property
    def note(self) -> str:
        """That the threshold does not apply, or what became of vectors on disk; mostly nothing."""
        return self._opened[1]

    @property
    def neighbours(self) -> Neighbours:
        """The vectors themselves, or the lists."""
        return self._opened[0]

    @cached_property
    def _memo(self) -> Memo[tuple[str, ...]]:
        near, _ = self._opened
        return Memo(lambda word: _single(word, near.near(word.lower(), self.count, self.threshold)))

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that neighbours are read from, or that vectors are fitted with."""
        chosen = self._chosen
        if isinstance(chosen, Path):
            return (chosen,)
        return *filter(None, (chosen.vectors,)), *chosen.synonyms, *chosen.antonyms

    @cached_property
    def _opened(self) -> tuple[Neighbours, str]:
        chosen = self._chosen
        return _ready(chosen) if isinstance(chosen, Path) else counterfitting.fitted(chosen)

    @property
    def _chosen(self) -> Path | counterfitting.Inputs:
        """A file of what is fitted already, or files to fit."""
        if self.path:
            return Path(self.path)
        files = counterfitting.inputs(self.vectors, self.synonyms, self.antonyms)
        there = sorted((path for path in places() if path.is_file()), key=_holds_lists)
        named = self.vectors or self.synonyms or self.antonyms
        if named or not there or (_holds_lists(there[0]) and all(files)):
            return files
        return there[0]


@dataclass(frozen=True)
class Listed:
    """A file of your own: a word and its synonyms a line, parted by tabs, or groups in the thesaurus' format.

    Words of the first form stand for themselves alone; groups are inflected as the bundled ones are.
    """

    path: str

    def of(self, word: str) -> tuple[str, ...]:
        return self._memo[word]

    @property
    def files(self) -> tuple[Path, ...]:
        """The file."""
        return (Path(self.path),)

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


def _ready(path: Path) -> tuple[Neighbours, str]:
    return read_neighbours(path), LISTS if _holds_lists(path) else ""


def _holds_lists(path: Path) -> bool:
    return ".json" in path.suffixes


def _read_table(path: Path) -> Mapping[str, list[str]]:
    """word -> the others on its lines, in lower case."""
    table: dict[str, list[str]] = {}
    for number, line in lines(path):
        if line.startswith("#"):
            continue
        cells = [cell.strip().lower() for cell in line.split("\t")]
        if len(cells) < 2:
            raise BadInput(f"a line is a word and its synonyms, parted by tabs, not {quoted(line)}", path, number)
        for cell in cells:
            if not SINGLE.fullmatch(cell):
                raise BadInput(f"{quoted(cell)} is not a single word", path, number)
        table.setdefault(cells[0], []).extend(cells[1:])
    return table


def _single(word: str, others: Iterable[str]) -> tuple[str, ...]:
    """The single words among others, each once, that are not the word in another case."""
    lower = dict.fromkeys(other.lower() for other in others)
    return tuple(other for other in lower if other != word.lower() and SINGLE.fullmatch(other))


def _by_part(table: Table) -> ByPart:
    def of(word: str, parts: Sequence[str] | None) -> Iterator[tuple[str, str]]:
        by_part = table.get(word, {})
        return ((part, other) for part in parts or by_part for other in by_part.get(part, ()))

    return of


def _inflecting(of: ByPart) -> Memo[tuple[str, ...]]:
    def single(word: str, parts: Sequence[str] | None) -> list[tuple[str, str]]:
        return [(part, other) for part, other in of(word, parts) if other != word and SINGLE.fullmatch(other)]

    return Memo(lambda word: _single(word, (form for _, form in inflected(word.lower(), single))))


def inflected(word: str, of: ByPart, *, odd: bool = True) -> tuple[tuple[str, str], ...]:
    """The synonyms of a word, with their parts of speech; where it has none, those of its base form, inflected so.

    If not `odd`, only regular endings are known: "bought" is no form of "buy".
    """
    if found := dict.fromkeys(of(word, None)):
        return tuple(found)
    for base, form, parts in _readings(word, odd):
        forms = ((part, _inflect(other, part, form, odd)) for part, other in of(base, parts))
        if inflections := dict.fromkeys((part, other) for part, other in forms if other and other != word):
            return tuple(inflections)
    return ()


class _Reading(NamedTuple):
    """A word as a form of another: "s", "ed", "ing", or the "past" or "participle" of a verb that has two."""

    base: str
    form: str
    parts: tuple[str, ...]


def _readings(word: str, odd: bool) -> Iterator[_Reading]:
    if odd and (noun := plurals().get(word)):
        yield _Reading(noun, "s", ("noun",))
    if odd and (verb := verb_forms().get(word)):
        base, kind = verb
        yield _Reading(base, "ed" if kind == "both" else kind, ("verb",))
    for lemma, ending in lemmas(word):
        yield _Reading(lemma, ending, ENDING_POS[ending])


def _inflect(base: str, part: str, form: str, odd: bool) -> str | None:
    """A form of a base form, or None where there is none, or where -ed may be either of two."""
    if odd and part == "noun" and base in _odd_plurals():
        return _odd_plurals()[base]
    if odd and part == "verb" and form in ("ed", "past", "participle") and base in _odd_pasts():
        past, participle = _odd_pasts()[base]
        if form == "ed":
            return past if past == participle else None
        return past if form == "past" else participle
    return ending_on(base, "ed" if form in ("past", "participle") else form)


@cache
def _odd_plurals() -> Mapping[str, str]:
    """noun -> its plural, where no rule gives it."""
    found: dict[str, str] = {}
    for plural, single in plurals().items():
        found.setdefault(single, plural)
    return found


@cache
def _odd_pasts() -> Mapping[str, tuple[str, str]]:
    """verb -> its past and its participle, where no rule gives them."""
    kinds: dict[str, dict[str, str]] = {}
    for form, (base, kind) in verb_forms().items():
        kinds.setdefault(base, {}).setdefault(kind, form)
    return {
        base: (by_kind.get("both") or by_kind["past"], by_kind.get("both") or by_kind["participle"])
        for base, by_kind in kinds.items()
        if "both" in by_kind or by_kind.keys() == {"past", "participle"}
    }
