"""Masked language models: logits as transformers has them, and a head tied to the pieces where there is none."""

from __future__ import annotations

import json

import pytest
import torch
from transformers import AlbertConfig, AlbertModel, AutoModel, AutoModelForMaskedLM, AutoTokenizer

from shaketable.core.errors import BadInput
from shaketable.nlp.checkpoints import silence_transformers
from shaketable.rankers.neural.masked import MaskedLM
from tests.rankers.neural import tiny

TEXTS = ["an old oak, a young oak", "pine", "elm fir yew"]


def batch_of(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    found = tokenizer(TEXTS, padding=True, return_tensors="pt")
    return {key: found[key] for key in ("input_ids", "attention_mask")}


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert"])
def test_states_and_logits_are_those_of_transformers(tmp_path, kind):
    folder = tiny.write_masked_model(tmp_path, kind)
    batch = batch_of(folder)
    with silence_transformers():
        theirs = AutoModelForMaskedLM.from_pretrained(folder).eval()
    ours = MaskedLM.from_checkpoint(folder).eval()
    assert ours.has_own_head
    with torch.inference_mode():
        expected = theirs(**batch, output_hidden_states=True)
        states = ours.compute_states(**batch)
        torch.testing.assert_close(states, expected.hidden_states[-1])
        torch.testing.assert_close(ours.compute_logits(states), expected.logits)
        torch.testing.assert_close(ours.compute_logits(states[1, 2]), expected.logits[1, 2])


def test_without_a_head_the_pieces_are_the_head(tmp_path):
    folder = tiny.encoder(tmp_path)
    model = MaskedLM.from_checkpoint(folder).eval()
    assert not model.has_own_head
    with silence_transformers():
        theirs = AutoModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        states = theirs(**batch_of(folder)).last_hidden_state
        model.bias[7] = 2.5
        logits = model.compute_logits(model.compute_states(**batch_of(folder)))
        for piece in (0, 7, 20):
            expected = states[1, 2] @ theirs.embeddings.word_embeddings.weight[piece] + (2.5 if piece == 7 else 0)
            assert logits[1, 2, piece].item() == pytest.approx(expected.item(), abs=1e-5)


def test_on_real_weights_a_state_predicts_its_own_piece(minilm):
    """Why the head is tied and has no layer of its own: half of the pieces are among the five likeliest."""
    tokenizer = AutoTokenizer.from_pretrained(minilm)
    model = MaskedLM.from_checkpoint(minilm).eval()
    found = tokenizer(
        "Green tea is brewed with water that is not boiling, so that it is not bitter.", return_tensors="pt"
    )
    with torch.inference_mode():
        logits = model.compute_logits(
            model.compute_states(input_ids=found["input_ids"], attention_mask=found["attention_mask"])
        )[0]
    own = logits.gather(1, found["input_ids"][0][:, None])
    assert (logits > own).sum(1).median() < 5


def test_the_same_model_without_weights(tmp_path):
    for number, folder in enumerate([tiny.write_masked_model(tmp_path / "a"), tiny.encoder(tmp_path / "b")]):
        model = MaskedLM.from_checkpoint(folder)
        about = json.loads(json.dumps(model.to_config()))
        again = MaskedLM.from_config(about)
        assert again.has_own_head is (number == 0)
        assert again.state_dict().keys() == model.state_dict().keys()


def test_a_model_that_fits_neither_head_is_refused(tmp_path):
    config = AlbertConfig(vocab_size=len(tiny.VOCABULARY), embedding_size=16, **tiny.SIZES)
    with silence_transformers():
        AlbertModel(config).save_pretrained(tmp_path)
    tiny.wordpiece(tmp_path)
    with pytest.raises(BadInput, match="sizes 32 and 16"):
        MaskedLM.from_checkpoint(tmp_path)


def test_missing_weights_of_a_head_are_refused(tmp_path):
    folder = tiny.encoder(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    tiny.write(folder / "config.json", config | {"architectures": ["BertForMaskedLM"]})
    with pytest.raises(BadInput, match="has no weights for cls"):
        MaskedLM.from_checkpoint(folder)
