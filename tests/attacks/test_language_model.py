"""Language models of attacks: n-grams that have not read the text they judge."""

from __future__ import annotations

import numpy as np
import pytest

from shaketable.attacks.language_model import open_cross_fitted_lm, open_language_model
from shaketable.core.documents import Doc
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.nlp.ngram_model import learn_ngrams
from shaketable.retrieval.ngram_models import open_ngrams
from tests.attacks.setups import knowledge_of, load_sample

SAMPLE = load_sample()
TEXTS = [doc.text for _, doc in SAMPLE.docs.items()]


def test_each_document_is_in_one_half():
    halves = open_cross_fitted_lm(SAMPLE.docs).models
    read = [model.perplexity(TEXTS) for model in halves]
    learned = np.array(read).argmin(0)  # a model that has read a text is far less perplexed by it
    assert 0.4 < learned.mean() < 0.6
    assert (np.max(read, 0) > 3 * np.min(read, 0)).mean() > 0.99


def test_a_text_of_the_collection_is_as_perplexing_as_to_a_model_without_it():
    """To a model of all other texts it is about as perplexing as to the halves; to one that has read it, far less."""
    halves, recognised = open_cross_fitted_lm(SAMPLE.docs).perplexity(TEXTS), open_ngrams(SAMPLE.docs).perplexity(TEXTS)
    left_out = [learn_ngrams(TEXTS[:i] + TEXTS[i + 1 :]).perplexity([TEXTS[i]])[0] for i in range(0, len(TEXTS), 40)]
    ratio = np.log(halves[::40] / np.array(left_out))
    assert abs(ratio).mean() < 0.5
    assert np.log(np.array(left_out) / recognised[::40]).mean() > 2


def test_perplexity_is_that_of_the_logs_in_any_order_and_alone():
    model = open_cross_fitted_lm(SAMPLE.docs)
    texts = [*TEXTS[:5], "", "the wing the wing", "zzz qqq"]
    values = model.perplexity(texts)
    assert values == pytest.approx([10 ** -logs.mean() for logs in model.log_probs(texts)])
    assert np.array_equal(values[::-1], model.perplexity(texts[::-1]))
    assert [model.perplexity([text])[0] for text in texts] == values.tolist()


def test_a_collection_of_one_document_or_none():
    for docs in ({}, {"d": Doc("a boat")}):
        values = open_cross_fitted_lm(MemoryCorpus(docs)).perplexity(["a boat", ""])
        assert np.isfinite(values).all()


def test_a_model_is_opened_once():
    knowledge = knowledge_of(SAMPLE)
    assert open_language_model("ngrams", knowledge) is open_language_model("ngrams", knowledge)
