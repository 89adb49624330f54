"""`shaketable train`: a learner and something to learn from in, a model folder out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shaketable.cli.options import Candidates, Depth, Json, Seed
from shaketable.errors import BadInput

if TYPE_CHECKING:
    from shaketable.data.letor import Letor
    from shaketable.rank.ltr import FittedModel
    from shaketable.train.fit import Baselines, System
    from shaketable.train.neural import NeuralLearner


def train(
    learner: Annotated[str, typer.Argument(help="E.g. lambdamart(objective='georisk', alpha=1); see 'list learners'.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The model folder to write.")],
    letor: Annotated[Path | None, typer.Option("--letor", help="Feature file to learn from (SVMlight, .gz).")] = None,
    valid: Annotated[Path | None, typer.Option("--valid", help="Feature file to validate on.")] = None,
    test: Annotated[Path | None, typer.Option("--test", help="Feature file to rank: test.run and test.qrels.")] = None,
    data: Annotated[str | None, typer.Option("--data", help="Instead of files: a collection.")] = None,
    split: Annotated[str, typer.Option("--split", help="The collection's split to learn from.")] = "train",
    valid_split: Annotated[
        str | None, typer.Option("--valid-split", help="And to validate on; 'validation' or 'dev' where there is one.")
    ] = None,
    candidates: Candidates = None,
    depth: Depth = 100,
    baseline: Annotated[
        list[str] | None,
        typer.Option("--baseline", help="feature:N, run:FILE, scores:FILE.csv or model:FOLDER; repeat it."),
    ] = None,
    tune: Annotated[bool, typer.Option("--tune", help="Choose settings from the paper's grid by validation.")] = False,
    preset: Annotated[
        str | None, typer.Option("--preset", help="Settings of a neural ranker for robust04, mq2007 or msmarco.")
    ] = None,
    seed: Seed = 0,
    json_to: Json = None,
) -> None:
    """Train a ranker, from feature files or from a collection; use it as --ranker FOLDER."""
    from shaketable.cli.console import emit_json, say
    from shaketable.data.trec import write_qrels, write_run
    from shaketable.rank.features import NAMES
    from shaketable.registry import LEARNERS
    from shaketable.train import fit as fitting
    from shaketable.train.neural import NeuralLearner

    chosen = LEARNERS.build(learner)
    if isinstance(chosen, NeuralLearner):
        on_features = {"--letor": letor, "--valid": valid, "--test": test, "--baseline": baseline, "--tune": tune}
        if given := [option for option, value in on_features.items() if value]:
            raise BadInput(f"{chosen.kind} learns from texts, so give --data COLLECTION, and leave out {given[0]}")
        chosen = chosen.preset(preset) if preset else chosen
        _train_net(chosen, data, split, valid_split, candidates, depth, out, seed, json_to)
        return
    if preset:
        raise BadInput(f"--preset has settings of neural rankers, and {learner} is none")
    if (letor is None) == (data is None):
        raise BadInput("give either --letor FILE or --data COLLECTION to learn from")
    if letor is not None:
        learn_from, validate_on = _files(letor, valid)
    else:
        names = getattr(chosen, "names", NAMES)
        learn_from, validate_on = _collection(str(data), split, valid_split, candidates, depth, names)
    baselines = _baselines(baseline or [])
    trials: list[dict[str, Any]] = []
    if tune:
        if validate_on is None:
            raise BadInput("--tune needs something to validate on: give --valid or --valid-split")
        parts = (fitting.scaled(part, "query") for part in (learn_from, validate_on))
        tuned = fitting.tune(chosen, *parts, seed=seed, baselines=baselines)
        chosen, trials = tuned.learner, [dict(trial) for trial in tuned.trials]
    model = fitting.learn(chosen, learn_from, validate_on, seed=seed, baselines=baselines)
    model.save(out)
    say(f"{out}: {model.learner}, learned from {learn_from.queries} queries")
    summary: dict[str, Any] = {"schema": "shaketable.train/1", "model": str(out), "learner": model.learner}
    if test is not None:
        from shaketable.data.letor import read_letor

        held_out = read_letor(test, dims=learn_from.dims)
        write_run(held_out.run(model.scores(held_out)), out / "test.run", tag=out.name)
        write_qrels(held_out.qrels(), out / "test.qrels")
        say(f"{out / 'test.run'}, {out / 'test.qrels'}: for `shaketable evaluate`")
    _show(model, json_to)
    if json_to:
        emit_json(summary | {"card": dict(model.card), "trials": trials}, json_to)


def _train_net(
    learner: NeuralLearner,
    data: str | None,
    split: str,
    valid_split: str | None,
    candidates: Path | None,
    depth: int,
    out: Path,
    seed: int,
    json_to: str | None,
) -> None:
    """Neural rankers learn from texts, and write their folder as they go, so that a training cut off goes on."""
    import pandas as pd

    from shaketable.cli.console import emit_json, progress, say, stdout
    from shaketable.cli.open import validation_split
    from shaketable.data.load import load
    from shaketable.errors import UnknownName
    from shaketable.report.terminal import show_table

    if data is None:
        raise BadInput("a neural ranker learns from texts: give --data COLLECTION")
    whole = load(data, None, candidates)
    valid_split = valid_split or validation_split(whole)
    for name in filter(None, (split, valid_split)):
        if name not in whole.splits:
            raise UnknownName("split", name, whole.splits)
    valid = whole.splits[valid_split] if valid_split else ()
    model = learner.fit(whole, whole.splits[split], valid, seed=seed, folder=out, depth=depth, watch=progress)
    card = model.card()
    measure = card["valid"]["measure"]
    history = [{"step": int(row["step"]), "loss": row.get("loss"), measure: row["valid"]} for row in card["history"]]
    show_table(stdout(json_to), "the course of training", pd.DataFrame(history))
    say(
        f"{out}: {learner.kind}, learned from {card['train']['queries']} queries; kept is step {card['best']}, with "
        f"{measure} {card['value']:.4f} on {card['valid']['queries']} others; {card['seconds']:.0f} s"
    )
    if json_to:
        summary = {"schema": "shaketable.train/1", "model": str(out), "learner": card["learner"]}
        emit_json(summary | {"card": card}, json_to)


def _files(letor: Path, valid: Path | None) -> tuple[Letor, Letor | None]:
    from shaketable.data.letor import read_letor

    learn_from = read_letor(letor)
    return learn_from, read_letor(valid, dims=learn_from.dims) if valid else None


def _collection(
    data: str, split: str, valid_split: str | None, candidates: Path | None, depth: int, names: Sequence[str]
) -> tuple[Letor, Letor | None]:
    """Features of the first stage's candidates for the queries of the splits."""
    from shaketable.bench import Bench
    from shaketable.cli.open import validation_split
    from shaketable.data.beir import in_split
    from shaketable.data.load import load
    from shaketable.train.fit import letor_of

    whole = load(data, None, candidates)
    valid_split = valid_split or validation_split(whole)

    def features(name: str) -> Letor:
        bench = Bench(in_split(whole, name), {}, depth=depth)
        return letor_of(whole, bench.queries, bench.candidates, bench.qrels, names=names)

    return features(split), features(valid_split) if valid_split else None


