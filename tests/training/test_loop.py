"""The training loop: it learns, keeps the best, stops, resumes after a crash, and reports errors."""

# ruff: noqa: E402
from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load_file

from shaketable.core.errors import BadInput, Damaged
from shaketable.nlp.analyzer import Analyzer
from shaketable.rankers.neural import conv_knrm, drmm, dssm, duet, knrm
from shaketable.rankers.neural.net import Net
from shaketable.rankers.neural.shapes import (
    BertShape,
    ColBERTShape,
    ConvKNRMShape,
    DRMMShape,
    DSSMShape,
    DuetShape,
    EPICShape,
    KNRMShape,
    MonoT5Shape,
)
from shaketable.rankers.neural.words import Vocabulary, letter_trigrams
from shaketable.training.list_sources import Sample
from shaketable.training.loop import TRAINING_FOLDER, TrainingCurve, TrainingRun, TrainingSchedule
from shaketable.training.losses import SoftmaxLoss
from tests.toys import WORDS, text

pytestmark = pytest.mark.slow

TOKENIZER = Analyzer(stemmer="none")
VOCABULARY = Vocabulary(tuple(WORDS), TOKENIZER)
TRIGRAMS = Vocabulary(tuple(sorted({t for word in WORDS for t in letter_trigrams(word)})), TOKENIZER)
DUET = DuetShape(filters=8, local=8, distributed=8, pool=2, query_length=4, text_length=10)
SCHEDULE = TrainingSchedule(steps=12, lists=2, lr=0.05, every=3)


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """Nets this small are slower on several threads, most of all on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@dataclass
class TenQueries:
    """Ten lists that are always the same: the first text has the query's words, the others are random."""

    size: int = 4
    drawn: list[tuple[int, int]] = field(default_factory=list)

    def __len__(self) -> int:
        return 10

    def draw(self, number: int, turn: int) -> Sample:
        self.drawn.append((number, turn))
        query = text(number, 2)
        texts = (f"{text(50 + number, 6)} {query}", *(text(100 + 10 * number + i, 8) for i in range(self.size - 1)))
        return Sample(f"q{number}", query, texts, (1.0, *[0.0] * (self.size - 1)))


def small_net(kind: str = "knrm") -> Net:
    torch.manual_seed(1)
    if kind == "dssm":
        return dssm.DSSM(TRIGRAMS, DSSMShape((16, 16, 8)))
    return {
        "drmm": lambda: drmm.DRMM(VOCABULARY, 8, DRMMShape()),
        "knrm": lambda: knrm.KNRM(VOCABULARY, 8, KNRMShape()),
        "conv_knrm": lambda: conv_knrm.ConvKNRM(VOCABULARY, 8, ConvKNRMShape(filters=8)),
        "duet": lambda: duet.Duet(VOCABULARY, 8, DUET),
        "duet on trigrams": lambda: duet.Duet(TRIGRAMS, 0, replace(DUET, input="trigrams")),
    }[kind]()


def right(net: Net) -> float:
    """Return the share of the ten queries whose relevant text is first."""
    net.eval()
    with torch.no_grad():
        samples = [TenQueries().draw(number, 0) for number in range(10)]
        lists = [net(**net.collate(net.prepare([(s.query, body) for body in s.texts]))) for s in samples]
    return sum(int(scores.argmax()) == 0 for scores in lists) / len(lists)


def training(folder: Path, **changes) -> TrainingRun:
    given = {
        "net": small_net(), "source": TenQueries(), "objective": SoftmaxLoss(), "validation": right,
        "schedule": SCHEDULE, "seed": 0, "folder": folder, "run_settings": {"name": "test"},
    }  # fmt: skip
    return TrainingRun(**(given | changes))


def weights(net: Net) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in net.state_dict().items()}


