"""Training lists of nets: texts with labels, drawn again in each pass over the queries.

A list is a function of seed, query and pass, so an interrupted training resumes with the same lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from shaketable.core.documents import Collection, Corpus, Doc, Run, Slate, rank_docnos
from shaketable.core.errors import BadInput
from shaketable.core.protocols import Ranker, Retriever
from shaketable.core.seeding import ItemRandom, make_item_rng
from shaketable.nlp.sentences import split_sentences
from shaketable.scoring.validation import call_ranker
from shaketable.training.baselines import BaselineScorer
from shaketable.training.ndcg import list_ndcg


@dataclass(frozen=True)
class CleanAttackedPair:
    """A list before and after an attack: `attacked[i]` is `clean[i]` as the attack left it, changed or not."""

    query: str
    clean: tuple[str, ...]
    attacked: tuple[str, ...]


@dataclass(frozen=True)
class Sample:
    """A query and labelled texts: the higher the label, the better. `name` is for messages.

    `attack_pair` is an additional list without labels, of this query or of another one.
    """

    name: str
    query: str
    texts: tuple[str, ...]
    labels: tuple[float, ...]
    query_variant: str | None = None
    """A variant of the query, or the query itself; None if the source of the list draws no variants."""
    baseline_ndcg: tuple[float, ...] = ()
    """The NDCG of this list in the order of each baseline (`BaselineLists`)."""
    attack_pair: CleanAttackedPair | None = None


class SampleSource(Protocol):
    """Numbered training lists; each pass may draw other texts."""

    def __len__(self) -> int: ...
    def draw(self, number: int, turn: int) -> Sample: ...


@dataclass(frozen=True, eq=False)
class JudgedLists:
    """A list for each judged query: a relevant text, one of a lower grade, a random one, the others from candidates.

    Candidates of the first stage without a judgement count as not relevant. A query without a relevant text, or without
    any other text, has no list.
    """

    collection: Collection
    qids: Sequence[str]
    candidates: Run
    size: int = 7
    seed: int = 0
    _pools: dict[str, tuple[dict[str, int], list[str]]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.usable_qids)

    @cached_property
    def usable_qids(self) -> list[str]:
        """The queries with a relevant document."""
        docs, qrels = self.collection.docs, self.collection.qrels
        found = [qid for qid in self.qids if any(g > 0 and d in docs for d, g in qrels.get(qid, {}).items())]
        if not found or len(docs) < 2:
            raise BadInput(f"collection {self.collection.name}: no training query has a relevant document")
        return found

    @cached_property
    def _docnos(self) -> list[str]:
        return sorted(self.collection.docs)

    def draw(self, number: int, turn: int) -> Sample:
        qid = self.usable_qids[number]
        docs, draws = self.collection.docs, make_item_rng(self.seed, "list", qid, turn)
        if qid not in self._pools:
            self._pools[qid] = self._build_pool(qid)
        grades, candidates = self._pools[qid]
        first = draws.choice([docno for docno, grade in grades.items() if grade > 0])
        below = [docno for docno, grade in grades.items() if grade < grades[first]]
        found = [docno for docno in candidates if grades.get(docno, 0) < grades[first]]
        chosen = dict.fromkeys([first, *draws.permutation(below)[:1]])
        for docno in draws.permutation(found):
            if len(chosen) >= self.size - 1:
                break
            chosen.setdefault(docno)
        self._fill(chosen, grades, grades[first], draws)
        order = draws.permutation(list(chosen))
        return Sample(
            qid,
            self.collection.queries[qid].text,
            tuple(docs[docno].text for docno in order),
            tuple(float(grades.get(docno, 0)) for docno in order),
        )

    def _build_pool(self, qid: str) -> tuple[dict[str, int], list[str]]:
        """Return the grades and candidates of a query that are documents of the collection, by docno."""
        docs = self.collection.docs
        grades = {docno: max(0, grade) for docno, grade in sorted(self.collection.qrels[qid].items()) if docno in docs}
        return grades, [docno for docno in sorted(self.candidates.get(qid, {})) if docno in docs]

    def _fill(self, chosen: dict[str, None], grades: Mapping[str, int], best: int, rng: ItemRandom) -> None:
        """Add random documents until the list is long enough; in a very small collection it may stay shorter."""
        for _ in range(20 * self.size):
            if len(chosen) >= self.size:
                return
            docno = rng.choice(self._docnos)
            if grades.get(docno, 0) < best:
                chosen.setdefault(docno)


@dataclass(frozen=True, eq=False)
class ShuffledLabels:
    """The lists of another source with shuffled labels."""

    source: SampleSource
    seed: int = 0

    def __len__(self) -> int:
        return len(self.source)

    def draw(self, number: int, turn: int) -> Sample:
        sample = self.source.draw(number, turn)
        labels = make_item_rng(self.seed, "shuffled labels", sample.name, turn).permutation(sample.labels)
        return replace(sample, labels=tuple(labels))


@dataclass(frozen=True, eq=False)
class TeacherLists:
    """Lists that a teacher labelled with its scores; each pass takes some texts of a list."""

    lists: Sequence[Sample]
    size: int = 7
    seed: int = 0

    def __len__(self) -> int:
        return len(self.lists)

    def draw(self, number: int, turn: int) -> Sample:
        sample = self.lists[number]
        rng = make_item_rng(self.seed, "taught", sample.name, turn)
        # always keep the teacher's best text: margins to it say more than margins between two bad texts
        best = max(range(len(sample.labels)), key=sample.labels.__getitem__)
        others = rng.permutation([i for i in range(len(sample.labels)) if i != best])[: self.size - 1]
        taken = rng.permutation([best, *others])
        return replace(
            sample, texts=tuple(sample.texts[i] for i in taken), labels=tuple(sample.labels[i] for i in taken)
        )


@dataclass(frozen=True, eq=False)
class OrderedLists:
    """Lists with a known order and no scores; each pass takes some texts of a list.

    One of the first `top` texts has the label 1, the others, from below, have 0. With `pairs`, all texts are among the
    first `top` and labelled by their ranks. A list that is not longer than `top` is split at its middle.
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
        rng = make_item_rng(self.seed, "ordered", sample.name, turn)
        count = len(sample.texts)
        if self.pairs:
            labels = {rank: float(-rank) for rank in rng.permutation(range(min(self.top, count)))[: self.size]}
        else:
            top = self.top if self.top < count else count // 2
            below = rng.permutation(range(top, count))[: self.size - 1]
            labels = {rng.randbelow(top): 1.0} | dict.fromkeys(below, 0.0)
        taken = rng.permutation(list(labels))
        return replace(sample, texts=tuple(sample.texts[i] for i in taken), labels=tuple(labels[i] for i in taken))


