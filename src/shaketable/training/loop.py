"""The training loop for any net, any source of lists, and any objective.

The lists and the dropout of a step depend only on the seed and the step number. So the state on disk, written at each
validation, consists of the weights, the optimizer's moments and a few numbers. An interrupted run resumes from it and
reaches exactly the weights of an uninterrupted run.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from shaketable.core.documents import Collection, Qrels, Run, Scores, Slate, fingerprint, rank_docnos
from shaketable.core.errors import BadInput, Damaged
from shaketable.core.progress import ProgressFactory, no_progress, set_status
from shaketable.core.seeding import make_item_rng
from shaketable.files.atomic import atomic_write_binary
from shaketable.measures.effectiveness import score_table
from shaketable.rankers.neural.net import Net
from shaketable.rankers.neural.scoring import make_ranker, select_device
from shaketable.rankers.persistence import STATE_FILE, TRAINING_FILE_PATTERN, TRAINING_FOLDER
from shaketable.scoring.validation import call_ranker
from shaketable.training.list_sources import Sample, SampleSource

ValidationFunction = Callable[[Any], float]
"""A validation measure of a net: higher is better."""
ObjectiveFunction = Callable[[Any, Sequence[Sample]], Tensor]
"""A loss of any net, a ranker or not."""
CHECKSUM_KEY = "checksum"
RESTART_ADVICE = "remove its folder to start again"


@dataclass(frozen=True)
class TrainingSchedule:
    """The length, learning rate and validation interval of a training with AdamW.

    The learning rate rises during the warm-up and then falls to 0.
    """

    steps: int
    lists: int
    """Lists per step."""
    lr: float
    warmup: float = 0.1
    """The share of the steps that are warm-up."""
    decay: float = 0.01
    clip: float = 1.0
    """The maximum norm of the gradient."""
    every: int = 50
    """Steps between validations."""
    patience: int = 5
    """Validations without improvement before the training stops."""
    last: bool = False
    """Keep the last weights instead of the best."""

    def __post_init__(self) -> None:
        fine = {name: getattr(self, name) >= 1 for name in ("steps", "lists", "every", "patience")}
        fine |= {
            "lr": 0 < self.lr < 10,
            "warmup": 0 <= self.warmup < 1,
            "decay": self.decay >= 0,
            "clip": self.clip > 0,
        }
        for name, holds in fine.items():
            if not holds:
                raise BadInput(f"training: invalid value {name}={getattr(self, name)!r}")

    def compute_lr_factor(self, step: int) -> float:
        """Return the share of `lr` at a step, counted from 1.

        >>> [TrainingSchedule(steps=4, lists=1, lr=0.1, warmup=0.5).compute_lr_factor(step) for step in (1, 2, 3, 4)]
        [0.5, 1.0, 1.0, 0.5]
        """
        rising = max(1.0, self.warmup * self.steps)
        return min(step / rising, (self.steps + 1 - step) / max(1.0, self.steps - rising))


@dataclass(eq=False)
class TrainingCurve:
    """The progress of a training."""

    step: int = 0
    best: int = 0
    value: float = float("-inf")
    losses: list[float] = field(default_factory=list)
    """The losses since the last validation."""
    history: list[dict[str, float]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def validations_since_best(self) -> int:
        """The number of validations since the best one."""
        return sum(row["step"] > self.best for row in self.history)


@dataclass(eq=False)
class TrainingRun:
    """A training of a net.

    `run_settings` holds everything that the outcome depends on; only a training with the same settings resumes.
    """

    net: Any
    """A torch module with a `kind`; the objective and the validation call its other methods."""
    source: SampleSource
    objective: ObjectiveFunction
    validation: ValidationFunction
    schedule: TrainingSchedule
    seed: int
    folder: Path
    run_settings: Mapping[str, Any]
    progress: ProgressFactory = no_progress
    curve: TrainingCurve = field(default_factory=TrainingCurve)

    def __post_init__(self) -> None:
        self.device = select_device()
        self.net.to(self.device)
        self.trainable_parameters = {name: p for name, p in self.net.named_parameters() if p.requires_grad}
        self.optimizer = torch.optim.AdamW(
            self.trainable_parameters.values(), lr=self.schedule.lr, weight_decay=self.schedule.decay
        )

    def run(self) -> TrainingCurve:
        """Train to the end, resuming an earlier run; return the training curve. The net then has its best weights."""
        with torch.random.fork_rng():
            if not self._resume():
                self._validate()
            self._samples = _iter_samples(self.source, self.seed, self.curve.step * self.schedule.lists)
            left = self.schedule.steps - self.curve.step
            with self.progress(f"training {self.net.kind}", 0 if self._is_finished() else left, "steps") as advance:
                set_status(advance, self._describe_last_validation)
                while not self._is_finished():
                    started = time.perf_counter()
                    for _ in range(self._count_steps_to_validation()):
                        self._step()
                        advance(1)
                    self.curve.seconds += time.perf_counter() - started
                    self._validate()
        self._load_best()
        return self.curve

    def clean(self) -> None:
        """Remove the files needed to resume, the state file last, and no other files."""
        work = self.folder / TRAINING_FOLDER
        with suppress(OSError):
            for path in sorted(work.iterdir(), key=lambda path: path.name == STATE_FILE):
                if TRAINING_FILE_PATTERN.fullmatch(path.name):
                    path.unlink()
            work.rmdir()

    def _is_finished(self) -> bool:
        return self.curve.step >= self.schedule.steps or self.curve.validations_since_best >= self.schedule.patience

    def _count_steps_to_validation(self) -> int:
        """Return the number of steps to the next validation."""
        step, every = self.curve.step, self.schedule.every
        return min(every - step % every, self.schedule.steps - step)

    def _describe_last_validation(self) -> str:
        """Return the results of the last validation as text."""
        last = self.curve.history[-1]
        loss = f"loss {last['loss']:.3g}, " if "loss" in last else ""
        return f"{loss}validation {last['valid']:.4f}"

    def _step(self) -> None:
        course = self.curve
        course.step += 1
        samples = list(islice(self._samples, self.schedule.lists))
        torch.manual_seed(make_item_rng(self.seed, "step", course.step).random_bits())
        for group in self.optimizer.param_groups:
            group["lr"] = self.schedule.lr * self.schedule.compute_lr_factor(course.step)
        self.net.train()
        loss = self.objective(self.net, samples)
        self.optimizer.zero_grad()
        value = loss.item()
        self._refuse_infinite("loss", value, samples)
        loss.backward()  # type: ignore[no-untyped-call]
        length = nn.utils.clip_grad_norm_(self.trainable_parameters.values(), self.schedule.clip).item()
        self._refuse_infinite("gradient of the loss", length, samples)
        self.optimizer.step()
        course.losses.append(value)

    def _refuse_infinite(self, what: str, value: float, samples: Sequence[Sample]) -> None:
        if not isfinite(value):
            raise BadInput(
                f"training {self.net.kind}: the {what} is not finite at step {self.curve.step}, on the lists of "
                f"{', '.join(repr(sample.name) for sample in samples)}; lower lr, or check these texts"
            )

    def _validate(self) -> None:
        """Measure the net, store the best weights, and save the state."""
        started = time.perf_counter()
        value = self.validation(self.net)
        course = self.curve
        row = {"step": course.step, "valid": value}
        if course.losses:
            row["loss"] = sum(course.losses) / len(course.losses)
        course.history.append(row)
        course.losses.clear()
        if value > course.value or self.schedule.last:
            course.best, course.value = course.step, value
            _write_tensors(self._best_file(course.step), self.trainable_parameters, {})
        course.seconds += time.perf_counter() - started
        self._save()

    @property
    def _state_file(self) -> Path:
        return self.folder / TRAINING_FOLDER / STATE_FILE

    def _best_file(self, step: int) -> Path:
        return self.folder / TRAINING_FOLDER / f"best-{step}.safetensors"

    def _save(self) -> None:
        """Write the state file atomically, then remove the files that it no longer needs."""
        moments = {
            f"moment.{name}.{key}": value
            for name, parameter in self.trainable_parameters.items()
            for key, value in self.optimizer.state.get(parameter, {}).items()
        }
        about = {"plan": _fingerprint_settings(self.run_settings), "course": json.dumps(asdict(self.curve))}
        _write_tensors(self._state_file, self.trainable_parameters | moments, about)
        needed = {self._state_file, self._best_file(self.curve.best)}
        for path in self._state_file.parent.iterdir():
            if TRAINING_FILE_PATTERN.fullmatch(path.name) and path not in needed:
                path.unlink(missing_ok=True)

    def _resume(self) -> bool:
        """Resume an earlier run of this plan; return False if there is none."""
        path = self._state_file
        if not path.is_file():
            return False
        about, state = _read_tensors(path)
        if about.get("plan") != _fingerprint_settings(self.run_settings):
            raise BadInput(f"belongs to a training of other data or settings; {RESTART_ADVICE}", path)
        try:
            self.curve = TrainingCurve(**json.loads(about["course"]))
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(f"was written by another version ({error}); {RESTART_ADVICE}", path) from error
        self._load_weights(state, path)
        for name, parameter in self.trainable_parameters.items():
            self._load_moments(parameter, state, f"moment.{name}.", path)
        self._refuse_no_best()
        return True

    def _load_moments(self, parameter: nn.Parameter, state: Mapping[str, Tensor], prefix: str, path: Path) -> None:
        found = {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}
        for key, value in found.items():
            if key != "step" and value.shape != parameter.shape:
                raise _make_mismatch_error(prefix + key, value, parameter, path)
        if found:
            self.optimizer.state[parameter] = {
                key: value if key == "step" else value.to(self.device) for key, value in found.items()
            }

    def _load_best(self) -> None:
        path = self._best_file(self.curve.best)
        self._load_weights(_read_tensors(path)[1], path)

    def _refuse_no_best(self) -> None:
        """Raise an error at once, rather than at the end of the training."""
        _read_tensors(self._best_file(self.curve.best))

    def _load_weights(self, weights: Mapping[str, Tensor], path: Path) -> None:
        for name, parameter in self.trainable_parameters.items():
            if name not in weights or weights[name].shape != parameter.shape:
                raise _make_mismatch_error(name, weights.get(name), parameter, path)
        with torch.no_grad():
            for name, parameter in self.trainable_parameters.items():
                parameter.copy_(weights[name])


def _iter_samples(source: SampleSource, seed: int, start: int) -> Iterator[Sample]:
    """Yield the lists of one pass after another from a position on; each pass has its own order."""
    size = len(source)
    turn, skip = divmod(start, size)
    while True:
        for number in make_item_rng(seed, "pass", turn).permutation(range(size))[skip:]:
            yield source.draw(number, turn)
        turn, skip = turn + 1, 0


def _write_tensors(path: Path, tensors: Mapping[str, Tensor], about: dict[str, str]) -> None:
    held = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with atomic_write_binary(path) as raw:
        raw.write(to_bytes(held, about | {CHECKSUM_KEY: _compute_checksum(held, about)}))


def _read_tensors(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Read the file of `_write_tensors`; raise an error if it is damaged."""
    try:
        with safe_open(path, "pt") as file:
            about = dict(file.metadata() or {})
            held = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise Damaged(f"cannot be read ({error}); {RESTART_ADVICE}", path) from error
    if about.pop(CHECKSUM_KEY, None) != _compute_checksum(held, about):
        raise Damaged(f"is damaged; {RESTART_ADVICE}", path)
    return about, held


