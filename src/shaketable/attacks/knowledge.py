"""What an attacker knows who sees places only: documents, queries of his own, and how the target orders their lists."""

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
    """What recipes are opened with.

    `asked` hands out a collection of the attacker's own queries, none of them under attack, whose candidates are in
    the order that the target put them in: the target is asked when somebody wants to know. `fit` learns a model from
    such a collection, by the text of a learner and a plan.
    """

    docs: Corpus
    collect_target_rankings: Callable[[], Collection]
    fit: Callable[[str, TrainingPlan, Collection], SavedModel]
    parser: Parser
    seed: int = 0
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)
    """What recipes, constraints and detectors keep here for each other, such as a surrogate."""


def draw_attacker_queries(
    collection: Collection, attacked_qids: Iterable[str], count: int, seed: int
) -> Mapping[str, Query]:
    """Queries of an attacker's own: other queries of the collection, then sentences out of its documents.

    None has the text of a query under attack.
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
