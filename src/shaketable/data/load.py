"""One door to every collection: a name or a folder in, a Collection out."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qsl, urlencode

from shaketable.data.beir import in_split, read_beir
from shaketable.data.corpus import MemoryCorpus
from shaketable.data.irds import read_irds
from shaketable.data.kinds import RULES, with_kinds
from shaketable.data.sample import read_sample
from shaketable.data.splits import cut_by_query
from shaketable.data.tables import read_docs_table, read_queries_table
from shaketable.data.trec import read_qrels, read_run
from shaketable.errors import BadInput, UnknownName, quoted
from shaketable.files import reading
from shaketable.types import Collection

SOURCES = {
    "sample": "the bundled demonstration: passages of three genres, queries of five kinds, graded judgements",
    "FOLDER": "a BEIR folder: corpus.jsonl, queries.jsonl, qrels/*.tsv; plain or gzipped",
    "files?docs=FILE&queries=FILE": "tables of documents and queries (JSONL, TSV, CSV, Parquet); also &qrels=FILE",
    "irds:ID": "any collection that ir_datasets knows, e.g. irds:beir/scifact/test (extra: data)",
}
"""What `load` reads, for who wonders."""
Named = TypeVar("Named")
TABLES = "files"
FILES = ("docs", "queries", "qrels")
"""The name of a collection that is no folder, and the parameters that say where its parts are."""


def load(
    source: str | Path | Collection,
    split: str | None = None,
    candidates: str | Path | None = None,
    cut: str = "",
    seed: int = 0,
    kinds: str | Path | None = None,
) -> Collection:
    """The collection that a text names: "sample", "irds:ID", or a BEIR folder; a collection is itself.

    Without a split, all judgements; `splits` tells them apart. `candidates` is a TREC run to use as first stage instead
    of the one that came with the data. `cut` deals the judged queries of a collection without splits into train,
    validation and test: "60/20/20". `kinds` says what kind each query is of: "rules", a file, or the folder of a model
    (`data.kinds`); without it, kinds are those that came with the data. All of it may stand in the text, as in
    "my-folder?split=test", which is also how a collection says where it came from; tables of documents and queries are
    "files?docs=docs.csv&queries=log.tsv" (`data.tables`).
    """
    files: dict[str, str] = {}
    given = {"split": split or "", "candidates": str(candidates or ""), "cut": cut, "seed": str(seed) if cut else ""}
    given |= {"kinds": str(kinds or "")}
    if isinstance(source, Collection):
        if not any(given.values()):
            return source
        # what was chosen of a part is chosen in another order than a text has it, so only a whole one can say it
        collection, base = source, "" if _parted(source.source)[1] else source.source
    else:
        base, parameters = _parted(str(source))
        said = dict(parse_qsl(parameters))
        files = {key: str(Path(said.pop(key)).absolute()) for key in FILES if base == TABLES and key in said}
        if strange := said.keys() - given.keys():
            raise UnknownName("parameter of a collection", min(strange), given)
        given = said | {key: value for key, value in given.items() if value}
        # a split of files is read alone: those of another may contradict it
        part = given.get("split") if not given.get("cut") else None
        collection = _tables(files) if base == TABLES and files else _read(base, part)
    if given.get("candidates"):
        given["candidates"] = str(Path(given["candidates"]).absolute())
        collection = replace(collection, candidates=read_run(Path(given["candidates"])))
    if given.get("kinds"):
        if given["kinds"] != RULES:
            given["kinds"] = str(Path(given["kinds"]).absolute())
        collection = with_kinds(collection, given["kinds"])
    if given.get("cut"):
        collection = cut_by_query(collection, given["cut"], _seed(given.get("seed") or "0"))
    if given.get("split"):
        collection = in_split(collection, given["split"])
    if given.get("cut"):
        given["seed"] = given.get("seed") or "0"
    order = ("candidates", "kinds", "cut", "seed", "split")  # as they are applied
    told = files | {key: given[key] for key in order if given.get(key)}
    named = base == "sample" or bool(files)
    place = str(Path(base).resolve()) if base and not named and Path(base).exists() else base
    return replace(collection, source=f"{place}?{urlencode(told, safe='/')}" if told and place else place)


def chosen_data(
    data: Named, queries: str | Path | None, docs: str | Path | None, qrels: str | Path | None = None
) -> Named | str:
    """The text of the collection that a command is about: its files where some are named, otherwise the data.

    >>> chosen_data("sample", None, None), chosen_data("sample", "log.tsv", "docs.csv")
    ('sample', 'files?docs=docs.csv&queries=log.tsv')
    """
    return data if queries is docs is qrels is None else files_text(docs, queries, qrels)


def files_text(docs: str | Path | None, queries: str | Path | None, qrels: str | Path | None = None) -> str:
    """The text of a collection whose parts are files.

    >>> files_text("docs.csv", "log.tsv")
    'files?docs=docs.csv&queries=log.tsv'
    """
    parts = {name: str(path) for name, path in zip(FILES, (docs, queries, qrels), strict=True) if path is not None}
    return f"{TABLES}?{urlencode(parts, safe='/')}"


def paths_of(text: str) -> list[str]:
    """The files and folders that a collection's text names.

    >>> paths_of("files?docs=/a/docs.csv&queries=/a/log.tsv"), paths_of("sample?split=test")
    (['/a/docs.csv', '/a/log.tsv'], [])
    """
    base, parameters = _parted(text)
    said = dict(parse_qsl(parameters))
    own = [] if base in ("sample", TABLES) or base.startswith("irds:") else [base]
    return own + [path for key in (*FILES, "candidates", "kinds") if (path := said.get(key)) and path != RULES]


def _tables(files: Mapping[str, str]) -> Collection:
    """A collection of tables. Without documents there is nothing to score, but runs of its queries can be compared."""
    if "queries" not in files:
        raise BadInput("a collection of files needs queries: --queries FILE, and --docs FILE for the documents")
    queries = Path(files["queries"])
    return Collection(
        name=queries.name.partition(".")[0],
        docs=read_docs_table(Path(files["docs"])) if "docs" in files else MemoryCorpus({}),
        queries=read_queries_table(queries),
        qrels=read_qrels(Path(files["qrels"])) if "qrels" in files else {},
    )


def _parted(text: str) -> tuple[str, str]:
    """The name and the parameters of a text; a folder may have a question mark in its name."""
    name, mark, parameters = text.rpartition("?")
    return (name, parameters) if mark and not Path(text).exists() else (text, "")


def _seed(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise BadInput(f"the seed of a cut is a whole number, not {quoted(text)}") from None


def _read(source: str, split: str | None) -> Collection:
    if source == "sample":
        return read_sample(split)
    if source.startswith("irds:"):
        return read_irds(source.removeprefix("irds:"), split)
    folder = Path(source)
    with reading(folder):
        there = any((folder / name).is_file() for name in ("corpus.jsonl", "corpus.jsonl.gz"))
        wrong = "" if there else _unknown(folder)
    if wrong:
        raise BadInput(wrong)
    return read_beir(folder, split)


def _unknown(path: Path) -> str:
    looked = "a collection is 'sample', 'irds:ID', or a folder with corpus.jsonl, queries.jsonl and qrels/"
    if path.is_dir():
        return f"the folder {quoted(str(path))} has no corpus.jsonl; {looked}"
    if path.exists():
        return f"{quoted(str(path))} is a file; {looked}"
    beside = [str(path.with_name(p.name)) for p in path.parent.iterdir()] if path.parent.is_dir() and path.name else []
    near = difflib.get_close_matches(str(path), ["sample", *beside], n=3)
    hint = f" (did you mean {' or '.join(near)}?)" if near else ""
    return f"there is no collection {quoted(str(path))}{hint}; {looked}"
