"""Files of results: one JSON file with all results, and a CSV file for each table, in a folder for each task.

results.json                 everything
tables/index.csv             the tables with their tasks and sizes
tables/<task>/<table>.csv    one table
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shaketable.core.errors import BadInput
from shaketable.core.extras import use_python_strings
from shaketable.core.results import Example, Failure, Figure, Finding, Result, SystemTable, excerpt
from shaketable.files.atomic import atomic_write
from shaketable.files.reading import open_binary
from shaketable.report import escape_formula, is_missing
from shaketable.report.audit_folder import check_unedited
from shaketable.report.gates import GateResult
from shaketable.report.system_table import render_latex, render_markdown
from shaketable.report.tables import TABLE_FORMATS
from shaketable.report.verdict import build_verdict

if TYPE_CHECKING:
    import pandas as pd

RESULTS_SCHEMA = "shaketable.audit/5"
RESULTS_FILE = "results.json"
TABLES_FOLDER, INDEX_FILE = "tables", "index.csv"
SYSTEMS = "systems"
"""The name of the table of systems by measures, in files and for `--table`."""


def result_to_dict(result: Result) -> dict[str, Any]:
    """Return a Result as values of strict JSON: NaN becomes null, and infinity becomes "inf"."""
    tables = {
        name: _describe_columns(frame) | {"rows": list(_iterate_rows(frame))} for name, frame in result.tables.items()
    }
    return _describe_result(result) | {"findings": list(_iterate_findings(result)), "tables": tables}


def _describe_result(result: Result) -> dict[str, Any]:
    """Return a Result as plain values, without its findings and tables, which may be large."""
    return {
        "task": result.task,
        "question": result.question,
        "figures": [_describe_figure(figure) for figure in result.figures],
        "notes": list(result.notes),
        "examples": [to_plain(asdict(example)) for example in result.examples],
        "failures": [asdict(failure) for failure in result.failures],
        "brief": list(result.brief),
        "sources": dict(result.sources),
        "system_table": to_plain(asdict(result.system_table)) if result.system_table else None,
        "conclusions": list(result.conclusions),
    }


def _describe_figure(figure: Figure) -> dict[str, Any]:
    """Return a figure without its data, which are a table of the result."""
    return {field.name: getattr(figure, field.name) for field in fields(figure) if field.name != "data"}


def _iterate_findings(result: Result) -> Iterator[dict[str, Any]]:
    return (to_plain(asdict(finding)) for finding in result.findings)


def audit_to_dict(
    results: Sequence[Result],
    provenance: Mapping[str, object],
    gate_results: Sequence[GateResult] = (),
    context: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """Return the content of results.json: gate results and verdict first, then `context`, provenance and results.

    `context` has the other data for rendering the page and for comparing audits.
    """
    return {
        **_build_header(results, provenance, gate_results, context),
        "results": [result_to_dict(r) for r in results],
    }


def _build_header(
    results: Sequence[Result],
    provenance: Mapping[str, object],
    gate_results: Sequence[GateResult],
    context: Mapping[str, object] | None,
) -> dict[str, Any]:
    """Return an audit as plain values without its results, in the order of the file."""
    found = to_plain(build_verdict(results, provenance, gate_results).to_dict())
    return {
        "schema": RESULTS_SCHEMA,
        "gate_results": found.pop("gate_results"),
        "verdict": found,
        **to_plain(context or {}),
        "provenance": to_plain(provenance),
    }


def write_results(
    folder: Path,
    results: Sequence[Result],
    provenance: Mapping[str, object],
    gate_results: Sequence[GateResult] = (),
    context: Mapping[str, object] | None = None,
) -> None:
    """Write the CSV files, then results.json, so that results.json exists only if all files do."""
    write_tables(folder / TABLES_FOLDER, results)
    with atomic_write(folder / RESULTS_FILE) as out:
        out.writelines(render_json(results, provenance, gate_results, context))


def render_json(
    results: Sequence[Result],
    provenance: Mapping[str, object],
    gate_results: Sequence[GateResult] = (),
    context: Mapping[str, object] | None = None,
) -> Iterator[str]:
    """Yield the JSON of `audit_to_dict` one finding and one table row at a time, because there may be millions."""
    head = _build_header(results, provenance, gate_results, context)

    def text(value: object) -> str:
        return json.dumps(value, allow_nan=False)

    yield "{" + ",\n".join(f"{text(name)}: {text(value)}" for name, value in head.items()) + ',\n"results": ['
    for number, result in enumerate(results):
        yield ",\n" if number else "\n"
        yield text(_describe_result(result))[:-1] + ',\n"findings": ['
        yield from (f"{',' if at else ''}\n{text(finding)}" for at, finding in enumerate(_iterate_findings(result)))
        yield '],\n"tables": {'
        for position, (name, frame) in enumerate(result.tables.items()):
            yield ",\n" if position else "\n"
            yield f'{text(name)}: {text(_describe_columns(frame))[:-1]}, "rows": ['
            yield from (f"{',' if row else ''}\n{text(cells)}" for row, cells in enumerate(_iterate_rows(frame)))
            yield "]}"
        yield "}}"
    yield "]}\n"


def write_tables(folder: Path, results: Sequence[Result], table_format: str = "csv") -> None:
    """Write each table as a file, csv, markdown or latex, in a folder for each task, and an index of CSV files."""
    names = make_csv_names(results)
    if table_format == "csv":
        with atomic_write(folder / INDEX_FILE) as out:
            _escape_for_spreadsheets(build_index(results)).to_csv(out, index=False, lineterminator="\n")
    for position, result in enumerate(results):
        for table, frame in result.tables.items():
            path = folder / names[position, table]
            if table_format == "csv":
                with atomic_write(path) as out:
                    _escape_for_spreadsheets(frame).to_csv(out, index=False, lineterminator="\n")
            else:
                ending, write = TABLE_FORMATS[table_format]
                with atomic_write(path.with_suffix(ending)) as out:
                    out.write(write(frame) + "\n")
    if table_format in TABLE_FORMATS:
        for name, text in render_system_tables(results, table_format).items():
            with atomic_write(folder / name) as out:
                out.write(text + "\n")


def render_system_tables(results: Sequence[Result], table_format: str) -> dict[str, str]:
    """Return the tables of systems by measures as markdown or latex, by the names of their files."""
    found = [
        (f"{folder}/{SYSTEMS}{TABLE_FORMATS[table_format][0]}", result.system_table)
        for folder, result in zip(make_file_names((one.task for one in results), ""), results, strict=True)
        if result.system_table
    ]
    return {
        name: render_latex(table, number) if table_format == "latex" else render_markdown(table)
        for number, (name, table) in enumerate(found, start=1)
    }


def write_per_query(folder: Path, result: Result) -> None:
    """Write a file for each ranker in the format of `trec_eval -q`: measure, query, value."""
    frame = result.tables["per query"]
    measures = [name for name in frame.columns if name not in ("ranker", "query")]
    for ranker, rows in frame.groupby("ranker", sort=False):
        with atomic_write(folder / f"{make_safe_name(str(ranker))}.eval") as out:
            for query, *values in rows[["query", *measures]].itertuples(index=False):
                out.writelines(f"{m:<22}\t{query}\t{v:.4f}\n" for m, v in zip(measures, values, strict=True))
            out.writelines(f"{m:<22}\tall\t{rows[m].mean():.4f}\n" for m in measures)


def read_results_json(path: Path, *, allow_edited: bool = False) -> dict[str, Any]:
    """Return the content of a results.json, or of that in a folder, with its results as Results.

    A file that differs from the checksum in the manifest beside it is refused, unless `allow_edited` is set.
    """
    path = path / RESULTS_FILE if path.is_dir() else path
    with open_binary(path) as raw:
        text = raw.read()
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"is not a JSON file ({error}); run the audit again", path) from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != RESULTS_SCHEMA:
        raise BadInput(
            "is not an audit that this version can read "
            f"(its schema is {schema!r}, not {RESULTS_SCHEMA!r}); run the audit again",
            path,
        )
    if not allow_edited:
        check_unedited(path, text)
    try:
        results = [_parse_result(entry) for entry in document["results"]]
        return {**document, "results": results, "provenance": dict(document["provenance"])}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(
            f"is not a complete audit ({type(error).__name__}: {error}); run the audit again", path
        ) from error


def read_results(path: Path, *, allow_edited: bool = False) -> tuple[list[Result], dict[str, Any]]:
    """Return the Results and the provenance that `write_results` wrote."""
    document = read_results_json(path, allow_edited=allow_edited)
    return document["results"], document["provenance"]


def make_csv_names(results: Sequence[Result]) -> dict[tuple[int, str], str]:
    """Return (index of the result, table) -> CSV name `<task>/<table>.csv`, safe in any file system."""
    folders = make_file_names((result.task for result in results), "")
    return {
        (position, table): f"{folder}/{name}"
        for position, (folder, result) in enumerate(zip(folders, results, strict=True))
        for table, name in zip(result.tables, make_file_names(result.tables, ".csv"), strict=True)
    }


@use_python_strings()
def build_index(results: Sequence[Result]) -> pd.DataFrame:
    """Return a row for each table: its file, task, question, name and size."""
    import pandas as pd

    rows = [
        (file, results[position].task, results[position].question, table, *results[position].tables[table].shape)
        for (position, table), file in make_csv_names(results).items()
    ]
    return pd.DataFrame(rows, columns=["file", "task", "question", "table", "rows", "columns"])


def make_file_names(texts: Iterable[str], ending: str) -> list[str]:
    """Return a safe file name for each text; names that differ only in case get numbers.

    >>> make_file_names(["a/b", "A:b"], ".run")
    ['a-b.run', 'A-b-2.run']
    """
    names: list[str] = []
    taken: set[str] = set()
    for text in texts:
        name = next(name for name in _number_names(make_safe_name(text), ending) if name.casefold() not in taken)
        taken.add(name.casefold())
        names.append(name)
    return names


def make_safe_name(text: str) -> str:
    """Return the text as a name that is valid in any file system and in TREC run files.

    >>> make_safe_name("bm25(k1=0.9, b=0.4)")
    'bm25-k1-0.9-b-0.4'
    """
    return re.sub(r"[^A-Za-z0-9_.]+", "-", text).strip("-.")[:100] or "unnamed"


def to_plain(value: object) -> Any:
    """Convert a value to JSON types; values of other types become texts.

    >>> import numpy as np
    >>> to_plain({"n": np.int64(3), "worst": float("nan"), "shape": (np.float32(0.5), float("inf"))})
    {'n': 3, 'worst': None, 'shape': [0.5, 'inf']}
    """
    if is_missing(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    if isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "tolist"):  # numpy scalars and arrays
        return to_plain(value.tolist())
    return str(value)


def _describe_columns(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the names and types of the columns of a table."""
    columns = [frame.iloc[:, i] for i in range(frame.shape[1])]
    return {"columns": [str(column.name) for column in columns], "types": [_infer_type(column) for column in columns]}


