"""Reading and writing of BEIR folders.

    corpus.jsonl        {"_id", "text", "title"?, "url"?}
    queries.jsonl       {"_id", "text", "type"?, "description"?, "language"?}
    qrels/SPLIT.tsv     query-id, corpus-id, score; or TREC's four columns in SPLIT.qrels, SPLIT.txt
    candidates.run      a first stage's TREC run; optional
    variants.jsonl      {"query", "text", "category", "language"?}: human-written query variants; with a language, the
                        query in this language; optional

Each file may be gzipped. Optional fields may be nested under "metadata". A collection holds the judgements of all
splits, and `Collection.splits` maps each split to its queries. To get one split alone, name it when loading, or call
`select_split`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from shaketable.core.documents import Collection, Qrels, Query, Variant
from shaketable.core.errors import BadInput, UnknownName, quote_value
from shaketable.core.languages import LANGUAGES
from shaketable.datasets.corpus import JsonlCorpus, get_field, parse_record
from shaketable.datasets.limits import check_grades, check_id, check_ids, find_invalid_id
from shaketable.datasets.trec import read_qrels, read_run, write_run
from shaketable.files.atomic import atomic_folder, atomic_write
from shaketable.files.reading import explain_read_errors, parse_json, read_lines

QRELS_HEADER = "query-id\tcorpus-id\tscore\n"


def read_beir(folder: Path, split: str | None = None) -> Collection:
    """Return the collection in a folder with all its queries; with a split, only the split's queries and judgements."""
    files = _find_qrels_files(folder / "qrels")
    if split is not None and split not in files:
        if not files:
            raise BadInput(f"has no judgements in qrels/, so there is no split {quote_value(split)}", folder)
        raise UnknownName("split", split, files)
    qrels, splits = _merge_qrels({name: path for name, path in files.items() if split in (None, name)})
    run = find_plain_or_gzipped(folder, "candidates.run")
    whole = Collection(
        name=folder.resolve().name,
        docs=JsonlCorpus.read(find_plain_or_gzipped(folder, "corpus.jsonl") or folder / "corpus.jsonl"),
        queries=read_queries(find_plain_or_gzipped(folder, "queries.jsonl") or folder / "queries.jsonl"),
        qrels=qrels,
        splits=splits,
        candidates=read_run(run) if run else {},
        variants=read_variants(variants) if (variants := find_plain_or_gzipped(folder, "variants.jsonl")) else {},
    )
    return whole if split is None else select_split(whole, split)


def select_split(collection: Collection, split: str) -> Collection:
    """Return the collection with only the queries, judgements and candidates of one split, and all documents."""
    if split not in collection.splits:
        raise UnknownName("split", split, collection.splits)
    qids = collection.splits[split]
    source = collection.source
    return replace(
        collection,
        source=f"{source}{'&' if '?' in source else '?'}split={split}" if source else "",
        queries={qid: collection.queries[qid] for qid in qids if qid in collection.queries},
        qrels={qid: collection.qrels[qid] for qid in qids if qid in collection.qrels},
        splits={split: qids},
        candidates={qid: collection.candidates[qid] for qid in qids if qid in collection.candidates},
        variants={qid: collection.variants[qid] for qid in qids if qid in collection.variants},
    )


def _check_language(language: str, path: Path, number: int) -> None:
    if language and language not in LANGUAGES:
        raise BadInput(f"{UnknownName('language', language, LANGUAGES)}", path, number)


def read_variants(path: Path) -> dict[str, tuple[Variant, ...]]:
    """Read human-written query variants and return query id -> variants, in file order."""
    found: dict[str, list[Variant]] = {}
    for number, line in read_lines(path):
        row = parse_json(line, path, number)
        if not isinstance(row, dict) or not {"query", "text"} <= row.keys():
            raise BadInput("a variant is a JSON object with query, text and category", path, number)
        qid, variant = row["query"], Variant(row["text"], row.get("category", ""), row.get("language", ""))
        if not all(isinstance(value, str) for value in (qid, variant.text, variant.category, variant.language)):
            raise BadInput("query, text, category and language of a variant are texts", path, number)
        _check_language(variant.language, path, number)
        check_id(qid, "query id", path, number)
        found.setdefault(qid, []).append(variant)
    return {qid: tuple(variants) for qid, variants in found.items()}


def write_beir(collection: Collection, folder: Path) -> None:
    """Write a collection as a folder that `read_beir` can read; the folder appears only when it is complete.

    A split is stored as the file of its judgements. Judged queries in no split go to "rest" (to "test" if there are no
    splits). Unjudged queries of a split lose their split.
    """
    with atomic_folder(folder) as draft:
        _write_files(collection, draft)


