"""One door to every collection: a name or a folder in, a Collection out."""

from __future__ import annotations

import difflib
from dataclasses import replace
from pathlib import Path

from shaketable.data.beir import in_split, read_beir
from shaketable.data.irds import read_irds
from shaketable.data.sample import read_sample
from shaketable.data.trec import read_run
from shaketable.errors import BadInput, quoted
from shaketable.files import reading
from shaketable.types import Collection

SOURCES = {
    "sample": "the bundled demonstration: passages of three genres, queries of five kinds, graded judgements",
    "FOLDER": "a BEIR folder: corpus.jsonl, queries.jsonl, qrels/*.tsv; plain or gzipped",
    "irds:ID": "any collection that ir_datasets knows, e.g. irds:beir/scifact/test (extra: data)",
}
"""What `load` reads, for who wonders."""


def load(source: str | Path, split: str | None = None, candidates: str | Path | None = None) -> Collection:
    """The collection that a text names: "sample", "irds:ID", or a BEIR folder.

    Without a split, all judgements; `splits` tells them apart. `candidates` is a TREC run to use as first stage instead
    of the one that came with the data.
    """
    collection = _read(source, split)
    if candidates is None:
        return collection
    collection = replace(collection, candidates=read_run(candidates))
    return collection if split is None else in_split(collection, split)


def _read(source: str | Path, split: str | None) -> Collection:
    if source == "sample":
        return read_sample(split)
    if isinstance(source, str) and source.startswith("irds:"):
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
