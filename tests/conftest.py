"""Shared fixtures."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
import weights
from hypothesis import settings

from shaketable.core import redaction

# the same examples in every run: what passes here passes elsewhere; HYPOTHESIS_PROFILE=searching looks for new ones
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("searching", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run slow tests first, so that no worker is left with a long test at the end; the order within is kept."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish() -> None:
    """Keep what is loaded by now out of the collection of garbage, which would go through it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def shared_data() -> Path:
    """Real collections that lie beside the repository; a test that needs them is skipped where they are absent."""
    path = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not path.is_dir():
        pytest.skip(f"real data is not at {path}")
    return path


@pytest.fixture(scope="session")
def real_models() -> Mapping[str, Path]:
    """The rankers that `make models` built, by name; a test that needs one is skipped where it is absent.

    They are in the home of the user: session fixtures run before each test gets a home of its own.
    """
    return {name: folder for name in weights.MODELS if (folder := weights.find_model(name))}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has a home of its own, so none sees another's caches."""
    path = tmp_path / "home"
    monkeypatch.setenv("SHAKETABLE_HOME", str(path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # no test uses the network
    return path


@pytest.fixture(autouse=True)
def no_other_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that a test registers is forgotten after it: each key slows every later write of a file."""
    monkeypatch.setattr(redaction, "_patterns_by_secret", dict(redaction._patterns_by_secret))
    monkeypatch.setattr(redaction, "_pattern", redaction._pattern)
    monkeypatch.setattr(redaction, "_longest_match_chars", redaction._longest_match_chars)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny BEIR collection: three topics of trees, graded."""
    folder = tmp_path / "trees"
    (folder / "qrels").mkdir(parents=True)
    docs = {
        "d1": "the oak is a hardwood tree with lobed leaves",
        "d2": "a pine keeps its needles all winter",
        "d3": "willow bark was chewed against pain",
        "d4": "oak timber was used for ships",
        "d5": "the winter was long and the ships stayed home",
    }
    queries = {"q1": "oak tree leaves", "q2": "needles in winter", "q3": "bark for pain"}
    (folder / "corpus.jsonl").write_text("".join(json.dumps({"_id": k, "text": v}) + "\n" for k, v in docs.items()))
    (folder / "queries.jsonl").write_text("".join(json.dumps({"_id": k, "text": v}) + "\n" for k, v in queries.items()))
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td4\t1\nq2\td2\t1\nq2\td5\t0\nq3\td3\t1\n"
    )
    return folder


@pytest.fixture
def trec(tmp_path: Path) -> dict[str, Path]:
    """Judgements and two runs in TREC's formats."""
    files = {
        "qrels": "q1 0 d1 2\nq1 0 d2 0\nq2 0 d3 1\nq2 0 d4 1\n",
        "good.run": "q1 Q0 d1 1 3.0 good\nq1 Q0 d2 2 2.0 good\nq2 Q0 d3 1 9 good\nq2 Q0 d4 2 8 good\n",
        "poor.run": "q1 Q0 d2 1 3.0 poor\nq1 Q0 d1 2 2.0 poor\nq2 Q0 d9 1 9 poor\nq2 Q0 d4 2 8 poor\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return {name: tmp_path / name for name in files}
