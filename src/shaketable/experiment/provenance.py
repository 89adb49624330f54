"""The facts that the results of an experiment depend on, and their cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shaketable.core.documents import Collection
from shaketable.core.protocols import Ranker
from shaketable.core.provenance import collect_versions
from shaketable.core.registries import RANKERS
from shaketable.scoring.traits import RankerTraits

if TYPE_CHECKING:
    from shaketable.experiment.experiment import Experiment


def describe_weights(weights: Mapping[str, float]) -> str:
    """Return a sentence on the weights of queries in means; "" if all queries weigh the same."""
    if not weights:
        return ""
    values = np.array(list(weights.values()))
    equal_queries = values.sum() ** 2 / (values**2).sum()
    return (
        f"queries are weighted by their frequency: {values.sum():,.6g} in total, of which the most frequent query "
        f"has {values.max() / values.sum():.1%}. The {len(values):,} queries have the effective sample size of "
        f"{equal_queries:,.1f} equally weighted ones. The weights apply to effectiveness, agreement, query-typos, "
        "query-variation, "
        "fusion and parity; in all other tasks, and in slices, queries have equal weights"
    )


def describe_candidates(experiment: Experiment) -> str:
    """Return a phrase that describes the ranked documents."""
    depth, first_stage = experiment.depth, experiment.first_stage
    if experiment.collection.candidates:
        return f"the candidates that came with the collection, at most {depth} for each query"
    return f"the top {depth} documents of each query; re-rankers re-rank the results of {first_stage}"


def describe_documents(collection: Collection) -> str:
    """Return the number of documents in words; of a search engine's index, only the hits are known."""
    if not getattr(collection.docs, "is_partial", False):
        return f"{len(collection.docs):,} documents"
    return f"{len(collection.docs):,} hits of a search engine" if len(collection.docs) else "hits of a search engine"


def summarize(experiment: Experiment) -> dict[str, str]:
    """Return the main facts about the experiment, to show before the results."""
    return {
        "collection": experiment.collection.name,
        "documents": describe_documents(experiment.collection).removesuffix(" documents"),
        "queries": f"{len(experiment.queries):,}",
        "ranked": experiment.candidate_description,
        "seed": str(experiment.seed),
    } | ({"weights": experiment.weighting_description} if experiment.weights else {})


def collect_provenance(experiment: Experiment, opened_rankers: Mapping[str, Ranker]) -> dict[str, Any]:
    """Return everything that a result depends on, and its cost in query-document pairs."""
    collection = experiment.collection
    return {
        "versions": collect_versions(),
        "collection": {
            "name": collection.name,
            "source": collection.source,
            "fingerprint": collection.fingerprint,
            "split": experiment.split,
            "documents": len(collection.docs),
            "queries": len(experiment.queries),
            "judgements": sum(map(len, experiment.qrels.values())),
        },
        "rankers": {name: RANKERS.spec(model) for name, model in experiment.models.items()},
        "fingerprints": {
            name: RankerTraits.from_ranker(opened_rankers[name]).fingerprint
            for name in experiment.models
            if name in opened_rankers
        },
        "first stage": experiment.first_stage,
        "baseline": experiment.baseline,
        "ranked": experiment.candidate_description,
        "depth": experiment.depth,
        "limit": experiment.limit,
        "seed": experiment.seed,
        "remarks": experiment.collect_remarks(),
        "spent": {
            name: {"asked": spent.asked, "scored": spent.scored, "searches": spent.searches}
            for name, spent in experiment.engine.usage.items()
        },
    }


def collect_remarks(
    experiment: Experiment, opened_rankers: Mapping[str, Ranker], repair_notes: Sequence[str]
) -> dict[str, str]:
    """Return remarks on scores by ranker, and those on the score cache, on models and on documents."""
    engine = experiment.engine
    remarks = {name: engine.get_remark(ranker) for name, ranker in opened_rankers.items()}
    remarks |= {"scores": "; ".join(engine.list_warnings()), "models": "; ".join(repair_notes)}
    remarks["documents"] = str(getattr(experiment.collection.docs, "notice", ""))
    return {name: remark for name, remark in remarks.items() if remark}
