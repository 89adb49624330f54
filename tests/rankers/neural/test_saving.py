"""A saved net gives the same scores, and a folder without a net is an error."""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors import safe_open

from shaketable.core.documents import Collection, Doc, Query
from shaketable.core.errors import BadInput, Damaged, UnknownName
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.files.checksums import read_sealed_json, seal_json
from shaketable.nlp.analyzer import Analyzer
from shaketable.rankers.neural import knrm, saving
from shaketable.rankers.neural.bert import CrossEncoder
from shaketable.rankers.neural.colbert import ColBERT
from shaketable.rankers.neural.dense import BiEncoder
from shaketable.rankers.neural.epic import EPIC
from shaketable.rankers.neural.models import TrainedNet
from shaketable.rankers.neural.monot5 import MonoT5
from shaketable.rankers.neural.saving import FittedNet
from shaketable.rankers.neural.scoring import make_ranker
from shaketable.rankers.neural.shapes import BertShape, ColBERTShape, DenseShape, EPICShape, KNRMShape, MonoT5Shape
from shaketable.rankers.neural.words import Vocabulary
from shaketable.testing import check_model
from tests.rankers.neural import tiny
from tests.rankers.neural.tiny import SLATES

DOCS = MemoryCorpus({"a": Doc("an old oak"), "b": Doc("pine"), "c": Doc("elm, fir")})
COLLECTION = Collection("trees", DOCS, {"1": Query("oak"), "2": Query("fir tree")})

NETS = {
    "bert": lambda folder: CrossEncoder.from_checkpoint(
        str(tiny.encoder(folder)), BertShape(max_length=40), fresh=True
    ),
    "hf": lambda folder: CrossEncoder.from_checkpoint(str(tiny.bert(folder, logits=2)), BertShape(max_length=0)),
    "roberta": lambda folder: CrossEncoder.from_checkpoint(str(tiny.roberta(folder)), BertShape(max_length=0)),
    "colbert": lambda folder: ColBERT.from_checkpoint(
        str(tiny.encoder(folder)), ColBERTShape(dim=8, query_length=12, text_length=20)
    ),
    "dense": lambda folder: BiEncoder.from_checkpoint(
        str(tiny.encoder(folder)), DenseShape(max_length=30, pooling="cls", query_prefix="oak: ")
    ),
    "epic": lambda folder: EPIC.from_checkpoint(
        str(tiny.write_masked_model(folder)), EPICShape(max_length=30, keep=20)
    ),
    "epic on a bare encoder": lambda folder: EPIC.from_checkpoint(str(tiny.encoder(folder)), EPICShape(max_length=30)),
    "t5": lambda folder: MonoT5.from_checkpoint(str(tiny.t5(folder)), MonoT5Shape(max_length=40)),
    "untied t5": lambda folder: MonoT5.from_checkpoint(str(tiny.t5(folder, tied=False)), MonoT5Shape()),
}


@pytest.mark.parametrize("kind", NETS)
def test_a_saved_net_scores_as_it_did(tmp_path, kind):
    net = NETS[kind](tmp_path / "checkpoint")
    FittedNet(net, {"steps": 3}).save(tmp_path / "model")
    expected = make_ranker("before", "mark", net, DOCS).score(SLATES)
    model = TrainedNet(str(tmp_path / "model"))
    for a, b in zip(expected, model.open(COLLECTION).score(SLATES), strict=True):
        assert a.tolist() == b.tolist()
    check_model(model, COLLECTION)
    about = json.loads((tmp_path / "model" / "model.json").read_text())
    assert (about["schema"], about["kind"], about["card"]) == ("shaketable.model/2", net.kind, {"steps": 3})
    assert str(tmp_path) not in json.dumps(about)


def save_model(tmp_path, kind="dense"):
    folder = tmp_path / "model"
    FittedNet(NETS[kind](tmp_path / "checkpoint"), {}).save(folder)
    return folder


def change_settings(folder, **changes):
    """Change settings of model.json and update its checksum."""
    about = read_sealed_json(folder / "model.json")
    (folder / "model.json").write_text(seal_json(about | changes))


def weights_of(folder):
    (path,) = folder.glob("*/weights.safetensors")
    return path


def test_weights_with_two_names_are_written_once_and_stay_tied(tmp_path):
    folder = save_model(tmp_path, "epic")
    with safe_open(weights_of(folder), "pt") as file:
        names = set(file.keys())
    net = saving.read_net(folder)
    table, head = net.embedding().weight, net.encoder.model.get_output_embeddings().weight
    assert table is head
    assert len(names) == len(list(net.named_parameters())) < len(net.state_dict())


def test_the_fingerprint_follows_weights_and_settings_but_not_the_card(tmp_path):
    folder = save_model(tmp_path)
    before = saving.compute_fingerprint(folder)
    change_settings(folder, card={"seconds": 9})
    assert saving.compute_fingerprint(folder) == before
    config = saving.read_description(folder)["config"]
    config["shape"]["max_length"] = 20
    change_settings(folder, config=config)
    shorter = saving.compute_fingerprint(folder)
    assert shorter != before
    net = saving.read_net(folder)
    net.embedding().weight.data += 0.1
    FittedNet(net, {}).save(folder, overwrite=True)
    assert len({before, shorter, saving.compute_fingerprint(folder)}) == 3
    assert len(list(folder.iterdir())) == 2


