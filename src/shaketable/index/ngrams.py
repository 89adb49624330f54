"""The language model of a corpus (`text.ngrams`): made once, kept on disk, mapped into memory."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

from shaketable import files
from shaketable.data import arrays
from shaketable.errors import BadInput, Damaged
from shaketable.text.ngrams import FORMAT, WORDS, NGrams, Table, learn
from shaketable.text.tokens import Tokenizer
from shaketable.types import Corpus, fingerprint


def open_ngrams(corpus: Corpus, order: int = 3, tokenizer: Tokenizer | None = None, words: int = WORDS) -> NGrams:
    """The model of a corpus: the one on disk, or a new one, which is kept there if that is possible."""
    tokenizer = tokenizer or Tokenizer(stopwords="none", stemmer="none")
    name = fingerprint("ngrams", FORMAT, corpus.fingerprint, tokenizer.fingerprint, order, words)
    folder, remark = files.home() / "ngrams" / name, ""
    try:
        if folder.is_dir():
            return read_ngrams(folder)
    except BadInput as error:
        if isinstance(error, Damaged):
            arrays.discard(folder)
        remark = f"the language model was made again, for what was on disk is of no use ({error})"
    model = learn((doc.text for _, doc in corpus.items()), order, tokenizer, words, name)
    try:
        save(model, folder)
        model = read_ngrams(folder)
    except (OSError, BadInput) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        remark = remark or f"the language model cannot be kept in {folder.parent} ({reason}): it will be made again"
    return replace(model, remark=remark) if remark else model


def save(model: NGrams, folder: Path) -> None:
    """Write a model under this name, whole or not at all (OSError). Whoever came first, stays."""
    about = {"fingerprint": model.fingerprint, "order": model.order, "tokenizer": asdict(model.tokenizer)}
    with arrays.kept(folder, about) as writer:
        writer.append("known", model.known)
        for n, table in enumerate(model.tables, 1):
            for part, values in table._asdict().items():
                writer.append(f"{n}.{part}", values)


def read_ngrams(folder: Path) -> NGrams:
    """The model in a folder, mapped; `Damaged` if it is not as it was written."""
    about, found = arrays.read_arrays(folder)
    tables = tuple(Table(*(found[f"{n}.{part}"] for part in Table._fields)) for n in range(1, about["order"] + 1))
    return NGrams(about["fingerprint"], Tokenizer(**about["tokenizer"]), found["known"], tables)
