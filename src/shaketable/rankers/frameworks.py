"""Rerankers of other frameworks as rankers.

The frameworks are LangChain, LlamaIndex, Haystack, rerankers, sentence-transformers and PyTerrier. An object is
recognised by the modules of its classes and by its methods. A framework is imported only for an object that is its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from shaketable.core.documents import Scores, Slate
from shaketable.core.errors import BadInput, RankerFailed, explain_user_errors
from shaketable.scoring.validation import validate_scores

ID_PREFIX = "shaketable-"
"""The beginning of the ids that frameworks get; the position in the list follows. A retriever has other ids."""
ID_KEY = "shaketable_id"
"""The metadata key of a LangChain document that holds its id."""
CUT_OFF_NAMES = ("top_n", "top_k", "k")
"""The attributes with which rerankers say how many documents they return."""
FLOAT32_NOISE = 1e-6
"""The difference of a float32 score between batches, relative to its size."""


class ReturnedDocument(NamedTuple):
    """A document that a framework returned: its position in the input if it is known, its text, and its score."""

    position: int | None
    text: str
    score: Any = None


RankLists: TypeAlias = Callable[[Sequence[Slate]], Iterable[Sequence[ReturnedDocument]]]
"""A function that returns the documents of each slate, best first."""
ScoreSlates: TypeAlias = Callable[[Sequence[Slate]], Sequence[Scores]]


@dataclass(frozen=True)
class Framework:
    """A framework, how its rerankers are recognised, and how one of them scores slates.

    name        the name in messages
    package     the package of its classes, metaclasses included
    methods     the methods of a reranker
    rank_lists  returns the function that ranks slates with an object
    advice      the objects that can be used, for the message about any other object
    pointwise   True if a score certainly depends on query and text alone, False if a list may be shortened, None if the
                engine should find out
    accepts     returns True for an object that has the methods and can be used
    """

    name: str
    package: str
    methods: tuple[str, ...]
    rank_lists: Callable[[Any], RankLists]
    advice: str
    pointwise: bool | None = False
    accepts: Callable[[Any], bool] = lambda thing: True

    def is_origin(self, thing: Any) -> bool:
        """Return True if the object is an instance of one of the framework's classes."""
        kinds = (*type(thing).__mro__, type(type(thing)))
        return any(kind.__module__.partition(".")[0] == self.package for kind in kinds)

    def has_reranker(self, thing: Any) -> bool:
        """Return True if an object of the framework is a reranker."""
        return all(callable(getattr(thing, name, None)) for name in self.methods) and self.accepts(thing)


@dataclass(frozen=True)
class Reranker:
    """A framework's object that can be used as a ranker."""

    framework: Framework
    source_object: Any

    @property
    def pointwise(self) -> bool | None:
        """The declaration of the object, or that of its framework; a reranker that cuts its lists is list-wise."""
        said = getattr(self.source_object, "pointwise", None)
        if isinstance(said, bool):
            return said
        return False if _cuts_lists(self.source_object) else self.framework.pointwise

    @property
    def noise(self) -> float:
        return FLOAT32_NOISE if self.framework.pointwise else 0.0

    def make_scorer(self, name: str, pointwise: bool | None, counters: Counter[str]) -> ScoreSlates:
        """Return the function that scores slates; `counters` counts the lists that were short or had no scores."""
        with explain_user_errors(f"{name}: {self.framework.name} cannot be used"):
            rank_lists = self.framework.rank_lists(self.source_object)

        def score(slates: Sequence[Slate]) -> list[Scores]:
            lists = rank_lists(slates)
            if self.framework.pointwise:
                return [
                    validate_scores(name, slate, [one.score for one in returned])
                    for slate, returned in zip(slates, lists, strict=True)
                ]
            may_be_short = pointwise is False
            return [
                align_documents(name, slate, returned, may_be_short, counters)
                for slate, returned in zip(slates, lists, strict=True)
            ]

        return score