def _baselines(texts: list[str]) -> Baselines | None:
    from shaketable.train.fit import Baselines

    systems: dict[str, System] = {}
    for text in texts:
        systems |= _baseline(text)
    return Baselines(systems) if systems else None


def _baseline(text: str) -> dict[str, System]:
    """A baseline by its words: one system, or for a table of scores each of its columns."""
    from shaketable.data.scores import read_scores
    from shaketable.data.trec import read_run
    from shaketable.rank.ltr import load
    from shaketable.train import fit as fitting

    kind, _, value = text.partition(":")
    if kind == "feature" and value.isdigit():
        return {text: fitting.by_feature(int(value))}
    if kind == "run" and value:
        return {text: fitting.by_run(read_run(Path(value)), value)}
    if kind == "model" and value:
        return {text: fitting.by_model(load(value))}
    if kind == "scores" and value:
        table = read_scores(Path(value))
        return {f"{text}:{system}": fitting.by_table(table, system) for system in table.systems}
    raise BadInput(f"cannot read the baseline {text!r}: write feature:N, run:FILE, scores:FILE.csv or model:FOLDER")


def _show(model: FittedModel, json_to: str | None) -> None:
    """The features that matter most, and what the card remarks."""
    import pandas as pd

    from shaketable.cli.console import stdout
    from shaketable.report.terminal import show_table

    importance = model.card["importance"]
    frame = pd.DataFrame({"feature": list(importance), "importance": list(importance.values())}).head(10)
    show_table(stdout(json_to), "what it looks at", frame, notes=model.card["notes"])
