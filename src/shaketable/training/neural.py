"""Learners of neural rankers: each trains a net on the queries and judgements of a collection and saves a model folder.

A learner is a net of `rankers.neural` plus its training settings; `fit` imports torch. `presets` are the settings of
paper 000 (3.3.2), and `grid` has the values that the paper tuned over.

The number of word pieces that a net reads is a setting too, and the card records it. The presets give BERT its
maximum, 512 pieces, and ColBERT the lengths of its authors, which the paper follows. The paper gives no lengths for
the other rankers, so their presets are ours. Without a preset, bert, dense, epic and monot5 read 192 pieces, which is
fast without a GPU. A ranker counts truncated texts and reports them.
"""

from __future__ import annotations

import platform
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from hashlib import blake2b
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from shaketable.core import registries
from shaketable.core.documents import Collection, Run
from shaketable.core.errors import BadInput, MissingExtra, UnknownName, check_parameter, check_ranges
from shaketable.core.progress import ProgressFactory, no_progress
from shaketable.core.registries import OBJECTIVES
from shaketable.core.seeding import make_item_rng
from shaketable.nlp.analyzer import Analyzer
from shaketable.rankers.neural.models import find_net_class
from shaketable.rankers.neural.shapes import (
    BertShape,
    ColBERTShape,
    ConvKNRMShape,
    DenseShape,
    DRMMShape,
    DSSMShape,
    DuetShape,
    EPICShape,
    KNRMShape,
    MonoT5Shape,
    check_same_shape,
)
from shaketable.rankers.persistence import refuse_taken
from shaketable.rankers.saved import SavedModel
from shaketable.training.list_sources import BaselineLists
from shaketable.training.plan import JudgementSource, TeacherSource, TrainingData, TrainingPlan

if TYPE_CHECKING:
    from shaketable.rankers.neural.net import Net
    from shaketable.training.loop import TrainingCurve, TrainingSchedule
    from shaketable.training.losses import Objective

Presets = Mapping[str, Mapping[str, Any]]
DEFAULT_WORD_LENGTHS = {"query_length": 32, "text_length": 512}
"""Words that a net reads of a query and of a text, for presets whose lengths the paper does not give."""


SETTING_BOUNDS: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("steps", "every", "patience"), (1, 10_000_000)),
    **dict.fromkeys(("sentences", "pretrain", "adapt", "keep"), (0, 10_000_000)),
    **dict.fromkeys(("lr", "pretrain_lr"), (1e-12, 10)),
    **dict.fromkeys(("lists", "pairs"), (1, 10_000)),
    "size": (2, 10_000),  # one text has no order
    **dict.fromkeys(("dim", "bins", "hidden", "filters", "local", "distributed"), (1, 10_000)),
    **dict.fromkeys(("query_length", "text_length"), (1, 100_000)),
    "kernels": (2, 1000),
    **dict.fromkeys(("sigma", "exact"), (1e-6, 1000)),
    "grams": (1, 100),
    "pool": (1, 10_000),
    "dropout": (0, 0.99),
    "gamma": (1e-6, 1_000_000),
}
"""The smallest and largest sensible value of each setting, for all nets."""


def _make_presets(**settings: Any) -> Presets:
    """Return presets with the same settings for all collections of paper 000."""
    return dict.fromkeys(("robust04", "mq2007", "msmarco"), settings)


