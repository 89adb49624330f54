"""Pairs of texts that differ in one thing: those that come with the package, and data sets in the layouts they have.

    {"id", "query", "a", "b"}                       a query and two texts
    {"id", "query_a", "query_b", "a", "b"}          two queries and two texts: a answers query_a, b answers query_b
    {"id", "q1", "q2", "doc1", "doc2"}              the same, as NevIR is published

A line is an object of JSON; other fields are left alone. What a data set calls its two texts is settled here: `first`
is the fluent, formal, short, simple, neutral or right one. A data set without queries has pairs whose query is "".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

from shaketable.data.sample import FOLDER
from shaketable.errors import BadInput, cut, quoted
from shaketable.files import blocks, lines, parsed

BUNDLED = FOLDER / "pairs"
"""The pairs that come with the package: a file for each kind, KIND.jsonl."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TextPair:
    """Two texts; `qid` names what pairs have in common: one sentence has several rewrites, one question many texts.

    `query` is "" where one is to be derived from the texts, and None where it should be known and is not.
    """

    qid: str
    first: str
    second: str
    query: str | None = ""
    grade: int | None = None


@dataclass(frozen=True, slots=True)
class CrossedPair:
    """Two queries and two texts that differ in little: each text is right for one of the queries."""

    qid: str
    first_query: str
    second_query: str
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class Answered:
    """A question, its one answer, the type of that answer (PERSON, GPE, ...), and a passage that has it."""

    qid: str
    question: str
    answer: str
    entity_type: str
    passage: str


@dataclass(frozen=True)
class DataSet:
    """A data set as its authors publish it: which files of it a path has, and how to read them.

    `layout` says what files there should be, `published` where they are from.
    """

    name: str
    layout: str
    published: str
    files: Callable[[Path], Sequence[Path]]

    def lacking(self, path: str) -> str:
        """Why there is nothing to read at a path, in words; "" if there is."""
        if self.files(Path(path)):
            return ""
        return (
            f"{self.name} is not at {quoted(path)}: that should be {self.layout}; it is published as {self.published}"
        )

    def found(self, path: str) -> Sequence[Path]:
        """The files that a path has; that it has none is the user's mistake by now."""
        if why := self.lacking(path):
            raise BadInput(why)
        return self.files(Path(path))


def objects(path: Path, needed: Sequence[str], filled: bool = True) -> Iterator[tuple[int, Row]]:
    """Number and fields of each line of JSON; fields that are needed are texts, with something in them if `filled`."""
    for number, line in lines(path):
        row = parsed(line, path, number)
        if not isinstance(row, dict):
            raise BadInput(f"is not an object of JSON{' with ' if needed else ''}{_listed(needed)}", path, number)
        check_texts(row, needed, path, number, filled)
        yield number, row


def check_texts(row: Row, needed: Sequence[str], path: Path, number: int, filled: bool = True) -> None:
    """Refuse a row in which a field is missing, is no text, or is empty."""
    for name in needed:
        if name not in row:
            there = cut(", ".join(row)) or "nothing"
            raise BadInput(f'has no "{name}"; a line needs {_listed(needed)}, this one has: {there}', path, number)
        if not isinstance(row[name], str):
            raise BadInput(f'"{name}" should be a text, not {quoted(row[name])}', path, number)
        if filled and not row[name].strip():
            raise BadInput(f'"{name}" is empty', path, number)


def name_of(row: Row, number: int, path: Path) -> str:
    """The id of a row, a text or a whole number; without one it is the number of the line."""
    name = row.get("id", number)
    if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
        raise BadInput(f'"id" should be a text or a whole number, not {quoted(name)}', path, number)
    return str(name)


def _listed(names: Sequence[str]) -> str:
    quotes = [f'"{name}"' for name in names]
    return " and ".join(part for part in (", ".join(quotes[:-1]), *quotes[-1:]) if part)


def _json_files(path: Path) -> Sequence[Path]:
    """The path itself, if it is a file of JSON lines, or the files of that kind in the folder that it is."""
    if path.is_file():
        return [path] if ".jsonl" in path.suffixes else []
    return sorted(p for p in path.glob("*.jsonl*") if p.suffix in (".jsonl", ".gz")) if path.is_dir() else []


