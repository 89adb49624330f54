"""Flags for training: the data and the learner."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from shaketable.cli import completion
from shaketable.cli.help import Panel
from shaketable.cli.options.data import OptionalData
from shaketable.cli.options.groups import make_option, make_repeatable
from shaketable.cli.options.tasks import AdversarialDocuments

LearnerText = Annotated[
    str,
    typer.Argument(metavar="LEARNER", autocompletion=completion.learners, help="A learner, which becomes a "
                   "ranker, for example knrm or \"lambdamart(objective='georisk', alpha=1)\"; or a writer, which "
                   "generates texts. 'shaketable list learners' shows both."),
]  # fmt: skip
ModelFolder = Annotated[
    Path,
    make_option(Panel.TRAINING, "--model", metavar="FOLDER",
        help="The folder to write the model to."),
]  # fmt: skip
TextPairsFile = Annotated[
    Path | None,
    make_option(Panel.DATA, "--text-pairs", metavar="FILE",
        help="For a writer: a TSV file with an input text and an output text on each line, to use instead of --data."),
]  # fmt: skip
LetorFile = Annotated[
    Path | None,
    make_option(Panel.DATA, "--letor", metavar="FILE",
        help="A LETOR (SVMlight) file of features to learn from, to use instead of --data; also .gz."),
]  # fmt: skip
LetorValid = Annotated[
    Path | None,
    make_option(Panel.DATA, "--letor-valid", metavar="FILE",
        help="With --letor: a file of features to validate on."),
]  # fmt: skip
LetorTest = Annotated[
    Path | None,
    make_option(Panel.DATA, "--letor-test", metavar="FILE",
        help="With --letor: a file of features to rank with the trained model. test.run and test.qrels are written "
             "to the model folder."),
]  # fmt: skip
_TRAIN_SPLIT = make_option(Panel.DATA, "--train-split", metavar="SPLIT",
    help="The split of the collection to learn from; 'all' means every query.")  # fmt: skip
TrainSplit = Annotated[str, _TRAIN_SPLIT]
OptionalTrainSplit = Annotated[str | None, _TRAIN_SPLIT]
ValidSplit = Annotated[
    str | None,
    make_option(Panel.DATA, "--valid-split", metavar="SPLIT",
        help="The split of the collection to validate on. By default, it is 'validation' or 'dev', if the "
             "collection has one of them."),
]  # fmt: skip
Folds = Annotated[
    int,
    make_option(Panel.DATA, "--folds", metavar="NUMBER", min=0,
        help="The number of folds for cross-validation. Each model ranks the queries that it was not trained on, "
             "and the lists are joined into one run. With --letor, the model folder gets test.run, test.qrels and the "
             "model of each fold. 0 means no cross-validation."),
]  # fmt: skip
NotWorseThan = Annotated[
    list[str] | None,
    make_repeatable(Panel.TRAINING, "--not-worse-than", metavar="BASELINE",
        help="A baseline for a risk-sensitive objective, which penalises losses against it: a feature "
             "(feature:110), a run (run:FILE), a table of scores (scores:FILE.csv), a model (model:FOLDER) or a "
             "ranker."),
]  # fmt: skip
Tune = Annotated[
    bool,
    make_option(Panel.TRAINING, "--tune",
        help="Try the settings that the learner's paper lists, and keep those with the best result on the "
             "validation queries."),
]  # fmt: skip
Preset = Annotated[
    str | None,
    make_option(Panel.TRAINING, "--preset", metavar="NAME",
        help="Train a neural ranker with the settings for this data set: robust04, mq2007 or msmarco."),
]  # fmt: skip
DefenceText = Annotated[
    str | None,
    make_option(Panel.TRAINING, "--defence", metavar="DEFENCE", autocompletion=completion.defences,
        help="Train the ranker with a defence against attacks, for example at (adversarial training) or "
             "\"piat(loss='listnet')\"; standard means no defence. Without --adversarial-documents, an undefended "
             "ranker is trained and attacked first. 'shaketable list defences' shows all defences."),
]  # fmt: skip
Unlabelled = Annotated[
    Path | None,
    make_option(Panel.TRAINING, "--unlabelled", metavar="FILE",
        help="With --defence piat: a file of queries without judgements (TREC topics, or a query id, a tab and a "
             "text on each line). Their lists are attacked too, and the ranker learns to keep their order."),
]  # fmt: skip
Overwrite = Annotated[
    bool,
    make_option(Panel.TRAINING, "--overwrite",
        help="Replace the model in the folder, if there is one."),
]  # fmt: skip


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
    unlabelled: Unlabelled = None
    overwrite: Overwrite = False

    def to_options(self) -> dict[str, Any]:
        """Return the flags as options of `st.train`."""
        return vars(self) | {"not_worse_than": self.not_worse_than or ()}
