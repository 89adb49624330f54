"""Results to and from files: one JSON file with everything, one CSV for each table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shaketable.errors import BadInput
from shaketable.extras import python_strings
from shaketable.files import open_binary, written_whole
from shaketable.report import harmless, missing
from shaketable.report.answer import answer
from shaketable.report.gates import Ruling
from shaketable.report.tables import FORMS
from shaketable.types import Example, Failure, Figure, Finding, Result

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "shaketable.audit/3"
NAME = "results.json"


def result_json(result: Result) -> dict[str, Any]:
    """A Result as plain values that strict JSON can hold: NaN becomes null, an infinity the text "inf"."""
    tables = {name: _head_json(frame) | {"rows": list(_rows(frame))} for name, frame in result.tables.items()}
    return _about_json(result) | {"tables": tables}


def _about_json(result: Result) -> dict[str, Any]:
    """All of a Result but its tables."""
    return {
        "task": result.task,
        "question": result.question,
        "figures": [asdict(figure) for figure in result.figures],
        "notes": list(result.notes),
        "findings": [plain(asdict(finding)) for finding in result.findings],
        "examples": [plain(asdict(example)) for example in result.examples],
        "failures": [asdict(failure) for failure in result.failures],
        "brief": list(result.brief),
        "sources": dict(result.sources),
    }


def audit_json(
    results: Sequence[Result],
    provenance: Mapping[str, object],
    rulings: Sequence[Ruling] = (),
    beside: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """A whole audit as plain values: what results.json holds. The answer is first, and its gates before it.

    `beside` has what else is needed to make the page again, and to compare the audit with another.
    """
    return {**_head(results, provenance, rulings, beside), "results": [result_json(r) for r in results]}


def _head(
    results: Sequence[Result],
    provenance: Mapping[str, object],
    rulings: Sequence[Ruling],
    beside: Mapping[str, object] | None,
) -> dict[str, Any]:
    """All of an audit but its results, in the order of the file."""
    found = plain(answer(results, provenance, rulings).json())
    told = {"gates": found.pop("rulings"), "answer": found, **plain(beside or {}), "provenance": plain(provenance)}
    return {"schema": SCHEMA, **told}


def write_results(
    folder: Path,
    results: Sequence[Result],
    provenance: Mapping[str, object],
    rulings: Sequence[Ruling] = (),
    beside: Mapping[str, object] | None = None,
) -> None:
    """Write results.json and the CSV files; the JSON comes last, so where it stands everything does."""
    write_tables(folder, results)
    with written_whole(folder / NAME) as out:
        out.writelines(_json_text(results, _head(results, provenance, rulings, beside)))


def _json_text(results: Sequence[Result], head: Mapping[str, Any]) -> Iterator[str]:
    """`audit_json` as text, a row of a table at a time: tables with a row for each query may be large."""

    def text(value: object) -> str:
        return json.dumps(value, allow_nan=False)

    yield "{" + ",\n".join(f"{text(name)}: {text(value)}" for name, value in head.items()) + ',\n"results": ['
    for number, result in enumerate(results):
        yield ",\n" if number else "\n"
        yield text(_about_json(result))[:-1] + ',\n"tables": {'
        for place, (name, frame) in enumerate(result.tables.items()):
            yield ",\n" if place else "\n"
            yield f'{text(name)}: {text(_head_json(frame))[:-1]}, "rows": ['
            yield from (f"{',' if row else ''}\n{text(cells)}" for row, cells in enumerate(_rows(frame)))
            yield "]}"
        yield "}}"
    yield "]}\n"


def write_tables(folder: Path, results: Sequence[Result], form: str = "csv") -> None:
    """Write each table as a file: csv, markdown or latex."""
    names = csv_names(results)
    for position, result in enumerate(results):
        for table, frame in result.tables.items():
            path = folder / names[position, table]
            if form == "csv":
                with written_whole(path) as out:
                    _for_spreadsheets(frame).to_csv(out, index=False, lineterminator="\n")
            else:
                ending, write = FORMS[form]
                with written_whole(path.with_suffix(ending)) as out:
                    out.write(write(frame) + "\n")


def write_per_query(folder: Path, result: Result) -> None:
    """The values of each query as `trec_eval -q` prints them, a file for each ranker: measure, query, value."""
    frame = result.tables["per query"]
    measures = [name for name in frame.columns if name not in ("ranker", "query")]
    for ranker, rows in frame.groupby("ranker", sort=False):
        with written_whole(folder / f"{safe_name(str(ranker))}.eval") as out:
            for query, *values in rows[["query", *measures]].itertuples(index=False):
                out.writelines(f"{m:<22}\t{query}\t{v:.4f}\n" for m, v in zip(measures, values, strict=True))
            out.writelines(f"{m:<22}\tall\t{rows[m].mean():.4f}\n" for m in measures)


def read_document(path: Path) -> dict[str, Any]:
    """What a results.json holds, its results as Results; a folder stands for the results.json in it."""
    path = path / NAME if path.is_dir() else path
    with open_binary(path) as raw:
        text = raw.read()
    try:
        document = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"is not a JSON file ({error}); run the audit again", path) from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        raise BadInput(f"is not an audit that this version can read (schema {schema!r}, expected {SCHEMA!r})", path)
    try:
        results = [_result(entry) for entry in document["results"]]
        return {**document, "results": results, "provenance": dict(document["provenance"])}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(f"is not a whole audit ({type(error).__name__}: {error}); run the audit again", path) from error


def read_results(path: Path) -> tuple[list[Result], dict[str, Any]]:
    """The Results and the provenance that `write_results` wrote."""
    document = read_document(path)
    return document["results"], document["provenance"]


def csv_names(results: Sequence[Result]) -> dict[tuple[int, str], str]:
    """(position of the result, table) -> the name of its CSV: `<task>-<table>.csv`, safe in any file system."""
    tables = [(position, result.task, table) for position, result in enumerate(results) for table in result.tables]
    names = file_names([f"{task}-{table}" for _, task, table in tables], ".csv")
    return {(position, table): name for (position, _, table), name in zip(tables, names, strict=True)}


def file_names(texts: Iterable[str], ending: str) -> list[str]:
    """A safe file name for each text; those that would be one, if only on a disk without capitals, are numbered.

    >>> file_names(["a/b", "A:b"], ".run")
    ['a-b.run', 'A-b-2.run']
    """
    names: list[str] = []
    taken: set[str] = set()
    for text in texts:
        name = next(name for name in _numbered(safe_name(text), ending) if name.casefold() not in taken)
        taken.add(name.casefold())
        names.append(name)
    return names


def safe_name(text: str) -> str:
    """The text as a name that any file system and TREC's run files take.

    >>> safe_name("bm25(k1=0.9, b=0.4)")
    'bm25-k1-0.9-b-0.4'
    """
    return re.sub(r"[^A-Za-z0-9_.]+", "-", text).strip("-.")[:100] or "unnamed"


def plain(value: object) -> Any:
    """A value as JSON has it; what JSON has no word for becomes its text.

    >>> import numpy as np
    >>> plain({"n": np.int64(3), "worst": float("nan"), "shape": (np.float32(0.5), float("inf"))})
    {'n': 3, 'worst': None, 'shape': [0.5, 'inf']}
    """
    if missing(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    if isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "tolist"):  # numpy's scalars and arrays
        return plain(value.tolist())
    return str(value)


def _head_json(frame: pd.DataFrame) -> dict[str, Any]:
    """What the columns of a table are."""
    columns = [frame.iloc[:, i] for i in range(frame.shape[1])]
    return {"columns": [str(column.name) for column in columns], "types": [_type(column) for column in columns]}


def _rows(frame: pd.DataFrame) -> Iterator[list[Any]]:
    columns = [frame.iloc[:, i] for i in range(frame.shape[1])]
    return (list(row) for row in zip(*(map(plain, column) for column in columns), strict=True))


def _type(column: pd.Series[Any]) -> str:
    from pandas.api import types

    kinds = {"bool": types.is_bool_dtype, "int": types.is_integer_dtype, "float": types.is_float_dtype}
    return next((name for name, holds in kinds.items() if holds(column)), "text")


def _result(entry: Mapping[str, Any]) -> Result:
    result = Result(
        task=str(entry["task"]),
        question=str(entry["question"]),
        tables={name: _frame(table) for name, table in entry["tables"].items()},
        figures=tuple(_figure(figure) for figure in entry["figures"]),
        notes=tuple(map(str, entry["notes"])),
        findings=tuple(_made(Finding, finding) for finding in entry["findings"]),
        examples=tuple(_made(Example, example) for example in entry["examples"]),
        failures=tuple(Failure(**_texts(failure)) for failure in entry["failures"]),
        brief=tuple(map(str, entry["brief"])),
        sources=_texts(entry.get("sources", {})),
    )
    if absent := [figure.table for figure in result.figures if figure.table not in result.tables]:
        raise ValueError(f"a figure of {absent[0]!r}, which is not there")
    return result


def _figure(entry: Mapping[str, Any]) -> Figure:
    texts = _texts({name: value for name, value in entry.items() if name != "folded"})
    return Figure(**texts, folded=bool(entry.get("folded", False)))


def _made(kind: type[Any], entry: Mapping[str, Any]) -> Any:
    """A dataclass of texts and numbers from its JSON, where NaN is null and an infinity a text."""
    kinds = {f.name: f.type for f in fields(kind)}
    return kind(**{name: _float(value) if kinds[name] == "float" else value for name, value in entry.items()})


def _texts(entry: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in entry.items()}


@python_strings()
def _frame(table: Mapping[str, Any]) -> pd.DataFrame:
    import pandas as pd

    columns, kinds, rows = table["columns"], table["types"], table["rows"]
    if len(columns) != len(kinds) or any(len(row) != len(columns) for row in rows):
        raise ValueError("a table whose rows and columns do not agree")
    values = ([row[i] for row in rows] for i in range(len(columns)))
    frame = pd.DataFrame({i: _column(v, kind) for i, (v, kind) in enumerate(zip(values, kinds, strict=True))})
    return frame.set_axis(columns, axis="columns")


def _column(values: list[Any], kind: str) -> pd.Series[Any]:
    import pandas as pd

    holes = any(value is None for value in values)
    match kind:
        case "float":
            return pd.Series([_float(value) for value in values], dtype="float64")
        case "int":
            return pd.Series(values, dtype="Int64" if holes else "int64")
        case "bool":
            return pd.Series(values, dtype="boolean" if holes else "bool")
        case "text":
            return pd.Series(values, dtype=None if values else "str")
    raise ValueError(f"a column of unknown type {kind!r}")


def _float(value: Any) -> float:
    return float("nan") if value is None else float(value)


@python_strings()
def _for_spreadsheets(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with its texts made harmless: a spreadsheet runs a cell that starts like a formula.

    Attackers write some of these texts; the JSON file keeps them exactly as they were.
    """
    frame = frame.copy()
    for i in range(frame.shape[1]):
        column = frame.iloc[:, i]
        if _type(column) == "text":
            frame.isetitem(i, [harmless(v) if isinstance(v, str) else v for v in column])
    return frame.set_axis([harmless(str(name)) for name in frame.columns], axis="columns")


def _numbered(stem: str, ending: str) -> Iterator[str]:
    yield f"{stem}{ending}"
    for number in count(2):
        yield f"{stem}-{number}{ending}"


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
