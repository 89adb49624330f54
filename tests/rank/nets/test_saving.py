"""A saved net scores as it did, and a folder that holds none says why."""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors import safe_open

from shaketable.data.corpus import MemoryCorpus
from shaketable.errors import BadInput, UnknownName
from shaketable.rank.nets import saving
from shaketable.rank.nets.bert import CrossEncoder
from shaketable.rank.nets.colbert import ColBERT
from shaketable.rank.nets.colbert import Shape as Late
from shaketable.rank.nets.dense import BiEncoder, Shape
from shaketable.rank.nets.epic import EPIC
from shaketable.rank.nets.epic import Shape as Wide
from shaketable.rank.nets.scoring import ranker_of
from shaketable.rank.nets.t5 import MonoT5
from shaketable.rank.neural import Trained, load
from shaketable.testing import check_model
from shaketable.types import Collection, Doc, Query
from tests.rank.nets import tiny
from tests.rank.nets.tiny import SLATES

DOCS = MemoryCorpus({"a": Doc("an old oak"), "b": Doc("pine"), "c": Doc("elm, fir")})
COLLECTION = Collection("trees", DOCS, {"1": Query("oak"), "2": Query("fir tree")})

NETS = {
    "bert": lambda folder: CrossEncoder.pretrained(str(tiny.encoder(folder)), 40, fresh=True),
    "hf": lambda folder: CrossEncoder.pretrained(str(tiny.bert(folder, logits=2))),
    "roberta": lambda folder: CrossEncoder.pretrained(str(tiny.roberta(folder))),
    "colbert": lambda folder: ColBERT.pretrained(str(tiny.encoder(folder)), Late(8, 12, 20)),
    "dense": lambda folder: BiEncoder.pretrained(str(tiny.encoder(folder)), Shape(30, "cls", query_prompt="oak: ")),
    "epic": lambda folder: EPIC.pretrained(str(tiny.masked(folder)), Wide(30, keep=20)),
    "t5": lambda folder: MonoT5.pretrained(str(tiny.t5(folder)), 40),
    "untied t5": lambda folder: MonoT5.pretrained(str(tiny.t5(folder, tied=False))),
    "epic on a bare encoder": lambda folder: EPIC.pretrained(str(tiny.encoder(folder)), Wide(30)),
}


@pytest.mark.parametrize("kind", NETS)
def test_a_saved_net_scores_as_it_did(tmp_path, kind):
    net = NETS[kind](tmp_path / "checkpoint")
    saving.save(net, tmp_path / "model", {"steps": 3})
    expected = ranker_of("before", "mark", net, DOCS).score(SLATES)
    model = load(tmp_path / "model")
    for a, b in zip(expected, model.open(COLLECTION).score(SLATES), strict=True):
        assert a.tolist() == b.tolist()
    check_model(model, COLLECTION)
    about = json.loads((tmp_path / "model" / "model.json").read_text())
    assert (about["schema"], about["kind"], about["card"]) == ("shaketable.model/1", net.kind, {"steps": 3})
    assert str(tmp_path) not in json.dumps(about)


def saved(tmp_path, kind="dense"):
    folder = tmp_path / "model"
    saving.save(NETS[kind](tmp_path / "checkpoint"), folder, {})
    return folder


def test_the_fingerprint_follows_weights_and_settings_but_not_the_card(tmp_path):
    folder = saved(tmp_path)
    before = saving.mark(folder)
    about = json.loads((folder / "model.json").read_text())
    tiny.write(folder / "model.json", about | {"card": {"seconds": 9}})
    assert saving.mark(folder) == before
    about["config"]["shape"]["max_length"] = 20
    tiny.write(folder / "model.json", about)
    changed = saving.mark(folder)
    assert changed != before
    net = saving.load(folder)
    net.embedding().weight.data += 0.1
    saving.save(net, folder, {})
    assert len({before, changed, saving.mark(folder)}) == 3


def test_weights_with_two_names_are_written_once_and_stay_tied(tmp_path):
    folder = saved(tmp_path, "epic")
    with safe_open(folder / "weights.safetensors", "pt") as file:
        names = set(file.keys())
    net = saving.load(folder)
    table, head = net.embedding().weight, net.encoder.model.get_output_embeddings().weight
    assert table is head
    assert len(names) == len(list(net.named_parameters())) < len(net.state_dict())


def test_gradients_may_flow_after_loading(tmp_path):
    net = saving.load(saved(tmp_path))
    net(**net.collate(net.prepare([("oak", "an oak")]))).sum().backward()
    assert np.abs(net.embedding().weight.grad.numpy()).sum() > 0


def test_folders_that_hold_no_saved_model(tmp_path):
    with pytest.raises(BadInput, match=r"model.json: there is no such file, so its folder holds no saved model"):
        Trained(str(tmp_path)).open(COLLECTION)
    (tmp_path / "model.json").write_text("{")
    with pytest.raises(BadInput, match=r"model.json: is not JSON"):
        saving.load(tmp_path)
    tiny.write(tmp_path / "model.json", {"schema": "shaketable.model/9", "kind": "bert", "config": {}})
    with pytest.raises(BadInput, match=r"is no saved model of this version \(shaketable.model/1\)"):
        saving.load(tmp_path)
    tiny.write(tmp_path / "model.json", {"schema": saving.SCHEMA, "kind": "bret", "config": {}})
    with pytest.raises(UnknownName, match="no neural model is called 'bret'; did you mean bert"):
        saving.load(tmp_path)
    tiny.write(tmp_path / "model.json", {"schema": saving.SCHEMA, "kind": "bert", "config": {}})
    with pytest.raises(BadInput, match=r"describes no model that can be made \(KeyError\('model'\)\)"):
        saving.load(tmp_path)


def test_weights_that_are_absent_broken_or_another_models(tmp_path):
    folder = saved(tmp_path)
    weights = folder / "weights.safetensors"
    weights.write_bytes(b"nothing")
    with pytest.raises(BadInput, match=r"weights.safetensors: does not hold the weights that model.json describes"):
        saving.load(folder)
    weights.write_bytes((saved(tmp_path / "other", "bert") / "weights.safetensors").read_bytes())
    with pytest.raises(BadInput, match=r"weights.safetensors: does not hold the weights that model.json describes"):
        saving.load(folder)
    weights.unlink()
    with pytest.raises(BadInput, match=r"weights.safetensors: there is no such file"):
        saving.load(folder)