def texts_of(path: Path) -> list[str]:
    """The lines of a file, blank ones too, without white space around them."""
    texts: list[str] = []
    for _, rows in blocks(path):
        texts += (row.strip() for row in (rows if rows[-1] else rows[:-1]))
    return texts


def in_parallel(*paths: Path) -> Iterator[tuple[str, ...]]:
    """The lines of several files side by side: the first has a text, the others what belongs to it, line by line."""
    columns = [texts_of(path) for path in paths]
    for path, column in zip(paths, columns, strict=True):
        if len(column) != len(columns[0]):
            message = f"has {len(column):,} lines, {paths[0].name} has {len(columns[0]):,}; they belong together"
            raise BadInput(message, path)
    return zip(*columns, strict=True)


def _table(path: Path, separator: str = "\t") -> Iterator[tuple[int, list[str]]]:
    """Number and columns of each line of a table; a quotation mark is a mark like any other."""
    for number, line in lines(path):
        yield number, line.split(separator)


# A query and two texts, and two queries and two texts ----------------------------------------------------------------

PAIRS = DataSet(
    "a file of pairs", 'a JSONL file of lines with "query", "a" and "b"', "no data set: write your own", _json_files
)
CROSSED = DataSet(
    "NevIR",
    'a JSONL file of lines with "q1", "q2", "doc1" and "doc2" (or "query_a", "query_b", "a" and "b")',
    "NevIR: negation in neural information retrieval (Weller, Lawrie, Van Durme, EACL 2024; orionw/NevIR)",
    _json_files,
)
SOURCE_BIAS = DataSet(
    "Cocktail's NQ-UTD",
    'a JSONL file of lines with "query", "a" (a person\'s passage), "b" (a model\'s rewrite) and, if known, "grade"',
    "Cocktail: a benchmark with LLM-generated documents (Dai et al., Findings of ACL 2024; KID-22/Cocktail)",
    _json_files,
)

NAMES = (("query_a", "query_b", "a", "b"), ("q1", "q2", "doc1", "doc2"))
"""What the queries and texts of crossed pairs are called: by us, by NevIR."""


def read_pairs(path: Path) -> Iterator[TextPair]:
    """Pairs from lines with query, a and b; a grade of both texts may stand with them."""
    for number, row in objects(path, ("query", "a", "b")):
        grade = row.get("grade")
        if grade is not None and (isinstance(grade, bool) or not isinstance(grade, int)):
            raise BadInput(f'"grade" should be a whole number, not {quoted(grade)}', path, number)
        yield TextPair(name_of(row, number, path), row["a"], row["b"], row["query"], grade)


def read_crossed(path: Path) -> Iterator[CrossedPair]:
    """Crossed pairs, by our names or by NevIR's. Each has an id of its own: pairs are counted by it."""
    places: dict[str, int] = {}
    for number, row in objects(path, ()):
        names = next((names for names in NAMES if set(names) & row.keys()), NAMES[0])
        check_texts(row, names, path, number)
        qid = name_of(row, number, path)
        if (first := places.setdefault(qid, number)) != number:
            raise BadInput(f"the id {quoted(qid)} is taken; line {first} has it too", path, number)
        yield CrossedPair(qid, *(row[name] for name in names))


def bundled(kind: str) -> Iterator[TextPair]:
    """The pairs of a kind that come with the package."""
    return read_pairs(BUNDLED / f"{kind}.jsonl")


def bundled_crossed(kind: str) -> Iterator[CrossedPair]:
    """The crossed pairs of a kind that come with the package."""
    return read_crossed(BUNDLED / f"{kind}.jsonl")


# Sentences and their rewrites ----------------------------------------------------------------------------------------

JFLEG_SPLITS = ("dev", "test")
JFLEG_REFERENCES = range(4)


def _jfleg_files(path: Path) -> Sequence[Path]:
    """Files of JSON lines, or the sources of the splits that are there, in folders of their own or in one."""
    places = (folder / f"{split}.src" for split in JFLEG_SPLITS for folder in (path, path / split))
    return [place for place in places if place.is_file()] or _json_files(path)


