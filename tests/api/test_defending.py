"""Training with a defence, from the API to a model folder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import shaketable
from shaketable.core.documents import Slate
from shaketable.core.errors import BadInput
from shaketable.datasets.adversarial_documents import read_adversarial_documents
from shaketable.datasets.sample import read_sample
from shaketable.rankers.saved import SavedModel
from shaketable.training.plan import TrainingPlan

torch = pytest.importorskip("torch")

TINY = "knrm(steps=6, every=3, lists=3, size=4, lr=0.1, dim=8)"
FEW = "queries=4, documents=3"


@pytest.fixture(autouse=True)
def alone():
    """Nets this small are slower on several threads, most of all on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def kept(shared_home: Path, monkeypatch) -> Path:
    """A home that tests share, so that the model without a defence is trained once."""
    monkeypatch.setenv("SHAKETABLE_HOME", str(shared_home))
    return shared_home


def weights(folder: Path) -> dict[str, np.ndarray]:
    from shaketable.rankers.neural.saving import read_net

    return {name: tensor.numpy() for name, tensor in read_net(folder).state_dict().items()}


def same(a: Path, b: Path) -> bool:
    left, right = weights(a), weights(b)
    return left.keys() == right.keys() and all(np.array_equal(left[name], right[name]) for name in left)


def train_ranker(folder: Path, defence: str | None, **more):
    said: list[str] = []
    learner = more.pop("learner", TINY)
    done = shaketable.train(learner, "sample", folder, depth=20, defence=defence, notify=said.append, **more)
    return done, said


@pytest.mark.parametrize(
    "defence",
    [
        f"at({FEW})",
        f"piat({FEW})",
        f"piat({FEW}, loss='kl')",
        f"piat({FEW}, loss='listnet', top=2, size=6, attacked=3)",
        f"da({FEW})",
        "da(copies=1, words=4)",
    ],
)
def test_every_defence_trains_a_ranker_and_its_card_tells(kept, tmp_path, defence):
    done, said = train_ranker(tmp_path / "m", defence)
    card = SavedModel(str(tmp_path / "m")).read_card()
    assert f"defended by {card['defence']['text']}" in str(done)
    assert f"defended by {card['defence']['text']}" in str(done)
    assert card["defence"]["text"] == defence.replace("queries=4, documents=3", "documents=3, queries=4")
    assert done.card["defence"] == card["defence"]
    assert card["steps"] == 6
    assert all(np.isfinite(row.get("loss", 0)) for row in card["history"])
    if FEW in defence:
        told = card["defence"]
        assert told["recipe"] == "white_wsra"
        assert told["examples"]["documents"] == 12
        assert told["examples"]["pairs"] > 12
        assert told["examples"]["seconds"] >= 0
        assert told["standard training"]["steps"] == 6
        assert any("is trained without a defence" in one for one in said)
        assert len(list((kept / "adversaries").glob("*.jsonl"))) == 1, "all defences share the examples"
    else:
        assert card["best"] > 0
        assert said == []
    collection = read_sample()
    ranker = done.model.open(collection)
    (scores,) = ranker.score([Slate("tea", tuple(doc for _, doc in list(collection.docs.items())[:5]))])
    assert np.isfinite(scores).all()


def test_piat_learns_from_queries_without_judgements(home, tmp_path):
    """Their candidates are attacked, and their lists are drawn beside the labelled ones."""
    topics = tmp_path / "more.tsv"
    topics.write_text("u1\thow to store tea\nu2\tsmall boats on a river\n")
    done, _ = train_ranker(tmp_path / "m", "piat(documents=1)", unlabelled=topics)
    plain, _ = train_ranker(tmp_path / "n", "piat(documents=1)")
    rows = [one for path in (home / "adversaries").glob("*.jsonl") for one in read_adversarial_documents(path)]
    assert {"u1", "u2"} <= {qid for one in rows for qid in one.queries}
    counts = [one.card["defence"]["examples"]["documents"] for one in (done, plain)]
    assert counts[0] == counts[1] + 2
    assert not same(tmp_path / "m", tmp_path / "n")


def test_unlabelled_queries_need_piat_and_ids_of_their_own(tmp_path):
    topics = tmp_path / "more.tsv"
    taken = next(iter(read_sample().queries))
    topics.write_text(f"{taken}\thow to store tea\n")
    with pytest.raises(BadInput, match="leave out --unlabelled: only the defence piat"):
        train_ranker(tmp_path / "m", "at", unlabelled=topics)
    with pytest.raises(BadInput, match=f"the unlabelled query '{taken}' has the id"):
        train_ranker(tmp_path / "m", "piat", unlabelled=topics)


def test_no_defence_standard_training_and_piat_of_natural_loss_alone_are_one(kept, tmp_path):
    train_ranker(tmp_path / "none", None)
    train_ranker(tmp_path / "standard", "standard")
    train_ranker(tmp_path / "one", f"piat({FEW}, lambda_=1)")
    train_ranker(tmp_path / "half", f"piat({FEW})")
    assert same(tmp_path / "none", tmp_path / "standard")
    assert "defence" not in SavedModel(str(tmp_path / "standard")).read_card()
    assert history(tmp_path / "one") == history(tmp_path / "none")
    assert same(tmp_path / "none", tmp_path / "one")
    assert SavedModel(str(tmp_path / "none")).read_card()["best"] > 0  # so these are weights that were learned
    assert not same(tmp_path / "none", tmp_path / "half")


