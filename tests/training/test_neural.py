"""Learners of neural rankers: from a collection to a model folder."""

# ruff: noqa: E402
from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from shaketable.core.documents import Collection, Doc, Query, Slate
from shaketable.core.errors import BadInput, UnknownName
from shaketable.core.registries import LEARNERS, OBJECTIVES
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.measures.effectiveness import score_table
from shaketable.testing import check_registry
from shaketable.training.neural import (
    BertLearner,
    ColBERTLearner,
    ConvKNRMLearner,
    DRMMLearner,
    DSSMLearner,
    DuetLearner,
    KNRMLearner,
    NeuralLearner,
)
from shaketable.training.plan import ShuffledLabelSource, TrainingPlan
from tests.toys import WORDS

torch = pytest.importorskip("torch")

from shaketable.rankers import persistence
from shaketable.rankers.neural import saving

pytestmark = pytest.mark.slow

QIDS = [f"q{i}" for i in range(10)]
TINY = {"steps": 6, "lists": 3, "size": 4, "every": 3}


def trees() -> Collection:
    """Ten queries of two words; three texts have both of them (grade 2), one has one (grade 1)."""
    queries = {qid: Query(f"{WORDS[i]} {WORDS[(i + 3) % len(WORDS)]}") for i, qid in enumerate(QIDS)}
    docs, qrels = {}, {}
    for i, (qid, query) in enumerate(queries.items()):
        first, second = query.text.split()
        for j in range(3):
            docs[f"{qid}-{j}"] = Doc(f"{letters(10 * i + j)} {first} {letters(500 + 10 * i + j)} {second}")
        docs[f"{qid}-3"] = Doc(f"{letters(900 + i)} {first} {letters(990 + i)}")
        qrels[qid] = {f"{qid}-{j}": 2 for j in range(3)} | {f"{qid}-3": 1}
    return Collection("trees", MemoryCorpus(docs), queries | {"q10": Query("nobody judged this")}, qrels)


