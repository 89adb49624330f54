"""Queries in, variations out."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from shaketable.data.load import load
from shaketable.data.trec import read_topics
from shaketable.edit import vary as varying
from shaketable.edit.missing import missing
from shaketable.edit.taxonomy import CATEGORIES
from shaketable.edit.vary import Variation
from shaketable.errors import BadInput, UnknownName
from shaketable.files import written_whole
from shaketable.registry import EDITS
from shaketable.report import harmless
from shaketable.types import Collection, Edit, Query

COLUMNS = ("qid", "method", "category", "text", "original", "valid", "why")


@dataclass(frozen=True)
class Varied:
    """Variations of queries, for how many queries each method had nothing to offer, and what was left out and why."""

    queries: Mapping[str, Query]
    variations: list[Variation]
    not_applicable: dict[str, int]
    left_out: dict[str, str]


def vary(
    queries: str | Path | Collection | Mapping[str, Query] = "sample",
    methods: Iterable[str | Edit] = (),
    *,
    categories: Sequence[str] = (),
    n: int = 1,
    seed: int = 0,
    lower: bool = True,
    variants: str | Path | None = None,
) -> Varied:
    """Up to n variations of each query by each method, with category and whether they will do.

    Queries are those of a collection, a file of topics, "-" for lines on standard input, or a mapping. Without methods
    or categories, all that work here, and with a file of `variants`, only those that people wrote there.
    """
    known = read_queries(queries)
    written_only = variants is not None and not methods and not categories
    edits, lacking = ([], {}) if written_only else _edits(list(methods), categories)
    variations = varying.vary(known, edits, n, seed, lower=lower) if edits else []
    if variants is not None:
        variations += varying.written(known, varying.read_variants(Path(variants)), lower=lower)
    return Varied(known, variations, varying.not_applicable(known, edits, variations), lacking)


def read_queries(source: str | Path | Collection | Mapping[str, Query]) -> dict[str, Query]:
    """The queries that a text names."""
    if isinstance(source, Mapping):
        return dict(source)
    if isinstance(source, Collection):
        return dict(source.queries)
    if source == "-":
        rows = [line.rstrip("\r\n").partition("\t") for line in sys.stdin if line.strip()]
        if any(not tab for _, tab, _ in rows):
            raise BadInput("stdin: each line is a query id, a tab and the query")
        return {qid: Query(text) for qid, _, text in rows}
    if Path(source).is_file():
        return dict(read_topics(Path(source)))
    return dict(load(source).queries)


def write_variations(variations: Iterable[Variation], out: str | Path) -> None:
    """JSONL, or TSV where the name says so; "-" is standard output."""
    tsv = str(out).removesuffix(".gz").endswith(".tsv")
    with nullcontext(sys.stdout) if out == "-" else written_whole(Path(out)) as stream:
        if tsv:
            stream.write("\t".join(COLUMNS) + "\n")
        for variation in variations:
            row = {column: getattr(variation, column) for column in COLUMNS}
            cells = (harmless(" ".join(str(value).split())) for value in row.values())
            stream.write("\t".join(cells) + "\n" if tsv else json.dumps(row, ensure_ascii=False) + "\n")


def _edits(methods: Sequence[str | Edit], categories: Sequence[str]) -> tuple[list[Edit], dict[str, str]]:
    """The edits named, or all that work here; one that was named and does not work is an error."""
    for name in categories:
        if name not in CATEGORIES:
            raise UnknownName("category", name, CATEGORIES)
    edits: list[Edit] = [EDITS.build(one) if isinstance(one, str) else one for one in methods]
    for edit in edits:
        if reason := missing(edit):
            raise BadInput(f"{EDITS.spec(edit)}: {reason}")
    lacking: dict[str, str] = {}
    if categories or not methods:
        for name in EDITS:
            edit = EDITS.build(name)
            if categories and edit.category not in categories:
                continue
            if reason := missing(edit):
                lacking[name] = reason
            elif edit not in edits:
                edits.append(edit)
    return edits, lacking
