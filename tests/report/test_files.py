"""Results to files and back."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from shaketable.core.errors import BadInput
from shaketable.core.results import Result
from shaketable.report.files import (
    audit_to_dict,
    make_csv_names,
    read_results,
    render_json,
    result_to_dict,
    to_plain,
    write_results,
)

from .samples import hostile, ordinary


def same(one: Result, other: Result) -> None:
    assert list(one.tables) == list(other.tables)
    for name, frame in one.tables.items():
        assert_frame_equal(frame, other.tables[name], check_column_type=False)
    for part in ("task", "question", "figures", "notes", "failures"):
        assert getattr(one, part) == getattr(other, part)
    for left, right in ((one.findings, other.findings), (one.examples, other.examples)):
        assert list(map(repr, left)) == list(map(repr, right))


def test_round_trip(tmp_path: Path) -> None:
    types = pd.DataFrame(
        {
            "text": ["a", "b"],
            "whole": [1, 2],
            "real": [0.1, np.nan],
            "infinite": [np.inf, -np.inf],
            "none": [np.nan, np.nan],
            "truth": [True, False],
            "holes": pd.array([1, None], dtype="Int64"),
        }
    )
    odd = Result("odd", "?", {"types": types, "empty": types.iloc[:0].drop(columns="holes"), "bare": pd.DataFrame()})
    write_results(tmp_path, [ordinary(), odd], {"seed": np.int64(7), "versions": {"numpy": "2"}})
    results, provenance = read_results(tmp_path, allow_edited=True)
    assert provenance == {"seed": 7, "versions": {"numpy": "2"}}
    same(ordinary(), results[0])
    same(odd, results[1])
    assert read_results(tmp_path / "results.json", allow_edited=True)[1] == provenance


def test_hostile_texts_come_back_as_they_were(tmp_path: Path) -> None:
    write_results(tmp_path, [hostile()], {})
    same(hostile(), read_results(tmp_path, allow_edited=True)[0][0])
    depths = {len(path.relative_to(tmp_path).parts) for path in tmp_path.rglob("*") if path.is_file()}
    assert depths == {1, 2, 3}, "results.json, tables/index.csv and tables/<task>/<table>.csv"


@pytest.mark.parametrize("results", [[], [ordinary()], [ordinary(), hostile()]], ids=len)
def test_json_in_parts_is_the_json_of_the_whole(results: list[Result]) -> None:
    given = results, {"seed": 1}, (), {"about": {"title": "x"}}
    assert json.loads("".join(render_json(*given))) == json.loads(json.dumps(audit_to_dict(*given)))


def test_json_is_strict_and_always_the_same(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        write_results(tmp_path / folder, [ordinary()], {"seed": 1})
    one, two = ((tmp_path / folder / "results.json").read_bytes() for folder in ("one", "two"))
    assert one == two
    document = json.loads(one, parse_constant=lambda name: pytest.fail(name))
    assert document["schema"] == "shaketable.audit/5"
    assert document["results"][0]["tables"]["means"]["columns"] == ["system", "nDCG@10", "queries", "p", "drop"]
    assert document["results"][0]["tables"]["means"]["rows"][0][3] is None


def test_result_json_holds_plain_values_only() -> None:
    frame = pd.DataFrame({"when": [pd.Timestamp("2024-02-03")], "list": [(np.float32(0.5), "x")], 3: [np.uint8(4)]})
    table = result_to_dict(Result("t", "?", {"f": frame}))["tables"]["f"]
    assert table == {
        "columns": ["when", "list", "3"],
        "types": ["text", "text", "int"],
        "rows": [["2024-02-03 00:00:00", [0.5, "x"], 4]],
    }


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner)))
def test_plain_is_always_strict_json(value: object) -> None:
    assert json.loads(json.dumps(to_plain(value), allow_nan=False)) == to_plain(value)


def test_csv_has_every_row_and_full_precision(tmp_path: Path) -> None:
    result = ordinary()
    write_results(tmp_path, [result], {})
    with (tmp_path / "tables/variance/scores-per-query.csv").open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    frame = result.tables["scores per query"]
    assert head == list(frame.columns)
    assert [(*names, float(score)) for *names, score in rows] == list(frame.itertuples(index=False, name=None))


def test_an_index_lists_the_tables(tmp_path: Path) -> None:
    write_results(tmp_path, [ordinary(), ordinary()], {})
    with (tmp_path / "tables/index.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["file"] for row in rows} == {
        str(path.relative_to(tmp_path / "tables")) for path in (tmp_path / "tables").glob("*/*.csv")
    }
    assert [row["file"] for row in rows if row["table"] == "means"] == ["variance/means.csv", "variance-2/means.csv"]
    assert rows[0]["rows"] == "3"


def test_csv_starts_no_formula(tmp_path: Path) -> None:
    cells = ["=1+1", "+cmd", "-2 degrees", "@x", "-12.5 %", "-", "plain"]
    write_results(tmp_path, [Result("t", "?", {"a": pd.DataFrame({"=evil": cells})})], {})
    with (tmp_path / "tables/t/a.csv").open(newline="", encoding="utf-8") as file:
        rows = [row[0] for row in csv.reader(file)]
    assert rows == ["'=evil", "'=1+1", "'+cmd", "'-2 degrees", "'@x", "-12.5 %", "-", "plain"]


def test_csv_names_are_safe_and_differ() -> None:
    frame = pd.DataFrame()
    results = [
        Result("../../etc", "?", {"passwd": frame, "PASSWD": frame}),
        Result("typo(rate=0.3)", "?", {"per/query": frame, "": frame, "日本": frame}),
    ]
    assert list(make_csv_names(results).values()) == [
        "etc/passwd.csv",
        "etc/PASSWD-2.csv",
        "typo-rate-0.3/per-query.csv",
        "typo-rate-0.3/unnamed.csv",
        "typo-rate-0.3/unnamed-2.csv",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a JSON file"),
        ("{", "is not a JSON file"),
        ('{"schema": NaN}', "NaN is not JSON"),
        ("[" * 100_000, "is not a JSON file"),
        ("[]", "is not an audit that this version can read"),
        ('{"schema": "shaketable.audit/4"}', "is 'shaketable.audit/4', not 'shaketable.audit/5'"),
        ('{"schema": "shaketable.audit/5"}', "is not a complete audit"),
        ('{"schema": "shaketable.audit/5", "provenance": {}, "results": [3]}', "is not a complete audit"),
        ('{"schema": "shaketable.audit/5", "provenance": {}, "results": [{"task": "t"}]}', "KeyError: 'question'"),
    ],
)
def test_a_broken_or_foreign_file_is_bad_input(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises(BadInput, match=message) as caught:
        read_results(tmp_path, allow_edited=True)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("rows",), [["bm25"]]),
        (("types", 0), "date"),
        (("types", 0), "float"),
        (("rows", 0, 2), "many"),
    ],
)
def test_a_broken_table_is_bad_input(place: tuple[str | int, ...], value: object, tmp_path: Path) -> None:
    write_results(tmp_path, [ordinary()], {})
    path = tmp_path / "results.json"
    document = json.loads(path.read_text())
    inner = document["results"][0]["tables"]["means"]
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    path.write_text(json.dumps(document))
    with pytest.raises(BadInput, match="is not a complete audit"):
        read_results(tmp_path, allow_edited=True)


def test_a_figure_without_its_table_is_bad_input(tmp_path: Path) -> None:
    write_results(tmp_path, [replace(ordinary(), tables={})], {})
    with pytest.raises(BadInput, match="a figure of 'means', which is not there"):
        read_results(tmp_path, allow_edited=True)


def test_no_file_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no such file"):
        read_results(tmp_path, allow_edited=True)


def test_text_that_is_not_utf8_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_bytes(b'{"schema": "\xff"}')
    with pytest.raises(BadInput, match="is not a JSON file"):
        read_results(tmp_path, allow_edited=True)
