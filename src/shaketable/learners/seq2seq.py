"""Sequence-to-sequence models: pairs of a source and a target in, a checkpoint out that transformers can open.

One trainer for what writes titles of descriptions (T5DescToTitle of paper 004), queries of documents (doc2query) and
answers to prompts (monoT5): a writer of `registry.WRITERS` is its defaults and where its pairs come from. It is the
loop of the nets, so a training that was cut off goes on to the same weights.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from shaketable import registry
from shaketable.chance import draws_for
from shaketable.errors import BadInput, MissingExtra, check_within, quoted
from shaketable.files import lines, read_json, settle, staged, sync
from shaketable.files import writing as written_to
from shaketable.learners.neural import _torch
from shaketable.learners.plan import FIRST_STAGE, Lessons
from shaketable.learners.samples import Judged, Sample
from shaketable.rankers.folder import MODEL, STATE, WORK, refuse_taken
from shaketable.text import door
from shaketable.types import Collection, Run, Watch, unwatched

if TYPE_CHECKING:
    from torch import Tensor

    from shaketable.learners.writer import Writer
    from shaketable.rankers.nets.net import Net

CARD, CONFIG = "card.json", "config.json"
TOPICS = (
    "trec-robust04",
    "gov2/trec-tb-2004",
    "aquaint/trec-robust-2005",
    "gov/trec-web-2002",
    "clueweb12/b13/ntcir-www-2",
    "clueweb12/b13/ntcir-www-3",
    "clueweb12/b13/trec-misinfo-2019",
    "cord19/trec-covid",
    "dd-trec-2015",
    "dd-trec-2016",
    "dd-trec-2017",
)
"""The collections of ir_datasets whose topics paper 004 (3.2.2) learns titles from; it counts 1,322 pairs. The library
no longer has the last three (0.6.3)."""
PIECES = 8000
"""Of a vocabulary that is made of the pairs themselves, at most."""
ANSWERS = ("true", "false")
BOUNDS: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("epochs", "batch"), (1, 10_000)),
    "lr": (1e-12, 1),
    "decay": (0, 1),
    "source_length": (8, 100_000),
    "target_length": (2, 10_000),
    "held": (2, 1_000_000),
    "layers": (1, 100),
    "dim": (4, 10_000),  # four heads
}
"""The least and the most that makes sense of a setting."""


class Pair(NamedTuple):
    """What is read and what is to be written. What a source has behind a tab is kept where it is too long."""

    source: str
    target: str


@dataclass(frozen=True)
class Seq2Seq:
    """A T5 that learns to write from pairs of texts that you bring: what is read, and what is to be written.

    checkpoint    a T5 to begin with, a hub name or a folder; "" is a small one of `layers` and `dim`, from nothing
    prefix        is put before every source
    epochs, batch passes over the pairs, and pairs of a step
    lr, decay     the rate of AdamW, which falls to 0, and its weight decay
    source_length, target_length    pieces that are read and written
    held          one pair in so many is not learned from; the weights that do best on these are kept

    The settings are those of T5DescToTitle (paper 004) unless others are given.
    """

    kind: ClassVar[str] = "seq2seq"
    """What the catalogue calls the writer."""
    extra: ClassVar[str] = "neural"
    takes: ClassVar[str] = ""
    """What its pairs are taken from in a collection; nothing where only you can bring them."""
    looks_at_candidates: ClassVar[bool] = False
    """Do its pairs depend on what a first stage finds?"""
    usage: ClassVar[str] = 'whatever opens a T5, for example --method "paraphrase(model={folder!r})"'
    """Who opens the folder, as one writes it."""

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
        check_within(self.kind, self, **BOUNDS)

    def pairs_of(
        self,
        collection: Collection,
        qids: Sequence[str],
        *,
        depth: int = 100,
        first_stage: str = FIRST_STAGE,
        seed: int = 0,
    ) -> list[Pair]:
        """The pairs that queries of a collection hold."""
        raise BadInput(f"{self.kind} learns from pairs that you bring: give a file of them (--pairs)")

    def pairs_in(self, path: Path) -> list[Pair]:
        """The pairs of a TSV file."""
        return read_pairs(path)

    def usual_pairs(self) -> tuple[list[Pair], list[str]]:
        """What is learned from where nothing is given, and remarks on it."""
        either = "a collection (--data) or a file of pairs (--pairs)" if self.takes else "a file of pairs (--pairs)"
        raise BadInput(f"give {self.kind} {either} to learn from")

    def fit(
        self,
        pairs: Sequence[Pair],
        folder: str | Path,
        *,
        seed: int = 0,
        watch: Watch = unwatched,
        control: bool = False,
        origin: str = "",
        overwrite: bool = False,
    ) -> Path:
        """Learn to write, and leave the model in the folder. If it has a training that was cut off, that goes on.

        A control learns from targets dealt out at random: who does no better than it has learned nothing. The origin of
        the pairs is for the card. A writer that is in the folder is replaced only if it may be overwritten.
        """
        loop, checkpoints = _torch("shaketable.learners.loop"), _torch("shaketable.rankers.nets.checkpoints")
        target = Path(folder)
        refuse_used(target, overwrite=overwrite)
        pairs = [Pair(self.prefix + source, written) for source, written in pairs]
        if (different := len(set(pairs))) < 2:
            raise BadInput(f"{different} pairs are too few to learn to write from; at least 2 that differ are needed")
        if control:
            dealt = draws_for(seed, "shuffled targets").shuffled([pair.target for pair in pairs])
            pairs = [Pair(pair.source, other) for pair, other in zip(pairs, dealt, strict=True)]
        learned, held = self._apart(pairs, seed)
        start = checkpoints.contents(checkpoints.checkpoint_folder(self.checkpoint)) if self.checkpoint else ""
        net = self._begin(pairs, seed)
        steps = ceil(len(learned) / self.batch)
        schedule = loop.Schedule(
            steps * self.epochs, self.batch, self.lr, 0.0, self.decay, every=steps, patience=self.epochs
        )
        about = {
            "writer": registry.WRITERS.spec(self),
            "settings": asdict(self),
            "seed": seed,
            "control": control,
            "pairs": {"learned": len(learned), "held": len(held), "fingerprint": _name(pairs)},
            "start": start,
        }
        training = loop.Training(net, Written(learned), writing, Held(held), schedule, seed, target, about, watch)
        course = training.run()
        outcome = {"best": course.best, "value": course.value, "steps": course.step, "history": course.history}
        _save(net, target, about | outcome | {"origin": origin, "seconds": round(course.seconds, 1)})
        training.clean()
        return target

    def _apart(self, pairs: Sequence[Pair], seed: int) -> tuple[list[Pair], list[Pair]]:
        """Pairs to learn from, and others to choose the weights by: a pair that is there twice is on one side."""
        order = sorted(set(pairs), key=lambda pair: (draws_for(seed, "held", *pair).bits(), pair))
        held = order[: max(1, len(order) // self.held)]
        apart = set(held)
        return [pair for pair in pairs if pair not in apart], held

    def _begin(self, pairs: Sequence[Pair], seed: int) -> Writer:
        import torch

        checkpoints, writer = _torch("shaketable.rankers.nets.checkpoints"), _torch("shaketable.learners.writer")
        if self.checkpoint:
            path = checkpoints.checkpoint_folder(self.checkpoint)
            model, tokenizer = checkpoints.read_t5(path), checkpoints.read_tokenizer(path)
            checkpoints.check_vocabulary(path, tokenizer, model)
        else:
            tokenizer = vocabulary_of(text for pair in pairs for text in pair)
            with torch.random.fork_rng():
                torch.manual_seed(draws_for(seed, "weights").bits())
                model = self._small(len(tokenizer))
        net: Writer = writer.Writer(model, tokenizer, self.source_length, self.target_length)
        return net

    def _small(self, pieces: int) -> Any:
        from transformers import T5Config, T5ForConditionalGeneration

        sizes = {"d_model": self.dim, "d_kv": self.dim // 4, "d_ff": 2 * self.dim, "num_heads": 4}
        marks = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
        config: Any = T5Config(vocab_size=pieces, num_layers=self.layers, **sizes, **marks)  # type: ignore[arg-type]
        return T5ForConditionalGeneration(config)


@dataclass(frozen=True)
class DescToTitle(Seq2Seq):
    """Titles of descriptions (T5DescToTitle), from a collection's queries or from the topics of ir_datasets.

    Paper 004 (3.2.2) has the settings; where neither a collection nor pairs are given, it has the topics too.
    """

    kind: ClassVar[str] = "desc_to_title"
    takes: ClassVar[str] = "descriptions of queries"
    usage: ClassVar[str] = '--method "desc_to_title(model={folder!r})"'

    prefix: str = "summarize: "

    def pairs_of(self, collection: Collection, qids: Sequence[str], **how: Any) -> list[Pair]:
        return described_pairs(collection, qids)

    def usual_pairs(self) -> tuple[list[Pair], list[str]]:
        pairs, lacking = topic_pairs()
        return pairs, [f"ir_datasets gave no topics of {name}: {why}" for name, why in lacking.items()]


@dataclass(frozen=True)
class Doc2Query(Seq2Seq):
    """Queries that a text might answer (doc2query), from a collection's relevant texts and their queries.

    The rates are ours, for training sets that fit a laptop. Nogueira, Lin. From doc2query to docTTTTTquery. 2019.
    """

    kind: ClassVar[str] = "doc2query"
    takes: ClassVar[str] = "relevant documents"
    usage: ClassVar[str] = '--ranker "doct5query(expander={folder!r})"'

    epochs: int = 4
    lr: float = 1e-4
    source_length: int = 512

    def pairs_of(self, collection: Collection, qids: Sequence[str], **how: Any) -> list[Pair]:
        return query_pairs(collection, qids)


@dataclass(frozen=True)
class Answers(Seq2Seq):
    """Answers to the prompts of monoT5, true or false, from a collection's judgements; `t5:` opens what comes of it.

    The learner monot5 learns the same from lists of texts. The rates are ours, as those of doc2query. In a file of
    pairs a source is "Query: q Document: d Relevant:", as the ranker writes it.
    """

    kind: ClassVar[str] = "answers"
    takes: ClassVar[str] = "judgements"
    looks_at_candidates: ClassVar[bool] = True
    usage: ClassVar[str] = "--ranker t5:{folder}"

    epochs: int = 4
    lr: float = 3e-4
    source_length: int = 512
    target_length: int = 4

    def pairs_of(
        self,
        collection: Collection,
        qids: Sequence[str],
        *,
        depth: int = 100,
        first_stage: str = FIRST_STAGE,
        seed: int = 0,
    ) -> list[Pair]:
        lessons = Lessons.prepare(collection, qids, (), None, depth, seed, first_stage, hold_out=False)
        return answer_pairs(collection, qids, lessons.candidates, seed)

    def pairs_in(self, path: Path) -> list[Pair]:
        """The pairs of a TSV file; the end of the prompt is kept where a text is too long."""
        pairs = read_pairs(path, ANSWERS)
        return [Pair(re.sub(r"\s+Relevant:\s*$", "\tRelevant:", source), target) for source, target in pairs]


def refuse_used(folder: Path, *, overwrite: bool = False) -> None:
    """Refuse a folder where no writer can be left: one that holds a model, unless it may be overwritten, or others.

    A training that was cut off there goes on, and may have left some of its files, or all of them.
    """
    if (folder / WORK / STATE).is_file() and not os.path.lexists(folder / MODEL):
        return
    if not (folder / CONFIG).exists():
        refuse_taken(folder)
    elif not (folder / CARD).exists():
        raise BadInput("holds a checkpoint that was not trained here; name another folder", folder)
    elif not overwrite:
        raise BadInput("holds a trained writer already; name another folder, or ask for it to be overwritten", folder)
    else:
        _replaced(folder)


@dataclass(frozen=True, eq=False)
class Written:
    """Pairs as lists of one text."""

    pairs: Sequence[Pair]

    def __len__(self) -> int:
        return len(self.pairs)

    def draw(self, number: int, turn: int) -> Sample:
        source, target = self.pairs[number]
        return Sample(source[:60], source, (target,), (1.0,))


def writing(net: Net, samples: Sequence[Sample]) -> Tensor:
    """The objective: cross-entropy of the pieces that are to be written, the mean over all of them."""
    device = next(net.parameters()).device
    prepared = net.prepare([(sample.query, text) for sample in samples for text in sample.texts])
    logs = net(**{key: tensor.to(device) for key, tensor in net.collate(prepared).items()})
    loss: Tensor = -logs.sum() / sum(len(lesson.target) for lesson in prepared)
    return loss


@dataclass(frozen=True, eq=False)
class Held:
    """How likely pairs are that were not learned from: ln p of a piece, on average."""

    pairs: Sequence[Pair]
    batch: int = 32

    def __call__(self, net: Net) -> float:
        import torch

        net.eval()
        total = pieces = 0.0
        with torch.inference_mode():
            for start in range(0, len(self.pairs), self.batch):
                some = Written(self.pairs[start : start + self.batch])
                samples = [some.draw(number, 0) for number in range(len(some))]
                size = sum(len(lesson.target) for lesson in net.prepare([(s.query, s.texts[0]) for s in samples]))
                total -= writing(net, samples).item() * size
                pieces += size
        return total / pieces


def vocabulary_of(texts: Iterable[str], limit: int = PIECES) -> Any:
    """A tokenizer like T5's, made of texts: pieces that begin with a mark where a word begins."""
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


