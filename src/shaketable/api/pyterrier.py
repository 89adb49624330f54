"""`to_pyterrier`: a ranker as a transformer of PyTerrier pipelines."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Unpack

from shaketable.api.options import CollectionLike, ExperimentOptions, ignore_message
from shaketable.api.rank import open_rank_experiment
from shaketable.api.ranker_names import RankerLike
from shaketable.api.restarts import restart_if_refuted
from shaketable.core.documents import Doc, Run, Slate, rank_docnos
from shaketable.core.errors import BadInput
from shaketable.core.protocols import Retriever
from shaketable.experiment import Experiment

if TYPE_CHECKING:
    import pandas as pd


def to_pyterrier(ranker: RankerLike, data: CollectionLike = "sample", **options: Unpack[ExperimentOptions]) -> Any:
    """Return a ranker as a PyTerrier transformer.

    The transformer re-ranks a frame with the columns qid, query, docno and text; without the column text, the texts of
    the collection are used. A frame without documents is a search, for which the ranker must be a retriever. Java is
    not started.

    Parameters
    ----------
    ranker
        A ranker: a text such as "bm25(k1=0.9)", an object, or a function.
    data
        The collection that the ranker searches, or whose statistics it uses.
    **options
        The options of an experiment, as for `st.rank`; `depth` is the length of the lists of a search.

    Returns
    -------
    pyterrier.Transformer
        The transformer. It adds the columns score and rank, which counts from 0.

    Examples
    --------
    >>> import shaketable as st
    >>> pipeline = st.to_pyterrier("bm25", depth=20) >> st.to_pyterrier("ql") % 10  # doctest: +SKIP
    """
    try:
        apply = import_module("pyterrier").apply
    except ImportError as error:
        raise BadInput("to_pyterrier needs PyTerrier: pip install python-terrier") from error
    experiment = open_rank_experiment(data, ranker, **options)

    def rank_frame(frame: pd.DataFrame) -> pd.DataFrame:
        work = _rerank if "docno" in frame else _search
        return restart_if_refuted(experiment, lambda: work(experiment, frame), ignore_message)

    return apply.generic(rank_frame)


def _search(experiment: Experiment, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the documents that the ranker finds for the queries of a frame."""
    import pandas as pd

    (name,) = experiment.models
    if not isinstance(experiment.get_ranker(name), Retriever):
        raise BadInput(f"{name} cannot search; put a retriever before it: retriever >> st.to_pyterrier(...)")
    run = experiment.run_pipeline(name, dict(zip(frame["qid"], frame["query"], strict=True)))
    found = pd.DataFrame([(qid, docno) for qid in run for docno in run[qid]], columns=["qid", "docno"])
    return _add_ranks(frame.merge(found, on="qid"), run)


def _rerank(experiment: Experiment, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with the scores and ranks of its documents."""
    (name,) = experiment.models
    slates = {qid: _make_slate(experiment, part) for qid, part in frame.groupby("qid", sort=False)}
    answers = experiment.engine.score(
        experiment.get_ranker(name), list(slates.values()), name, experiment.get_remote_spec(name)
    )
    run: Any = {
        qid: dict(zip(part["docno"], scores.tolist(), strict=True))
        for (qid, part), scores in zip(frame.groupby("qid", sort=False), answers, strict=True)
        if scores is not None
    }
    return _add_ranks(frame[frame["qid"].isin(run)], run)


def _make_slate(experiment: Experiment, part: pd.DataFrame) -> Slate:
    """Return the slate of one query: the texts of the frame, or those of the collection."""
    if "text" in part:
        return Slate(part["query"].iloc[0], tuple(map(Doc, part["text"])))
    if unknown := [docno for docno in part["docno"] if docno not in experiment.collection.docs]:
        raise BadInput(
            f"document {unknown[0]!r} is not in {experiment.collection.name}; add a column text to the frame"
        )
    return Slate(part["query"].iloc[0], experiment.get_documents(list(part["docno"])))


def _add_ranks(frame: pd.DataFrame, run: Run) -> pd.DataFrame:
    """Return the frame with scores and ranks; tied documents are in the order of all our lists."""
    ranks = {qid: {docno: at for at, docno in enumerate(rank_docnos(scores))} for qid, scores in run.items()}
    keys = list(zip(frame["qid"], frame["docno"], strict=True))
    return frame.assign(score=[run[qid][docno] for qid, docno in keys], rank=[ranks[qid][docno] for qid, docno in keys])
