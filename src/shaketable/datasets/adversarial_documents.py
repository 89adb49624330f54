"""JSONL files of adversarial documents, to share them and to test other rankers on them.

    {"queries": {"q1": "tidal power"}, "docno": "d7", "title": "", "text": "...",
     "url": "", "original": {"title": "", "text": "...", "url": ""},
     "edits": [{"field": "text", "word": 12, "before": "quick", "after": "fast"}],
     "recipe": "wsra", "ranker": "knrm", "before": [34], "after": [9], "trials": 61}

"queries" and "text" are required. The reader accepts two shorter forms: {"query": ..., "text": ...}, a text written for
a query, and {"question": ..., "texts": [...]}, the poisoned texts of PoisonedRAG (Zou, Geng, Wang, Jia. USENIX Security
2025). It reads each poisoned text twice: alone, and after the question, as in the paper. In the first form, "query_id"
may give the id of the query; lines with the same query and no id share one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from shaketable.core.attack_types import AdversarialDocument, Ranks
from shaketable.core.documents import Doc
from shaketable.core.errors import BadInput, quote_value
from shaketable.datasets.limits import check_id
from shaketable.files.atomic import atomic_write
from shaketable.files.reading import parse_json, read_lines

POISON_RECIPE, POISON_ALONE_RECIPE = "poison", "poison without the question"


@dataclass(frozen=True)
class WordChange:
    """A replacement of words: the field, the word number in the original, and the words before and after."""

    field: str
    word: int
    before: str
    after: str


def find_word_changes(before: Doc, after: Doc) -> list[WordChange]:
    """Return the word changes between two documents; words are separated by white space.

    >>> for change in find_word_changes(Doc("a red boat"), Doc("a blue boat today")):
    ...     print(change)
    WordChange(field='text', word=1, before='red', after='blue')
    WordChange(field='text', word=3, before='', after='today')
    """
    return [
        WordChange(field, a, " ".join(left[a:b]), " ".join(right[c:d]))
        for field, left, right in (
            ("title", before.title.split(), after.title.split()),
            ("text", before.body.split(), after.body.split()),
        )
        for kind, a, b, c, d in _find_opcodes(left, right)
        if kind != "equal"
    ]


def _find_opcodes(left: list[str], right: list[str]) -> Sequence[tuple[str, int, int, int, int]]:
    if len(left) != len(right):
        return SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
    pairs = enumerate(zip(left, right, strict=True))  # equal lengths: compare word by word
    return [("replace", i, i + 1, i, i + 1) for i, (a, b) in pairs if a != b]


def write_adversarial_documents(documents: Iterable[AdversarialDocument], path: Path) -> None:
    """Write one line per document, with its word changes."""
    with atomic_write(path) as out:
        for one in documents:
            fields = {
                "queries": dict(one.queries),
                "docno": one.docno,
                "title": one.doc.title,
                "text": one.doc.body,
                "url": one.doc.url,
                "original": {"title": one.original.title, "text": one.original.body, "url": one.original.url},
                "edits": [vars(change) for change in find_word_changes(one.original, one.doc)],
                "recipe": one.recipe,
                "ranker": one.ranker,
                "before": one.ranks_before,
                "after": one.ranks_after,
                "trials": one.trials,
            }
            out.write(json.dumps(fields, ensure_ascii=False) + "\n")


def read_adversarial_documents(path: Path) -> list[AdversarialDocument]:
    """Read the documents of a file in any form that the module docstring describes."""
    documents: list[AdversarialDocument] = []
    qids: dict[str, str] = {}
    for number, line in read_lines(path):
        fields = parse_json(line, path, number)
        if not isinstance(fields, dict):
            raise BadInput('is not an object; write {"query": ..., "text": ...}', path, number)
        documents += _parse_documents(fields, qids, path, number)
    if not documents:
        raise BadInput("holds no documents", path)
    return documents


def _parse_documents(
    fields: Mapping[str, Any], qids: dict[str, str], path: Path, number: int
) -> Iterator[AdversarialDocument]:
    """Yield the documents of a line; `qids` has the ids of the queries without an id of their own, by text."""
    if "question" in fields:
        yield from _parse_poisoned_texts(fields, qids, path, number)
        return
    queries = _parse_queries(fields, qids, path, number)
    if docno := _get_text(fields, "docno", path, number):
        check_id(docno, "docno", path, number)
    if not isinstance(fields.get("text"), str):
        raise BadInput('has no "text", the changed text of the document', path, number)
    original = fields.get("original") or {}
    if not isinstance(original, dict):
        raise BadInput('"original" should be an object with "title" and "text"', path, number)
    yield AdversarialDocument(
        queries,
        docno,
        _parse_doc(fields, path, number),
        _parse_doc(original, path, number),
        _get_text(fields, "recipe", path, number) or "a text of unknown origin",
        _get_text(fields, "ranker", path, number),
        _parse_ranks(fields, "before", len(queries), path, number),
        _parse_ranks(fields, "after", len(queries), path, number),
        _parse_trials(fields, path, number),
    )


def _parse_queries(fields: Mapping[str, Any], qids: dict[str, str], path: Path, number: int) -> dict[str, str]:
    """Return query id -> text; a query without an id is named after its first line."""
    if "queries" in fields:
        queries = fields["queries"]
    else:
        text = fields.get("query")
        qid = _get_text(fields, "query_id", path, number) or qids.setdefault(str(text), f"line-{number}")
        queries = {qid: text}
    fine = isinstance(queries, dict) and queries and all(isinstance(t, str) and t.strip() for t in queries.values())
    if not fine:
        raise BadInput('needs "query", a text, or "queries", an object of ids and texts', path, number)
    for qid in queries:
        check_id(qid, "query id", path, number)
    return dict(queries)


def _parse_poisoned_texts(
    fields: Mapping[str, Any], qids: dict[str, str], path: Path, number: int
) -> Iterator[AdversarialDocument]:
    question, texts = fields["question"], fields.get("texts")
    asked = isinstance(question, str) and question.strip()
    if not asked or not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise BadInput('"question" should be a text and "texts" a list of texts', path, number)
    queries = {qids.setdefault(question, f"line-{number}"): question}
    for text in texts:
        yield AdversarialDocument(queries, "", Doc(f"{question}. {text}"), recipe=POISON_RECIPE)
        yield AdversarialDocument(queries, "", Doc(text), recipe=POISON_ALONE_RECIPE)


def _parse_doc(fields: Mapping[str, Any], path: Path, number: int) -> Doc:
    return Doc(*(_get_text(fields, name, path, number) for name in ("text", "title", "url")))


def _get_text(fields: Mapping[str, Any], name: str, path: Path, number: int) -> str:
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadInput(f'"{name}" is {quote_value(value)}; it must be a string', path, number)
    return value


def _parse_ranks(fields: Mapping[str, Any], name: str, queries: int, path: Path, number: int) -> Ranks:
    value = fields.get(name)
    if value is None or value == []:
        return ()
    if not isinstance(value, list) or len(value) != queries or not all(_is_whole_number(place, 1) for place in value):
        raise BadInput(
            f'"{name}" is {quote_value(value)}; it must be a list of ranks, one for each query', path, number
        )
    return tuple(value)


def _parse_trials(fields: Mapping[str, Any], path: Path, number: int) -> int:
    value = fields.get("trials", 0)
    if not _is_whole_number(value, 0):
        raise BadInput(f'"trials" is {quote_value(value)}; it must be a whole number, 0 or more', path, number)
    return int(value)


def _is_whole_number(value: object, least: int) -> bool:
    """Return True if the value is a whole number of at least `least`."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
