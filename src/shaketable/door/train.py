"""A learner, or a writer, and something to learn from in, a model folder out."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shaketable.data.letor import Letor, read_letor
from shaketable.data.load import load
from shaketable.data.splits import TRAIN
from shaketable.data.trec import write_qrels, write_run
from shaketable.door.audit import Say, open_bench
from shaketable.errors import BadInput, UnknownName
from shaketable.learners import fit as fitting
from shaketable.learners.baselines import read_baselines
from shaketable.learners.fit import FeatureLearner
from shaketable.learners.ndcg import NDCG
from shaketable.learners.neural import NeuralLearner
from shaketable.learners.plan import FIRST_STAGE, Plan
from shaketable.learners.seq2seq import CARD, Pair, Seq2Seq, refuse_used
from shaketable.rankers.folder import refuse_taken
from shaketable.rankers.ltr import FittedModel
from shaketable.rankers.saved import Saved
from shaketable.registry import LEARNERS, LEXICAL, WRITERS
from shaketable.score.executor import Executor
from shaketable.task.defending import defended
from shaketable.types import Collection, Defence, Figure, Learner, Result, Watch, unwatched

if TYPE_CHECKING:
    import pandas as pd

DEPTH = 100
COURSE = "the course of training"


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
        importance = self.card.get("importance", {})
        looks = pd.DataFrame({"feature": list(importance), "importance": list(importance.values())})
        tables = {
            COURSE: _course(self.card, measure),
            "what it looks at": looks,
            "what was tried": pd.DataFrame(list(self.trials)),
        }
        tables = {name: table for name, table in tables.items() if len(table)}
        if "what was tried" in tables:
            tables["what was tried"] = tables["what was tried"].sort_values("valid", ascending=False, kind="stable")
        return tables

    def result(self) -> Result:
        """The tables with drawings: the curve of the training, and what the model looks at."""
        tables = self.tables()
        figures: list[Figure] = []
        if COURSE in tables:
            tables["curve"], figure = _curve(tables[COURSE])
            figures.append(figure)
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
        if defence := self.card.get("defence"):
            parts.append(f"defended by {defence['text']}")
        if "seconds" in self.card:
            parts.append(f"{self.card['seconds']:.0f} s")
        return "; ".join(parts)


@dataclass(frozen=True)
class TrainedWriter:
    """What the training of a writer came to: the folder of its checkpoint, the writer, and its card."""

    folder: str
    writer: Seq2Seq
    card: Mapping[str, Any]

    @property
    def usage(self) -> str:
        """Who opens the folder, as one writes it."""
        return self.writer.usage.format(folder=self.folder)

    def tables(self) -> dict[str, pd.DataFrame]:
        """The course of the training."""
        return {COURSE: _course(self.card, "ln p of a piece")}

    def result(self) -> Result:
        """The course of the training as a table and as a drawing."""
        tables = self.tables()
        tables["curve"], figure = _curve(tables[COURSE])
        question = f"How did {WRITERS.spec(self.writer)} learn?"
        return Result("train", question, tables, (figure,), tuple(self.card.get("notes", ())))

    def json(self) -> dict[str, Any]:
        """All of it as plain values."""
        about = {"schema": "shaketable.train/1", "model": self.folder, "learner": WRITERS.spec(self.writer)}
        return about | {"card": dict(self.card), "usage": self.usage}

    def __str__(self) -> str:
        """One sentence on what was learned, and what can be done with it."""
        card, pairs = self.card, self.card["pairs"]
        parts = [
            f"{self.folder}: {WRITERS.spec(self.writer)}, learned from {pairs['learned']} pairs ({card['origin']})",
            f"step {card['best']} is kept, with ln p {card['value']:.4f} of a piece on {pairs['held']} held-out pairs",
            f"{card['seconds']:.0f} s",
            f"use it: {self.usage}",
        ]
        if not self.writer.checkpoint:
            parts.append("it began with random weights (checkpoint=''), so it is a test of the mechanism only")
        return "; ".join(parts)


def _course(card: Mapping[str, Any], measure: str) -> pd.DataFrame:
    """The validations of a training, by the name of what was measured."""
    import pandas as pd

    return pd.DataFrame(list(card.get("history", ()))).rename(columns={"valid": measure})


def _curve(course: pd.DataFrame) -> tuple[pd.DataFrame, Figure]:
    """The table of a drawing of the course of a training, and the drawing."""
    import pandas as pd

    step, *curves = [name for name in course.columns if pd.api.types.is_numeric_dtype(course[name])]
    points = course.melt(step, curves, "curve", "value").dropna()
    return points, Figure("lines", "curve", "The course of training", x=step, y="value", color="curve")


def train(
    learner: str | Learner | Seq2Seq,
    data: str | Path | Collection | None = None,
    out: str | Path = "model",
    *,
    pairs: str | Path | None = None,
    letor: str | Path | None = None,
    letor_valid: str | Path | None = None,
    letor_test: str | Path | None = None,
    split: str = TRAIN,
    valid: str | None = None,
    cut: str = "",
    folds: int = 0,
    candidates: str | Path | None = None,
    depth: int = DEPTH,
    first_stage: str = FIRST_STAGE,
    baselines: Sequence[str] = (),
    tune: bool = False,
    preset: str | None = None,
    defence: str | Defence | None = None,
    attacked: str | Path | None = None,
    seed: int = 0,
    overwrite: bool = False,
    watch: Watch = unwatched,
    say: Say = lambda message: None,
    executor: Executor | None = None,
) -> Training | TrainedWriter:
    """Train a ranker from a collection, or from feature files, and leave it in a folder that is a ranker by its path.

    A training that was cut off goes on when it is started again. `tune` chooses settings from the grid of the learner's
    paper on the validation queries. With `folds`, k models are learned and their test lists joined to one run. A writer
    learns from `pairs` too; what comes of it is no ranker (`train_writer`). A `defence`, such as "piat", makes attacks
    move the ranker less; it may need the ranker without it first, to attack it, and `say` is told. `attacked` is a file
    of attacked documents to learn from in place of these.
    """
    chosen: Any = _built(learner) if isinstance(learner, str) else learner
    if isinstance(chosen, Seq2Seq):
        others: dict[str, Any] = {"--letor": letor, "--valid": letor_valid, "--test": letor_test, "--folds": folds}
        others |= {"--valid-split": valid, "--baseline": baselines, "--tune": tune, "--preset": preset}
        others |= {"--defence": defence, "--attacked": attacked}
        _leave_out(others, f"{WRITERS.spec(chosen)} is a writer, no learner of rankers")
        where: Any = {"split": split, "cut": cut, "candidates": candidates, "depth": depth, "first_stage": first_stage}
        return train_writer(chosen, data, out, pairs=pairs, **where, seed=seed, overwrite=overwrite, watch=watch)
    _leave_out({"--pairs": pairs}, f"{LEARNERS.spec(chosen)} learns to rank; only writers learn from pairs of texts")
    if preset:
        if not hasattr(chosen, "preset"):
            raise BadInput(f"a preset has settings of neural rankers, and {LEARNERS.spec(chosen)} is none")
        chosen = chosen.preset(preset)
    if (letor is None) == (data is None):
        raise BadInput("give either a collection (--data) or a feature file (--letor) to learn from")
    if defence is None:
        _leave_out({"--attacked": attacked}, "attacked documents are for a defence (--defence)")
    refuse_taken(out, overwrite=overwrite)  # before hours of work
    if letor is not None:
        _leave_out({"--defence": defence}, "a defence is for rankers of texts, and needs a collection (--data)")
        return _from_files(chosen, Path(letor), letor_valid, letor_test, Path(out), baselines, tune, seed, overwrite)
    if letor_valid or letor_test:
        raise BadInput("files to validate and test on go with a feature file to learn from (--letor)")
    assert data is not None
    bench = open_bench(data, {}, "all", candidates, cut, depth, None, seed, first_stage, False, watch, executor)
    own = chosen.plan() if isinstance(chosen, NeuralLearner) else Plan()  # a teacher, for instance
    plan = replace(own, baselines=tuple(baselines)) if baselines else None
    trials: Sequence[Mapping[str, Any]] = ()
    if tune:
        tuned = bench.tune(chosen, split, valid=valid, plan=plan)
        chosen, trials = tuned.learner, tuned.trials
    if defence is not None:
        plan = defended(bench, chosen, defence, plan, split, valid, attacked, folds, say)
    if folds:
        model = bench.fit_folds(chosen, folds, folder=out, plan=plan, overwrite=overwrite)
    else:
        model = bench.fit(chosen, split, valid=valid, plan=plan, folder=out, overwrite=overwrite)
    card = {"train": {"queries": 0}} | model.card()
    if card.get("defence") and card.get("best") == 0:
        say("no step of the training did better on the validation queries than none, so what is kept has no defence")
    return Training(model, LEARNERS.spec(chosen), card, trials)


def train_writer(
    writer: str | Seq2Seq,
    data: str | Path | Collection | None = None,
    out: str | Path = "model",
    *,
    pairs: str | Path | None = None,
    split: str = TRAIN,
    cut: str = "",
    candidates: str | Path | None = None,
    depth: int = DEPTH,
    first_stage: str = FIRST_STAGE,
    seed: int = 0,
    overwrite: bool = False,
    watch: Watch = unwatched,
) -> TrainedWriter:
    """Train a T5 that writes, from pairs of a collection or of a TSV file, and leave its checkpoint in a folder.

    Of a collection only the queries of a split are learned from ("all" is every query), so that the others can be
    measured on. A training that was cut off goes on when it is started again.
    """
    chosen: Seq2Seq = WRITERS.build(writer) if isinstance(writer, str) else writer
    if data is not None and pairs is not None:
        raise BadInput("give either a collection (--data) or a file of pairs (--pairs) to learn from, not both")
    if data is None:
        _leave_out({"--split": split != TRAIN, "--cut": cut}, "it is for collections (--data), and there is none")
    if data is None or not chosen.looks_at_candidates:
        given = {"--candidates": candidates, "--depth": depth != DEPTH, "--first-stage": first_stage != FIRST_STAGE}
        _leave_out(given, f"{WRITERS.spec(chosen)} looks at no candidates of queries here")
    refuse_used(Path(out), overwrite=overwrite)  # before hours of work
    notes: list[str] = []
    if pairs is not None:
        found, origin = chosen.pairs_in(Path(pairs)), str(pairs)
    elif data is not None and chosen.takes:
        collection = load(data, None, candidates, cut, seed)
        qids, origin = _queries(collection, split), f"{collection.name}, split {split}"
        found = _pairs(chosen, collection, qids, origin, depth=depth, first_stage=first_stage, seed=seed)
    else:
        (found, notes), origin = chosen.usual_pairs(), "topics of ir_datasets"
    folder = chosen.fit(found, out, seed=seed, watch=watch, origin=origin, overwrite=overwrite)
    card = json.loads((folder / CARD).read_text(encoding="utf-8"))
    return TrainedWriter(str(out), chosen, card | {"notes": notes})


def _built(text: str) -> Learner | Seq2Seq:
    """The learner or the writer that a text describes."""
    named = re.fullmatch(r"\s*([\w-]+)\s*(\(.*)?", text, re.DOTALL)
    name = named[1].replace("-", "_") if named else ""
    if name in WRITERS:
        writer: Seq2Seq = WRITERS.build(text)
        return writer
    if name and name not in (*LEARNERS, *LEXICAL):
        raise UnknownName("learner", name, (*LEARNERS, *WRITERS))
    learner: Learner = LEARNERS.build(text)
    return learner


def _leave_out(options: Mapping[str, Any], why: str) -> None:
    """Refuse options that were given and have no meaning here."""
    if given := [name for name, value in options.items() if value]:
        raise BadInput(f"leave out {' and '.join(given)}: {why}")


def _queries(collection: Collection, split: str) -> list[str]:
    """The queries of a split, those that somebody wrote down; "all" is every query."""
    if split == "all":
        return list(collection.queries)
    if split not in collection.splits:
        raise BadInput(
            f"collection {collection.name} has no split {split}; cut its queries with --cut 60/20/20, or take all of "
            "them with --split all"
        )
    return [qid for qid in collection.splits[split] if qid in collection.queries]


def _pairs(writer: Seq2Seq, collection: Collection, qids: Sequence[str], origin: str, **how: Any) -> list[Pair]:
    found = writer.pairs_of(collection, qids, **how)
    if not found:
        raise BadInput(f"{writer.kind} learns from {writer.takes}, and there are none here ({origin})")
    return found


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
