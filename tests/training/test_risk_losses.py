"""Risk objectives of nets: their mathematics by finite differences, their baselines, and a training against them."""

# ruff: noqa: E402
from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from shaketable.core.documents import Doc, Slate, rank_docnos
from shaketable.core.errors import BadInput
from shaketable.core.registries import LEARNERS, RANKERS
from shaketable.datasets.trec import write_run
from shaketable.measures.effectiveness import score_table
from shaketable.measures.risk import geo_risk, u_risk
from shaketable.rankers.lexical import BM25
from shaketable.training.baselines import read_text_baselines
from shaketable.training.list_sources import BaselineLists, Sample
from shaketable.training.ndcg import list_ndcg
from shaketable.training.plan import JudgementSource, ShuffledLabelSource, TeacherSource, TrainingData, TrainingPlan

torch = pytest.importorskip("torch")

from shaketable.core.registries import OBJECTIVES
from shaketable.nlp.analyzer import Analyzer
from shaketable.rankers.neural.knrm import KNRM
from shaketable.rankers.neural.shapes import KNRMShape
from shaketable.rankers.neural.words import Vocabulary
from shaketable.training.losses import score_samples
from shaketable.training.risk_losses import GeoRiskLoss, URiskLoss, approx_ndcg
from tests.training.test_neural import QIDS, small, trees

SCORES = torch.tensor([[0.3, -0.2, 0.7, 0.1], [0.0, 0.4, -0.3, 9.0]], dtype=torch.float64)
LABELS = torch.tensor([[2.0, 0.0, 1.0, 0.0], [0.0, 0.0, 3.0, 0.0]], dtype=torch.float64)
KEPT = torch.tensor([[True] * 4, [True] * 3 + [False]])


def by_loops(scores: list[float], labels: list[float], temperature: float) -> float:
    best = sum((2**y - 1) / math.log2(1 + r) for r, y in enumerate(sorted(labels, reverse=True), 1))
    total = 0.0
    for i, y in enumerate(labels):
        before = (1 / (1 + math.exp(-(t - scores[i]) / temperature)) for j, t in enumerate(scores) if j != i)
        total += (2**y - 1) / math.log2(2 + sum(before))
    return total / best


@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_the_approximation_is_its_formula(temperature):
    found = approx_ndcg(SCORES, LABELS, KEPT, temperature).tolist()
    whole = by_loops(SCORES[0].tolist(), LABELS[0].tolist(), temperature)
    cut = by_loops(SCORES[1, :3].tolist(), LABELS[1, :3].tolist(), temperature)
    assert found == pytest.approx([whole, cut])


def test_at_a_low_temperature_it_is_ndcg():
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores, labels = rng.permutation(7) / 2, rng.integers(0, 4, 7).astype(float)
        labels[0] = 1
        near = approx_ndcg(torch.tensor(scores[None]), torch.tensor(labels[None]), torch.ones(1, 7).bool(), 0.01)
        assert near.item() == pytest.approx(list_ndcg(labels, scores), abs=1e-9)


def test_ndcg_of_a_list_is_that_of_the_toolkit():
    rng = np.random.default_rng(1)
    for _ in range(20):
        scores, labels = rng.permutation(6).astype(float), rng.integers(0, 2, 6)
        labels[rng.integers(6)] = 1
        names = [f"d{i}" for i in range(6)]
        qrels, run = {"q": dict(zip(names, labels.tolist(), strict=True))}, {"q": dict(zip(names, scores, strict=True))}
        expected = score_table("nDCG", qrels, {"x": run}).values[0, 0]  # of grades 0 and 1 gains are the grades
        assert list_ndcg(labels.tolist(), scores) == pytest.approx(expected)
    assert list_ndcg((1, 0), np.array([2.0, 2.0])) == pytest.approx(1 / math.log2(3)), "ties count against it"
    with pytest.raises(BadInput, match="a teacher's scores are not judgements"):
        list_ndcg((0.5, 1.0), np.zeros(2))


BASELINES = np.array([[0.5, 0.9, 0.2], [0.7, 0.3, 0.6]])


@pytest.mark.parametrize("alpha", [0.0, 1.0, 5.0])
def test_the_loss_is_the_measure_negative(alpha):
    values = torch.tensor([0.6, 0.8, 0.4], dtype=torch.float64)
    expected = -u_risk(values.numpy(), BASELINES[0], alpha)
    assert URiskLoss(alpha).loss(values, BASELINES[:1]).item() == pytest.approx(float(expected))
    matrix = np.vstack([BASELINES, values.numpy()])
    assert GeoRiskLoss(alpha).loss(values, BASELINES).item() == pytest.approx(-geo_risk(matrix, alpha)[-1])