@dataclass(frozen=True, eq=False)
class BaselineLists:
    """The lists of another source, each with the NDCG of baselines on exactly its texts.

    A list has only some of the candidates, so the NDCG of a baseline on all candidates of the query does not apply.
    """

    source: SampleSource
    baselines: Sequence[BaselineScorer]

    def __len__(self) -> int:
        return len(self.source)

    def draw(self, number: int, turn: int) -> Sample:
        sample = self.source.draw(number, turn)
        slate = Slate(sample.query, tuple(map(Doc, sample.texts)))
        values = (list_ndcg(sample.labels, rival(sample.name, slate)) for rival in self.baselines)
        return replace(sample, baseline_ndcg=tuple(values))


def build_candidate_lists(collection: Collection, qids: Sequence[str], candidates: Run) -> list[Sample]:
    """Return the candidates of queries, best first, for a teacher to label."""
    return [
        Sample(qid, collection.queries[qid].text, texts, (0.0,) * len(texts))
        for qid in qids
        if (texts := tuple(collection.docs[docno].text for docno in rank_docnos(candidates.get(qid, {}))))
    ]


def build_sentence_lists(corpus: Corpus, retriever: Ranker, count: int, depth: int, seed: int) -> list[Sample]:
    """Return lists with sentences as queries: the rest of the sentence's passage, and passages found for the sentence.

    Lee, Chang, Toutanova. Latent retrieval for weakly supervised open domain question answering. ACL 2019.
    """
    cut: dict[str, tuple[str, str]] = {}
    for docno in make_item_rng(seed, "sentences").permutation(sorted(corpus)):
        if len(cut) == count:
            break
        sentences = split_sentences(corpus[docno].text)
        fitting = [i for i, sentence in enumerate(sentences) if 4 <= len(sentence.split()) <= 30]
        if len(sentences) > 1 and fitting:
            at = make_item_rng(seed, "sentence", docno).choice(fitting)
            cut[docno] = sentences[at], " ".join(sentences[:at] + sentences[at + 1 :])
    found = retrieve_by_name(retriever, {docno: sentence for docno, (sentence, _) in cut.items()}, depth)
    lists = []
    for docno, (sentence, rest) in cut.items():
        # leave out the passage itself: it contains the sentence
        texts = (rest, *(corpus[other].text for other in rank_docnos(found[docno]) if other != docno))
        lists.append(Sample(docno, sentence, texts, (0.0,) * len(texts)))
    return lists


def label_with_teacher(teacher: Ranker, lists: Sequence[Sample]) -> list[Sample]:
    """Return the lists of two or more texts, labelled with a teacher's scores.

    Scores are divided by their spread within lists, so that margins are about 1 for any teacher.
    """
    lists = [sample for sample in lists if len(sample.texts) > 1]
    if not lists:
        raise BadInput("there are no training lists with at least two texts: the search found nothing for the queries")
    slates = [Slate(sample.query, tuple(map(Doc, sample.texts))) for sample in lists]
    answers = call_ranker(teacher, teacher.name, slates)
    spread = float(np.sqrt(np.mean([scores.var() for scores in answers]))) or 1.0
    return [
        replace(sample, labels=tuple((scores / spread).tolist())) for sample, scores in zip(lists, answers, strict=True)
    ]


def retrieve_by_name(retriever: Ranker, queries: Mapping[str, str], depth: int) -> Run:
    """Search for query texts; return the runs by the names of the queries."""
    if not isinstance(retriever, Retriever):
        raise BadInput(f"{retriever.name} cannot search a collection, so it cannot find training texts; use bm25")
    return dict(zip(queries, retriever.search(list(queries.values()), depth), strict=True))
