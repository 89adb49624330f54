"""monoT5: scores as transformers generates its first word, one pair at a time, without our pieces and batches."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from shaketable.core.documents import Collection, Doc, Query
from shaketable.core.errors import BadInput
from shaketable.core.registries import RANKERS
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.nlp.checkpoints import silence_transformers
from shaketable.rankers.neural.models import T5
from shaketable.rankers.neural.monot5 import MonoT5
from shaketable.rankers.neural.scoring import make_ranker
from shaketable.rankers.neural.shapes import MonoT5Shape
from shaketable.testing import check_model, check_ranker
from tests.rankers.neural import tiny
from tests.rankers.neural.tiny import SLATES

PAIRS = [(slate.query, doc.text) for slate in SLATES for doc in slate.docs]


def directly(folder, pairs, limit):
    """Return the first generated word and its probability, with each pair alone and the prompt as one text."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with silence_transformers():
        model = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    true, false = (tokenizer(word, add_special_tokens=False)["input_ids"][0] for word in ("true", "false"))
    end = tokenizer("Relevant:")["input_ids"]
    scores = []
    for query, text in pairs:
        said = tokenizer(f"Query: {query} Document: {text}", add_special_tokens=False)["input_ids"]
        ids = torch.tensor([said[: limit - len(end)] + end])
        with torch.inference_mode():
            out = model.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=1,
                do_sample=False,
                output_logits=True,
                return_dict_in_generate=True,
            )
        answers = out.logits[0][0].double()
        scores.append((answers[true] - torch.logsumexp(answers[[true, false]], 0)).item())
    return np.array(scores)


def ranker(net):
    return make_ranker("tiny", "mark", net, MemoryCorpus({}))


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("limit", [512, 40])
def test_agrees_with_transformers(tmp_path, tied, limit):
    folder = tiny.t5(tmp_path, tied=tied)
    scores = np.concatenate(ranker(MonoT5.from_checkpoint(str(folder), MonoT5Shape(max_length=limit))).score(SLATES))
    assert scores == pytest.approx(directly(folder, PAIRS, limit), abs=1e-5)
    assert np.ptp(scores) > 0.01
    assert (scores < 0).all()


def test_sure_answers_do_not_tie(tmp_path):
    net = MonoT5.from_checkpoint(str(tiny.t5(tmp_path, tied=False)), MonoT5Shape())
    with torch.no_grad():
        net.model.lm_head.weight[net._answer_ids[0]] *= 80
        scores = net(**net.collate(net.prepare([("oak", f"oak {word}") for word in ("elm", "fir", "yew", "ash")])))
    assert (scores.abs() < 1e-8).all()
    assert len(set(scores.tolist())) == 4


def test_pieces_of_the_parts_are_those_of_the_prompt(tmp_path):
    net = MonoT5.from_checkpoint(str(tiny.t5(tmp_path)), MonoT5Shape())
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    for (query, text), row in zip(PAIRS, net.prepare(PAIRS), strict=True):
        assert row.ids.tolist() == tokenizer(f"Query: {query} Document: {text} Relevant:")["input_ids"]
        assert not row.truncated


@pytest.mark.parametrize("limit", [24, 25, 40])
def test_the_prompt_is_never_cut(tmp_path, limit):
    net = MonoT5.from_checkpoint(str(tiny.t5(tmp_path)), MonoT5Shape(max_length=limit))
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    for query, text in [("oak elm", "fir yew " * 40), ("oak " * 90, "fir"), ("oak " * 90, "fir yew " * 40)]:
        (row,) = net.prepare([(query, text)])
        read = tokenizer.decode(row.ids)
        assert row.truncated
        assert row.length == limit
        assert read.startswith("Query: oak")
        assert " Document: fir" in read
        assert read.endswith("Relevant:</s>")


def test_keeps_the_contract(tmp_path):
    check_ranker(ranker(MonoT5.from_checkpoint(str(tiny.t5(tmp_path)), MonoT5Shape())))


def test_gradients_reach_every_parameter_and_the_word_embeddings(tmp_path):
    net = MonoT5.from_checkpoint(str(tiny.t5(tmp_path)), MonoT5Shape()).train()
    net(**net.collate(net.prepare(PAIRS))).sum().backward()
    without = {name for name, weight in net.named_parameters() if weight.grad is None}
    assert without == set()
    assert net.embedding().weight.grad.abs().sum() > 0


def test_the_ranker_by_its_name(tmp_path):
    folder = tiny.t5(tmp_path)
    model = RANKERS.build(f"t5:{folder}")
    assert model == T5(str(folder))
    assert RANKERS.spec(model) == f"t5:{folder}"
    docs = MemoryCorpus({"a": Doc("an old oak"), "b": Doc("pine"), "c": Doc("elm, fir")})
    check_model(model, Collection("trees", docs, {"1": Query("oak"), "2": Query("fir tree")}))


def test_other_models_than_monot5_are_refused(tmp_path):
    with pytest.raises(BadInput, match="is a bert model; one of the T5 family is needed"):
        MonoT5.from_checkpoint(str(tiny.encoder(tmp_path / "bert")), MonoT5Shape())
    with pytest.raises(BadInput, match="no tokens are left for a query and a text in max_length=8"):
        MonoT5.from_checkpoint(str(tiny.t5(tmp_path / "t5")), MonoT5Shape(max_length=8))
    with pytest.raises(BadInput, match="max_length should be 16 or more, not 0"):
        T5("somewhere", max_length=0)
    with pytest.raises(BadInput, match="not a checkpoint that transformers can read"):
        MonoT5.from_checkpoint(str(tmp_path), MonoT5Shape())
    folder = tiny.t5(tmp_path / "strange")
    about = json.loads((folder / "tokenizer.json").read_text())
    about["model"]["vocab"] = [
        [piece if piece not in ("▁true", "▁false") else f"{piece}x", score] for piece, score in about["model"]["vocab"]
    ]
    tiny.write(folder / "tokenizer.json", about)
    with pytest.raises(BadInput, match="in which true and false start with the same piece"):
        MonoT5.from_checkpoint(str(folder), MonoT5Shape())
