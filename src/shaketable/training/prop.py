"""PROP: pre-training for ranking on the texts of a collection alone.

A document's language model draws two word sets; the more likely set represents the document better. The net reads a
set and the document together and learns to score the better set higher, and to fill in masked words of the document.

    p(w | d) = (tf(w, d) + μ · df(w) / Σ_v df(v)) / (|d| + μ)        μ: the average length of a document
    loss     = max(0, 1 - (P+ - P-)) + MLM,  (P+, P-) = softmax of the two scores

A set has Poisson(3) words, at least one, drawn from the words of the document and of the collection. Frequent words are
subsampled as in word2vec; stop-words are excluded. Of ten pairs for a document, four are used.

Ma, Guo, Zhang, Fan, Ji, Cheng. PROP: pre-training with representative words prediction for ad-hoc retrieval. WSDM 2021.
The background model of document frequencies, and the softmax, are as in the authors' code.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from math import fsum, log
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, relu

from shaketable.core.documents import Corpus, fingerprint
from shaketable.core.errors import BadInput
from shaketable.core.home import home_folder
from shaketable.core.progress import ProgressFactory, no_progress
from shaketable.core.seeding import make_item_rng, make_numpy_rng
from shaketable.nlp import checkpoints
from shaketable.nlp.analyzer import Analyzer
from shaketable.rankers.neural import pretrained_models, saving
from shaketable.rankers.neural.bert import CrossEncoder
from shaketable.rankers.neural.fast_inference import restore_last_layer
from shaketable.rankers.neural.masked import MaskedLM
from shaketable.rankers.neural.shapes import BertShape
from shaketable.rankers.neural.tokens import TokenRow, truncate_lengths
from shaketable.training.jobs import find_model_folder
from shaketable.training.list_sources import Sample
from shaketable.training.loop import TrainingRun, TrainingSchedule

if TYPE_CHECKING:
    from shaketable.rankers.neural.tokens import Ids

Floats = NDArray[np.float64]

FORMAT_VERSION = 1  # raise it when the same settings give another model
PRETRAINING_SEED = 0
"""Pre-training has one seed, so that trainings with different seeds share it."""
PAIRS_DRAWN_PER_DOCUMENT, PAIRS_USED_PER_DOCUMENT = 10, 4
"""Pairs of word sets for a document."""
MEAN_WORDS_PER_SET = 3
LONG_DOCUMENT_WORDS = 100  # a document of so many words is always used
SHORT_DOCUMENT_SHARE = 0.2  # the share of shorter documents that is used
CANDIDATE_WORDS = 500  # different words that a set is drawn from, including those of the document
SUBSAMPLING_THRESHOLD = 1e-4  # word2vec's threshold
MASKED_WORD_SHARE, MAX_MASKED_PIECES = 0.15, 60  # the share of masked words, and the most masked pieces
MAX_HELD_OUT_DOCUMENTS = 64  # one pair of each is used for validation only


@dataclass(frozen=True)
class PretrainingSettings:
    """The settings. A checkpoint without a head for masked words first has `adapt` steps on masked words alone."""

    checkpoint: str
    max_length: int
    steps: int
    adapt: int
    lists: int
    lr: float
    every: int = 100


def open_pretrained(
    corpus: Corpus, settings: PretrainingSettings, progress: ProgressFactory = no_progress, control: bool = False
) -> Path:
    """Return the folder of a cross-encoder pre-trained on a collection: a cached one, or a new one.

    Its name in the home folder depends on texts, checkpoint and settings. An interrupted pre-training resumes. A
    control learns from random labels of the sets.
    """
    mark = checkpoints.fingerprint_checkpoint(pretrained_models.find_checkpoint_folder(settings.checkpoint))
    named = {name: value for name, value in asdict(settings).items() if name != "checkpoint"}
    name = fingerprint("prop", FORMAT_VERSION, corpus.fingerprint, mark, sorted(named.items()), control)
    folder, stored = find_model_folder(home_folder() / "pretrained" / name, [])
    if stored:
        return folder
    with torch.random.fork_rng():
        torch.manual_seed(make_item_rng(PRETRAINING_SEED, "weights").random_bits())
        net = PROPNet.from_checkpoint(settings.checkpoint, settings.max_length)
    source = WordSets(corpus, control=control)
    stages = {} if net.masked.has_own_head or not settings.adapt else {"masked words": settings.adapt}
    stages["word sets"] = settings.steps
    about: dict[str, Any] = {"settings": asdict(settings), "seed": PRETRAINING_SEED, "documents": len(source.docnos)}
    about["head"] = "the checkpoint's own" if net.masked.has_own_head else "tied to the pieces, and adapted first"
    for stage, steps in stages.items():
        objective = PretrainingLoss(PRETRAINING_SEED, compare_sets=stage == "word sets")
        schedule = TrainingSchedule(steps, settings.lists, settings.lr, every=settings.every, patience=1 + steps)
        plan = {"prop": name, "stage": stage}
        work = _stage_folder(folder, stage)
        course = TrainingRun(
            net,
            source,
            objective,
            PretrainingValidation(source, objective),
            schedule,
            PRETRAINING_SEED,
            work,
            plan,
            progress,
        ).run()
        about[stage] = {"steps": course.step, "best": course.best, "history": course.history}
    saving.FittedNet(net.ranker, about).save(folder)
    for stage in stages:
        shutil.rmtree(_stage_folder(folder, stage), ignore_errors=True)
    return folder


def _stage_folder(folder: Path, stage: str) -> Path:
    """Return the folder with the training state of a phase; it lies beside the model folder."""
    return folder.with_name(f"{folder.name}-{stage.replace(' ', '-')}")


@dataclass(frozen=True)
class MaskedPair:
    """The tokens of a word set and a document with masked words, and the positions and pieces of these words."""

    tokens: TokenRow
    positions: NDArray[np.int64]
    pieces: Ids


class PROPNet(nn.Module):
    """A cross-encoder and a head for masked words that share one encoder."""

    kind: ClassVar[str] = "prop"

    def __init__(self, ranker: CrossEncoder, masked: MaskedLM):
        super().__init__()
        restore_last_layer(ranker.model)  # the head for masked words reads every token
        self.ranker = ranker
        self.masked = masked
        names = ranker.tokenizer.convert_ids_to_tokens(list(range(len(ranker.tokenizer))))
        self._is_continuation = _find_continuations(names)

    @classmethod
    def from_checkpoint(cls, checkpoint: str, max_length: int) -> Self:
        """Build from a checkpoint: its encoder, its head for masked words or a tied one, and a new ranking head."""
        path = pretrained_models.find_checkpoint_folder(checkpoint)
        ranker = CrossEncoder.from_checkpoint(checkpoint, BertShape(max_length=max_length), fresh=True)
        masked = MaskedLM.from_checkpoint(path)
        if ranker.tokenizer.mask_token_id is None:
            raise BadInput("has no [MASK] in its vocabulary, which masked language modelling needs", path)
        encoder = ranker.model.base_model
        if masked.has_own_head:
            setattr(masked.model, masked.model.base_model_prefix, encoder)
            masked.model.tie_weights()
        else:
            masked.model = encoder
        return cls(ranker, masked)

    def mask_pairs(self, pairs: Sequence[tuple[str, str]], names: Sequence[str], seed: int) -> list[MaskedPair]:
        """Return tokens with some of the text's words masked; the choice depends on seed and name."""
        frame, tokenizer = self.ranker._frame, self.ranker.tokenizer
        queries, texts = (self.ranker._pieces([pair[side] for pair in pairs]) for side in (0, 1))
        marks = [len(mark) for mark in frame.special_ids]
        found = []
        for query, text, name in zip(queries, texts, names, strict=True):
            row = frame.wrap_texts([query, text], self.ranker.max_length)
            asked, said = truncate_lengths([len(query), len(text)], self.ranker.max_length - sum(marks))
            first = marks[0] + asked + marks[1]
            places = choose_masked_positions(self._is_continuation[row.ids[first : first + said]], seed, name) + first
            ids = row.ids.copy()
            rng = make_numpy_rng(seed, "masked", name)
            for place in places:
                how = rng.random()
                if how < 0.8:
                    ids[place] = tokenizer.mask_token_id
                elif how < 0.9:
                    ids[place] = rng.integers(len(tokenizer))
            found.append(MaskedPair(TokenRow(ids, row.type_ids, row.truncated), places, row.ids[places]))
        return found


