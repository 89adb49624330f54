"""Reader for published variations: files of texts with methods, categories and human labels."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from shaketable.core.documents import Query
from shaketable.core.errors import BadInput
from shaketable.core.registries import TRANSFORMS
from shaketable.files.reading import read_lines
from shaketable.transforms.categories import CATEGORIES, MISSPELLING, PARAPHRASING, classify_variation
from shaketable.transforms.content_words import split_words
from shaketable.transforms.presets import PAPER_004
from shaketable.transforms.validity import Validity, ValidityCase
from shaketable.transforms.vary import HUMAN, Variation, normalise_like, normalise_query

COLUMN_ALIASES: Mapping[str, tuple[str, ...]] = {
    "query": ("query", "qid", "q_id", "query_id", "query-id"),
    "original": ("original", "original_query"),
    "text": ("text", "variation", "variant"),
    "method": ("method",),
    "category": ("category", "transformation_type"),
    "valid": ("valid",),
}
"""Field -> accepted column names. `query` is an id or a text, `original` is a text."""

METHOD_ALIASES: Mapping[str, str] = {
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
"""Method names in paper 004 and its files -> our names."""

CATEGORY_ALIASES: Mapping[str, str] = {
    **{category: category for category in CATEGORIES},
    "mispelling": MISSPELLING,
    "paraphrase": PARAPHRASING,
    "synonym": PARAPHRASING,
}
"""Our category names and those in the files of paper 004 -> our names."""

BOOLEAN_WORDS: Mapping[str, bool] = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
"""Spellings of a label -> its value."""


def read_variations(
    path: Path, queries: Mapping[str, Query], validity: Validity | None = None, lower: bool = True
) -> list[Variation]:
    """Read the variations in a CSV or TSV file with a header, or in a JSONL file, plain or gzipped.

    The columns are query (an id or a text), text and, optionally, method, category and valid (`COLUMN_ALIASES` lists
    other names). The function also reads the output of `shaketable vary` and the files of paper 004. A variation
    belongs to the query with its id, or else to the query with the same text up to case and punctuation. The default
    method is `human`. A missing category is that of the method, or is found from the words. A variation without a
    label is judged; a human one is judged as in `vary.build_human_variations`.
    """
    match = _QueryMatcher(queries)
    found: list[Variation] = []
    unlabelled: dict[int, ValidityCase] = {}
    for number, row in _read_rows(path):
        try:
            qid, label = match(row), _parse_label(row)
            original = normalise_query(queries[qid].text, lower)
            text = normalise_like(row["text"], original, lower)
            method = METHOD_ALIASES.get(row.get("method", ""), row.get("method", HUMAN))
            category = _parse_category(row, method) or classify_variation(original, text)
        except BadInput as error:
            raise BadInput(str(error), path, number) from None
        if label is None:
            unlabelled[len(found)] = ValidityCase(
                "" if method == HUMAN else category, original, text, find_sources(method), queries[qid].text
            )
        why = f"It is labelled as not valid in {path.name}." if label is False else ""
        found.append(Variation(qid, method, category, text, original, label is not False, why))
    whys = (validity or Validity()).judge_all(list(unlabelled.values()))
    for place, why in zip(unlabelled, whys, strict=True):
        v = found[place]
        found[place] = Variation(v.qid, v.method, v.category, v.text, v.original, not why, why)
    return found


def find_sources(method: str) -> tuple[str, ...]:
    """Return the sources of evidence that a method declares, by its spec; () if the method is unknown.

    >>> find_sources("syn_swap(choice='random')"), find_sources("by hand")
    (('thesaurus',), ())
    """
    found = getattr(_find_class(method), "sources", ())
    return found if isinstance(found, tuple) else ()


def _find_class(method: str) -> type[Any] | None:
    """Return the class of a registered method, by its spec."""
    name = method.partition("(")[0]
    return TRANSFORMS.get_class(name) if name in list(TRANSFORMS) else None


def _parse_category(row: Mapping[str, str], method: str) -> str:
    said, usual = row.get("category", "").lower(), getattr(_find_class(method), "category", "")
    if said and said not in CATEGORY_ALIASES:
        raise BadInput(f"the category is one of {', '.join(CATEGORY_ALIASES)}, not {row['category']!r}")
    return CATEGORY_ALIASES[said] if said else CATEGORY_ALIASES.get(usual, "")


def _parse_label(row: Mapping[str, str]) -> bool | None:
    said = row.get("valid", "").strip().lower()
    if said and said not in BOOLEAN_WORDS:
        raise BadInput(f"the label in the column valid is one of {', '.join(BOOLEAN_WORDS)}, not {row['valid']!r}")
    return BOOLEAN_WORDS[said] if said else None


class _QueryMatcher:
    """A lookup from a row to its query id."""

    def __init__(self, queries: Mapping[str, Query]):
        self._queries = queries
        self._qids_by_words: dict[tuple[str, ...], list[str]] = {}
        for qid, query in queries.items():
            self._qids_by_words.setdefault(tuple(split_words(query.text)), []).append(qid)

    def __call__(self, row: Mapping[str, str]) -> str:
        qid, text = row.get("query", ""), row.get("original", row.get("query", ""))
        if qid in self._queries:
            known = self._queries[qid].text
            if "original" in row and split_words(text) != split_words(known):
                raise BadInput(f"the query {qid!r} is {known!r}, but {text!r} in the file; is that another collection?")
            return qid
        found = self._qids_by_words.get(tuple(split_words(text)), []) if split_words(text) else []
        if len(found) > 1:
            raise BadInput(f"the queries {', '.join(found)} all have the text {text!r}; give the id instead")
        if not found:
            raise BadInput(f"no query has the id {qid!r} or the text {text!r}")
        return found[0]


def _read_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number and the fields of each row, by our names; unknown columns and empty fields are dropped."""
    for number, row in _read_jsonl_rows(path) if ".jsonl" in path.suffixes else _read_table_rows(path):
        texts = [row[alias] for alias in COLUMN_ALIASES["text"] if alias in row]
        fields = {name: row[alias] for name, known in COLUMN_ALIASES.items() for alias in known if row.get(alias)}
        if not texts or not {"query", "original"} & fields.keys():
            raise BadInput("a variation needs a query (its id or its text) and a text", path, number)
        yield number, fields | {"text": texts[0]}


def _read_jsonl_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    for number, line in read_lines(path):
        try:
            row: Any = json.loads(line)
        except ValueError as error:
            raise BadInput("a line is a JSON object", path, number) from error
        if not isinstance(row, dict):
            raise BadInput("a line is a JSON object", path, number)
        yield number, {name: "" if value is None else str(value) for name, value in row.items()}


def _read_table_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a table with a header; CSV fields may be quoted, TSV fields are taken literally."""
    numbers = [0]

    def texts() -> Iterator[str]:
        for number, line in read_lines(path):
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
        raise BadInput(f"the file is not a readable table ({error})", path, numbers[0]) from error
