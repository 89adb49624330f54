"""Pairs of texts from data sets in the layouts of their authors.

`first` is the fluent, formal, short, simple, neutral or correct text of a pair. In a data set without queries, the
query of a pair is "".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from pathlib import Path

from shaketable.core.errors import BadInput, quote_value
from shaketable.datasets.pairs import (
    PairDataset,
    PairRow,
    Row,
    check_texts,
    find_json_files,
    get_row_id,
    read_json_objects,
)
from shaketable.files.reading import read_line_blocks, read_lines


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """A question, its single answer, the type of that answer (PERSON, GPE, ...), and a passage that contains it."""

    qid: str
    question: str
    answer: str
    entity_type: str
    passage: str


def read_stripped_lines(path: Path) -> list[str]:
    """Return the lines of a file, including blank lines, stripped of white space."""
    texts: list[str] = []
    for _, rows in read_line_blocks(path):
        texts += (row.strip() for row in (rows if rows[-1] else rows[:-1]))
    return texts


def read_parallel_lines(*paths: Path) -> Iterator[tuple[str, ...]]:
    """Return the lines of several parallel files side by side; refuse files of different lengths."""
    columns = [read_stripped_lines(path) for path in paths]
    for path, column in zip(paths, columns, strict=True):
        if len(column) != len(columns[0]):
            message = f"has {len(column):,} lines, {paths[0].name} has {len(columns[0]):,}; they belong together"
            raise BadInput(message, path)
    return zip(*columns, strict=True)


def _read_table(path: Path, separator: str = "\t") -> Iterator[tuple[int, list[str]]]:
    """Yield line number and columns of each line of a table; quotation marks have no special meaning."""
    for number, line in read_lines(path):
        yield number, line.split(separator)


NEVIR = PairDataset(
    "NevIR",
    'a JSONL file of lines with "q1", "q2", "doc1" and "doc2" (or "query_a", "query_b", "a" and "b")',
    "NevIR: negation in neural information retrieval (Weller, Lawrie, Van Durme, EACL 2024; orionw/NevIR)",
    find_json_files,
)
SOURCE_BIAS = PairDataset(
    "Cocktail's NQ-UTD",
    'a JSONL file of lines with "query", "a" (a person\'s passage), "b" (a model\'s rewrite) and, if known, "title", '
    '"query_id" and "grade"',
    "Cocktail: a benchmark with LLM-generated documents (Dai et al., Findings of ACL 2024; KID-22/Cocktail)",
    find_json_files,
)
JFLEG_SPLITS = ("dev", "test")
JFLEG_REFERENCES = range(4)


def _find_jfleg_files(path: Path) -> Sequence[Path]:
    """Return the JSON lines files, or the source files of each split, in one folder or in one folder per split."""
    places = (folder / f"{split}.src" for split in JFLEG_SPLITS for folder in (path, path / split))
    return [place for place in places if place.is_file()] or find_json_files(path)


JFLEG = PairDataset(
    "JFLEG",
    "a folder with dev/dev.src, dev/dev.ref0 to dev.ref3, dev/dev.spellchecked.src and the same for test, or JSONL "
    'files of lines with "id", "a" (the source), "b" (a rewrite) and "a_spellchecked"',
    "JFLEG: a fluency corpus and benchmark for grammatical error correction (Napoles et al., EACL 2017; keisks/jfleg)",
    _find_jfleg_files,
)


def read_jfleg(path: str, spellchecked: bool = False) -> Iterator[PairRow]:
    """Yield fluent rewrites of learners' sentences, four for each; `spellchecked` selects the spell-checked sources."""
    for file in JFLEG.require_files(path):
        if file.suffix != ".src":
            yield from _read_rewrites(file, "a_spellchecked" if spellchecked else "a")
            continue
        split = file.stem
        source = file.with_name(f"{split}.spellchecked.src") if spellchecked else file
        references = [file.with_name(f"{split}.ref{i}") for i in JFLEG_REFERENCES]
        for number, (text, *rewrites) in enumerate(read_parallel_lines(source, *references), 1):
            yield from (PairRow(f"{split}-{number}", rewrite, text) for rewrite in rewrites)


