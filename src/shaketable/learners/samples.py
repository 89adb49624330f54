"""What nets learn from: lists of texts with labels, drawn anew in each pass over the queries.

A list is a function of seed, query and pass, so training may stop anywhere and go on as if it had not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from shaketable.chance import Draws, draws_for
from shaketable.edit.vary import prepared
from shaketable.errors import BadInput
from shaketable.learners.baselines import Rival
from shaketable.learners.ndcg import list_ndcg
from shaketable.score.road import ask
from shaketable.text.sentences import split_sentences
from shaketable.types import Collection, Context, Corpus, Doc, Edit, Ranker, Retriever, Run, Slate, ranking


@dataclass(frozen=True)
class Twins:
    """A list of a query as it is, and as an attack left it: `attacked[i]` is what became of `clean[i]`, or the same."""

    query: str
    clean: tuple[str, ...]
    attacked: tuple[str, ...]


@dataclass(frozen=True)
class Sample:
    """A query and texts whose order is known: the higher the label, the better. `name` is for messages.

    A list without labels may stand beside it, of this query or of another one, before and after an attack.
    """

    name: str
    query: str
    texts: tuple[str, ...]
    labels: tuple[float, ...]
    variant: str | None = None
    """Another way to write the query, the query itself where none was drawn; None where nobody drew (`Varied`)."""
    baselines: tuple[float, ...] = ()
    """NDCG of this list in the order of each baseline (`Compared`)."""
    beside: Twins | None = None


class Source(Protocol):
    """Lists to learn from, numbered; each pass over them may draw others."""

    def __len__(self) -> int: ...
    def draw(self, number: int, turn: int) -> Sample: ...


@dataclass(frozen=True, eq=False)
class Judged:
    """A list for each judged query: a relevant text, one of a lower grade, one at random, the others from candidates.

    Candidates, what the first stage finds, count as not relevant where nobody judged them. A query without a relevant
    text, or without any other, has no list.
    """

    collection: Collection
    qids: Sequence[str]
    candidates: Run
    size: int = 7
    seed: int = 0
    _pools: dict[str, tuple[dict[str, int], list[str]]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.usable)

    @cached_property
    def usable(self) -> list[str]:
        """The queries that there is something to learn from."""
        docs, qrels = self.collection.docs, self.collection.qrels
        found = [qid for qid in self.qids if any(g > 0 and d in docs for d, g in qrels.get(qid, {}).items())]
        if not found or len(docs) < 2:
            raise BadInput(
                f"collection {self.collection.name}: no query of those to learn from has a relevant document"
            )
        return found

    @cached_property
    def _docnos(self) -> list[str]:
        return sorted(self.collection.docs)

    def draw(self, number: int, turn: int) -> Sample:
        qid = self.usable[number]
        docs, draws = self.collection.docs, draws_for(self.seed, "list", qid, turn)
        if qid not in self._pools:
            self._pools[qid] = self._pool(qid)
        grades, candidates = self._pools[qid]
        first = draws.choice([docno for docno, grade in grades.items() if grade > 0])
        below = [docno for docno, grade in grades.items() if grade < grades[first]]
        found = [docno for docno in candidates if grades.get(docno, 0) < grades[first]]
        chosen = dict.fromkeys([first, *draws.shuffled(below)[:1]])
        for docno in draws.shuffled(found):
            if len(chosen) >= self.size - 1:
                break
            chosen.setdefault(docno)
        self._fill(chosen, grades, grades[first], draws)
        order = draws.shuffled(list(chosen))
        return Sample(
            qid,
            self.collection.queries[qid].text,
            tuple(docs[docno].text for docno in order),
            tuple(float(grades.get(docno, 0)) for docno in order),
        )

    def _pool(self, qid: str) -> tuple[dict[str, int], list[str]]:
        """Grades and candidates of a query, those that are documents, by docno."""
        docs = self.collection.docs
        grades = {docno: max(0, grade) for docno, grade in sorted(self.collection.qrels[qid].items()) if docno in docs}
        return grades, [docno for docno in sorted(self.candidates.get(qid, {})) if docno in docs]

    def _fill(self, chosen: dict[str, None], grades: Mapping[str, int], best: int, draws: Draws) -> None:
        """Random documents until the list is long enough; in a tiny collection it may stay shorter."""
        for _ in range(20 * self.size):
            if len(chosen) >= self.size:
                return
            docno = draws.choice(self._docnos)
            if grades.get(docno, 0) < best:
                chosen.setdefault(docno)


@dataclass(frozen=True, eq=False)
class Shuffled:
    """The lists of another source with their labels dealt out at random: what is learned from these is nothing."""

    source: Source
    seed: int = 0

    def __len__(self) -> int:
        return len(self.source)

    def draw(self, number: int, turn: int) -> Sample:
        sample = self.source.draw(number, turn)
        labels = draws_for(self.seed, "shuffled labels", sample.name, turn).shuffled(sample.labels)
        return replace(sample, labels=tuple(labels))


@dataclass(frozen=True, eq=False)
class Taught:
    """Lists that a teacher labelled with its scores; each pass takes some of a list's texts."""

    lists: Sequence[Sample]
    size: int = 7
    seed: int = 0

    def __len__(self) -> int:
        return len(self.lists)

    def draw(self, number: int, turn: int) -> Sample:
        sample = self.lists[number]
        draws = draws_for(self.seed, "taught", sample.name, turn)
        # the teacher's best is always there: a margin to it says more than one between two that it does not care for
        best = max(range(len(sample.labels)), key=sample.labels.__getitem__)
        others = draws.shuffled([i for i in range(len(sample.labels)) if i != best])[: self.size - 1]
        taken = draws.shuffled([best, *others])
        return replace(
            sample, texts=tuple(sample.texts[i] for i in taken), labels=tuple(sample.labels[i] for i in taken)
        )


