"""ONNX rankers: the same numbers as numpy, and one sentence for a folder that is damaged, hostile or unsuitable."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from transformers import AutoTokenizer

from shaketable.core.documents import Collection, Doc, Slate
from shaketable.core.errors import BadInput, MissingExtra
from shaketable.core.registries import RANKERS
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.rankers.neural.models import Onnx
from shaketable.testing import check_ranker
from tests.rankers.neural import tiny
from tests.rankers.neural.tiny import SLATES

pytest.importorskip("onnxruntime", reason="needs the extra onnx")
pytest.importorskip("onnx", reason="needs the extra onnx")
from tests.rankers.neural import tiny_onnx

COLLECTION = Collection("none", MemoryCorpus({"d": Doc("an old oak")}), {})


def open_ranker(folder, **settings):
    return Onnx(str(folder), **settings).open(COLLECTION)


def flat(arrays):
    return np.concatenate(arrays)


def tokenise(folder):
    """Return the token ids and segments of each pair of the slates."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    queries, texts = zip(*[(slate.query, doc.text) for slate in SLATES for doc in slate.docs], strict=True)
    rows = tokenizer(list(queries), list(texts), truncation=True, max_length=64)
    return zip(rows["input_ids"], rows["token_type_ids"], strict=True)


def test_the_spec_is_a_prefix_and_a_folder():
    assert RANKERS.build("onnx:some/folder") == Onnx("some/folder")
    assert RANKERS.spec(Onnx("some/folder", max_length=64)) == "onnx(folder='some/folder', max_length=64)"


@pytest.mark.parametrize("path", ["model.onnx", "onnx/model.onnx"])
@pytest.mark.parametrize("logits", [1, 2])
def test_a_cross_encoder_gives_the_logit_or_the_difference_of_two(tmp_path, logits, path):
    ranker = open_ranker(tiny_onnx.cross_encoder(tmp_path / "model", logits, path=path))
    rows = [tiny_onnx.compute_logits(ids, types, logits) for ids, types in tokenise(tmp_path / "model")]
    expected = [row[0] if logits == 1 else row[1] - row[0] for row in rows]
    np.testing.assert_allclose(flat(ranker.score(SLATES)), expected, atol=1e-5)
    assert np.ptp(expected) > 0.1
    assert ranker.texts_truncated == 1
    check_ranker(ranker)


def test_the_vectors_of_a_bi_encoder_are_pooled(tmp_path):
    by_token = open_ranker(tiny_onnx.bi_encoder(tmp_path / "tokens"), pooling="mean")
    by_text = open_ranker(tiny_onnx.bi_encoder(tmp_path / "texts", "sentence_embedding"))
    pieces = tiny.wordpiece(tmp_path / "again")("oak tree")["input_ids"]
    vector = tiny_onnx.PIECES[pieces].mean(axis=0)
    expected = vector / np.linalg.norm(vector)
    for ranker in (by_token, by_text):
        (found,) = ranker.encode_texts(["oak tree"])
        np.testing.assert_allclose(found[0], expected, atol=1e-6)
        check_ranker(ranker)
        assert list(ranker.search(["old oak"], 1)[0]) == ["d"]
    np.testing.assert_allclose(flat(by_token.score(SLATES)), flat(by_text.score(SLATES)), atol=1e-6)


