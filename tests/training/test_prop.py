"""PROP: the language model and its sets by hand, masks of whole words, both losses by transformers, what is learned."""

# ruff: noqa: E402
from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from math import fsum, log

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from shaketable.core.documents import Collection, Doc, Slate
from shaketable.core.errors import BadInput
from shaketable.core.registries import LEARNERS
from shaketable.core.seeding import make_numpy_rng
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.nlp.checkpoints import silence_transformers
from shaketable.rankers.neural import saving
from shaketable.training import prop
from shaketable.training.list_sources import Sample
from shaketable.training.prop import (
    PretrainingLoss,
    PretrainingSettings,
    PROPNet,
    WordSets,
    _find_continuations,
    choose_masked_positions,
    open_pretrained,
)
from tests.rankers.neural import tiny
from tests.toys import WORDS
from tests.training.test_neural import QIDS, TINY, trees

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """Nets this small are slower on several threads, most of all on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


THREE = MemoryCorpus({"a": Doc("the oak, an oak and an elm"), "b": Doc("elm ash"), "c": Doc("yew")})


def test_the_language_of_a_document_by_hand():
    """Without stop-words: 3, 2 and 1 words, 2 on average; df: oak 1, elm 2, ash 1, yew 1, which is 5 together."""
    found = WordSets(THREE).estimate_language_model(THREE["a"].text, make_numpy_rng(0))
    assert found == pytest.approx(
        {
            "oak": (2 + 2 * 1 / 5) / (3 + 2),
            "elm": (1 + 2 * 2 / 5) / (3 + 2),
            "ash": (0 + 2 * 1 / 5) / (3 + 2),
            "yew": (0 + 2 * 1 / 5) / (3 + 2),
        }
    )
    assert sum(found.values()) == pytest.approx(1)


def test_sets_follow_the_language_and_pass_over_frequent_words():
    source = WordSets(MemoryCorpus({**THREE.docs, "d": Doc("ash " * 40)}))
    text = "oak oak elm ash"
    language = source.estimate_language_model(text, make_numpy_rng(0))
    total = Counter({"oak": 2, "elm": 2, "ash": 41, "yew": 1})
    kept = {w: min(1.0, (1e-4 / (c / 46)) ** 0.5 + 1e-4 / (c / 46)) for w, c in total.items()}
    expected = {word: p * kept[word] for word, p in language.items()}
    drawn: Counter[str] = Counter()
    sizes = []
    for number in range(300):
        for better, worse in source.draw_set_pairs(text, make_numpy_rng(number)):
            assert len(better) == len(worse) >= 1
            assert fsum(log(language[w]) for w in better) > fsum(log(language[w]) for w in worse)
            sizes.append(len(better))
            drawn.update(better)
            drawn.update(worse)
    for word, weight in expected.items():
        assert drawn[word] / drawn.total() == pytest.approx(weight / sum(expected.values()), abs=0.02)
    assert np.mean(sizes) == pytest.approx(3 / (1 - np.exp(-3)), abs=0.1)  # Poisson(3) without its zeros


def test_samples_are_tied_to_document_and_pass():
    source = WordSets(THREE)
    assert len(source) == 4 * 3, "all of them are short, so all are taken"
    samples = [source.draw(number, turn) for turn in (0, 1) for number in range(12)]
    assert samples == [WordSets(THREE).draw(number, turn) for turn in (0, 1) for number in range(12)]
    assert len({sample.name for sample in samples}) == 24
    assert {sample.query for sample in samples} == {doc.text for doc in THREE.values()}
    assert {sample.labels for sample in samples} == {(1.0, 0.0)}
    dealt = WordSets(THREE, control=True)
    labels = Counter(dealt.draw(number, turn).labels for turn in range(9) for number in range(12))
    assert min(labels.values()) > 30
    assert all(word not in ("the", "an", "and") for sample in samples for text in sample.texts for word in text.split())


def test_long_documents_are_taken_and_one_short_one_in_five():
    rng = np.random.default_rng(0)
    docs = {f"{i:03}": Doc(" ".join(rng.choice(WORDS, 120 if i < 30 else 20))) for i in range(230)}
    source = WordSets(MemoryCorpus(docs))
    taken = {*source.docnos, *(sample.name.split()[0] for sample in source.held_out_samples)}
    assert {f"{i:03}" for i in range(30)} <= taken
    assert 20 < len(taken) - 30 < 60
    assert len(source.held_out_samples) == len(taken) // 10
    assert not {sample.name.split()[0] for sample in source.held_out_samples} & set(source.docnos)


def test_nothing_to_learn_from():
    with pytest.raises(BadInput, match="no words to learn from"):
        len(WordSets(MemoryCorpus({"a": Doc("of the")})))


def test_whole_words_are_masked():
    goes_on = np.array([False, True, True, False, False, True] * 20)  # 60 words of 3, 1 and 2 pieces
    masked: Counter[int] = Counter()
    for number in range(200):
        places = choose_masked_positions(goes_on, 0, str(number))
        assert len(places) == 9, "as many pieces as 15 % of the words"
        words = np.cumsum(~goes_on) - 1
        for word in set(words[places].tolist()):
            assert set(np.flatnonzero(words == word)) <= set(places.tolist()), "a word is masked whole or not"
        masked.update(words[places].tolist())
    assert len(masked) == 60
    assert len(choose_masked_positions(np.zeros(1000, bool), 0, "long")) == 60
    assert len(choose_masked_positions(np.zeros(2, bool), 0, "short")) == 1
    assert len(choose_masked_positions(np.zeros(0, bool), 0, "nothing")) == 0
    assert (
        choose_masked_positions(goes_on, 0, "a").tolist()
        == choose_masked_positions(goes_on, 0, "a").tolist()
        != choose_masked_positions(goes_on, 1, "a").tolist()
    )


def test_pieces_that_go_on_with_a_word():
    assert _find_continuations(["[CLS]", "oak", "##s"]).tolist() == [False, False, True]
    assert _find_continuations(["<s>", "Ġoak", "s"]).tolist() == [True, False, True]
    assert _find_continuations(["▁oak", "s"]).tolist() == [False, True]
    assert _find_continuations(["oak", "elm"]).tolist() == [False, False]


SAMPLES = [
    Sample("d1 0 0", "an old oak, a young oak; and a birch", ("oak birch", "yew"), (1.0, 0.0)),
    Sample("d2 0 1", "elm fir " * 40, ("yew pine", "elm"), (0.0, 1.0)),
]


def test_only_words_of_the_document_are_masked_mostly_by_the_mask(tmp_path):
    net = PROPNet.from_checkpoint(str(tiny.write_masked_model(tmp_path)), 40)
    tokenizer = net.ranker.tokenizer
    became: Counter[str] = Counter()
    for number in range(200):
        (pair,) = net.mask_pairs([("oak birch", SAMPLES[1].query)], [str(number)], 0)
        (plain,) = net.ranker.prepare([("oak birch", SAMPLES[1].query)])
        changed = np.flatnonzero(pair.tokens.ids != plain.ids)
        assert set(changed) <= set(pair.positions.tolist())
        assert pair.pieces.tolist() == plain.ids[pair.positions].tolist()
        first = 1 + len(tokenizer("oak birch", add_special_tokens=False)["input_ids"]) + 1
        assert pair.positions.min() >= first
        assert pair.positions.max() < len(plain.ids) - 1
        for place in pair.positions:
            new = pair.tokens.ids[place]
            same = new == plain.ids[place]
            became["mask" if new == tokenizer.mask_token_id else "same" if same else "other"] += 1
    shares = {how: count / became.total() for how, count in became.items()}
    assert shares == pytest.approx({"mask": 0.8, "same": 0.1, "other": 0.1}, abs=0.04)


def test_both_losses_by_transformers(tmp_path):
    """Masked words by AutoModelForMaskedLM with labels; the hinge by the cross-entropy's own scores."""
    folder = tiny.write_masked_model(tmp_path)
    net = PROPNet.from_checkpoint(str(folder), 40).eval()
    assert net.masked.has_own_head
    assert net.masked.model.get_output_embeddings().weight is net.ranker.embedding().weight
    with silence_transformers():
        theirs = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    pairs = [(words, sample.query) for sample in SAMPLES for words in sample.texts]
    names = [f"{sample.name} {i}" for sample in SAMPLES for i in range(2)]
    masked = net.mask_pairs(pairs, names, 5)
    batch = net.ranker.collate([pair.tokens for pair in masked])
    labels = torch.full_like(batch["input_ids"], -100)
    for row, pair in enumerate(masked):
        labels[row, pair.positions] = torch.from_numpy(pair.pieces).long()
    with torch.inference_mode():
        words = theirs(**batch, labels=labels).loss.item()
        s = net.ranker(**batch).double().tolist()
        both = PretrainingLoss(5)(net, SAMPLES).item()

    def hinge(better: float, worse: float) -> float:
        p = np.exp(better) / (np.exp(better) + np.exp(worse))
        return max(0.0, 1 - (p - (1 - p)))

    assert both == pytest.approx(words + (hinge(s[0], s[1]) + hinge(s[3], s[2])) / 2, abs=1e-5)
    alone = net.ranker.collate([masked[0].tokens, masked[2].tokens])
    with torch.inference_mode():
        first = theirs(**alone, labels=labels[[0, 2], : alone["input_ids"].shape[1]]).loss.item()
        assert PretrainingLoss(5, compare_sets=False)(net, SAMPLES).item() == pytest.approx(first, abs=1e-5)


