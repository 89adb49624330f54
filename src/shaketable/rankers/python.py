"""Rankers that are the user's Python objects: imported by name and adapted by the methods they have."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from shaketable.core.documents import Collection, Scores, Slate
from shaketable.core.errors import BadInput, RankerFailed, explain_user_errors
from shaketable.core.import_object import import_object
from shaketable.core.protocols import Ranker
from shaketable.scoring.validation import validate_scores

ScoreFunction: TypeAlias = Callable[[Sequence[Slate]], Sequence[Scores]]


@dataclass(frozen=True)
class PythonObject:
    """Your own Python object, written MODULE:OBJECT or MODULE:CLASS(k=2): a ranker, a class, a function and more.

    The module is searched in the current folder, then among the installed packages. `SCORING_INTERFACES` lists the
    supported objects, among them a sentence-transformers CrossEncoder and a PyTerrier transformer.
    """

    target: str

    def open(self, collection: Collection) -> Ranker:
        """Import the object and return it as a ranker."""
        return adapt(import_object(self.target), collection, self.target)


def adapt(thing: Any, collection: Collection, name: str = "") -> Ranker:
    """Return a ranker made from a user's object: by the first matching row of `SCORING_INTERFACES`, or by its `open`.

    A class is instantiated without arguments.

    >>> from shaketable.core.documents import Doc
    >>> def shorter(query, texts):
    ...     return [-len(text) for text in texts]
    >>> adapt(shorter, collection=None).score([Slate("q", (Doc("long"), Doc("it")))])
    [array([-4., -2.])]

    An object called with one list at a time, such as a function, is pointwise only if its attribute `pointwise` is
    True. An object called with pairs is pointwise. An object without a `name` gets the given name.
    """
    name = name or getattr(thing, "__name__", type(thing).__name__)
    if inspect.isclass(thing):
        with explain_user_errors(f"{name}: a class must need no arguments; otherwise name an instance of it"):
            thing = thing()
    if isinstance(thing, Ranker) and isinstance(thing.name, str) and accepts_arguments(thing.score, 1):
        return thing
    if callable(getattr(thing, "open", None)) and not hasattr(thing, "score"):
        with explain_user_errors(f"ranker {name} cannot be opened"):
            opened: Ranker = thing.open(collection)
        return opened
    for shape in SCORING_INTERFACES:
        method = getattr(thing, shape.method, None) if shape.method else thing
        if callable(method) and accepts_arguments(method, shape.parameter_count):
            return AdaptedRanker(
                name,
                shape.scorer(name, method),
                pointwise=getattr(thing, "pointwise", shape.pointwise) is True,
                fingerprint=_qualify_fingerprint(thing),
                cached=getattr(thing, "cached", True) is not False,
                noise=getattr(thing, "noise", 0.0),
            )
    accepted = ", ".join(shape.description for shape in SCORING_INTERFACES)
    raise BadInput(f"{name} is {type(thing).__name__}, not a ranker; it may have {accepted}, or open(collection)")


def _qualify_fingerprint(thing: Any) -> str | None:
    """Return the object's fingerprint, prefixed with its class: two classes may have the same fingerprint."""
    if (said := getattr(thing, "fingerprint", None)) is None:
        return None
    kind = thing if inspect.isroutine(thing) else type(thing)
    return f"{kind.__module__}:{kind.__qualname__} {said}"


@dataclass
class AdaptedRanker:
    """A ranker around a user's object."""

    name: str
    score: ScoreFunction
    pointwise: bool = False
    fingerprint: str | None = None
    cached: bool = True
    noise: float = 0.0


@dataclass(frozen=True)
class ScoringInterface:
    """A scoring method ("" is the object itself): its signature, and how slates become its arguments."""

    method: str
    parameter_count: int
    description: str
    scorer: Callable[[str, Callable[..., Any]], ScoreFunction]
    pointwise: bool = False


