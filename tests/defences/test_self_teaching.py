"""Varied queries and self-teaching: draws, the direction of teaching, and a training with both."""

# ruff: noqa: E402
from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from shaketable.core.errors import BadInput, UnknownName
from shaketable.core.registries import LEARNERS, LIST_SOURCES, TRANSFORMS
from shaketable.nlp.edit_distance import damerau_levenshtein
from shaketable.training.list_sources import Sample
from shaketable.training.plan import JudgementSource, ShuffledLabelSource, TrainingData, TrainingPlan

torch = pytest.importorskip("torch")

from shaketable.core.registries import OBJECTIVES
from shaketable.defences.typos import TYPO_TRANSFORMS, SelfTeachingLoss, VariedLists, VariedQuerySource
from shaketable.nlp.analyzer import Analyzer
from shaketable.rankers.neural.knrm import KNRM
from shaketable.rankers.neural.shapes import KNRMShape
from shaketable.rankers.neural.words import Vocabulary
from shaketable.training.losses import MarginMSELoss, SoftmaxLoss, score_samples
from tests.training.test_neural import QIDS, small, trees


class Listed:
    """A source of given lists."""

    def __init__(self, *samples: Sample):
        self.samples = samples

    def __len__(self) -> int:
        return len(self.samples)

    def draw(self, number: int, turn: int) -> Sample:
        return self.samples[number]


QUERIES = [Sample(f"q{i}", query, ("a", "b"), (1.0, 0.0)) for i, query in enumerate(["tall Oak  trees", "willow", "x"])]


def make_varied_lists(**settings) -> VariedLists:
    edits = [TRANSFORMS.build(text) for text in settings.pop("transforms", TYPO_TRANSFORMS)]
    return VariedLists(Listed(*QUERIES), edits, **settings)


def test_a_variant_is_a_slip_away_and_all_else_stays():
    source = make_varied_lists(share=1.0)
    assert len(source) == 3
    for turn in range(30):
        sample = source.draw(0, turn)
        assert replace(sample, query_variant=None) == QUERIES[0]
        assert damerau_levenshtein(sample.query_variant, "tall Oak trees") == 1


def test_a_variant_is_a_function_of_seed_query_and_pass():
    source = make_varied_lists(share=1.0)
    assert source.draw(1, 4) == make_varied_lists(share=1.0).draw(1, 4)
    assert len({source.draw(1, turn).query_variant for turn in range(20)}) > 10
    assert any(source.draw(1, turn) != make_varied_lists(share=1.0, seed=1).draw(1, turn) for turn in range(5))
    alone = VariedLists(Listed(QUERIES[1]), [TRANSFORMS.build(text) for text in TYPO_TRANSFORMS], 1.0)
    assert [alone.draw(0, turn) for turn in range(5)] == [source.draw(1, turn) for turn in range(5)], "no company"


def test_a_share_of_the_lists_is_varied():
    source = make_varied_lists(share=0.3)
    drawn = [source.draw(1, turn) for turn in range(1000)]
    assert np.mean([sample.query_variant != sample.query for sample in drawn]) == pytest.approx(0.3, abs=0.05)
    assert all(sample.query_variant is not None for sample in drawn)


def test_every_transform_is_drawn_and_inapplicable_ones_are_skipped():
    source = make_varied_lists(share=1.0, transforms=("double_letter", "random_order_swap"))
    variants = {source.draw(0, turn).query_variant for turn in range(40)}
    words = sorted(QUERIES[0].query.split())
    assert {sorted(text.split()) == words for text in variants} == {True, False}
    assert all(source.draw(1, turn).query_variant != "willow" for turn in range(10)), "one word has no order to swap"
    only = make_varied_lists(share=1.0, transforms=("random_order_swap",))
    assert only.draw(1, 0).query_variant == "willow", "nothing applies"


def test_instead_replaces_the_query_by_the_variant():
    beside, instead = make_varied_lists(share=0.5), make_varied_lists(share=0.5, replace_query=True)
    for turn in range(10):
        assert instead.draw(0, turn) == replace(QUERIES[0], query=beside.draw(0, turn).query_variant)


def test_varied_queries_wrap_any_lists_and_have_a_text():
    lists = VariedQuerySource(ShuffledLabelSource(), ("real_typo",), 0.25, True)
    text = "varied_queries(lists=control, transforms=('real_typo',), share=0.25, instead=True)"
    assert LIST_SOURCES.spec(lists) == text
    assert LIST_SOURCES.build(text) == lists
    assert TrainingPlan(VariedQuerySource()).fingerprint != TrainingPlan(VariedQuerySource(share=0.4)).fingerprint
    collection = trees()
    training_data = TrainingData.prepare(collection, QIDS[:8], QIDS[8:], None, 20, 3)
    (plain, judged), (source, qrels) = (
        one.open_samples(training_data, 4) for one in (JudgementSource(), VariedQuerySource(share=1.0))
    )
    assert (len(source), qrels) == (len(plain), judged)
    assert replace(source.draw(2, 1), query_variant=None) == plain.draw(2, 1)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"transforms": ()}, "transforms should be one transform or more"),
        ({"share": 0.0}, "share should be above 0"),
        ({"share": 1.5}, "share should be above 0"),
        ({"transforms": ("add_queries",)}, "is a transform of documents"),
    ],
)
def test_senseless_settings_are_refused(settings, error):
    with pytest.raises(BadInput, match=error):
        VariedQuerySource(**settings)


def test_feature_learners_cannot_vary_queries(tmp_path):
    with pytest.raises(BadInput, match="varied queries are for neural nets only"):
        LEARNERS.build("ranksvm").fit(trees(), QIDS, folder=tmp_path / "m", plan=TrainingPlan(VariedQuerySource()))


