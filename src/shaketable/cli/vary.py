"""`shaketable vary`: queries in, variations out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shaketable.cli.options import Json, Seed
from shaketable.errors import BadInput

if TYPE_CHECKING:
    from shaketable.edit.vary import Variation
    from shaketable.types import Edit, Query

COLUMNS = ("qid", "method", "category", "text", "original", "valid", "why")


def vary(
    queries: Annotated[
        str, typer.Argument(help="A collection ('sample', a folder), a TSV of id and text, or '-' for TSV on stdin.")
    ] = "sample",
    method: Annotated[
        list[str] | None, typer.Option("--method", help="An edit, e.g. char_attack(edits=2); repeat it.")
    ] = None,
    category: Annotated[
        list[str] | None, typer.Option("--category", help="All edits of a category, e.g. misspelling; repeat it.")
    ] = None,
    variants: Annotated[
        Path | None, typer.Option("--variants", help="Human-written variants (JSONL or TSV) to judge the same way.")
    ] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="Up to so many distinct variations a query and method.")] = 1,
    out: Annotated[
        str, typer.Option("--out", help="A .jsonl or .tsv file (also .gz), or '-' for JSONL on stdout.")
    ] = "-",
    keep_case: Annotated[bool, typer.Option("--keep-case", help="Do not lower-case queries first.")] = False,
    seed: Seed = 0,
    json_to: Json = None,
) -> None:
    """Make variations of queries, each with its category and whether it is valid, and why not."""
    from shaketable.cli.console import emit_json, say
    from shaketable.edit import vary as varying

    read = _queries(queries)
    edits, lacking = _edits(method, category, human_only=variants is not None and not method and not category)
    found = varying.vary(read, edits, n, seed, lower=not keep_case) if edits else []
    if variants is not None:
        found += varying.written(read, varying.read_variants(variants), lower=not keep_case)
    _write(found, out)
    for name, reason in lacking.items():
        say(f"{name} was left out: {reason}")
    idle = varying.not_applicable(read, edits, found)
    rows = {name: f"{len(read) - count} of {len(read)} queries" for name, count in idle.items()}
    for name, covered in rows.items():
        if covered.partition(" ")[0] != str(len(read)):
            say(f"{name} applies to {covered}")
    say(f"{len(found)} variations of {len(read)} queries, {sum(v.valid for v in found)} valid")
    if json_to:
        valid = sum(v.valid for v in found)
        counts = {"schema": "shaketable.vary/1", "queries": len(read), "variations": len(found), "valid": valid}
        emit_json(counts | {"not_applicable": idle, "left_out": lacking}, json_to)


def _queries(source: str) -> dict[str, Query]:
    from shaketable.data.load import load
    from shaketable.data.trec import read_topics
    from shaketable.types import Query

    if source == "-":
        rows = [line.rstrip("\r\n").partition("\t") for line in sys.stdin if line.strip()]
        if any(not tab for _, tab, _ in rows):
            raise BadInput("stdin: each line is a query id, a tab and the query")
        return {qid: Query(text) for qid, _, text in rows}
    if Path(source).is_file():
        return dict(read_topics(Path(source)))
    return dict(load(source).queries)


def _edits(
    methods: list[str] | None, categories: list[str] | None, human_only: bool
) -> tuple[list[Edit], dict[str, str]]:
    """The edits named, or all that work here; one that was named and does not work is an error."""
    from shaketable.edit.missing import missing
    from shaketable.edit.taxonomy import CATEGORIES
    from shaketable.errors import UnknownName
    from shaketable.registry import EDITS

    if human_only:
        return [], {}
    for name in categories or ():
        if name not in CATEGORIES:
            raise UnknownName("category", name, CATEGORIES)
    edits = [EDITS.build(text) for text in methods or ()]
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


def _write(found: list[Variation], out: str) -> None:
    """JSONL, or TSV where the name says so."""
    from contextlib import nullcontext

    from shaketable.files import written_whole

    tsv = out.removesuffix(".gz").endswith(".tsv")
    with nullcontext(sys.stdout) if out == "-" else written_whole(Path(out)) as stream:
        if tsv:
            stream.write("\t".join(COLUMNS) + "\n")
        for variation in found:
            row = {column: getattr(variation, column) for column in COLUMNS}
            cells = (" ".join(str(value).split()) for value in row.values())
            stream.write("\t".join(cells) + "\n" if tsv else json.dumps(row, ensure_ascii=False) + "\n")