def _iterate_rows(frame: pd.DataFrame) -> Iterator[list[Any]]:
    columns = [frame.iloc[:, i] for i in range(frame.shape[1])]
    return (list(row) for row in zip(*(map(_to_plain_cell, column) for column in columns), strict=True))


def _to_plain_cell(value: object) -> Any:
    return excerpt(value) if isinstance(value, str) else to_plain(value)


def _infer_type(column: pd.Series[Any]) -> str:
    from pandas.api import types

    kinds = {"bool": types.is_bool_dtype, "int": types.is_integer_dtype, "float": types.is_float_dtype}
    return next((name for name, holds in kinds.items() if holds(column)), "text")


def _parse_result(entry: Mapping[str, Any]) -> Result:
    result = Result(
        task=str(entry["task"]),
        question=str(entry["question"]),
        tables={name: _parse_frame(table) for name, table in entry["tables"].items()},
        figures=tuple(_parse_figure(figure) for figure in entry["figures"]),
        notes=tuple(map(str, entry["notes"])),
        findings=tuple(_parse_record(Finding, finding) for finding in entry["findings"]),
        examples=tuple(_parse_record(Example, example) for example in entry["examples"]),
        failures=tuple(Failure(**_as_texts(failure)) for failure in entry["failures"]),
        brief=tuple(map(str, entry["brief"])),
        sources=_as_texts(entry.get("sources", {})),
        system_table=_parse_system_table(entry["system_table"]) if entry.get("system_table") else None,
        conclusions=tuple(map(str, entry.get("conclusions", ()))),
    )
    if absent := [figure.table for figure in result.figures if figure.table not in result.tables]:
        raise ValueError(f"a figure of {absent[0]!r}, which is not there")
    return result


