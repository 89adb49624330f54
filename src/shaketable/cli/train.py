"""`shaketable train`: a learner and something to learn from in, a model folder out."""

from __future__ import annotations

from typing import Any

from shaketable.cli import options as o


def train(
    learner: o.LearnerText,
    out: o.ModelOut,
    data: o.TrainData = None,
    pairs: o.Pairs = None,
    split: o.TrainSplit = "train",
    valid_split: o.ValidSplit = None,
    cut: o.Cut = "",
    folds: o.Folds = 0,
    letor: o.Letor = None,
    valid: o.LetorValid = None,
    test: o.LetorTest = None,
    candidates: o.Candidates = None,
    first_stage: o.FirstStage = "bm25",
    depth: o.Depth = 100,
    baseline: o.NotToLoseTo = None,
    tune: o.Tune = False,
    preset: o.Preset = None,
    defence: o.DefenceText = None,
    attacked: o.AttackedExamples = None,
    seed: o.Seed = 0,
    overwrite: o.Overwrite = False,
    html_to: o.Html = None,
    json_to: o.Json = None,
    jobs: o.Jobs = None,
    ray: o.Ray = None,
    worker_cpus: o.WorkerCpus = None,
    worker_gpus: o.WorkerGpus = None,
    device: o.Device = "auto",
    dtype: o.Dtype = None,
    batch_tokens: o.BatchTokens = None,
) -> None:
    """Train a ranker on a collection or on files of features, or a model that writes texts; write it to a folder."""
    from shaketable.cli.console import say, show_training
    from shaketable.cli.progress import progress
    from shaketable.door.train import train as run
    from shaketable.door.workers import workers

    files: Any = {"letor": letor, "letor_valid": valid, "letor_test": test, "pairs": pairs, "attacked": attacked}
    where: Any = {"split": split, "valid": valid_split, "cut": cut, "folds": folds, "candidates": candidates}
    where |= {"depth": depth, "first_stage": first_stage}
    how: Any = {"baselines": baseline or (), "tune": tune, "preset": preset, "defence": defence, "seed": seed}
    how["executor"] = workers(jobs, ray, worker_cpus, worker_gpus, device, dtype, batch_tokens)
    done = run(learner, data, out, **files, **where, **how, overwrite=overwrite, watch=progress, say=say)
    show_training(done, json_to, html_to)
