"""The plan of a training: where the lists to learn from come from, what is made small, and what not to lose to.

A plan is a value with a text form. Whoever wants a ranker to learn something else, a defence against attacks for
example, brings another plan; learners and the training loop stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from shaketable.chance import draws_for, rng_for
from shaketable.data.letor import Letor
from shaketable.data.splits import held_out
from shaketable.edit.vary import refuse_documents_edit
from shaketable.errors import BadInput, check
from shaketable.files import digests
from shaketable.learners.baselines import Baselines, Rival, read_baselines, read_rivals
from shaketable.learners.samples import (
    Judged,
    Ordered,
    Shuffled,
    Source,
    Taught,
    Varied,
    candidate_lists,
    sentence_lists,
    teach,
)
from shaketable.registry import EDITS, RANKERS, Catalogue, files_named
from shaketable.score.road import retrieve
from shaketable.types import Collection, Qrels, Ranker, Retriever, Run, fingerprint, ranking

FIRST_STAGE = "bm25"
"""Who finds candidates where a collection brings none."""


@dataclass(frozen=True)
class Lessons:
    """All that lists are drawn from: the queries to learn from and to validate on, and their candidates."""

    collection: Collection
    train: list[str]
    valid: list[str]
    candidates: Run
    depth: int
    seed: int
    first_stage: str = FIRST_STAGE

    @classmethod
    def prepare(
        cls,
        collection: Collection,
        train: Sequence[str],
        valid: Sequence[str],
        candidates: Run | None,
        depth: int,
        seed: int,
        first_stage: str = FIRST_STAGE,
        hold_out: bool = True,
    ) -> Lessons:
        """Check the queries; with none to validate on, a fifth of those to learn from is held out if that is wanted.

        Candidates are those given, else the collection's, else what the first stage finds.
        """
        if unknown := [qid for qid in (*train, *valid) if qid not in collection.queries]:
            raise BadInput(f"collection {collection.name} has no query {unknown[0]!r}")
        if both := set(train) & set(valid):
            raise BadInput(f"query {min(both)!r} is both to learn from and to validate on")
        if hold_out:
            train, valid = divided(collection, train, valid, seed)
        qids = [*train, *valid]
        if candidates is None:
            candidates = collection.candidates or _found(collection, first_stage, qids, depth)
        cut = {
            qid: {d: candidates[qid][d] for d in ranking(candidates[qid])[:depth]} for qid in qids if qid in candidates
        }
        return cls(collection, list(train), sorted(valid), cut, depth, seed, first_stage)

    @property
    def judgements(self) -> Qrels:
        """Those of the queries to validate on."""
        qrels = self.collection.qrels
        return {qid: qrels[qid] for qid in self.valid if qrels.get(qid)}


def divided(
    collection: Collection, train: Sequence[str], valid: Sequence[str], seed: int
) -> tuple[Sequence[str], Sequence[str]]:
    """The queries to learn from and to validate on; with none to validate on, a fifth of the others is held out."""
    if valid:
        return train, valid
    judged = [qid for qid in train if collection.qrels.get(qid)] or list(train)
    valid = held_out(judged, seed)[1]
    return [qid for qid in train if qid not in set(valid)], valid


def _found(collection: Collection, finder: str, qids: Sequence[str], depth: int) -> Run:
    ranker = RANKERS.build(finder).open(collection)
    if not isinstance(ranker, Retriever):
        raise BadInput(f"{finder} cannot search a collection, so it cannot find texts to learn from; bm25 can")
    texts = [collection.queries[qid].text for qid in qids]
    return {qid: one.head(depth) for qid, one in zip(qids, retrieve(ranker, finder, texts, depth), strict=True)}


@runtime_checkable
class Lists(Protocol):
    """Where lists come from: for nets as a source of lists of texts, for learners from features as labels of rows.

    Lists that are read from files may say so in an attribute `files`: what is learned then depends on what is in them.
    """

    def source(self, lessons: Lessons, size: int) -> tuple[Source, Qrels]:
        """Lists of `size` texts to learn from, and judgements to validate by."""
        ...

    def relabelled(self, rows: Letor, seed: int) -> Letor:
        """Judged rows, with the labels to learn from."""
        ...


@dataclass(frozen=True)
class Judgements:
    """Lists from people's judgements: a relevant text among candidates."""

    def source(self, lessons: Lessons, size: int) -> tuple[Source, Qrels]:
        source = Judged(lessons.collection, lessons.train, lessons.candidates, size, lessons.seed)
        if len(source) and not lessons.judgements:
            raise BadInput(f"collection {lessons.collection.name}: no query of those to validate on has judgements")
        return source, lessons.judgements

    def relabelled(self, rows: Letor, seed: int) -> Letor:
        return rows


