"""Small grounds for probes to draw from."""

from __future__ import annotations

from collections.abc import Mapping

from shaketable.data.corpus import MemoryCorpus
from shaketable.probes.ground import Ground
from shaketable.text.language import Language
from shaketable.text.light import Light
from shaketable.text.tokens import Tokenizer
from shaketable.types import Collection, Contrast, Doc, Omitted, Probe, Query


def ground(
    docs: Mapping[str, str | Doc],
    qrels: Mapping[str, Mapping[str, int]] | None = None,
    queries: Mapping[str, str] | None = None,
    *,
    language: Language | None = None,
    seed: int = 0,
) -> Ground:
    """Documents that are judged 1 for one query, unless it is said otherwise."""
    queries = queries or {"q": "old boats"}
    qrels = qrels or {"q": dict.fromkeys(docs, 1)}
    corpus = MemoryCorpus({docno: Doc(doc) if isinstance(doc, str) else doc for docno, doc in docs.items()})
    collection = Collection("toys", corpus, {qid: Query(text) for qid, text in queries.items()}, qrels)
    return Ground(collection, list(queries), language or Light(), Tokenizer(), seed)


def one(probe: Probe, text: str, query: str = "old boats", seed: int = 0) -> Contrast | Omitted:
    """What a probe makes of one text."""
    (found,) = probe.contrasts(ground({"d": text}, queries={"q": query}, seed=seed))
    return found


def after(probe: Probe, text: str, query: str = "old boats", seed: int = 0) -> str:
    """The text that a probe makes of another."""
    found = one(probe, text, query, seed)
    assert isinstance(found, Contrast), found
    return found.first.body


def reason(probe: Probe, text: str, query: str = "old boats") -> str:
    """Why a probe leaves a text out."""
    found = one(probe, text, query)
    assert isinstance(found, Omitted), found
    return found.reason
