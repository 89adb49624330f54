"""A tiny causal language model on disk that has learned a few sentences, and the first documents of the sample."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from shaketable.datasets.load import load

SENTENCES = (
    "The river rose quickly after three days of heavy rain.",
    "The river rose rapidly after three days of heavy rain.",
    "The river rose slowly after ten days of light rain.",
    "She opened the window because the room was warm.",
    "He closed the window because the room was cold.",
    "Boundary layers on a flat plate become turbulent.",
)
MARK = "<|endoftext|>"
POSITIONS, DOCUMENTS = 64, 12


@lru_cache(maxsize=1)
def tiny_gpt() -> Path:
    """Train it, and return its folder."""
    import torch

    folder = Path(tempfile.mkdtemp(prefix="tiny-gpt-"))
    torch.manual_seed(0)
    texts = [*SENTENCES, *(doc.text for _, doc in list(load("sample").docs.items())[:DOCUMENTS])]
    tokenizer = write_tokenizer(folder, texts)
    model = make_gpt(len(tokenizer))
    rows = []
    for text in texts:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        rows += [[0, *ids[start : start + POSITIONS - 1]] for start in range(0, len(ids), POSITIONS)]
    inputs = torch.tensor([row + [0] * (POSITIONS - len(row)) for row in rows])
    labels = torch.tensor([row + [-100] * (POSITIONS - len(row)) for row in rows])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        model(input_ids=inputs, labels=labels).loss.backward()
        optimizer.step()
    model.save_pretrained(folder)
    return folder


def make_gpt(size: int, **settings):
    """Return a GPT-2 with random weights, large enough that its answers differ."""
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": POSITIONS, "bos_token_id": 0, "eos_token_id": 0}
    dropout = dict.fromkeys(("attn_pdrop", "embd_pdrop", "resid_pdrop"), 0.0)
    return GPT2LMHeadModel(GPT2Config(vocab_size=size, initializer_range=0.2, **sizes | dropout | settings))


def write_tokenizer(folder: Path, texts: Sequence[str] = (), **marks):
    """Pairs of bytes, merged as in the texts; one mark that begins and ends a text and none to pad with, as GPT-2."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=1500, special_tokens=[MARK], initial_alphabet=letters, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **(marks or {"bos_token": MARK, "eos_token": MARK}))
    made.save_pretrained(folder)
    return made
