"""Valid variations of the queries of a collection, and nDCG@10 of a ranker on each of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evidence import DATA
from evidence._intervals import bound, draw_topics
from evidence._rankers import LEXICAL, NET_NAMES, PRE_TRAINED, TRAINED_ON, Values, build_model, fit, open_collection
from evidence._verdicts import Measurement
from shaketable.core.documents import Run, rank_docnos
from shaketable.experiment import Experiment
from shaketable.nlp.resources import GENERATOR_MODELS
from shaketable.rankers.fusion import rrf
from shaketable.tasks._query_changes import (
    RERANKER,
    ChangedQuery,
    get_variations,
    make_original_queries,
    measure_changed_queries,
    rank_changed_queries,
)
from shaketable.transforms.presets import PAPER_004
from shaketable.transforms.vary import Variation

MEASURE = "nDCG@10"
DEPTH = 15
"""Documents of BM25's list that are re-ranked."""
LIST_LENGTH = 100
"""Documents of a list that is fused: a re-ranker's, then those of BM25 that it did not re-rank."""
QUERIES = {"nfcorpus": 200}
"""A collection -> the number of its test queries that are varied, drawn at random; other collections vary all."""
PUBLISHED = DATA / "variations" / "qvg-trec-dl-2019.csv"
NEIGHBOURS = DATA / "synonyms" / "counterfitted-neighbors.json"
CLASSES = (LEXICAL, NET_NAMES, PRE_TRAINED)


def list_methods() -> tuple[str, ...]:
    """Return the methods of paper 004 that need no generative model."""
    os.environ.setdefault("NLTK_DATA", str(DATA / "nltk_data"))
    names = (name for name in PAPER_004.values() if name not in GENERATOR_MODELS)
    return tuple(f"{name}(file={str(NEIGHBOURS)!r})" if name == "word_embed_syn_swap" else name for name in names)


@dataclass(frozen=True, eq=False)
class VariedQueries:
    """The queries of an experiment, normalised as their variations are, and the valid variations of all of them."""

    experiment: Experiment
    originals: Sequence[ChangedQuery]
    variations: Sequence[Variation]

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """The place of its query for each variation."""
        known = {query.qid: i for i, query in enumerate(self.originals)}
        return np.array([known[one.qid] for one in self.variations])

    def select(self, category: str = "", method: str = "") -> NDArray[np.bool_]:
        """Return a mask of the variations of a category and a method; all without names."""
        wanted = [category in ("", one.category) and method in ("", shorten(one.method)) for one in self.variations]
        return np.array(wanted)

    def average(self, values: Values, chosen: NDArray[np.bool_]) -> Values:
        """Return the mean of some variations for each query; NaN for a query that has none."""
        count = len(self.originals)
        sums = np.bincount(self.places[chosen], values[chosen], count)
        numbers = np.bincount(self.places[chosen], minlength=count)
        return np.divide(sums, numbers, out=np.full(count, np.nan), where=numbers > 0)


def shorten(method: str) -> str:
    """Return the name of a method without its options."""
    return method.partition("(")[0]


def open_variations(collection: str, rankers: Sequence[str]) -> VariedQueries:
    """Return the varied queries of a collection, whose documents BM25 searches, with rankers on it.

    dl19 has the published variations with the labels of the paper; for others, rules judge our own variations.
    """
    usual = open_collection(collection)
    models = {name: fit(TRAINED_ON[collection], name) if name in NET_NAMES else build_model(name) for name in rankers}
    documents = replace(usual.collection, candidates={}) if usual.collection.candidates else usual.collection
    sample = QUERIES.get(collection)
    experiment = replace(usual, collection=documents, models=models, depth=DEPTH, sample=sample)
    file = str(PUBLISHED) if collection == "dl19" else ""
    made, _ = get_variations(experiment, list_methods(), 1, file)
    return VariedQueries(experiment, make_original_queries(experiment, made), [one for one in made if one.valid])


@dataclass(frozen=True, eq=False)
class Outcome:
    """What variations do to one ranker in one setting: nDCG@10 of queries, variations and fused lists.

    `fused` has RRF of the lists of all variations, and `fused_short` RRF of the documents that were re-ranked alone.
    """

    varied: VariedQueries
    before: Values
    after: Values
    fused: Values
    fused_short: Values

    def average_after(self, category: str = "", method: str = "") -> Values:
        """Return the mean over the variations of each query; NaN for a query that has none."""
        return self.varied.average(self.after, self.varied.select(category, method))

    def compute_changes(self, category: str = "", method: str = "") -> Values:
        """Return the mean change of each query; NaN for a query that has no such variation."""
        return self.average_after(category, method) - self.before

    @property
    def best(self) -> Values:
        """The highest value among a query and its variations."""
        highest = self.before.copy()
        np.maximum.at(highest, self.varied.places, self.after)
        return highest