def _read_rewrites(path: Path, source: str) -> Iterator[PairRow]:
    """Yield pairs from lines with a source and a rewrite, b; lines with the same source share an id."""
    for number, row in read_json_objects(path, (source, "b"), non_empty=False):
        yield PairRow(get_row_id(row, number, path), row["b"], row[source])


TURK_SPLITS = ("test", "tune")
TURK_REFERENCES = range(8)


def _find_turk_files(path: Path) -> Sequence[Path]:
    places = (path / f"{split}.8turkers.tok.norm" for split in TURK_SPLITS)
    return [place for place in places if place.is_file()] or find_json_files(path)


TURK = PairDataset(
    "TurkCorpus",
    "a folder with test.8turkers.tok.norm and test.8turkers.tok.turk.0 to .7 (and the same for tune), or JSONL files "
    'of lines with "id", "a" (the sentence) and "b" (a simplification)',
    "TurkCorpus: optimizing statistical machine translation for text simplification (Xu et al., TACL 2016; "
    "cocoxu/simplification)",
    _find_turk_files,
)


def read_turk(path: str) -> Iterator[PairRow]:
    """Yield simplifications of Wikipedia sentences, eight for each."""
    for file in TURK.require_files(path):
        if file.suffix != ".norm":
            yield from _read_rewrites(file, "a")
            continue
        stem = file.name.removesuffix(".norm")
        for number, texts in enumerate(
            read_parallel_lines(file, *(file.with_name(f"{stem}.turk.{i}") for i in TURK_REFERENCES)), 1
        ):
            text, *rewrites = (text.replace("-lrb-", "(").replace("-rrb-", ")") for text in texts)
            yield from (PairRow(f"{stem.partition('.')[0]}-{number}", rewrite, text) for rewrite in rewrites)


GYAFC_SPLITS = ("tune", "test")
GYAFC_REFERENCES = range(4)
STYLES = ("informal", "formal")
QUESTIONS_FILE = "questions.tsv"
NO_QUESTION = "_"


def _find_gyafc_files(path: Path) -> Sequence[Path]:
    """Return the files of source sentences, domain by domain."""
    if not path.is_dir() or not (path / QUESTIONS_FILE).is_file():
        return []
    domains = sorted(p for p in path.iterdir() if p.is_dir())
    places = (domain / split / style for domain in domains for split in GYAFC_SPLITS for style in STYLES)
    return [place for place in places if place.is_file()]


GYAFC = PairDataset(
    "GYAFC",
    "a folder with DOMAIN/tune and DOMAIN/test, in each formal, informal, formal.ref0 to .ref3, informal.ref0 to .ref3 "
    "and formal.qids and informal.qids (a question's id for each line, or _), and questions.tsv (id, tab, question)",
    "GYAFC: Grammarly's Yahoo Answers formality corpus (Rao and Tetreault, NAACL 2018; on request), the .qids files "
    "with ABNIRML (allenai/abnirml), the questions as Yahoo L6",
    _find_gyafc_files,
)


