"""Lists to learn from that attacks, or chance, had a hand in: copies with synonyms, attacked documents among others and
beside others.

Each is made of other lists, mostly those of judgements. Attacked documents come from a file (`data.attacked`); only
those of queries to learn from are taken, so what is validated and tested on stays unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TypeAlias

from shaketable.chance import Draws, draws_for
from shaketable.data.attacked import read_attacked
from shaketable.data.letor import Letor
from shaketable.errors import BadInput, check_within
from shaketable.learners.plan import Judgements, Lessons, Lists, files_read
from shaketable.learners.samples import Sample, Source, Twins
from shaketable.measure.wording import words_changed
from shaketable.registry import SYNONYMS
from shaketable.text.synonyms import Synonyms
from shaketable.text.words import like, spans
from shaketable.types import Attacked, Collection, Qrels, ranking

Left: TypeAlias = Mapping[str, Sequence[Attacked]]
"""query id -> the documents that an attack left for it, in the order of the file."""
COPIES_KEPT = 100_000
"""Copies of texts that are remembered."""


def read_examples(path: Path, collection: Collection, qids: Sequence[str]) -> Left:
    """The attacked documents of a file for these queries. All of its rows must be of the collection."""
    found: dict[str, list[Attacked]] = {}
    wanted = set(qids)
    for one in read_attacked(path):
        for qid, text in one.queries.items():
            if qid not in collection.queries or collection.queries[qid].text != text:
                raise BadInput(
                    f"is not of the collection {collection.name}, which has no query {qid!r} of this text", path
                )
        if one.docno not in collection.docs:
            raise BadInput(f"is not of the collection {collection.name}, which has no document {one.docno!r}", path)
        if one.original.text and one.original.text != collection.docs[one.docno].text:
            raise BadInput(
                f"is not of the collection {collection.name}, whose document {one.docno!r} has another text", path
            )
        for qid in one.queries:
            if qid in wanted:
                found.setdefault(qid, []).append(one)
    if not found:
        raise BadInput("has no attacked document of a query to learn from", path)
    return found


class _ForNets:
    """What lists of texts say to learners from features."""

    def relabelled(self, rows: Letor, seed: int) -> Letor:
        raise BadInput("learners from features take judged rows, so texts that were attacked or changed are for nets")


@dataclass(frozen=True)
class Augmented(_ForNets):
    """Other lists, each also as copies whose texts have some words replaced by synonyms, uniformly at random.

    words     words of a text that are replaced, as far as so many have synonyms; 0 takes for each text the number that
              an attack changed in a document of the file `path`, drawn at random
    synonyms  a source of synonyms

    A list and its copies are lists of their own, with the same labels. A copy of a text is the same in every pass.
    """

    lists: Lists = field(default_factory=Judgements)
    copies: int = 2
    words: int = 20
    synonyms: str = "thesaurus"
    path: str = ""

    def __post_init__(self) -> None:
        check_within("augmented", self, copies=(1, 100), words=(0, 10_000))
        SYNONYMS.build(self.synonyms)
        if not self.words and not self.path:
            raise BadInput("augmented: words=0 takes the numbers from attacked documents, so give their file as path")

    @property
    def files(self) -> tuple[Path, ...]:
        attacked = [Path(self.path)] if self.path else []
        return (*files_read(self.lists), *attacked, *getattr(SYNONYMS.build(self.synonyms), "files", ()))

    def source(self, lessons: Lessons, size: int) -> tuple[Source, Qrels]:
        source, qrels = self.lists.source(lessons, size)
        counts: tuple[int, ...] = (self.words,)
        if not self.words:
            docs = lessons.collection.docs
            left = read_examples(Path(self.path), lessons.collection, lessons.train)
            numbers = (words_changed(docs[one.docno], one.doc) for some in left.values() for one in some)
            counts = tuple(filter(None, numbers))
            if not counts:
                raise BadInput("has no document that an attack changed, so there are no numbers of words", self.path)
        return Copied(source, self.copies, counts, SYNONYMS.build(self.synonyms), lessons.seed), qrels


@dataclass(frozen=True, eq=False)
class Copied:
    """The lists of another source, then the first copy of each, then the second, and so on."""

    source: Source
    copies: int
    counts: Sequence[int]
    """How many words of a text are replaced: one of these numbers."""
    synonyms: Synonyms
    seed: int = 0

    def __len__(self) -> int:
        return (1 + self.copies) * len(self.source)

    def draw(self, number: int, turn: int) -> Sample:
        copy, original = divmod(number, len(self.source))
        sample = self.source.draw(original, turn)
        return replace(sample, texts=tuple(self._copy(text, copy) for text in sample.texts)) if copy else sample

    @cached_property
    def _copy(self) -> Callable[[str, int], str]:
        """A text and the number of a copy -> the copy."""

        def copied(text: str, copy: int) -> str:
            draws = draws_for(self.seed, "augmented", copy, text)
            return with_synonyms(text, draws.choice(self.counts), self.synonyms, draws)

        return lru_cache(maxsize=COPIES_KEPT)(copied)


def with_synonyms(text: str, count: int, synonyms: Synonyms, draws: Draws) -> str:
    """A text with so many of its words replaced, or all that have synonyms: which, and by what, is left to chance.

    >>> from shaketable.text.synonyms import Thesaurus
    >>> with_synonyms("A boat, a boat!", 2, Thesaurus(), draws_for(0))
    'A craft, a craft!'
    """
    options = {(a, b): others for a, b in spans(text) if (others := synonyms.of(text[a:b].lower()))}
    pieces, last = [], 0
    for start, end in sorted(draws.shuffled(list(options))[:count]):
        pieces += [text[last:start], like(draws.choice(options[start, end]), text[start:end])]
        last = end
    return "".join((*pieces, text[last:]))


@dataclass(frozen=True)
class WithAttacked(_ForNets):
    """Other lists, and for each one more: its best text among attacked documents, which still count as not relevant.

    `path` is a file of attacked documents. A query that has none there has no such list; documents that are relevant
    are left out.
    """

    lists: Lists = field(default_factory=Judgements)
    path: str = field(kw_only=True)

    @property
    def files(self) -> tuple[Path, ...]:
        return (*files_read(self.lists), Path(self.path))

    def source(self, lessons: Lessons, size: int) -> tuple[Source, Qrels]:
        if not isinstance(self.lists, Judgements | Augmented):
            raise BadInput("attacked documents count as not relevant, which only lists from judgements can tell")
        source, qrels = self.lists.source(lessons, size)
        grades = lessons.collection.qrels
        left = {
            qid: texts
            for qid, some in read_examples(Path(self.path), lessons.collection, lessons.train).items()
            if (texts := [one.doc.text for one in some if grades.get(qid, {}).get(one.docno, 0) <= 0])
        }
        more = [number for number in range(len(source)) if source.draw(number, 0).name in left]
        if not more:
            raise BadInput("has no attacked document that is not relevant, for any of the lists", self.path)
        return Joined(source, left, more, size, lessons.seed), qrels


@dataclass(frozen=True, eq=False)
class Joined:
    """The lists of another source, then those with attacked documents, for some of its numbers."""

    source: Source
    left: Mapping[str, Sequence[str]]
    more: Sequence[int]
    size: int = 7
    seed: int = 0

    def __len__(self) -> int:
        return len(self.source) + len(self.more)

    def draw(self, number: int, turn: int) -> Sample:
        if number < len(self.source):
            return self.source.draw(number, turn)
        at = self.more[number - len(self.source)]
        sample = self.source.draw(at, turn)
        draws = draws_for(self.seed, "attacked list", at, sample.name, turn)
        best = max(range(len(sample.labels)), key=sample.labels.__getitem__)
        texts = {sample.texts[best]: sample.labels[best]}
        for text in draws.shuffled(self.left[sample.name])[: self.size - 1]:
            texts.setdefault(text, 0.0)
        order = draws.shuffled(list(texts))
        return replace(sample, texts=tuple(order), labels=tuple(texts[text] for text in order))


@dataclass(frozen=True)
class BesideAttacked(_ForNets):
    """Other lists, and beside each one without labels: candidates of a query, before and after an attack.

    path      a file of attacked documents
    size      texts of a list without labels, drawn from the candidates of its query
    attacked  at most so many of them are attacked ones

    Whose list stands beside which is left to chance; all of them have their turn before one comes again. So queries
    that nobody judged are learned from as well.
    """

    lists: Lists = field(default_factory=Judgements)
    path: str = field(kw_only=True)
    size: int = field(default=20, kw_only=True)
    attacked: int = field(default=10, kw_only=True)

    def __post_init__(self) -> None:
        check_within("beside_attacked", self, size=(2, 10_000), attacked=(1, self.size))

    @property
    def files(self) -> tuple[Path, ...]:
        return (*files_read(self.lists), Path(self.path))

    def source(self, lessons: Lessons, size: int) -> tuple[Source, Qrels]:
        source, qrels = self.lists.source(lessons, size)
        left = read_examples(Path(self.path), lessons.collection, lessons.train)
        pools = {qid: _Pool.of(lessons, qid, some) for qid, some in left.items()}
        usable = [pool for pool in pools.values() if len(pool.texts) > 1]
        if not usable:
            raise BadInput("has attacked documents of lists of one document only, which have no order", self.path)
        return Beside(source, usable, self.size, self.attacked, lessons.seed), qrels


@dataclass(frozen=True, eq=False)
class _Pool:
    """The documents of a query that lists are drawn from, and what an attack left of some of them."""

    qid: str
    query: str
    texts: Mapping[str, str]
    left: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, lessons: Lessons, qid: str, some: Sequence[Attacked]) -> _Pool:
        left: dict[str, list[str]] = {}
        for one in some:
            left.setdefault(one.docno, []).append(one.doc.text)
        docs = lessons.collection.docs
        docnos = [docno for docno in ranking(lessons.candidates.get(qid, {})) if docno in docs]
        texts = {docno: docs[docno].text for docno in dict.fromkeys((*docnos, *left))}
        return cls(qid, lessons.collection.queries[qid].text, texts, left)

    def twins(self, size: int, attacked: int, draws: Draws) -> Twins:
        """So many of the documents, as they are and with at most so many attacked."""
        moved = draws.shuffled(list(self.left))[: min(attacked, size)]
        new = {docno: draws.choice(self.left[docno]) for docno in moved}
        others = draws.shuffled([docno for docno in self.texts if docno not in new])[: size - len(moved)]
        docnos = draws.shuffled([*moved, *others])
        clean = tuple(self.texts[docno] for docno in docnos)
        return Twins(self.query, clean, tuple(new.get(docno, self.texts[docno]) for docno in docnos))


@dataclass(frozen=True, eq=False)
class Beside:
    """The lists of another source, each with a list without labels beside it."""

    source: Source
    pools: Sequence[_Pool]
    size: int = 20
    attacked: int = 10
    seed: int = 0

    def __len__(self) -> int:
        return len(self.source)

    def draw(self, number: int, turn: int) -> Sample:
        time, at = divmod(turn * len(self.source) + number, len(self.pools))
        pool = self._order(time)[at]
        draws = draws_for(self.seed, "beside", pool.qid, time)
        return replace(self.source.draw(number, turn), beside=pool.twins(self.size, self.attacked, draws))

    @cached_property
    def _order(self) -> Callable[[int], list[_Pool]]:
        """The order in which the lists without labels have their turn, each time anew."""
        return lru_cache(maxsize=2)(lambda time: draws_for(self.seed, "order beside", time).shuffled(self.pools))
