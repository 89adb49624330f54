"""A corpus's language model on disk: named by content, and built again if it is damaged or cannot be cached."""

from __future__ import annotations

from shaketable.core.documents import Doc
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.nlp.ngram_model import NGramModel, learn_ngrams
from shaketable.retrieval import ngram_models
from shaketable.retrieval.ngram_models import open_ngrams

THREE = ["a b", "a c", "a b c"]
CORPUS = MemoryCorpus({str(i): Doc(text) for i, text in enumerate(THREE)})


def score_texts(model: NGramModel) -> list[list[float]]:
    return [logs.tolist() for logs in model.log_probs([*THREE, "c b zebra"])]


def test_the_name_of_a_cached_model_depends_on_its_texts(home, monkeypatch):
    first = open_ngrams(CORPUS)
    expected = score_texts(first)
    assert expected == score_texts(learn_ngrams(THREE))
    assert first.remark == ""
    (folder,) = (home / "ngrams").iterdir()
    with monkeypatch.context() as patch:
        patch.setattr(ngram_models, "learn_ngrams", None)
        assert score_texts(open_ngrams(CORPUS)) == expected
    others = [open_ngrams(CORPUS, 2), open_ngrams(MemoryCorpus({"1": Doc("a b")})), open_ngrams(CORPUS, max_words=3)]
    assert len({first.fingerprint, *(other.fingerprint for other in others)}) == 4
    (folder / "2.keys.bin").write_bytes(b"broken")
    again = open_ngrams(CORPUS)
    assert score_texts(again) == expected
    assert again.remark.startswith("the language model was built again, because the cached one is damaged (")
    assert open_ngrams(CORPUS).remark == ""


def test_a_model_of_no_texts_is_cached(home):
    empty = MemoryCorpus({})
    assert open_ngrams(empty).perplexity(["", "tea"]).tolist() == open_ngrams(empty).perplexity(["", "tea"]).tolist()
    assert len(list((home / "ngrams").iterdir())) == 1


def test_without_a_writable_folder_the_model_still_works(home):
    home.write_text("a file where the folder should be")
    model = open_ngrams(CORPUS)
    assert model.perplexity(["a b"])[0] < 10
    assert "cannot be cached" in model.remark