def _parse_figure(entry: Mapping[str, Any]) -> Figure:
    texts: dict[str, Any] = _as_texts({name: value for name, value in entry.items() if name != "folded"})
    return Figure(**texts, folded=bool(entry.get("folded", False)))


def _parse_system_table(entry: Mapping[str, Any]) -> SystemTable:
    table = SystemTable(
        tuple(map(str, entry["systems"])),
        tuple(map(str, entry["measures"])),
        tuple(tuple(map(_parse_float, row)) for row in entry["values"]),
        tuple(tuple(tuple(map(int, cell)) for cell in row) for row in entry["beaten"]),
        int(entry["queries"]),
        str(entry["comparison"]),
    )
    sizes = {len(row) for row in (*table.values, *table.beaten)}
    if not len(table.systems) == len(table.values) == len(table.beaten) or sizes != {len(table.measures)}:
        raise ValueError("a table of systems whose rows and columns do not agree")
    if any(not 0 <= i < len(table.systems) for row in table.beaten for cell in row for i in cell):
        raise ValueError("a table of systems that names a system without a row")
    return table


def _parse_record(record_type: type[Any], entry: Mapping[str, Any]) -> Any:
    """Parse a dataclass of texts, numbers and lists of texts; null is NaN, and infinity is a text."""
    kinds = {f.name: f.type for f in fields(record_type)}
    values = {name: _parse_float(value) if kinds[name] == "float" else value for name, value in entry.items()}
    return record_type(**{name: tuple(map(str, v)) if isinstance(v, list) else v for name, v in values.items()})


