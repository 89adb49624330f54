"""Vocabulary and vectors, and laws of every word-based net."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.documents import Doc, Slate
from shaketable.core.errors import BadInput
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.nlp.analyzer import Analyzer
from shaketable.rankers.neural import conv_knrm, drmm, dssm, duet, knrm
from shaketable.rankers.neural.net import Net
from shaketable.rankers.neural.saving import FittedNet, read_net
from shaketable.rankers.neural.scoring import make_ranker
from shaketable.rankers.neural.shapes import ConvKNRMShape, DRMMShape, DSSMShape, DuetShape, KNRMShape
from shaketable.rankers.neural.words import Vocabulary, collect_words, letter_trigrams, match_words, read_vectors
from tests.toys import WORDS, slates, text

TOKENIZER = Analyzer(stemmer="none")
VOCABULARY = Vocabulary(tuple(WORDS), TOKENIZER)
DOCS = MemoryCorpus({str(i): Doc(text(i)) for i in range(20)})
MAKERS: dict[str, Callable[[], Net]] = {
    "dssm": lambda: dssm.DSSM(dssm.build_trigram_vocabulary(DOCS, TOKENIZER), DSSMShape((8, 6, 4))),
    "drmm": lambda: drmm.DRMM(VOCABULARY, 6, DRMMShape(text_length=12)),
    "knrm": lambda: knrm.KNRM(VOCABULARY, 6, KNRMShape(text_length=12)),
    "conv_knrm": lambda: conv_knrm.ConvKNRM(VOCABULARY, 6, ConvKNRMShape(filters=5, text_length=12)),
    "duet": lambda: duet.Duet(
        VOCABULARY, 6, DuetShape(filters=3, local=4, distributed=5, pool=3, query_length=4, text_length=12)
    ),
}
PAIRS = [
    ("oak elm", "the oak and the elm stand by the fir"),
    ("oak", "oak"),
    ("baobab yew", "a baobab is no yew, and a yew is no baobab; " * 3),
    ("", "birch"),
    ("pine larch maple", ""),
    ("", ""),
]


@pytest.fixture(params=MAKERS)
def net(request: pytest.FixtureRequest) -> Net:
    torch.manual_seed(3)
    return MAKERS[request.param]().eval()


def scores(net: Net, pairs: list[tuple[str, str]]) -> torch.Tensor:
    out: torch.Tensor = net(**net.collate(net.prepare(pairs)))
    return out


def test_a_score_does_not_depend_on_the_batch(net):
    together = scores(net, PAIRS)
    alone = torch.cat([scores(net, [pair]) for pair in PAIRS])
    assert together.shape == (len(PAIRS),)
    assert torch.isfinite(together).all()
    torch.testing.assert_close(together, alone, atol=1e-6, rtol=0)


def test_gradients_reach_every_parameter(net):
    scores(net, PAIRS[:3]).sum().backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name


def test_gradients_reach_words_through_the_api(net):
    seen: list[torch.Tensor] = []

    def keep(module, inputs, output):
        output.retain_grad()
        seen.append(output)

    with net.embedding().register_forward_hook(keep):
        scores(net, PAIRS[:1]).sum().backward()
    reached = [vectors.grad is not None and bool(vectors.grad.abs().max() > 0) for vectors in seen]
    # of DRMM query and text, whose likeness is counted, and the query once more, in the gate
    assert reached == {"drmm": [False, False, True]}.get(net.kind, [True, True])


def test_saved_and_loaded_it_scores_the_same(net, tmp_path):
    FittedNet(net, {}).save(tmp_path / "model")
    other = read_net(tmp_path / "model").eval()
    assert type(other) is type(net)
    assert torch.equal(scores(net, PAIRS), scores(other, PAIRS))
    files = sorted(path.name for path in (tmp_path / "model").rglob("*.*"))
    assert files == ["model.json", "vocabulary.json", "weights.safetensors"]


def test_the_engine_scores_slates(net):
    ranker = make_ranker("toy", "mark", net, DOCS)
    some = slates(3, 5)
    pairs = [(slate.query, doc.text) for slate in some for doc in slate.docs]
    np.testing.assert_allclose(np.concatenate(ranker.score(some)), scores(net, pairs).tolist(), atol=1e-6)


def test_texts_that_are_cut_are_counted():
    ranker = make_ranker("toy", "mark", MAKERS["knrm"](), DOCS)
    ranker.score([Slate("oak", (Doc(text(1, 12)), Doc(text(2, 13)), Doc(text(3, 40))))])
    assert ranker.texts_truncated == 2


def test_unknown_words_are_like_no_other_word_but_themselves():
    net = MAKERS["knrm"]()
    cosines = net.cosines(
        *(net.collate(net.prepare([("baobab oak", "kapok baobab oak")]))[k] for k in ("query", "text"))
    )
    assert cosines[0, 0].tolist() == [0.0, 1.0, 0.0]
    assert cosines[0, 1, 2] == 1.0
    assert cosines[0, 1, :2].tolist() == [0.0, 0.0]


def test_same_words_by_hand():
    query, words = torch.tensor([[7, 5, 0]]), torch.tensor([[5, 7, 7, 0]])
    assert match_words(query, words).int().tolist() == [[[0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]]]


@given(st.text(max_size=30))
def test_every_word_has_a_number_and_it_is_always_the_same(anything):
    ids = VOCABULARY.to_ids(anything)
    assert len(ids) == len(TOKENIZER(anything))
    assert (ids > 0).all()
    assert (ids == Vocabulary(tuple(WORDS), TOKENIZER).to_ids(anything)).all()


@given(st.text(min_size=1, max_size=12))
def test_a_word_has_as_many_trigrams_as_letters(word):
    trigrams = letter_trigrams(word)
    assert len(trigrams) == len(word)
    assert "".join(trigram[1] for trigram in trigrams) == word


def test_words_of_a_collection_come_by_frequency():
    docs = MemoryCorpus({"1": Doc("elm oak oak ash"), "2": Doc("oak elm")})
    assert collect_words(docs, TOKENIZER) == ("oak", "elm")


def test_a_vocabulary_survives_the_disk(tmp_path):
    vocabulary = Vocabulary(("naïve", "東京", "o'k"), Analyzer(stopwords="none", stemmer="porter"))
    vocabulary.write(tmp_path)
    again = Vocabulary.read(tmp_path)
    assert (again.words, again.tokenizer) == (vocabulary.words, vocabulary.tokenizer)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"words": ["a"], "tokenizer": {"strange": 1}}'])
def test_a_broken_vocabulary_is_named(tmp_path, content):
    (tmp_path / "vocabulary.json").write_text(content)
    with pytest.raises(BadInput, match=r"vocabulary\.json"):
        Vocabulary.read(tmp_path)


def write_file(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


def test_glove_and_word2vec_files(tmp_path):
    glove = write_file(tmp_path / "glove.txt", "oak 1 0.5\nelm -2 3e-1\noak 9 9\n")
    words, rows = read_vectors(glove)
    assert words == ("oak", "elm")
    np.testing.assert_allclose(rows, [[1, 0.5], [-2, 0.3]])
    word2vec = write_file(tmp_path / "w2v.txt", "2 2\noak 1 0.5 \nelm -2 3e-1 \n")
    np.testing.assert_array_equal(read_vectors(word2vec)[1], rows)
    packed = tmp_path / "glove.txt.gz"
    packed.write_bytes(gzip.compress(glove.read_bytes()))
    np.testing.assert_array_equal(read_vectors(packed)[1], rows)


def test_beyond_the_first_words_only_those_wanted_are_kept(tmp_path):
    path = write_file(tmp_path / "v.txt", "oak 1\nelm 2\nfir 3\nyew 4\n")
    assert read_vectors(path, {"yew"}, max_words=2)[0] == ("oak", "elm", "yew")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("oak 1 2\nelm 1 2 3\n", r"v\.txt:2: 'elm' has 3 numbers where the words before it have 2"),
        ("oak 1 2\nelm 1\n", r"v\.txt:2: 'elm' has 1 numbers"),
        ("oak 1 2\n\nelm 1 x\n", r"v\.txt:3: a line must be a word and its numbers, but 'elm'"),
        ("oak 1 2\nelm 1 nan\n", r"v\.txt:2: the vector of 'elm' has numbers that are not finite"),
        ("oak\n", r"v\.txt:1: 'oak' has 0 numbers"),
        ("", r"v\.txt: holds no vectors"),
        ("3 2\n", r"v\.txt: holds no vectors"),
    ],
)
def test_ragged_and_broken_vector_files_are_refused_with_the_line(tmp_path, content, message):
    with pytest.raises(BadInput, match=message):
        read_vectors(write_file(tmp_path / "v.txt", content))


def test_real_vectors(shared_data):
    words, rows = read_vectors(shared_data / "vectors" / "glove.6B.50d.60k.txt.gz", {"earthquakes"}, max_words=5000)
    assert rows.shape == (len(words), 50)
    unit = dict(zip(words, rows / np.linalg.norm(rows, axis=1, keepdims=True), strict=True))
    assert unit["king"] @ unit["queen"] > unit["king"] @ unit["train"]
    assert len(words) == 5001