def choose_masked_positions(is_continuation: NDArray[np.bool_], seed: int, name: str) -> NDArray[np.int64]:
    """Return the positions of the pieces of whole words to mask: 15 % of the number of words, from 1 to 60 pieces.

    >>> words = np.array([False, False, True, False, False, True, True, False])  # five words, of one to three pieces
    >>> choose_masked_positions(words, seed=0, name="d1").tolist() in ([0], [3], [7])
    True
    """
    starts = np.flatnonzero(~is_continuation)
    if not len(starts):
        return starts
    wanted = min(MAX_MASKED_PIECES, max(1, round(len(starts) * MASKED_WORD_SHARE)))
    ends = np.append(starts[1:], len(is_continuation))
    places: list[int] = []
    for word in make_item_rng(seed, "words to mask", name).permutation(range(len(starts))):
        if len(places) + ends[word] - starts[word] <= wanted:
            places += range(starts[word], ends[word])
    return np.array(sorted(places), np.int64)


def _find_continuations(names: Sequence[str]) -> NDArray[np.bool_]:
    """Return a mask of the pieces that continue a word: ##ing, or a piece without the mark that starts a word."""
    for mark, going in (("##", True), ("Ġ", False), ("▁", False)):
        marked = np.array([name.startswith(mark) for name in names])
        if marked.any():
            return marked if going else ~marked
    return np.zeros(len(names), np.bool_)