@dataclass(frozen=True)
class Teacher:
    """Lists that another ranker labels with its scores, of queries and of `sentences` taken out of passages."""

    ranker: str
    sentences: int = 0

    def source(self, lessons: Lessons, size: int) -> tuple[Source, Qrels]:
        collection = lessons.collection
        teacher = RANKERS.build(self.ranker).open(collection)
        lists = candidate_lists(collection, lessons.train, lessons.candidates)
        if self.sentences:
            finder = RANKERS.build(lessons.first_stage).open(collection)
            lists += sentence_lists(collection.docs, finder, self.sentences, lessons.depth, lessons.seed)
        taught = Taught(teach(teacher, lists), size, lessons.seed)
        return taught, lessons.judgements or _as_taught(teacher, lessons)

    def relabelled(self, rows: Letor, seed: int) -> Letor:
        raise BadInput("learners from features take whole numbers as labels, so a teacher's scores are for nets only")


@dataclass(frozen=True)
class Imitated:
    """Lists that the order of the candidates labels, as one has them who sees where a ranker puts texts, and no score.

    A text of the first `top` is to beat texts from below; with `pairs`, each of the first `top` is to beat all that
    stand below it among them. What counts as learned is the order of the first `top`.

    Wu et al. PRADA: practical black-box adversarial attacks against neural ranking models. TOIS 2022
    (pseudo-relevance); pairs within the first 29 are those of Chen et al. IDEM. ACL 2023.
    """

    top: int = 10
    pairs: bool = False

    def __post_init__(self) -> None:
        check("imitated", self.top >= 1, "top", "1 or more", self.top)

    def source(self, lessons: Lessons, size: int) -> tuple[Source, Qrels]:
        lists = candidate_lists(lessons.collection, lessons.train, lessons.candidates)
        ordered = Ordered(
            [sample for sample in lists if len(sample.texts) > 1], self.top, self.pairs, size, lessons.seed
        )
        if not len(ordered):
            raise BadInput("there is no list of two documents whose order could be learned")
        orders = {
            qid: ranking(lessons.candidates[qid])[: self.top] for qid in lessons.valid if qid in lessons.candidates
        }
        return ordered, {qid: {docno: len(order) - i for i, docno in enumerate(order)} for qid, order in orders.items()}

    def relabelled(self, rows: Letor, seed: int) -> Letor:
        raise BadInput("learners from features take judged rows, so the order of a list is for nets only")


@dataclass(frozen=True)
class Control:
    """The lists of another source with their labels dealt out at random: who does no better has learned nothing."""

    lists: Lists = field(default_factory=Judgements)

    @property
    def files(self) -> tuple[Path, ...]:
        return files_read(self.lists)

    def source(self, lessons: Lessons, size: int) -> tuple[Source, Qrels]:
        source, qrels = self.lists.source(lessons, size)
        dealt = {}
        for qid, grades in qrels.items():
            known = sorted(lessons.candidates.get(qid, {}).keys() | grades)
            docnos = draws_for(lessons.seed, "shuffled judgements", qid).shuffled(known)
            dealt[qid] = dict(zip(docnos, grades.values(), strict=False))
        return Shuffled(source, lessons.seed), dealt

    def relabelled(self, rows: Letor, seed: int) -> Letor:
        rows = self.lists.relabelled(rows, seed)
        labels = rows.labels.copy()
        for qid, start, end in zip(rows.qids, rows.starts[:-1], rows.starts[1:], strict=True):
            labels[start:end] = labels[start:end][rng_for(seed, "shuffled labels", qid).permutation(end - start)]
        return replace(rows, labels=np.asarray(labels))


