"""What an attacker knows who sees places only: documents, queries of his own, and how the target orders their lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from shaketable.chance import draws_for
from shaketable.learners.plan import Plan
from shaketable.rankers.saved import Saved
from shaketable.text.language import Language
from shaketable.text.sentences import split_sentences
from shaketable.types import Collection, Corpus, Query


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What recipes are opened with.

    `asked` hands out a collection of the attacker's own queries, none of them under attack, whose candidates are in
    the order that the target put them in: the target is asked when somebody wants to know. `fit` learns a model from
    such a collection, by the text of a learner and a plan.
    """

    docs: Corpus
    asked: Callable[[], Collection]
    fit: Callable[[str, Plan, Collection], Saved]
    language: Language
    seed: int = 0
    shared: dict[Any, Any] = field(default_factory=dict, repr=False)
    """What recipes, constraints and detectors keep here for each other, such as a surrogate."""


def own_queries(collection: Collection, attacked: Iterable[str], count: int, seed: int) -> Mapping[str, Query]:
    """Queries of an attacker's own: other queries of the collection, then sentences out of its documents.

    None has the text of a query under attack.
    """
    avoided = set(attacked)
    texts = {collection.queries[qid].text.casefold().strip() for qid in avoided}
    own: dict[str, Query] = {}

    def take(qid: str, query: Query) -> None:
        text = query.text.casefold().strip()
        if text and text not in texts and len(own) < count:
            texts.add(text)
            own[qid] = query

    for qid in draws_for(seed, "own queries").shuffled(sorted(collection.queries.keys() - avoided)):
        take(qid, collection.queries[qid])
    if len(own) < count:
        for docno in draws_for(seed, "own sentences").shuffled(sorted(collection.docs)):
            sentences = [s for s in split_sentences(collection.docs[docno].text) if 4 <= len(s.split()) <= 30]
            if sentences:
                take(f"sentence-of-{docno}", Query(draws_for(seed, "own sentence", docno).choice(sentences)))
            if len(own) == count:
                break
    return own
