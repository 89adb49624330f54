"""The lists of smoothed rankers with the bounds that certificates need."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from shaketable.defences.smoothing import SmoothedRanker
from shaketable.measures.certificates import (
    CertifiableList,
)

if TYPE_CHECKING:
    from shaketable.experiment import Experiment


def build_certifiable_lists(
    experiment: Experiment, name: str, qids: Iterable[str], max_changed_words: int = 0
) -> dict[str, CertifiableList]:
    """Return a smoothed ranker's lists with the largest shift of each score by `max_changed_words` (0: all words)."""
    ranker = experiment.get_ranker(name)
    assert isinstance(ranker, SmoothedRanker)
    run = experiment.rerank(name, {qid: experiment.texts[qid] for qid in qids}, experiment.candidates)
    docs = experiment.collection.docs
    listed = {docno for scores in run.values() for docno in scores}
    shifts = {docno: ranker.bound_mean_shift(docs[docno], max_changed_words or None) for docno in listed}
    return {qid: CertifiableList.from_scores(scores, shifts) for qid, scores in run.items()}