def read_pairs(path: Path, targets: Sequence[str] = ()) -> list[Pair]:
    """Pairs of a TSV file, plain or gzipped: a source, a tab, a target, which may have to be one of a few."""
    pairs = []
    for number, line in lines(path):
        fields = line.split("\t")
        if len(fields) != 2 or not all(field.strip() for field in fields):
            raise BadInput("a line is what is read and what is written, with one tab between", path, number)
        if targets and fields[1] not in targets:
            raise BadInput(f"what is written is {' or '.join(targets)}, not {quoted(fields[1])}", path, number)
        pairs.append(Pair(*fields))
    return pairs


def topic_pairs(names: Sequence[str] = TOPICS) -> tuple[list[Pair], dict[str, str]]:
    """Descriptions and titles of topics, from ir_datasets; and why it gave none of some collections."""
    try:
        import ir_datasets
    except ModuleNotFoundError as error:
        raise MissingExtra("data", "topics of ir_datasets") from error
    pairs: list[Pair] = []
    lacking: dict[str, str] = {}
    for name in names:
        try:
            topics = [(topic.description, topic.title) for topic in ir_datasets.load(name).queries_iter()]
        except Exception as error:  # the library has many ways to fail
            lacking[name] = str(error).strip().partition("\n")[0] or type(error).__name__
            continue
        pairs += (Pair(*(" ".join(text.split()) for text in topic)) for topic in topics if all(topic))
    if not pairs:
        whys = "; ".join(f"{name} ({why})" for name, why in lacking.items())
        raise BadInput(f"ir_datasets has the topics of none of these: {whys}")
    return pairs, lacking


