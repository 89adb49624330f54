"""Rankers that are the user's Python objects: imported by name and adapted by the methods they have."""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from shaketable.core.documents import Collection, Scores, Slate
from shaketable.core.errors import BadInput, RankerFailed, check_parameter, explain_user_errors
from shaketable.core.import_object import call_with_arguments, locate_object, parse_arguments
from shaketable.core.protocols import Ranker
from shaketable.rankers.frameworks import (
    RankLists,
    describe_lists,
    find_reranker,
    rank_with_pyterrier,
    rank_with_rerankers,
)
from shaketable.rankers.source_fingerprint import SourceUnknown, find_module, fingerprint_module
from shaketable.scoring.validation import validate_scores

ScoreFunction: TypeAlias = Callable[[Sequence[Slate]], Sequence[Scores]]


OPTIONS: Mapping[str, tuple[type, str]] = {
    "pointwise": (bool, "True or False"),
    "revision": (str, "a text, such as '2'"),
}
"""The parameters of a spec that are for Shaketable, unless the user's object has parameters of these names."""


@dataclass(frozen=True)
class PythonObject:
    """Your own Python object, written MODULE:OBJECT or MODULE:CLASS(k=2): a ranker, a class, a function and more.

    The module is searched in the current folder, then among the installed packages. `SCORING_INTERFACES` lists the
    supported objects, and `rankers.frameworks.FRAMEWORKS` those of LangChain, LlamaIndex, Haystack, rerankers,
    sentence-transformers and PyTerrier. `pointwise=True` or `pointwise=False` in parentheses says whether a score
    depends on query and text alone; otherwise the audit finds out. Scores are cached under a hash of the source file,
    or under the text of `revision='2'`.
    """

    target: str = field(
        metadata={
            "says": "The function, object or class: module:object or ./file.py:object.",
            "example": "./mine.py:score",
        }
    )

    def open(self, collection: Collection) -> Ranker:
        """Import the object and return it as a ranker."""
        before = set(sys.modules)
        module, thing = locate_object(self.target)
        arguments = parse_arguments(self.target)
        args, named = arguments or ([], {})
        options = _take_options(self.target, thing, named)
        if args or named or (arguments is not None and not options):
            thing = call_with_arguments(thing, self.target, args, named)
        elif options and inspect.isroutine(thing) and not accepts_arguments(thing, 2):  # it makes the ranker
            thing = call_with_arguments(thing, self.target, (), {})
        what = f"{self.target.partition(':')[2].partition('(')[0]} {args!r} {sorted(named.items())!r}"
        if "revision" in options:
            identity = Identity(
                f"{self.target.partition(':')[0]}:{what} revision {options['revision']}", by_revision=True
            )
        else:
            identity = Identity.from_source(what, lambda: module, set(sys.modules) - before)
        return adapt(thing, collection, self.target, pointwise=options.get("pointwise"), identity=identity)


def _take_options(target: str, thing: Any, named: dict[str, Any]) -> dict[str, Any]:
    """Remove the options of this package from the parameters of an object, and return them."""
    try:
        own = set(inspect.signature(thing).parameters)
    except (TypeError, ValueError):  # not callable, or a C function without a signature
        own = set()
    options = {name: named.pop(name) for name in OPTIONS if name in named and name not in own}
    for name, value in options.items():
        kind, wanted = OPTIONS[name]
        check_parameter(target, isinstance(value, kind), name, wanted, value)
    return options


@dataclass(frozen=True)
class Identity:
    """The fingerprint of an object that declares none, or the reason why there is none."""

    fingerprint: str | None
    unknown_because: str = ""
    by_revision: bool = False

    @classmethod
    def from_source(
        cls, what: str, find: Callable[[], ModuleType], new_modules: AbstractSet[str] = frozenset()
    ) -> Identity:
        """Return the identity of `what` in the module that `find` returns, by the source of the module."""
        try:
            return cls(f"{what} source {fingerprint_module(find(), new_modules)}")
        except SourceUnknown as reason:
            return cls(None, str(reason))

    @classmethod
    def from_object(cls, thing: Any) -> Identity:
        """Return the identity of a function or class in memory."""
        return cls.from_source(getattr(thing, "__qualname__", ""), lambda: find_module(thing))

    def on_documents(self, collection: Collection) -> Identity:
        """Return the identity of a ranker that the object opens on a collection, which only a revision can vouch for.

        The ranker may depend on anything in the collection, for example on the judgements.
        """
        return Identity(f"{self.fingerprint} on {collection.docs.fingerprint}" if self.by_revision else None)

    @property
    def notice(self) -> str:
        """A sentence if the scores cannot be cached on disk."""
        if not self.unknown_because:
            return ""
        return (
            f"its scores are not cached on disk, because {self.unknown_because}; name it as FILE.py:FUNCTION, or give "
            "it an attribute fingerprint"
        )


