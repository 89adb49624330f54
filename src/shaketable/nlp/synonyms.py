"""Sources of synonyms.

Words are looked up in lower case. A source returns single words in lower case, nearest first, without the word itself.
A source of base forms first looks up the word, then its base form, and inflects the synonyms alike: "boats" gives
"ships", "bought" gives "purchased". A synonym without such a form, or with an ambiguous one, is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from shaketable.core.errors import BadInput, check_ranges, quote_value
from shaketable.files.reading import read_lines
from shaketable.nlp.analyzer import Memo
from shaketable.nlp.embedding_neighbours import NeighbourSource, list_neighbour_paths, read_neighbours
from shaketable.nlp.inflection import add_ending, find_lemmas
from shaketable.nlp.irregular_forms import build_irregular_plurals, build_irregular_verb_forms
from shaketable.nlp.thesaurus import Thesaurus as Table
from shaketable.nlp.thesaurus import read_bundled_thesaurus, read_thesaurus
from shaketable.nlp.wordnet import open_wordnet, read_wordnet

SINGLE_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
"""A single word: letters, and hyphens and apostrophes between them."""

THRESHOLD_IGNORED = "lists of neighbours have no similarities, so the threshold does not apply"
ENDING_POS = {"s": ("noun", "verb"), "ed": ("verb",), "ing": ("verb",)}

SynonymLookup: TypeAlias = Callable[[str, Sequence[str] | None], Iterable[tuple[str, str]]]
"""A base form and parts of speech (None: all) -> parts of speech and synonyms, nearest first."""


class SynonymSource(Protocol):
    """A source of synonyms: word -> single words that may replace it, nearest first.

    It may also have a `note` on the source for the results, or "".
    """

    def lookup(self, word: str) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class ThesaurusSynonyms:
    """The thesaurus that comes with the package, all parts of speech.

    >>> ThesaurusSynonyms().lookup("boats"), ThesaurusSynonyms().lookup("bought")
    (('crafts',), ('purchased',))
    """

    def lookup(self, word: str) -> tuple[str, ...]:
        return self._memo[word]

    @cached_property
    def _memo(self) -> Memo[tuple[str, ...]]:
        return _make_inflecting_memo(_make_table_lookup(read_bundled_thesaurus()))


@dataclass(frozen=True)
class WordNetSynonyms:
    """The words that share a sense with a word in WordNet (a folder, a zip, or the installed one)."""

    path: str = ""

    def lookup(self, word: str) -> tuple[str, ...]:
        return self._memo[word]

    @cached_property
    def _memo(self) -> Memo[tuple[str, ...]]:
        words = read_wordnet(Path(self.path)) if self.path else open_wordnet()

        def of(word: str, parts: Sequence[str] | None) -> Iterator[tuple[str, str]]:
            for part in parts or words.index:
                yield from ((part, other) for other in words.find_synonyms(word, part))

        return _make_inflecting_memo(of)


@dataclass(frozen=True)
class CounterfittedSynonyms:
    """The nearest words in counter-fitted vectors, up to `count` whose cosine is at least `threshold`.

    `path` is a file of such vectors, or of lists of neighbours in JSON. The default is vectors in the resources folder,
    else lists there, else the bundled thesaurus; `note` says which. Lists and the thesaurus have no similarities, so
    the threshold does not apply to them.

    The defaults are those of paper 003's attack; PRADA's are 0.7 and 50.
    """

    threshold: float = 0.5
    count: int = 40
    path: str = ""

    def __post_init__(self) -> None:
        check_ranges("counterfitted", self, threshold=(-1, 1), count=(1, 1000))

    def lookup(self, word: str) -> tuple[str, ...]:
        return self._memo[word]

    @property
    def note(self) -> str:
        """The source in use, and whether the threshold applies; "" for vectors that `path` names."""
        if not self.files:
            places = ", ".join(map(str, list_neighbour_paths()))
            return f"there are no counter-fitted neighbours ({places}), so the synonyms are those of the thesaurus"
        (file,) = self.files
        said = (f"the synonyms are from {file}" if not self.path else "", THRESHOLD_IGNORED * _holds_lists(file))
        return "; ".join(filter(None, said))

    @property
    def files(self) -> tuple[Path, ...]:
        """The file that neighbours are read from, if there is one."""
        if self.path:
            return (Path(self.path),)
        return tuple(sorted((path for path in list_neighbour_paths() if path.is_file()), key=_holds_lists)[:1])

    @cached_property
    def neighbours(self) -> NeighbourSource | None:
        """The vectors or the lists; None if the thesaurus replaces them."""
        return next(map(read_neighbours, self.files), None)

    @cached_property
    def _memo(self) -> Memo[tuple[str, ...]]:
        near = self.neighbours
        if near is None:
            thesaurus = ThesaurusSynonyms()
            return Memo(lambda word: thesaurus.lookup(word)[: self.count])
        return Memo(
            lambda word: _select_single_words(word, near.find_nearest(word.lower(), self.count, self.threshold))
        )


@dataclass(frozen=True)
class ListedSynonyms:
    """Your own file: a word and its synonyms per line, separated by tabs, or groups in the thesaurus' format.

    Words of the first format are not inflected; groups are inflected like the bundled ones.
    """

    path: str = field(metadata={"says": "The file of synonyms.", "example": "synonyms.tsv"})

    def lookup(self, word: str) -> tuple[str, ...]:
        return self._memo[word]

    @property
    def files(self) -> tuple[Path, ...]:
        """The file."""
        return (Path(self.path),)

    @cached_property
    def _memo(self) -> Memo[tuple[str, ...]]:
        path = Path(self.path)
        first = next((line for _, line in read_lines(path) if not line.startswith("#")), None)
        if first is None:
            raise BadInput("holds no words", path)
        if "\t" not in first:
            return _make_inflecting_memo(_make_table_lookup(read_thesaurus(path)))
        table = _read_table(path)
        return Memo(lambda word: _select_single_words(word, table.get(word.lower(), ())))


def _holds_lists(path: Path) -> bool:
    return ".json" in path.suffixes


def _read_table(path: Path) -> Mapping[str, list[str]]:
    """Return word -> the other words on its lines, in lower case."""
    table: dict[str, list[str]] = {}
    for number, line in read_lines(path):
        if line.startswith("#"):
            continue
        cells = [cell.strip().lower() for cell in line.split("\t")]
        if len(cells) < 2:
            raise BadInput(
                f"a line must be a word and its synonyms, separated by tabs, not {quote_value(line)}", path, number
            )
        for cell in cells:
            if not SINGLE_WORD.fullmatch(cell):
                raise BadInput(f"{quote_value(cell)} is not a single word", path, number)
        table.setdefault(cells[0], []).extend(cells[1:])
    return table


def _select_single_words(word: str, others: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct single words among others, without the word itself in any case."""
    lower = dict.fromkeys(other.lower() for other in others)
    return tuple(other for other in lower if other != word.lower() and SINGLE_WORD.fullmatch(other))