@dataclass(frozen=True)
class PretrainingLoss:
    """The loss of ranking the better set higher and of filling in masked words; without `compare_sets` the latter."""

    seed: int
    compare_sets: bool = True

    def __call__(self, net: PROPNet, samples: Sequence[Sample]) -> Tensor:
        some = [sample.texts if self.compare_sets else sample.texts[:1] for sample in samples]
        pairs = [(words, sample.query) for sample, texts in zip(samples, some, strict=True) for words in texts]
        names = [f"{sample.name} {i}" for sample, texts in zip(samples, some, strict=True) for i in range(len(texts))]
        masked = net.mask_pairs(pairs, names, self.seed)
        device = next(net.parameters()).device
        batch = net.ranker.collate([pair.tokens for pair in masked])
        out = net.ranker.model(**{key: rows.to(device) for key, rows in batch.items()}, output_hidden_states=True)
        rows = torch.tensor([row for row, pair in enumerate(masked) for _ in pair.positions], device=device)
        places = torch.tensor([place for pair in masked for place in pair.positions.tolist()], device=device)
        pieces = torch.tensor([piece for pair in masked for piece in pair.pieces.tolist()], device=device)
        logits = (
            net.masked.compute_logits(out.hidden_states[-1][rows, places]) if len(pieces) else out.logits[:0]
        )  # [m, v]
        loss = cross_entropy(logits, pieces) if len(pieces) else out.logits.sum() * 0
        if not self.compare_sets:
            return loss
        shares = out.logits[:, 0].view(len(samples), 2).softmax(1)
        better = torch.tensor([sample.labels for sample in samples], device=device).argmax(1, keepdim=True)
        told = relu(1 - (shares.gather(1, better) - shares.gather(1, 1 - better)))
        return told.mean() + loss


@dataclass(frozen=True, eq=False)
class PretrainingValidation:
    """The negative mean loss on held-out pairs."""

    source: WordSets
    objective: PretrainingLoss

    def __call__(self, net: PROPNet) -> float:
        net.eval()
        with torch.inference_mode():
            losses = [self.objective(net, [sample]).item() for sample in self.source.held_out_samples]
        return -sum(losses) / len(losses)