def test_gradients_may_flow_after_loading(tmp_path):
    net = saving.read_net(save_model(tmp_path))
    net(**net.collate(net.prepare([("oak", "an oak")]))).sum().backward()
    assert np.abs(net.embedding().weight.grad.numpy()).sum() > 0


def test_folders_that_hold_no_saved_model(tmp_path):
    with pytest.raises(BadInput, match=r"has no saved model: there is no model.json"):
        TrainedNet(str(tmp_path)).open(COLLECTION)
    (tmp_path / "model.json").write_text("{")
    with pytest.raises(Damaged, match=r"model.json: is not valid JSON"):
        saving.read_net(tmp_path)
    about = {"schema": "shaketable.model/2", "kind": "bert", "config": {}, "place": "", "files": {}}
    (tmp_path / "model.json").write_text(seal_json(about | {"schema": "shaketable.model/1"}))
    with pytest.raises(BadInput, match=r"is not a saved model of this version \(shaketable.model/2\)"):
        saving.read_net(tmp_path)
    (tmp_path / "model.json").write_text(seal_json(about | {"kind": "bret"}))
    with pytest.raises(UnknownName, match="no neural model is called 'bret'; did you mean bert"):
        saving.read_net(tmp_path)
    (tmp_path / "model.json").write_text(seal_json(about))
    with pytest.raises(BadInput, match=r"describes a model that cannot be created \(KeyError\('model'\)\)"):
        saving.read_net(tmp_path)


def test_weights_that_are_absent_or_broken(tmp_path):
    folder = save_model(tmp_path)
    weights = weights_of(folder)
    content = bytearray(weights.read_bytes())
    content[-7] ^= 1
    weights.write_bytes(content)
    with pytest.raises(Damaged, match=r"weights.safetensors: is damaged, or was changed by"):
        saving.read_net(folder)
    weights.unlink()
    with pytest.raises(
        Damaged, match=r"weights.safetensors: cannot be read \(No such file or directory\); train the mo"
    ):
        saving.read_net(folder)


def test_no_file_comes_among_those_of_a_model(tmp_path):
    folder = save_model(tmp_path)
    (weights_of(folder).parent / "added_tokens.json").write_text('{"oak": 3}')
    with pytest.raises(Damaged, match=r"added_tokens.json: is not a file of this model; remove it"):
        saving.read_net(folder)


def test_weights_of_another_model(tmp_path):
    folder, other = save_model(tmp_path), save_model(tmp_path / "other", "bert")
    about = read_sealed_json(other / "model.json")
    change_settings(folder, place=f"../other/model/{about['place']}", files=about["files"])
    with pytest.raises(BadInput, match="has an invalid list of files"):
        saving.read_net(folder)
    (other / about["place"]).rename(folder / about["place"])
    change_settings(folder, place=about["place"], files=about["files"])
    with pytest.raises(BadInput, match=r"weights.safetensors: does not have the weights that .*model.json describes"):
        saving.read_net(folder)


@pytest.mark.parametrize(
    ("where", "changes", "sentence"),
    [
        ("encoder", {"auto_map": {"AutoModel": "evil.Evil"}}, "needs its own code"),
        ("encoder", {"model_type": "evil"}, "is of the type 'evil', which transformers does not know"),
        ("encoder", {"quantization_config": {"quant_method": "awq"}}, "describes quantised weights"),
        ("encoder", {"num_hidden_layers": 10**9}, "num_hidden_layers = 1000000000"),
        ("encoder", {"vocab_size": 10**7}, "does not have the weights"),
        ("encoder", {"hidden_size": "many"}, "Validation error"),
        ("shape", {"max_length": 10**9}, "max_length is 1000000000"),
        ("shape", {"knife": 1}, "unexpected keyword argument 'knife'"),
    ],
)
def test_a_folder_cannot_run_code_or_take_all_memory(tmp_path, where, changes, sentence):
    """Even if its checksum is right."""
    folder = save_model(tmp_path)
    config = saving.read_description(folder)["config"]
    change_settings(folder, config=config | {where: config[where] | changes})
    with pytest.raises(BadInput, match=sentence):
        saving.read_net(folder)


def test_a_net_on_words_cannot_take_all_memory(tmp_path):
    folder = tmp_path / "model"
    FittedNet(knrm.KNRM(Vocabulary(("oak", "elm"), Analyzer()), 4, KNRMShape()), {}).save(folder)
    config = saving.read_description(folder)["config"]
    for dim in (10**6, 10**12, "x", -3):
        change_settings(folder, config=config | {"dim": dim})
        with pytest.raises(
            BadInput,
            match=r"does not have the weights|describes a model that cannot be created",
        ):
            saving.read_net(folder)
