"""The JSON Schemas: real audits and comparisons are valid, other keys and types are not, and the page has every key."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import shaketable as st
from shaketable.api.gates import apply_accepted
from shaketable.core.results import Example, Failure, Figure, Finding, Result, SystemTable
from shaketable.report.comparison import COMPARISON_SCHEMA, VerdictChange
from shaketable.report.default_gate import AcceptedFinding
from shaketable.report.files import RESULTS_SCHEMA
from shaketable.report.gates import GateResult
from shaketable.report.rules import read_accepted
from shaketable.report.scorecard import FacetCell
from shaketable.report.verdict import RankerVerdict, Verdict, WorstFinding
from tests.cases import check_each

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = {
    name: json.loads((ROOT / "src" / "shaketable" / "report" / f"{name}.schema.json").read_text(encoding="utf-8"))
    for name in ("results", "comparison")
}
PAGE = ROOT / "docs" / "results-schema.md"
RULES = """
[[fail_if]]
finding = "nDCG@10"
below = 0.1

[[accept]]
facet = "query typos"
value = -50.0
reason = "users correct their queries"
expires = 2100-01-01
"""
TASKS = ["first_stage", "effectiveness", "risk", "variance", "query_typos(draws=1)", "consistency", "document_form"]


def score_by_length(query: str, texts: list[str]) -> list[float]:
    return [float(len(text) % 7) for text in texts]


def validate(schema: str, document: object) -> None:
    jsonschema.Draft202012Validator(SCHEMAS[schema]).validate(document)


@pytest.fixture(scope="module")
def audit() -> Mapping[str, Any]:
    return st.audit("sample", ["bm25", "ql"], TASKS[:3], max_queries=6).to_dict()


def test_the_schemas_are_schemas_of_this_version():
    for schema in SCHEMAS.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    assert SCHEMAS["results"]["properties"]["schema"]["const"] == RESULTS_SCHEMA
    assert SCHEMAS["comparison"]["properties"]["schema"]["const"] == COMPARISON_SCHEMA


@pytest.mark.slow
def test_saved_audits_and_their_comparison_are_valid(tmp_path):
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES)
    for name, ranker in (("old", "bm25"), ("new", "ql")):
        done = st.audit("sample", {"bm25": "bm25", "mine": ranker}, TASKS, max_queries=24)
        apply_accepted(done, read_accepted([rules])).save(tmp_path / name)
        saved = json.loads((tmp_path / name / "results.json").read_text(encoding="utf-8"))
        validate("results", saved)
        assert saved["provenance"]["accepted"][0]["facet"] == "query typos"
    validate("comparison", st.compare(tmp_path / "old", tmp_path / "new").to_dict())


@pytest.mark.slow
def test_results_of_other_commands_are_valid(trec):
    rankers = {"bm25": "bm25", "mine": score_by_length}
    documents = {
        "budget": st.audit("sample", rankers, budget=3_000, max_queries=24),
        "probe": st.probe("sample", "ql", ["shuffle-words"], max_queries=5),
        "attack": st.attack("sample", "ql", ["greedy"], attacked_queries=2, targets=1),
        "parity": st.parity({"old": "bm25", "new": "ql"}, max_queries=5),
        "evaluate": st.evaluate(trec["qrels"], [trec["good.run"], trec["poor.run"]]),
    }
    assert "plan" in documents["budget"].provenance
    check_each(documents, lambda done: validate("results", json.loads("".join(done.iterate_json()))))


def find_objects(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all objects in a document, the first of each list only."""
    if isinstance(value, dict):
        yield path
        for key, item in value.items():
            yield from find_objects(item, (*path, key))
    elif isinstance(value, list) and value:
        yield from find_objects(value[0], (*path, 0))


def change(document: Any, path: tuple[Any, ...], edit: Callable[[Any], Any]) -> Any:
    """Return a copy of a document in which `edit` replaced the value at a path."""
    copy = json.loads(json.dumps(document))
    parent = {"": copy}
    keys = ("", *path)
    at: Any = parent
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = edit(at[keys[-1]])
    return parent[""]