def _write_files(collection: Collection, folder: Path) -> None:
    for names in (collection.queries, collection.qrels, collection.variants):
        check_ids(names, "query id")
    with atomic_write(folder / "corpus.jsonl") as out:
        for docno, doc in collection.docs.items():
            check_id(docno, "document id")
            out.write(_to_json_line({"_id": docno, "title": doc.title, "text": doc.body, "url": doc.url}))
    with atomic_write(folder / "queries.jsonl") as out:
        for qid, query in collection.queries.items():
            optional = {"type": query.type, "description": query.description, "language": query.language}
            out.write(_to_json_line({"_id": qid, "text": query.text, **optional}))
    for name, qids in _assign_splits(collection).items():
        if not re.fullmatch(r"\w[\w.+-]*", name):
            raise BadInput(f"the split {quote_value(name)} cannot be the name of a file; use letters, digits and .+-_")
        with atomic_write(folder / "qrels" / f"{name}.tsv") as out:
            out.write(QRELS_HEADER)
            for qid in qids:
                check_ids(collection.qrels[qid], "document id")
                check_grades(collection.qrels[qid].values())
                out.writelines(f"{qid}\t{docno}\t{int(grade)}\n" for docno, grade in collection.qrels[qid].items())
    if any(collection.variants.values()):
        with atomic_write(folder / "variants.jsonl") as out:
            for qid, variants in collection.variants.items():
                for variant in variants:
                    row = {"query": qid, "text": variant.text, "category": variant.category}
                    row |= {"language": variant.language} if variant.language else {}
                    out.write(json.dumps(row, ensure_ascii=False) + "\n")
    if any(collection.candidates.values()):
        write_run(collection.candidates, folder / "candidates.run", "candidates")


def _to_json_line(fields: Mapping[str, str]) -> str:
    """Return one line of JSON without empty optional fields."""
    kept = {name: value for name, value in fields.items() if value or name in ("_id", "text")}
    return json.dumps(kept, ensure_ascii=False) + "\n"


def _assign_splits(collection: Collection) -> dict[str, list[str]]:
    """Return the splits such that every judged query is in at least one and no split is empty."""
    judged = [qid for qid, grades in collection.qrels.items() if grades]
    named = {qid for qids in collection.splits.values() for qid in qids}
    splits = {name: [qid for qid in qids if collection.qrels.get(qid)] for name, qids in collection.splits.items()}
    rest = [qid for qid in judged if qid not in named]
    if rest:
        name = "rest" if splits else "test"
        splits[name] = [*splits.get(name, []), *rest]
    return {name: qids for name, qids in splits.items() if qids}


def find_plain_or_gzipped(folder: Path, name: str) -> Path | None:
    """Return the path of the plain or gzipped file; None if neither exists."""
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def _find_qrels_files(folder: Path) -> dict[str, Path]:
    """Return the judgement files by split name, which is the file name without extensions."""
    files: dict[str, Path] = {}
    with explain_read_errors(folder):
        paths = sorted(folder.iterdir()) if folder.is_dir() else []
    for path in paths:
        if match := re.fullmatch(r"([^.].*)\.(tsv|qrels|txt)(\.gz)?", path.name):
            split = match.group(1)
            if split in files:
                raise BadInput(f"is the split {quote_value(split)}, and so is {files[split].name}; remove one", path)
            files[split] = path
    return files


def _merge_qrels(files: Mapping[str, Path]) -> tuple[Qrels, dict[str, tuple[str, ...]]]:
    """Return the merged judgements of all files and the queries of each; refuse files that contradict each other."""
    qrels: dict[str, dict[str, int]] = {}
    splits: dict[str, tuple[str, ...]] = {}
    for split, path in files.items():
        part = read_qrels(path)
        splits[split] = tuple(part)
        for qid, grades in part.items():
            merged = qrels.setdefault(qid, {})
            for docno, grade in grades.items():
                if (known := merged.setdefault(docno, grade)) != grade:
                    raise BadInput(
                        f"gives document {quote_value(docno)} grade {grade} for query {quote_value(qid)}, another "
                        f"split {known}; load one split, such as {quote_value(split)}",
                        path,
                    )
    return qrels, splits


def read_queries(path: Path) -> dict[str, Query]:
    """Read the queries of a JSONL file and return them by id, in file order."""
    queries: dict[str, Query] = {}
    first_lines: dict[str, int] = {}
    for number, line in read_lines(path):
        qid, fields = parse_record(line, path, number)
        if (first := first_lines.setdefault(qid, number)) != number:
            raise BadInput(f"the id {quote_value(qid)} is taken; line {first} has it too", path, number)
        if not isinstance(fields.get("type") or "", str):
            raise BadInput(f'"type" of {quote_value(qid)} is not a string', path, number)
        query_type = get_field(fields, "type") or get_field(fields, "kind")  # "kind" is the former name
        language = get_field(fields, "language")
        _check_language(language, path, number)
        queries[qid] = Query(fields["text"], query_type, get_field(fields, "description"), language=language)
    if (wrong := find_invalid_id(queries)) is not None:
        check_id(wrong, "id", path, first_lines[wrong])
    if not queries:
        raise BadInput("holds no queries", path)
    return queries
