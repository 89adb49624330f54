"""Queries in, variations out."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shaketable.data.load import load
from shaketable.data.trec import read_topics
from shaketable.door.names import several
from shaketable.edit import vary as varying
from shaketable.edit.function import FunctionEdit
from shaketable.edit.methods import chosen
from shaketable.edit.vary import Variation
from shaketable.errors import BadInput
from shaketable.files import written_whole
from shaketable.rankers.similarity import judge_for
from shaketable.report import escaped, harmless
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
    queries: str | Path | Collection | Mapping[str, Query | str] = "sample",
    methods: Any = (),
    *,
    categories: Sequence[str] = (),
    n: int = 1,
    seed: int = 0,
    lower: bool = True,
    variants: str | Path | None = None,
) -> Varied:
    """Up to n variations of each query by each method, with category and whether they will do.

    Queries are those of a collection, a file of topics, "-" for lines on standard input, or a mapping; methods are
    texts, edits, or functions f(text, draws) of a module (`edit.function`). Without methods or categories, all that
    vary a query by rules and work here; with a file of `variants`, those that people wrote.
    """
    known, collection = read_queries(queries)
    given = several(methods)
    names, objects = [m for m in given if isinstance(m, str)], [m for m in given if not isinstance(m, str)]
    edits: list[Edit] = [_edit(thing) for thing in objects]
    lacking: dict[str, str] = {}
    if names or categories or (variants is None and not objects):
        more, lacking = chosen(names, categories)
        edits += more
    variations = varying.vary(known, edits, n, seed, lower=lower, validity=judge_for(collection)) if edits else []
    if variants is not None:
        variations += varying.written(known, varying.read_variants(Path(variants)), lower=lower)
    return Varied(known, variations, varying.not_applicable(known, edits, variations), lacking)


def read_queries(
    source: str | Path | Collection | Mapping[str, Query | str],
) -> tuple[dict[str, Query], Collection | None]:
    """The queries that a text names, and the collection that they are of, if there is one."""
    if isinstance(source, Mapping):
        return {qid: Query(query) if isinstance(query, str) else query for qid, query in source.items()}, None
    if isinstance(source, Collection):
        return dict(source.queries), source
    if source == "-":
        rows = [line.rstrip("\r\n").partition("\t") for line in sys.stdin if line.strip()]
        if any(not tab for _, tab, _ in rows):
            raise BadInput("stdin: each line is a query id, a tab and the query")
        return {qid: Query(text) for qid, _, text in rows}, None
    if Path(source).is_file():
        return dict(read_topics(Path(source))), None
    collection = load(source)
    return dict(collection.queries), collection


def _edit(thing: Any) -> Edit:
    """An edit, or the edit that a function of a module is."""
    if isinstance(getattr(thing, "category", None), str) and callable(getattr(thing, "apply", None)):
        edit: Edit = thing
        return edit
    target = f"{getattr(thing, '__module__', '')}:{getattr(thing, '__qualname__', '')}"
    if not callable(thing) or "<" in target:
        raise BadInput(f"{thing!r} is no edit: it has category and apply, or is a function f(text, draws) of a module")
    return FunctionEdit(target)


def write_variations(variations: Iterable[Variation], out: str | Path) -> None:
    """JSONL, or TSV where the name says so; "-" is standard output."""
    tsv = str(out).removesuffix(".gz").endswith(".tsv")
    with nullcontext(sys.stdout) if out == "-" else written_whole(Path(out)) as stream:
        if tsv:
            stream.write("\t".join(COLUMNS) + "\n")
        for variation in variations:
            row = {column: getattr(variation, column) for column in COLUMNS}
            cells = (harmless(" ".join(str(value).split())) for value in row.values())
            stream.write("\t".join(cells) + "\n" if tsv else escaped(json.dumps(row, ensure_ascii=False)) + "\n")