JFLEG = DataSet(
    "JFLEG",
    "a folder with dev/dev.src, dev/dev.ref0 to dev.ref3, dev/dev.spellchecked.src and the same for test, or JSONL "
    'files of lines with "id", "a" (the source), "b" (a rewrite) and "a_spellchecked"',
    "JFLEG: a fluency corpus and benchmark for grammatical error correction (Napoles et al., EACL 2017; keisks/jfleg)",
    _jfleg_files,
)


def read_jfleg(path: str, spellchecked: bool = False) -> Iterator[TextPair]:
    """Fluent rewrites of learners' sentences, four for each; the sources as they are or after a spelling check."""
    for file in JFLEG.found(path):
        if file.suffix != ".src":
            yield from _rewritten(file, "a_spellchecked" if spellchecked else "a")
            continue
        split = file.stem
        source = file.with_name(f"{split}.spellchecked.src") if spellchecked else file
        references = [file.with_name(f"{split}.ref{i}") for i in JFLEG_REFERENCES]
        for number, (text, *rewrites) in enumerate(in_parallel(source, *references), 1):
            yield from (TextPair(f"{split}-{number}", rewrite, text) for rewrite in rewrites)


def _rewritten(path: Path, source: str) -> Iterator[TextPair]:
    """Pairs from lines with a source and a rewrite, b; lines of one source have one id."""
    for number, row in objects(path, (source, "b"), filled=False):
        yield TextPair(name_of(row, number, path), row["b"], row[source])


TURK_SPLITS = ("test", "tune")
TURKERS = range(8)


def _turk_files(path: Path) -> Sequence[Path]:
    places = (path / f"{split}.8turkers.tok.norm" for split in TURK_SPLITS)
    return [place for place in places if place.is_file()] or _json_files(path)


TURK = DataSet(
    "TurkCorpus",
    "a folder with test.8turkers.tok.norm and test.8turkers.tok.turk.0 to .7 (and the same for tune), or JSONL files "
    'of lines with "id", "a" (the sentence) and "b" (a simplification)',
    "TurkCorpus: optimizing statistical machine translation for text simplification (Xu et al., TACL 2016; "
    "cocoxu/simplification)",
    _turk_files,
)


def read_turk(path: str) -> Iterator[TextPair]:
    """Simplifications of sentences of Wikipedia, eight for each."""
    for file in TURK.found(path):
        if file.suffix != ".norm":
            yield from _rewritten(file, "a")
            continue
        stem = file.name.removesuffix(".norm")
        for number, texts in enumerate(in_parallel(file, *(file.with_name(f"{stem}.turk.{i}") for i in TURKERS)), 1):
            text, *rewrites = (text.replace("-lrb-", "(").replace("-rrb-", ")") for text in texts)
            yield from (TextPair(f"{stem.partition('.')[0]}-{number}", rewrite, text) for rewrite in rewrites)


# Formality -----------------------------------------------------------------------------------------------------------

GYAFC_SPLITS = ("tune", "test")
GYAFC_REFERENCES = range(4)
STYLES = ("informal", "formal")
QUESTIONS = "questions.tsv"
NO_QUESTION = "_"


def _gyafc_files(path: Path) -> Sequence[Path]:
    """The files of source sentences, domain by domain."""
    if not path.is_dir() or not (path / QUESTIONS).is_file():
        return []
    domains = sorted(p for p in path.iterdir() if p.is_dir())
    places = (domain / split / style for domain in domains for split in GYAFC_SPLITS for style in STYLES)
    return [place for place in places if place.is_file()]


GYAFC = DataSet(
    "GYAFC",
    "a folder with DOMAIN/tune and DOMAIN/test, in each formal, informal, formal.ref0 to .ref3, informal.ref0 to .ref3 "
    "and formal.qids and informal.qids (a question's id for each line, or _), and questions.tsv (id, tab, question)",
    "GYAFC: Grammarly's Yahoo Answers formality corpus (Rao and Tetreault, NAACL 2018; on request), the .qids files "
    "with ABNIRML (allenai/abnirml), the questions as Yahoo L6",
    _gyafc_files,
)


