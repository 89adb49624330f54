"""Learners of neural rankers: a collection's queries and judgements in, a model folder out.

Each is one net of `rankers.nets` and the settings of its training; torch is imported where one is fitted. The settings
of paper 000 (3.3.2) are `presets`, the values that it tuned over are in `grid`.

How much of a text is read is a setting as well, and stands in the card. For BERT the presets have all that BERT can
read, 512 pieces, and for ColBERT what its authors have, which the paper says it follows; of the other rankers the paper
tells no lengths, so the presets say ours. Without a preset bert, dense, epic and monot5 read 192 pieces, to be quick
where there is no GPU; a ranker counts the texts that were cut, and tells.
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

from shaketable import registry
from shaketable.chance import draws_for
from shaketable.errors import BadInput, MissingExtra, UnknownName, check, check_within
from shaketable.learners.plan import Judgements, Lessons, Plan, Teacher
from shaketable.learners.samples import Compared
from shaketable.rankers.folder import refuse_taken
from shaketable.rankers.nets.shapes import (
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
)
from shaketable.rankers.neural import net_class
from shaketable.rankers.saved import Saved
from shaketable.registry import Catalogue
from shaketable.text.tokens import Tokenizer
from shaketable.types import Collection, Run, Watch, unwatched

if TYPE_CHECKING:
    from shaketable.learners.loop import Course, Schedule
    from shaketable.rankers.nets.net import Net

OBJECTIVES = Catalogue(
    "objective",
    {
        "hinge": "shaketable.learners.losses:Hinge",
        "ranknet": "shaketable.learners.losses:RankNet",
        "bce": "shaketable.learners.losses:BCE",
        "likelihood": "shaketable.learners.losses:Likelihood",
        "softmax": "shaketable.learners.losses:Softmax",
        "list_mle": "shaketable.learners.losses:ListMLE",
        "lambda_loss": "shaketable.learners.losses:LambdaLoss",
        "margin_mse": "shaketable.learners.losses:MarginMSE",
        "self_teaching": "shaketable.learners.teaching:SelfTeaching",
        "urisk": "shaketable.learners.risk:URisk",
        "georisk": "shaketable.learners.risk:GeoRisk",
        "piat": "shaketable.learners.invariance:PIAT",
    },
)
Presets = Mapping[str, Mapping[str, Any]]
WORDS_READ = {"query_length": 32, "text_length": 512}
"""Words that are read of a query and of a text, where the paper does not tell."""


BOUNDS: Mapping[str, tuple[float, float]] = {
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
"""The least and the most that makes sense of a setting, whichever net has it."""


def _everywhere(**settings: Any) -> Presets:
    """Settings that paper 000 has for all of its collections."""
    return dict.fromkeys(("robust04", "mq2007", "msmarco"), settings)


@dataclass(frozen=True, kw_only=True)
class NeuralLearner(ABC):
    """What all of them share: the settings of a training.

    objective     what is made small, from `OBJECTIVES`; "" is softmax on judgements, margin_mse with a teacher
    steps, lists  updates at most, and lists of each; a list has `size` texts
    lr            the highest rate of AdamW
    every         updates between validations by `measure`; without a better one `patience` times, it stops
    last          keep the last weights, and not those that did best on the validation queries
    first_stage   finds candidates where the collection brings none
    teacher       a ranker, such as "bm25" or "dense": its scores are learned, not the judgements
    sentences     with a teacher: so many sentences of the collection are queries too
    start         a model folder of the same kind to begin with, for instance one that a teacher made
    """

    kind: ClassVar[str]
    """What the catalogues call the learner, and the net that it trains."""
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
        check_within(self.kind, self, **{name: ends for name, ends in BOUNDS.items() if hasattr(self, name)})
        longest = getattr(self, "max_length", 0)
        fine = longest == 0 or 8 <= longest <= 100_000
        check(self.kind, fine, "max_length", "between 8 and 100,000, or 0 for the model's own", longest)

    def preset(self, name: str) -> Self:
        """The settings of paper 000 for one of its collections (robust04, mq2007, msmarco), and how much is read."""
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
        plan: Plan | None = None,
        candidates: Run | None = None,
        folder: str | Path,
        depth: int = 100,
        watch: Watch = unwatched,
        overwrite: bool = False,
    ) -> Saved:
        """Learn from the queries `train`, keep what is best on `valid`, and leave it in the folder.

        Negatives are drawn from the best `depth` candidates, and these are what is ranked to validate. Without queries
        to validate on, a fifth of `train` is held out. If the folder has a training that was cut off, it goes on; a
        model that is there stays until the new one is ready, and is replaced only if it may be overwritten.
        """
        loop, saving = _torch("shaketable.learners.loop"), _torch("shaketable.rankers.nets.saving")
        target = Path(folder)
        refuse_taken(target, overwrite=overwrite)
        plan = plan or self.plan()
        times: Any = {"every": self.every, "patience": self.patience, "last": self.last}
        schedule: Schedule = loop.Schedule(self.steps, self.lists, self.lr, **times)
        lessons = Lessons.prepare(collection, train, valid, candidates, depth, seed, self.first_stage)
        source, qrels = plan.lists.source(lessons, self.size)
        rivals = plan.rivals(collection)
        source = Compared(source, rivals) if rivals else source
        net = self._begin(collection, seed)
        objective = OBJECTIVES.build(plan.objective or self.plan().objective)
        validation = loop.Validation(collection, self.measure, qrels, lessons.candidates)
        examine = objective.examination(validation, rivals) if hasattr(objective, "examination") else validation
        about = {
            "learner": registry.LEARNERS.spec(self),
            "settings": asdict(self),
            "plan": plan.spec,
            "objective": OBJECTIVES.spec(objective),
            "seed": seed,
            "depth": depth,
            "collection": {"name": collection.name, "fingerprint": collection.fingerprint},
            "train": {"queries": len(lessons.train), "lists": len(source)},
            "valid": {"queries": len(qrels), "measure": examine.measure},
            "schedule": asdict(schedule),
        }
        whole = about | {"queries": [lessons.train, lessons.valid], "weights": _digest(net), "plan": plan.fingerprint}
        training = loop.Training(net, source, objective, examine, schedule, seed, target, whole, watch)
        course = training.run()
        card = about | dict(plan.about) | self.remarks(collection) | _outcome(net, course, schedule)
        saving.FittedNet(net, card).save(target, overwrite=overwrite)
        training.clean()
        return Saved(str(target))

    def plan(self) -> Plan:
        """What the settings say of lists and objective."""
        if self.teacher:
            return Plan(Teacher(self.teacher, self.sentences), self.objective or "margin_mse")
        return Plan(Judgements(), self.objective or "softmax")

    @abstractmethod
    def net(self, collection: Collection) -> Net:
        """The net before training; what is random in it comes from torch's generator."""

    def remarks(self, collection: Collection) -> dict[str, Any]:
        """What a card should say besides settings and outcome."""
        return {}

    def _shape(self) -> Any:
        """The net's own settings among these fields."""
        shape = net_class(self.kind).shapes
        return shape(**{f.name: getattr(self, f.name) for f in fields(shape)})

    def _begin(self, collection: Collection, seed: int) -> Net:
        import torch

        if self.start:
            net: Net = _torch("shaketable.rankers.nets.saving").read_net(Path(self.start))
            if net.kind != self.kind:
                raise BadInput(f"is a model of the kind {net.kind}; {self.kind} cannot begin with it", self.start)
            return net
        with torch.random.fork_rng():
            torch.manual_seed(draws_for(seed, "weights").bits())
            return self.net(collection)