def read_gyafc(path: str) -> Iterator[PairRow]:
    """Yield formal and informal versions of a sentence: a source and each of its four rewrites.

    The query is the question that the source answers, or None if it is unknown.
    """
    files = GYAFC.require_files(path)
    questions_path = Path(path) / QUESTIONS_FILE
    questions: dict[str, str] = {}
    for number, columns in _read_table(questions_path):
        if len(columns) != 2 or not all(map(str.strip, columns)):
            raise BadInput("a line should be an id, a tab and a question", questions_path, number)
        questions[columns[0].strip()] = columns[1].strip()
    for file in files:
        other = next(style for style in STYLES if style != file.name)
        ids, domain = file.with_name(f"{file.name}.qids"), file.parent.parent.name
        references = [file.with_name(f"{other}.ref{i}") for i in GYAFC_REFERENCES]
        for number, (text, qid, *rewrites) in enumerate(read_parallel_lines(file, ids, *references), 1):
            if qid != NO_QUESTION and qid not in questions:
                raise BadInput(f"the question {quote_value(qid)} is not in {QUESTIONS_FILE}", ids, number)
            for rewrite in rewrites:
                formal, informal = (text, rewrite) if file.name == "formal" else (rewrite, text)
                name = f"{domain}-{file.parent.name}-{file.name}-{number}"
                yield PairRow(name, formal, informal, questions.get(qid))


SUMMARY_FIELDS = ("id", "title", "summary", "body")


def _find_summary_files(path: Path) -> Sequence[Path]:
    if path.is_dir():
        return sorted(p for p in path.iterdir() if p.is_file() and {".jsonl", ".tsv"} & set(p.suffixes))
    return [path] if path.is_file() else []


SUMMARIES = PairDataset(
    "XSum or CNN/DailyMail",
    'JSONL files, or TSV files with a header, of articles with "id", "title", "summary" and "body"',
    "XSum (Narayan, Cohen, Lapata, EMNLP 2018; EdinburghNLP/XSum) and CNN/DailyMail (See, Liu, Manning, ACL 2017; "
    "abisee/cnn-dailymail; its titles with ABNIRML)",
    _find_summary_files,
)


def read_summaries(path: str, every: int = 10) -> Iterator[PairRow]:
    """Yield the summary and body of one article in `every`, sampled by id, with the title as query."""
    for file in SUMMARIES.require_files(path):
        for _, row in (
            _read_table_rows(file, SUMMARY_FIELDS)
            if ".tsv" in file.suffixes
            else read_json_objects(file, SUMMARY_FIELDS, non_empty=False)
        ):
            if is_sampled(row["id"], every):
                yield PairRow(row["id"], row["summary"], row["body"], row["title"] or None)


def is_sampled(name: str, every: int) -> bool:
    """Return True if ABNIRML samples the article; the first byte of a hash of its id decides.

    >>> is_sampled("35993938", 10), is_sampled("cnn:0001d1afc246a7964130f43ae940af6bc6c57f01", 10), is_sampled("any", 1)
    (False, False, True)

    The id of an XSum article is a number, and the hash is that of its file name, ID.summary. An id of CNN or Daily Mail
    may begin with its collection and a colon, which are not hashed.
    """
    hashed = f"{name}.summary" if name.isdecimal() else name.rpartition(":")[2]
    return sha256(hashed.encode()).digest()[0] % every == 0


def _read_table_rows(path: Path, required: Sequence[str]) -> Iterator[tuple[int, Row]]:
    """Yield line number and fields of each line of a table with a header."""
    header: list[str] = []
    for number, columns in _read_table(path):
        if not header:
            header = columns
            check_texts(dict.fromkeys(header, ""), required, path, number, non_empty=False)
        elif len(columns) != len(header):
            raise BadInput(f"the header has {len(header)} columns, this line has {len(columns)}", path, number)
        else:
            yield number, dict(zip(header, columns, strict=True))


MSRP_FILES = ("msr_paraphrase_train.txt", "msr_paraphrase_test.txt")


def _find_msrp_files(path: Path) -> Sequence[Path]:
    return [path] if path.is_file() else [place for name in MSRP_FILES if (place := path / name).is_file()]


MSRP = PairDataset(
    "the Microsoft Research Paraphrase Corpus",
    "msr_paraphrase_train.txt, msr_paraphrase_test.txt or the folder with both: a header, then Quality, two ids and "
    "two sentences, separated by tabs",
    "MSRP (Dolan and Brockett, IWP 2005; Microsoft)",
    _find_msrp_files,
)