def read_gyafc(path: str) -> Iterator[TextPair]:
    """Formal and informal versions of sentences, one of them a source and the other one of its four rewrites.

    The query is the question that the source was an answer to, and None where nobody knows which.
    """
    files = GYAFC.found(path)
    place = Path(path) / QUESTIONS
    questions: dict[str, str] = {}
    for number, columns in _table(place):
        if len(columns) != 2 or not all(map(str.strip, columns)):
            raise BadInput("a line should be an id, a tab and a question", place, number)
        questions[columns[0].strip()] = columns[1].strip()
    for file in files:
        other = next(style for style in STYLES if style != file.name)
        ids, domain = file.with_name(f"{file.name}.qids"), file.parent.parent.name
        references = [file.with_name(f"{other}.ref{i}") for i in GYAFC_REFERENCES]
        for number, (text, qid, *rewrites) in enumerate(in_parallel(file, ids, *references), 1):
            if qid != NO_QUESTION and qid not in questions:
                raise BadInput(f"the question {quoted(qid)} is not in {QUESTIONS}", ids, number)
            for rewrite in rewrites:
                formal, informal = (text, rewrite) if file.name == "formal" else (rewrite, text)
                name = f"{domain}-{file.parent.name}-{file.name}-{number}"
                yield TextPair(name, formal, informal, questions.get(qid))


# Summaries -----------------------------------------------------------------------------------------------------------

SUMMARY = ("id", "title", "summary", "body")


def _summary_files(path: Path) -> Sequence[Path]:
    if path.is_dir():
        return sorted(p for p in path.iterdir() if p.is_file() and {".jsonl", ".tsv"} & set(p.suffixes))
    return [path] if path.is_file() else []


SUMMARIES = DataSet(
    "XSum or CNN/DailyMail",
    'JSONL files, or TSV files with a header, of articles with "id", "title", "summary" and "body"',
    "XSum (Narayan, Cohen, Lapata, EMNLP 2018; EdinburghNLP/XSum) and CNN/DailyMail (See, Liu, Manning, ACL 2017; "
    "abisee/cnn-dailymail; its titles with ABNIRML)",
    _summary_files,
)


def read_summaries(path: str, every: int = 10) -> Iterator[TextPair]:
    """Summaries of articles and their bodies, with the titles as queries; one article in `every`, by its id."""
    for file in SUMMARIES.found(path):
        for _, row in _tabled(file, SUMMARY) if ".tsv" in file.suffixes else objects(file, SUMMARY, filled=False):
            if sampled(row["id"], every):
                yield TextPair(row["id"], row["summary"], row["body"], row["title"] or None)


def sampled(name: str, every: int) -> bool:
    """Is an article one of the one in `every` that ABNIRML looks at? The first byte of a hash of its id decides.

    >>> sampled("35993938", 10), sampled("cnn:0001d1afc246a7964130f43ae940af6bc6c57f01", 10), sampled("any", 1)
    (False, False, True)

    The id of an article of XSum is a number, and what is hashed is the name of its file, ID.summary; an id of CNN or
    Daily Mail may begin with its collection and a colon, which do not count.
    """
    hashed = f"{name}.summary" if name.isdecimal() else name.rpartition(":")[2]
    return sha256(hashed.encode()).digest()[0] % every == 0


def _tabled(path: Path, needed: Sequence[str]) -> Iterator[tuple[int, Row]]:
    """Number and fields of each line of a table with a header."""
    header: list[str] = []
    for number, columns in _table(path):
        if not header:
            header = columns
            check_texts(dict.fromkeys(header, ""), needed, path, number, filled=False)
        elif len(columns) != len(header):
            raise BadInput(f"the header has {len(header)} columns, this line has {len(columns)}", path, number)
        else:
            yield number, dict(zip(header, columns, strict=True))


# Paraphrases, bias, facts --------------------------------------------------------------------------------------------

MSRP_FILES = ("msr_paraphrase_train.txt", "msr_paraphrase_test.txt")


def _msrp_files(path: Path) -> Sequence[Path]:
    return [path] if path.is_file() else [place for name in MSRP_FILES if (place := path / name).is_file()]


MSRP = DataSet(
    "the Microsoft Research Paraphrase Corpus",
    "msr_paraphrase_train.txt, msr_paraphrase_test.txt or the folder with both: a header, then Quality, two ids and "
    "two sentences, parted by tabs",
    "MSRP (Dolan and Brockett, IWP 2005; Microsoft)",
    _msrp_files,
)


