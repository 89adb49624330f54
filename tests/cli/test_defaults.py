"""Which rankers an audit takes that names none."""

from __future__ import annotations

import pytest

from shaketable.cli import defaults
from shaketable.data.load import load

LEXICAL = ["bm25", "ql", "ql_jm", "rm3"]


@pytest.fixture
def installed():
    for name in defaults.NEEDED:
        pytest.importorskip(name)


def chosen(collection):
    said: list[str] = []
    models = defaults.default_models(collection, said.append)
    return list(models), "\n".join(said)


def test_without_torch_the_lexical_ones(folder, monkeypatch):
    monkeypatch.setattr(defaults, "NEEDED", ("no_such_package",))
    names, said = chosen(load(folder))
    assert names == LEXICAL
    assert "pip install 'shaketable[neural]'" in said


@pytest.mark.usefixtures("installed")
def test_large_collections_are_not_read_unasked(folder, monkeypatch):
    monkeypatch.setattr(defaults, "FEW", 4)
    names, said = chosen(load(folder))
    assert names == LEXICAL
    assert "5 documents" in said


@pytest.mark.usefixtures("installed")
def test_nothing_to_teach_a_small_one_with(folder):
    names, said = chosen(load(folder))
    assert names == [*LEXICAL, "dense"]
    assert "no split train" in said


@pytest.mark.usefixtures("installed")
def test_a_small_one_is_trained_once_and_audited(folder, shaketable, monkeypatch):
    (folder / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td4\t1\nq2\td2\t1\n")
    monkeypatch.setattr(defaults, "SMALL", "dssm(teacher='bm25', steps=2, every=1, lists=2, size=3)")
    words = ("audit", "--data", folder, "--task", "variance", "--json", "-")
    first, second = shaketable(*words), shaketable(*words)
    assert first.code == second.code == 0, first.err
    assert "trained now" in first.err
    assert "trained now" not in second.err
    assert "dense, dssm" in first.err
    assert '"dssm"' in first.out
