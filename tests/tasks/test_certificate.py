"""Which lists of smoothed rankers no attack can change."""

from __future__ import annotations

import pytest

from shaketable.core.documents import rank_docnos
from shaketable.core.errors import BadInput, NotApplicable
from shaketable.core.registries import RANKERS
from shaketable.datasets.sample import read_sample
from shaketable.experiment import Experiment
from shaketable.tasks.certificate import Certificate
from shaketable.tasks.runner import list_default_tasks, run_tasks

SMOOTHED = "smoothed(base='bm25', samples=20, scale=10)"
MASKED = "masked(base='bm25', samples=20, share=0.9, scale=2)"


def experiment(*models: str) -> Experiment:
    return Experiment(read_sample(), {model: RANKERS.build(model) for model in models}, depth=12, limit=8)


def result(task: Certificate, *models: str):
    ((found,), _) = run_tasks(experiment(*models), [task])
    return found


def test_a_list_counts_if_no_document_from_below_can_enter_it():
    """By the definition, document by document, with the shifts and scores that the ranker gives."""
    there = experiment(MASKED)
    ranker, run = there.get_ranker(MASKED), there.get_run(MASKED)
    found = result(Certificate(ks=(1, 3), queries=0, changed=1), MASKED).tables["certified lists"]
    expected = []
    for k in (1, 3):
        safe = []
        for scores in run.values():
            order = rank_docnos(scores)
            reach = [scores[d] + ranker.bound_mean_shift(there.collection.docs[d], 1) for d in order[k:]]
            safe.append(max(reach) < scores[order[k - 1]])
        expected.append(100 * sum(safe) / len(safe))
    assert list(found["CRQ % (tight)"]) == expected
    assert 0 < expected[0] < 100, "or it would say nothing"
    assert (found["CRQ % (paper)"] <= found["CRQ % (tight)"]).all()
    assert (found["CRQ % (tight, whole list)"] <= found["CRQ % (tight, sampled)"]).all()


def test_findings_have_intervals_and_queries_are_drawn():
    found = result(Certificate(ks=(1,), queries=5), SMOOTHED, "ql")
    (finding,) = found.findings
    assert (finding.ranker, finding.name, finding.n) == (SMOOTHED, "CRQ@1 %", 5)
    assert finding.low <= finding.value <= finding.high
    assert any("mean of 20 draws" in note for note in found.notes)


def test_only_smoothed_rankers_have_certificates():
    with pytest.raises(NotApplicable, match="certificates need a smoothed ranker"):
        run_tasks(experiment("bm25"), [Certificate()])
    with pytest.raises(BadInput, match="ks should be"):
        Certificate(ks=())
    assert "certificate" not in list_default_tasks()