def read_msrp(path: str) -> Iterator[PairRow]:
    """Yield pairs of news sentences that annotators judged to be paraphrases (Quality is 1)."""
    for file in MSRP.require_files(path):
        for number, columns in _read_table(file):
            if len(columns) != 5:
                message = f"should have 5 columns (Quality, two ids, two sentences), it has {len(columns)}"
                raise BadInput(message, file, number)
            if columns[0] == "1":
                yield PairRow(f"{columns[1]}-{columns[2]}", columns[3].strip(), columns[4].strip())
            elif columns[0] != "0" and number > 1:
                raise BadInput(f"Quality should be 0 or 1, not {quote_value(columns[0])}", file, number)


WNC_FILES = ("biased.full", "biased.word.train", "biased.word.dev", "biased.word.test")


def _find_wnc_files(path: Path) -> Sequence[Path]:
    """Return the file, or the folder's complete file, or else its splits of sentences that differ in one word."""
    places = [path] if path.is_file() else [place for name in WNC_FILES if (place := path / name).is_file()]
    return places[:1] if places and places[0].name == WNC_FILES[0] else places


WNC = PairDataset(
    "the Wiki Neutrality Corpus",
    "biased.full, or the folder with it or with biased.word.train, .dev and .test: id, tokens before and after, the "
    "biased sentence, the neutral sentence, separated by tabs",
    "WNC: automatically neutralizing subjective bias in text (Pryzant et al., AAAI 2020; rpryzant/neutralizing-bias)",
    _find_wnc_files,
)


def read_wnc(path: str) -> Iterator[PairRow]:
    """Yield Wikipedia sentences before and after an editor removed a bias."""
    for file in WNC.require_files(path):
        for number, columns in _read_table(file):
            if len(columns) < 5:
                message = (
                    f"should have 5 columns or more (id, two lists of tokens, two sentences), it has {len(columns)}"
                )
                raise BadInput(message, file, number)
            yield PairRow(columns[0], columns[4].strip(), columns[3].strip())


ANSWERED_FIELDS = ("question", "answer", "entity_type", "passage")
FACTS = PairDataset(
    "a file of answered questions",
    'a JSONL file of lines with "question", "answer", "entity_type" (PERSON, GPE, ...) and "passage", or of lines with '
    '"article" and "sentences", each with "text" and "supported"',
    "Natural Questions (Kwiatkowski et al., TACL 2019), as DPR's passages with answers; or QAGS (Wang, Cho, Lewis, ACL "
    "2020; W4ngatang/qags)",
    find_json_files,
)


def read_facts(path: str) -> Iterator[AnsweredQuestion | PairRow]:
    """Yield questions with passages that answer them, or, from QAGS, true and false sentences about one article.

    Each sentence that an article supports is paired with each sentence that it does not support. The two differ in more
    than their truth. There are no queries; a derived query may use only the content of both sentences.
    """
    for file in FACTS.require_files(path):
        for number, row in read_json_objects(file, ()):
            if "sentences" in row:
                yield from _pair_supported(row, file, number)
            else:
                check_texts(row, ANSWERED_FIELDS, file, number)
                yield AnsweredQuestion(get_row_id(row, number, file), *(row[name] for name in ANSWERED_FIELDS))


def _pair_supported(row: Row, path: Path, number: int) -> Iterator[PairRow]:
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
        yield PairRow(get_row_id(row, number, path), supported, unsupported)


def compile_answer_pattern(answer: str) -> re.Pattern[str]:
    """Return a pattern for an answer in a passage: its words, with optional spaces between them, in any letter case.

    >>> bool(compile_answer_pattern("New York").search("in NEWYORK, in 1898"))
    True
    >>> bool(compile_answer_pattern("ant").search("a plant"))
    False
    """
    return re.compile(rf"(?<!\w){' ?'.join(map(re.escape, answer.split()))}(?!\w)", re.IGNORECASE)
