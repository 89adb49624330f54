"""One setting says what all nets compute on; only what changes scores is part of a ranker's name."""

from __future__ import annotations

import pytest

from shaketable import workers
from shaketable.data.corpus import MemoryCorpus
from shaketable.errors import BadInput
from shaketable.score import hardware
from shaketable.score.executor import Here, Job, Origin
from shaketable.score.hardware import Hardware
from shaketable.score.processes import Processes
from shaketable.types import Collection, Doc
from tests.rankers.nets import tiny
from tests.score.handing_out import bench
from tests.toys import slates

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def as_before():
    yield
    hardware.choose(Hardware())


@pytest.fixture
def opened(tmp_path):
    from shaketable.rankers.neural import HF

    folder = str(tiny.bert(tmp_path / "bert"))
    return lambda **how: HF(folder, **how).open(Collection("none", MemoryCorpus({"d": Doc("a")}), {}))


def test_a_batch_has_as_many_tokens_as_were_chosen_and_scores_do_not_change(opened):
    usual = opened()
    assert isinstance(workers(batch_tokens=40), Here)
    small = opened()
    assert (usual.budget, small.budget) == (4096, 40)
    assert usual.fingerprint == small.fingerprint
    for a, b in zip(usual.score(slates()), small.score(slates()), strict=True):
        assert a.tolist() == pytest.approx(b.tolist(), abs=1e-6)


def test_a_dtype_is_for_models_that_say_nothing_else_and_part_of_their_names(opened):
    usual, own = opened(), opened(precision="float16")
    workers(dtype="bfloat16")
    chosen = opened()
    assert (chosen.precision, opened(precision="float16").precision) == ("bfloat16", "float16")
    assert len({usual.fingerprint, own.fingerprint, chosen.fingerprint}) == 3
    assert opened(precision="float16").fingerprint == own.fingerprint
    workers(dtype="float32")
    assert opened().fingerprint == usual.fingerprint


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_refused_in_a_sentence(opened):
    workers(device="cuda")
    with pytest.raises(BadInput, match="torch sees no GPU"):
        opened()
    workers(device="cpu")
    assert opened().device.type == "cpu"


def test_workers_are_told_and_nets_score_there_as_here(tmp_path):
    hands = workers(jobs=2, dtype="float16", batch_tokens=77)
    assert isinstance(hands, Processes)
    told = hands.submit(Job(chosen_there, None, (), Origin("sample"))).result()
    assert told == Hardware("auto", "float16", 77)
    hardware.choose(Hardware())
    name = f"hf:{tiny.bert(tmp_path / 'bert')}"
    here, there = bench(Here(), name), bench(hands, name)
    for qid, scores in here.run(name).items():
        assert there.run(name)[qid] == pytest.approx(scores, abs=1e-6)
    assert here.ranker(name).counted == there.ranker(name).counted


def chosen_there(collection):
    return hardware.chosen()


@pytest.mark.parametrize("wrong", [{"device": "tpu"}, {"dtype": "int8"}, {"jobs": 0}, {"gpus": 1.0}])
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(BadInput):
        workers(**wrong)
