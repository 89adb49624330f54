"""A learner and something to learn from in, a model folder out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shaketable.data.letor import Letor, read_letor
from shaketable.data.splits import TRAIN
from shaketable.data.trec import write_qrels, write_run
from shaketable.door.audit import open_bench
from shaketable.errors import BadInput
from shaketable.learners import fit as fitting
from shaketable.learners.baselines import read_baselines
from shaketable.learners.fit import FeatureLearner
from shaketable.learners.ndcg import NDCG
from shaketable.learners.plan import Plan
from shaketable.rankers.folder import refuse_taken
from shaketable.rankers.ltr import FittedModel
from shaketable.rankers.saved import Saved
from shaketable.registry import LEARNERS
from shaketable.types import Collection, Figure, Learner, Result, Watch, unwatched

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Training:
    """What a training came to: the model, the learner as it was settled, and its card."""

    model: Saved
    learner: str
    card: Mapping[str, Any]
    trials: Sequence[Mapping[str, Any]] = ()
    """What each point of a grid gave on the validation queries, where settings were tuned."""
    test: float | None = None
    """The mean NDCG@10 on the test file, where there is one."""

    def tables(self) -> dict[str, pd.DataFrame]:
        """The course of the training, what the model looks at, and what was tried."""
        import pandas as pd

        measure = dict(self.card.get("valid") or {}).get("measure", "valid")
        history = pd.DataFrame(list(self.card.get("history", ()))).rename(columns={"valid": measure})
        importance = self.card.get("importance", {})
        looks = pd.DataFrame({"feature": list(importance), "importance": list(importance.values())})
        tables = {
            "the course of training": history,
            "what it looks at": looks,
            "what was tried": pd.DataFrame(list(self.trials)),
        }
        tables = {name: table for name, table in tables.items() if len(table)}
        if "what was tried" in tables:
            tables["what was tried"] = tables["what was tried"].sort_values("valid", ascending=False, kind="stable")
        return tables

    def result(self) -> Result:
        """The tables with drawings: the curve of the training, and what the model looks at."""
        import pandas as pd

        tables = self.tables()
        figures: list[Figure] = []
        if "the course of training" in tables:
            course = tables["the course of training"]
            step, *curves = [name for name in course.columns if pd.api.types.is_numeric_dtype(course[name])]
            tables["curve"] = course.melt(step, curves, "curve", "value").dropna()
            figures.append(Figure("lines", "curve", "The course of training", x=step, y="value", color="curve"))
        if "what it looks at" in tables:
            tables["what it looks at"] = tables["what it looks at"].head(20)
            title = "What the model looks at: the share of each feature in all that the trees or weights gain"
            figures.append(Figure("bars", "what it looks at", title, x="feature", y="importance"))
        notes = tuple(self.card.get("notes", ()))
        return Result("train", f"How did {self.learner} learn?", tables, tuple(figures), notes)

    def json(self) -> dict[str, Any]:
        """All of it as plain values."""
        about = {"schema": "shaketable.train/1", "model": self.model.path, "learner": self.learner}
        return about | {"card": dict(self.card), "trials": [dict(trial) for trial in self.trials]}

    def __str__(self) -> str:
        """One sentence on what was learned."""
        parts = [f"{self.model.path}: {self.learner}, learned from {self.card['train']['queries']} queries"]
        if folds := self.card.get("folds"):
            return f"{self.model.path}: {self.learner}, learned in {folds} folds; its lists are those of the test parts"
        if "value" in self.card and (valid := self.card.get("valid")):
            step = f"step {self.card['best']} is kept, with " if "best" in self.card else ""
            name = valid.get("measure", "NDCG")
            parts.append(f"{step}{name} {self.card['value']:.4f} on {valid['queries']} validation queries")
        if self.test is not None:
            parts.append(f"NDCG@10 {self.test:.4f} on the test queries")
        if "seconds" in self.card:
            parts.append(f"{self.card['seconds']:.0f} s")
        return "; ".join(parts)


def train(
    learner: str | Learner,
    data: str | Path | Collection | None = None,
    out: str | Path = "model",
    *,
    letor: str | Path | None = None,
    letor_valid: str | Path | None = None,
    letor_test: str | Path | None = None,
    split: str = TRAIN,
    valid: str | None = None,
    cut: str = "",
    folds: int = 0,
    candidates: str | Path | None = None,
    depth: int = 100,
    first_stage: str = "bm25",
    baselines: Sequence[str] = (),
    tune: bool = False,
    preset: str | None = None,
    seed: int = 0,
    overwrite: bool = False,
    watch: Watch = unwatched,
) -> Training:
    """Train a ranker from a collection, or from feature files, and leave it in a folder that is a ranker by its path.

    A training that was cut off goes on when it is started again. `tune` chooses settings from the grid of the learner's
    paper on the validation queries. With `folds`, k models are learned and their test lists joined to one run.
    """
    chosen: Learner = LEARNERS.build(learner) if isinstance(learner, str) else learner
    if preset:
        if not hasattr(chosen, "preset"):
            raise BadInput(f"a preset has settings of neural rankers, and {LEARNERS.spec(chosen)} is none")
        chosen = chosen.preset(preset)
    if (letor is None) == (data is None):
        raise BadInput("give either a collection (--data) or a feature file (--letor) to learn from")
    refuse_taken(out, overwrite=overwrite)  # before hours of work
    if letor is not None:
        return _from_files(chosen, Path(letor), letor_valid, letor_test, Path(out), baselines, tune, seed, overwrite)
    if letor_valid or letor_test:
        raise BadInput("files to validate and test on go with a feature file to learn from (--letor)")
    assert data is not None
    bench = open_bench(data, {}, "all", candidates, cut, depth, None, seed, first_stage, False, watch)
    plan = Plan(baselines=tuple(baselines)) if baselines else None
    trials: Sequence[Mapping[str, Any]] = ()
    if tune:
        tuned = bench.tune(chosen, split, valid=valid, plan=plan)
        chosen, trials = tuned.learner, tuned.trials
    if folds:
        model = bench.fit_folds(chosen, folds, folder=out, plan=plan, overwrite=overwrite)
    else:
        model = bench.fit(chosen, split, valid=valid, plan=plan, folder=out, overwrite=overwrite)
    return Training(model, LEARNERS.spec(chosen), {"train": {"queries": 0}} | model.card(), trials)


def _from_files(
    learner: Learner,
    letor: Path,
    letor_valid: str | Path | None,
    letor_test: str | Path | None,
    out: Path,
    texts: Sequence[str],
    tune: bool,
    seed: int,
    overwrite: bool,
) -> Training:
    """The lower door: rows of features."""
    if not isinstance(learner, FeatureLearner):
        raise BadInput(
            f"{LEARNERS.spec(learner)} learns from texts, so give it a collection (--data), not feature files"
        )
    learn_from = read_letor(letor)
    validate_on = read_letor(Path(letor_valid), dims=learn_from.dims) if letor_valid else None
    baselines, trials = read_baselines(texts), []
    if tune:
        if validate_on is None:
            raise BadInput("settings are chosen on validation queries: give a file of them (--valid)")
        parts = (fitting.scaled(part, "query") for part in (learn_from, validate_on))
        tuned = fitting.tune(learner, *parts, seed=seed, baselines=baselines)
        learner, trials = tuned.learner, [dict(trial) for trial in tuned.trials]
    assert isinstance(learner, FeatureLearner)
    model = fitting.learn(learner, learn_from, validate_on, seed=seed, baselines=baselines)
    model.save(out, overwrite=overwrite)
    held_out = read_letor(Path(letor_test), dims=learn_from.dims) if letor_test else None
    value = None if held_out is None else _rank_rows(model, held_out, out)
    return Training(Saved(str(out)), model.learner, model.card, trials, value)


def _rank_rows(model: FittedModel, held_out: Letor, out: Path) -> float:
    """The test rows ranked, as files for `evaluate`, and their mean NDCG@10."""
    scores = model.scores(held_out)
    write_run(held_out.run(scores), out / "test.run", tag=out.name)
    write_qrels(held_out.qrels(), out / "test.qrels")
    return float(NDCG(held_out, 10).of(scores).mean())