def test_pooling_and_prompts_come_from_the_files_of_sentence_transformers(tmp_path):
    folder = tiny_onnx.bi_encoder(tmp_path / "model")
    described = tiny.sentence_transformer(
        tmp_path / "st", {"pooling_mode_cls_token": True}, prompts={"query": "oak ", "document": ""}
    )
    for name in ("modules.json", "config_sentence_transformers.json", "1_Pooling/config.json"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text((described / name).read_text())
    ranker = open_ranker(folder)
    assert (ranker.net.shape.pooling, ranker.net.shape.query_prefix) == ("cls", "oak ")
    first = tiny_onnx.PIECES[tiny.VOCABULARY.index("[CLS]")]
    np.testing.assert_allclose(ranker.encode_texts(["fir"])[0][0], first / np.linalg.norm(first), atol=1e-6)


def test_scores_of_a_dynamically_quantised_file_do_not_depend_on_other_texts(tmp_path):
    """Its scale is computed over a whole batch, so each text has a batch of its own."""
    ranker = open_ranker(tiny_onnx.cross_encoder(tmp_path, quantised=True))
    (together,) = ranker.score(SLATES[:1])
    alone = [ranker.score([Slate(SLATES[0].query, (doc,))])[0][0] for doc in SLATES[0].docs]
    assert together.tolist() == alone
    ranker.batch_tokens = 4096
    assert ranker.score(SLATES[:1])[0].tolist() != alone, "in one batch, the scores would differ"


def test_contents_change_with_weights_settings_and_vocabulary(tmp_path):
    folder = tiny_onnx.cross_encoder(tmp_path)
    before = open_ranker(folder).fingerprint
    assert open_ranker(folder).fingerprint == before
    (folder / "README.md").write_text("not read")
    assert open_ranker(folder).fingerprint == before
    config = json.loads((folder / "config.json").read_text())
    tiny.write(folder / "config.json", config | {"layer_norm_eps": 1e-3})
    changed = open_ranker(folder).fingerprint
    assert changed != before
    tiny_onnx.edit_model(folder, lambda model: model.graph.initializer[0].CopyFrom(
        tiny_onnx.weight("pieces", tiny_onnx.PIECES + 1)))  # fmt: skip
    assert open_ranker(folder).fingerprint not in (before, changed)
    assert open_ranker(folder, max_length=16).fingerprint != open_ranker(folder).fingerprint


def test_there_are_no_gradients(tmp_path):
    net = open_ranker(tiny_onnx.cross_encoder(tmp_path)).net
    assert "an ONNX file has no gradients" in net.no_gradients_reason
    with pytest.raises(BadInput, match="is an ONNX file, whose embeddings cannot be changed"):
        net.embedding()


@pytest.mark.parametrize("library", ["onnx", "onnxruntime"])
def test_without_the_library_the_extra_is_named(tmp_path, library, monkeypatch):
    folder = tiny_onnx.cross_encoder(tmp_path)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra, match=r"pip install 'shaketable\[onnx\]'"):
        open_ranker(folder)


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(BadInput, match=r"is not a folder; onnx: needs one with model.onnx, tokenizer.json and config"):
        open_ranker(tmp_path / "gone")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("model.onnx", r"has no model.onnx or onnx/model.onnx"),
        ("config.json", r"it has no config.json"),
        ("tokenizer.json", r"has no tokenizer \(none of tokenizer.json.*copy its files"),
    ],
)
def test_a_folder_without_a_file(tmp_path, name, message):
    folder = tiny_onnx.cross_encoder(tmp_path)
    (folder / name).unlink()
    with pytest.raises(BadInput, match=message):
        open_ranker(folder)


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x08\x07\x12" * 9, bytes(range(256)) * 40])
def test_a_file_that_is_no_onnx(tmp_path, content):
    folder = tiny_onnx.cross_encoder(tmp_path)
    (folder / "model.onnx").write_bytes(content)
    with pytest.raises(BadInput, match=r"model.onnx: (is not a readable ONNX file|has no input input_ids)"):
        open_ranker(folder)


