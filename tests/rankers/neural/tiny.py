"""Tiny random checkpoints on disk, each of its own make, and texts for them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import (
    AutoModelForMaskedLM,
    BertConfig,
    BertModel,
    DistilBertConfig,
    PreTrainedTokenizerFast,
    RobertaConfig,
    T5Config,
    T5ForConditionalGeneration,
)
from transformers import BertForSequenceClassification as BertClassifier
from transformers import RobertaForSequenceClassification as RobertaClassifier

from shaketable.core.documents import Doc, Slate
from shaketable.nlp.checkpoints import silence_transformers
from tests.toys import WORDS

SPECIAL = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
VOCABULARY = [*SPECIAL, *WORDS, *"!'(),-.:;?", *LETTERS, *(f"##{letter}" for letter in LETTERS)]
SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "initializer_range": 0.2,  # at the usual 0.02 a random model is nearly the same for all texts
}

SLATES = [
    Slate("oak", (Doc("an old oak, a young oak; and: a birch!"), Doc("pine"), Doc(""), Doc("elm fir " * 40))),
    Slate("willow by the water?", (Doc("willow", title="Yew"), Doc("rowan, hazel"), Doc("it's a larch (tall)."))),
    Slate("", (Doc("maple"), Doc("the cedar of the hill"))),
]


def wordpiece(folder: Path) -> PreTrainedTokenizerFast:
    """Write a tokenizer like that of BERT."""
    ids = {piece: number for number, piece in enumerate(VOCABULARY)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(mark, ids[mark]) for mark in ("[CLS]", "[SEP]")],
    )
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **names)
    made.save_pretrained(folder)
    return made


def bytes_pairs(folder: Path) -> PreTrainedTokenizerFast:
    """Write a tokenizer like that of RoBERTa: bytes, two marks between texts, no segments."""
    ids = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    ids |= {letter: 4 + number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(ids, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    names = {"pad_token": "<pad>", "unk_token": "<unk>", "cls_token": "<s>", "sep_token": "</s>"}
    inputs = ["input_ids", "attention_mask"]
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_input_names=inputs, **names)
    made.save_pretrained(folder)
    return made


def bert(folder: Path, logits: int = 1, seed: int = 0) -> Path:
    """Write a cross-encoder with its head."""
    torch.manual_seed(seed)
    return _save(BertClassifier(BertConfig(vocab_size=len(VOCABULARY), num_labels=logits, **SIZES)), folder, wordpiece)


def encoder(folder: Path, seed: int = 0) -> Path:
    """Write a bare encoder."""
    torch.manual_seed(seed)
    return _save(BertModel(BertConfig(vocab_size=len(VOCABULARY), **SIZES)), folder, wordpiece)


def write_masked_model(folder: Path, kind: str = "bert", seed: int = 0) -> Path:
    """Write a masked language model: an encoder with its language-model head."""
    torch.manual_seed(seed)
    if kind == "distilbert":
        sizes = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48, "max_position_embeddings": 64}
        config = DistilBertConfig(vocab_size=len(VOCABULARY), initializer_range=0.2, **sizes)
        return _save(AutoModelForMaskedLM.from_config(config), folder, wordpiece)
    if kind == "roberta":
        config = RobertaConfig(vocab_size=260, type_vocab_size=1, pad_token_id=1, **SIZES)
        return _save(AutoModelForMaskedLM.from_config(config), folder, bytes_pairs)
    config = BertConfig(vocab_size=len(VOCABULARY), **SIZES)
    return _save(AutoModelForMaskedLM.from_config(config), folder, wordpiece)


def roberta(folder: Path, seed: int = 0) -> Path:
    """Write a cross-encoder that counts positions from 2 on."""
    torch.manual_seed(seed)
    config = RobertaConfig(vocab_size=260, num_labels=1, type_vocab_size=1, pad_token_id=1, **SIZES)
    return _save(RobertaClassifier(config), folder, bytes_pairs)


def metaspace(folder: Path, words: Sequence[str] = WORDS) -> PreTrainedTokenizerFast:
    """Write a tokenizer like that of T5: pieces with a mark at the start of a word, and </s> at the end."""
    special = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -10.0)]
    known = ["Query", "Document", "Relevant", "true", "false", *words]
    letters = sorted({*LETTERS, *LETTERS.upper(), *"▁!'(),-.:;?"})
    vocabulary = [*special, *((f"▁{word}", -5.0) for word in known), *((letter, -9.0) for letter in letters)]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=2))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    names = {"pad_token": "<pad>", "unk_token": "<unk>", "eos_token": "</s>"}
    inputs = ["input_ids", "attention_mask"]
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_input_names=inputs, **names)
    made.save_pretrained(folder)
    return made


def t5(folder: Path, seed: int = 0, tied: bool = True) -> Path:
    """Write a T5; untied like the versions from 1.1 on."""
    torch.manual_seed(seed)
    size = len(metaspace(folder))
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}
    config = T5Config(vocab_size=size, tie_word_embeddings=tied, initializer_factor=1.5 if tied else 0.5, **sizes)
    return _save(T5ForConditionalGeneration(config), folder, metaspace)


def sentence_transformer(folder: Path, pooling: dict[str, Any], **about: Any) -> Path:
    """Write a bare encoder with the files of sentence-transformers."""
    encoder(folder)
    modules = [{"idx": 0, "name": "0", "type": "sentence_transformers.models.Transformer", "path": ""}]
    modules += [{"idx": 1, "name": "1", "type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}]
    (folder / "1_Pooling").mkdir()
    write(folder / "modules.json", modules)
    write(folder / "1_Pooling" / "config.json", pooling)
    write(folder / "config_sentence_transformers.json", about)
    return folder


def write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def _save(model: Any, folder: Path, tokenizer: Any) -> Path:
    with silence_transformers():
        model.save_pretrained(folder)
    tokenizer(folder)
    return folder
