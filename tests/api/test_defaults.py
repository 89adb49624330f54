"""Which rankers an audit takes that names none."""

from __future__ import annotations

import pytest

from shaketable.api import audit as audit_module
from shaketable.core.extras import has_extra
from shaketable.core.home import home_folder

LEXICAL = ["bm25", "ql", "ql_jm", "rm3"]


@pytest.fixture
def installed():
    if not has_extra("neural"):
        pytest.skip("the extra neural is not installed")


def chosen(folder):
    said: list[str] = []
    models = audit_module.choose_default_models(audit_module.open_experiment(folder, {}), said.append)
    return list(models), "\n".join(said)


def test_without_torch_the_lexical_ones(folder, monkeypatch):
    monkeypatch.setattr(audit_module, "has_extra", lambda extra: False)
    names, said = chosen(folder)
    assert names == LEXICAL
    assert "pip install 'shaketable[neural]'" in said


@pytest.mark.usefixtures("installed")
def test_large_collections_are_not_read_unasked(folder, monkeypatch):
    monkeypatch.setattr(audit_module, "MAX_DOCUMENTS_WITHOUT_GPU", 4)
    names, said = chosen(folder)
    assert names == LEXICAL
    assert "5 documents" in said


@pytest.mark.usefixtures("installed")
def test_nothing_to_teach_a_small_one_with(folder):
    names, said = chosen(folder)
    assert names == [*LEXICAL, "dense"]
    assert "no train split" in said


@pytest.mark.usefixtures("installed")
def test_a_small_one_is_trained_once_and_audited(folder, monkeypatch):
    (folder / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td4\t1\nq2\td2\t1\n")
    monkeypatch.setattr(audit_module, "SMALL_RANKER_SPEC", "knrm(teacher='bm25', steps=2, every=1, lists=2, size=3)")
    said: list[str] = []
    first = audit_module.audit(folder, tasks=["variance"], notify=said.append)
    (model,) = (home_folder() / "models").glob("*/model.json")
    written = model.stat().st_mtime_ns
    second = audit_module.audit(folder, tasks=["variance"], notify=said.append)
    assert [path.stat().st_mtime_ns for path in (home_folder() / "models").glob("*/model.json")] == [written]
    for audit in (first, second):
        assert list(audit.runs) == [*LEXICAL, "dense", "knrm"]
    assert first.runs == second.runs
    assert "Neural rankers: dense, and a small one, knrm(teacher='bm25'" in said[0]
    assert said[1].endswith("bm25, ql, ql_jm, rm3, dense, knrm.")
    assert "is trained first. That takes" in said[0], "nothing is trained unasked without a word on how long it takes"
    assert "is already trained" in said[2]
