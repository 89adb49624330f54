"""Variations that others made: files of texts with their methods, categories and people's labels."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from shaketable.edit.meaning import words
from shaketable.edit.methods import PAPER_004
from shaketable.edit.taxonomy import CATEGORIES, MISSPELLING, PARAPHRASING, category_of
from shaketable.edit.validity import Case, Validity
from shaketable.edit.vary import HUMAN, Variation, alike, prepared
from shaketable.errors import BadInput
from shaketable.files import lines
from shaketable.registry import EDITS
from shaketable.types import Query

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "query": ("query", "qid", "q_id", "query_id", "query-id"),
    "original": ("original", "original_query"),
    "text": ("text", "variation", "variant"),
    "method": ("method",),
    "category": ("category", "transformation_type"),
    "valid": ("valid",),
}
"""What a column holds -> how it may be called. `query` is an id or a text, `original` is a text."""

METHODS: Mapping[str, str] = {
    **PAPER_004,
    "WordSwapNeighboringCharacterSwap": "neighb_char_swap",
    "WordSwapRandomCharacterSubstitution": "random_char_sub",
    "WordSwapQWERTY": "qwerty_char_sub",
    "naturality_by_removing_stop_words": "remove_stop_words",
    "summarization_with_t5-base_from_description_to_title": "desc_to_title",
    "WordInnerSwapRandom": "random_order_swap",
    "back_translation_pivot_language_de": "back_translation",
    "ramsrigouthamg/t5_paraphraser": "paraphrase",
    "WordSwapEmbedding": "word_embed_syn_swap",
    "WordSwapWordNet": "wordnet_syn_swap",
}
"""Methods as paper 004 and its files call them -> ours."""

KINDS: Mapping[str, str] = {
    **{category: category for category in CATEGORIES},
    "mispelling": MISSPELLING,
    "paraphrase": PARAPHRASING,
    "synonym": PARAPHRASING,
}
"""Categories as we call them, and as the files of that paper do -> ours."""

TRUTH: Mapping[str, bool] = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
"""How a label may be written -> what it says."""


def read_variations(
    path: Path, queries: Mapping[str, Query], validity: Validity | None = None, lower: bool = True
) -> list[Variation]:
    """The variations in a CSV or TSV file with a header, or in a JSONL file, plain or gzipped.

    Columns are query (an id or a text), text and, where they are known, method, category and valid (`COLUMNS` has other
    names for them); what `shaketable vary` writes and the files of paper 004 are read as they are. A variation belongs
    to the query with its id, or else to the one with its text, letter case and punctuation aside. Without a method it
    is `human`; without a category it has that of its method, or the one that the words tell; without a label it is
    judged, and one by `human` as `vary.written` judges it.
    """
    match = _Matcher(queries)
    found: list[Variation] = []
    unlabelled: dict[int, Case] = {}
    for number, row in _rows(path):
        try:
            qid, label = match(row), _label(row)
            original = prepared(queries[qid].text, lower)
            text = alike(row["text"], original, lower)
            method = METHODS.get(row.get("method", ""), row.get("method", HUMAN))
            category = _category(row, method) or category_of(original, text)
        except BadInput as error:
            raise BadInput(str(error), path, number) from None
        if label is None:
            unlabelled[len(found)] = Case("" if method == HUMAN else category, original, text, made_with(method))
        why = f"It is labelled as not valid in {path.name}." if label is False else ""
        found.append(Variation(qid, method, category, text, original, label is not False, why))
    whys = (validity or Validity()).judge_all(list(unlabelled.values()))
    for place, why in zip(unlabelled, whys, strict=True):
        v = found[place]
        found[place] = Variation(v.qid, v.method, v.category, v.text, v.original, not why, why)
    return found


def made_with(method: str) -> tuple[str, ...]:
    """The sources of evidence that a method says it is made with, by its text form; none where it is not known.

    >>> made_with("syn_swap(choice='random')"), made_with("by hand")
    (('thesaurus',), ())
    """
    found = getattr(_class(method), "made_with", ())
    return found if isinstance(found, tuple) else ()


def _class(method: str) -> type[Any] | None:
    """The class of a method of the catalogue, by its text form."""
    name = method.partition("(")[0]
    return EDITS.class_of(name) if name in list(EDITS) else None


def _category(row: Mapping[str, str], method: str) -> str:
    said, usual = row.get("category", "").lower(), getattr(_class(method), "category", "")
    if said and said not in KINDS:
        raise BadInput(f"the category is one of {', '.join(KINDS)}, not {row['category']!r}")
    return KINDS[said] if said else KINDS.get(usual, "")


def _label(row: Mapping[str, str]) -> bool | None:
    said = row.get("valid", "").strip().lower()
    if said and said not in TRUTH:
        raise BadInput(f"the label in the column valid is one of {', '.join(TRUTH)}, not {row['valid']!r}")
    return TRUTH[said] if said else None


class _Matcher:
    """Finds the query that a row is about."""

    def __init__(self, queries: Mapping[str, Query]):
        self._queries = queries
        self._by_words: dict[tuple[str, ...], list[str]] = {}
        for qid, query in queries.items():
            self._by_words.setdefault(tuple(words(query.text)), []).append(qid)

    def __call__(self, row: Mapping[str, str]) -> str:
        qid, text = row.get("query", ""), row.get("original", row.get("query", ""))
        if qid in self._queries:
            known = self._queries[qid].text
            if "original" in row and words(text) != words(known):
                raise BadInput(f"the query {qid!r} is {known!r}, but {text!r} in the file; is that another collection?")
            return qid
        found = self._by_words.get(tuple(words(text)), []) if words(text) else []
        if len(found) > 1:
            raise BadInput(f"the queries {', '.join(found)} all have the text {text!r}; give the id instead")
        if not found:
            raise BadInput(f"no query has the id {qid!r} or the text {text!r}")
        return found[0]


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """The number and the fields of each row, by our names; unknown columns and empty fields are left out."""
    for number, row in _objects(path) if ".jsonl" in path.suffixes else _table(path):
        texts = [row[alias] for alias in COLUMNS["text"] if alias in row]
        fields = {name: row[alias] for name, known in COLUMNS.items() for alias in known if row.get(alias)}
        if not texts or not {"query", "original"} & fields.keys():
            raise BadInput("a variation has at least a query (its id or its text) and a text", path, number)
        yield number, fields | {"text": texts[0]}


def _objects(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    for number, line in lines(path):
        try:
            row: Any = json.loads(line)
        except ValueError as error:
            raise BadInput("a line is a JSON object", path, number) from error
        if not isinstance(row, dict):
            raise BadInput("a line is a JSON object", path, number)
        yield number, {name: "" if value is None else str(value) for name, value in row.items()}


def _table(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a table with a header; a field of a CSV may be quoted, one of a TSV is as it stands."""
    numbers = [0]

    def texts() -> Iterator[str]:
        for number, line in lines(path):
            numbers[0] = number
            yield line + "\n"

    tabs = ".tsv" in path.suffixes
    reader = csv.reader(texts(), delimiter="\t" if tabs else ",", quoting=csv.QUOTE_NONE if tabs else csv.QUOTE_MINIMAL)
    try:
        header = next(reader, [])
        for fields in reader:
            if len(fields) != len(header):
                raise BadInput(f"the header has {len(header)} columns, this row has {len(fields)}", path, numbers[0])
            yield numbers[0], dict(zip(header, fields, strict=True))
    except csv.Error as error:
        raise BadInput(f"the file is not a table that can be read ({error})", path, numbers[0]) from error
