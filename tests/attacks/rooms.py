"""A small target and its cases, for the tests of attacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from shaketable.attacks.goals import Promote
from shaketable.attacks.knowledge import Knowledge
from shaketable.attacks.surrogate import SURROGATE, Surrogate
from shaketable.attacks.target import Target
from shaketable.data.sample import read_sample
from shaketable.errors import BadInput
from shaketable.extras import has
from shaketable.learners.plan import Imitated
from shaketable.rankers.lexical import BM25
from shaketable.score.road import Road, Traits
from shaketable.text.language import language_tool
from shaketable.text.tokens import Tokenizer
from shaketable.types import Case, Collection, Goal, Ranker, Slate, WhiteBox, ranking


def target_for(ranker: Ranker, road: Road | None = None, count: Callable[[int], None] = lambda pairs: None) -> Target:
    """A target by the road; `count` is told how many pairs each call asks for."""
    road = road or Road()
    traits = Traits.of(ranker)

    def score(slates: Sequence[Slate]):
        count(sum(len(slate.docs) for slate in slates))
        return road.score(ranker, slates)

    return Target(score, traits.pointwise, traits.noise)


def cases_on(
    collection: Collection,
    target: Target,
    queries: int = 4,
    places: Sequence[int] = (11, 20, 30),
    goal: Goal | None = None,
) -> list[Case]:
    """Documents at these places of the target's lists of the best 40 of BM25, for the first queries."""
    finder = BM25().open(collection)
    qids = list(collection.queries)[:queries]
    slates = {}
    for qid in qids:
        query = collection.queries[qid].text
        docnos = ranking(finder.search([query], 40)[0])
        slates[qid] = Slate(query, tuple(collection.docs[docno] for docno in docnos)), docnos
    target.read(slates)
    documents = []
    for qid in qids:
        listing = target.pools[qid].listing
        documents += [(listing.docnos[p - 1], listing.docs[p - 1], [qid]) for p in places if p <= len(listing.docnos)]
    return target.cases(documents, goal or Promote())


def knowledge_of(collection: Collection) -> Knowledge:
    """An attacker who has no queries of his own and trains nothing: his surrogate is a small net of random weights."""

    def nothing(*_: object):
        raise BadInput("this attacker knows no lists")

    shared = {("surrogate", SURROGATE, Imitated()): Surrogate(small_net(), 0.0, 0, 0)} if has("neural") else {}
    return Knowledge(collection.docs, nothing, nothing, language_tool("light"), shared=shared)


def opened(recipe: Any, collection: Collection):
    """The attack of a recipe; who needs the net of the target is given the small one."""
    known = knowledge_of(collection)
    return recipe.open_net(known, small_net()) if isinstance(recipe, WhiteBox) else recipe.open(known)


@cache
def small_net():
    """A K-NRM on random vectors of the words of the sample."""
    import torch

    from shaketable.rankers.nets.knrm import KNRM
    from shaketable.rankers.nets.shapes import KNRMShape
    from shaketable.rankers.nets.words import Vocabulary, words_of

    torch.manual_seed(0)
    tokenizer = Tokenizer(stemmer="none")
    return KNRM(Vocabulary(words_of(bundled().docs, tokenizer), tokenizer), 8, KNRMShape()).eval()


class Stretched:
    """Another ranker behind a function that keeps the order of scores: its places, but not its scores."""

    pointwise = True

    def __init__(self, ranker: Ranker):
        self.ranker = ranker
        self.name = f"stretched {ranker.name}"

    def score(self, slates: Sequence[Slate]):
        return [np.arctan(np.asarray(scores, dtype=np.float64) / 10) * 7 - 3 for scores in self.ranker.score(slates)]


def bundled() -> Collection:
    """The sample."""
    return read_sample()