def test_a_file_that_is_cut_off(tmp_path):
    folder = tiny_onnx.cross_encoder(tmp_path)
    content = (folder / "model.onnx").read_bytes()
    for size in range(0, len(content), len(content) // 20):
        (folder / "model.onnx").write_bytes(content[:size])
        with pytest.raises(BadInput, match=r"model\.onnx: "):
            open_ranker(folder)


def add_external(location):
    def edit(model):
        tensor = model.graph.initializer[0]
        tensor.data_location = tensor.EXTERNAL
        tensor.ClearField("raw_data")
        tensor.external_data.add(key="location", value=location)

    return edit


@pytest.mark.parametrize("location", ["../pieces.bin", "/etc/passwd", "deep/../../pieces.bin"])
def test_weights_outside_of_the_folder_are_not_read(tmp_path, location):
    (tmp_path / "pieces.bin").write_bytes(tiny_onnx.PIECES.tobytes())
    folder = tiny_onnx.edit_model(tiny_onnx.cross_encoder(tmp_path / "model"), add_external(location))
    with pytest.raises(BadInput, match=r"leads to .*, outside of the checkpoint"):
        open_ranker(folder)


def test_a_link_to_weights_outside_of_the_folder_is_not_followed(tmp_path):
    (tmp_path / "pieces.bin").write_bytes(tiny_onnx.PIECES.tobytes())
    folder = tiny_onnx.edit_model(tiny_onnx.cross_encoder(tmp_path / "model"), add_external("linked.bin"))
    (folder / "linked.bin").symlink_to(tmp_path / "pieces.bin")
    with pytest.raises(BadInput, match=r"leads to .*pieces.bin, outside of the checkpoint"):
        open_ranker(folder)


def test_external_weights_inside_the_folder_are_read_and_are_part_of_the_contents(tmp_path):
    whole = open_ranker(tiny_onnx.cross_encoder(tmp_path / "whole"))
    folder = tiny_onnx.edit_model(tiny_onnx.cross_encoder(tmp_path / "parts"), add_external("pieces.bin"))
    with pytest.raises(BadInput, match=r"names external data at 'pieces.bin', which is not there"):
        open_ranker(folder)
    (folder / "pieces.bin").write_bytes(tiny_onnx.PIECES.tobytes())
    parts = open_ranker(folder)
    np.testing.assert_array_equal(flat(parts.score(SLATES)), flat(whole.score(SLATES)))
    (folder / "pieces.bin").write_bytes((2 * tiny_onnx.PIECES).tobytes())
    assert open_ranker(folder).fingerprint != parts.fingerprint


def claim_size(model):
    model.graph.initializer[0].dims[0] = 10**12


def rename_input(model):
    model.graph.input[0].name = "pixel_values"


def rename_output(model):
    model.graph.output[0].name = model.graph.node[-1].output[0] = "boxes"


def use_unknown_operator(model):
    model.graph.node[0].op_type = "Explode"


def use_custom_operator(model):
    model.graph.node[0].domain = "mine"


def read_beyond_pieces(model):
    model.graph.initializer[0].CopyFrom(tiny_onnx.weight("pieces", tiny_onnx.PIECES[:2]))


def divide_by_zero(model):
    model.graph.initializer[2].CopyFrom(tiny_onnx.weight("head", tiny_onnx.HEADS[1] * np.inf))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (claim_size, "describes weights that are larger than its files"),
        (rename_input, "has the input pixel_values; a ranker has input_ids"),
        (rename_output, "has the outputs boxes; a ranker has logits"),
        (use_unknown_operator, "cannot be opened by onnxruntime"),
        (use_custom_operator, "cannot be opened by onnxruntime"),
        (read_beyond_pieces, "cannot score a pair of short texts"),
        (divide_by_zero, "numbers that are not finite"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_hostile_file_gets_one_sentence(tmp_path, edit, message):
    folder = tiny_onnx.edit_model(tiny_onnx.cross_encoder(tmp_path), edit)
    with pytest.raises(BadInput, match=message) as told:
        open_ranker(folder)
    assert "\n" not in str(told.value)


def test_three_logits_are_refused(tmp_path):
    with pytest.raises(BadInput, match=r"an output of the shape \[2, 3\] for two pairs; a ranker has one logit, or t"):
        open_ranker(tiny_onnx.cross_encoder(tmp_path, logits=3))


def test_code_of_the_folder_is_never_run(tmp_path):
    folder = tiny_onnx.cross_encoder(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    tiny.write(folder / "config.json", config | {"auto_map": {"AutoConfig": "mine.Config"}})
    with pytest.raises(BadInput, match=r"needs its own code \(auto_map\), which is never run"):
        open_ranker(folder)


def test_a_bi_encoder_without_pooling_is_refused_with_the_remedy(tmp_path):
    folder = tiny_onnx.bi_encoder(tmp_path)
    with pytest.raises(BadInput, match=r"add pooling='cls' or another of mean, cls, lasttoken, max"):
        open_ranker(folder)
    with pytest.raises(BadInput, match=r"there is no pooling 'sum'; there are mean"):
        open_ranker(folder, pooling="sum")


def test_a_length_that_the_model_does_not_have(tmp_path):
    with pytest.raises(BadInput, match="reads 64 tokens at most; max_length=65 is more"):
        open_ranker(tiny_onnx.cross_encoder(tmp_path), max_length=65)
