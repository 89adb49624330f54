"""CertDR: its plan, its lists with noise, and a net that learns by it, is smoothed, kept, and certified."""

from __future__ import annotations

import pytest

from shaketable.attacks.runner import run_attacks
from shaketable.attacks.synonyms import GreedySynonyms
from shaketable.core.documents import Collection, Doc, Query, Slate
from shaketable.core.errors import BadInput, UnknownName
from shaketable.core.protocols import Defence
from shaketable.core.registries import DEFENCES, LEARNERS, LIST_SOURCES
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.datasets.letor import Letor
from shaketable.defences import smoothing
from shaketable.defences.certdr import CertDR, NoisySource
from shaketable.defences.perturbation_sets import build_perturbation_sets
from shaketable.defences.smoothing import SubstitutionSmoothed
from shaketable.measures.certificates import CertifiableList, build_certified_rows
from shaketable.rankers.lexical import BM25
from shaketable.rankers.saved import SavedModel
from shaketable.testing import check_ranker
from shaketable.training.plan import JudgementSource, ShuffledLabelSource, TrainingData, TrainingPlan
from tests.attacks.setups import cases_on, knowledge_of, target_for
from tests.toys import text


def no_adversaries() -> None:
    raise AssertionError("it needs no adversarial examples")


def test_the_plan():
    defence = DEFENCES.build("certdr(tau=0.8, most=7)")
    assert isinstance(defence, Defence)
    assert DEFENCES.spec(defence) == "certdr(tau=0.8, most=7)"
    plan = TrainingPlan(ShuffledLabelSource(), "softmax", ("a.run",))
    assert defence.plan(plan, no_adversaries) == TrainingPlan(
        NoisySource(ShuffledLabelSource(), "thesaurus", 0.8, 7), "hinge", ("a.run",)
    )
    assert CertDR(objective="").plan(plan, no_adversaries).objective == "softmax"


def test_invalid_settings_are_refused():
    with pytest.raises(BadInput, match="tau should be between"):
        CertDR(tau=2)
    with pytest.raises(UnknownName, match="no synonym source"):
        CertDR(synonyms="nobodys")
    with pytest.raises(UnknownName, match="objective"):
        CertDR(objective="none")


@pytest.fixture
def woods() -> Collection:
    docs = {f"d{i}": Doc(text(i)) for i in range(20)}
    queries = {f"q{i}": Query(text(300 + i, 2)) for i in range(8)}
    qrels = {qid: {f"d{i}": 1, f"d{i + 8}": 0} for i, qid in enumerate(queries)}
    return Collection("woods", MemoryCorpus(docs), queries, qrels)


@pytest.fixture
def synonyms(tmp_path) -> str:
    (tmp_path / "trees.tsv").write_text("oak\tash\tbirch\npine\tfir\tlarch\tyew\n")
    return f"listed({str(tmp_path / 'trees.tsv')!r})"


def training_data(woods: Collection, seed: int = 3) -> TrainingData:
    return TrainingData.prepare(woods, list(woods.queries), [], None, 10, seed)


def test_texts_are_perturbed_once_and_nothing_else_changes(woods, synonyms):
    plain, qrels = JudgementSource().open_samples(training_data(woods), 4)
    noisy, same = NoisySource(synonyms=synonyms).open_samples(training_data(woods), 4)
    sets = build_perturbation_sets([doc.text for _, doc in woods.docs.items()], synonyms)
    assert (len(noisy), same) == (len(plain), qrels)
    became: dict[str, str] = {}
    for number in range(len(plain)):
        for turn in range(4):
            before, after = plain.draw(number, turn), noisy.draw(number, turn)
            assert (after.name, after.query, after.labels) == (before.name, before.query, before.labels)
            for old, new in zip(before.texts, after.texts, strict=True):
                assert became.setdefault(old, new) == new
                for a, b in zip(old.split(), new.split(), strict=True):
                    assert b in sets.perturbations.get(a, (a,))
    assert sum(old != new for old, new in became.items()) > len(became) / 2
    other, _ = NoisySource(synonyms=synonyms).open_samples(training_data(woods, seed=4), 4)
    assert any(other.perturb_text(old) != new for old, new in became.items())


def test_a_source_wraps_another_source_and_names_its_files(synonyms, tmp_path):
    lists = NoisySource(ShuffledLabelSource(), synonyms=synonyms, most=5)
    assert LIST_SOURCES.build(LIST_SOURCES.spec(lists)) == lists
    assert lists.files == NoisySource(NoisySource(synonyms=synonyms)).files == (tmp_path / "trees.tsv",)
    assert NoisySource().files == ()
    (tmp_path / "v.txt").write_text("oak 1 0\n")
    assert NoisySource(synonyms=f"counterfitted(path={str(tmp_path / 'v.txt')!r})").files == (tmp_path / "v.txt",)
    with pytest.raises(BadInput, match="do not read texts"):
        lists.relabel(Letor.__new__(Letor), 0)
    with pytest.raises(BadInput, match="most should be between"):
        NoisySource(most=1)


def test_synonym_attacks_have_no_effect_within_whole_components(tmp_path):
    """The same search, the same synonyms: many documents rise in the lists of BM25, none where it is smoothed."""
    docs = {f"d{i:02}": Doc(text(i, 9).capitalize() + ".") for i in range(40)}
    woods = Collection("woods", MemoryCorpus(docs), {f"q{i}": Query(text(500 + i, 3)) for i in range(4)})
    groups = [{"oak", "ash", "birch"}, {"pine", "fir", "larch", "yew"}, {"elm", "maple"}, {"cedar", "hazel"}]
    lines = ["\t".join([word, *sorted(group - {word})]) for group in groups for word in sorted(group)]
    (tmp_path / "trees.tsv").write_text("\n".join(lines))
    synonyms = f"listed({str(tmp_path / 'trees.tsv')!r})"
    attack = GreedySynonyms(synonyms=synonyms).open(knowledge_of(woods))
    risen = {}
    for name, model in {"plain": BM25(), "smoothed": SubstitutionSmoothed("bm25", 10, synonyms, scale=5.0)}.items():
        target = target_for(model.open(woods))
        outcomes = run_attacks(attack, cases_on(woods, target, places=(5, 9, 15)), target)
        risen[name] = sum(outcome.ranks_after < outcome.ranks_before for outcome in outcomes)
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
    plan = defence.plan(learner.make_default_plan(), no_adversaries)
    model = learner.fit(woods, qids[:5], valid=qids[5:], plan=plan, folder=folder, depth=10)
    assert model.read_card()["plan"].startswith("noisy(")
    assert model.read_card()["objective"] == "hinge"
    smoothing.save(defence.smooth(folder, samples=20), tmp_path / "certdr", {"of": model.read_card()})
    ranker = SavedModel(str(tmp_path / "certdr")).open(woods)
    slates = [Slate(query.text, tuple(docs.values())) for query in queries.values()]
    check_ranker(ranker, slates[:3])
    lists = {}
    for qid, scores in zip(queries, ranker.score(slates), strict=True):
        assert ((scores > 0) & (scores < 1)).all()
        shifts = {docno: ranker.bound_mean_shift(doc, changed=1) for docno, doc in docs.items()}
        lists[qid] = CertifiableList.from_scores(dict(zip(docs, scores.tolist(), strict=True)), shifts)
    rows = build_certified_rows(lists, ranker.samples, ks=(1, 10, 20))
    assert rows[-1]["CRQ % (paper)"] == 100
    assert all(row["CRQ % (paper, sampled)"] <= row["CRQ % (paper)"] <= row["CRQ % (tight)"] for row in rows)