@dataclass(frozen=True, eq=False)
class WordSets:
    """Pairs of word sets: a sample's query is a document, its two texts are word sets, and the better one has label 1.

    A fifth of the documents with fewer than 100 words is used; if there are no longer ones, all are used.
    """

    corpus: Corpus
    seed: int = PRETRAINING_SEED
    control: bool = False
    tokenizer: Analyzer = field(default_factory=lambda: Analyzer(stemmer="none"))

    def __len__(self) -> int:
        return PAIRS_USED_PER_DOCUMENT * len(self.docnos)

    @cached_property
    def docnos(self) -> list[str]:
        """The documents to learn from."""
        return [docno for docno in self._usable_docnos if docno not in self._held_out_docnos]

    @cached_property
    def held_out_samples(self) -> list[Sample]:
        """Pairs of held-out documents, or of any documents if there are too few."""
        return [
            self._make_sample(docno, 0, "held")
            for docno in sorted(self._held_out_docnos) or self._usable_docnos[:MAX_HELD_OUT_DOCUMENTS]
        ]

    @cached_property
    def _held_out_docnos(self) -> frozenset[str]:
        order = sorted(
            self._usable_docnos, key=lambda docno: (make_item_rng(self.seed, "held", docno).random_bits(), docno)
        )
        return frozenset(order[: min(MAX_HELD_OUT_DOCUMENTS, len(order) // 10)])

    @cached_property
    def _statistics(self) -> tuple[Counter[str], Counter[str], dict[str, int]]:
        """The document frequency and count of each word, and the length of each document, from one pass."""
        df: Counter[str] = Counter()
        tf: Counter[str] = Counter()
        lengths: dict[str, int] = {}
        for docno, doc in self.corpus.items():
            words = self.tokenizer(doc.text)
            df.update(set(words))
            tf.update(words)
            lengths[docno] = len(words)
        if not tf:
            raise BadInput("the collection has no words to learn from")
        return df, tf, lengths

    @cached_property
    def _usable_docnos(self) -> list[str]:
        lengths = {docno: size for docno, size in self._statistics[2].items() if size}
        draws = {
            docno: make_item_rng(self.seed, "short", docno).random()
            for docno, size in lengths.items()
            if size < LONG_DOCUMENT_WORDS
        }
        taken = [docno for docno in sorted(lengths) if docno not in draws or draws[docno] < SHORT_DOCUMENT_SHARE]
        return taken if len(taken) > 1 else sorted(lengths)

    @cached_property
    def _background(self) -> tuple[list[str], Floats, dict[str, float], dict[str, float], float]:
        """The words, their cumulated document frequency shares, the shares, their sampling rates, and μ."""
        df, tf, lengths = self._statistics
        words = sorted(df)
        shares = np.array([df[word] for word in words]) / df.total()
        rare = {word: SUBSAMPLING_THRESHOLD * tf.total() / count for word, count in tf.items()}
        kept = {word: min(1.0, rare[word] ** 0.5 + rare[word]) for word in words}
        share = dict(zip(words, shares.tolist(), strict=True))
        return words, np.cumsum(shares), share, kept, tf.total() / len(lengths)

    def estimate_language_model(self, text: str, rng: np.random.Generator) -> dict[str, float]:
        """Return p(w | d) of the words of a document and of some other words of the collection."""
        words, cumulated, share, _, mu = self._background
        counts = Counter(self.tokenizer(text))
        size = counts.total()
        more = CANDIDATE_WORDS - len(counts) if len(counts) < CANDIDATE_WORDS else len(counts) + 100
        drawn = np.minimum(np.searchsorted(cumulated, rng.random(more), side="right"), len(words) - 1)
        others = dict.fromkeys(words[i] for i in drawn.tolist())
        return {word: (counts[word] + mu * share.get(word, 0.0)) / (size + mu) for word in sorted({*counts, *others})}

    def draw_set_pairs(self, text: str, rng: np.random.Generator) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Return ten pairs of sets of the same size, the set with the higher likelihood first."""
        language, kept = self.estimate_language_model(text, rng), self._background[3]
        words = list(language)
        weights = np.array([language[word] * kept.get(word, 1.0) for word in words])  # with subsampling
        pairs: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
        while len(pairs) < PAIRS_DRAWN_PER_DOCUMENT:
            if size := int(rng.poisson(MEAN_WORDS_PER_SET)):
                for _ in range(10):
                    drawn = rng.choice(len(words), (2, size), p=weights / weights.sum())
                    first, second = (tuple(words[i] for i in row) for row in drawn.tolist())
                    likely = [fsum(log(language[word]) for word in some) for some in (first, second)]
                    if likely[0] != likely[1]:
                        break  # equally likely sets have no better one; after ten draws they are accepted
                pairs.append((first, second) if likely[0] > likely[1] else (second, first))
        return pairs

    def draw(self, number: int, turn: int) -> Sample:
        return self._make_sample(
            self.docnos[number // PAIRS_USED_PER_DOCUMENT], number % PAIRS_USED_PER_DOCUMENT, str(turn)
        )

    def _make_sample(self, docno: str, number: int, turn: str) -> Sample:
        text = self.corpus[docno].text
        pairs = self.draw_set_pairs(text, make_numpy_rng(self.seed, "sets", docno, turn))
        used = make_item_rng(self.seed, "used", docno, turn).permutation(range(PAIRS_DRAWN_PER_DOCUMENT))[number]
        better, worse = (" ".join(some) for some in pairs[used])
        rng = make_item_rng(self.seed, "order", docno, turn, number)
        first = rng.randbelow(2) if self.control else 0
        return Sample(f"{docno} {turn} {number}", text, (better, worse), ((1.0, 0.0), (0.0, 1.0))[first])
