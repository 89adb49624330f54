"""`load`, which reads a collection from a name, a folder or files."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qsl, urlencode

from shaketable.core.documents import Collection
from shaketable.core.errors import BadInput, UnknownName, quote_value
from shaketable.core.languages import get_language
from shaketable.datasets.beir import read_beir, select_split
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.datasets.irds import read_irds
from shaketable.datasets.query_types.labels import RULES_SOURCE, with_query_types
from shaketable.datasets.sample import read_sample
from shaketable.datasets.splits import split_by_query
from shaketable.datasets.tables import read_docs_table, read_queries_table
from shaketable.datasets.trec import read_qrels, read_run
from shaketable.files.reading import explain_read_errors, parse_int

COLLECTION_SOURCES = {
    "sample": "the bundled demonstration: passages of three genres, queries of five types, graded judgements",
    "FOLDER": "a BEIR folder: corpus.jsonl, queries.jsonl, qrels/*.tsv; plain or gzipped",
    "files?docs=FILE&queries=FILE": "tables of documents and queries (JSONL, TSV, CSV, Parquet); also &qrels=FILE",
    "irds:ID": "any collection of ir_datasets, for example irds:beir/scifact/test (extra: data)",
}
"""The sources that `load` reads, with a description of each."""
Named = TypeVar("Named")
FILES_SOURCE = "files"
FILE_PARAMETERS = ("docs", "queries", "qrels")
"""The name of a collection made of separate files, and the parameters that give their paths."""


def load(
    source: str | Path | Collection,
    split: str | None = None,
    candidates: str | Path | None = None,
    split_ratio: str = "",
    seed: int = 0,
    query_types: str | Path | None = None,
    language: str = "",
) -> Collection:
    """Load a collection.

    A source can carry the other parameters, as in "my-folder?split=test"; the `source` of a collection has this form.

    Parameters
    ----------
    source
        "sample", the path of a BEIR folder, "irds:ID", or "files?docs=docs.csv&queries=log.tsv" for tables of documents
        and queries. A `Collection` is returned unchanged, unless another parameter is given.
    split
        The split to load. By default, all judgements are loaded, and `splits` maps each split to its queries.
    candidates
        A TREC run file that replaces the candidates of the collection.
    split_ratio
        For a collection without splits: the percentages of train, validation and test queries, such as "60/20/20".
    seed
        The random seed of `split_ratio`.
    query_types
        The source of query types: "rules", or a file of labels. By default the types come from the collection.
    language
        The language of the queries that do not declare one, such as "de".

    Returns
    -------
    Collection
        The documents, queries and judgements.

    Raises
    ------
    BadInput
        If there is no such collection, or one of its files is invalid.

    Examples
    --------
    >>> import shaketable as st
    >>> st.load("sample").name
    'sample'
    """
    given = {
        "split": split or "",
        "candidates": str(candidates or ""),
        "cut": split_ratio,
        "seed": str(seed) if split_ratio else "",
        "query_types": str(query_types or ""),
        "language": language,
    }
    if isinstance(source, Collection):
        if not any(given.values()):
            return source
        # A source applies its parameters in a fixed order, so only a source without parameters can be extended.
        collection, base = source, "" if _split_parameters(source.source)[1] else source.source
        files: dict[str, str] = {}
    else:
        base, parameters = _split_parameters(str(source))
        text_parameters = dict(parse_qsl(parameters))
        files = {
            key: str(Path(text_parameters.pop(key)).absolute())
            for key in FILE_PARAMETERS
            if base == FILES_SOURCE and key in text_parameters
        }
        if strange := text_parameters.keys() - given.keys():
            raise UnknownName("parameter of a collection", min(strange), given)
        given = text_parameters | {key: value for key, value in given.items() if value}
        # Read one split alone, because the files of different splits may contradict each other.
        part = given.get("split") if not given.get("cut") else None
        collection = _read_tables(files) if base == FILES_SOURCE and files else _read_source(base, part)
    for key in ("candidates", "query_types"):
        if given.get(key) and given[key] != RULES_SOURCE:
            given[key] = str(Path(given[key]).absolute())
    if given.get("cut"):
        given["seed"] = given.get("seed") or "0"
    return replace(_apply_parameters(collection, given), source=_format_source(base, files, given))


def _apply_parameters(collection: Collection, given: Mapping[str, str]) -> Collection:
    """Return the collection with the candidates, query types and split given by the parameters."""
    if path := given.get("candidates"):
        collection = replace(collection, candidates=read_run(Path(path)))
    if source := given.get("query_types"):
        collection = with_query_types(collection, source)
    if language := given.get("language"):
        code = get_language(language).code
        queries = {qid: replace(query, language=query.language or code) for qid, query in collection.queries.items()}
        collection = replace(collection, queries=queries)
    if ratio := given.get("cut"):
        collection = split_by_query(collection, ratio, _parse_seed(given["seed"]))
    if split := given.get("split"):
        collection = select_split(collection, split)
    return collection


def _format_source(base: str, files: Mapping[str, str], given: Mapping[str, str]) -> str:
    """Return the source that loads the collection again; "" if its base has no source."""
    order = ("candidates", "query_types", "language", "cut", "seed", "split")  # in the order of application
    parameters = {**files} | {key: given[key] for key in order if given.get(key)}
    named = base == "sample" or bool(files)
    text = str(Path(base).resolve()) if base and not named and Path(base).exists() else base
    return f"{text}?{urlencode(parameters, safe='/')}" if parameters and text else text


def select_source(
    data: Named, queries: str | Path | None, docs: str | Path | None, qrels: str | Path | None = None
) -> Named | str:
    """Return the source of a command's collection: its files if any are named, otherwise `data`.

    >>> select_source("sample", None, None), select_source("sample", "log.tsv", "docs.csv")
    ('sample', 'files?docs=docs.csv&queries=log.tsv')
    """
    return data if queries is docs is qrels is None else format_files_source(docs, queries, qrels)


def format_files_source(docs: str | Path | None, queries: str | Path | None, qrels: str | Path | None = None) -> str:
    """Return the source of a collection whose parts are files.

    >>> format_files_source("docs.csv", "log.tsv")
    'files?docs=docs.csv&queries=log.tsv'
    """
    parts = {
        name: str(path) for name, path in zip(FILE_PARAMETERS, (docs, queries, qrels), strict=True) if path is not None
    }
    return f"{FILES_SOURCE}?{urlencode(parts, safe='/')}"


def list_source_paths(text: str) -> list[str]:
    """Return the files and folders that a source names.

    >>> list_source_paths("files?docs=/a/docs.csv&queries=/a/log.tsv"), list_source_paths("sample?split=test")
    (['/a/docs.csv', '/a/log.tsv'], [])
    """
    base, parameters = _split_parameters(text)
    text_parameters = dict(parse_qsl(parameters))
    own = [] if base in ("sample", FILES_SOURCE) or base.startswith("irds:") else [base]
    return own + [
        path
        for key in (*FILE_PARAMETERS, "candidates", "query_types")
        if (path := text_parameters.get(key)) and path != RULES_SOURCE
    ]


def _read_tables(files: Mapping[str, str]) -> Collection:
    """Return a collection read from tables. Without documents it supports only the comparison of runs."""
    if "queries" not in files:
        raise BadInput("a collection of files needs queries: --queries FILE, and --docs FILE for the documents")
    queries = Path(files["queries"])
    return Collection(
        name=queries.name.partition(".")[0],
        docs=read_docs_table(Path(files["docs"])) if "docs" in files else MemoryCorpus({}),
        queries=read_queries_table(queries),
        qrels=read_qrels(Path(files["qrels"])) if "qrels" in files else {},
    )


def _split_parameters(text: str) -> tuple[str, str]:
    """Return the name and the parameters of a source; the name of a folder may contain a question mark."""
    name, mark, parameters = text.rpartition("?")
    return (name, parameters) if mark and not Path(text).exists() else (text, "")


def _parse_seed(text: str) -> int:
    try:
        return parse_int(text)
    except ValueError:
        raise BadInput(f"the seed of a split is a whole number, not {quote_value(text)}") from None


def _read_source(source: str, split: str | None) -> Collection:
    if source == "sample":
        return read_sample(split)
    if source.startswith("irds:"):
        return read_irds(source.removeprefix("irds:"), split)
    folder = Path(source)
    with explain_read_errors(folder):
        there = any((folder / name).is_file() for name in ("corpus.jsonl", "corpus.jsonl.gz"))
        wrong = "" if there else _describe_unknown_source(folder)
    if wrong:
        raise BadInput(wrong)
    return read_beir(folder, split)


def _describe_unknown_source(path: Path) -> str:
    looked = "a collection is 'sample', 'irds:ID', or a folder with corpus.jsonl, queries.jsonl and qrels/"
    if path.is_dir():
        return f"the folder {quote_value(str(path))} has no corpus.jsonl; {looked}"
    if path.exists():
        return f"{quote_value(str(path))} is a file; {looked}"
    beside = [str(path.with_name(p.name)) for p in path.parent.iterdir()] if path.parent.is_dir() and path.name else []
    near = difflib.get_close_matches(str(path), ["sample", *beside], n=3)
    hint = f" (did you mean {' or '.join(near)}?)" if near else ""
    return f"there is no collection {quote_value(str(path))}{hint}; {looked}"