def test_gradients_reach_encoder_and_both_heads(tmp_path):
    for number, make in enumerate((tiny.write_masked_model, tiny.encoder)):
        net = PROPNet.from_checkpoint(str(make(tmp_path / str(number))), 40).train()
        PretrainingLoss(0)(net, SAMPLES).backward()
        assert [name for name, weight in net.named_parameters() if weight.grad is None] == []


def leaning() -> MemoryCorpus:
    """Forty long texts in which some words are frequent and others are not."""
    rng = np.random.default_rng(0)
    often = np.array([1.0, 20.0] * 6 + [1.0])
    return MemoryCorpus({f"{i:02}": Doc(" ".join(rng.choice(WORDS, 110, p=often / often.sum()))) for i in range(40)})


SETTINGS = PretrainingSettings("minilm", max_length=32, steps=80, adapt=20, lists=6, lr=5e-3, every=40)


def told_apart(folder, corpus) -> float:
    """How often the better set has the higher score, in pairs of another seed."""
    net = saving.read_net(folder).eval()
    source = WordSets(corpus, seed=9)
    samples = [source.draw(number, turn) for number in range(len(source)) for turn in range(3)]
    pairs = [(words, sample.query) for sample in samples for words in sample.texts]
    with torch.inference_mode():
        scores = net(**net.collate(net.prepare(pairs))).view(-1, 2)
    return float((scores[:, 0] > scores[:, 1]).float().mean())


