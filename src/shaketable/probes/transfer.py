"""Data set transfer: probes from text pairs that people rewrote for another purpose.

If a data set has no queries, the query of a pair is a noun chunk of both texts, so that neither text matches it better
by word choice. If queries are known, both texts must contain one of their words. Pairs without a query are skipped and
counted.

MacAvaney, Feldman, Goharian, Downey, Cohan. ABNIRML: Analyzing the behavior of neural IR models. TACL 2022. Sections
3.3 and 6; simplification, paraphrases, bias and facts are in its code only (allenai/abnirml).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

from shaketable.core.documents import Doc
from shaketable.core.errors import check_ranges
from shaketable.core.protocols import Skipped, TextPair
from shaketable.core.seeding import make_item_rng
from shaketable.datasets.pairs import PairDataset, PairRow, read_bundled_pairs
from shaketable.datasets.published_pairs import (
    FACTS,
    GYAFC,
    JFLEG,
    MSRP,
    SUMMARIES,
    TURK,
    WNC,
    AnsweredQuestion,
    compile_answer_pattern,
    read_facts,
    read_gyafc,
    read_jfleg,
    read_msrp,
    read_summaries,
    read_turk,
    read_wnc,
)
from shaketable.nlp.parser import Parsed, find_offsets
from shaketable.nlp.stopwords import ENGLISH_STOPWORDS
from shaketable.probes.context import ProbeContext
from shaketable.probes.dataset_probe import DatasetProbe

MIN_CHUNK_CHARACTERS = 6
"""Minimum length of a noun chunk that serves as a query."""
PAIRS_PER_PARSE = 1000
"""Pairs whose texts are parsed in one call."""

EMPTY_TEXT = "a text is empty"
SAME_TEXTS = "the two texts are the same"
NO_CHUNK = f"no noun chunk of {MIN_CHUNK_CHARACTERS} characters or more is in both texts"
NO_QUERY = "its query is not known"
NO_LEMMA = "no content word of the query is in both texts"


def pair_by_noun_chunk(
    context: ProbeContext, pairs: Iterable[PairRow], keep_identical: bool = True
) -> Iterator[TextPair | Skipped]:
    """Yield text pairs whose query is a random noun chunk of both texts; known queries are kept.

    `keep_identical` keeps pairs of identical texts, which the published numbers count as neutral.
    """
    for pair in _parse_ahead(context, pairs, chunks=True):
        if not pair.first.strip() or not pair.second.strip():
            yield Skipped(EMPTY_TEXT)
        elif not keep_identical and pair.first == pair.second:
            yield Skipped(SAME_TEXTS)
        elif pair.query:
            yield _make_pair(pair, pair.query)
        elif common := find_query_chunks(context, pair.first) & find_query_chunks(context, pair.second):
            rng = make_item_rng(context.seed, "query of a pair", pair.first, pair.second)
            yield _make_pair(pair, rng.choice(sorted(common)))
        else:
            yield Skipped(NO_CHUNK)


def pair_by_lemma(context: ProbeContext, pairs: Iterable[PairRow]) -> Iterator[TextPair | Skipped]:
    """Yield text pairs whose query shares the lemma of a content word with both texts."""
    for pair in _parse_ahead(context, pairs, chunks=False):
        if not pair.first.strip() or not pair.second.strip():
            yield Skipped(EMPTY_TEXT)
        elif not pair.query:
            yield Skipped(NO_QUERY)
        elif (
            find_content_lemmas(context.parse(pair.query))
            & _find_lemmas(context, pair.first)
            & _find_lemmas(context, pair.second)
        ):
            yield _make_pair(pair, pair.query)
        else:
            yield Skipped(NO_LEMMA)


def find_query_chunks(context: ProbeContext, text: str) -> set[str]:
    """Return the noun chunks that are long enough for a query, in lower case with single spaces."""
    parsed = context.parse(text)
    places = find_offsets(text, parsed.tokens)
    standing = (text[places[span.start].start : places[span.end - 1].end] for span in parsed.chunks)
    found = {" ".join(chunk.lower().split()) for chunk in standing}
    return {chunk for chunk in found if len(chunk) >= MIN_CHUNK_CHARACTERS}


def find_content_lemmas(parsed: Parsed) -> set[str]:
    """Return the lower-case lemmas of a query without function words, punctuation and numbers."""
    words = (token for token in parsed.tokens if token.tag not in ("PUNCT", "NUM", "SPACE", "SYM"))
    return {t.lemma.lower() for t in words if t.text.lower() not in ENGLISH_STOPWORDS and any(map(str.isalpha, t.text))}


def _find_lemmas(context: ProbeContext, text: str) -> set[str]:
    return {token.lemma for token in context.parse(text).tokens}


def _parse_ahead(context: ProbeContext, pairs: Iterable[PairRow], chunks: bool) -> Iterator[PairRow]:
    """Yield the pairs after parsing their texts in large batches."""
    pairs = iter(pairs)
    while some := list(islice(pairs, PAIRS_PER_PARSE)):
        asked = [pair for pair in some if bool(pair.query) != chunks]
        queries = [pair.query or "" for pair in asked if not chunks]
        context.parse_many(
            text for text in (*(t for p in asked for t in (p.first, p.second)), *queries) if text.strip()
        )
        yield from some


def _make_pair(pair: PairRow, query: str) -> TextPair:
    return TextPair(query, Doc(pair.first), Doc(pair.second), qid=pair.qid, grade=pair.grade)


@dataclass(frozen=True)
class _Transfer(DatasetProbe):
    """A probe that transfers a data set."""

    strategy: ClassVar[str] = "transfer"


@dataclass(frozen=True)
class FluencyProbe(_Transfer):
    """Compare fluent rewrites (+) with the language learners' sources (JFLEG).

    `spellchecked` uses sources with corrected spelling, so that only grammar and wording differ.

    Napoles, Sakaguchi, Tetreault. JFLEG: A fluency corpus and benchmark for grammatical error correction. EACL 2017.
    """

    spellchecked: bool = False

    source: ClassVar[PairDataset] = JFLEG

    def unavailable_reason(self, context: ProbeContext) -> str:
        if self.spellchecked and not self.path:
            return "the bundled pairs have no version with corrected spelling; give the path of JFLEG"
        return super().unavailable_reason(context)

    def draw_pairs(self, context: ProbeContext) -> Iterator[TextPair | Skipped]:
        pairs = read_jfleg(self.path, self.spellchecked) if self.path else read_bundled_pairs("fluency")
        return pair_by_noun_chunk(context, pairs)


@dataclass(frozen=True)
class Formality(_Transfer):
    """Compare formal text (+) with informal text (GYAFC's sentences and rewrites).

    Rao, Tetreault. Dear Sir or Madam, may I introduce the GYAFC dataset. NAACL 2018.
    """

    source: ClassVar[PairDataset] = GYAFC

    def draw_pairs(self, context: ProbeContext) -> Iterator[TextPair | Skipped]:
        return pair_by_lemma(context, read_gyafc(self.path) if self.path else read_bundled_pairs("formality"))


@dataclass(frozen=True)
class Summaries(_Transfer):
    """Compare a summary (+) with the full text (XSum or CNN/DailyMail); the title is the query.

    One article in `every` is selected by a hash of its id; 10 gives the published sample.

    Narayan, Cohen, Lapata. Don't give me the details, just the summary! EMNLP 2018.
    See, Liu, Manning. Get to the point: Summarization with pointer-generator networks. ACL 2017.
    """

    every: int = 10

    source: ClassVar[PairDataset] = SUMMARIES

    def draw_pairs(self, context: ProbeContext) -> Iterator[TextPair | Skipped]:
        check_ranges("summaries", self, every=(1, 256))
        return pair_by_lemma(
            context, read_summaries(self.path, self.every) if self.path else read_bundled_pairs("summary")
        )


@dataclass(frozen=True)
class Simplification(_Transfer):
    """Compare simplified sentences (+) with sentences of Wikipedia (TurkCorpus).

    Xu, Napoles, Pavlick, Chen, Callison-Burch. Optimizing statistical machine translation for text simplification.
    TACL 2016.
    """

    source: ClassVar[PairDataset] = TURK

    def draw_pairs(self, context: ProbeContext) -> Iterator[TextPair | Skipped]:
        return pair_by_noun_chunk(context, read_turk(self.path) if self.path else read_bundled_pairs("simplification"))


@dataclass(frozen=True)
class ParaphraseProbe(_Transfer):
    """Measure the score difference of two paraphrases, without sign (Microsoft Research Paraphrase Corpus).

    Dolan, Brockett. Automatically constructing a corpus of sentential paraphrases. IWP 2005.
    """

    symmetric: ClassVar[bool] = True
    source: ClassVar[PairDataset] = MSRP

    def draw_pairs(self, context: ProbeContext) -> Iterator[TextPair | Skipped]:
        return pair_by_noun_chunk(
            context, read_msrp(self.path) if self.path else read_bundled_pairs("paraphrase"), keep_identical=False
        )


@dataclass(frozen=True)
class Bias(_Transfer):
    """Compare a neutral sentence (+) with a biased one (Wiki Neutrality Corpus).

    Pryzant, Martinez, Dass, Kurohashi, Jurafsky, Yang. Automatically neutralizing subjective bias in text. AAAI 2020.
    """

    source: ClassVar[PairDataset] = WNC

    def draw_pairs(self, context: ProbeContext) -> Iterator[TextPair | Skipped]:
        return pair_by_noun_chunk(
            context, read_wnc(self.path) if self.path else read_bundled_pairs("bias"), keep_identical=False
        )


@dataclass(frozen=True)
class Factuality(_Transfer):
    """Compare a passage with the right answer (+) with the same passage with another answer.

    The other answer belongs to another question and has the same type and number of tokens. The probe also reads true
    and false sentences about an article, as in QAGS; a noun chunk of both is the query.

    Kwiatkowski et al. Natural Questions: A benchmark for question answering research. TACL 2019.
    Wang, Cho, Lewis. Asking and answering questions to evaluate the factual consistency of summaries. ACL 2020.
    """

    source: ClassVar[PairDataset] = FACTS

    def draw_pairs(self, context: ProbeContext) -> Iterator[TextPair | Skipped]:
        if not self.path:
            yield from pair_by_noun_chunk(context, read_bundled_pairs("factuality"))
            return
        rows = list(read_facts(self.path))
        yield from pair_by_noun_chunk(context, (row for row in rows if isinstance(row, PairRow)), keep_identical=False)
        yield from swap_answers(context, [row for row in rows if isinstance(row, AnsweredQuestion)])


ANSWER_ENTITY_TYPES = ("PERSON", "GPE", "LOC", "NORP", "ORG")
"""Entity types whose answers can replace each other."""


def swap_answers(context: ProbeContext, questions: list[AnsweredQuestion]) -> Iterator[TextPair | Skipped]:
    """Yield each passage paired with a copy that has the answer of another question."""
    context.parse_many(row.answer for row in questions)
    rivals: dict[tuple[str, int], set[str]] = {}
    for row in questions:
        rivals.setdefault(_answer_type_and_length(context, row), set()).add(row.answer)
    for row in questions:
        others = sorted(
            a for a in rivals[_answer_type_and_length(context, row)] if a.casefold() != row.answer.casefold()
        )
        place = compile_answer_pattern(row.answer)
        if row.entity_type not in ANSWER_ENTITY_TYPES:
            yield Skipped(f"its answer is not of one of the types {', '.join(ANSWER_ENTITY_TYPES)}")
        elif not place.search(row.passage):
            yield Skipped("the answer is not in the passage")
        elif any(compile_answer_pattern(word).search(row.question) for word in row.answer.split()):
            yield Skipped("a word of the answer is in the question")
        elif not others:
            yield Skipped("no other answer has its type and length")
        else:
            other = make_item_rng(context.seed, "answer", row.question, row.passage).choice(others)
            wrong = place.sub(lambda _, other=other: other, row.passage)  # type: ignore[misc]
            yield TextPair(row.question, Doc(row.passage), Doc(wrong), qid=row.qid)


def _answer_type_and_length(context: ProbeContext, row: AnsweredQuestion) -> tuple[str, int]:
    """Return the key that answers must share to replace each other."""
    return row.entity_type, len(context.parse(row.answer).tokens)