def find_reranker(thing: Any, name: str = "") -> Reranker | None:
    """Return the reranker that an object of a framework is; None for an object of no framework.

    An object of a framework that cannot rank is an error.
    """
    origins = [framework for framework in FRAMEWORKS if framework.is_origin(thing)]
    for framework in origins:
        if framework.has_reranker(thing):
            return Reranker(framework, thing)
    if not origins:
        return None
    kind, origin = type(thing).__name__, origins[0]
    raise BadInput(f"{name or 'the ranker'} is a {kind} of {origin.name}, which ranks no documents; {origin.advice}")


def align_documents(
    name: str, slate: Slate, returned: Sequence[ReturnedDocument], may_be_short: bool, counters: Counter[str]
) -> Scores:
    """Return one score per document of a slate for a list as a framework returned it, best first.

    The framework's scores are used if every document has one and they fall along the list. Otherwise ranks are the
    scores. Missing documents come last and tie.
    """
    count = len(slate.docs)
    positions = _find_positions(name, slate, returned)
    counters["lists"] += 1
    if len(positions) < count:
        if not may_be_short:
            raise RankerFailed(
                f"ranker {name}, query {slate.query!r}: returned {len(positions)} of {count} documents, so a score "
                "depends on the list; say so with pointwise=False, in its spec or as an attribute of the object"
            )
        counters["short"] += 1
        counters["missing"] += count - len(positions)
    values: Scores = np.arange(len(positions), 0, -1, dtype=np.float64)
    if positions and all(one.score is not None for one in returned):
        found = Slate(slate.query, tuple(slate.docs[at] for at in positions))
        scores = validate_scores(name, found, [one.score for one in returned])
        if (np.diff(scores) <= 0).all():
            values = scores
        else:
            counters["disordered"] += 1
    elif positions:
        counters["unscored"] += 1
    lowest = values.min(initial=0.0)
    aligned = np.full(count, lowest - 1.0 - abs(lowest))
    aligned[positions] = values
    return aligned


def describe_lists(counters: Counter[str]) -> str:
    """Return a remark on lists that were short or had no scores of their own.

    >>> describe_lists(Counter(lists=8, short=8, missing=16, unscored=8))
    '8 of 8 lists lacked documents (16 in all), which are ranked last; 8 of 8 lists had no scores, so ranks count'
    """
    lists, said = counters["lists"], []
    if counters["short"]:
        said.append(
            f"{counters['short']:,} of {lists:,} lists lacked documents ({counters['missing']:,} in all), which are "
            "ranked last"
        )
    if counters["unscored"]:
        said.append(f"{counters['unscored']:,} of {lists:,} lists had no scores, so ranks count")
    if counters["disordered"]:
        said.append(
            f"{counters['disordered']:,} of {lists:,} lists were not in the order of their scores, so ranks count"
        )
    return "; ".join(said)


def _find_positions(name: str, slate: Slate, returned: Sequence[ReturnedDocument]) -> list[int]:
    """Return the position of each returned document in the slate: the known one, or that of its text."""
    left: dict[str, list[int]] = {}
    for at, doc in enumerate(slate.docs):
        left.setdefault(doc.text, []).append(at)
    positions: list[int] = []
    for one in returned:
        known = one.position if one.position is not None else next(iter(left.get(one.text, ())), -1)
        if not 0 <= known < len(slate.docs) or known in positions:
            fault = "the same document twice" if known in positions else "a document that was not in its input"
            raise RankerFailed(
                f"ranker {name}, query {slate.query!r}: returned {fault} ({one.text[:60]!r}); a re-ranker returns "
                "documents of its input, each of them once"
            )
        positions.append(known)
        same = left[slate.docs[known].text]
        if known in same:
            same.remove(known)
    return positions


def _cuts_lists(thing: Any) -> bool:
    """Return True for an object, or a pipeline of objects, with a limit on the number of documents that it returns."""
    parts = (thing, *getattr(thing, "_transformers", ()))  # the parts of a PyTerrier pipeline
    return any(isinstance(getattr(part, name, None), int) for part in parts for name in CUT_OFF_NAMES)


