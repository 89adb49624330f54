"""Sequence-to-sequence models: pairs of a source and a target in, a checkpoint out that transformers can open.

One trainer for what writes titles of descriptions (T5DescToTitle of paper 004), queries of documents (doc2query) and
answers to prompts (monoT5): they differ in their pairs and in a few settings, which are in `TASKS`. It is the loop of
the nets, so a training that was cut off goes on to the same weights.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from shaketable.chance import draws_for
from shaketable.errors import BadInput, MissingExtra
from shaketable.files import lines, written_whole
from shaketable.learners.neural import _torch
from shaketable.learners.samples import Judged, Sample
from shaketable.types import Collection, Run, Watch, unwatched

if TYPE_CHECKING:
    from torch import Tensor

    from shaketable.learners.writer import Writer
    from shaketable.rankers.nets.net import Net

CARD = "card.json"
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


class Pair(NamedTuple):
    """What is read and what is to be written. What a source has behind a tab is kept where it is too long."""

    source: str
    target: str


@dataclass(frozen=True)
class Seq2Seq:
    """A T5 and the settings of its training; those of T5DescToTitle (paper 004) unless others are given.

    checkpoint    a T5 to begin with, a hub name or a folder; "" is a small one of `layers` and `dim`, from nothing
    prefix        is put before every source
    epochs, batch passes over the pairs, and pairs of a step
    lr, decay     the rate of AdamW, which falls to 0, and its weight decay
    source_length, target_length    pieces that are read and written
    held          one pair in so many is not learned from; the weights that do best on these are kept
    """

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

    def fit(
        self,
        pairs: Sequence[Pair],
        folder: str | Path,
        *,
        seed: int = 0,
        watch: Watch = unwatched,
        control: bool = False,
    ) -> Path:
        """Learn to write, and leave the model in the folder. If it has a training that was cut off, that goes on.

        A control learns from targets dealt out at random: who does no better than it has learned nothing.
        """
        loop, checkpoints = _torch("shaketable.learners.loop"), _torch("shaketable.rankers.nets.checkpoints")
        target = Path(folder)
        if (target / "config.json").exists():
            raise BadInput("is a trained model already; remove it, or name another folder", target)
        pairs = [Pair(self.prefix + source, written) for source, written in pairs]
        if len(pairs) < 2:
            raise BadInput(f"{len(pairs)} pairs are too few to learn to write from; at least 2 are needed")
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
            "settings": asdict(self),
            "seed": seed,
            "control": control,
            "pairs": {"learned": len(learned), "held": len(held), "fingerprint": _name(pairs)},
            "start": start,
        }
        training = loop.Training(net, Written(learned), writing, Held(held), schedule, seed, target, about, watch)
        course = training.run()
        outcome = {"best": course.best, "value": course.value, "steps": course.step, "history": course.history}
        _save(net, target, about | outcome | {"seconds": round(course.seconds, 1)})
        training.clean()
        return target

    def _apart(self, pairs: Sequence[Pair], seed: int) -> tuple[list[Pair], list[Pair]]:
        """Pairs to learn from, and pairs to choose the weights by."""
        order = sorted(pairs, key=lambda pair: (draws_for(seed, "held", *pair).bits(), pair))
        some = max(1, len(order) // self.held)
        held = set(order[:some])
        learned = [pair for pair in pairs if pair not in held]
        return (learned, order[:some]) if learned else (list(pairs), list(pairs))

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


TASKS = {
    "desc_to_title": Seq2Seq(prefix="summarize: "),
    "doc2query": Seq2Seq(epochs=4, lr=1e-4, source_length=512),
    "monot5": Seq2Seq(epochs=4, lr=3e-4, source_length=512, target_length=4),
}
"""What is learned, and how: titles as in paper 004; the others' rates are ours, for training sets that fit a laptop."""


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


def read_pairs(path: Path) -> list[Pair]:
    """Pairs of a TSV file, plain or gzipped: a source, a tab, a target."""
    pairs = []
    for number, line in lines(path):
        fields = line.split("\t")
        if len(fields) != 2 or not all(field.strip() for field in fields):
            raise BadInput("a line is what is read and what is written, with one tab between", path, number)
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


def described_pairs(collection: Collection) -> list[Pair]:
    """Descriptions and texts of a collection's queries, where it has descriptions."""
    return [Pair(query.description, query.text) for query in collection.queries.values() if query.description.strip()]


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
    with tempfile.TemporaryDirectory(dir=folder, prefix=".building-") as temporary:
        fresh = Path(temporary)
        with _torch("shaketable.rankers.nets.checkpoints").quiet():
            net.model.save_pretrained(fresh)
        net.save_vocabulary(fresh)
        with written_whole(folder / CARD) as out:
            json.dump(dict(card), out, indent=1, allow_nan=False)
        for path in sorted(fresh.iterdir(), key=lambda path: path.name == "config.json"):
            os.replace(path, folder / path.name)


def _name(pairs: Sequence[Pair]) -> str:
    digest = blake2b(digest_size=16)
    for pair in pairs:
        digest.update(repr(tuple(pair)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
