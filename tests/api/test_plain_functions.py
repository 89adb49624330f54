"""A plain function costs as little as one that says that it is pointwise, and is not asked again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import shaketable as st
from shaketable.api.dry_run import dry_run
from tests import plain

TASKS = ["effectiveness", "query_typos(draws=1)", "document_form", "consistency(queries=5)"]
FEW: dict[str, Any] = {"max_queries": 12, "depth": 30}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHAKETABLE_HOME", str(tmp_path))


def tables(done: st.Audit) -> Any:
    return json.loads(json.dumps(done.to_dict()["results"]))


def audit(name: str, **more: Any) -> tuple[st.Audit, int]:
    done = st.audit("sample", {"mine": f"tests.plain:{name}"}, TASKS, **FEW, **more)
    return done, plain.count_pairs()


def test_a_plain_function_is_as_good_as_its_pointwise_twin():
    (done, pairs), (expected, least) = audit("overlap"), audit("twin")
    assert tables(done) == tables(expected)
    assert least < pairs <= 1.2 * least, "on few queries; benchmarks/plain_function.py measures a default audit"
    assert done.remarks["mine"] == "it scores each text alone (checked on 3 lists), so its scores are cached by text"
    assert "mine" not in expected.remarks
    assert any("it scores each text alone" in note for note in done.verdict.cautions)


def test_an_unchanged_function_is_asked_for_uncached_lists_only():
    done, first = audit("overlap")
    again, second = audit("overlap")
    assert tables(again) == tables(done)
    without = [task for task in TASKS if "consistency" not in task]
    st.audit("sample", {"mine": "tests.plain:overlap"}, without, **FEW)
    assert (first > second > 0, plain.count_pairs()) == (True, 0), "consistency asks again by design"


@pytest.mark.parametrize("workers", [None, 2])
def test_a_listwise_function_in_disguise_is_caught(workers):
    said: list[str] = []
    executor = st.make_executor(workers)
    done, _ = audit("divide_for_some", notify=said.append, executor=executor)
    expected, _ = audit("divide_for_some_twin")
    assert tables(done) == tables(expected)
    assert any("The work starts over" in message for message in said)
    assert "its scores were discarded, and lists are scored whole" in done.remarks["mine"]


def test_a_function_of_the_list_is_scored_whole():
    done, _ = audit("divide_by_best")
    assert "its score of a text depends on the other texts of the list" in done.remarks["mine"]


def test_workers_find_the_same():
    done, _ = audit("overlap", executor=st.make_executor(2))
    assert tables(done) == tables(audit("twin")[0])


def test_a_run_starts_over_too():
    said: list[str] = []
    found = st.rank("sample", "tests.plain:divide_for_some", notify=said.append, depth=30)
    assert found == st.rank("sample", "tests.plain:divide_for_some_twin", depth=30)
    assert len(said) == 1


def test_a_function_in_memory_is_cached_and_a_lambda_is_not():
    st.rank("sample", plain.twin, max_queries=5, depth=10)
    assert plain.count_pairs() > 40
    st.rank("sample", plain.twin, max_queries=5, depth=10)
    assert plain.count_pairs() == 0
    done = st.audit("sample", {"mine": lambda query, texts: plain.overlap(query, texts)}, "effectiveness", **FEW)
    assert "its scores are not cached on disk, because it is a lambda" in done.remarks["mine"]


def test_a_dry_run_asks_nothing_and_says_what_it_assumes():
    plain.count_pairs()
    found = {name: dry_run("sample", f"tests.plain:{name}", TASKS, **FEW) for name in ("overlap", "twin")}
    assert plain.count_pairs() == 0
    assert found["overlap"].pairs == found["twin"].pairs
    assert any("assumes that tests.plain:overlap scores each text alone" in note for note in found["overlap"].notes)
    assert not any("scores each text alone" in note for note in found["twin"].notes)
    whole = dry_run("sample", "tests.plain:overlap(pointwise=False)", TASKS, **FEW)
    assert whole.pairs > found["overlap"].pairs
