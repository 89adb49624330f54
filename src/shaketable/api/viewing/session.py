"""The state behind a live page: an experiment, and the lists of its rankers for a query and an edited document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shaketable.api.options import Notify, ignore_message
from shaketable.api.restarts import restart_if_refuted
from shaketable.api.viewing.changes import MAX_LIST_TRIALS, MAX_TRIALS, ChangeList
from shaketable.core.documents import Doc, Slate, rank_docnos
from shaketable.core.errors import BadInput, RankerFailed, ShaketableError, UnknownName
from shaketable.core.protocols import RecordedRanker, can_score_texts
from shaketable.experiment import Experiment
from shaketable.experiment.provenance import describe_documents
from shaketable.report import format_cell, format_number
from shaketable.report.diff import Passage, split_by_difference

MAX_ROWS = 100
"""Documents of a list that the page gets; the selected document is always among them."""
MAX_QUERIES = 500
"""Queries of the collection that the page offers."""
MAX_SNIPPET_CHARS = 220
TYPED_QUERY = "typed query"
"""The id of a query that the collection does not have."""

ListScores = Mapping[str, float]
"""docno -> score of one list."""


@dataclass(frozen=True)
class EditedDocument:
    """A document of the collection with the title and the text that the page has for it."""

    docno: str
    title: str
    body: str


@dataclass(frozen=True)
class ViewSession:
    """An experiment that answers the requests of a live page.

    Parameters
    ----------
    experiment
        The collection, the rankers and the scoring engine.
    changes
        The transforms and recipes that the page offers.
    pairs_file
        The file to which the page saves pairs.
    probe_command
        The command that tests the saved pairs.
    notify
        A function that shows a message to the user.
    """

    experiment: Experiment
    changes: ChangeList
    pairs_file: Path
    probe_command: str
    notify: Notify = ignore_message

    def describe(self) -> dict[str, Any]:
        """Return what the page needs at the start: rankers, queries, transforms and recipes."""
        experiment = self.experiment
        queries = list(experiment.texts.values())
        return {
            "collection": experiment.collection.name,
            "documents": describe_documents(experiment.collection),
            "candidates": experiment.candidate_description,
            "rankers": list(experiment.models),
            "scoring_rankers": experiment.scoring_rankers,
            "is_live": not any(self._is_remote(name) for name in experiment.models),
            "queries": queries[:MAX_QUERIES],
            "query_count": len(queries),
            "query_transforms": [vars(one) for one in self.changes.transforms.values() if one.for_queries],
            "transforms": [vars(one) for one in self.changes.transforms.values()],
            "recipes": [vars(one) for one in self.changes.recipes.values()],
            "unavailable": dict(self.changes.unavailable),
            "max_trials": MAX_TRIALS,
            "max_list_trials": MAX_LIST_TRIALS,
        }

    def rank(self, query: str, base_query: str = "", edited: EditedDocument | None = None) -> dict[str, Any]:
        """Return the list of each ranker for a query, with the ranks before a change of the query or of a document.

        Parameters
        ----------
        query
            The query to rank for.
        base_query
            The query to compare with; "" if the query is not changed.
        edited
            The selected document with its text on the page; None if no document is selected.
        """
        answer: dict[str, Any] = {
            "rankers": [self._rank_with(name, query, base_query, edited) for name in self.experiment.models]
        }
        if base_query:
            answer["query_difference"] = _describe_difference(base_query, query)
        if edited is not None:
            original = self.get_document(edited.docno)
            answer["text_difference"] = _describe_difference(original.text, self.apply_edit(edited).text)
        return answer

    def get_document(self, docno: str) -> Doc:
        """Return a document of the collection; raise `BadInput` if it does not exist."""
        (doc,) = self.experiment.get_documents([docno])
        return doc

    def apply_edit(self, edited: EditedDocument) -> Doc:
        """Return a document with its text on the page; the other fields are those of the collection."""
        return replace(self.get_document(edited.docno), title=edited.title, body=edited.body)

    def find_qid(self, query: str) -> str:
        """Return the id of the collection's query with this text, or `TYPED_QUERY`."""
        return next((qid for qid, text in self.experiment.texts.items() if text == query), TYPED_QUERY)

    def find_candidates(self, name: str, query: str, base_query: str = "") -> ListScores:
        """Return the list of a ranker for a query, as the experiment ranks it; docno -> score.

        If the collection has candidates, a changed query keeps the candidates of the query that it was made of.
        """
        experiment, qid = self.experiment, self.find_qid(query)
        ranker = experiment.get_ranker(name)
        if isinstance(ranker, RecordedRanker):
            if qid not in ranker.recorded:
                raise BadInput(f"{name} is a run file, which has no list for this query")
            found = ranker.recorded[qid]
            return {docno: found[docno] for docno in rank_docnos(found)[: experiment.depth]}
        known = qid if qid in experiment.collection.candidates else self.find_qid(base_query)
        failure_count = len(experiment.engine.failures)
        if known in experiment.collection.candidates and can_score_texts(ranker):
            run = experiment.rerank(name, {qid: query}, {qid: experiment.candidates[known]})
        else:
            run = experiment.run_pipeline(name, {qid: query})
        if qid not in run and len(experiment.engine.failures) > failure_count:  # with `keep_going`
            raise RankerFailed(experiment.engine.failures[-1].reason)
        return run.get(qid, {})

    def check_ranker(self, name: str) -> str:
        """Return the name of a ranker that scores texts; raise an error for any other name."""
        if name not in self.experiment.models:
            raise UnknownName("ranker", name, self.experiment.models)
        if name not in self.experiment.scoring_rankers:
            raise BadInput(f"{name} cannot score changed texts; choose another ranker")
        return name

    def _is_remote(self, name: str) -> bool:
        """Return True if a ranker sends requests, which can cost money."""
        ranker = self.experiment.get_ranker(name)
        return getattr(ranker, "volatile", False) is True or getattr(ranker, "remote", False) is True

    def _rank_with(self, name: str, query: str, base_query: str, edited: EditedDocument | None) -> dict[str, Any]:
        """Return the list of one ranker, or the error of this ranker alone."""
        try:
            return restart_if_refuted(
                self.experiment, lambda: self._compare_lists(name, query, base_query, edited), self.notify
            )
        except ShaketableError as error:
            return {"name": name, "error": str(error)}

    def _compare_lists(self, name: str, query: str, base_query: str, edited: EditedDocument | None) -> dict[str, Any]:
        scoring = can_score_texts(self.experiment.get_ranker(name))
        answer: dict[str, Any] = {"name": name, "searches": self.experiment.is_retriever(name)}
        if edited is not None and not scoring:
            answer["note"] = "This ranker cannot score an edited text; its list has the original document."
        shown = edited if scoring else None
        doc = None if shown is None else self.apply_edit(shown)
        found = self.find_candidates(name, query, base_query)
        after = self._score_list(name, query, found, shown, doc)
        ranks_before: Mapping[str, int] | None = None
        if shown is not None or base_query:
            base = self.find_candidates(name, base_query) if base_query else found
            ranks_before = _rank(base)
            if shown is not None:
                before = self._score_list(name, base_query or query, base, shown, self.get_document(shown.docno))
                ranks_before = {docno: rank for docno, rank in _rank(before).items() if docno in base}
                answer["move"] = _describe_move(shown.docno, before, after)
                answer["move"] |= {"listed_before": shown.docno in base, "listed_after": shown.docno in found}
        return answer | {"rows": self._build_rows(after, ranks_before, shown), "count": len(after)}

    def _score_list(
        self, name: str, query: str, found: ListScores, edited: EditedDocument | None, doc: Doc | None
    ) -> ListScores:
        """Return the scores of a list with `doc` as the text of the edited document, which is added if it is absent."""
        if edited is None or doc is None:
            return found
        experiment = self.experiment
        slate, docnos = self.build_slate(query, found, edited.docno, doc)
        ranker, spec = experiment.get_ranker(name), experiment.get_remote_spec(name)
        (scores,) = experiment.engine.score(ranker, [slate], name, spec)
        if scores is None:
            raise RankerFailed(experiment.engine.failures[-1].reason)
        return dict(zip(docnos, scores.tolist(), strict=True))

    def build_slate(self, query: str, found: ListScores, docno: str, doc: Doc) -> tuple[Slate, list[str]]:
        """Return a list, best first, with `doc` as the text of one document, and the docnos; a new one comes last."""
        docnos = list(dict.fromkeys((*rank_docnos(found), docno)))
        docs = zip(docnos, self.experiment.get_documents(docnos), strict=True)
        return Slate(query, tuple(doc if other == docno else text for other, text in docs)), docnos

    def _build_rows(
        self, after: ListScores, ranks_before: Mapping[str, int] | None, edited: EditedDocument | None
    ) -> list[dict[str, Any]]:
        """Return the first documents of a list, and the edited one, with their ranks before the change; 0 for none."""
        rows = []
        for docno, rank in _rank(after).items():
            is_edited = edited is not None and docno == edited.docno
            if rank > MAX_ROWS and not is_edited:
                continue
            doc = self.apply_edit(edited) if edited is not None and is_edited else self.get_document(docno)
            rows.append(
                {
                    "docno": docno,
                    "rank": rank,
                    "score": after[docno],
                    "score_text": format_number(after[docno]),
                    "rank_before": None if ranks_before is None else ranks_before.get(docno, 0),
                    "title": format_cell(doc.title, MAX_SNIPPET_CHARS),
                    "text": format_cell(doc.body, MAX_SNIPPET_CHARS),
                }
            )
        return rows


def _rank(scores: ListScores) -> dict[str, int]:
    """Return docno -> rank, best first."""
    return {docno: rank for rank, docno in enumerate(rank_docnos(scores), 1)}


def _describe_move(docno: str, before: ListScores, after: ListScores) -> dict[str, Any]:
    """Return ranks and scores of a document before and after a change."""
    difference = after[docno] - before[docno]
    sign = "+" if difference > 0 else "−" if difference < 0 else ""
    return {
        "rank_before": _rank(before)[docno],
        "rank_after": _rank(after)[docno],
        "score_before": before[docno],
        "score_after": after[docno],
        "score_before_text": format_number(before[docno]),
        "score_after_text": format_number(after[docno]),
        "difference_text": f"{sign}{format_number(abs(difference))}",
    }


def _describe_difference(before: str, after: str) -> dict[str, list[Passage]]:
    """Return the passages of two texts; both are empty if no word differs."""
    gone, come = split_by_difference(before, after)
    return {"before": gone, "after": come} if gone != come else {"before": [], "after": []}