def history(folder: Path) -> list[dict[str, float]]:
    rows: list[dict[str, float]] = SavedModel(str(folder)).read_card()["history"]
    return rows


def test_the_same_twice_gives_the_same_weights(kept, tmp_path):
    for name in ("a", "b"):
        train_ranker(tmp_path / name, f"at({FEW})")
    assert same(tmp_path / "a", tmp_path / "b")
    assert history(tmp_path / "a") == history(tmp_path / "b")


def test_examples_are_of_queries_to_learn_from(kept, tmp_path):
    train_ranker(tmp_path / "m", f"at({FEW})")
    collection = read_sample()
    (path,) = (kept / "adversaries").glob("*.jsonl")
    for one in read_adversarial_documents(path):
        (qid,) = one.queries
        assert qid in collection.splits["train"]
        assert collection.qrels[qid].get(one.docno, 0) <= 0


def test_queries_that_are_held_out_are_not_attacked(tmp_path, home):
    """In an earlier version they were, and the result was useless."""
    whole = read_sample()
    qids = whole.splits["train"][:10]
    few = replace(whole, splits={"train": qids}, source="")
    shaketable.train(TINY, few, tmp_path / "m", depth=20, defence="at(documents=2)")
    (path,) = (home / "adversaries").glob("*.jsonl")
    attacked = {qid for one in read_adversarial_documents(path) for qid in one.queries}
    assert len(attacked) == SavedModel(str(tmp_path / "m")).read_card()["train"]["queries"] == 8


def test_attacked_documents_of_a_file_replace_examples(kept, tmp_path):
    train_ranker(tmp_path / "m", f"at({FEW})")
    (path,) = (kept / "adversaries").glob("*.jsonl")
    mine = tmp_path / "mine.jsonl"
    mine.write_bytes(path.read_bytes())
    _, said = train_ranker(tmp_path / "n", "at", adversarial_documents=mine)
    assert not any("is trained without a defence" in one for one in said)
    assert SavedModel(str(tmp_path / "n")).read_card()["defence"] == {"text": "at", "attacked": str(mine)}
    assert same(tmp_path / "m", tmp_path / "n")


def test_a_training_without_improvement_is_reported(tmp_path):
    """The best weights on the validation queries are kept; these may be the weights before the first step."""
    done, said = train_ranker(tmp_path / "m", "da(words=2)", learner=TINY.replace("lr=0.1", "lr=1e-12"))
    assert done.card["best"] == 0
    (sentence,) = said
    assert "no training step improved the validation value" in sentence


def test_a_defence_of_your_own(tmp_path):
    class Nothing:
        def plan(self, plan: TrainingPlan, adversaries) -> TrainingPlan:
            return plan

    done, _ = train_ranker(tmp_path / "m", Nothing())
    assert done.card["steps"] == 6


@pytest.mark.parametrize("learner", ["ranksvm", "bm25", "lambdamart"])
@pytest.mark.parametrize("defence", ["da", "at", "piat"])
def test_what_is_no_net_cannot_be_defended(tmp_path, learner, defence):
    with pytest.raises(BadInput) as caught:
        train_ranker(tmp_path / "m", defence, learner=learner)
    assert str(caught.value) == f"{defence} needs a neural learner, and {learner} is not one; use for example knrm"
    assert not (tmp_path / "m").exists()


def test_what_is_no_net_can_be_trained_as_usual(tmp_path):
    done, _ = train_ranker(tmp_path / "m", "standard", learner="ranksvm")
    assert done.card["importance"]


def test_senseless_wishes_are_refused_in_a_sentence(kept, tmp_path):
    out = tmp_path / "m"
    cases = {
        "leave out --adversarial-documents: da.words=5. does not learn from attacked documents": {
            "defence": "da(words=5)",
            "adversarial_documents": "x.jsonl",
        },
        "leave out --adversarial-documents: adversarial documents are for a defence": {
            "defence": None,
            "adversarial_documents": "x.jsonl",
        },
        "x.jsonl: there is no such file": {"defence": "at", "adversarial_documents": "x.jsonl"},
        "--folds trains several": {"defence": "at", "folds": 3},
        "no gradients with respect to words": {
            "defence": f"at({FEW})",
            "learner": "dssm(steps=2, every=2, lists=2, size=3, layers=(4, 2))",
        },
        "so this defence needs lists made from judgements": {
            "defence": f"at({FEW})",
            "learner": "knrm(teacher='bm25', steps=2, every=2, lists=2, size=3, dim=4)",
        },
    }
    for complaint, wish in cases.items():
        with pytest.raises(BadInput, match=complaint):
            train_ranker(out, **wish)
        assert not (out / "model.json").exists()
    with pytest.raises(BadInput, match="is not a defence"):
        train_ranker(out, object())


def test_a_file_of_another_collection_is_refused(tmp_path):
    row = {"queries": {"q-none": "a"}, "docno": "d", "text": "x"}
    (tmp_path / "other.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(BadInput, match=r"other\.jsonl: does not belong to the collection"):
        train_ranker(tmp_path / "m", "piat", adversarial_documents=tmp_path / "other.jsonl")


def test_folds_can_be_defended_without_attacks(tmp_path):
    done, _ = train_ranker(tmp_path / "m", "da(copies=1, words=2)", folds=3)
    assert done.card["folds"] == 3
