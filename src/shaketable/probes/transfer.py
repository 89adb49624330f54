"""Data set transfer: texts that people rewrote for another purpose become a question to a ranker.

A data set without queries is given one for each pair: a noun chunk that both texts have, so that neither text is nearer
to it by the choice of words. Where queries are known, one of their words must be in both texts. What has no query is
left out, and counted.

MacAvaney, Feldman, Goharian, Downey, Cohan. ABNIRML: Analyzing the behavior of neural IR models. TACL 2022. Sections
3.3 and 6; simplification, paraphrases, bias and facts are in its code only (allenai/abnirml).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

from shaketable.chance import draws_for
from shaketable.data.pairs import (
    FACTS,
    GYAFC,
    JFLEG,
    MSRP,
    SUMMARIES,
    TURK,
    WNC,
    Answered,
    DataSet,
    TextPair,
    answer_pattern,
    bundled,
    read_facts,
    read_gyafc,
    read_jfleg,
    read_msrp,
    read_summaries,
    read_turk,
    read_wnc,
)
from shaketable.errors import check_within
from shaketable.probes.ground import Ground
from shaketable.probes.sourced import Sourced
from shaketable.text.language import Parsed, offsets
from shaketable.text.stopwords import ENGLISH
from shaketable.types import Contrast, Doc, Omitted

SHORTEST = 6
"""Characters of a noun chunk that can be a query."""
AT_ONCE = 1000
"""Pairs whose texts a linguistic tool is given together."""

EMPTY = "a text is empty"
SAME = "the two texts are the same"
NO_CHUNK = f"no noun chunk of {SHORTEST} characters or more is in both texts"
NO_QUERY = "its query is not known"
NO_LEMMA = "no content word of the query is in both texts"


def with_chunks(ground: Ground, pairs: Iterable[TextPair], same: bool = True) -> Iterator[Contrast | Omitted]:
    """Contrasts whose query is one noun chunk that both texts have, drawn for the pair; a query that is there stays.

    `same` keeps pairs whose two texts are the same: the published numbers count them, as neutral.
    """
    for pair in _read(ground, pairs, chunks=True):
        if not pair.first.strip() or not pair.second.strip():
            yield Omitted(EMPTY)
        elif not same and pair.first == pair.second:
            yield Omitted(SAME)
        elif pair.query:
            yield _contrast(pair, pair.query)
        elif common := chunks_of(ground, pair.first) & chunks_of(ground, pair.second):
            draws = draws_for(ground.seed, "query of a pair", pair.first, pair.second)
            yield _contrast(pair, draws.choice(sorted(common)))
        else:
            yield Omitted(NO_CHUNK)


def with_lemmas(ground: Ground, pairs: Iterable[TextPair]) -> Iterator[Contrast | Omitted]:
    """Contrasts whose query has a content word, by its lemma, that both texts have."""
    for pair in _read(ground, pairs, chunks=False):
        if not pair.first.strip() or not pair.second.strip():
            yield Omitted(EMPTY)
        elif not pair.query:
            yield Omitted(NO_QUERY)
        elif content_lemmas(ground.parse(pair.query)) & _lemmas(ground, pair.first) & _lemmas(ground, pair.second):
            yield _contrast(pair, pair.query)
        else:
            yield Omitted(NO_LEMMA)


def chunks_of(ground: Ground, text: str) -> set[str]:
    """The noun chunks of a text that are long enough for a query, in small letters and with single spaces."""
    parsed = ground.parse(text)
    places = offsets(text, parsed.tokens)
    standing = (text[places[span.start].start : places[span.end - 1].end] for span in parsed.chunks)
    found = {" ".join(chunk.lower().split()) for chunk in standing}
    return {chunk for chunk in found if len(chunk) >= SHORTEST}


def content_lemmas(parsed: Parsed) -> set[str]:
    """The lemmas of a query, in small letters, without function words, marks and numbers."""
    words = (token for token in parsed.tokens if token.tag not in ("PUNCT", "NUM", "SPACE", "SYM"))
    return {t.lemma.lower() for t in words if t.text.lower() not in ENGLISH and any(map(str.isalpha, t.text))}


def _lemmas(ground: Ground, text: str) -> set[str]:
    return {token.lemma for token in ground.parse(text).tokens}


def _read(ground: Ground, pairs: Iterable[TextPair], chunks: bool) -> Iterator[TextPair]:
    """The pairs, after the linguistic tool has read what will be asked for of many of them at once."""
    pairs = iter(pairs)
    while some := list(islice(pairs, AT_ONCE)):
        asked = [pair for pair in some if bool(pair.query) != chunks]
        queries = [pair.query or "" for pair in asked if not chunks]
        ground.read(text for text in (*(t for p in asked for t in (p.first, p.second)), *queries) if text.strip())
        yield from some


def _contrast(pair: TextPair, query: str) -> Contrast:
    return Contrast(query, Doc(pair.first), Doc(pair.second), qid=pair.qid, grade=pair.grade)


@dataclass(frozen=True)
class _Transfer(Sourced):
    """A probe of this file."""

    strategy: ClassVar[str] = "transfer"


@dataclass(frozen=True)
class Fluency(_Transfer):
    """Is fluent text preferred to a language learner's? JFLEG's rewrites (+) against their sources.

    `spellchecked` takes sources whose spelling was corrected, so that grammar and wording alone differ.

    Napoles, Sakaguchi, Tetreault. JFLEG: A fluency corpus and benchmark for grammatical error correction. EACL 2017.
    """

    spellchecked: bool = False

    source: ClassVar[DataSet] = JFLEG

    def lacking(self, ground: Ground) -> str:
        if self.spellchecked and not self.path:
            return "the bundled pairs are not there with corrected spelling; give the path of JFLEG"
        return super().lacking(ground)

    def contrasts(self, ground: Ground) -> Iterator[Contrast | Omitted]:
        pairs = read_jfleg(self.path, self.spellchecked) if self.path else bundled("fluency")
        return with_chunks(ground, pairs)


@dataclass(frozen=True)
class Formality(_Transfer):
    """Is formal text preferred to informal text? GYAFC's sentences and rewrites: formal (+), informal.

    Rao, Tetreault. Dear Sir or Madam, may I introduce the GYAFC dataset. NAACL 2018.
    """

    source: ClassVar[DataSet] = GYAFC

    def contrasts(self, ground: Ground) -> Iterator[Contrast | Omitted]:
        return with_lemmas(ground, read_gyafc(self.path) if self.path else bundled("formality"))


@dataclass(frozen=True)
class Summaries(_Transfer):
    """Is a summary preferred to the whole text? XSum or CNN/DailyMail: summary (+), body; the title is the query.

    Of a data set one article in `every` is taken, by a hash of its id; 10 gives the published sample.

    Narayan, Cohen, Lapata. Don't give me the details, just the summary! EMNLP 2018.
    See, Liu, Manning. Get to the point: Summarization with pointer-generator networks. ACL 2017.
    """

    every: int = 10

    source: ClassVar[DataSet] = SUMMARIES

    def contrasts(self, ground: Ground) -> Iterator[Contrast | Omitted]:
        check_within("summaries", self, every=(1, 256))
        return with_lemmas(ground, read_summaries(self.path, self.every) if self.path else bundled("summary"))


@dataclass(frozen=True)
class Simplification(_Transfer):
    """Is simple language preferred? TurkCorpus: simplifications (+) against sentences of Wikipedia.

    Xu, Napoles, Pavlick, Chen, Callison-Burch. Optimizing statistical machine translation for text simplification.
    TACL 2016.
    """

    source: ClassVar[DataSet] = TURK

    def contrasts(self, ground: Ground) -> Iterator[Contrast | Omitted]:
        return with_chunks(ground, read_turk(self.path) if self.path else bundled("simplification"))


@dataclass(frozen=True)
class Paraphrase(_Transfer):
    """How far apart are the scores of two paraphrases? The Microsoft Research Paraphrase Corpus; no sign.

    Dolan, Brockett. Automatically constructing a corpus of sentential paraphrases. IWP 2005.
    """

    symmetric: ClassVar[bool] = True
    source: ClassVar[DataSet] = MSRP

    def contrasts(self, ground: Ground) -> Iterator[Contrast | Omitted]:
        return with_chunks(ground, read_msrp(self.path) if self.path else bundled("paraphrase"), same=False)


@dataclass(frozen=True)
class Bias(_Transfer):
    """Is a neutral sentence preferred to a biased one? The Wiki Neutrality Corpus: neutral (+), biased.

    Pryzant, Martinez, Dass, Kurohashi, Jurafsky, Yang. Automatically neutralizing subjective bias in text. AAAI 2020.
    """

    source: ClassVar[DataSet] = WNC

    def contrasts(self, ground: Ground) -> Iterator[Contrast | Omitted]:
        return with_chunks(ground, read_wnc(self.path) if self.path else bundled("bias"), same=False)


@dataclass(frozen=True)
class Factuality(_Transfer):
    """Is a passage with the right answer (+) preferred to the same passage with another answer?

    The other answer is that of another question, with as many tokens and of the same type. True and false sentences
    about an article, as QAGS has them, are read as well: a noun chunk of both is the query.

    Kwiatkowski et al. Natural Questions: A benchmark for question answering research. TACL 2019.
    Wang, Cho, Lewis. Asking and answering questions to evaluate the factual consistency of summaries. ACL 2020.
    """

    source: ClassVar[DataSet] = FACTS

    def contrasts(self, ground: Ground) -> Iterator[Contrast | Omitted]:
        if not self.path:
            yield from with_chunks(ground, bundled("factuality"))
            return
        rows = list(read_facts(self.path))
        yield from with_chunks(ground, (row for row in rows if isinstance(row, TextPair)), same=False)
        yield from swapped(ground, [row for row in rows if isinstance(row, Answered)])


TYPES = ("PERSON", "GPE", "LOC", "NORP", "ORG")
"""Types of answers that another answer of the type can stand in for."""


def swapped(ground: Ground, questions: list[Answered]) -> Iterator[Contrast | Omitted]:
    """Passages as they are, and with the answer of another question in the place of the right one."""
    ground.read(row.answer for row in questions)
    rivals: dict[tuple[str, int], set[str]] = {}
    for row in questions:
        rivals.setdefault(_kind(ground, row), set()).add(row.answer)
    for row in questions:
        others = sorted(a for a in rivals[_kind(ground, row)] if a.casefold() != row.answer.casefold())
        place = answer_pattern(row.answer)
        if row.entity_type not in TYPES:
            yield Omitted(f"its answer is not of one of the types {', '.join(TYPES)}")
        elif not place.search(row.passage):
            yield Omitted("the answer is not in the passage")
        elif any(answer_pattern(word).search(row.question) for word in row.answer.split()):
            yield Omitted("a word of the answer is in the question")
        elif not others:
            yield Omitted("no other answer has its type and length")
        else:
            other = draws_for(ground.seed, "answer", row.question, row.passage).choice(others)
            wrong = place.sub(lambda _, other=other: other, row.passage)  # type: ignore[misc]
            yield Contrast(row.question, Doc(row.passage), Doc(wrong), qid=row.qid)


def _kind(ground: Ground, row: Answered) -> tuple[str, int]:
    """What answers must have in common for one to stand in for the other."""
    return row.entity_type, len(ground.parse(row.answer).tokens)