TYPOS = ("neighb_char_swap", "random_char_sub", "qwerty_char_sub", "drop_letter", "double_letter")
"""The slips of the keyboard that Zhuang and Zuccon train with: letters swapped, replaced, left out and added."""


@dataclass(frozen=True)
class VariedQueries:
    """The lists of another source, a share of them with another way to write the query (`samples.Varied`).

    edits     who writes the query anew, from `registry.EDITS`: one of them for each list, drawn in each pass
    share     of the lists
    instead   the variant takes the place of the query, as in data augmentation; else it stands beside the query, for
              an objective such as self_teaching

    Zhuang, Zuccon. Dealing with typos for BERT-based passage retrieval and ranking. EMNLP 2021 (instead, half of all
    queries). The same. CharacterBERT and self-teaching for improving the robustness of dense retrievers on queries with
    typos. SIGIR 2022.
    """

    lists: Lists = field(default_factory=Judgements)
    edits: tuple[str, ...] = TYPOS
    share: float = 0.5
    instead: bool = False

    def __post_init__(self) -> None:
        check("varied_queries", bool(self.edits), "edits", "one edit or more", self.edits)
        check("varied_queries", 0 < self.share <= 1, "share", "above 0 and not above 1", self.share)
        for edit in map(EDITS.build, self.edits):
            refuse_documents_edit(edit)

    def source(self, lessons: Lessons, size: int) -> tuple[Source, Qrels]:
        source, qrels = self.lists.source(lessons, size)
        return Varied(source, list(map(EDITS.build, self.edits)), self.share, self.instead, lessons.seed), qrels

    def relabelled(self, rows: Letor, seed: int) -> Letor:
        raise BadInput("the rows of learners from features are computed before, so varied queries are for nets only")


def files_read(lists: Lists) -> tuple[Path, ...]:
    """The files that lists are read from; those of most are none."""
    return tuple(getattr(lists, "files", ()))


def _as_taught(teacher: Ranker, lessons: Lessons) -> Qrels:
    """Where nobody judged, the candidate that the teacher likes best is the one to find."""
    qrels = {}
    for sample in teach(teacher, candidate_lists(lessons.collection, lessons.valid, lessons.candidates)):
        best = max(range(len(sample.labels)), key=sample.labels.__getitem__)
        qrels[sample.name] = {ranking(lessons.candidates[sample.name])[best]: 1}
    return qrels


LISTS = Catalogue(
    "source of lists",
    {
        "judgements": "shaketable.learners.plan:Judgements",
        "teacher": "shaketable.learners.plan:Teacher",
        "imitated": "shaketable.learners.plan:Imitated",
        "control": "shaketable.learners.plan:Control",
        "varied_queries": "shaketable.learners.plan:VariedQueries",
        "noisy": "shaketable.learners.noisy:Noisy",
        "augmented": "shaketable.learners.attacked:Augmented",
        "with_attacked": "shaketable.learners.attacked:WithAttacked",
        "beside_attacked": "shaketable.learners.attacked:BesideAttacked",
    },
)


@dataclass(frozen=True)
class Plan:
    """Where lists come from, what is made small ("" is the learner's own objective), and the baselines, by text.

    `about` is what the card of a model should tell of how the plan came to be, and no part of the plan.
    """

    lists: Lists = field(default_factory=Judgements)
    objective: str = ""
    baselines: tuple[str, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def systems(self, collection: Collection | None = None) -> Baselines | None:
        """The baselines, opened."""
        return read_baselines(self.baselines, collection)

    def rivals(self, collection: Collection) -> list[Rival]:
        """The baselines, opened for nets, which learn from lists of texts."""
        return read_rivals(self.baselines, collection)

    @property
    def spec(self) -> str:
        """The plan in one text."""
        return f"{LISTS.spec(self.lists)} {self.objective} {' '.join(self.baselines)}".strip()

    @property
    def fingerprint(self) -> str:
        """Names the plan and what is in the files that it speaks of."""
        texts = LISTS.spec(self.lists), *self.baselines
        named = [path for text in texts for path in files_named(text)]
        return fingerprint(self.spec, digests([*named, *files_read(self.lists)]))
