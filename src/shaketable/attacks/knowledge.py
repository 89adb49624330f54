"""The knowledge of a black-box attacker: documents, own queries, and the target's rankings for these queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from shaketable.core.documents import Collection, Corpus, Query
from shaketable.core.seeding import make_item_rng
from shaketable.nlp.parser import Parser
from shaketable.nlp.sentences import split_sentences
from shaketable.rankers.saved import SavedModel
from shaketable.training.plan import TrainingPlan


@dataclass(frozen=True, eq=False)
class AttackerKnowledge:
    """The knowledge that recipes are opened with.

    Attributes
    ----------
    docs
        The documents of the collection.
    collect_target_rankings
        A function that returns a collection of the attacker's own queries, none of them under attack, with the
        candidates in the target's order. It queries the target on first use.
    fit
        A function that trains a model on such a collection, given the spec of a learner and a plan.
    parser
        The parser of texts.
    seed
        The seed of the attack.
    cache
        A cache shared by recipes, constraints and detectors, for example for a surrogate.
    """

    docs: Corpus
    collect_target_rankings: Callable[[], Collection]
    fit: Callable[[str, TrainingPlan, Collection], SavedModel]
    parser: Parser
    seed: int = 0
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)


def draw_attacker_queries(
    collection: Collection, attacked_qids: Iterable[str], count: int, seed: int
) -> Mapping[str, Query]:
    """Return the attacker's own queries: other queries of the collection, then sentences of its documents.

    No query has the text of a query under attack.
    """
    avoided = set(attacked_qids)
    texts = {collection.queries[qid].text.casefold().strip() for qid in avoided}
    own: dict[str, Query] = {}

    def add_query(qid: str, query: Query) -> None:
        text = query.text.casefold().strip()
        if text and text not in texts and len(own) < count:
            texts.add(text)
            own[qid] = query

    for qid in make_item_rng(seed, "own queries").permutation(sorted(collection.queries.keys() - avoided)):
        add_query(qid, collection.queries[qid])
    if len(own) < count:
        for docno in make_item_rng(seed, "own sentences").permutation(sorted(collection.docs)):
            sentences = [s for s in split_sentences(collection.docs[docno].text) if 4 <= len(s.split()) <= 30]
            if sentences:
                add_query(f"sentence-of-{docno}", Query(make_item_rng(seed, "own sentence", docno).choice(sentences)))
            if len(own) == count:
                break
    return own