def same(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def open_pretrained(kind: str, folder: Path) -> Net:
    from shaketable.rankers.neural import bert, colbert, epic, monot5
    from tests.rankers.neural import tiny
    from tests.rankers.neural.tiny import encoder, write_masked_model

    if kind == "epic":
        return epic.EPIC.from_checkpoint(str(write_masked_model(folder)), EPICShape(max_length=32))
    if kind == "monot5":
        return monot5.MonoT5.from_checkpoint(str(tiny.t5(folder)), MonoT5Shape(max_length=48))
    checkpoint = str(encoder(folder))
    if kind == "bert":
        return bert.CrossEncoder.from_checkpoint(checkpoint, BertShape(max_length=32), fresh=True)
    return colbert.ColBERT.from_checkpoint(checkpoint, ColBERTShape(dim=16, query_length=8, text_length=32))


SMALL = ["dssm", "drmm", "knrm", "conv_knrm", "duet", "duet on trigrams"]
LARGE = {"bert": (60, 0.005), "colbert": (60, 0.005), "epic": (60, 0.005), "monot5": (300, 0.003)}
"""Those that begin with a checkpoint: their steps and rates."""


@pytest.mark.parametrize("kind", [*SMALL, *LARGE])
def test_every_net_overfits_ten_queries(tmp_path, kind):
    net = open_pretrained(kind, tmp_path / "tiny") if kind in LARGE else small_net(kind)
    steps, lr = LARGE.get(kind, (100, 0.05))
    schedule = TrainingSchedule(steps=steps, lists=5, lr=lr, every=20, patience=9)
    run = training(tmp_path, net=net, schedule=schedule)
    course = run.run()
    assert right(run.net) == 1.0
    assert course.history[-1]["loss"] < 0.7 * course.history[1]["loss"]


def test_the_rate_rises_and_falls():
    schedule = TrainingSchedule(steps=100, lists=1, lr=1.0, warmup=0.1)
    rates = [schedule.compute_lr_factor(step) for step in range(1, 101)]
    assert rates[:10] == pytest.approx([0.1 * i for i in range(1, 11)])
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[-1] == pytest.approx(1 / 90)
    assert max(rates) == 1.0


WRONG = [("steps", 0), ("lists", 0), ("every", 0), ("patience", 0), ("lr", 0.0), ("lr", float("nan")), ("clip", 0.0)]


@pytest.mark.parametrize(("name", "value"), [*WRONG, ("warmup", 1.0), ("decay", -1.0)])
def test_a_schedule_that_makes_no_sense_is_refused(name, value):
    with pytest.raises(BadInput, match=name):
        replace(SCHEDULE, **{name: value})


def test_each_pass_has_every_list_once_in_another_order(tmp_path):
    source = TenQueries()
    training(tmp_path, source=source, schedule=replace(SCHEDULE, steps=10, lists=3)).run()
    assert [turn for _, turn in source.drawn] == [0] * 10 + [1] * 10 + [2] * 10
    passes = [[number for number, turn in source.drawn if turn == t] for t in range(3)]
    assert all(sorted(numbers) == list(range(10)) for numbers in passes)
    assert passes[0] != passes[1]


def test_the_best_validation_is_kept_and_training_stops_early(tmp_path):
    values = iter([0.1, 0.5, 0.9, 0.4, 0.9, 0.2, 1.0])
    seen: list[dict[str, torch.Tensor]] = []

    def validate(net: Net) -> float:
        seen.append(weights(net))
        return next(values)

    run = training(
        tmp_path, validation=validate, schedule=TrainingSchedule(steps=99, lists=2, lr=0.05, every=4, patience=3)
    )
    course = run.run()
    assert (course.best, course.value, course.step) == (8, 0.9, 20)
    assert [row["step"] for row in course.history] == [0, 4, 8, 12, 16, 20]
    assert same(weights(run.net), seen[2])
    assert [path.name for path in (tmp_path / TRAINING_FOLDER).glob("best-*")] == ["best-8.safetensors"]
    run.clean()
    assert not (tmp_path / TRAINING_FOLDER).exists()


def test_the_last_weights_are_kept_on_request(tmp_path):
    values = iter([0.9, 0.5, 0.1, 0.4])
    seen: list[dict[str, torch.Tensor]] = []

    def validate(net: Net) -> float:
        seen.append(weights(net))
        return next(values)

    schedule = TrainingSchedule(steps=12, lists=2, lr=0.05, every=4, patience=1, last=True)
    run = training(tmp_path, validation=validate, schedule=schedule)
    course = run.run()
    assert (course.best, course.value, course.step) == (12, 0.4, 12)
    assert same(weights(run.net), seen[-1])


def test_the_same_seed_gives_the_same_weights_and_another_does_not(tmp_path):
    runs = [training(tmp_path / str(i), net=small_net("duet"), seed=seed) for i, seed in enumerate((0, 0, 1))]
    for run in runs:
        run.run()
    first, second, third = (load_file(run.folder / TRAINING_FOLDER / "state.safetensors") for run in runs)
    assert same(first, second)
    assert not same(first, third)


def test_training_leaves_the_global_generator_alone(tmp_path):
    run = training(tmp_path)
    torch.manual_seed(4)
    expected = torch.rand(1)
    torch.manual_seed(4)
    run.run()
    assert torch.equal(torch.rand(1), expected)


def test_frozen_vectors_stay_as_they_are(tmp_path):
    net = small_net()
    net.words.weight.requires_grad_(False)
    before = net.words.weight.clone()
    run = training(tmp_path, net=net)
    run.run()
    assert torch.equal(net.words.weight, before)
    assert not any("words" in name for name in load_file(tmp_path / TRAINING_FOLDER / "state.safetensors"))


class Stop(Exception):
    pass


@pytest.mark.parametrize("at", [1, 4, 5, 11])
def test_a_run_that_was_interrupted_comes_to_the_same_end(tmp_path, at):
    whole = training(tmp_path / "whole", net=small_net("duet"))
    course = whole.run()

    @contextmanager
    def stopping(what, total, unit):
        def advance(done):
            if broken.curve.step == at:
                raise Stop

        yield advance

    broken = training(tmp_path / "broken", net=small_net("duet"), progress=stopping)
    with pytest.raises(Stop):
        broken.run()
    again = training(tmp_path / "broken", net=small_net("duet"))
    assert again.run().history == course.history
    assert same(weights(again.net), weights(whole.net))


CHILD = """
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
import torch
from tests.training.test_loop import small_net, training

torch.set_num_threads(1)

@contextmanager
def telling(what, total, unit):
    yield lambda done: print(what, flush=True)

training(Path(sys.argv[1]), net=small_net("duet"), progress=telling).run()
"""


def test_a_run_that_was_killed_comes_to_the_same_end(tmp_path):
    whole = training(tmp_path / "whole", net=small_net("duet"))
    course = whole.run()
    root = Path(__file__).parents[2]
    source = str(Path(sys.modules["shaketable"].__file__).parents[1])
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path / "killed")],
        cwd=root, env=os.environ | {"PYTHONPATH": f"{source}{os.pathsep}{root}"}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    for _ in range(8):  # steps
        assert child.stdout.readline()
    os.kill(child.pid, signal.SIGKILL)
    child.stdout.close()
    assert child.wait() == -signal.SIGKILL
    again = training(tmp_path / "killed", net=small_net("duet"))
    assert again.run().history == course.history
    assert same(weights(again.net), weights(whole.net))