def read_msrp(path: str) -> Iterator[TextPair]:
    """Pairs of sentences of the news that people take for paraphrases (Quality is 1)."""
    for file in MSRP.found(path):
        for number, columns in _table(file):
            if len(columns) != 5:
                message = f"should have 5 columns (Quality, two ids, two sentences), it has {len(columns)}"
                raise BadInput(message, file, number)
            if columns[0] == "1":
                yield TextPair(f"{columns[1]}-{columns[2]}", columns[3].strip(), columns[4].strip())
            elif columns[0] != "0" and number > 1:
                raise BadInput(f"Quality should be 0 or 1, not {quoted(columns[0])}", file, number)


WNC_FILES = ("biased.full", "biased.word.train", "biased.word.dev", "biased.word.test")


def _wnc_files(path: Path) -> Sequence[Path]:
    """The file, or in a folder the one with everything or else the splits of sentences that differ in one word."""
    places = [path] if path.is_file() else [place for name in WNC_FILES if (place := path / name).is_file()]
    return places[:1] if places and places[0].name == WNC_FILES[0] else places


WNC = DataSet(
    "the Wiki Neutrality Corpus",
    "biased.full, or the folder with it or with biased.word.train, .dev and .test: id, tokens before and after, the "
    "biased sentence, the neutral sentence, parted by tabs",
    "WNC: automatically neutralizing subjective bias in text (Pryzant et al., AAAI 2020; rpryzant/neutralizing-bias)",
    _wnc_files,
)


def read_wnc(path: str) -> Iterator[TextPair]:
    """Sentences of Wikipedia before and after an editor took a bias out of them."""
    for file in WNC.found(path):
        for number, columns in _table(file):
            if len(columns) < 5:
                message = (
                    f"should have 5 columns or more (id, two lists of tokens, two sentences), it has {len(columns)}"
                )
                raise BadInput(message, file, number)
            yield TextPair(columns[0], columns[4].strip(), columns[3].strip())


ANSWERED = ("question", "answer", "entity_type", "passage")
FACTS = DataSet(
    "a file of answered questions",
    'a JSONL file of lines with "question", "answer", "entity_type" (PERSON, GPE, ...) and "passage", or of lines with '
    '"article" and "sentences", each with "text" and "supported"',
    "Natural Questions (Kwiatkowski et al., TACL 2019), as DPR's passages with answers; or QAGS (Wang, Cho, Lewis, ACL "
    "2020; W4ngatang/qags)",
    _json_files,
)


def read_facts(path: str) -> Iterator[Answered | TextPair]:
    """Questions with passages that answer them; or, as QAGS has them, true and false sentences about one article.

    Of an article, each sentence that it supports is paired with each that it does not. They say different things, so
    they differ in more than their truth; there are no queries, and one may only be made of what both say.
    """
    for file in FACTS.found(path):
        for number, row in objects(file, ()):
            if "sentences" in row:
                yield from _supported(row, file, number)
            else:
                check_texts(row, ANSWERED, file, number)
                yield Answered(name_of(row, number, file), *(row[name] for name in ANSWERED))


def _supported(row: Row, path: Path, number: int) -> Iterator[TextPair]:
    sentences = row["sentences"]
    if not isinstance(sentences, list):
        raise BadInput('"sentences" should be a list of objects with "text" and "supported"', path, number)
    texts: dict[bool, list[str]] = {True: [], False: []}
    for sentence in sentences:
        if not isinstance(sentence, dict) or not isinstance(sentence.get("supported"), bool):
            raise BadInput('a sentence should be an object with "text" and "supported", True or False', path, number)
        check_texts(sentence, ("text",), path, number)
        texts[sentence["supported"]].append(sentence["text"])
    for supported, unsupported in product(texts[True], texts[False]):
        yield TextPair(name_of(row, number, path), supported, unsupported)


def answer_pattern(answer: str) -> re.Pattern[str]:
    """What an answer looks like in a passage: its words, with or without a space between them, in any letter case.

    >>> bool(answer_pattern("New York").search("in NEWYORK, in 1898")), bool(answer_pattern("ant").search("a plant"))
    (True, False)
    """
    return re.compile(rf"(?<!\w){' ?'.join(map(re.escape, answer.split()))}(?!\w)", re.IGNORECASE)
