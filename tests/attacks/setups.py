"""A small target and its cases, for the tests of attacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from shaketable.attacks.goals import Promote
from shaketable.attacks.knowledge import AttackerKnowledge
from shaketable.attacks.surrogate import DEFAULT_SURROGATE, Surrogate
from shaketable.attacks.target import Target
from shaketable.core.attack_types import AttackCase, Goal, WhiteBoxRecipe
from shaketable.core.documents import Collection, Slate, rank_docnos
from shaketable.core.errors import BadInput
from shaketable.core.extras import has_extra
from shaketable.core.protocols import Ranker
from shaketable.datasets.sample import read_sample
from shaketable.nlp.analyzer import Analyzer
from shaketable.nlp.parser import open_parser
from shaketable.rankers.lexical import BM25
from shaketable.scoring.engine import ScoringEngine
from shaketable.scoring.traits import RankerTraits
from shaketable.training.plan import ImitationSource


def target_for(
    ranker: Ranker, engine: ScoringEngine | None = None, count: Callable[[int], None] = lambda pairs: None
) -> Target:
    """Return a target that uses a scoring engine; `count` receives the number of pairs of each call."""
    engine = engine or ScoringEngine()
    traits = RankerTraits.from_ranker(ranker)

    def score(slates: Sequence[Slate]):
        count(sum(len(slate.docs) for slate in slates))
        return engine.score(ranker, slates)

    return Target(score, traits.pointwise, traits.noise)


def cases_on(
    collection: Collection,
    target: Target,
    queries: int = 4,
    places: Sequence[int] = (11, 20, 30),
    goal: Goal | None = None,
) -> list[AttackCase]:
    """Documents at these ranks of the target's lists, which have the top 40 of BM25, for the first queries."""
    finder = BM25().open(collection)
    qids = list(collection.queries)[:queries]
    slates = {}
    for qid in qids:
        query = collection.queries[qid].text
        docnos = rank_docnos(finder.search([query], 40)[0])
        slates[qid] = Slate(query, tuple(collection.docs[docno] for docno in docnos)), docnos
    target.read_lists(slates)
    documents = []
    for qid in qids:
        listing = target.target_lists[qid].target_ranking
        documents += [(listing.docnos[p - 1], listing.docs[p - 1], [qid]) for p in places if p <= len(listing.docnos)]
    return target.build_cases(documents, goal or Promote())


def knowledge_of(collection: Collection) -> AttackerKnowledge:
    """Return an attacker without queries and training; its surrogate is a small net with random weights."""

    def nothing(*_: object):
        raise BadInput("this attacker knows no lists")

    shared = (
        {("surrogate", DEFAULT_SURROGATE, ImitationSource()): Surrogate(small_net(), 0.0, 0, 0)}
        if has_extra("neural")
        else {}
    )
    return AttackerKnowledge(collection.docs, nothing, nothing, open_parser("light"), cache=shared)


def open_attack(recipe: Any, collection: Collection):
    """Return the attack of a recipe; the net of the target, if needed, is the small one."""
    known = knowledge_of(collection)
    return recipe.open_net(known, small_net()) if isinstance(recipe, WhiteBoxRecipe) else recipe.open(known)


@cache
def small_net():
    """Return a K-NRM with random vectors for the words of the sample."""
    import torch

    from shaketable.rankers.neural.knrm import KNRM
    from shaketable.rankers.neural.shapes import KNRMShape
    from shaketable.rankers.neural.words import Vocabulary, collect_words

    torch.manual_seed(0)
    tokenizer = Analyzer(stemmer="none")
    return KNRM(Vocabulary(collect_words(load_sample().docs, tokenizer), tokenizer), 8, KNRMShape()).eval()


class Stretched:
    """Another ranker with changed scores in the same order."""

    pointwise = True

    def __init__(self, ranker: Ranker):
        self.ranker = ranker
        self.name = f"stretched {ranker.name}"

    def score(self, slates: Sequence[Slate]):
        return [np.arctan(np.asarray(scores, dtype=np.float64) / 10) * 7 - 3 for scores in self.ranker.score(slates)]


def load_sample() -> Collection:
    """Load the bundled sample."""
    return read_sample()