@dataclass(frozen=True, kw_only=True)
class WordLearner(NeuralLearner):
    """What the nets on words share: where the vectors of words come from, and what of a text is read.

    vectors       a text file as GloVe and word2vec write it; without one, vectors of `dim` numbers are learned
    frozen        vectors from a file stay as they are
    stopwords, stemmer    as in `Tokenizer`; files of vectors have words, not stems
    """

    vectors: str = ""
    frozen: bool = True
    dim: int = 50
    stopwords: str = "english"
    stemmer: str = "none"

    def net(self, collection: Collection) -> Net:
        words = _torch("shaketable.rankers.nets.words")
        make: Any = net_class(self.kind)
        tokenizer = Tokenizer(stopwords=self.stopwords, stemmer=self.stemmer)
        found = words.words_of(collection.docs, tokenizer)
        if not self.vectors:
            return cast("Net", make(words.Vocabulary(found, tokenizer), self.dim, self._shape()))
        known, rows = words.read_vectors(Path(self.vectors), set(found))
        net = make(words.Vocabulary(known, tokenizer), rows.shape[1], self._shape())
        net.take(rows, self.frozen)
        return cast("Net", net)


@dataclass(frozen=True)
class DSSM(DSSMShape, NeuralLearner):
    """DSSM: the cosine of what a small network makes of the letter trigrams of query and text (Huang 2013)."""

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
        check("dssm", fine, "layers", "one or more sizes between 1 and 100,000", self.layers)

    def net(self, collection: Collection) -> Net:
        dssm = _torch("shaketable.rankers.nets.dssm")
        vocabulary = dssm.trigrams_of(collection.docs, Tokenizer(stopwords=self.stopwords, stemmer="none"))
        return cast("Net", dssm.DSSM(vocabulary, self._shape()))