# The objective


def net() -> KNRM:
    torch.manual_seed(0)
    return KNRM(Vocabulary(("oak", "elm", "ash"), Analyzer()), 3, KNRMShape())


SAMPLES = [
    Sample("1", "oak", ("oak", "elm ash", "oak elm"), (2.0, 0.0, 1.0), query_variant="ash"),
    Sample("2", "elm", ("elm", "oak"), (1.0, 0.0), query_variant="elm"),
    Sample("3", "ash elm", ("elm", "ash ash", "oak", "ash"), (0.0, 2.0, 0.0, 1.0), query_variant="elm oak"),
]


def of(some: KNRM, query: str, texts: tuple[str, ...]) -> list[float]:
    return [some(**some.collate(some.prepare([(query, text)]))).item() for text in texts]


def distribution(scores: list[float], temperature: float) -> list[float]:
    worth = [math.exp(score / temperature) for score in scores]
    return [one / sum(worth) for one in worth]


@pytest.mark.parametrize(("weight", "temperature"), [(1.0, 1.0), (2.5, 0.05)])
def test_the_loss_is_its_formula(weight, temperature):
    some, apart = net(), 0.0
    for sample in SAMPLES:
        p, q = (
            distribution(of(some, text, sample.texts), temperature) for text in (sample.query, sample.query_variant)
        )
        apart += sum(a * math.log(a / b) for a, b in zip(p, q, strict=True)) / len(SAMPLES)
    assert apart > 0
    found = SelfTeachingLoss("softmax", weight, temperature)(some, SAMPLES).item()
    assert found == pytest.approx(SoftmaxLoss()(some, SAMPLES).item() + weight * apart, rel=1e-4)


def test_a_query_teaches_its_variant_and_not_the_other_way_round():
    """With a natural loss that has no gradient what remains is that of the cross-entropy of a constant p with p'."""
    some = net()
    flat = [replace(sample, labels=tuple(of(some, sample.query, sample.texts))) for sample in SAMPLES]
    assert MarginMSELoss()(some, flat).item() == pytest.approx(0, abs=1e-8)
    SelfTeachingLoss("margin_mse")(some, flat).backward()
    found = some.combine.weight.grad.clone()
    some.zero_grad()
    total = 0.0
    for sample in SAMPLES[::2]:
        p = torch.tensor(distribution(of(some, sample.query, sample.texts), 1.0))
        scores, _, _ = score_samples(some, [replace(sample, query=sample.query_variant)])
        total = total - (p * scores[0].log_softmax(0)).sum() / len(SAMPLES)
    total.backward()
    assert found.abs().max() > 0
    torch.testing.assert_close(found, some.combine.weight.grad, rtol=1e-3, atol=1e-6)


def test_lists_without_a_variant_leave_the_natural_loss():
    some, same = net(), [replace(sample, query_variant=sample.query) for sample in SAMPLES]
    assert SelfTeachingLoss("hinge")(some, same).item() == OBJECTIVES.build("hinge")(some, same).item()


def test_an_objective_that_is_no_function_of_scores_can_be_natural():
    some = net()
    inner = SelfTeachingLoss("softmax", 0.5)
    outer = SelfTeachingLoss("self_teaching(weight=0.5)", 1.5)
    apart = inner(some, SAMPLES).item() - SoftmaxLoss()(some, SAMPLES).item()
    assert outer(some, SAMPLES).item() == pytest.approx(inner(some, SAMPLES).item() + 3 * apart, rel=1e-5)


def test_lists_without_variations_are_refused():
    with pytest.raises(BadInput, match="needs lists with a variation of the query; use the source varied_queries"):
        SelfTeachingLoss()(net(), [replace(SAMPLES[0], query_variant=None)])


@pytest.mark.parametrize("settings", ["weight=0", "weight=-1", "temperature=0", "temperature=1e999"])
def test_senseless_weights_are_refused(settings):
    with pytest.raises(BadInput, match="a number above 0"):
        OBJECTIVES.build(f"self_teaching({settings})")


def test_a_natural_objective_is_one_that_there_is():
    with pytest.raises(UnknownName):
        SelfTeachingLoss("nonsense")
    nested = "self_teaching(natural='softmax(temperature=0.05)')"
    assert OBJECTIVES.spec(OBJECTIVES.build(nested)) == nested


def test_a_net_that_teaches_itself_makes_less_of_slips(tmp_path):
    """On letters, so that a slip leaves something: the variants' lists come nearer to those of the queries."""
    collection, apart = trees(), {}
    lists = VariedQuerySource(transforms=("neighb_char_swap", "drop_letter"), share=1.0)
    learner = small("dssm", steps=60, every=20, lr=0.01, patience=9)
    for plan in (TrainingPlan(lists, "softmax"), TrainingPlan(lists, "self_teaching(weight=3.0)")):
        model = learner.fit(collection, QIDS[:8], valid=QIDS[8:], folder=tmp_path / plan.objective[:4], plan=plan)
        assert model.read_card()["plan"] == plan.spec
        trained = model.open(collection).net
        training_data = TrainingData.prepare(collection, QIDS[:8], QIDS[8:], None, 20, 99)
        source, _ = lists.open_samples(training_data, 6)
        samples = [source.draw(number, 50) for number in range(len(source))]
        with torch.no_grad():
            both = SelfTeachingLoss()(trained, samples) - SoftmaxLoss()(trained, samples)
        apart[plan.objective] = both.item()
    assert apart["self_teaching(weight=3.0)"] < apart["softmax"]
