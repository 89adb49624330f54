"""The document-form task: changes of documents that keep their meaning and may change their ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from shaketable.core.documents import MAX_CHANGED_CHARS, Doc, Scores, Slate, rank_docnos
from shaketable.core.errors import NotApplicable, check_parameter
from shaketable.core.results import Result
from shaketable.core.seeding import make_item_rng
from shaketable.measures.facets import DOCUMENT_FORM
from shaketable.tasks._form_tables import (
    TOP_RANKS,
    FormOutcome,
    RankerOutcomes,
    build_form_findings,
    build_form_notes,
    build_form_table,
    build_outcome_table,
    select_form_examples,
)
from shaketable.transforms.document_form import FORM_CHANGES, FormChange

if TYPE_CHECKING:
    from shaketable.experiment import Experiment

LIST_LENGTH = 30
"""The ranks of the changed documents: the upper one is among the first three, the lower one is below the first ten."""
BEST_RANKS = 3


@dataclass(frozen=True)
class _FormList:
    """The first documents of a ranker's list in its order.

    `upper` and `lower` are the positions of documents whose form may be changed: of the first three documents, and of
    those from below the first ten. A change of form takes the first of each to which it applies. Documents of more than
    `MAX_CHANGED_CHARS` characters are in neither.
    """

    qid: str
    query: str
    docnos: tuple[str, ...]
    docs: tuple[Doc, ...]
    scores: Scores
    upper: tuple[int, ...]
    lower: tuple[int, ...]

    @property
    def long_documents(self) -> set[str]:
        """The ids of documents that are too long to change."""
        return {docno for docno, doc in zip(self.docnos, self.docs, strict=True) if _is_long(doc)}


@dataclass(frozen=True)
class _ChangedList:
    """A list with one or two of its documents changed by one change of form: position -> changed document."""

    source: _FormList
    change: FormChange
    changed: Mapping[int, Doc]


@dataclass(frozen=True)
class DocumentForm:
    """Effect of changes of a document that keep its meaning: case, accents, boilerplate, order, dates, length.

    queries           number of queries, drawn at random; 0 is all of them
    listwise_queries  number of these for rankers that must score a whole list for each change; 0 is all of them

    In each list, two documents are changed: one of the first three, a relevant one if possible, and a random one from
    below the first ten that is not known to be relevant. A changed document replaces the original. The first should
    stay among the first ten, and the second should stay below.
    """

    queries: int = 100
    listwise_queries: int = 25

    needs_judgements: ClassVar[bool] = False
    needs_scoring: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("queries", "listwise_queries"):
            value: int = getattr(self, name)
            check_parameter("document-form", value >= 0, name, "0 or more", value)

    def run(self, experiment: Experiment) -> Result:
        tested = [self._test_ranker(experiment, name) for name in experiment.scoring_rankers]
        found = [one for one in tested if one.outcomes]
        if not found:
            reason = f": {experiment.engine.failures[-1].reason}" if experiment.engine.failures else ""
            short = f" of at most {MAX_CHANGED_CHARS:,} characters" if any(one.long_documents for one in tested) else ""
            raise NotApplicable(
                f"no ranker has a list of more than {TOP_RANKS} documents{short} with different scores{reason}"
            )
        return Result(
            "document-form",
            "Does a change of a document that keeps its meaning change its rank?",
            {"form": build_form_table(found), "documents": build_outcome_table(found)},
            notes=tuple(build_form_notes(found)),
            findings=tuple(build_form_findings(found)),
            examples=tuple(select_form_examples(found)),
            brief=("form",),
        )

    def _test_ranker(self, experiment: Experiment, name: str) -> RankerOutcomes:
        """Change two documents of each list of a ranker, and return their ranks before and after."""
        traits = experiment.get_traits(name)
        count = self.queries if traits.pointwise else self._count_listwise()
        samples = {change: experiment.sample_queries(DOCUMENT_FORM, change.name) for change in FORM_CHANGES}
        sampled = [qid for qid in experiment.queries if any(qid in sample for sample in samples.values())]
        lists = list(_read_lists(experiment, name, sampled, count))
        long = [source.long_documents for source in lists]
        changed = [one for source in lists for one in _change_list(source) if source.qid in samples[one.change]]
        answers, pairs = _score_changed(experiment, name, changed, traits.pointwise)
        outcomes = [
            outcome
            for one, scores in zip(changed, answers, strict=True)
            if scores is not None
            for outcome in _compare_ranks(one, scores, traits.noise)
        ]
        return RankerOutcomes(name, tuple(outcomes), len(lists), pairs, len(set().union(*long)))

    def _count_listwise(self) -> int:
        counts = [count for count in (self.queries, self.listwise_queries) if count]
        return min(counts, default=0)


def _read_lists(experiment: Experiment, name: str, qids: Sequence[str], count: int) -> Iterator[_FormList]:
    """Yield the lists to change: the first documents of a ranker's run, scored again on their own."""
    run = experiment.get_run(name)
    drawn = sorted(
        (qid for qid in qids if len(run.get(qid, ())) > TOP_RANKS),
        key=lambda qid: make_item_rng(experiment.seed, "document form", qid).random_bits(),
    )
    top = {
        qid: {docno: run[qid][docno] for docno in rank_docnos(run[qid])[:LIST_LENGTH]} for qid in drawn[: count or None]
    }
    for qid, scores in experiment.rerank(name, experiment.texts, top).items():
        if len(set(scores.values())) > 1:
            yield _make_list(experiment, qid, scores)


