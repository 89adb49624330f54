"""Audits without documents: a search engine's hits are the documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from shaketable.api.options import DEFAULT_FIRST_STAGE
from shaketable.core.documents import Collection
from shaketable.core.errors import BadInput
from shaketable.core.protocols import Model
from shaketable.core.registries import RANKERS
from shaketable.experiment import Experiment
from shaketable.rankers.http.hits import HitCorpus
from shaketable.rankers.http.searcher import SearchEndpoint
from shaketable.rankers.run_file import RunFile


def use_hits(
    collection: Collection, models: Mapping[str, Model], first_stage: str
) -> tuple[Collection, Mapping[str, Model], str]:
    """Return collection, models and first stage of an audit whose documents come from the hits of a search engine.

    Without documents, the first engine among the rankers finds the documents for the others. An engine that is named as
    the first stage is measured with the rankers. With documents, nothing changes.
    """
    if len(collection.docs):
        return collection, models, first_stage
    engines = [name for name, model in models.items() if isinstance(model, SearchEndpoint)]
    if first_stage == DEFAULT_FIRST_STAGE and engines:
        first_stage = engines[0]
    elif first_stage in models and first_stage not in engines:
        return collection, models, first_stage
    elif first_stage not in models:
        model = RANKERS.build(first_stage)
        if not isinstance(model, SearchEndpoint):
            return collection, models, first_stage
        first_stage = next((n for n, one in models.items() if one == model), model.url)
        models = {first_stage: model, **models}
    return replace(collection, docs=HitCorpus(), source=""), models, first_stage


def list_first_hits(experiment: Experiment) -> Experiment:
    """Return the experiment with the hits of its queries as documents, if other rankers re-rank a search engine's hits.

    Lexical rankers take their statistics from these documents.
    """
    corpus = experiment.collection.docs
    if not isinstance(corpus, HitCorpus) or all(map(_needs_no_documents, experiment.models.values())):
        return experiment
    found = experiment.search_first_stage(experiment.texts)
    if not any(found.values()):
        raise BadInput("the search engine found no document for any query, so there is nothing to re-rank")
    listed = corpus.list_documents(sorted({docno for scores in found.values() for docno in scores}))
    return replace(experiment, collection=replace(experiment.collection, docs=listed))


def _needs_no_documents(model: Model) -> bool:
    return isinstance(model, SearchEndpoint | RunFile)