def test_urisk_by_hand():
    """A gain of 0.1 and losses of 0.1 and 0.2, the losses twice: (0.1 - 0.2 - 0.4) / 3."""
    values = torch.tensor([0.6, 0.8, 0.0])
    assert URiskLoss(1.0).loss(values, BASELINES[:1]).item() == pytest.approx(0.5 / 3)


@pytest.mark.parametrize(
    "objective", [URiskLoss(0.0), URiskLoss(3.0), GeoRiskLoss(0.0), GeoRiskLoss(1.0), GeoRiskLoss(10.0)], ids=repr
)
def test_gradients_by_finite_differences(objective):
    rng = np.random.default_rng(4)
    for _ in range(5):
        baselines = rng.uniform(0.1, 1, (1 if isinstance(objective, URiskLoss) else 3, 6))
        scores = torch.tensor(rng.normal(size=(6, 5)), requires_grad=True)
        labels = torch.tensor(rng.integers(0, 3, (6, 5)).astype(float))
        labels[:, 0] = 1
        kept = torch.ones(6, 5).bool()
        kept[2, 3:] = False

        def loss(scores, labels=labels, kept=kept, baselines=baselines):
            return objective.loss(approx_ndcg(scores, labels, kept, 0.5), baselines)

        assert torch.autograd.gradcheck(loss, (scores,), eps=1e-6, atol=1e-6)


def test_losses_weigh_more_than_gains():
    values = torch.tensor([0.6, 0.8], requires_grad=True)
    URiskLoss(3.0).loss(values, np.array([[0.5, 0.9]])).backward()
    assert values.grad.tolist() == pytest.approx([-0.5, -2.0])


# On a net


def net() -> KNRM:
    torch.manual_seed(0)
    return KNRM(Vocabulary(("oak", "elm", "ash"), Analyzer()), 3, KNRMShape())


SAMPLES = [
    Sample("1", "oak", ("oak", "elm ash", "oak elm"), (2.0, 0.0, 1.0), baseline_ndcg=(0.8, 0.5)),
    Sample("2", "elm", ("elm", "oak"), (1.0, 0.0), baseline_ndcg=(1.0, 0.6)),
    Sample("3", "ash", ("elm", "oak"), (0.0, 0.0), baseline_ndcg=(1.0, 1.0)),
]


def test_a_list_without_a_relevant_text_is_no_topic():
    some = net()
    assert GeoRiskLoss()(some, SAMPLES).item() == GeoRiskLoss()(some, SAMPLES[:2]).item()
    values = approx_ndcg(*score_samples(some, SAMPLES[:2])).detach().double().numpy()
    matrix = np.vstack([np.array([s.baseline_ndcg for s in SAMPLES[:2]]).T, values])
    assert GeoRiskLoss()(some, SAMPLES).item() == pytest.approx(-geo_risk(matrix, 1.0)[-1], rel=1e-6)
    nothing = GeoRiskLoss()(some, SAMPLES[2:])
    nothing.backward()
    assert nothing.item() == 0


def test_there_is_no_risk_without_baselines():
    for name in ("urisk", "georisk"):
        with pytest.raises(BadInput, match=f"the objective {name} needs a baseline"):
            OBJECTIVES.build(name)(net(), [replace(sample, baseline_ndcg=()) for sample in SAMPLES])


def test_urisk_compares_with_one_baseline():
    with pytest.raises(BadInput, match="urisk compares with one baseline and there are 2; name one, or use georisk"):
        URiskLoss()(net(), SAMPLES)


def test_an_alpha_that_leaves_nothing_is_refused():
    with pytest.raises(BadInput, match="GeoRisk is numerically 0"):
        GeoRiskLoss(1e6)(net(), SAMPLES)
    with pytest.raises(BadInput, match="alpha should be a number from 0 up"):
        OBJECTIVES.build("urisk(alpha=-1)")


# The baselines of a plan


def training_data(collection):
    return TrainingData.prepare(collection, QIDS[:8], QIDS[8:], None, 20, 3)


def test_a_baseline_is_measured_on_the_very_list():
    collection = trees()
    plain, _ = JudgementSource().open_samples(training_data(collection), 5)
    source = BaselineLists(plain, TrainingPlan(baselines=("bm25", "ql")).open_text_baselines(collection))
    assert len(source) == len(plain)
    for number, turn in ((0, 0), (3, 1), (5, 7)):
        sample = source.draw(number, turn)
        assert replace(sample, baseline_ndcg=()) == plain.draw(number, turn)
        for name, value in zip(("bm25", "ql"), sample.baseline_ndcg, strict=True):
            slate = Slate(sample.query, tuple(map(Doc, sample.texts)))
            (scores,) = RANKERS.build(name).open(collection).score([slate])
            assert value == list_ndcg(sample.labels, scores)