def _is_long(doc: Doc) -> bool:
    return len(doc.text) > MAX_CHANGED_CHARS


def _make_list(experiment: Experiment, qid: str, scores: Mapping[str, float]) -> _FormList:
    order = rank_docnos(scores)
    grades = experiment.qrels.get(qid, {})
    docs = experiment.get_documents(order)
    upper = sorted(range(BEST_RANKS), key=lambda at: grades.get(order[at], 0) <= 0)  # relevant ones first
    lower = [at for at in range(TOP_RANKS, len(order)) if grades.get(order[at], 0) <= 0]
    mixed = make_item_rng(experiment.seed, "documents from below", qid).permutation(lower)
    return _FormList(
        qid,
        experiment.texts[qid],
        tuple(order),
        docs,
        np.array([scores[docno] for docno in order]),
        tuple(at for at in upper if not _is_long(docs[at])),
        tuple(at for at in mixed if not _is_long(docs[at])),
    )


def _change_list(source: _FormList) -> Iterator[_ChangedList]:
    """Yield the list under each change of form that applies to one of its documents."""
    for change in FORM_CHANGES:
        changed: dict[int, Doc] = {}
        for positions, tested in ((source.upper, change.tests_fall), (source.lower, change.tests_rise)):
            made = ((at, change.apply(source.docs[at], source.query)) for at in (positions if tested else ()))
            changed |= next(({at: doc} for at, doc in made if doc is not None), {})
        if changed:
            yield _ChangedList(source, change, changed)


def _score_changed(
    experiment: Experiment, name: str, changed: Sequence[_ChangedList], pointwise: bool
) -> tuple[list[Scores | None], int]:
    """Return the scores of each changed list, None where the ranker failed, and the number of pairs to score.

    A pointwise ranker scores the changed documents only; the others keep their scores. Any other ranker scores the
    whole list, with both changed documents in it.
    """
    slates = [Slate(one.source.query, _substitute(one, pointwise)) for one in changed]
    answers = experiment.engine.score(experiment.get_ranker(name), slates, name, experiment.get_remote_spec(name))
    pairs = sum(len(slate.docs) for slate in slates)
    if not pointwise:
        return answers, pairs
    return [_insert_scores(one, scores) for one, scores in zip(changed, answers, strict=True)], pairs


def _substitute(one: _ChangedList, alone: bool) -> tuple[Doc, ...]:
    if alone:
        return tuple(one.changed.values())
    return tuple(one.changed.get(at, doc) for at, doc in enumerate(one.source.docs))


def _insert_scores(one: _ChangedList, scores: Scores | None) -> Scores | None:
    if scores is None:
        return None
    known = one.source.scores.copy()
    known[list(one.changed)] = scores
    return known


def _compare_ranks(one: _ChangedList, scores: Scores, noise: float) -> Iterator[FormOutcome]:
    """Yield the ranks of the changed documents, before and after.

    The two changed documents of a list must not affect each other: the lower one never counts as ahead of the upper
    one, and the upper one always counts as ahead of the lower one. A tie counts as no change: it is decided for the
    upper document and against the lower one.
    """
    source = one.source
    others = np.delete(scores, list(one.changed))
    for at, doc in one.changed.items():
        tolerance = noise * max(1.0, abs(float(scores[at])))
        is_upper = at < TOP_RANKS
        if is_upper:
            ahead = int((others > scores[at] + tolerance).sum())
        else:
            ahead = int((others >= scores[at] - tolerance).sum()) + len(one.changed) - 1
        yield FormOutcome(
            one.change.name,
            source.qid,
            source.docnos[at],
            is_upper,
            (ahead >= TOP_RANKS) == is_upper,
            at + 1,
            ahead + 1,
            source.docs[at].text,
            doc.text,
        )
