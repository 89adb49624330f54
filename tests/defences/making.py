"""Adversarial examples against BM25 on the sample, for tests, and for a process that is killed while it makes them."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from shaketable.attacks.synonyms import GreedySynonyms
from shaketable.core.documents import Slate, rank_docnos
from shaketable.datasets.sample import read_sample
from shaketable.defences import adversarial_examples
from shaketable.defences.adversarial_examples import ExampleGenerator, ExampleSpec, draw_documents
from shaketable.rankers.lexical import BM25
from tests.attacks.setups import knowledge_of, target_for

RECIPE = GreedySynonyms(words=3)


def making(
    queries: int = 6, documents: int = 3, seed: int = 0, dies_at: int = 0, count: Any = None
) -> ExampleGenerator:
    """Examples for the first queries of the sample; `dies_at` is the part at which the process kills itself."""
    collection = read_sample()
    ranker = BM25().open(collection)
    qids = list(collection.queries)[:queries]
    found = ranker.search([collection.queries[qid].text for qid in qids], 20)
    candidates = dict(zip(qids, found, strict=True))
    chosen = draw_documents(collection, candidates, qids, ExampleSpec("greedy(words=3)", documents), seed)
    parts = 0

    def target(some: Sequence[str]):
        nonlocal parts
        parts += 1
        if count:
            count(list(some))
        if parts == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        target = target_for(ranker)
        docnos = {qid: rank_docnos(candidates[qid]) for qid in some}
        target.read_lists(
            {
                qid: (Slate(collection.queries[qid].text, tuple(collection.docs[d] for d in docnos[qid])), docnos[qid])
                for qid in some
            }
        )
        return target

    def attack():
        return RECIPE.open(knowledge_of(collection))

    return ExampleGenerator("bm25", "bm25 on the sample", collection, "greedy(words=3)", chosen, attack, target, seed)


if __name__ == "__main__":
    adversarial_examples.QUERIES_PER_PART = 2
    making(dies_at=int(sys.argv[1])).run()