@dataclass(frozen=True, kw_only=True)
class NeuralLearner(ABC):
    """Base class of learners of neural rankers: the training settings.

    objective     the loss, from `registries.OBJECTIVES`; "" is softmax on judgements, margin_mse with a teacher
    steps, lists, size  the maximum number of updates, the lists per update, and the texts of a list
    lr            the highest learning rate of AdamW
    every, patience, measure  updates between validations by `measure`; training stops after `patience` without gain
    last          keep the last weights instead of the best on the validation queries
    first_stage   the ranker that finds candidates for a collection without candidates
    teacher       a ranker, such as "bm25" or "dense", whose scores replace the judgements as labels
    sentences     with a teacher: the number of sentences of the collection to use as additional queries
    start         a model folder of the same learner to start from, for instance one trained with a teacher; the
                  settings of the net must be the same
    """

    kind: ClassVar[str]
    """The name of the learner, and of its net, in the registries."""
    extra: ClassVar[str] = "neural"
    presets: ClassVar[Presets] = {}
    grid: ClassVar[Mapping[str, Sequence[Any]]] = {"lr": (1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3)}

    objective: str = ""
    steps: int = 1000
    lists: int = 16
    size: int = 7
    lr: float = 1e-3
    every: int = 50
    patience: int = 6
    last: bool = False
    measure: str = "nDCG@10"
    first_stage: str = "bm25"
    teacher: str = ""
    sentences: int = 0
    start: str = ""

    def __post_init__(self) -> None:
        check_ranges(self.kind, self, **{name: ends for name, ends in SETTING_BOUNDS.items() if hasattr(self, name)})
        longest = getattr(self, "max_length", 0)
        fine = longest == 0 or 8 <= longest <= 100_000
        check_parameter(self.kind, fine, "max_length", "between 8 and 100,000, or 0 for the model's own", longest)

    def preset(self, name: str) -> Self:
        """Return the learner with the settings of paper 000 for a collection: robust04, mq2007 or msmarco."""
        if name not in self.presets:
            raise UnknownName("preset", name, self.presets)
        return replace(self, **self.presets[name])

    def fit(
        self,
        collection: Collection,
        train: Sequence[str],
        *,
        valid: Sequence[str] = (),
        seed: int = 0,
        plan: TrainingPlan | None = None,
        candidates: Run | None = None,
        folder: str | Path,
        depth: int = 100,
        progress: ProgressFactory = no_progress,
        overwrite: bool = False,
    ) -> SavedModel:
        """Train on the queries `train`, save the weights that are best on `valid` in the folder, and return the model.

        Negatives are drawn from the best `depth` candidates; validation ranks the same candidates. Without validation
        queries, a fifth of `train` is held out. An interrupted training in the folder resumes. An existing model in the
        folder stays until the new one is ready, and is replaced only with `overwrite`.
        """
        loop = import_torch_module("shaketable.training.loop")
        saving = import_torch_module("shaketable.rankers.neural.saving")
        target = Path(folder)
        refuse_taken(target, overwrite=overwrite)
        plan = plan or self.make_default_plan()
        times: Any = {"every": self.every, "patience": self.patience, "last": self.last}
        schedule: TrainingSchedule = loop.TrainingSchedule(self.steps, self.lists, self.lr, **times)
        training_data = TrainingData.prepare(collection, train, valid, candidates, depth, seed, self.first_stage)
        source, qrels = plan.lists.open_samples(training_data, self.size)
        rivals = plan.open_text_baselines(collection)
        source = BaselineLists(source, rivals) if rivals else source
        net = self._build_initial_net(collection, seed)
        objective = OBJECTIVES.build(plan.objective or self.make_default_plan().objective)
        validation = loop.QueryValidation(collection, self.measure, qrels, training_data.candidates)
        if hasattr(objective, "make_validation"):
            validation = objective.make_validation(validation, rivals)
        about = self._describe_training(plan, objective, training_data) | {
            "train": {"queries": len(training_data.train), "lists": len(source)},
            "valid": {"queries": len(qrels), "measure": validation.measure},
            "schedule": asdict(schedule),
        }
        whole = about | {
            "queries": [training_data.train, training_data.valid],
            "weights": _digest_weights(net),
            "plan": plan.fingerprint,
        }
        training = loop.TrainingRun(net, source, objective, validation, schedule, seed, target, whole, progress)
        course = training.run()
        card = (
            about
            | dict(plan.card_extras)
            | self.describe_net_origin(collection)
            | _summarize_outcome(net, course, schedule)
        )
        saving.FittedNet(net, card).save(target, overwrite=overwrite)
        training.clean()
        return SavedModel(str(target))

    def _describe_training(self, plan: TrainingPlan, objective: Objective, data: TrainingData) -> dict[str, Any]:
        """Return the part of the card that is known before the training."""
        return {
            "learner": registries.LEARNERS.spec(self),
            "settings": asdict(self),
            "plan": plan.spec,
            "objective": OBJECTIVES.spec(objective),
            "seed": data.seed,
            "depth": data.depth,
            "collection": {"name": data.collection.name, "fingerprint": data.collection.fingerprint},
        }

    def make_default_plan(self) -> TrainingPlan:
        """Return the plan that the settings imply."""
        if self.teacher:
            return TrainingPlan(TeacherSource(self.teacher, self.sentences), self.objective or "margin_mse")
        return TrainingPlan(JudgementSource(), self.objective or "softmax")

    @abstractmethod
    def build_net(self, collection: Collection) -> Net:
        """Build the untrained net; its random weights come from torch's random number generator."""

    def describe_net_origin(self, collection: Collection) -> dict[str, Any]:
        """Return notes on the initial net for the card."""
        return {}

    def _build_shape(self) -> Any:
        """Return the settings of the net itself."""
        shape = find_net_class(self.kind).shape_class
        return shape(**{f.name: getattr(self, f.name) for f in fields(shape)})

    def _build_initial_net(self, collection: Collection, seed: int) -> Net:
        import torch

        if self.start:
            net: Net = import_torch_module("shaketable.rankers.neural.saving").read_net(Path(self.start))
            if net.kind != self.kind:
                raise BadInput(f"is a model of the kind {net.kind}; {self.kind} cannot start from it", self.start)
            check_same_shape(cast("Any", net).shape, self._build_shape(), self.kind, self.start)
            return net
        with torch.random.fork_rng():
            torch.manual_seed(make_item_rng(seed, "weights").random_bits())
            return self.build_net(collection)