def test_a_training_does_not_resume_from_another_one(tmp_path):
    training(tmp_path).run()
    with pytest.raises(BadInput, match="belongs to a training of other data or settings"):
        training(tmp_path, run_settings={"name": "another"}).run()


@pytest.mark.parametrize("name", ["state", "best-0"])
@pytest.mark.parametrize(
    "harm",
    [
        lambda path: path.write_bytes(b"nothing"),
        lambda path: os.truncate(path, path.stat().st_size - 3),
        lambda path: flip(path, -5),  # a number
        lambda path: flip(path, 60),  # in the header
    ],
)
def test_a_damaged_file_is_named(tmp_path, name, harm):
    """And not at the end of a training, but when it begins."""
    training(tmp_path, validation=lambda net: 0.5).run()
    harm(tmp_path / TRAINING_FOLDER / f"{name}.safetensors")
    with pytest.raises(Damaged, match=rf"{name}\.safetensors: .*; remove its folder to start again"):
        training(tmp_path, validation=lambda net: 0.5).run()


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def test_best_weights_that_are_gone_are_named(tmp_path):
    training(tmp_path, validation=lambda net: 0.5).run()
    (tmp_path / TRAINING_FOLDER / "best-0.safetensors").unlink()
    with pytest.raises(Damaged, match=r"best-0\.safetensors: cannot be read"):
        training(tmp_path, validation=lambda net: 0.5).run()


