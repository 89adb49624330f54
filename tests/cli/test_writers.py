"""`shaketable train` for models that write: from a collection or from pairs to a checkpoint that others open."""

# ruff: noqa: E402
from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from shaketable.core.registries import WRITERS
from shaketable.datasets.trec import read_run
from shaketable.transforms.generated import open_generator
from tests.toys import text

pytestmark = pytest.mark.slow

FEW = "checkpoint='', dim=32, layers=1, epochs=1"


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """Nets this small are slower on several threads, and folders of one name are other folders in other tests."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    open_generator.cache_clear()
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def topics(folder: Path) -> Path:
    """The tiny collection with descriptions, and a split to learn from."""
    described = {
        "q1": "what do the leaves of oak trees look like",
        "q2": "which trees keep needles",
        "q3": "is bark good",
    }
    rows = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    rows = [row | {"metadata": {"description": described[row["_id"]]}} for row in rows]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "qrels" / "test.tsv").rename(folder / "qrels" / "train.tsv")
    return folder


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"all about {text(i, 5)}\t{text(i, 2)}\n" for i in range(20)))
    return path


def test_from_judgements_to_expanded_texts(shaketable, topics, tmp_path):
    ended = shaketable("train", f"doc2query({FEW})", "--data", topics, "--model", "writer", "--json", "card.json")
    assert ended.code == 0, ended.err
    (said,) = ended.err.splitlines()
    assert (
        "writer: doc2query(checkpoint='', epochs=1, layers=1, dim=32), trained on 3 pairs (trees, split train)" in said
    )
    assert "on 1 held-out pairs" in said
    assert "ln p -" in said
    assert "use it: --ranker \"doct5query(expander='writer')\"" in said
    assert said.endswith("it is only a test that training works")
    assert "training history" in ended.out
    told = json.loads(Path("card.json").read_text())
    assert told["card"]["pairs"]["learned"] == 3
    assert told["usage"] == "--ranker \"doct5query(expander='writer')\""
    for name, ranker in (("plain.run", "bm25"), ("more.run", "doct5query(expander='writer', n=1)")):
        ended = shaketable("rank", "--data", topics, "--ranker", ranker, "--write-run", name)
        assert ended.code == 0, ended.err
    plain, more = read_run(tmp_path / "plain.run"), read_run(tmp_path / "more.run")
    assert plain["q1"].keys() <= more["q1"].keys(), "the words of a text are still in it"
    assert plain["q1"] != more["q1"], "and others, that make it longer"


def test_from_descriptions_to_variations(shaketable, topics):
    ended = shaketable("train", f"desc_to_title({FEW})", "--data", topics, "--model", "titles", "--html", "page.html")
    assert ended.code == 0, ended.err
    assert "trained on 2 pairs (trees, split train)" in ended.err
    assert "use it: --transform \"desc_to_title(model='titles')\"" in ended.err
    assert "Training history" in Path("page.html").read_text()
    ended = shaketable("vary", topics, "--transform", "desc_to_title(model='titles')")
    assert ended.code == 0, ended.err
    rows = [json.loads(line) for line in ended.out.splitlines()]
    assert rows, "a net that knows nothing writes something all the same"
    assert {row["method"] for row in rows} == {"desc_to_title(model='titles')"}
    assert "of 3 queries" in ended.err


def test_from_judgements_to_a_monot5(shaketable, topics):
    words = ("--data", topics, "--model", "judge", "--depth", 3, "--first-stage", "ql")
    ended = shaketable("train", f"answers({FEW}, source_length=48)", *words)
    assert ended.code == 0, ended.err
    assert "use it: --ranker t5:judge" in ended.err
    ended = shaketable("rank", "--data", topics, "--ranker", "t5:judge", "--write-run", "t5.run")
    assert ended.code == 0, ended.err


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "answers"])
def test_every_writer_learns_from_a_file(shaketable, pairs, name):
    ended = shaketable("train", f"{name}({FEW})", "--text-pairs", pairs, "--model", "writer")
    assert ended.code == 0, ended.err
    assert f"trained on 18 pairs ({pairs})" in ended.err
    assert "on 2 held-out pairs" in ended.err
    again = shaketable("train", f"{name}({FEW})", "--text-pairs", "absent.tsv", "--model", "writer")
    assert "writer: already has a trained writer" in again.complaint(), "before anything is read"
    ended = shaketable("train", f"{name}({FEW}, held=5)", "--text-pairs", pairs, "--model", "writer", "--overwrite")
    assert "trained on 16 pairs" in ended.err


def test_answers_from_a_file(shaketable, tmp_path):
    rows = [
        f"Query: {text(i, 2)} Document: {text(i + i % 2, 9)} Relevant:\t{str(i % 2 == 0).lower()}\n" for i in range(9)
    ]
    (tmp_path / "pairs.tsv").write_text("".join(rows))
    ended = shaketable("train", f"answers({FEW})", "--text-pairs", "pairs.tsv", "--model", "judge")
    assert ended.code == 0, ended.err


def test_titles_of_topics_where_nothing_is_given(shaketable, tmp_path, monkeypatch):
    """The real ir_datasets, with topics of our own under the name of a collection of the paper."""
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "irds"))
    ir_datasets = pytest.importorskip("ir_datasets")
    from ir_datasets.formats import TrecQueries
    from ir_datasets.util import LocalDownload

    topic = "<top>\n<num> Number: {}\n<title> {}\n<desc> Description:\n{}\n<narr> Narrative:\nNone.\n</top>\n"
    (tmp_path / "topics").write_text("".join(topic.format(i, text(i, 2), f"Tell of {text(i, 6)}") for i in range(12)))
    ours = ir_datasets.Dataset(TrecQueries(LocalDownload(tmp_path / "topics")))
    monkeypatch.setattr(ir_datasets.registry, "_registered", {"trec-robust04": ours})
    ended = shaketable("train", f"desc_to_title({FEW})", "--model", "titles")
    assert ended.code == 0, ended.err
    assert "trained on 11 pairs (topics of ir_datasets)" in ended.err
    assert ended.err.count("ir_datasets gave no topics of ") == 10


def test_a_training_that_was_cut_off_goes_on(shaketable, pairs, monkeypatch):
    from shaketable.training import loop

    words = ("train", f"seq2seq({FEW.replace('epochs=1', 'epochs=3')}, batch=4)", "--text-pairs", pairs, "--model")
    assert shaketable(*words, "whole").code == 0
    step = loop.TrainingRun._step

    def stopping(training: loop.TrainingRun) -> None:
        if training.curve.step == 7:
            raise KeyboardInterrupt
        step(training)

    with monkeypatch.context() as patch:
        patch.setattr(loop.TrainingRun, "_step", stopping)
        assert shaketable(*words, "cut").code == 130
    steps = []
    monkeypatch.setattr(loop.TrainingRun, "_step", lambda training: steps.append(training.curve.step) or step(training))
    ended = shaketable(*words, "cut")
    assert ended.code == 0, ended.err
    assert steps[0] == 5, "from the last validation on"
    assert Path("cut/model.safetensors").read_bytes() == Path("whole/model.safetensors").read_bytes()
    assert not Path("cut/training").exists()


def test_options_that_are_not_a_writers(shaketable, topics, pairs):
    def complaint(*words: object) -> str:
        return shaketable("train", *words, "--model", "w").complaint()

    said = complaint("doc2query", "--data", topics, "--folds", 3, "--tune", "--preset", "msmarco")
    assert said == "leave out --folds and --tune and --preset: doc2query is a writer and does not learn to rank"
    assert "leave out --letor" in complaint("doc2query", "--letor", "x.txt")
    assert "leave out --valid-split" in complaint("doc2query", "--data", topics, "--valid-split", "dev")
    assert "leave out --not-worse-than" in complaint("doc2query", "--data", topics, "--not-worse-than", "bm25")
    assert "leave out --depth: doc2query does not use candidates" in complaint(
        "doc2query", "--data", topics, "--depth", 5
    )
    assert "leave out --first-stage" in complaint("answers", "--text-pairs", pairs, "--first-stage", "ql")
    assert "leave out --train-split" in complaint("doc2query", "--text-pairs", pairs, "--train-split", "dev")
    assert "either a collection (--data) or a file of pairs" in complaint(
        "doc2query", "--data", topics, "--text-pairs", pairs
    )
    assert "leave out --text-pairs: knrm learns to rank" in complaint("knrm", "--data", topics, "--text-pairs", pairs)
    assert "give doc2query a collection (--data) or a file of pairs (--text-pairs)" in complaint("doc2query")
    assert complaint("seq2seq", "--data", topics) == "give seq2seq a file of pairs (--text-pairs) to learn from"
    assert "no learner is called 'doc2qury'; did you mean doc2query?" in complaint("doc2qury", "--data", topics)
    assert "it takes: checkpoint" in complaint("doc2query(steps=3)", "--data", topics)
    assert not Path("w").exists()


def test_nothing_to_learn_from(shaketable, folder, pairs):
    words = ("--data", folder, "--model", "w")
    assert (
        "trees has no split train; create splits with --split-ratio"
        in shaketable("train", "doc2query", *words).complaint()
    )
    said = shaketable("train", "desc_to_title", *words, "--train-split", "all").complaint()
    assert said == "desc_to_title learns from descriptions of queries, and there are none in trees, split all"
    pairs.write_text("only one field\n")
    assert (
        "pairs.tsv:1: a line must have"
        in shaketable("train", "seq2seq", "--text-pairs", pairs, "--model", "w").complaint()
    )
    Path("w").mkdir()
    Path("w/thesis.txt").write_text("years of work")
    assert "w: exists and is not a model (it has thesis.txt)" in shaketable("train", "doc2query", *words).complaint()
