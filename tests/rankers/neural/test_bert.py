"""Cross-encoders score as transformers does, one pair at a time, without our tokens and batches."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from shaketable.core.errors import BadInput
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.nlp.checkpoints import silence_transformers
from shaketable.rankers.neural.bert import CrossEncoder
from shaketable.rankers.neural.scoring import make_ranker
from shaketable.rankers.neural.shapes import BertShape
from shaketable.testing import check_ranker
from tests.rankers.neural import tiny
from tests.rankers.neural.tiny import SLATES

PAIRS = [(slate.query, doc.text) for slate in SLATES for doc in slate.docs]
REAL = [
    ("how are tides made", "The moon's gravity pulls the oceans, which bulge towards it: tides, twice a day."),
    ("how are tides made", "word " * 700),
    ("naïve café?", "A café is “a small restaurant” — 咖啡馆."),
    ("tide " * 300, "sea " * 400),
]


def directly(folder, pairs, limit, logit, **settings):
    """Each pair alone through transformers' own tokenizer and model."""
    torch.manual_seed(7)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with silence_transformers():
        model = AutoModelForSequenceClassification.from_pretrained(folder, **settings).eval()
    scores = []
    for query, text in pairs:
        batch = tokenizer([query], [text], truncation=True, max_length=limit, return_tensors="pt")
        with torch.inference_mode():
            scores.append(logit(model(**batch).logits[0]).item())
    return np.array(scores)


def one(logits):
    return logits[0]


def odds(logits):
    probability = logits.double().softmax(0)[1]
    return torch.log(probability / (1 - probability))


def ranker(net):
    return make_ranker("tiny", "mark", net, MemoryCorpus({}))


def flat(arrays):
    return np.concatenate(arrays)


@pytest.mark.parametrize(("logits", "logit"), [(1, one), (2, odds)], ids=["one logit", "two logits"])
def test_agrees_with_transformers(tmp_path, logits, logit):
    folder = tiny.bert(tmp_path, logits)
    scores = flat(ranker(CrossEncoder.from_checkpoint(str(folder), BertShape(max_length=0))).score(SLATES))
    assert scores == pytest.approx(directly(folder, PAIRS, 64, logit), abs=1e-5)
    assert np.ptp(scores) > 0.01


def test_agrees_with_transformers_on_a_vocabulary_of_bytes(tmp_path):
    folder = tiny.roberta(tmp_path)
    net = CrossEncoder.from_checkpoint(str(folder), BertShape(max_length=0))
    assert net.max_length == 62  # positions count from 2 on
    assert flat(ranker(net).score(SLATES)) == pytest.approx(directly(folder, PAIRS, 62, one), abs=1e-5)


def test_agrees_with_transformers_on_real_weights(minilm):
    torch.manual_seed(7)
    net = CrossEncoder.from_checkpoint("minilm", BertShape(max_length=0), fresh=True).eval()
    with torch.inference_mode():
        ours = net(**net.collate(net.prepare(REAL))).numpy()
    assert ours == pytest.approx(directly(minilm, REAL, 512, one, num_labels=1), abs=1e-5)


@pytest.mark.parametrize("make", [tiny.bert, tiny.roberta])
@pytest.mark.parametrize("limit", [16, 17, 40])
def test_tokens_are_those_of_the_tokenizer(tmp_path, make, limit):
    net = CrossEncoder.from_checkpoint(str(make(tmp_path)), BertShape(max_length=limit))
    long = [("oak elm " * n, "fir, yew " * m) for n in (0, 1, 4, 30) for m in (0, 1, 5, 40)]
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    for (query, text), row in zip(long, net.prepare(long), strict=True):
        theirs = {key: rows[0] for key, rows in tokenizer([query], [text], truncation=True, max_length=limit).items()}
        assert row.ids.tolist() == theirs["input_ids"]
        assert row.type_ids.tolist() == theirs.get("token_type_ids", [0] * len(row.ids))
        assert row.truncated == (len(tokenizer([query], [text])["input_ids"][0]) > limit)


def test_truncated_texts_are_counted(tmp_path):
    opened = ranker(CrossEncoder.from_checkpoint(str(tiny.bert(tmp_path)), BertShape(max_length=0)))
    opened.score(SLATES)
    assert opened.texts_truncated == 1
    opened.score(SLATES)
    assert opened.texts_truncated == 2
    assert opened.remark.startswith(f"2 of {opened.texts_read} texts")


def test_keeps_the_contract(tmp_path):
    check_ranker(ranker(CrossEncoder.from_checkpoint(str(tiny.bert(tmp_path)), BertShape(max_length=0))))


def test_gradients_reach_every_parameter_and_the_word_embeddings(tmp_path):
    net = CrossEncoder.from_checkpoint(str(tiny.encoder(tmp_path)), BertShape(max_length=0), fresh=True).train()
    net(**net.collate(net.prepare(PAIRS))).sum().backward()
    assert all(weight.grad is not None for weight in net.parameters())
    assert net.embedding().weight.grad.abs().sum() > 0


def test_a_fresh_head_has_one_logit_whatever_the_checkpoint_had(tmp_path):
    net = CrossEncoder.from_checkpoint(str(tiny.encoder(tmp_path)), BertShape(max_length=0), fresh=True)
    assert net.model.classifier.weight.shape == (1, 32)


def test_a_limit_beyond_the_positions_is_refused(tmp_path):
    with pytest.raises(BadInput, match="reads 64 tokens at most; max_length=65 is more"):
        CrossEncoder.from_checkpoint(str(tiny.bert(tmp_path)), BertShape(max_length=65))
