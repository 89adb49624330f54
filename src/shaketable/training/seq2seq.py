"""Writers: T5 models trained on pairs of a source and a target; transformers can open the resulting checkpoint.

One trainer serves models that write titles of descriptions (T5DescToTitle of paper 004), queries of documents
(doc2query) and answers to prompts (monoT5). Each writer of `registries.WRITERS` has its own defaults and pairs. The
trainer uses the training loop of the nets, so an interrupted training resumes and ends with the same weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from shaketable.core import registries
from shaketable.core.documents import Collection
from shaketable.core.errors import BadInput, check_ranges
from shaketable.core.progress import ProgressFactory, no_progress
from shaketable.core.seeding import make_item_rng
from shaketable.nlp import checkpoints
from shaketable.training.list_sources import Sample
from shaketable.training.neural import import_torch_module
from shaketable.training.plan import DEFAULT_FIRST_STAGE, TrainingData
from shaketable.training.seq2seq_folder import refuse_occupied_folder, save_writer
from shaketable.training.seq2seq_pairs import (
    ANSWER_WORDS,
    SourceTarget,
    build_answer_pairs,
    build_query_pairs,
    build_title_pairs,
    build_topic_pairs,
    read_pairs,
)

if TYPE_CHECKING:
    from torch import Tensor

    from shaketable.rankers.neural.net import Net
    from shaketable.training.seq2seq_net import Seq2SeqNet

MAX_VOCABULARY_PIECES = 8000
"""The size limit of a vocabulary trained on the pairs."""
SETTING_BOUNDS: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("epochs", "batch"), (1, 10_000)),
    "lr": (1e-12, 1),
    "decay": (0, 1),
    "source_length": (8, 100_000),
    "target_length": (2, 10_000),
    "held": (2, 1_000_000),
    "layers": (1, 100),
    "dim": (4, 10_000),  # four heads
}
"""The smallest and largest sensible value of each setting."""
_PROMPT_END = re.compile(r"(?<!\s)\s++Relevant:\s*+\Z")


@dataclass(frozen=True)
class Seq2SeqWriter:
    """A T5 that learns to write from your own pairs of texts: a source to read and a target to write.

    checkpoint    the T5 to start from, a hub name or a folder; "" starts a small one of `layers` and `dim` from scratch
    prefix        a text put before every source
    epochs, batch passes over the pairs, and pairs per step
    lr, decay     the learning rate of AdamW, which falls to 0, and its weight decay
    source_length, target_length    the word pieces that are read and written
    held          one in `held` pairs is held out; the weights that are best on held-out pairs are kept

    The defaults are the settings of T5DescToTitle (paper 004).
    """

    kind: ClassVar[str] = "seq2seq"
    """The name of the writer in the registry."""
    extra: ClassVar[str] = "neural"
    pair_origin: ClassVar[str] = ""
    """The part of a collection that gives the pairs; "" if you must provide them."""
    uses_candidates: ClassVar[bool] = False
    """True if the pairs depend on the candidates of a first stage."""
    usage: ClassVar[str] = '--transform "paraphrase(model={folder!r})"'
    """The option that uses the trained folder."""

    checkpoint: str = "google-t5/t5-base"
    prefix: str = ""
    epochs: int = 10
    batch: int = 32
    lr: float = 2e-5
    decay: float = 0.01
    source_length: int = 128
    target_length: int = 64
    held: int = 10
    layers: int = 2
    dim: int = 128

    def __post_init__(self) -> None:
        check_ranges(self.kind, self, **SETTING_BOUNDS)

    def build_pairs(
        self,
        collection: Collection,
        qids: Sequence[str],
        *,
        depth: int = 100,
        first_stage: str = DEFAULT_FIRST_STAGE,
        seed: int = 0,
    ) -> list[SourceTarget]:
        """Return the pairs from queries of a collection."""
        raise BadInput(f"{self.kind} learns from your own pairs: give a file of them with --text-pairs")

    def read_pairs_file(self, path: Path) -> list[SourceTarget]:
        """Read the pairs of a TSV file."""
        return read_pairs(path)

    def load_default_pairs(self) -> tuple[list[SourceTarget], list[str]]:
        """Return the pairs to learn from if none are given, and remarks on them."""
        either = (
            "a collection (--data) or a file of pairs (--text-pairs)"
            if self.pair_origin
            else "a file of pairs (--text-pairs)"
        )
        raise BadInput(f"give {self.kind} {either} to learn from")

    def fit(
        self,
        pairs: Sequence[SourceTarget],
        folder: str | Path,
        *,
        seed: int = 0,
        progress: ProgressFactory = no_progress,
        control: bool = False,
        origin: str = "",
        overwrite: bool = False,
    ) -> Path:
        """Train the writer and save it in the folder; an interrupted training in the folder resumes.

        A control learns from shuffled targets: a writer that is no better has learned nothing. The card records the
        origin of the pairs. A writer in the folder is replaced only with `overwrite`.
        """
        loop = import_torch_module("shaketable.training.loop")
        target = Path(folder)
        refuse_occupied_folder(target, overwrite=overwrite)
        pairs = self._prepare_pairs(pairs, seed, control)
        learned, held = self._split_held_out(pairs, seed)
        start = checkpoints.fingerprint_checkpoint(self._find_checkpoint()) if self.checkpoint else ""
        net = self._build_initial_net(pairs, seed)
        steps = ceil(len(learned) / self.batch)
        schedule = loop.TrainingSchedule(
            steps * self.epochs, self.batch, self.lr, 0.0, self.decay, every=steps, patience=self.epochs
        )
        about = {
            "writer": registries.WRITERS.spec(self),
            "settings": asdict(self),
            "seed": seed,
            "control": control,
            "pairs": {"learned": len(learned), "held": len(held), "fingerprint": _fingerprint_pairs(pairs)},
            "start": start,
        }
        training = loop.TrainingRun(
            net,
            SourceTargetLists(learned),
            writing_loss,
            HeldOutLikelihood(held),
            schedule,
            seed,
            target,
            about,
            progress,
        )
        course = training.run()
        outcome = {"best": course.best, "value": course.value, "steps": course.step, "history": course.history}
        save_writer(net, target, about | outcome | {"origin": origin, "seconds": round(course.seconds, 1)})
        training.clean()
        return target

    def _prepare_pairs(self, pairs: Sequence[SourceTarget], seed: int, control: bool) -> list[SourceTarget]:
        """Return the pairs with the prefix before sources and, for a control, with shuffled targets."""
        pairs = [SourceTarget(self.prefix + source, written) for source, written in pairs]
        if (different := len(set(pairs))) < 2:
            raise BadInput(f"{different} pairs are too few; training needs at least 2 different pairs")
        if not control:
            return pairs
        dealt = make_item_rng(seed, "shuffled targets").permutation([pair.target for pair in pairs])
        return [SourceTarget(pair.source, other) for pair, other in zip(pairs, dealt, strict=True)]

    def _split_held_out(
        self, pairs: Sequence[SourceTarget], seed: int
    ) -> tuple[list[SourceTarget], list[SourceTarget]]:
        """Split pairs into those to learn from and those to choose the weights by; equal pairs are on the same side."""
        order = sorted(set(pairs), key=lambda pair: (make_item_rng(seed, "held", *pair).random_bits(), pair))
        held = order[: max(1, len(order) // self.held)]
        apart = set(held)
        return [pair for pair in pairs if pair not in apart], held

    def _build_initial_net(self, pairs: Sequence[SourceTarget], seed: int) -> Seq2SeqNet:
        import torch

        seq2seq_net = import_torch_module("shaketable.training.seq2seq_net")
        pretrained_models = import_torch_module("shaketable.rankers.neural.pretrained_models")
        if self.checkpoint:
            path = self._find_checkpoint()
            model, tokenizer = pretrained_models.read_t5(path), checkpoints.read_tokenizer(path)
            checkpoints.check_vocabulary(path, tokenizer, model)
        else:
            tokenizer = train_tokenizer(text for pair in pairs for text in pair)
            with torch.random.fork_rng():
                torch.manual_seed(make_item_rng(seed, "weights").random_bits())
                model = self._build_small_t5(len(tokenizer))
        net: Seq2SeqNet = seq2seq_net.Seq2SeqNet(model, tokenizer, self.source_length, self.target_length)
        return net

    def _find_checkpoint(self) -> Path:
        pretrained_models = import_torch_module("shaketable.rankers.neural.pretrained_models")
        folder: Path = pretrained_models.find_checkpoint_folder(self.checkpoint)
        return folder

    def _build_small_t5(self, pieces: int) -> Any:
        from transformers import T5Config, T5ForConditionalGeneration

        sizes = {"d_model": self.dim, "d_kv": self.dim // 4, "d_ff": 2 * self.dim, "num_heads": 4}
        marks = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
        config: Any = T5Config(vocab_size=pieces, num_layers=self.layers, **sizes, **marks)  # type: ignore[arg-type]
        return T5ForConditionalGeneration(config)


@dataclass(frozen=True)
class DescToTitleWriter(Seq2SeqWriter):
    """Titles of descriptions (T5DescToTitle), from a collection's queries or from the topics of ir_datasets.

    The settings, and the topics that are used without a collection or pairs, are those of paper 004 (3.2.2).
    """

    kind: ClassVar[str] = "desc_to_title"
    pair_origin: ClassVar[str] = "descriptions of queries"
    usage: ClassVar[str] = '--transform "desc_to_title(model={folder!r})"'

    prefix: str = "summarize: "

    def build_pairs(self, collection: Collection, qids: Sequence[str], **how: Any) -> list[SourceTarget]:
        return build_title_pairs(collection, qids)

    def load_default_pairs(self) -> tuple[list[SourceTarget], list[str]]:
        pairs, lacking = build_topic_pairs()
        return pairs, [f"ir_datasets gave no topics of {name}: {why}" for name, why in lacking.items()]


@dataclass(frozen=True)
class Doc2QueryWriter(Seq2SeqWriter):
    """Queries that a text might answer (doc2query), from a collection's relevant texts and their queries.

    The learning rates are ours, for small training sets. Nogueira, Lin. From doc2query to docTTTTTquery. 2019.
    """

    kind: ClassVar[str] = "doc2query"
    pair_origin: ClassVar[str] = "relevant documents"
    usage: ClassVar[str] = '--ranker "doct5query(expander={folder!r})"'

    epochs: int = 4
    lr: float = 1e-4
    source_length: int = 512

    def build_pairs(self, collection: Collection, qids: Sequence[str], **how: Any) -> list[SourceTarget]:
        return build_query_pairs(collection, qids)


@dataclass(frozen=True)
class AnswersWriter(Seq2SeqWriter):
    """Answers to the prompts of monoT5, true or false, from a collection's judgements; `t5:` opens the result.

    The learner monot5 learns the same from lists of texts. The learning rates are ours, as for doc2query. In a file of
    pairs a source is "Query: q Document: d Relevant:", as the ranker writes it.
    """

    kind: ClassVar[str] = "answers"
    pair_origin: ClassVar[str] = "judgements"
    uses_candidates: ClassVar[bool] = True
    usage: ClassVar[str] = "--ranker t5:{folder}"

    epochs: int = 4
    lr: float = 3e-4
    source_length: int = 512
    target_length: int = 4

    def build_pairs(
        self,
        collection: Collection,
        qids: Sequence[str],
        *,
        depth: int = 100,
        first_stage: str = DEFAULT_FIRST_STAGE,
        seed: int = 0,
    ) -> list[SourceTarget]:
        training_data = TrainingData.prepare(collection, qids, (), None, depth, seed, first_stage, hold_out=False)
        return build_answer_pairs(collection, qids, training_data.candidates, seed)

    def read_pairs_file(self, path: Path) -> list[SourceTarget]:
        """Read the pairs of a TSV file; the end of the prompt is never cut off."""
        pairs = read_pairs(path, ANSWER_WORDS)
        return [SourceTarget(_PROMPT_END.sub("\tRelevant:", source), target) for source, target in pairs]


@dataclass(frozen=True, eq=False)
class SourceTargetLists:
    """Pairs as training lists of one text."""

    pairs: Sequence[SourceTarget]

    def __len__(self) -> int:
        return len(self.pairs)

    def draw(self, number: int, turn: int) -> Sample:
        source, target = self.pairs[number]
        return Sample(source[:60], source, (target,), (1.0,))


def writing_loss(net: Net, samples: Sequence[Sample]) -> Tensor:
    """Return the cross-entropy of the target pieces, averaged over all of them."""
    device = next(net.parameters()).device
    prepared = net.prepare([(sample.query, text) for sample in samples for text in sample.texts])
    logs = net(**{key: tensor.to(device) for key, tensor in net.collate(prepared).items()})
    loss: Tensor = -logs.sum() / sum(len(lesson.target) for lesson in prepared)
    return loss


@dataclass(frozen=True, eq=False)
class HeldOutLikelihood:
    """The validation measure: the mean ln p of a target piece over held-out pairs."""

    pairs: Sequence[SourceTarget]
    batch: int = 32

    def __call__(self, net: Net) -> float:
        import torch

        net.eval()
        total = pieces = 0.0
        with torch.inference_mode():
            for start in range(0, len(self.pairs), self.batch):
                some = SourceTargetLists(self.pairs[start : start + self.batch])
                samples = [some.draw(number, 0) for number in range(len(some))]
                size = sum(len(lesson.target) for lesson in net.prepare([(s.query, s.texts[0]) for s in samples]))
                total -= writing_loss(net, samples).item() * size
                pieces += size
        return total / pieces


def train_tokenizer(texts: Iterable[str], limit: int = MAX_VOCABULARY_PIECES) -> Any:
    """Train a tokenizer like that of T5 on texts: the first piece of a word starts with a mark."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    special = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation()]
    )
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=limit, special_tokens=list(special.values()), show_progress=False)
    tokenizer.train_from_iterator((text.encode("utf-8", "replace").decode() for text in texts), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    fast: Any = PreTrainedTokenizerFast
    return fast(tokenizer_object=tokenizer, model_input_names=["input_ids", "attention_mask"], **special)


def _fingerprint_pairs(pairs: Sequence[SourceTarget]) -> str:
    digest = blake2b(digest_size=16)
    for pair in pairs:
        digest.update(repr(tuple(pair)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
