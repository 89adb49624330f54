"""CertDR: its plan, and a net that learns by it, is smoothed, kept, and certified."""

from __future__ import annotations

import pytest

from shaketable.attacks.drive import drive
from shaketable.attacks.substitution import Greedy
from shaketable.data.corpus import MemoryCorpus
from shaketable.defend.certdr import CertDR
from shaketable.errors import BadInput, UnknownName
from shaketable.learners.noisy import Noisy
from shaketable.learners.plan import Control, Plan
from shaketable.measure.certificate import Certifiable, certified_rows
from shaketable.rankers import smoothed
from shaketable.rankers.lexical import BM25
from shaketable.rankers.saved import Saved
from shaketable.rankers.smoothed import Smoothed
from shaketable.registry import DEFENCES, LEARNERS
from shaketable.testing import check_ranker
from shaketable.types import Collection, Defence, Doc, Query, Slate
from tests.attacks.rooms import cases_on, knowledge_of, target_for
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


def test_an_attack_by_synonyms_gets_nowhere_where_components_are_whole(tmp_path):
    """The same search, the same synonyms: many documents rise in the lists of BM25, none where it is smoothed."""
    docs = {f"d{i:02}": Doc(text(i, 9).capitalize() + ".") for i in range(40)}
    woods = Collection("woods", MemoryCorpus(docs), {f"q{i}": Query(text(500 + i, 3)) for i in range(4)})
    groups = [{"oak", "ash", "birch"}, {"pine", "fir", "larch", "yew"}, {"elm", "maple"}, {"cedar", "hazel"}]
    lines = ["\t".join([word, *sorted(group - {word})]) for group in groups for word in sorted(group)]
    (tmp_path / "trees.tsv").write_text("\n".join(lines))
    synonyms = f"listed({str(tmp_path / 'trees.tsv')!r})"
    attack = Greedy(synonyms=synonyms).open(knowledge_of(woods))
    risen = {}
    for name, model in {"plain": BM25(), "smoothed": Smoothed("bm25", 10, synonyms, scale=5.0)}.items():
        target = target_for(model.open(woods))
        outcomes = drive(attack, cases_on(woods, target, places=(5, 9, 15)), target)
        risen[name] = sum(outcome.after < outcome.before for outcome in outcomes)
    assert risen["plain"] > 6
    assert risen["smoothed"] == 0


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