def _compute_checksum(held: Mapping[str, Tensor], about: Mapping[str, str]) -> str:
    value = crc32(repr(sorted(about.items())).encode())
    for name, tensor in sorted(held.items()):
        value = crc32(repr((name, str(tensor.dtype), tuple(tensor.shape))).encode(), value)
        value = crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, value)
    return f"{value:08x}"


def _make_mismatch_error(name: str, found: Tensor | None, wanted: Tensor, path: Path) -> BadInput:
    shape = "absent" if found is None else list(found.shape)
    return BadInput(
        f"belongs to another net: {name} is {shape}, and should be {list(wanted.shape)}; {RESTART_ADVICE}", path
    )


def _fingerprint_settings(plan: Mapping[str, Any]) -> str:
    return fingerprint(json.dumps(plan, sort_keys=True))


@dataclass(frozen=True, eq=False)
class QueryValidation:
    """The mean of a measure over queries whose candidates a net ranks."""

    collection: Collection
    measure: str
    qrels: Qrels
    candidates: Run

    def __call__(self, net: Net) -> float:
        return float(self.measure_net(net).mean())

    def measure_net(self, net: Net) -> NDArray[np.float64]:
        """Return the measure of each query."""
        ranker = make_ranker(net.kind, "", net, self.collection.docs)
        return self.measure_scores(net.kind, lambda qids, slates: call_ranker(ranker, net.kind, slates))

    def measure_scores(
        self, name: str, score: Callable[[list[str], list[Slate]], Sequence[Scores]]
    ) -> NDArray[np.float64]:
        """Return the measure of each query, with its candidates ordered by the scores of a function."""
        qids = [qid for qid in self.qrels if self.candidates.get(qid)]
        docnos = {qid: rank_docnos(self.candidates[qid]) for qid in qids}
        queries, docs = self.collection.queries, self.collection.docs
        slates = [Slate(queries[qid].text, tuple(docs[docno] for docno in docnos[qid])) for qid in qids]
        answers = score(qids, slates)
        run = {qid: dict(zip(docnos[qid], s.tolist(), strict=True)) for qid, s in zip(qids, answers, strict=True)}
        return score_table(self.measure, self.qrels, {name: run}).row(name)