@dataclass(frozen=True, eq=False)
class Ordered:
    """Lists whose order is all that is known of them; each pass takes some texts of a list.

    One text of the first `top` has the label 1, the others, from below, have 0. With `pairs`, all are of the first
    `top` and labelled by their places. A list that is no longer than `top` is cut at its middle.
    """

    lists: Sequence[Sample]
    top: int = 10
    pairs: bool = False
    size: int = 7
    seed: int = 0

    def __len__(self) -> int:
        return len(self.lists)

    def draw(self, number: int, turn: int) -> Sample:
        sample = self.lists[number]
        draws = draws_for(self.seed, "ordered", sample.name, turn)
        count = len(sample.texts)
        if self.pairs:
            labels = {place: float(-place) for place in draws.shuffled(range(min(self.top, count)))[: self.size]}
        else:
            top = self.top if self.top < count else count // 2
            below = draws.shuffled(range(top, count))[: self.size - 1]
            labels = {draws.below(top): 1.0} | dict.fromkeys(below, 0.0)
        taken = draws.shuffled(list(labels))
        return replace(sample, texts=tuple(sample.texts[i] for i in taken), labels=tuple(labels[i] for i in taken))


@dataclass(frozen=True, eq=False)
class Varied:
    """The lists of another source, a share of them with another way to write the query, which an edit makes.

    The variant stands beside the query, or takes its place (`instead`). Which edit it is, and what it changes, depends
    on the seed, the query and the pass: each pass sees other slips. Where no edit applies, the query stays as it is.
    """

    source: Source
    edits: Sequence[Edit]
    share: float = 0.5
    instead: bool = False
    seed: int = 0

    def __len__(self) -> int:
        return len(self.source)

    def draw(self, number: int, turn: int) -> Sample:
        sample = self.source.draw(number, turn)
        text = self._variant(sample, turn)
        return replace(sample, query=text) if self.instead else replace(sample, variant=text)

    def _variant(self, sample: Sample, turn: int) -> str:
        draws = draws_for(self.seed, "variant", sample.name, turn)
        if draws.random() < self.share:
            query = prepared(sample.query, lower=False)
            for edit in draws.shuffled(self.edits):
                if (changed := edit.apply(query, draws, Context(query))) is not None:
                    return changed
        return sample.query