def _as_texts(entry: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in entry.items()}


@use_python_strings()
def _parse_frame(table: Mapping[str, Any]) -> pd.DataFrame:
    import pandas as pd

    columns, kinds, rows = table["columns"], table["types"], table["rows"]
    if len(columns) != len(kinds) or any(len(row) != len(columns) for row in rows):
        raise ValueError("a table whose rows and columns do not agree")
    values = ([row[i] for row in rows] for i in range(len(columns)))
    frame = pd.DataFrame({i: _parse_column(v, kind) for i, (v, kind) in enumerate(zip(values, kinds, strict=True))})
    return frame.set_axis(columns, axis="columns")


def _parse_column(values: list[Any], kind: str) -> pd.Series[Any]:
    import pandas as pd

    holes = any(value is None for value in values)
    match kind:
        case "float":
            return pd.Series([_parse_float(value) for value in values], dtype="float64")
        case "int":
            return pd.Series(values, dtype="Int64" if holes else "int64")
        case "bool":
            return pd.Series(values, dtype="boolean" if holes else "bool")
        case "text":
            return pd.Series(values, dtype=None if values else "str")
    raise ValueError(f"a column of unknown type {kind!r}")


def _parse_float(value: Any) -> float:
    return float("nan") if value is None else float(value)


@use_python_strings()
def _escape_for_spreadsheets(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with texts escaped that a spreadsheet would run as formulas.

    Attackers write some of these texts. The JSON file keeps them unchanged.
    """
    frame = frame.copy()
    for i in range(frame.shape[1]):
        column = frame.iloc[:, i]
        if _infer_type(column) == "text":
            frame.isetitem(i, [escape_formula(excerpt(v)) if isinstance(v, str) else v for v in column])
    return frame.set_axis([escape_formula(str(name)) for name in frame.columns], axis="columns")


def _number_names(stem: str, ending: str) -> Iterator[str]:
    yield f"{stem}{ending}"
    for number in count(2):
        yield f"{stem}-{number}{ending}"


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