def test_the_better_set_is_recognised_but_not_by_a_control(tmp_path, monkeypatch):
    monkeypatch.setattr(prop, "SUBSAMPLING_THRESHOLD", 1.0)  # in so few words all are frequent
    corpus = leaning()
    settings = replace(
        SETTINGS, checkpoint=str(tiny.write_masked_model(tmp_path / "tiny")), steps=60, lists=12, max_length=20
    )
    values = [told_apart(open_pretrained(corpus, settings, control=control), corpus) for control in (False, True)]
    assert values[0] > 0.6
    assert values[1] < 0.5


class Stop(Exception):
    pass


def weights_of(folder) -> bytes:
    (path,) = folder.glob("*/weights.safetensors")
    return path.read_bytes()


def test_pretraining_that_was_cut_off_comes_to_the_same_end(tmp_path, home, monkeypatch):
    corpus = leaning()
    settings = replace(SETTINGS, checkpoint=str(tiny.encoder(tmp_path / "tiny")), steps=6, adapt=4, every=2)
    whole = weights_of(open_pretrained(corpus, settings))
    monkeypatch.setenv("SHAKETABLE_HOME", str(tmp_path / "another"))
    for steps, stop in ((4, 3), (6, 5)):

        @contextmanager
        def stopping(what, total, unit, steps=steps, stop=stop):
            done = count(1)

            def advance(step):
                if total == steps and next(done) == stop:
                    raise Stop

            yield advance

        with pytest.raises(Stop):
            open_pretrained(corpus, settings, stopping)
    folder = open_pretrained(corpus, settings)
    assert weights_of(folder) == whole
    assert sorted(path.name.partition("-")[0] for path in folder.iterdir()) == ["files", "model.json"]
    assert list(folder.parent.iterdir()) == [folder], "nothing is left of the stages"
    assert open_pretrained(corpus, settings) == folder