def letters(seed: int) -> str:
    """Words that say nothing."""
    return " ".join(np.random.default_rng(seed).choice(list("bcfghjkz"), 4))


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """Nets this small are slower on several threads, most of all on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def vectors(tmp_path: Path) -> str:
    rng = np.random.default_rng(0)
    lines = [f"{word} {' '.join(f'{x:.3f}' for x in rng.normal(size=4))}" for word in WORDS]
    (tmp_path / "vectors.txt").write_text("\n".join(lines))
    return str(tmp_path / "vectors.txt")


def small(kind: str, vectors: str = "", **more) -> NeuralLearner:
    learner = LEARNERS.build(kind)
    kind = learner.kind
    sizes = {
        "dssm": {"layers": (8, 4)},
        "conv_knrm": {"filters": 4},
        "duet": {"filters": 3, "local": 4, "distributed": 4, "query_length": 4, "text_length": 16},
    }.get(kind, {})
    return replace(learner, **(TINY | sizes | ({"vectors": vectors} if vectors else {"lr": 0.01}) | more))


@pytest.mark.parametrize("catalogue", [LEARNERS, OBJECTIVES], ids=lambda c: c.kind)
def test_rows_are_values_with_a_text(catalogue):
    check_registry(catalogue)


def test_listing_loads_no_torch():
    script = "import sys\nfrom shaketable.training import neural\nprint('torch' in sys.modules, 'scipy' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False", "False"]


def test_presets_set_the_input_lengths():
    """A change of a default does not change a preset."""
    for name in LEARNERS:
        learner = LEARNERS.get_class(name)
        for preset in getattr(learner, "presets", {}).values():
            lengths = {f.name for f in fields(learner) if f.name.endswith("_length")}
            assert lengths <= preset.keys(), name


def test_settings_of_the_paper():
    assert DSSMLearner().preset("robust04").layers == DSSMLearner().preset("mq2007").layers == (100, 100, 50)
    assert DSSMLearner().preset("msmarco").layers == (300, 300, 128)
    assert [DRMMLearner().preset(name).hidden for name in ("robust04", "mq2007", "msmarco")] == [5, 5, 10]
    assert DRMMLearner().preset("msmarco").bins == 30
    assert (ConvKNRMLearner().preset("mq2007").grams, ConvKNRMLearner().preset("mq2007").filters) == (3, 128)
    assert KNRMLearner().preset("robust04").kernels == 11
    sizes = [(d.filters, d.local, d.distributed) for d in map(DuetLearner().preset, ("robust04", "mq2007", "msmarco"))]
    assert sizes == [(10, 30, 699), (10, 20, 20), (32, 32, 32)]
    assert BertLearner().preset("msmarco").objective == "bce"
    assert BertLearner.grid["lr"] == (5e-5, 3e-5, 2e-5)
    assert {BertLearner().preset(name).max_length for name in BertLearner.presets} == {512}
    assert ColBERTLearner().preset("robust04").lr == 3e-6
    with pytest.raises(UnknownName, match="robust04"):
        DSSMLearner().preset("robust")


@pytest.mark.parametrize("kind", ["dssm", "drmm", "knrm", "conv_knrm", "duet", "duet(input='trigrams')"])
def test_a_learner_leaves_a_model_that_ranks(tmp_path, kind):
    collection = trees()
    model = small(kind).fit(collection, QIDS[:8], valid=QIDS[8:], seed=1, folder=tmp_path / "model")
    files = sorted(path.name for path in (tmp_path / "model").rglob("*.*"))
    assert files == ["model.json", "vocabulary.json", "weights.safetensors"]
    about = json.loads((tmp_path / "model" / "model.json").read_text())
    assert (about["schema"], about["kind"]) == ("shaketable.model/2", small(kind).kind)
    card = about["card"]
    assert card["learner"] == LEARNERS.spec(small(kind))
    assert (card["seed"], card["objective"], card["plan"]) == (1, "softmax", "judgements softmax")
    assert (card["train"], card["valid"]) == ({"queries": 8, "lists": 8}, {"queries": 2, "measure": "nDCG@10"})
    assert [row["step"] for row in card["history"]] == [0, 3, 6]
    assert card["value"] == max(row["valid"] for row in card["history"])
    assert card["parameters"] == sum(p.numel() for p in saving.read_net(tmp_path / "model").parameters())
    (scores,) = model.open(collection).score([Slate("oak elm", (Doc("oak"), Doc("")))])
    assert np.isfinite(scores).all()


def test_vectors_of_a_file_are_taken_and_stay(tmp_path, vectors):
    small("knrm", vectors, lr=0.1).fit(trees(), QIDS, folder=tmp_path / "model")
    net = saving.read_net(tmp_path / "model")
    rows = [list(map(float, line.split()[1:])) for line in Path(vectors).read_text().splitlines()]
    assert net.vocabulary.words == tuple(WORDS)
    torch.testing.assert_close(net.words.weight[1:], torch.tensor(rows))
    small("knrm", vectors, lr=0.1, frozen=False).fit(trees(), QIDS, folder=tmp_path / "moved")
    assert not torch.equal(saving.read_net(tmp_path / "moved").words.weight, net.words.weight)


def test_frozen_vectors_stay_frozen_in_a_resumed_training(tmp_path, vectors):
    small("knrm", vectors).fit(trees(), QIDS, folder=tmp_path / "first")
    small("knrm", start=str(tmp_path / "first"), lr=0.1).fit(trees(), QIDS, folder=tmp_path / "second")
    first, second = saving.read_net(tmp_path / "first"), saving.read_net(tmp_path / "second")
    assert torch.equal(first.words.weight, second.words.weight)
    assert not torch.equal(first.combine.weight, second.combine.weight)


def test_a_fifth_of_the_queries_is_held_out_by_default(tmp_path):
    small("knrm").fit(trees(), QIDS, folder=tmp_path / "model")
    card = saving.read_description(tmp_path / "model")["card"]
    assert (card["train"]["queries"], card["valid"]["queries"]) == (8, 2)


def test_letter_trigrams_replace_vectors(vectors):
    with pytest.raises(BadInput, match="reads words by their letters, so leave out vectors"):
        DuetLearner(input="trigrams", vectors=vectors).build_net(trees())


def test_a_trained_model_beats_the_control(tmp_path):
    collection, learner = trees(), small("knrm", steps=60, every=10, lr=0.05, patience=9)
    docnos = list(collection.docs)
    slates = [Slate(collection.queries[qid].text, tuple(collection.docs.values())) for qid in QIDS[7:]]
    values = {}
    for control in (False, True):
        plan = TrainingPlan(ShuffledLabelSource()) if control else None
        model = learner.fit(collection, QIDS[:7], valid=QIDS[7:], folder=tmp_path / str(control), plan=plan)
        assert model.read_card()["plan"] == ("control" if control else "judgements softmax")
        scores = model.open(collection).score(slates)
        run = {qid: dict(zip(docnos, row.tolist(), strict=True)) for qid, row in zip(QIDS[7:], scores, strict=True)}
        values[control] = score_table("AP", {qid: collection.qrels[qid] for qid in QIDS[7:]}, {"": run}).values.mean()
    assert values[False] > 0.8
    assert values[True] < 0.6


def test_a_teacher_replaces_judgements(tmp_path):
    collection = replace(trees(), qrels={})
    learner = small("knrm", teacher="bm25", sentences=5, steps=40, every=10, lr=0.05, measure="RR")
    learner.fit(collection, QIDS, folder=tmp_path / "model")
    card = saving.read_description(tmp_path / "model")["card"]
    assert card["objective"] == "margin_mse"
    assert card["train"]["queries"] == 8
    assert card["valid"]["queries"] == 2
    assert card["history"][-1]["loss"] < 0.8 * card["history"][1]["loss"]


def test_one_begins_where_another_ended(tmp_path):
    small("knrm", teacher="bm25").fit(trees(), QIDS, folder=tmp_path / "weak")
    learner = small("knrm", start=str(tmp_path / "weak"), steps=1, lr=1e-9)
    learner.fit(trees(), QIDS, folder=tmp_path / "model")
    first, second = (saving.read_net(tmp_path / name).state_dict() for name in ("weak", "model"))
    for name in first:
        torch.testing.assert_close(first[name], second[name], atol=1e-6, rtol=0)
    with pytest.raises(BadInput, match="is a model of the kind knrm; drmm cannot start from it"):
        small("drmm", start=str(tmp_path / "weak")).fit(trees(), QIDS, folder=tmp_path / "other")
    wanted = f"has kernels={small('knrm').kernels}, and knrm with kernels=5 cannot start from it; write kernels="
    with pytest.raises(BadInput, match=wanted):
        small("knrm", kernels=5, start=str(tmp_path / "weak")).fit(trees(), QIDS, folder=tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_seeds_differ_and_the_same_one_repeats(tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        small("duet").fit(trees(), QIDS, seed=seed, folder=tmp_path / name)
    first, second, third = (persistence.read_manifest(tmp_path / name).fingerprint for name in "abc")
    assert first == second != third


def test_candidates_of_the_collection_are_used(tmp_path):
    collection = trees()
    own = replace(collection, candidates={qid: {f"{qid}-0": 1.0, f"{qid}-3": 2.0} for qid in QIDS})
    small("knrm", first_stage="nobody", measure="P@2").fit(own, QIDS, folder=tmp_path / "model")
    card = saving.read_description(tmp_path / "model")["card"]
    assert {row["valid"] for row in card["history"]} == {1.0}, "only the two candidates were ranked"


@pytest.mark.parametrize(
    ("changes", "train", "valid", "message"),
    [
        ({}, ["q1", "q77"], [], "collection trees has no query 'q77'"),
        ({}, ["q1", "q2"], ["q2"], "query 'q2' is in both the training and the validation queries"),
        ({}, ["q1"], [], "too few to learn from and to validate on"),
        ({}, QIDS, ["q10"], "no validation query has judgements"),
        ({"objective": "hing"}, QIDS, [], "did you mean hinge"),
        ({"steps": 0}, QIDS, [], "knrm: steps should be between 1 and 10,000,000, not 0"),
        ({"vectors": "nowhere.txt"}, QIDS, [], "nowhere.txt: there is no such file"),
        ({"start": "nowhere"}, QIDS, [], "no saved model"),
        ({"teacher": "bm52"}, QIDS, [], "did you mean bm25"),
    ],
)
def test_an_error_is_reported_and_leaves_no_files(tmp_path, changes, train, valid, message):
    with pytest.raises((BadInput, UnknownName), match=message):
        small("knrm", **changes).fit(trees(), train, valid=valid, folder=tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_queries_without_judgements_teach_nothing(tmp_path):
    with pytest.raises(BadInput, match="relevant document"):
        small("knrm").fit(replace(trees(), qrels={}), QIDS, folder=tmp_path / "model")


def test_a_finished_model_is_not_written_over_unless_it_may_be(tmp_path):
    small("knrm").fit(trees(), QIDS, folder=tmp_path / "model")
    before = saving.compute_fingerprint(tmp_path / "model")
    with pytest.raises(BadInput, match="already has a model"):
        small("knrm").fit(trees(), QIDS, folder=tmp_path / "model")
    (tmp_path / "model" / "test.run").write_text("precious")
    small("dssm").fit(trees(), QIDS, folder=tmp_path / "model", overwrite=True)
    assert saving.compute_fingerprint(tmp_path / "model") != before
    assert saving.read_net(tmp_path / "model").kind == "dssm"
    assert sorted(path.name for path in (tmp_path / "model").iterdir())[1:] == ["model.json", "test.run"]


def test_nothing_of_others_is_written_into_or_removed(tmp_path):
    """A user's own folder training/ was once deleted."""
    (tmp_path / "project" / "training").mkdir(parents=True)
    (tmp_path / "project" / "training" / "queries.tsv").write_text("precious")
    for overwrite in (False, True):
        with pytest.raises(BadInput, match="exists and is not a model"):
            small("knrm").fit(trees(), QIDS, folder=tmp_path / "project", overwrite=overwrite)
    assert (tmp_path / "project" / "training" / "queries.tsv").read_text() == "precious"


@pytest.mark.parametrize("kind", ["bert", "colbert", "dense", "epic", "monot5"])
def test_encoders_are_trained_from_a_checkpoint(tmp_path, kind):
    from tests.rankers.neural.tiny import encoder, t5

    make = t5 if kind == "monot5" else encoder
    lengths = {"query_length": 8, "text_length": 32} if kind == "colbert" else {"max_length": 32}
    learner = replace(LEARNERS.build(kind), checkpoint=str(make(tmp_path / "tiny")), **lengths)
    collection = trees()
    model = replace(learner, **TINY).fit(collection, QIDS[:9], valid=QIDS[9:], folder=tmp_path / "model")
    assert {"weights.safetensors", "tokenizer.json"} <= {path.name for path in (tmp_path / "model").glob("*/*")}
    (scores,) = model.open(collection).score([Slate("oak elm", (Doc("oak elm"), Doc("")))])
    assert np.isfinite(scores).all()