@dataclass(frozen=True)
class DRMM(DRMMShape, WordLearner):
    """DRMM: histograms of how like a text's words are to each word of the query, and a gate (Guo 2016)."""

    kind: ClassVar[str] = "drmm"
    presets: ClassVar[Presets] = {
        "robust04": WORDS_READ | {"bins": 30, "hidden": 5, "objective": "hinge"},
        "mq2007": WORDS_READ | {"bins": 30, "hidden": 5, "objective": "hinge"},
        "msmarco": WORDS_READ | {"bins": 30, "hidden": 10, "objective": "hinge"},
    }

    lr: float = 2e-2


@dataclass(frozen=True)
class KNRM(KNRMShape, WordLearner):
    """K-NRM: soft counts of like words at several degrees of likeness (Xiong 2017)."""

    kind: ClassVar[str] = "knrm"
    presets: ClassVar[Presets] = _everywhere(kernels=11, sigma=0.1, **WORDS_READ)

    lr: float = 5e-3


@dataclass(frozen=True)
class ConvKNRM(ConvKNRMShape, WordLearner):
    """Conv-KNRM: soft counts of like n-grams of words (Dai 2018)."""

    kind: ClassVar[str] = "conv_knrm"
    presets: ClassVar[Presets] = _everywhere(grams=3, filters=128, kernels=11, sigma=0.1, **WORDS_READ)


@dataclass(frozen=True)
class Duet(DuetShape, WordLearner):
    """Duet: a network on exact matches and one on the meanings of query and text, added (Mitra 2017).

    input="trigrams" has the second one read words by their letters, as the paper does; then there are no vectors.
    """

    kind: ClassVar[str] = "duet"
    presets: ClassVar[Presets] = {
        "robust04": {"filters": 10, "local": 30, "distributed": 699, "query_length": 16, "text_length": 256},
        "mq2007": {"filters": 10, "local": 20, "distributed": 20, "query_length": 16, "text_length": 256},
        "msmarco": {"filters": 32, "local": 32, "distributed": 32, "query_length": 16, "text_length": 256},
    }

    def net(self, collection: Collection) -> Net:
        if self.input == "words":
            return super().net(collection)
        if self.vectors:
            raise BadInput(f"duet: input={self.input!r} reads words by their letters, so leave out vectors")
        dssm, duet = _torch("shaketable.rankers.nets.dssm"), _torch("shaketable.rankers.nets.duet")
        tokenizer = Tokenizer(stopwords=self.stopwords, stemmer=self.stemmer)
        return cast("Net", duet.Duet(dssm.trigrams_of(collection.docs, tokenizer), 0, self._shape()))


@dataclass(frozen=True, kw_only=True)
class EncoderLearner(NeuralLearner):
    """What the nets on a pretrained encoder share: its checkpoint, and fewer and smaller steps."""

    grid: ClassVar[Mapping[str, Sequence[Any]]] = {"lr": (5e-5, 3e-5, 2e-5)}

    checkpoint: str = field(default="minilm", kw_only=False)
    steps: int = 350
    lists: int = 4
    lr: float = 5e-5
    every: int = 100
    patience: int = 2

    def net(self, collection: Collection) -> Net:
        make: Any = net_class(self.kind)
        return cast("Net", make.pretrained(self.checkpoint, self._shape()))


@dataclass(frozen=True, kw_only=True)
class Bert(BertShape, EncoderLearner):
    """monoBERT: a pretrained encoder reads query and text together (Nogueira, Cho 2019).

    `max_length` counts the pieces of both, special tokens included; what is beyond is not read.
    """

    kind: ClassVar[str] = "bert"
    presets: ClassVar[Presets] = _everywhere(objective="bce", lr=3e-5, max_length=512)

    def net(self, collection: Collection) -> Net:
        nets = _torch("shaketable.rankers.nets.bert")
        return cast("Net", nets.CrossEncoder.pretrained(self.checkpoint, self._shape(), fresh=True))