def adapt(
    thing: Any,
    collection: Collection,
    name: str = "",
    *,
    pointwise: bool | None = None,
    identity: Identity | None = None,
) -> Ranker:
    """Return a ranker made from a user's object, by its framework, its `open` or a row of `SCORING_INTERFACES`.

    A class is instantiated without arguments.

    >>> from shaketable.core.documents import Doc
    >>> def shorter(query, texts):
    ...     return [-len(text) for text in texts]
    >>> adapt(shorter, collection=None).score([Slate("q", (Doc("long"), Doc("it")))])
    [array([-4., -2.])]

    The attributes of the object are used. `pointwise` overrides its attribute; without either, an object called with
    pairs is pointwise, and the engine finds out about all others. `identity` is for an object without the attribute
    `fingerprint`; by default it is that of its source file. An object without a `name` gets the given name.
    """
    name = name or getattr(thing, "__name__", type(thing).__name__)
    identity = identity or Identity.from_object(thing)
    if inspect.isclass(thing):
        with explain_user_errors(f"{name}: a class must need no arguments; otherwise name an instance of it"):
            thing = thing()
    if isinstance(thing, Ranker) and isinstance(thing.name, str) and accepts_arguments(thing.score, 1):
        return _declare(thing, name, pointwise, identity)
    if callable(getattr(thing, "open", None)) and not hasattr(thing, "score"):
        with explain_user_errors(f"ranker {name} cannot be opened"):
            opened: Ranker = thing.open(collection)
        return _declare(opened, name, pointwise, identity.on_documents(collection))
    if reranker := find_reranker(thing, name):
        known = pointwise if pointwise is not None else reranker.pointwise
        counters: Counter[str] = Counter()
        score, noise = reranker.make_scorer(name, known, counters), reranker.noise
        return _make_ranker(thing, name, score, known, identity, noise=noise, counters=counters)
    for shape in SCORING_INTERFACES:
        method = getattr(thing, shape.method, None) if shape.method else thing
        if callable(method) and accepts_arguments(method, shape.parameter_count):
            said = getattr(thing, "pointwise", shape.pointwise)
            known = pointwise if pointwise is not None else None if said is None else said is True
            return _make_ranker(thing, name, shape.scorer(name, method), known, identity)
    accepted = ", ".join(shape.description for shape in SCORING_INTERFACES)
    raise BadInput(f"{name} is {type(thing).__name__}, not a ranker; it may have {accepted}, or open(collection)")


def _make_ranker(
    thing: Any,
    name: str,
    score: ScoreFunction,
    pointwise: bool | None,
    identity: Identity,
    *,
    noise: float = 0.0,
    counters: Counter[str] | None = None,
) -> AdaptedRanker:
    fingerprint = _qualify_fingerprint(thing)
    return AdaptedRanker(
        name,
        score,
        pointwise=pointwise,
        fingerprint=fingerprint or identity.fingerprint,
        cached=getattr(thing, "cached", True) is not False,
        noise=getattr(thing, "noise", noise),
        notice="" if fingerprint else identity.notice,
        counters=Counter() if counters is None else counters,
    )


def _declare(ranker: Ranker, name: str, pointwise: bool | None, identity: Identity) -> Ranker:
    """Set the attributes of a user's ranker that were given or that it lacks; a class may forbid that."""
    if identity.fingerprint is not None and getattr(ranker, "fingerprint", None) is None:
        with suppress(AttributeError):
            ranker.fingerprint = identity.fingerprint  # type: ignore[attr-defined]
    if pointwise is not None:
        try:
            ranker.pointwise = pointwise  # type: ignore[attr-defined]
        except AttributeError:
            raise BadInput(f"{name}: pointwise cannot be set, because {type(ranker).__name__} forbids it") from None
    return ranker


def _qualify_fingerprint(thing: Any) -> str | None:
    """Return the object's fingerprint, prefixed with its class: two classes may have the same fingerprint."""
    if (said := getattr(thing, "fingerprint", None)) is None:
        return None
    kind = thing if inspect.isroutine(thing) else type(thing)
    return f"{kind.__module__}:{kind.__qualname__} {said}"


@dataclass
class AdaptedRanker:
    """A ranker around a user's object; `pointwise` is None if the object does not declare it.

    `counters` counts the lists of a framework, and those that lacked documents or scores.
    """

    name: str
    score: ScoreFunction
    pointwise: bool | None = None
    fingerprint: str | None = None
    cached: bool = True
    noise: float = 0.0
    notice: str = ""
    counters: Counter[str] = field(default_factory=Counter)

    @property
    def remark(self) -> str:
        """A sentence on lists that lacked documents or scores."""
        return describe_lists(self.counters)


@dataclass(frozen=True)
class ScoringInterface:
    """A scoring method ("" is the object itself): its signature, and how slates become its arguments."""

    method: str
    parameter_count: int
    description: str
    scorer: Callable[[str, Callable[..., Any]], ScoreFunction]
    pointwise: bool | None = None


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
    """Return a scorer for rank(query, texts), as in the library rerankers: `doc_id` is the position in the list."""
    return make_complete_scorer(name, rank_with_rerankers(method))


def make_frame_scorer(name: str, method: Callable[..., Any]) -> ScoreFunction:
    """Return a scorer for transform(frame), as in PyTerrier: one row per text in, one `score` per row out."""
    return make_complete_scorer(name, rank_with_pyterrier(method))


def make_complete_scorer(name: str, rank_lists: RankLists) -> ScoreFunction:
    """Return a scorer for lists with a score for each text, in any order."""

    def score(slates: Sequence[Slate]) -> list[Scores]:
        return [
            align_scores(name, slate, {one.position: one.score for one in returned})
            for slate, returned in zip(slates, rank_lists(slates), strict=True)
        ]

    return score


def align_scores(name: str, slate: Slate, scores: Mapping[int | None, Any]) -> Scores:
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