def rank_variations(varied: VariedQueries, ranker: str, setting: str) -> Outcome:
    """Rank all queries, variations and fused lists of variations by one ranker in one setting."""
    experiment, whole = varied.experiment, varied.originals
    changed = [ChangedQuery(one.qid, one.text) for one in varied.variations]
    own, new = (rank_texts(experiment, ranker, some, setting) for some in (whole, changed))
    long, new_long = (lengthen(experiment, ranker, *some) for some in ((whole, setting, own), (changed, setting, new)))
    fused, short = fuse_lists(varied, long, new_long), fuse_lists(varied, own, new)
    values = (
        measure_changed_queries(experiment, MEASURE, queries, run)
        for queries, run in ((whole, own), (changed, new), (whole, fused), (whole, short))
    )
    return Outcome(varied, *values)


def rank_texts(experiment: Experiment, ranker: str, queries: Sequence[ChangedQuery], setting: str) -> Run:
    """Return the list of each query; bi-encoders re-rank BM25's documents too, although they could search."""
    if setting == RERANKER or ranker in LEXICAL:
        return rank_changed_queries(experiment, ranker, queries, setting)
    texts = {str(i): query.text for i, query in enumerate(queries)}
    lists = experiment.rerank(ranker, texts, experiment.search_first_stage(texts))
    return {key: lists.get(key, {}) for key in texts}


def lengthen(experiment: Experiment, ranker: str, queries: Sequence[ChangedQuery], setting: str, run: Run) -> Run:
    """Return lists that continue with what the first stage finds further down, or the ranker itself if it searches.

    RRF of short lists is close to a vote: a document in all lists beats one that is first in most of them. The lists of
    re-rankers of the original's documents stay as they are, since all have the same documents.
    """
    if setting == RERANKER:
        return run
    texts = {str(i): query.text for i, query in enumerate(queries)}
    deep = experiment.with_depth(LIST_LENGTH)
    found = deep.run_pipeline(ranker, texts) if ranker in LEXICAL else deep.search_first_stage(texts)
    orders = {key: dict.fromkeys([*rank_docnos(run[key]), *rank_docnos(found.get(key, {}))]) for key in texts}
    return {key: {docno: -float(rank) for rank, docno in enumerate(order)} for key, order in orders.items()}


def fuse_lists(varied: VariedQueries, own: Run, new: Run) -> Run:
    """Return RRF of the lists of all variations of each query; a query without a variation keeps its own list."""
    lists: dict[int, list[Mapping[str, float]]] = {}
    for i, place in enumerate(varied.places.tolist()):
        lists.setdefault(place, []).append(new[str(i)])
    return {str(i): rrf(lists[i]) if i in lists else own[str(i)] for i in range(len(varied.originals))}


def list_pairs(names: Sequence[str]) -> Iterator[tuple[int, int, bool]]:
    """Yield the places of each pair of rankers, and whether both are of one class."""
    for (i, one), (j, other) in combinations(enumerate(names), 2):
        yield i, j, any(one in some and other in some for some in CLASSES)


def correlate(outcomes: Mapping[str, Outcome], category: str = "") -> tuple[Values, Values]:
    """Return the mean of Pearson's r of two rankers' changes: pairs of one class, and pairs of two classes.

    The first value is of all queries, and the others of resamples of queries with all their variations. A ranker that
    no variation changes takes no part; without a pair the values are NaN.
    """
    varied = next(iter(outcomes.values())).varied
    chosen = varied.select(category)
    places = varied.places[chosen]
    changes = {name: (one.after - one.before[varied.places])[chosen] for name, one in outcomes.items()}
    moved = {name: change for name, change in changes.items() if np.ptp(change) > 0}
    drawn = draw_topics(len(varied.originals))
    counts = np.array([np.bincount(topics, minlength=len(varied.originals)) for topics in drawn])
    weights = np.vstack([np.ones(len(places)), counts[:, places]])
    r = np.array([correlate_weighted(np.array(list(moved.values())), some) for some in weights])
    pairs = list(list_pairs(list(moved)))
    within, between = ([r[:, i, j] for i, j, same in pairs if same is wanted] for wanted in (True, False))
    nothing = np.full((1, len(r)), np.nan)
    return np.mean(within or nothing, axis=0), np.mean(between or nothing, axis=0)


def correlate_weighted(values: Values, weights: Values) -> Values:
    """Return Pearson's r of all pairs of rows with weights of columns.

    >>> correlate_weighted(np.array([[1.0, 2.0, 9.0], [3.0, 5.0, 0.0]]), np.array([1.0, 1.0, 0.0])).round(6).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    centred = values - np.average(values, axis=1, weights=weights)[:, None]
    covariance = (centred * weights) @ centred.T
    scale = np.sqrt(np.diag(covariance))
    r: Values = covariance / np.outer(scale, scale)
    return r


def measure_classes(claim: str, collection: str, outcomes: Mapping[str, Outcome], training: str) -> Measurement:
    """Return how much more alike the changes of two rankers are if both are of one class."""
    within, between = correlate(outcomes)
    difference = within - between
    ends = bound(float(difference[0]), difference[1:])
    queries = len(next(iter(outcomes.values())).before)
    return Measurement(claim, "all rankers", collection, float(difference[0]), *ends, queries, training)
