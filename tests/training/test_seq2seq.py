"""The trainer of models that write: transformers' own loss, a task that is learned, and folders that others open."""

# ruff: noqa: E402
from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors.torch import load_file

from shaketable.core.documents import Collection, Doc, Query, Slate
from shaketable.core.errors import BadInput
from shaketable.core.protocols import TransformContext
from shaketable.core.registries import WRITERS
from shaketable.core.seeding import make_item_rng
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.nlp import checkpoints
from shaketable.rankers.doct5query import DocT5Query
from shaketable.rankers.neural import pretrained_models
from shaketable.rankers.neural.models import T5
from shaketable.training import seq2seq
from shaketable.training.list_sources import Sample
from shaketable.training.loop import TRAINING_FOLDER
from shaketable.training.seq2seq import (
    AnswersWriter,
    DescToTitleWriter,
    Doc2QueryWriter,
    HeldOutLikelihood,
    Seq2SeqWriter,
    train_tokenizer,
    writing_loss,
)
from shaketable.training.seq2seq_net import Seq2SeqNet
from shaketable.training.seq2seq_pairs import (
    TOPIC_COLLECTIONS,
    SourceTarget,
    build_answer_pairs,
    build_query_pairs,
    build_title_pairs,
    build_topic_pairs,
    read_pairs,
)
from shaketable.transforms import add_queries
from shaketable.transforms.add_queries import AddQueries
from shaketable.transforms.generated import DescToTitle as Shorten
from shaketable.transforms.generated import Paraphrase, open_generator
from tests.rankers.neural import tiny
from tests.toys import WORDS, text

pytestmark = pytest.mark.slow

SMALL = Seq2SeqWriter(checkpoint="", epochs=3, batch=4, lr=3e-3, source_length=16, target_length=8, layers=1, dim=32)
PAIRS = [SourceTarget(f"about {text(i, 4)}", text(i, 1)) for i in range(24)]


@pytest.fixture(autouse=True)
def alone(monkeypatch) -> Iterator[None]:
    """Nets this small are slower on several threads, and random ones never stop to write."""
    monkeypatch.setattr(add_queries, "MAX_QUERY_TOKENS", 8)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    open_generator.cache_clear()
    yield
    torch.set_num_threads(threads)


def writer(folder: Path, **lengths) -> Seq2SeqNet:
    path = tiny.t5(folder)
    return Seq2SeqNet(
        pretrained_models.read_t5(path), checkpoints.read_tokenizer(path), lengths.get("source", 20), 6
    ).eval()


def test_the_loss_is_that_of_transformers(tmp_path):
    net = writer(tmp_path)
    samples = [Sample("", "an old oak", ("elm",), (1.0,)), Sample("", "pine", ("fir yew ash " * 9,), (1.0,))]
    inputs = net.tokenizer([s.query for s in samples], padding=True, return_tensors="pt")
    targets = net.tokenizer([s.texts[0] for s in samples])["input_ids"]
    rows = [row if len(row) <= 6 else [*row[:5], 1] for row in targets]
    longest = max(map(len, rows))
    labels = torch.tensor([row + [-100] * (longest - len(row)) for row in rows])
    with torch.inference_mode():
        theirs = net.model(**inputs, labels=labels).loss
        assert writing_loss(net, samples).item() == pytest.approx(theirs.item(), abs=1e-6)
        each = []
        for sample, row in zip(samples, rows, strict=True):
            inputs = net.tokenizer(sample.query, return_tensors="pt")
            each.append(len(row) * net.model(**inputs, labels=torch.tensor([row])).loss.item())
        scores = net(**net.collate(net.prepare([(s.query, s.texts[0]) for s in samples])))
    assert scores.tolist() == pytest.approx([-loss for loss in each], abs=1e-4)


def test_the_part_after_a_tab_is_never_truncated(tmp_path):
    net = writer(tmp_path, source=10)
    short, long = net.prepare([("oak elm\tRelevant:", "true"), ("oak " * 30 + "\tRelevant:", "false")])
    tail = net.tokenizer("Relevant:")["input_ids"]
    assert short.source.tolist() == net.tokenizer("oak elm Relevant:")["input_ids"]
    assert (len(long.source), long.source[-len(tail) :].tolist(), long.truncated) == (10, tail, True)
    assert not short.truncated


def test_validation_is_the_mean_over_pieces_whatever_the_batches(tmp_path):
    net = writer(tmp_path)
    samples = [Sample("", source, (target,), (1.0,)) for source, target in PAIRS]
    with torch.inference_mode():
        expected = -writing_loss(net, samples).item()
    for batch in (1, 5, 32):
        assert HeldOutLikelihood(PAIRS, batch)(net) == pytest.approx(expected, abs=1e-5)


