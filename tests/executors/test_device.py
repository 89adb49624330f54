"""One setting chooses the device of all nets; only settings that change scores are part of a ranker's name."""

from __future__ import annotations

import pytest

from shaketable import make_executor
from shaketable.core.documents import Collection, Doc
from shaketable.core.errors import BadInput
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.executors import device
from shaketable.executors.base import Job, RemoteSpec, SerialExecutor
from shaketable.executors.device import DeviceSettings
from shaketable.executors.processes import ProcessExecutor
from tests.rankers.neural import tiny
from tests.scoring.handing_out import experiment, read_device_settings
from tests.toys import slates

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def as_before():
    yield
    device.set_device_settings(DeviceSettings())


@pytest.fixture
def opened(tmp_path):
    from shaketable.rankers.neural.models import HuggingFaceCrossEncoder

    folder = str(tiny.bert(tmp_path / "bert"))
    return lambda **how: HuggingFaceCrossEncoder(folder, **how).open(
        Collection("none", MemoryCorpus({"d": Doc("a")}), {})
    )


def test_a_batch_has_as_many_tokens_as_were_chosen_and_scores_do_not_change(opened):
    usual = opened()
    assert isinstance(make_executor(batch_tokens=40), SerialExecutor)
    small = opened()
    assert (usual.batch_tokens, small.batch_tokens) == (2048, 40)
    assert usual.fingerprint == small.fingerprint
    for a, b in zip(usual.score(slates()), small.score(slates()), strict=True):
        assert a.tolist() == pytest.approx(b.tolist(), abs=1e-6)


def test_a_dtype_applies_to_models_without_their_own_and_changes_their_names(opened):
    usual, own = opened(), opened(precision="float16")
    make_executor(dtype="bfloat16")
    chosen = opened()
    assert (chosen.precision, opened(precision="float16").precision) == ("bfloat16", "float16")
    assert len({usual.fingerprint, own.fingerprint, chosen.fingerprint}) == 3
    assert opened(precision="float16").fingerprint == own.fingerprint
    make_executor(dtype="float32")
    assert opened().fingerprint == usual.fingerprint


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_refused_in_a_sentence(opened):
    make_executor(device="cuda")
    with pytest.raises(BadInput, match="torch sees no GPU"):
        opened()
    make_executor(device="cpu")
    assert opened().device.type == "cpu"


def test_workers_get_the_device_settings_and_give_equal_scores(tmp_path):
    hands = make_executor(jobs=2, dtype="float16", batch_tokens=77)
    assert isinstance(hands, ProcessExecutor)
    told = hands.submit(Job(read_device_settings, None, (), RemoteSpec("sample"))).result()
    assert told == DeviceSettings("auto", "float16", 77)
    device.set_device_settings(DeviceSettings())
    name = f"hf:{tiny.bert(tmp_path / 'bert')}"
    here, there = experiment(SerialExecutor(), name), experiment(ProcessExecutor(1), name)
    for qid, scores in here.get_run(name).items():
        assert there.get_run(name)[qid] == pytest.approx(scores, abs=1e-6)
    assert here.get_ranker(name).counters == there.get_ranker(name).counters


@pytest.mark.parametrize("wrong", [{"device": "tpu"}, {"dtype": "int8"}, {"jobs": 0}, {"gpus": 1.0}])
def test_invalid_settings_are_refused(wrong):
    with pytest.raises(BadInput):
        make_executor(**wrong)