def accepts_arguments(function: Callable[..., Any], number: int) -> bool:
    """Return True if the function takes this many positional arguments, or has no signature."""
    try:
        inspect.signature(function).bind(*[None] * number)
    except TypeError:
        return False
    except ValueError:  # a C function without a signature
        return True
    return True


def make_slate_scorer(name: str, method: Callable[..., Any]) -> ScoreFunction:
    """Return the method itself, which scores slates."""
    return method


def make_list_scorer(name: str, method: Callable[..., Any]) -> ScoreFunction:
    """Return a scorer that calls f(query, texts) for each list; it skips empty lists."""

    def score(slates: Sequence[Slate]) -> list[Scores]:
        return [
            validate_scores(name, slate, method(slate.query, [doc.text for doc in slate.docs]) if slate.docs else [])
            for slate in slates
        ]

    return score


def make_pair_scorer(name: str, method: Callable[..., Any]) -> ScoreFunction:
    """Return a scorer that calls f([(query, text), ...]) once for all slates, so the scores must be pointwise."""

    def score(slates: Sequence[Slate]) -> list[Scores]:
        pairs = [(slate.query, doc.text) for slate in slates for doc in slate.docs]
        found = method(pairs) if pairs else []
        scores = np.asarray(found if hasattr(found, "__array__") else list(found), dtype=np.float64)
        if scores.shape != (len(pairs),):
            raise RankerFailed(f"ranker {name} returned scores of shape {scores.shape} for {len(pairs)} pairs")
        return np.split(scores, np.cumsum([len(slate.docs) for slate in slates])[:-1]) if slates else []

    return score


def make_result_scorer(name: str, method: Callable[..., Any]) -> ScoreFunction:
    """Return a scorer for rank(query, texts) of the library rerankers: `doc_id` is the position in the list."""

    def score(slates: Sequence[Slate]) -> list[Scores]:
        return [rank_slate(slate) for slate in slates]

    def rank_slate(slate: Slate) -> Scores:
        results: Iterable[Any] = method(slate.query, [doc.text for doc in slate.docs]) if slate.docs else []
        return align_scores(name, slate, {int(result.doc_id): result.score for result in results})

    return score


def make_frame_scorer(name: str, method: Callable[..., Any]) -> ScoreFunction:
    """Return a scorer for PyTerrier's transform(frame): one row per text in, one `score` per row out, in any order."""

    def score(slates: Sequence[Slate]) -> list[Scores]:
        import pandas as pd

        rows = [
            (str(q), slate.query, str(place), doc.text)
            for q, slate in enumerate(slates)
            for place, doc in enumerate(slate.docs)
        ]
        found: list[dict[int, Any]] = [{} for _ in slates]
        if rows:
            frame = method(pd.DataFrame(rows, columns=["qid", "query", "docno", "text"]))
            for q, d, value in zip(frame["qid"], frame["docno"], frame["score"], strict=True):
                found[int(q)][int(d)] = value
        return [align_scores(name, slate, scores) for slate, scores in zip(slates, found, strict=True)]

    return score


def align_scores(name: str, slate: Slate, scores: dict[int, Any]) -> Scores:
    """Return the scores in list order; each text must have one."""
    if scores.keys() != set(range(len(slate.docs))):
        raise RankerFailed(f"ranker {name}, query {slate.query!r}: scored {len(scores)} of {len(slate.docs)} texts")
    return validate_scores(name, slate, [scores[i] for i in range(len(slate.docs))])


SCORING_INTERFACES = (
    ScoringInterface("score", 1, "score(slates)", make_slate_scorer),
    ScoringInterface("predict", 1, "predict(pairs of query and text)", make_pair_scorer, pointwise=True),
    ScoringInterface("score_iter", 1, "score_iter(pairs of query and text)", make_pair_scorer, pointwise=True),
    ScoringInterface("transform", 1, "transform(frame with qid, query, docno, text)", make_frame_scorer),
    ScoringInterface("rank", 2, "rank(query, texts)", make_result_scorer),
    ScoringInterface("", 2, "be a function f(query, texts)", make_list_scorer),
)
