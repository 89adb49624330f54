"""The n-gram language model of a corpus (`nlp.ngram_model`), built once, stored on disk and memory-mapped."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

from shaketable.core.documents import Corpus, fingerprint
from shaketable.core.errors import BadInput, Damaged
from shaketable.core.home import home_folder
from shaketable.files import arrays
from shaketable.nlp.analyzer import Analyzer
from shaketable.nlp.ngram_model import FORMAT_VERSION, MAX_TRAINING_WORDS, NGramModel, NGramTable, learn_ngrams


def open_ngrams(
    corpus: Corpus, order: int = 3, analyzer: Analyzer | None = None, max_words: int = MAX_TRAINING_WORDS
) -> NGramModel:
    """Return the model of a corpus: the one on disk, or a new one, which is saved if possible."""
    analyzer = analyzer or Analyzer(stopwords="none", stemmer="none")
    name = fingerprint("ngrams", FORMAT_VERSION, corpus.fingerprint, analyzer.fingerprint, order, max_words)
    folder, remark = home_folder() / "ngrams" / name, ""
    try:
        if folder.is_dir():
            return read_ngrams(folder)
    except BadInput as error:
        if isinstance(error, Damaged):
            arrays.discard_array_folder(folder)
        remark = f"the language model was built again, because the cached one is damaged ({error})"
    model = learn_ngrams((doc.text for _, doc in corpus.items()), order, analyzer, max_words, name)
    try:
        save_ngrams(model, folder)
        model = read_ngrams(folder)
    except (OSError, BadInput) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        remark = (
            remark or f"the language model cannot be cached in {folder.parent} ({reason}); the next run builds it again"
        )
    return replace(model, remark=remark) if remark else model


def save_ngrams(model: NGramModel, folder: Path) -> None:
    """Write a model completely or not at all (OSError). An existing model is kept."""
    about = {"fingerprint": model.fingerprint, "order": model.order, "tokenizer": asdict(model.analyzer)}
    with arrays.atomic_array_folder(folder, about) as writer:
        writer.append("known", model.word_hashes)
        for n, table in enumerate(model.tables, 1):
            for part, values in table._asdict().items():
                writer.append(f"{n}.{part}", values)


def read_ngrams(folder: Path) -> NGramModel:
    """Return the memory-mapped model in a folder; raise `Damaged` if the files are not as written."""
    about, found = arrays.read_arrays(folder)
    tables = tuple(
        NGramTable(*(found[f"{n}.{part}"] for part in NGramTable._fields)) for n in range(1, about["order"] + 1)
    )
    return NGramModel(about["fingerprint"], Analyzer(**about["tokenizer"]), found["known"], tables)