def test_weights_of_another_size_are_named(tmp_path):
    training(tmp_path).run()
    torch.manual_seed(1)
    larger = knrm.KNRM(VOCABULARY, 9, KNRMShape())
    with pytest.raises(BadInput, match=r"another net: words.weight is \[\d+, 8\], and should be \[\d+, 9\]; remove"):
        training(tmp_path, net=larger).run()
    more = knrm.KNRM(VOCABULARY, 8, KNRMShape())
    more.extra = torch.nn.Parameter(torch.zeros(2))
    with pytest.raises(BadInput, match=r"another net: extra is absent, and should be \[2\]"):
        training(tmp_path, net=more).run()


def test_foreign_files_in_a_training_folder_stay(tmp_path):
    (tmp_path / TRAINING_FOLDER).mkdir()
    (tmp_path / TRAINING_FOLDER / "best-practice.txt").write_text("precious")
    (tmp_path / TRAINING_FOLDER / ".state.safetensors.abc").write_bytes(b"left by a kill")
    run = training(tmp_path)
    run.run()
    run.clean()
    assert [path.name for path in (tmp_path / TRAINING_FOLDER).iterdir()] == ["best-practice.txt"]


def test_a_loss_that_is_no_number_stops_with_step_and_lists(tmp_path):
    calls = []

    def sick(net, samples):
        calls.append([sample.name for sample in samples])
        return SoftmaxLoss()(net, samples) * (float("nan") if len(calls) == 5 else 1.0)

    with pytest.raises(BadInput, match="the loss is not finite at step 5, on the lists of") as caught:
        training(tmp_path, objective=sick).run()
    assert all(f"'{name}'" in str(caught.value) for name in calls[4])


@pytest.mark.parametrize("slope", ["infinite", "no number"])
def test_a_gradient_that_is_no_number_stops_too(tmp_path, slope):
    def steep(net, samples):
        root = (net.combine.weight * 0).sum().sqrt()  # 0, and its slope is infinite
        return root if slope == "infinite" else root * (net.combine.weight * 0).sum()

    with pytest.raises(BadInput, match="the gradient of the loss is not finite at step 1"):
        training(tmp_path, objective=steep).run()


def test_progress_tells_loss_and_validation(tmp_path):
    told: list[tuple[str, int, str]] = []
    shown: list[str] = []

    class Bar:
        def set_status(self, notify):
            self.notify = notify

        def __call__(self, done):
            shown.append(self.notify())

    @contextmanager
    def progress(*opened):
        told.append(opened)
        yield Bar()

    training(tmp_path, progress=progress, schedule=TrainingSchedule(steps=7, lists=2, lr=0.05, every=3)).run()
    assert told == [("training knrm", 7, "steps")]
    assert len(shown) == 7
    assert shown[0].startswith("validation 0.")
    assert shown[3].startswith("loss 1.")
    assert "validation" in shown[3]


def test_stale_counts_validations_since_the_best():
    course = TrainingCurve(best=4, history=[{"step": s, "valid": 0.0} for s in (0, 2, 4, 6, 8)])
    assert course.validations_since_best == 2
