"""Causal language models: against transformers' own loss, in windows, in batches, and checkpoints that are none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from shaketable.core.errors import BadInput, MissingExtra
from shaketable.nlp import causal_lm
from shaketable.nlp.causal_lm import CausalLM, open_causal_lm

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.nlp.tiny_gpt import MARK, POSITIONS, SENTENCES, make_gpt, tiny_gpt, write_tokenizer  # noqa: E402

TEXTS = ("the oak is a tree", "oak the tree", "In 1984, naïve 東京!", "x" * 40, "the", SENTENCES[0])


@pytest.fixture
def gpt() -> CausalLM:
    opened = open_causal_lm(str(tiny_gpt()))
    opened._cache.clear()
    return opened


def test_probabilities_are_those_of_transformers(gpt):
    """The loss of a model is the mean of -ln p of the pieces after the first."""
    plain = transformers.AutoModelForCausalLM.from_pretrained(tiny_gpt()).eval()
    for text, logs in zip(TEXTS, gpt.log_probs(TEXTS), strict=True):
        row = torch.tensor([[gpt.begin, *gpt.tokenizer.encode(text)]])
        with torch.inference_mode():
            loss = plain(input_ids=row, labels=row).loss
        assert len(logs) == row.shape[1] - 1
        assert -logs.mean() * np.log(10) == pytest.approx(float(loss), abs=1e-4)


def test_weights_of_any_type_are_read_as_float32(tmp_path: Path):
    write_tokenizer(tmp_path)
    make_gpt(257).to(torch.bfloat16).save_pretrained(tmp_path)
    assert {weight.dtype for weight in open_causal_lm(str(tmp_path)).model.parameters()} == {torch.float32}


def test_a_batch_gives_the_values_of_single_texts_in_any_order(gpt, monkeypatch):
    together = gpt.log_probs([*TEXTS, TEXTS[0]])
    monkeypatch.setattr(causal_lm, "MAX_CACHED_PIECES", -1)  # nothing is kept from here on
    for text, logs in zip(TEXTS, together, strict=False):
        assert gpt.log_probs([text])[0] == pytest.approx(logs, abs=1e-5)
    for logs, again in zip(together[::-1], gpt.log_probs([TEXTS[0], *TEXTS[::-1]]), strict=True):
        assert again == pytest.approx(logs, abs=1e-5)


def test_no_more_is_cached_than_the_limit(gpt, monkeypatch):
    monkeypatch.setattr(causal_lm, "MAX_CACHED_PIECES", 20)
    texts = [f"the oak {i}" for i in range(30)]
    for text in texts:
        gpt.log_probs([text])
    assert len(gpt._cache) < 10
    assert len(gpt.log_probs(texts)) == 30  # of what is asked for together, everything is there


def test_later_words_do_not_change_earlier_values(gpt):
    whole, part = gpt.log_probs(["the oak is a tree", "the oak is"])
    assert whole[: len(part)] == pytest.approx(part, abs=1e-5)


def test_perplexity_is_the_mean_and_an_empty_text_has_1(gpt):
    logs = gpt.log_probs(TEXTS)
    assert gpt.perplexity([*TEXTS, ""]) == pytest.approx([*(10 ** -one.mean() for one in logs), 1.0])
    assert (gpt.perplexity(TEXTS) > 1).all()


def test_a_long_text_is_read_in_windows(gpt):
    assert gpt.window == POSITIONS
    (logs,) = gpt.log_probs(["x" * (POSITIONS + 5)])  # a piece each: the sample has no two of them in a row
    first, rest = gpt.log_probs(["x" * POSITIONS, "x" * 5])
    assert logs == pytest.approx(np.concatenate((first, rest)), abs=1e-5)


def test_texts_contain_no_special_tokens_and_lone_surrogates_are_read(gpt):
    assert all(gpt.begin not in window for window in gpt._split(f"a {MARK} b"))
    assert np.isfinite(gpt.perplexity(["half \ud800 a character"])).all()


def test_sentences_that_were_learned_are_more_probable_than_their_words_in_disorder(gpt):
    for sentence in SENTENCES:
        good, bad = gpt.perplexity([sentence, " ".join(sorted(sentence.split()))])
        assert 2 * good < bad


def test_a_name_that_is_not_on_this_machine_is_not_downloaded(monkeypatch, tmp_path: Path):
    import huggingface_hub

    asked = []

    def snapshot_download(name, local_files_only, **others):
        asked.append(local_files_only)
        raise OSError("it is not here")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    with pytest.raises(BadInput, match="there is no checkpoint 'nobody/gpt'"):
        open_causal_lm("nobody/gpt")
    assert asked
    assert all(asked)


def test_without_transformers_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(MissingExtra, match=r"the language model ./gpt needs .*shaketable\[neural\]"):
        open_causal_lm("./gpt")


def test_an_encoder_is_no_causal_language_model(tmp_path: Path):
    write_tokenizer(tmp_path)
    config = transformers.BertConfig(
        vocab_size=257, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        initializer_range=0.5,
    )  # fmt: skip
    transformers.BertForMaskedLM(config).save_pretrained(tmp_path)
    with pytest.raises(BadInput, match="is not a causal language model: the words after a word change its probability"):
        open_causal_lm(str(tmp_path))


@pytest.mark.parametrize(
    ("size", "marks", "changes", "message"),
    [
        (256, {}, {}, "has a tokenizer of 257 pieces, but the model has only 256"),
        (257, {"unk_token": MARK}, {}, "without a token for the beginning or the end of a text"),
        (257, {}, {"n_layer": 3}, "has no weights for transformer.h.2.* is this a causal language model"),
        (257, {}, {"auto_map": {"AutoModelForCausalLM": "mine.Model"}}, "needs its own code"),
    ],
)
def test_checkpoints_that_cannot_be_used(size, marks, changes, message, tmp_path: Path):
    write_tokenizer(tmp_path, **marks)
    make_gpt(size).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | changes))
    with pytest.raises(BadInput, match=message):
        open_causal_lm(str(tmp_path))