def described_pairs(collection: Collection, qids: Sequence[str]) -> list[Pair]:
    """Descriptions and texts of queries, where they have both."""
    both = ((collection.queries[qid].description, collection.queries[qid].text) for qid in qids)
    words = ((description.split(), text.split()) for description, text in both)
    return [Pair(" ".join(description), " ".join(text)) for description, text in words if description and text]


def query_pairs(collection: Collection, qids: Sequence[str]) -> list[Pair]:
    """Relevant documents and the queries they are relevant to: what doc2query learns from."""
    judged = ((qid, docno) for qid in qids for docno, grade in collection.qrels.get(qid, {}).items() if grade > 0)
    return [
        Pair(" ".join(collection.docs[docno].text.split()), collection.queries[qid].text)
        for qid, docno in judged
        if docno in collection.docs
    ]


def answer_pairs(collection: Collection, qids: Sequence[str], candidates: Run, seed: int = 0) -> list[Pair]:
    """Prompts and answers, as many true as false: what monoT5 learns from."""
    lists = Judged(collection, qids, candidates, size=2, seed=seed)
    pairs = []
    for sample in (lists.draw(number, 0) for number in range(len(lists))):
        best = max(sample.labels)
        for text, label in zip(sample.texts, sample.labels, strict=True):
            query, text = " ".join(sample.query.split()), " ".join(text.split())
            pairs.append(Pair(f"Query: {query} Document: {text}\tRelevant:", "true" if label == best else "false"))
    return pairs