def _parse_position(document_id: Any) -> int | None:
    """Return the position in the id that we gave a document; None if the framework gave it another id."""
    prefix, at = str(document_id)[: len(ID_PREFIX)], str(document_id)[len(ID_PREFIX) :]
    return int(at) if prefix == ID_PREFIX and at.isdecimal() else None


def _rank_each_list(rank: Callable[[str, list[str]], Sequence[ReturnedDocument]]) -> RankLists:
    """Return a function that calls `rank` for each slate with documents."""
    return lambda slates: [
        rank(slate.query, [doc.text for doc in slate.docs]) if slate.docs else () for slate in slates
    ]


def rank_with_langchain(compressor: Any) -> RankLists:
    """Return the function that ranks with a document compressor of LangChain.

    Rerankers write their scores into the metadata, as relevance_score; many write none.
    """
    make = import_module("langchain_core.documents").Document

    def rank(query: str, texts: list[str]) -> list[ReturnedDocument]:
        documents = [make(page_content=text, metadata={ID_KEY: f"{ID_PREFIX}{at}"}) for at, text in enumerate(texts)]
        return [
            ReturnedDocument(
                _parse_position(one.metadata.get(ID_KEY)), one.page_content, one.metadata.get("relevance_score")
            )
            for one in compressor.compress_documents(documents, query)
        ]

    return _rank_each_list(rank)


def rank_with_llama_index(postprocessor: Any) -> RankLists:
    """Return the function that ranks with a node postprocessor of LlamaIndex."""
    schema = import_module("llama_index.core.schema")

    def rank(query: str, texts: list[str]) -> list[ReturnedDocument]:
        nodes = [
            schema.NodeWithScore(node=schema.TextNode(id_=f"{ID_PREFIX}{at}", text=text))
            for at, text in enumerate(texts)
        ]
        return [
            ReturnedDocument(_parse_position(one.node.node_id), one.node.get_content(), one.score)
            for one in postprocessor.postprocess_nodes(nodes, query_str=query)
        ]

    return _rank_each_list(rank)


def rank_with_haystack(component: Any) -> RankLists:
    """Return the function that ranks with a ranker component of Haystack."""
    make = import_module("haystack").Document
    if callable(warm_up := getattr(component, "warm_up", None)):
        warm_up()  # loads the model; it does nothing the second time

    def rank(query: str, texts: list[str]) -> list[ReturnedDocument]:
        documents = [make(id=f"{ID_PREFIX}{at}", content=text) for at, text in enumerate(texts)]
        return [
            ReturnedDocument(_parse_position(one.id), one.content, one.score)
            for one in component.run(query=query, documents=documents)["documents"]
        ]

    return _rank_each_list(rank)


def rank_with_rerankers(rank_texts: Callable[[str, list[str]], Iterable[Any]]) -> RankLists:
    """Return the function that ranks with `rank` of the library rerankers: `doc_id` is the position in the list."""

    def rank(query: str, texts: list[str]) -> list[ReturnedDocument]:
        return [ReturnedDocument(int(one.doc_id), "", one.score) for one in rank_texts(query, texts)]

    return _rank_each_list(rank)


def rank_with_pyterrier(transform: Callable[[Any], Any]) -> RankLists:
    """Return the function that ranks all slates with one call of `transform` of PyTerrier."""
    import pandas as pd

    def rank(slates: Sequence[Slate]) -> list[list[ReturnedDocument]]:
        rows = [
            (str(q), slate.query, f"{ID_PREFIX}{place}", doc.text)
            for q, slate in enumerate(slates)
            for place, doc in enumerate(slate.docs)
        ]
        lists: list[list[ReturnedDocument]] = [[] for _ in slates]
        if rows:
            found = transform(pd.DataFrame(rows, columns=["qid", "query", "docno", "text"]))
            order = {"by": "score", "ascending": False} if "score" in found else {"by": "rank"}
            found = found.sort_values(**order, kind="stable")
            scores = found["score"] if "score" in found else [None] * len(found)
            for q, docno, score in zip(found["qid"], found["docno"], scores, strict=True):
                at = _parse_position(docno)
                lists[int(q)].append(ReturnedDocument(-1 if at is None else at, str(docno), score))
        return lists

    return rank


