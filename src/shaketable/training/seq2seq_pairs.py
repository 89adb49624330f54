"""Pairs of a source and a target for writers: from files, topics, queries and judgements."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from shaketable.core.documents import Collection, Run
from shaketable.core.errors import BadInput, MissingExtra, quote_value
from shaketable.files.reading import read_lines
from shaketable.training.list_sources import JudgedLists

if TYPE_CHECKING:
    pass

TOPIC_COLLECTIONS = (
    "trec-robust04",
    "gov2/trec-tb-2004",
    "aquaint/trec-robust-2005",
    "gov/trec-web-2002",
    "clueweb12/b13/ntcir-www-2",
    "clueweb12/b13/ntcir-www-3",
    "clueweb12/b13/trec-misinfo-2019",
    "cord19/trec-covid",
    "dd-trec-2015",
    "dd-trec-2016",
    "dd-trec-2017",
)
"""The collections of ir_datasets whose topics paper 004 (3.2.2) learns titles from; it counts 1,322 pairs. The library
no longer has the last three (0.6.3)."""
ANSWER_WORDS = ("true", "false")


class SourceTarget(NamedTuple):
    """A text to read and a text to write. If a source is too long, the part after a tab is never truncated."""

    source: str
    target: str


def read_pairs(path: Path, targets: Sequence[str] = ()) -> list[SourceTarget]:
    """Read pairs from a TSV file, plain or gzipped: source, tab, target; `targets` are the allowed targets, if any."""
    pairs = []
    for number, line in read_lines(path):
        fields = line.split("\t")
        if len(fields) != 2 or not all(field.strip() for field in fields):
            raise BadInput("a line must have an input text, a tab and an output text", path, number)
        if targets and fields[1] not in targets:
            raise BadInput(
                f"the output text must be {' or '.join(targets)}, not {quote_value(fields[1])}", path, number
            )
        pairs.append(SourceTarget(*fields))
    return pairs


def build_topic_pairs(names: Sequence[str] = TOPIC_COLLECTIONS) -> tuple[list[SourceTarget], dict[str, str]]:
    """Return descriptions and titles of topics of ir_datasets, and the reasons why collections are missing."""
    try:
        import ir_datasets
    except ModuleNotFoundError as error:
        raise MissingExtra("data", "topics of ir_datasets") from error
    pairs: list[SourceTarget] = []
    lacking: dict[str, str] = {}
    for name in names:
        try:
            topics = [(topic.description, topic.title) for topic in ir_datasets.load(name).queries_iter()]
        except Exception as error:  # the library raises many types of errors
            lacking[name] = str(error).strip().partition("\n")[0] or type(error).__name__
            continue
        pairs += (SourceTarget(*(" ".join(text.split()) for text in topic)) for topic in topics if all(topic))
    if not pairs:
        whys = "; ".join(f"{name} ({why})" for name, why in lacking.items())
        raise BadInput(f"ir_datasets has no topics of these collections: {whys}")
    return pairs, lacking


def build_title_pairs(collection: Collection, qids: Sequence[str]) -> list[SourceTarget]:
    """Return descriptions and texts of queries that have both."""
    both = ((collection.queries[qid].description, collection.queries[qid].text) for qid in qids)
    words = ((description.split(), text.split()) for description, text in both)
    return [SourceTarget(" ".join(description), " ".join(text)) for description, text in words if description and text]


def build_query_pairs(collection: Collection, qids: Sequence[str]) -> list[SourceTarget]:
    """Return relevant documents and their queries, for doc2query."""
    judged = ((qid, docno) for qid in qids for docno, grade in collection.qrels.get(qid, {}).items() if grade > 0)
    return [
        SourceTarget(" ".join(collection.docs[docno].text.split()), collection.queries[qid].text)
        for qid, docno in judged
        if docno in collection.docs
    ]


def build_answer_pairs(
    collection: Collection, qids: Sequence[str], candidates: Run, seed: int = 0
) -> list[SourceTarget]:
    """Return prompts and answers, as many true as false, for monoT5."""
    lists = JudgedLists(collection, qids, candidates, size=2, seed=seed)
    pairs = []
    for sample in (lists.draw(number, 0) for number in range(len(lists))):
        best = max(sample.labels)
        for text, label in zip(sample.texts, sample.labels, strict=True):
            query, text = " ".join(sample.query.split()), " ".join(text.split())
            pairs.append(
                SourceTarget(f"Query: {query} Document: {text}\tRelevant:", "true" if label == best else "false")
            )
    return pairs
