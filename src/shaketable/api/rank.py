"""`rank`: a run of one ranker on a collection."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Unpack

from shaketable.api.audit import open_experiment
from shaketable.api.options import RUN_DEPTH, CollectionLike, ExperimentOptions, Notify, ignore_message
from shaketable.api.ranker_names import RankerLike, build_models
from shaketable.api.restarts import restart_if_refuted
from shaketable.core.documents import Run
from shaketable.datasets.load import load
from shaketable.datasets.trec import write_run
from shaketable.experiment import Experiment
from shaketable.report.files import make_safe_name


def rank(data: CollectionLike = "sample", ranker: RankerLike = "bm25", **options: Unpack[ExperimentOptions]) -> Run:
    """Rank the documents of a collection for each query.

    A retriever searches the collection; any other ranker re-ranks the candidates of the first stage.

    Parameters
    ----------
    data
        The collection: "sample", a BEIR folder, "irds:ID", or a `Collection`.
    ranker
        A ranker: a text such as "bm25(k1=0.9)", an object, or a function.
    **options
        The options of an experiment, as for `st.audit`. By default, all queries are ranked, judged or not, with 1000
        documents each.

    Returns
    -------
    Run
        A mapping qid -> docno -> score.

    Examples
    --------
    >>> import shaketable as st
    >>> run = st.rank("sample", "bm25", max_queries=2, depth=3)
    >>> [len(scores) for scores in run.values()]
    [3, 3]
    """
    return rank_queries(open_rank_experiment(data, ranker, **options), options.get("notify", ignore_message))


def open_rank_experiment(data: CollectionLike, ranker: RankerLike, **options: Unpack[ExperimentOptions]) -> Experiment:
    """Return an experiment without judgements, so that it ranks unjudged queries too."""
    split = options.get("split")
    whole = load(
        data,
        None if split == "all" else split,
        options.pop("candidates", None),
        options.pop("split_ratio", ""),
        options.get("seed", 0),
        options.pop("query_types", None),
    )
    given: ExperimentOptions = {"depth": RUN_DEPTH, **options, "split": "all"}
    return open_experiment(replace(whole, qrels={}), build_models([ranker]), **given)


def rank_queries(experiment: Experiment, notify: Notify) -> Run:
    """Return the run of the only ranker of an experiment."""
    (name,) = experiment.models
    return restart_if_refuted(experiment, lambda: experiment.get_run(name), notify)


def write_ranking(experiment: Experiment, file: Path, tag: str | None = None, notify: Notify = ignore_message) -> Run:
    """Rank the queries with the only ranker of an experiment, write a TREC file, and return the run."""
    (name,) = experiment.models
    run = rank_queries(experiment, notify)
    write_run(run, file, tag=tag or make_safe_name(name))
    return run