def test_a_task_is_learned_and_a_control_learns_nothing(tmp_path):
    """Write the one tree that is named: asked for in sentences that were not learned from."""
    before, after = ("tell me of the", "what is a", "where grows a", "i saw a"), ("please", "today", "there", "and why")
    every = [SourceTarget(f"{a} {word} {b}", word) for word in WORDS for a in before for b in after]
    asked, pairs = every[:: len(after) + 1], [pair for pair in every if pair not in every[:: len(after) + 1]]
    right = {}
    for control in (False, True):
        folder = replace(SMALL, epochs=12, batch=8, lr=5e-3).fit(pairs, tmp_path / str(control), control=control)
        loaded = open_generator(str(folder))
        inputs = loaded.tokenizer([pair.source for pair in asked], return_tensors="pt", padding=True)
        output = loaded.model.generate(**inputs, max_length=8, do_sample=False)
        written = loaded.tokenizer.batch_decode(output, skip_special_tokens=True)
        right[control] = np.mean([text == pair.target for text, pair in zip(written, asked, strict=True)])
        card = json.loads((folder / "card.json").read_text())
        assert (card["control"], card["pairs"]["learned"] + card["pairs"]["held"]) == (control, len(pairs))
    assert right[False] > 0.8
    assert right[True] < 0.3


class Stop(Exception):
    pass


