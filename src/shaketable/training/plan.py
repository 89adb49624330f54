"""Training plans: the source of the training lists, the objective, and the baselines of risk-sensitive objectives.

A plan is a value with a text form. To train a ranker in another way, for example against attacks, pass another plan;
learners and the training loop do not change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from shaketable.core.documents import Collection, Qrels, Run, fingerprint, rank_docnos
from shaketable.core.errors import BadInput, check_parameter
from shaketable.core.protocols import Ranker, Retriever
from shaketable.core.registries import LIST_SOURCES, RANKERS
from shaketable.core.registry import find_named_files
from shaketable.core.seeding import make_item_rng, make_numpy_rng
from shaketable.datasets.letor import Letor
from shaketable.datasets.splits import split_held_out
from shaketable.files.checksums import digest_files
from shaketable.scoring.validation import call_retriever
from shaketable.training.baselines import Baselines, BaselineScorer, read_baselines, read_text_baselines
from shaketable.training.list_sources import (
    JudgedLists,
    OrderedLists,
    SampleSource,
    ShuffledLabels,
    TeacherLists,
    build_candidate_lists,
    build_sentence_lists,
    label_with_teacher,
)

DEFAULT_FIRST_STAGE = "bm25"
"""The first stage that finds candidates for a collection without candidates."""


@dataclass(frozen=True)
class TrainingData:
    """The data that lists are drawn from: training and validation queries, and their candidates."""

    collection: Collection
    train: list[str]
    valid: list[str]
    candidates: Run
    depth: int
    seed: int
    first_stage: str = DEFAULT_FIRST_STAGE

    @classmethod
    def prepare(
        cls,
        collection: Collection,
        train: Sequence[str],
        valid: Sequence[str],
        candidates: Run | None,
        depth: int,
        seed: int,
        first_stage: str = DEFAULT_FIRST_STAGE,
        hold_out: bool = True,
    ) -> TrainingData:
        """Check the queries and return the data; without `valid`, `hold_out` takes a fifth of `train` for it.

        Candidates are the given ones, else those of the collection, else those of the first stage.
        """
        if unknown := [qid for qid in (*train, *valid) if qid not in collection.queries]:
            raise BadInput(f"collection {collection.name} has no query {unknown[0]!r}")
        if both := set(train) & set(valid):
            raise BadInput(f"query {min(both)!r} is in both the training and the validation queries")
        if hold_out:
            train, valid = split_train_valid(collection, train, valid, seed)
        qids = [*train, *valid]
        if candidates is None:
            candidates = collection.candidates or _retrieve_candidates(collection, first_stage, qids, depth)
        cut = {
            qid: {d: candidates[qid][d] for d in rank_docnos(candidates[qid])[:depth]}
            for qid in qids
            if qid in candidates
        }
        return cls(collection, list(train), sorted(valid), cut, depth, seed, first_stage)

    @property
    def valid_qrels(self) -> Qrels:
        """The judgements of the validation queries."""
        qrels = self.collection.qrels
        return {qid: qrels[qid] for qid in self.valid if qrels.get(qid)}


def split_train_valid(
    collection: Collection, train: Sequence[str], valid: Sequence[str], seed: int
) -> tuple[Sequence[str], Sequence[str]]:
    """Return training and validation queries; without validation queries, a fifth of the others is held out."""
    if valid:
        return train, valid
    judged = [qid for qid in train if collection.qrels.get(qid)] or list(train)
    valid = split_held_out(judged, seed)[1]
    return [qid for qid in train if qid not in set(valid)], valid


def _retrieve_candidates(collection: Collection, first_stage: str, qids: Sequence[str], depth: int) -> Run:
    ranker = RANKERS.build(first_stage).open(collection)
    if not isinstance(ranker, Retriever):
        raise BadInput(f"{first_stage} cannot search a collection, so it cannot find training texts; use bm25")
    texts = [collection.queries[qid].text for qid in qids]
    return {
        qid: one.head(depth) for qid, one in zip(qids, call_retriever(ranker, first_stage, texts, depth), strict=True)
    }


@runtime_checkable
class ListSource(Protocol):
    """A source of training lists: lists of texts for nets, labelled feature rows for feature learners.

    A source that reads files names them in an optional attribute `files`: the trained model depends on their content.
    """

    def open_samples(self, training_data: TrainingData, size: int) -> tuple[SampleSource, Qrels]:
        """Return training lists of `size` texts, and the judgements for validation."""
        ...

    def relabel(self, rows: Letor, seed: int) -> Letor:
        """Return the judged rows with the labels to learn from."""
        ...


class TextListSource:
    """Base class of list sources that feature learners cannot use."""

    text_only_reason: ClassVar[str] = (
        "learners from features need judged rows, so attacked or changed texts are for neural nets only"
    )

    def relabel(self, rows: Letor, seed: int) -> Letor:
        raise BadInput(self.text_only_reason)


@dataclass(frozen=True)
class JudgementSource:
    """Lists from relevance judgements: a relevant text among candidates."""

    def open_samples(self, training_data: TrainingData, size: int) -> tuple[SampleSource, Qrels]:
        source = JudgedLists(
            training_data.collection, training_data.train, training_data.candidates, size, training_data.seed
        )
        if len(source) and not training_data.valid_qrels:
            raise BadInput(f"collection {training_data.collection.name}: no validation query has judgements")
        return source, training_data.valid_qrels

    def relabel(self, rows: Letor, seed: int) -> Letor:
        return rows


@dataclass(frozen=True)
class TeacherSource(TextListSource):
    """Lists that another ranker labels with its scores: lists of queries, and of `sentences` taken out of passages."""

    text_only_reason: ClassVar[str] = (
        "learners from features need whole numbers as labels, so a teacher's scores are for neural nets only"
    )

    ranker: str = field(metadata={"says": "The ranker whose scores are the labels.", "example": "dense"})
    sentences: int = 0

    def open_samples(self, training_data: TrainingData, size: int) -> tuple[SampleSource, Qrels]:
        collection = training_data.collection
        teacher = RANKERS.build(self.ranker).open(collection)
        lists = build_candidate_lists(collection, training_data.train, training_data.candidates)
        if self.sentences:
            finder = RANKERS.build(training_data.first_stage).open(collection)
            lists += build_sentence_lists(
                collection.docs, finder, self.sentences, training_data.depth, training_data.seed
            )
        taught = TeacherLists(label_with_teacher(teacher, lists), size, training_data.seed)
        return taught, training_data.valid_qrels or _judge_by_teacher(teacher, training_data)


@dataclass(frozen=True)
class ImitationSource(TextListSource):
    """Lists labelled by the order of the candidates, for an attacker that sees the ranks of a ranker but no scores.

    A text of the first `top` should rank above texts from below; with `pairs`, each of the first `top` should rank
    above those of the first `top` below it. Validation measures the order of the first `top`.

    Wu et al. PRADA: practical black-box adversarial attacks against neural ranking models. TOIS 2022
    (pseudo-relevance); pairs within the first 29 are those of Chen et al. IDEM. ACL 2023.
    """

    text_only_reason: ClassVar[str] = (
        "learners from features need judged rows, so the order of a list is for neural nets only"
    )

    top: int = 10
    pairs: bool = False

    def __post_init__(self) -> None:
        check_parameter("imitated", self.top >= 1, "top", "1 or more", self.top)

    def open_samples(self, training_data: TrainingData, size: int) -> tuple[SampleSource, Qrels]:
        lists = build_candidate_lists(training_data.collection, training_data.train, training_data.candidates)
        ordered = OrderedLists(
            [sample for sample in lists if len(sample.texts) > 1], self.top, self.pairs, size, training_data.seed
        )
        if not len(ordered):
            raise BadInput("there is no list of two documents to learn an order from")
        orders = {
            qid: rank_docnos(training_data.candidates[qid])[: self.top]
            for qid in training_data.valid
            if qid in training_data.candidates
        }
        return ordered, {qid: {docno: len(order) - i for i, docno in enumerate(order)} for qid, order in orders.items()}


@dataclass(frozen=True)
class ShuffledLabelSource:
    """The lists of another source with shuffled labels: a control from which nothing can be learned."""

    lists: ListSource = field(default_factory=JudgementSource)

    @property
    def files(self) -> tuple[Path, ...]:
        return list_files(self.lists)

    def open_samples(self, training_data: TrainingData, size: int) -> tuple[SampleSource, Qrels]:
        source, qrels = self.lists.open_samples(training_data, size)
        dealt = {}
        for qid, grades in qrels.items():
            known = sorted(training_data.candidates.get(qid, {}).keys() | grades)
            docnos = make_item_rng(training_data.seed, "shuffled judgements", qid).permutation(known)
            dealt[qid] = dict(zip(docnos, grades.values(), strict=False))
        return ShuffledLabels(source, training_data.seed), dealt

    def relabel(self, rows: Letor, seed: int) -> Letor:
        rows = self.lists.relabel(rows, seed)
        labels = rows.labels.copy()
        for qid, start, end in zip(rows.qids, rows.starts[:-1], rows.starts[1:], strict=True):
            labels[start:end] = labels[start:end][make_numpy_rng(seed, "shuffled labels", qid).permutation(end - start)]
        return replace(rows, labels=np.asarray(labels))


def list_files(lists: ListSource) -> tuple[Path, ...]:
    """Return the files that a source reads; most sources read none."""
    return tuple(getattr(lists, "files", ()))


def _judge_by_teacher(teacher: Ranker, training_data: TrainingData) -> Qrels:
    """Return judgements for unjudged queries: the best candidate of the teacher is relevant."""
    qrels = {}
    for sample in label_with_teacher(
        teacher, build_candidate_lists(training_data.collection, training_data.valid, training_data.candidates)
    ):
        best = max(range(len(sample.labels)), key=sample.labels.__getitem__)
        qrels[sample.name] = {rank_docnos(training_data.candidates[sample.name])[best]: 1}
    return qrels


@dataclass(frozen=True)
class TrainingPlan:
    """The training lists, the objective and the baselines of a model.

    Parameters
    ----------
    lists
        The source of the training lists.
    objective
        The spec of the objective, such as "margin_mse"; empty for the learner's own.
    baselines
        The specs of the baselines that risk-sensitive objectives compare with.
    card_extras
        Notes on the origin of the plan for the card of the model. They are not part of the plan: two plans that differ
        only in these notes are equal.
    """

    lists: ListSource = field(default_factory=JudgementSource)
    objective: str = ""
    baselines: tuple[str, ...] = ()
    card_extras: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def open_baselines(self, collection: Collection | None = None) -> Baselines | None:
        """Open the baselines."""
        return read_baselines(self.baselines, collection)

    def open_text_baselines(self, collection: Collection) -> list[BaselineScorer]:
        """Open the baselines for nets, which learn from lists of texts."""
        return read_text_baselines(self.baselines, collection)

    @property
    def spec(self) -> str:
        """The plan as one text."""
        return f"{LIST_SOURCES.spec(self.lists)} {self.objective} {' '.join(self.baselines)}".strip()

    @property
    def fingerprint(self) -> str:
        """A name for the plan and the content of the files that it names."""
        texts = LIST_SOURCES.spec(self.lists), *self.baselines
        named = [path for text in texts for path in find_named_files(text)]
        return fingerprint(self.spec, digest_files([*named, *list_files(self.lists)]))
