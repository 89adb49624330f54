"""Small contexts for probes to draw from."""

from __future__ import annotations

from collections.abc import Mapping

from shaketable.core.documents import Collection, Doc, Query
from shaketable.core.protocols import Probe, Skipped, TextPair
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.nlp.analyzer import Analyzer
from shaketable.nlp.parser import Parser
from shaketable.nlp.rule_based import RuleBasedParser
from shaketable.probes.context import ProbeContext


def context(
    docs: Mapping[str, str | Doc],
    qrels: Mapping[str, Mapping[str, int]] | None = None,
    queries: Mapping[str, str] | None = None,
    *,
    language: Parser | None = None,
    seed: int = 0,
) -> ProbeContext:
    """Documents with grade 1 for one query by default."""
    queries = queries or {"q": "old boats"}
    qrels = qrels or {"q": dict.fromkeys(docs, 1)}
    corpus = MemoryCorpus({docno: Doc(doc) if isinstance(doc, str) else doc for docno, doc in docs.items()})
    collection = Collection("toys", corpus, {qid: Query(text) for qid, text in queries.items()}, qrels)
    return ProbeContext(collection, list(queries), language or RuleBasedParser(), Analyzer(), seed)


def one(probe: Probe, text: str, query: str = "old boats", seed: int = 0) -> TextPair | Skipped:
    """Return the result of a probe on one text."""
    (found,) = probe.draw_pairs(context({"d": text}, queries={"q": query}, seed=seed))
    return found


def after(probe: Probe, text: str, query: str = "old boats", seed: int = 0) -> str:
    """Return the changed text of a probe."""
    found = one(probe, text, query, seed)
    assert isinstance(found, TextPair), found
    return found.first.body


def reason(probe: Probe, text: str, query: str = "old boats") -> str:
    """Why a probe leaves a text out."""
    found = one(probe, text, query)
    assert isinstance(found, Skipped), found
    return found.reason
