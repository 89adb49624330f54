"""Flags for training: the data and the learner."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from shaketable.cli import completion
from shaketable.cli.options.data import OptionalData
from shaketable.cli.options.groups import make_repeatable
from shaketable.cli.options.tasks import AdversarialDocuments

LearnerText = Annotated[
    str,
    typer.Argument(metavar="LEARNER", autocompletion=completion.learners, help="What learns: a learner, for example "
                   "knrm or \"lambdamart(objective='georisk', alpha=1)\", which becomes a ranker, or a writer, which "
                   "writes texts. 'shaketable list learners' shows them all."),
]  # fmt: skip
ModelFolder = Annotated[Path, typer.Option("--model", metavar="FOLDER", help="The folder to write the model to.")]
TextPairsFile = Annotated[
    Path | None,
    typer.Option("--text-pairs", metavar="FILE", help="For a writer, in place of a collection: a TSV file with the "
                 "text that it reads and the text that it should write on each line."),
]  # fmt: skip
LetorFile = Annotated[
    Path | None,
    typer.Option("--letor", metavar="FILE", help="A file of features to learn from (LETOR, which is SVMlight's form; "
                 "also .gz), in place of a collection."),
]  # fmt: skip
LetorValid = Annotated[
    Path | None,
    typer.Option("--letor-valid", metavar="FILE", help="With --letor: the file of features to validate on."),
]
LetorTest = Annotated[
    Path | None,
    typer.Option("--letor-test", metavar="FILE", help="With --letor: a file of features to rank with the model; "
                 "test.run and test.qrels are written into the model's folder."),
]  # fmt: skip
_TRAIN_SPLIT = typer.Option(
    "--train-split", metavar="SPLIT", help="The split of the collection to learn from; 'all' takes every query."
)
TrainSplit = Annotated[str, _TRAIN_SPLIT]
OptionalTrainSplit = Annotated[str | None, _TRAIN_SPLIT]
ValidSplit = Annotated[
    str | None,
    typer.Option("--valid-split", metavar="SPLIT", help="The split of the collection to validate on. By default it is "
                 "'validation' or 'dev', if the collection has one."),
]  # fmt: skip
Folds = Annotated[
    int,
    typer.Option("--folds", min=0, metavar="NUMBER", help="Cross-validation: learn this many times, each time without "
                 "a part of the queries, and join the lists that the models make for these parts to one run."),
]  # fmt: skip
NotWorseThan = Annotated[
    list[str] | None,
    make_repeatable("--not-worse-than", "A baseline that a risk-sensitive objective should not lose to: a feature "
                    "(feature:110), a run (run:FILE), a table of scores (scores:FILE.csv), a model (model:FOLDER), or "
                    "a ranker.", metavar="BASELINE"),
]  # fmt: skip
Tune = Annotated[
    bool,
    typer.Option("--tune", help="Try the settings from which the learner's paper chose, and keep those that do best on "
                 "the validation queries."),
]  # fmt: skip
Preset = Annotated[
    str | None,
    typer.Option("--preset", metavar="NAME", help="Train a neural ranker with the settings for one of these data sets: "
                 "robust04, mq2007 or msmarco."),
]  # fmt: skip
DefenceText = Annotated[
    str | None,
    typer.Option("--defence", metavar="DEFENCE", autocompletion=completion.defences, help="Train the ranker so that "
                 "attacks move it less: for example at (adversarial training) or \"piat(loss='listnet')\"; standard is "
                 "training without a defence. Without --adversarial-documents, the undefended ranker is trained and "
                 "attacked first. 'shaketable list defences' shows them all."),
]  # fmt: skip
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the model that is in the folder already.")]


@dataclass(frozen=True)
class TrainingDataFlags:
    """The collection or the files to learn from."""

    data: OptionalData = None
    text_pairs: TextPairsFile = None
    train_split: TrainSplit = "train"
    valid_split: ValidSplit = None
    folds: Folds = 0
    letor: LetorFile = None
    letor_valid: LetorValid = None
    letor_test: LetorTest = None


@dataclass(frozen=True)
class LearningFlags:
    """The settings of a learner."""

    not_worse_than: NotWorseThan = None
    tune: Tune = False
    preset: Preset = None
    defence: DefenceText = None
    adversarial_documents: AdversarialDocuments = None
    overwrite: Overwrite = False