@dataclass(frozen=True, kw_only=True)
class WordLearner(NeuralLearner):
    """Base class of learners of word-based nets: word vectors and text analysis.

    vectors       a text file in the format of GloVe and word2vec; without one, vectors of `dim` numbers are learned
    frozen        do not train the vectors of a file
    stopwords, stemmer    as in `Analyzer`; files of vectors have words, not stems
    """

    vectors: str = ""
    frozen: bool = True
    dim: int = 50
    stopwords: str = "english"
    stemmer: str = "none"

    def build_net(self, collection: Collection) -> Net:
        words = import_torch_module("shaketable.rankers.neural.words")
        make: Any = find_net_class(self.kind)
        tokenizer = Analyzer(stopwords=self.stopwords, stemmer=self.stemmer)
        found = words.collect_words(collection.docs, tokenizer)
        if not self.vectors:
            return cast("Net", make(words.Vocabulary(found, tokenizer), self.dim, self._build_shape()))
        known, rows = words.read_vectors(Path(self.vectors), set(found))
        net = make(words.Vocabulary(known, tokenizer), rows.shape[1], self._build_shape())
        net.load_vectors(rows, self.frozen)
        return cast("Net", net)


@dataclass(frozen=True)
class DSSMLearner(DSSMShape, NeuralLearner):
    """DSSM: the cosine of query and text vectors that a small network computes from letter trigrams (Huang 2013)."""

    kind: ClassVar[str] = "dssm"
    presets: ClassVar[Presets] = {
        "robust04": {"layers": (100, 100, 50)},
        "mq2007": {"layers": (100, 100, 50)},
        "msmarco": {"layers": (300, 300, 128)},
    }

    stopwords: str = "english"

    def __post_init__(self) -> None:
        super().__post_init__()
        fine = bool(self.layers) and all(1 <= size <= 100_000 for size in self.layers)
        check_parameter("dssm", fine, "layers", "one or more sizes between 1 and 100,000", self.layers)

    def build_net(self, collection: Collection) -> Net:
        dssm = import_torch_module("shaketable.rankers.neural.dssm")
        vocabulary = dssm.build_trigram_vocabulary(collection.docs, Analyzer(stopwords=self.stopwords, stemmer="none"))
        return cast("Net", dssm.DSSM(vocabulary, self._build_shape()))


@dataclass(frozen=True)
class DRMMLearner(DRMMShape, WordLearner):
    """DRMM: histograms of the similarity of a text's words to each query word, and a gate (Guo 2016)."""

    kind: ClassVar[str] = "drmm"
    presets: ClassVar[Presets] = {
        "robust04": DEFAULT_WORD_LENGTHS | {"bins": 30, "hidden": 5, "objective": "hinge"},
        "mq2007": DEFAULT_WORD_LENGTHS | {"bins": 30, "hidden": 5, "objective": "hinge"},
        "msmarco": DEFAULT_WORD_LENGTHS | {"bins": 30, "hidden": 10, "objective": "hinge"},
    }

    lr: float = 2e-2


