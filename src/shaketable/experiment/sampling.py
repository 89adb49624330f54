"""The queries of an experiment, and the number of queries of each test, for audits that cannot afford all queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from shaketable.core.documents import Collection, Query
from shaketable.core.errors import BadInput
from shaketable.core.seeding import make_item_rng


@dataclass(frozen=True)
class SampleSizes:
    """The number of queries that each test of an audit uses.

    A sample is the first queries in the random order of the experiment, so a smaller sample is part of a larger one.

    Parameters
    ----------
    default
        The number of queries of a test without a number of its own; None means all queries.
    by_test
        (facet, test) -> number of queries; 0 means that the test does not run. The test is "" if the facet has no
        panel of tests.
    """

    default: int | None = None
    by_test: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """True if all tests use all queries."""
        return self.default is None and not self.by_test

    def get_size(self, facet: str, test: str = "") -> int | None:
        """Return the number of queries of a test; None means all queries."""
        return self.by_test.get((facet, test), self.default)


def select_queries(
    collection: Collection, split: str | None, limit: int | None, sample: int | None, seed: int
) -> dict[str, Query]:
    """Return the queries of a split, judged ones if there are judgements, without empty texts.

    `limit` keeps the first queries of the collection, `sample` the first of these in a random order.
    """
    judged, known = collection.qrels, collection.queries
    asked = known if split is None else [qid for qid in collection.splits[split] if qid in known]
    wanted = [qid for qid in asked if known[qid].text.strip() and (not judged or qid in judged)][:limit]
    if not wanted:
        reason = "has judgements" if known else "is there"
        raise BadInput(f"collection {collection.name}: no query {reason}; run `shaketable doctor` for details")
    drawn = set(shuffle_queries(wanted, seed)[:sample])
    return {qid: known[qid] for qid in wanted if qid in drawn}


def collect_weights(queries: Mapping[str, Query]) -> dict[str, float]:
    """Return the weight of each query in a mean; empty if all queries weigh the same."""
    weights = {qid: query.weight for qid, query in queries.items()}
    return weights if len(set(weights.values())) > 1 else {}


def shuffle_queries(qids: Iterable[str], seed: int) -> list[str]:
    """Return query ids in a random order that does not depend on the given one."""
    return sorted(qids, key=lambda qid: make_item_rng(seed, "sample of queries", qid).random_bits())