@dataclass(frozen=True, kw_only=True)
class ColBERT(ColBERTShape, EncoderLearner):
    """ColBERT: a pretrained encoder's vectors of tokens; each of the query's finds its nearest (Khattab 2020)."""

    kind: ClassVar[str] = "colbert"
    presets: ClassVar[Presets] = _everywhere(objective="ranknet", lr=3e-6, query_length=32, text_length=180)
    grid: ClassVar[Mapping[str, Sequence[Any]]] = {"lr": (3e-6,)}

    steps: int = 200


@dataclass(frozen=True, kw_only=True)
class Dense(DenseShape, EncoderLearner):
    """A bi-encoder: the cosine of a pretrained encoder's vectors of query and text (Reimers, Gurevych 2019)."""

    kind: ClassVar[str] = "dense"

    objective: str = "softmax(temperature=0.05)"
    lr: float = 2e-5


@dataclass(frozen=True, kw_only=True)
class EPIC(EPICShape, EncoderLearner):
    """EPIC: query and text as weights over the vocabulary, by a masked language model's head (MacAvaney 2020).

    A checkpoint without such a head, MiniLM for one, gets one that is tied to its pieces (`rankers.nets.masked`).
    `keep` leaves a text's vector its largest entries only; 0 leaves it whole.
    """

    kind: ClassVar[str] = "epic"

    steps: int = 200


@dataclass(frozen=True, kw_only=True)
class MonoT5(MonoT5Shape, EncoderLearner):
    """monoT5: a T5 learns to answer true or false to a query and a text (Nogueira 2020)."""

    kind: ClassVar[str] = "monot5"

    checkpoint: str = field(default="google-t5/t5-base", kw_only=False)
    objective: str = "likelihood"
    lr: float = 3e-4


@dataclass(frozen=True, kw_only=True)
class PROP(Bert):
    """PROP: monoBERT that was first pre-trained on the collection's texts, to tell what represents them (Ma 2021).

    pretrain          steps that tell sets of words apart and fill in masked words, `pairs` at a time
    adapt             steps before these that fill in words only, for a checkpoint without a head for that
    pretrain_lr       the highest rate of both

    What comes of it is kept in the home folder, and shared by trainings of the same checkpoint on the same texts.
    """

    kind: ClassVar[str] = "prop"

    pretrain: int = 600
    adapt: int = 300
    pairs: int = 8
    pretrain_lr: float = 2e-5

    def fit(self, collection: Collection, train: Sequence[str], *, watch: Watch = unwatched, **how: Any) -> Saved:
        if self.start:
            raise BadInput("prop pre-trains what it begins with, so leave out start; bert(start=...) has one")
        refuse_taken(how["folder"], overwrite=how.get("overwrite", False))
        self._pretrained(collection, watch)  # here it is watched; `net` finds it
        return super().fit(collection, train, watch=watch, **how)

    def net(self, collection: Collection) -> Net:
        return cast("Net", _torch("shaketable.rankers.nets.saving").read_net(self._pretrained(collection)))

    def remarks(self, collection: Collection) -> dict[str, Any]:
        return {"pretraining": _torch("shaketable.rankers.nets.saving").read(self._pretrained(collection))["card"]}

    def _pretrained(self, collection: Collection, watch: Watch = unwatched) -> Path:
        prop = _torch("shaketable.learners.prop")
        settings = prop.Pretraining(
            self.checkpoint, self.max_length, self.pretrain, self.adapt, self.pairs, self.pretrain_lr
        )
        return cast(Path, prop.pretrained(collection.docs, settings, watch))


def _outcome(net: Net, course: Course, schedule: Schedule) -> dict[str, Any]:
    """What a training came to, for its card."""
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


def _digest(net: Net) -> str:
    """Names the weights that a training begins with, and so all that they were made of."""
    digest = blake2b(digest_size=16)
    for name, tensor in sorted(net.state_dict().items()):
        digest.update(name.encode() + tensor.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _torch(module: str) -> Any:
    """A module with torch in it."""
    try:
        for needed in ("torch", "transformers", "safetensors"):
            import_module(needed)
    except ImportError as error:
        raise MissingExtra("neural", "training a neural ranker") from error
    return import_module(module)