@dataclass(frozen=True)
class KNRMLearner(KNRMShape, WordLearner):
    """K-NRM: soft counts of similar words at several levels of similarity (Xiong 2017)."""

    kind: ClassVar[str] = "knrm"
    presets: ClassVar[Presets] = _make_presets(kernels=11, sigma=0.1, **DEFAULT_WORD_LENGTHS)

    lr: float = 5e-3


@dataclass(frozen=True)
class ConvKNRMLearner(ConvKNRMShape, WordLearner):
    """Conv-KNRM: soft counts of similar word n-grams (Dai 2018)."""

    kind: ClassVar[str] = "conv_knrm"
    presets: ClassVar[Presets] = _make_presets(grams=3, filters=128, kernels=11, sigma=0.1, **DEFAULT_WORD_LENGTHS)


@dataclass(frozen=True)
class DuetLearner(DuetShape, WordLearner):
    """Duet: the sum of a network on exact matches and one on distributed representations (Mitra 2017).

    With input="trigrams" the second network reads words as letter trigrams, as in the paper, and uses no word vectors.
    """

    kind: ClassVar[str] = "duet"
    presets: ClassVar[Presets] = {
        "robust04": {"filters": 10, "local": 30, "distributed": 699, "query_length": 16, "text_length": 256},
        "mq2007": {"filters": 10, "local": 20, "distributed": 20, "query_length": 16, "text_length": 256},
        "msmarco": {"filters": 32, "local": 32, "distributed": 32, "query_length": 16, "text_length": 256},
    }

    def build_net(self, collection: Collection) -> Net:
        if self.input == "words":
            return super().build_net(collection)
        if self.vectors:
            raise BadInput(f"duet: input={self.input!r} reads words by their letters, so leave out vectors")
        dssm, duet = (
            import_torch_module("shaketable.rankers.neural.dssm"),
            import_torch_module("shaketable.rankers.neural.duet"),
        )
        tokenizer = Analyzer(stopwords=self.stopwords, stemmer=self.stemmer)
        return cast("Net", duet.Duet(dssm.build_trigram_vocabulary(collection.docs, tokenizer), 0, self._build_shape()))


@dataclass(frozen=True, kw_only=True)
class EncoderLearner(NeuralLearner):
    """Base class of learners of nets on a pretrained encoder: the checkpoint, and fewer and smaller steps."""

    grid: ClassVar[Mapping[str, Sequence[Any]]] = {"lr": (5e-5, 3e-5, 2e-5)}

    checkpoint: str = field(default="minilm", kw_only=False)
    steps: int = 350
    lists: int = 4
    lr: float = 5e-5
    every: int = 100
    patience: int = 2

    def build_net(self, collection: Collection) -> Net:
        make: Any = find_net_class(self.kind)
        return cast("Net", make.from_checkpoint(self.checkpoint, self._build_shape()))


@dataclass(frozen=True, kw_only=True)
class BertLearner(BertShape, EncoderLearner):
    """monoBERT: a pretrained encoder reads query and text together (Nogueira, Cho 2019).

    `max_length` is the number of pieces of both, special tokens included; longer input is truncated.
    """

    kind: ClassVar[str] = "bert"
    presets: ClassVar[Presets] = _make_presets(objective="bce", lr=3e-5, max_length=512)

    def build_net(self, collection: Collection) -> Net:
        nets = import_torch_module("shaketable.rankers.neural.bert")
        return cast("Net", nets.CrossEncoder.from_checkpoint(self.checkpoint, self._build_shape(), fresh=True))


@dataclass(frozen=True, kw_only=True)
class ColBERTLearner(ColBERTShape, EncoderLearner):
    """ColBERT: token vectors of a pretrained encoder; each query token is matched to its nearest (Khattab 2020)."""

    kind: ClassVar[str] = "colbert"
    presets: ClassVar[Presets] = _make_presets(objective="ranknet", lr=3e-6, query_length=32, text_length=180)
    grid: ClassVar[Mapping[str, Sequence[Any]]] = {"lr": (3e-6,)}

    steps: int = 200