def _save(net: Writer, folder: Path, card: Mapping[str, Any]) -> None:
    """The files of a checkpoint; that which names the model comes last, so that without it there is none."""
    from safetensors import SafetensorError

    with written_to(folder), staged(folder) as fresh:
        try:
            with door.quiet():
                net.model.save_pretrained(fresh)
        except SafetensorError as error:  # its way to say that the disk is full
            raise BadInput(f"cannot be written ({door.first_line(error)})", folder) from error
        net.save_vocabulary(fresh)
        files = sorted({path.name for path in fresh.iterdir()} | {CARD})
        (fresh / CARD).write_text(json.dumps({**card, "files": files}, indent=1, allow_nan=False), encoding="utf-8")
        settle(fresh)
        for name in _replaced(folder):
            (folder / name).unlink(missing_ok=True)
        for name in sorted(files, key=CONFIG.__eq__):
            os.replace(fresh / name, folder / name)
        sync(folder)


def _replaced(folder: Path) -> list[str]:
    """The files of the writer that is in a folder, that which names the model first; its card, which lists them, stays.

    A vocabulary that is left behind would be taken for part of the new one.
    """
    if not (folder / CARD).exists():
        return []
    card = read_json(folder / CARD)
    listed = card.get("files") if isinstance(card, dict) else None
    if not isinstance(listed, list) or not all(isinstance(name, str) and Path(name).name == name for name in listed):
        raise BadInput("is no card of a writer that was trained here; name another folder", folder / CARD)
    return sorted({*listed} - {CARD}, key=lambda name: name != CONFIG)


def _name(pairs: Sequence[Pair]) -> str:
    digest = blake2b(digest_size=16)
    for pair in pairs:
        digest.update(repr(tuple(pair)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
