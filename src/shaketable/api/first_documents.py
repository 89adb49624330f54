"""The first documents of each ranker, collected from the runs of an audit."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from shaketable.core.documents import Run, rank_docnos
from shaketable.core.protocols import RecordedRanker, Retriever
from shaketable.core.results import LIST_LENGTH
from shaketable.experiment import Experiment
from shaketable.report import format_cell
from shaketable.report.first_documents import EXCERPT_CHARACTERS, MAX_LISTED_QUERIES, FirstDocuments
from shaketable.report.verdict import FIRST_STAGE


def collect_first_documents(experiment: Experiment, runs: Mapping[str, Run]) -> FirstDocuments:
    """Return the first documents of each run, and of the first stage if a ranker re-ranks its results."""
    listed = dict(runs)
    rankers = [experiment.get_ranker(name) for name in runs]
    if not experiment.baseline and any(not isinstance(one, Retriever | RecordedRanker) for one in rankers):
        listed[FIRST_STAGE] = experiment.candidates
    qids = list(islice(experiment.queries, MAX_LISTED_QUERIES))
    docnos = {
        name: {qid: tuple(rank_docnos(run[qid])[:LIST_LENGTH]) for qid in qids if run.get(qid)}
        for name, run in listed.items()
    }
    wanted = {docno for by_query in docnos.values() for found in by_query.values() for docno in found}
    known = sorted(docno for docno in wanted if docno in experiment.collection.docs)
    texts = (format_cell(doc.text, EXCERPT_CHARACTERS) for doc in experiment.get_documents(known))
    return FirstDocuments(docnos, dict(zip(known, texts, strict=True)))