@dataclass(frozen=True, eq=False)
class Compared:
    """The lists of another source, each with the NDCG that baselines reach on its very texts.

    A list is a few texts out of many, so what a baseline reaches on all candidates of the query is no measure of it.
    """

    source: Source
    rivals: Sequence[Rival]

    def __len__(self) -> int:
        return len(self.source)

    def draw(self, number: int, turn: int) -> Sample:
        sample = self.source.draw(number, turn)
        slate = Slate(sample.query, tuple(map(Doc, sample.texts)))
        values = (list_ndcg(sample.labels, rival(sample.name, slate)) for rival in self.rivals)
        return replace(sample, baselines=tuple(values))


def candidate_lists(collection: Collection, qids: Sequence[str], candidates: Run) -> list[Sample]:
    """The candidates of queries, best first, for a teacher to label."""
    return [
        Sample(qid, collection.queries[qid].text, texts, (0.0,) * len(texts))
        for qid in qids
        if (texts := tuple(collection.docs[docno].text for docno in ranking(candidates.get(qid, {}))))
    ]


def sentence_lists(corpus: Corpus, finder: Ranker, count: int, depth: int, seed: int) -> list[Sample]:
    """Sentences as queries: the rest of the passage that one was taken out of, and what is found for it elsewhere.

    Lee, Chang, Toutanova. Latent retrieval for weakly supervised open domain question answering. ACL 2019.
    """
    cut: dict[str, tuple[str, str]] = {}
    for docno in draws_for(seed, "sentences").shuffled(sorted(corpus)):
        if len(cut) == count:
            break
        sentences = split_sentences(corpus[docno].text)
        fitting = [i for i, sentence in enumerate(sentences) if 4 <= len(sentence.split()) <= 30]
        if len(sentences) > 1 and fitting:
            at = draws_for(seed, "sentence", docno).choice(fitting)
            cut[docno] = sentences[at], " ".join(sentences[:at] + sentences[at + 1 :])
    found = search(finder, {docno: sentence for docno, (sentence, _) in cut.items()}, depth)
    lists = []
    for docno, (sentence, rest) in cut.items():
        # the passage itself, sentence and all, would give the answer away
        texts = (rest, *(corpus[other].text for other in ranking(found[docno]) if other != docno))
        lists.append(Sample(docno, sentence, texts, (0.0,) * len(texts)))
    return lists


def teach(teacher: Ranker, lists: Sequence[Sample]) -> list[Sample]:
    """The lists of two texts and more, labelled with a teacher's scores.

    Scores are divided by their spread within lists, so that margins are of the order of 1 whoever teaches.
    """
    lists = [sample for sample in lists if len(sample.texts) > 1]
    if not lists:
        raise BadInput("there are no lists of two texts to teach with: nothing is found for any of the queries")
    slates = [Slate(sample.query, tuple(map(Doc, sample.texts))) for sample in lists]
    answers = ask(teacher, teacher.name, slates)
    spread = float(np.sqrt(np.mean([scores.var() for scores in answers]))) or 1.0
    return [
        replace(sample, labels=tuple((scores / spread).tolist())) for sample, scores in zip(lists, answers, strict=True)
    ]


def search(finder: Ranker, queries: Mapping[str, str], depth: int) -> Run:
    """What a retriever finds for query texts, by name."""
    if not isinstance(finder, Retriever):
        raise BadInput(f"{finder.name} cannot search a collection, so it cannot find texts to learn from; bm25 can")
    return dict(zip(queries, finder.search(list(queries.values()), depth), strict=True))