@dataclass(frozen=True, kw_only=True)
class DenseLearner(DenseShape, EncoderLearner):
    """A bi-encoder: the cosine of query and text vectors of a pretrained encoder (Reimers, Gurevych 2019)."""

    kind: ClassVar[str] = "dense"

    objective: str = "softmax(temperature=0.05)"
    lr: float = 2e-5


@dataclass(frozen=True, kw_only=True)
class EPICLearner(EPICShape, EncoderLearner):
    """EPIC: query and text as weights over the vocabulary, by a masked language model's head (MacAvaney 2020).

    A checkpoint without such a head, such as MiniLM, gets one that is tied to its piece embeddings
    (`rankers.neural.masked`). `keep` is the number of largest entries kept of a text's vector; 0 keeps all.
    """

    kind: ClassVar[str] = "epic"

    steps: int = 200


@dataclass(frozen=True, kw_only=True)
class MonoT5Learner(MonoT5Shape, EncoderLearner):
    """monoT5: a T5 that learns to answer true or false to a query and a text (Nogueira 2020)."""

    kind: ClassVar[str] = "monot5"

    checkpoint: str = field(default="google-t5/t5-base", kw_only=False)
    objective: str = "likelihood"
    lr: float = 3e-4


@dataclass(frozen=True, kw_only=True)
class PROPLearner(BertLearner):
    """PROP: monoBERT, first pre-trained on the collection's texts to recognise representative words (Ma 2021).

    pretrain          steps that compare word sets and fill in masked words, `pairs` at a time
    adapt             earlier steps that only fill in masked words, for a checkpoint without a head for them
    pretrain_lr       the highest learning rate of both

    The pre-trained model is cached in the home folder. Trainings of the same checkpoint on the same texts share it.
    """

    kind: ClassVar[str] = "prop"

    pretrain: int = 600
    adapt: int = 300
    pairs: int = 8
    pretrain_lr: float = 2e-5

    def fit(
        self, collection: Collection, train: Sequence[str], *, progress: ProgressFactory = no_progress, **how: Any
    ) -> SavedModel:
        if self.start:
            raise BadInput("prop pre-trains its own weights, so leave out start; only bert has it")
        refuse_taken(how["folder"], overwrite=how.get("overwrite", False))
        self._open_pretrained(collection, progress)  # with a progress bar; `build_net` then finds it in the cache
        return super().fit(collection, train, progress=progress, **how)

    def build_net(self, collection: Collection) -> Net:
        return cast(
            "Net", import_torch_module("shaketable.rankers.neural.saving").read_net(self._open_pretrained(collection))
        )

    def describe_net_origin(self, collection: Collection) -> dict[str, Any]:
        return {
            "pretraining": import_torch_module("shaketable.rankers.neural.saving").read_description(
                self._open_pretrained(collection)
            )["card"]
        }

    def _open_pretrained(self, collection: Collection, progress: ProgressFactory = no_progress) -> Path:
        prop = import_torch_module("shaketable.training.prop")
        settings = prop.PretrainingSettings(
            self.checkpoint, self.max_length, self.pretrain, self.adapt, self.pairs, self.pretrain_lr
        )
        return cast(Path, prop.open_pretrained(collection.docs, settings, progress))


def _summarize_outcome(net: Net, course: TrainingCurve, schedule: TrainingSchedule) -> dict[str, Any]:
    """Return the outcome of a training for the card."""
    return {
        "best": course.best,
        "value": course.value,
        "steps": course.step,
        "stopped": "early" if course.step < schedule.steps else "at the end",
        "history": course.history,
        "parameters": sum(p.numel() for p in net.parameters()),
        "seconds": round(course.seconds, 1),
        "versions": {name: version(name) for name in ("shaketable", "torch")} | {"python": platform.python_version()},
    }


def _digest_weights(net: Net) -> str:
    """Return a digest of the initial weights, which identifies everything that they depend on."""
    digest = blake2b(digest_size=16)
    for name, tensor in sorted(net.state_dict().items()):
        digest.update(name.encode() + tensor.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def import_torch_module(module: str) -> Any:
    """Import a module that needs torch."""
    try:
        for needed in ("torch", "transformers", "safetensors"):
            import_module(needed)
    except ImportError as error:
        raise MissingExtra("neural", "training a neural ranker") from error
    return import_module(module)
