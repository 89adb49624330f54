"""CertDR: its plan, and a net that learns by it, is smoothed, kept, and certified."""

from __future__ import annotations

import pytest

from shaketable.data.corpus import MemoryCorpus
from shaketable.defend.certdr import CertDR
from shaketable.errors import BadInput, UnknownName
from shaketable.learners.noisy import Noisy
from shaketable.learners.plan import Control, Plan
from shaketable.measure.certificate import Certifiable, certified_rows
from shaketable.rankers import smoothed
from shaketable.rankers.saved import Saved
from shaketable.registry import DEFENCES, LEARNERS
from shaketable.testing import check_ranker
from shaketable.types import Collection, Defence, Doc, Query, Slate
from tests.toys import text


def nobody() -> None:
    raise AssertionError("it needs no adversarial examples")


def test_the_plan():
    defence = DEFENCES.build("certdr(tau=0.8, most=7)")
    assert isinstance(defence, Defence)
    assert DEFENCES.spec(defence) == "certdr(tau=0.8, most=7)"
    plan = Plan(Control(), "softmax", ("a.run",))
    assert defence.plan(plan, nobody) == Plan(Noisy(Control(), "thesaurus", 0.8, 7), "hinge", ("a.run",))
    assert CertDR(objective="").plan(plan, nobody).objective == "softmax"


def test_what_makes_no_sense_is_refused():
    with pytest.raises(BadInput, match="tau should be between"):
        CertDR(tau=2)
    with pytest.raises(UnknownName, match="no source of synonyms"):
        CertDR(synonyms="nobodys")
    with pytest.raises(UnknownName, match="objective"):
        CertDR(objective="none")


def test_a_net_learns_from_noise_and_is_certified(tmp_path):
    pytest.importorskip("torch")
    docs = {f"d{i:02}": Doc(text(i, 12)) for i in range(20)}
    queries = {f"q{i}": Query(text(500 + i, 3)) for i in range(8)}
    relevant = {
        qid: {docno: int(len(set(query.text.split()) & set(doc.body.split())) > 2) for docno, doc in docs.items()}
        for qid, query in queries.items()
    }
    woods = Collection("woods", MemoryCorpus(docs), queries, relevant)
    (tmp_path / "trees.tsv").write_text("oak\tash\tbirch\npine\tfir\tlarch\tyew\n")
    defence = CertDR(synonyms=f"listed({str(tmp_path / 'trees.tsv')!r})", most=3)
    learner = LEARNERS.build("knrm(steps=4, every=2, lists=2, size=3, dim=4)")
    qids = list(queries)
    folder = tmp_path / "knrm"
    plan = defence.plan(learner.plan(), nobody)
    model = learner.fit(woods, qids[:5], valid=qids[5:], plan=plan, folder=folder, depth=10)
    assert model.card()["plan"].startswith("noisy(")
    assert model.card()["objective"] == "hinge"
    smoothed.save(defence.smoothed(folder, samples=20), tmp_path / "certdr", {"of": model.card()})
    ranker = Saved(str(tmp_path / "certdr")).open(woods)
    slates = [Slate(query.text, tuple(docs.values())) for query in queries.values()]
    check_ranker(ranker, slates[:3])
    lists = {}
    for qid, scores in zip(queries, ranker.score(slates), strict=True):
        assert ((scores > 0) & (scores < 1)).all()
        shifts = {docno: ranker.shift(doc, changed=1) for docno, doc in docs.items()}
        lists[qid] = Certifiable.of(dict(zip(docs, scores.tolist(), strict=True)), shifts)
    rows = certified_rows(lists, ranker.samples, ks=(1, 10, 20))
    assert rows[-1]["CRQ % (paper)"] == 100
    assert all(row["CRQ % (paper, sampled)"] <= row["CRQ % (paper)"] <= row["CRQ % (tight)"] for row in rows)