def test_a_run_is_a_baseline_by_the_texts_of_its_documents(tmp_path):
    """Documents that it lacks come last; a query that it lacks is a mistake."""
    collection = trees()
    perfect = {
        qid: {docno: float(grade) for docno, grade in grades.items()} for qid, grades in collection.qrels.items()
    }
    worst = {qid: {docno: 1.0 for docno in collection.docs if docno not in collection.qrels[qid]} for qid in QIDS}
    write_run(perfect, tmp_path / "perfect.run")
    write_run(worst, tmp_path / "worst.run")
    texts = [f"run:{tmp_path / name}.run" for name in ("perfect", "worst")]
    source = BaselineLists(
        JudgementSource().open_samples(training_data(collection), 5)[0], read_text_baselines(texts, collection)
    )
    for number in range(len(source)):
        good, bad = source.draw(number, 0).baseline_ndcg
        assert good == 1
        assert bad < 1
    write_run({"q0": perfect["q0"]}, tmp_path / "one.run")
    (rival,) = read_text_baselines([f"run:{tmp_path / 'one.run'}"], collection)
    with pytest.raises(BadInput, match="has no documents for query 'q1'"):
        rival("q1", Slate("oak", (Doc("oak"),)))


@pytest.mark.parametrize("text", ["feature:3", "scores:table.csv"])
def test_a_baseline_of_a_net_must_rank_texts(text):
    with pytest.raises(BadInput, match=f"the baseline {text} cannot rank texts"):
        read_text_baselines([text], trees())


def test_a_trained_model_is_a_baseline(tmp_path):
    collection = trees()
    LEARNERS.build("prank").fit(collection, QIDS[:8], folder=tmp_path / "model")
    plain, _ = JudgementSource().open_samples(training_data(collection), 5)
    source = BaselineLists(
        plain, TrainingPlan(baselines=(f"model:{tmp_path / 'model'}",)).open_text_baselines(collection)
    )
    (value,) = source.draw(0, 0).baseline_ndcg
    assert 0 < value <= 1


@pytest.mark.parametrize("objective", ["urisk(alpha=2.0, temperature=1.0)", "georisk(temperature=1.0)"])
def test_a_net_learns_not_to_lose(tmp_path, objective):
    collection = trees()
    learner = small("knrm", objective=objective, steps=60, every=20, lr=0.05, patience=9)
    plan = TrainingPlan(baselines=("bm25",))  # as `train --baseline bm25` has it
    model = learner.fit(collection, QIDS[:8], valid=QIDS[8:], folder=tmp_path / "model", plan=plan)
    card = model.read_card()
    assert (card["objective"], card["plan"]) == (objective, "judgements  bm25")
    losses = [row["loss"] for row in card["history"] if "loss" in row]
    assert losses[-1] < losses[0] - 0.05
    kept, measure = model.open(collection), learner.measure
    qids = QIDS[8:]
    found = {name: {} for name in ("bm25", "net")}
    for qid in qids:
        docnos = rank_docnos(BM25().open(collection).search([collection.queries[qid].text], 100)[0])
        slate = Slate(collection.queries[qid].text, tuple(collection.docs[docno] for docno in docnos))
        for name, ranker in (("bm25", BM25().open(collection)), ("net", kept)):
            found[name][qid] = dict(zip(docnos, ranker.score([slate])[0].tolist(), strict=True))
    table = score_table(measure, {qid: collection.qrels[qid] for qid in qids}, found)
    values = [table.row("bm25"), table.row("net")]
    risk = u_risk(values[1], values[0], 2.0) if "urisk" in objective else geo_risk(np.stack(values), 1.0)[-1]
    assert card["value"] == pytest.approx(float(risk), abs=1e-6), "validation is by the risk measure"
    assert card["valid"]["measure"] == f"{objective.partition('(')[0]} of nDCG@10"
    with pytest.raises(BadInput, match="needs a baseline to measure risk against"):
        learner.fit(collection, QIDS[:8], valid=QIDS[8:], folder=tmp_path / "none")


def test_a_teachers_scores_are_no_grades(tmp_path):
    plan = TrainingPlan(TeacherSource("bm25"), "georisk", ("bm25",))
    with pytest.raises(BadInput, match="a teacher's scores are not judgements"):
        small("knrm").fit(trees(), QIDS, folder=tmp_path / "model", plan=plan)


def test_labels_that_were_dealt_out_are_compared_as_dealt():
    collection = trees()
    source = BaselineLists(
        ShuffledLabelSource().open_samples(training_data(collection), 5)[0],
        TrainingPlan(baselines=("bm25",)).open_text_baselines(collection),
    )
    sample = source.draw(1, 0)
    slate = Slate(sample.query, tuple(map(Doc, sample.texts)))
    (scores,) = RANKERS.build("bm25").open(collection).score([slate])
    assert sample.baseline_ndcg == (list_ndcg(sample.labels, scores),)