def score_with_cross_encoder(model: Any) -> RankLists:
    """Return the function that scores with a CrossEncoder of sentence-transformers, in input order."""
    if (labels := getattr(model, "num_labels", 1)) != 1:
        raise BadInput(f"the cross-encoder has {labels} labels, but a ranker needs one score per pair (num_labels=1)")

    def rank(slates: Sequence[Slate]) -> Iterator[list[ReturnedDocument]]:
        pairs = [(slate.query, doc.text) for slate in slates for doc in slate.docs]
        scores = iter(model.predict(pairs, show_progress_bar=False) if pairs else ())
        for slate in slates:
            yield [ReturnedDocument(at, doc.text, next(scores)) for at, doc in enumerate(slate.docs)]

    return rank


def score_with_bi_encoder(model: Any) -> RankLists:
    """Return the function that scores with a bi-encoder of sentence-transformers, in input order.

    The model compares the vectors by its own similarity, and puts its own prompts before queries and documents.
    """

    def rank(slates: Sequence[Slate]) -> Iterator[list[ReturnedDocument]]:
        encode = {"convert_to_tensor": True, "show_progress_bar": False}
        places = {text: at for at, text in enumerate(dict.fromkeys(d.text for slate in slates for d in slate.docs))}
        queries = model.encode_query([slate.query for slate in slates], **encode)
        texts: Any = model.encode_document(list(places), **encode) if places else ()
        for number, slate in enumerate(slates):
            chosen = [places[doc.text] for doc in slate.docs]
            scores = model.similarity(queries[number : number + 1], texts[chosen])[0].tolist() if chosen else ()
            yield [
                ReturnedDocument(at, doc.text, score)
                for (at, doc), score in zip(enumerate(slate.docs), scores, strict=True)
            ]

    return rank


def _takes_query_and_documents(component: Any) -> bool:
    """Return True if `run` of a Haystack component takes a query and documents: its sockets name its inputs."""
    inputs = getattr(component, "__haystack_input__", None)
    return hasattr(inputs, "query") and hasattr(inputs, "documents")


_ENCODER_ADVICE = "pass a CrossEncoder or a SentenceTransformer, from version 5 on"

FRAMEWORKS = (
    Framework(
        "LangChain",
        "langchain_core",
        ("compress_documents",),
        rank_with_langchain,
        "pass a document compressor, such as the base_compressor of a ContextualCompressionRetriever",
    ),
    Framework(
        "LlamaIndex",
        "llama_index",
        ("postprocess_nodes",),
        rank_with_llama_index,
        "pass a node postprocessor, such as one of the node_postprocessors of a query engine",
    ),
    Framework(
        "Haystack",
        "haystack",
        ("run",),
        rank_with_haystack,
        "pass a component whose run() takes query and documents, such as pipeline.get_component('ranker')",
        accepts=_takes_query_and_documents,
    ),
    Framework(
        "rerankers",
        "rerankers",
        ("rank",),
        lambda ranker: rank_with_rerankers(ranker.rank),
        "pass an object that Reranker(...) returns",
        pointwise=None,
    ),
    Framework(
        "sentence-transformers",
        "sentence_transformers",
        ("predict",),
        score_with_cross_encoder,
        _ENCODER_ADVICE,
        pointwise=True,
    ),
    Framework(
        "sentence-transformers",
        "sentence_transformers",
        ("encode_query", "encode_document", "similarity"),
        score_with_bi_encoder,
        _ENCODER_ADVICE,
        pointwise=True,
    ),
    Framework(
        "PyTerrier",
        "pyterrier",
        ("transform",),
        lambda transformer: rank_with_pyterrier(transformer.transform),
        "pass a transformer that re-ranks, with a method transform(frame)",
        pointwise=None,
    ),
)