def is_mapping_by_name(path: tuple[Any, ...]) -> bool:
    """Return True if the keys of an object are names of rankers, queries and so on, or its values are texts."""
    named = ("queries", "facts", "skipped", "remarks", "docnos", "excerpts", "versions", "rankers", "fingerprints")
    return path[-1:] in [(key,) for key in (*named, "facet_cells", "values", "tables", "sources", "spent")] or (
        "docnos" in path
    )


def test_an_unknown_key_is_refused_in_every_object(audit):
    validate("results", audit)
    closed = [path for path in find_objects(audit) if not is_mapping_by_name(path)]
    assert len(closed) >= 20
    assert {len(path) for path in closed} >= {0, 1, 2, 3, 4}

    def check(path: tuple[Any, ...]) -> None:
        with pytest.raises(jsonschema.ValidationError):
            validate("results", change(audit, path, lambda value: value | {"surprise": 1}))

    check_each({"/".join(map(str, path)): path for path in closed}, check)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema",), "shaketable.audit/4"),
        (("gate_results", 0, "status"), "fine"),
        (("verdict", "passed"), "yes"),
        (("verdict", "ranker_verdicts", 0, "facet_cells"), []),
        (("queries",), {"q001": 1}),
        (("provenance", "seed"), "0"),
        (("provenance", "collection", "documents"), -1),
        (("results", 0, "findings", 0, "value"), "high"),
        (("results", 0, "findings", 0, "n"), 2.5),
        (("results", 0, "findings", 0, "values"), {"q001": "1"}),
        (("results", 0, "tables"), {"a": {"columns": ["x"], "types": ["number"], "rows": []}}),
    ],
)
def test_a_wrong_value_is_refused(audit, path, value):
    with pytest.raises(jsonschema.ValidationError):
        validate("results", change(audit, path, lambda _: value))


def test_a_missing_key_is_refused(audit):
    for key in audit:
        with pytest.raises(jsonschema.ValidationError):
            validate("results", {name: value for name, value in audit.items() if name != key})


def test_the_keys_are_the_fields_of_the_classes():
    classes: dict[str, tuple[type[Any], set[str]]] = {
        "gate_result": (GateResult, set()),
        "verdict": (Verdict, {"gate_results"}),
        "ranker_verdict": (RankerVerdict, set()),
        "facet_cell": (FacetCell, set()),
        "worst_finding": (WorstFinding, set()),
        "example": (Example, set()),
        "finding": (Finding, set()),
        "deciding_finding": (Finding, {"values"}),
        "figure": (Figure, {"data"}),
        "failure": (Failure, set()),
        "system_table": (SystemTable, set()),
        "result": (Result, {"attacked"}),
        "accepted": (AcceptedFinding, set()),
    }
    derived = {"verdict": {"passed"}}

    def check(name: str) -> None:
        record, absent = classes[name]
        names = {field.name for field in fields(record)} - absent | derived.get(name, set())
        assert set(SCHEMAS["results"]["$defs"][name]["properties"]) == names
        assert set(SCHEMAS["results"]["$defs"][name]["required"]) == names

    check_each({name: name for name in classes}, check)
    changed = {field.name for field in fields(VerdictChange)}
    assert set(SCHEMAS["comparison"]["$defs"]["verdict_change"]["properties"]) == changed


def test_the_page_is_written_from_the_schemas_and_has_every_key():
    page = PAGE.read_text(encoding="utf-8")
    render = runpy.run_path(str(ROOT / "docs" / "schema_page.py"))["render_page"]
    assert page == render(), "python docs/schema_page.py writes the page again"

    def list_keys(part: Any) -> Iterator[str]:
        if isinstance(part, dict):
            yield from part["properties"] if isinstance(part.get("properties"), dict) else ()
            for value in part.values():
                yield from list_keys(value)
        elif isinstance(part, list):
            for value in part:
                yield from list_keys(value)

    keys = {key for schema in SCHEMAS.values() for key in list_keys(schema)}
    assert len(keys) > 100
    assert [key for key in sorted(keys) if f"`{key}`" not in page] == []