def test_the_learner_pretrains_once_and_reports_it(tmp_path, home):
    collection = trees()
    small = {"max_length": 32, "pretrain": 4, "adapt": 2, "pairs": 2} | TINY
    learner = replace(LEARNERS.build("prop"), checkpoint=str(tiny.encoder(tmp_path / "tiny")), **small)
    told = []

    @contextmanager
    def progress(what, total, unit):
        told.append((what, total))
        yield lambda done: None

    model = learner.fit(collection, QIDS[:8], valid=QIDS[8:], folder=tmp_path / "model", progress=progress)
    assert ("training prop", 2) in told
    assert ("training prop", 4) in told
    about = json.loads((tmp_path / "model" / "model.json").read_text())
    assert about["kind"] == "bert"
    assert about["card"]["learner"].startswith("prop(")
    before = about["card"]["pretraining"]
    assert before["head"] == "tied to the pieces, and adapted first"
    assert before["masked words"]["steps"] == 2
    assert before["word sets"]["steps"] == 4
    (scores,) = model.open(collection).score([Slate("oak elm", (Doc("oak elm"), Doc("")))])
    assert np.isfinite(scores).all()
    told.clear()
    learner.fit(collection, QIDS[:8], valid=QIDS[8:], seed=1, folder=tmp_path / "second", progress=progress)
    assert not any(what == "training prop" for what, _ in told), "another seed shares the pre-training"
    assert len(list((home / "pretrained").iterdir())) == 1


def test_prop_refuses_a_start_model(tmp_path):
    with pytest.raises(BadInput, match="prop pre-trains its own weights"):
        LEARNERS.build("prop(start='somewhere')").fit(trees(), QIDS, folder=tmp_path / "model")


def test_a_checkpoint_with_a_head_needs_no_adaptation(tmp_path):
    settings = replace(SETTINGS, checkpoint=str(tiny.write_masked_model(tmp_path / "tiny")), steps=2, every=2)
    card = saving.read_description(open_pretrained(leaning(), settings))["card"]
    assert card["head"] == "the checkpoint's own"
    assert "masked words" not in card
    assert card["documents"] == 36, "a tenth is held out"


def test_a_checkpoint_without_a_mask_is_refused(tmp_path):
    folder = tiny.roberta(tmp_path)
    with pytest.raises(BadInput, match="has no"):
        PROPNet.from_checkpoint(str(folder), 32)


def test_collections_that_have_the_same_texts_share_it(tmp_path):
    settings = replace(SETTINGS, checkpoint=str(tiny.write_masked_model(tmp_path / "tiny")), steps=1, every=1)
    first, second = (open_pretrained(Collection(name, leaning(), {}).docs, settings) for name in ("a", "b"))
    assert first == second
    assert open_pretrained(leaning(), replace(settings, lr=1e-4)) != first
