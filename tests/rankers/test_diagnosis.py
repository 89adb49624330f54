"""The diagnosis of a ranker: faults are named from its answers to questions with known answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from weights import MINILM_L12

from shaketable.core.errors import RankerFailed
from shaketable.core.registries import RANKERS
from shaketable.core.seeding import make_item_rng
from shaketable.datasets.known_answers import build_question_collection, read_known_answers
from shaketable.rankers.diagnosis.diagnose import diagnose_ranker
from shaketable.rankers.diagnosis.evidence import compare_margins


class Overlap:
    """A ranker in order: the letters of the words that query and text share, fewer in long texts."""

    name = "overlap"

    def score_text(self, query, text):
        words = text.lower().replace(".", " ").replace(",", " ").split()
        return sum(len(word) for word in set(query.lower().split()) & set(words)) / (3 + len(words) ** 0.25)

    def score(self, slates):
        return [
            np.array(self.change([self.score_text(slate.query, doc.text) for doc in slate.docs], slate))
            for slate in slates
        ]

    def change(self, scores, slate):
        return scores


class FailsOpen(Overlap):
    """Returns the input order, one score or too few scores in a tenth of its answers to lists."""

    def __init__(self, way):
        self.way, self.calls, self.failed = way, 0, 0

    def change(self, scores, slate):
        self.calls += 1
        if len(scores) < 5 or make_item_rng(self.calls, "fails").random() >= 0.1:
            return scores
        self.failed += 1
        return {"order": [-float(i) for i in range(len(scores))], "one": [0.5] * len(scores), "fewer": scores[1:]}[
            self.way
        ]


class ChangedScores(Overlap):
    """A ranker whose scores a function changes."""

    def __init__(self, function):
        self.function = function

    def change(self, scores, slate):
        return self.function(scores, slate)


class Cut(Overlap):
    """A ranker that reads the first words of a text."""

    def __init__(self, words):
        self.words = words

    def score_text(self, query, text):
        return super().score_text(query, " ".join(text.split()[: self.words]))


def list_kinds(ranker):
    return [fault.kind for fault in diagnose_ranker(ranker, "mine").faults]


@pytest.mark.parametrize("spec", ["bm25", "ql", "bm25(b=0)"])
def test_rankers_in_order_have_no_fault(spec):
    diagnosis = diagnose_ranker(RANKERS.build(spec).open(build_question_collection()), spec)
    assert diagnosis.summary == "The ranker answers 40 of 40 questions; no fault found."
    assert {check.severity for check in diagnosis.checks} == {"ok"}


@pytest.mark.parametrize("way", ["order", "one", "fewer"])
def test_lists_that_fail_open_are_counted(way):
    ranker = FailsOpen(way)
    diagnosis = diagnose_ranker(ranker, "mine", lists=200)
    assert [fault.kind for fault in diagnosis.faults] == ["fails open"]
    words = {"order": "in input order", "one": "with the score 0.5 for all texts", "fewer": "with fewer results"}
    assert words[way] in diagnosis.summary
    assert "of 120 with 8 texts" in diagnosis.summary
    assert "median time" in diagnosis.summary
    count = int(diagnosis.summary.split("fails open: ")[1].split()[0])
    assert 10 <= count <= ranker.failed


def test_equal_texts_are_no_failure():
    """A ranker that gives one score to texts without a word of the query does not fail open."""
    assert "fails open" not in list_kinds(ChangedScores(lambda scores, slate: [float(score > 2) for score in scores]))


FAULTS = {
    "inverted scores": ChangedScores(lambda scores, slate: [-score for score in scores]),
    "constant scores": ChangedScores(lambda scores, slate: [0.5 for _ in scores]),
    "input order": ChangedScores(lambda scores, slate: sorted(scores)[::-1]),
    "untrained head": ChangedScores(lambda scores, slate: [0.3 if score > 1 else -0.4 for score in scores]),
    "query ignored": ChangedScores(lambda scores, slate: [float(len(doc.text)) for doc in slate.docs]),
    "truncation": Cut(30),
    "order dependence": ChangedScores(lambda scores, slate: [score - 0.4 * i for i, score in enumerate(scores)]),
    "batch differs": ChangedScores(
        lambda scores, slate: [s * (1 - 0.02 * (max(len(d.text) for d in slate.docs) // 100)) for s in scores]
    ),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_planted_fault_is_named(kind):
    assert list_kinds(FAULTS[kind])[0] == kind


def test_scores_that_are_normalised_over_the_list_are_no_fault():
    def normalise(scores, slate):
        sizes = np.exp(np.array(scores))
        return (sizes / sizes.sum()).tolist()

    assert list_kinds(ChangedScores(normalise)) == []


def test_a_missing_prefix_is_named():
    class Prefixed(Overlap):
        def score_text(self, query, text):
            if query.startswith("search_query: "):
                return super().score_text(query.removeprefix("search_query: "), text)
            return make_item_rng(0, query, text).random()

    (fault,) = diagnose_ranker(Prefixed(), "mine").faults
    assert fault.kind == "missing template"
    assert "search_query" in fault.sentence


def test_a_ranker_that_cannot_be_asked():
    class Broken(Overlap):
        def change(self, scores, slate):
            raise ValueError("no model")

    with pytest.raises(RankerFailed, match="no model"):
        diagnose_ranker(Broken(), "mine")


def test_the_questions_are_distinct():
    questions = read_known_answers()
    texts = [text for one in questions for text in (one.query, one.relevant, one.irrelevant)]
    assert len(questions) == 40
    assert len(set(texts)) == len(texts)


@pytest.fixture(scope="module")
def cross_encoder_folder(real_models) -> Path:
    """The real cross-encoder ms-marco-MiniLM-L-12-v2."""
    if MINILM_L12 not in real_models:
        pytest.skip(f"{MINILM_L12} is not built: make models")
    return real_models[MINILM_L12]


class CrossEncoder:
    """A cross-encoder in parts, so that each part can be broken; vectors of pairs are computed once."""

    name = "cross-encoder"

    def __init__(self, folder):
        transformers = pytest.importorskip("transformers")
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
        self.head, self.max_length, self.swap, self.known = self.model.classifier, 512, False, {}

    def score(self, slates):
        return [self.score_pairs([(slate.query, doc.text) for doc in slate.docs]) for slate in slates]

    def score_pairs(self, pairs):
        import torch

        pairs = [pair[::-1] if self.swap else pair for pair in pairs]
        new = [pair for pair in dict.fromkeys(pairs) if (pair, self.max_length) not in self.known]
        with torch.no_grad():
            if new:
                tokens = self.tokenizer(
                    [list(pair) for pair in new],
                    return_tensors="pt",
                    padding=True,
                    truncation=True,
                    max_length=self.max_length,
                )
                vectors = self.model.bert(**tokens).pooler_output
                self.known |= {(pair, self.max_length): vector for pair, vector in zip(new, vectors, strict=True)}
            vectors = torch.stack([self.known[pair, self.max_length] for pair in pairs])
            return self.head(vectors)[:, 0].numpy().astype(float)


@pytest.fixture(scope="module")
def encoder(cross_encoder_folder):
    return CrossEncoder(cross_encoder_folder)


@pytest.mark.slow
class TestCrossEncoder:
    def test_the_trained_model_passes(self, encoder):
        assert diagnose_ranker(encoder, "mine").summary == "The ranker answers 40 of 40 questions; no fault found."

    @pytest.mark.parametrize("seed", range(4))
    def test_a_missing_head_is_named(self, encoder, monkeypatch, seed):
        import torch

        head = torch.nn.Linear(encoder.model.config.hidden_size, 1)
        with torch.no_grad():
            head.weight.normal_(0, 0.02, generator=torch.Generator().manual_seed(seed))
            head.bias.zero_()
        monkeypatch.setattr(encoder, "head", head)
        assert list_kinds(encoder) == ["untrained head"]

    def test_swapped_segments_are_named(self, encoder, monkeypatch):
        monkeypatch.setattr(encoder, "swap", True)
        assert list_kinds(encoder)[0] == "swapped roles"

    def test_a_short_maximum_length_is_named(self, encoder, monkeypatch):
        monkeypatch.setattr(encoder, "max_length", 16)
        assert list_kinds(encoder)[0] == "truncation"


def test_margins_in_another_form_are_compared_by_separation():
    usual, other = np.array([0.0, 2.0, np.nan, 1.0]), np.array([3.0, 5.0, 1.0, np.nan])
    found = compare_margins(usual, other)
    assert (found.answered, found.larger, found.total) == (2, 2, 2)
    assert (found.usual, found.ratio) == (1.0, 4.0), "means 1 and 4 over a standard deviation of 1"
    assert compare_margins(np.zeros(2), other[:2]).ratio == np.inf
    assert compare_margins(usual[:2], np.zeros(2)).ratio == 0.0