def _make_table_lookup(table: Table) -> SynonymLookup:
    def of(word: str, parts: Sequence[str] | None) -> Iterator[tuple[str, str]]:
        by_part = table.get(word, {})
        return ((part, other) for part in parts or by_part for other in by_part.get(part, ()))

    return of


def _make_inflecting_memo(lookup: SynonymLookup) -> Memo[tuple[str, ...]]:
    def single(word: str, parts: Sequence[str] | None) -> list[tuple[str, str]]:
        return [(part, other) for part, other in lookup(word, parts) if other != word and SINGLE_WORD.fullmatch(other)]

    return Memo(
        lambda word: _select_single_words(word, (form for _, form in find_inflected_synonyms(word.lower(), single)))
    )


def find_inflected_synonyms(word: str, lookup: SynonymLookup, *, irregular: bool = True) -> tuple[tuple[str, str], ...]:
    """Return (part of speech, synonym) of a word or, if it has none, of its base form, inflected alike.

    If not `irregular`, only regular endings are known: "bought" is not a form of "buy".
    """
    if found := dict.fromkeys(lookup(word, None)):
        return tuple(found)
    for base, form, parts in _iterate_readings(word, irregular):
        forms = ((part, _inflect(other, part, form, irregular)) for part, other in lookup(base, parts))
        if inflections := dict.fromkeys((part, other) for part, other in forms if other and other != word):
            return tuple(inflections)
    return ()


class _Reading(NamedTuple):
    """A word as a form of another: "s", "ed", "ing", or the "past" or "participle" of a verb that has two."""

    base: str
    form: str
    parts: tuple[str, ...]


def _iterate_readings(word: str, irregular: bool) -> Iterator[_Reading]:
    if irregular and (noun := build_irregular_plurals().get(word)):
        yield _Reading(noun, "s", ("noun",))
    if irregular and (verb := build_irregular_verb_forms().get(word)):
        base, kind = verb
        yield _Reading(base, "ed" if kind == "both" else kind, ("verb",))
    for lemma, ending in find_lemmas(word):
        yield _Reading(lemma, ending, ENDING_POS[ending])


def _inflect(base: str, part: str, form: str, irregular: bool) -> str | None:
    """Return a form of a base form, or None if there is none or -ed is ambiguous."""
    if irregular and part == "noun" and base in _map_nouns_to_plurals():
        return _map_nouns_to_plurals()[base]
    if irregular and part == "verb" and form in ("ed", "past", "participle") and base in _map_verbs_to_pasts():
        past, participle = _map_verbs_to_pasts()[base]
        if form == "ed":
            return past if past == participle else None
        return past if form == "past" else participle
    return add_ending(base, "ed" if form in ("past", "participle") else form)


@cache
def _map_nouns_to_plurals() -> Mapping[str, str]:
    """Return noun -> its irregular plural."""
    found: dict[str, str] = {}
    for plural, single in build_irregular_plurals().items():
        found.setdefault(single, plural)
    return found


@cache
def _map_verbs_to_pasts() -> Mapping[str, tuple[str, str]]:
    """Return verb -> its irregular past and participle."""
    kinds: dict[str, dict[str, str]] = {}
    for form, (base, kind) in build_irregular_verb_forms().items():
        kinds.setdefault(base, {}).setdefault(kind, form)
    return {
        base: (by_kind.get("both") or by_kind["past"], by_kind.get("both") or by_kind["participle"])
        for base, by_kind in kinds.items()
        if "both" in by_kind or by_kind.keys() == {"past", "participle"}
    }