def bytes_of(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def test_the_same_seed_the_same_weights_and_a_run_cut_off_comes_to_the_same_end(tmp_path):
    folders = [SMALL.fit(PAIRS, tmp_path / name, seed=seed) for name, seed in (("a", 0), ("b", 0), ("c", 1))]
    assert bytes_of(folders[0]) == bytes_of(folders[1]) != bytes_of(folders[2])
    assert (folders[0] / "tokenizer.json").read_bytes() == (folders[1] / "tokenizer.json").read_bytes()

    @contextmanager
    def stopping(what, total, unit):
        steps = count(1)

        def advance(done):
            if what == "training writer" and next(steps) == 7:
                raise Stop

        yield advance

    with pytest.raises(Stop):
        SMALL.fit(PAIRS, tmp_path / "d", progress=stopping)
    assert (tmp_path / "d" / TRAINING_FOLDER / "state.safetensors").is_file()
    assert not (tmp_path / "d" / "config.json").exists()
    with pytest.raises(BadInput, match="belongs to a training of other data or settings"):
        SMALL.fit(PAIRS[:20], tmp_path / "d")
    assert bytes_of(SMALL.fit(PAIRS, tmp_path / "d")) == bytes_of(folders[0])
    assert {path.name for path in (tmp_path / "d").iterdir()} >= {"config.json", "tokenizer.json", "card.json"}
    assert not (tmp_path / "d" / TRAINING_FOLDER).exists()
    with pytest.raises(BadInput, match="already has a trained writer"):
        SMALL.fit(PAIRS, tmp_path / "d")


def test_it_begins_with_a_checkpoint_and_leaves_one(tmp_path):
    path = tiny.t5(tmp_path / "tiny")
    settings = replace(SMALL, checkpoint=str(path), lr=1e-9, epochs=1)
    folder = settings.fit(PAIRS, tmp_path / "model")
    first, second = load_file(path / "model.safetensors"), load_file(folder / "model.safetensors")
    assert first.keys() == second.keys()
    for name in first:
        torch.testing.assert_close(first[name], second[name], atol=1e-6, rtol=0)
    again = replace(settings, checkpoint=str(folder)).fit(PAIRS, tmp_path / "again")
    assert json.loads((again / "card.json").read_text())["start"] == checkpoints.fingerprint_checkpoint(folder)


def trees() -> Collection:
    docs = {f"d{i}": Doc(text(i, 5), title="Tree") for i in range(20)}
    queries = {f"q{i}": Query(text(i, 2), description=f"I look for {text(i, 3)}") for i in range(6)}
    qrels = {f"q{i}": {f"d{i}": 1, f"d{i + 6}": 2, f"d{i + 12}": 0, "gone": 1} for i in range(6)}
    return Collection("trees", MemoryCorpus(docs), queries, qrels)


def test_a_trained_writer_can_be_opened(tmp_path):
    collection, qids = trees(), [f"q{i}" for i in range(6)]
    titles = SMALL.fit(build_title_pairs(collection, qids), tmp_path / "titles")
    for edit in (Shorten(str(titles)), Paraphrase(str(titles))):
        written = edit.apply("i look for oak elm", make_item_rng(0), TransformContext())
        assert written is None or written.split()
    queries = SMALL.fit(build_query_pairs(collection, qids), tmp_path / "queries")
    assert AddQueries(str(queries), n=2).apply("oak elm", make_item_rng(0), TransformContext()).startswith("oak elm")
    opened = DocT5Query(str(queries), 1).open(collection)
    assert np.isfinite(opened.score([Slate("oak", (Doc("oak"), Doc("")))])[0]).all()
    candidates = {qid: {f"d{i}": 1.0 for i in range(20)} for qid in qids}
    prompts = replace(SMALL, source_length=48).fit(
        build_answer_pairs(collection, qids, candidates), tmp_path / "prompts"
    )
    (scores,) = T5(str(prompts), max_length=48).open(collection).score([Slate("oak", (Doc("oak"), Doc("")))])
    assert (scores < 0).all()


def test_pairs_of_judgements():
    collection, qids = trees(), ["q0", "q1"]
    pairs = build_query_pairs(collection, qids)
    assert pairs[0] == SourceTarget(f"Tree {text(0, 5)}", text(0, 2))
    assert len(pairs) == 4, "two relevant documents each; what is gone is left out"
    answers = build_answer_pairs(collection, qids, {qid: {f"d{i}": 1.0 for i in range(20)} for qid in qids})
    assert [pair.target for pair in answers].count("true") == 2
    assert [pair.target for pair in answers].count("false") == 2
    for pair in answers:
        assert pair.source.startswith("Query: ")
        assert pair.source.endswith("\tRelevant:")
    assert build_title_pairs(collection, qids) == [
        SourceTarget(f"I look for {text(i, 3)}", text(i, 2)) for i in range(2)
    ]
    broken = replace(collection, queries={"q0": Query("oak", description="tab\there,\nnew line"), "q1": Query("oak")})
    assert build_title_pairs(broken, qids) == [SourceTarget("tab here, new line", "oak")]


def test_each_writer_takes_its_own_pairs():
    collection, qids = trees(), ["q0", "q1"]
    assert DescToTitleWriter().build_pairs(collection, qids) == build_title_pairs(collection, qids)
    assert Doc2QueryWriter().build_pairs(collection, qids) == build_query_pairs(collection, qids)
    candidates = {qid: {f"d{i}": 1.0 for i in range(20)} for qid in qids}
    given = replace(collection, candidates=candidates)
    assert AnswersWriter().build_pairs(given, qids, seed=3) == build_answer_pairs(given, qids, candidates, 3)
    found = AnswersWriter().build_pairs(collection, qids, depth=5, first_stage="ql")
    assert [pair.target for pair in found].count("true") == 2
    with pytest.raises(BadInput, match=r"seq2seq learns from your own pairs: give a file of them with --text-pairs"):
        Seq2SeqWriter().build_pairs(collection, qids)
    with pytest.raises(BadInput, match=r"give doc2query a collection \(--data\) or a file of pairs \(--text-pairs\)"):
        Doc2QueryWriter().load_default_pairs()


def test_equal_pairs_are_on_the_same_side_of_the_split():
    twice = [PAIRS[0]] * 30 + PAIRS[1:10] * 3
    for seed in range(20):
        learned, held = SMALL._split_held_out(twice, seed)
        assert learned
        assert held
        assert not set(learned) & set(held)
        assert set(learned) | set(held) == set(twice)


def test_a_writer_is_replaced_only_on_request(tmp_path):
    folder = SMALL.fit(PAIRS, tmp_path / "model")
    (folder / "notes.txt").write_text("mine")
    other = replace(SMALL, checkpoint=str(tiny.t5(tmp_path / "tiny")), epochs=1)
    with pytest.raises(BadInput, match="already has a trained writer; name another folder, or use"):
        other.fit(PAIRS, folder)
    before = set(json.loads((folder / "card.json").read_text())["files"])
    stale = folder / "added_tokens.json"
    card = json.loads((folder / "card.json").read_text())
    stale.write_text("{}")
    (folder / "card.json").write_text(json.dumps(card | {"files": [*before, stale.name]}))
    other.fit(PAIRS, folder, overwrite=True)
    assert not stale.exists(), "a file of the old vocabulary"
    assert (folder / "notes.txt").read_text() == "mine"
    after = json.loads((folder / "card.json").read_text())
    assert {path.name for path in folder.iterdir()} == {*after["files"], "notes.txt"}
    fresh = other.fit(PAIRS, tmp_path / "fresh")
    assert bytes_of(folder) == bytes_of(fresh)
    for damage in ("[]", "{}", '{"files": ["../../notes.txt"]}', '{"files": [3]}'):
        (folder / "card.json").write_text(damage)
        with pytest.raises(BadInput, match="is not the card of a writer of Shaketable"):
            other.fit(PAIRS, folder, overwrite=True)
    (folder / "card.json").unlink()
    with pytest.raises(BadInput, match="has a checkpoint of another program; name another folder"):
        other.fit(PAIRS, folder, overwrite=True)


def test_a_folder_of_others_is_left_alone(tmp_path):
    (tmp_path / "thesis" / "training").mkdir(parents=True)
    (tmp_path / "thesis" / "training" / "plan.txt").write_text("years of work")
    with pytest.raises(BadInput, match="exists and is not a model"):
        SMALL.fit(PAIRS, tmp_path / "thesis")


def test_pairs_of_a_file(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("which boats float\tboats\n\nhow is tea made\ttea\n")
    assert read_pairs(path) == [SourceTarget("which boats float", "boats"), SourceTarget("how is tea made", "tea")]
    for wrong in ("no tab", "a\tb\tc", "a\t "):
        path.write_text(f"x\ty\n{wrong}\n")
        with pytest.raises(BadInput, match=r"pairs\.tsv:2: a line must have an input text"):
            read_pairs(path)


def test_prompts_of_a_file_keep_their_end(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("Query: oak Document: an oak Relevant:\ttrue\nQuery: oak Document: elm\tfalse\n")
    assert AnswersWriter().read_pairs_file(path) == [
        SourceTarget("Query: oak Document: an oak\tRelevant:", "true"),
        SourceTarget("Query: oak Document: elm", "false"),
    ]
    path.write_text("x\ttrue\ny\tyes\n")
    with pytest.raises(BadInput, match=r"pairs\.tsv:2: the output text must be true or false, not 'yes'"):
        AnswersWriter().read_pairs_file(path)
    assert Seq2SeqWriter().read_pairs_file(path) == [SourceTarget("x", "true"), SourceTarget("y", "yes")]


def test_topics_of_ir_datasets(tmp_path, monkeypatch):
    """The real library, with topics of our own in its registry and the others out of reach."""
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "irds"))
    ir_datasets = pytest.importorskip("ir_datasets")
    from ir_datasets.formats import TrecQueries
    from ir_datasets.util import LocalDownload

    topic = "<top>\n<num> Number: {}\n<title> {}\n<desc> Description:\n{}\n<narr> Narrative:\nNone.\n</top>\n"
    both = topic.format(1, "Tides", "What makes\ntides?") + topic.format(2, "Tea", "How is tea made?")
    (tmp_path / "topics").write_text(both)
    topics = ir_datasets.Dataset(TrecQueries(LocalDownload(tmp_path / "topics")))
    monkeypatch.setattr(ir_datasets.registry, "_registered", {"toys": topics})
    pairs, lacking = build_topic_pairs(("toys", "dd-trec-2015"))
    assert pairs == [SourceTarget("What makes tides?", "Tides"), SourceTarget("How is tea made?", "Tea")]
    assert list(lacking) == ["dd-trec-2015"]
    with pytest.raises(BadInput, match=r"ir_datasets has no topics of these collections: nowhere \("):
        build_topic_pairs(("nowhere",))


def test_settings_of_the_paper():
    title = WRITERS.build("desc_to_title")
    assert (title.lr, title.batch, title.epochs, title.decay, title.prefix) == (2e-5, 32, 10, 0.01, "summarize: ")
    assert (title.source_length, title.target_length, title.checkpoint) == (128, 64, "google-t5/t5-base")
    assert len(TOPIC_COLLECTIONS) == 11


def test_settings_that_make_no_sense():
    for setting in ("held=1", "dim=3", "lr=0", "epochs=0", "layers=101", "target_length=1"):
        with pytest.raises(BadInput, match=rf"doc2query: {setting.partition('=')[0]} should be between"):
            WRITERS.build(f"doc2query({setting})")


def test_a_vocabulary_of_texts():
    tokenizer = train_tokenizer(["the red boat, the lake"] * 5 + ["tea"], limit=60)
    for said in ("the red boat", "tea", "a lake, the boat"):
        assert tokenizer.decode(tokenizer(said)["input_ids"], skip_special_tokens=True) == said
    assert tokenizer("boat")["input_ids"][-1] == tokenizer.eos_token_id == 1
    parts = [tokenizer(part, add_special_tokens=False)["input_ids"] for part in ("the red", "boat,", "tea")]
    whole = tokenizer("the red boat, tea", add_special_tokens=False)["input_ids"]
    assert whole == [piece for part in parts for piece in part]


def test_too_few_pairs(tmp_path):
    for few in (PAIRS[:1], PAIRS[:1] * 9):
        with pytest.raises(BadInput, match="1 pairs are too few; training needs at least 2 different pairs"):
            SMALL.fit(few, tmp_path / "model")
    assert seq2seq.Seq2SeqWriter(checkpoint="", epochs=1, dim=32).fit(PAIRS[:2], tmp_path / "two").is_dir()
