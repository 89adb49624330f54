"""Contract tests that you can run on your own rankers, transforms, probes, attacks and measures.

    def test_my_ranker():
        check_ranker(MyRanker())

Each check raises an AssertionError that names the violated rule, and returns None if all rules hold. No check needs
pytest, files or the network, and `python -O` does not disable them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from copy import deepcopy
from itertools import islice
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from shaketable.api.assertions import audit_by_rules, describe_broken_rules
from shaketable.api.options import CollectionLike, ExperimentOptions
from shaketable.api.ranker_names import Rankers
from shaketable.attacks.runner import run_attacks
from shaketable.attacks.target import Target
from shaketable.core.attack_types import Attack, AttackCase, AttackOutcome
from shaketable.core.documents import Collection, Doc, Scores, Slate, rank_docnos
from shaketable.core.errors import ShaketableError
from shaketable.core.protocols import (
    ChangeMeasure,
    Model,
    Probe,
    Ranker,
    Retriever,
    Skipped,
    SpreadMeasure,
    Task,
    TextPair,
    Transform,
    TransformContext,
)
from shaketable.core.registries import RANKERS
from shaketable.core.registry import Registry
from shaketable.core.seeding import make_item_rng
from shaketable.datasets.corpus import MemoryCorpus
from shaketable.probes.context import ProbeContext
from shaketable.rankers.python import adapt
from shaketable.report.gates import Gate
from shaketable.scoring.validation import call_ranker

SCORE_TOLERANCE = 1e-6
"""Scores that differ by less than this, absolutely or relatively, count as equal."""

SAMPLE_SLATES = (
    Slate("red boat", (Doc("a small red boat"), Doc("the harbour at night"), Doc("boat, boat, boat"), Doc("red"))),
    Slate("tea", (Doc("How to brew green tea", title="Tea"), Doc("coffee beans"), Doc("thé à la menthe — 薄荷茶"))),
    Slate("who built the tower of london", (Doc("The White Tower was begun in 1078."), Doc("Bridges of London"))),
    Slate("red boat", (Doc("a red boat on a lake"), Doc("a small red boat"))),
)
"""The default slates for checks of rankers: short, unusual, repeated and not only English."""

SAMPLE_TEXTS = (
    "", " ", "\t\n", "a", "tea", "it is what it is", "what is durable medical equipment?", "flu symptoms",
    "RED  boat\ton the LAKE", "aaaa aaaa", "noon", "1984", "c++ vs. c#", "don't panic!",
    "café crème e\u0301te\u0301", "İstanbul ﬁne straße", "東京 の 天気", "погода в москве", "طقس القاهرة", "🙂 🙂🙃",
    "smile 🙂 please", "\u200b\u0301 \ufeff", "\ud800 lone surrogate", "x" * 10_000, "boat " * 2_000,
    "- -- --- ... ?!",
)  # fmt: skip
"""The default texts for checks of transforms: empty, one word, stop words, many scripts, very long."""

MAX_SUMMARY_CHARS = 120
"""Maximum length of a docstring's first line in a listing."""


def check_ranker(thing: Any, slates: Sequence[Slate] | None = None) -> None:
    """Check the contract of a ranker (`core.protocols.Ranker`).

    Parameters
    ----------
    thing
        A ranker, or any other object that `--ranker` accepts.
    slates
        The slates to score; `SAMPLE_SLATES` by default.
    """
    own = getattr(thing, "name", "its own")
    _require(isinstance(own, str) and bool(own), f"{thing!r}: name must be a text, it is {own!r}")
    try:
        ranker = adapt(thing, Collection("no documents", MemoryCorpus({}), {}))
    except ShaketableError as error:
        raise AssertionError(str(error)) from error
    name = ranker.name
    pointwise = getattr(ranker, "pointwise", None)
    _require(isinstance(pointwise, bool | None), f"{name}: pointwise must be True, False or absent, not {pointwise!r}")
    mark = getattr(ranker, "fingerprint", None)
    _require(mark is None or (isinstance(mark, str) and mark != ""), f"{name}: fingerprint must be a text or absent")

    slates = list(slates or SAMPLE_SLATES)
    _check_input_unchanged(ranker, name, slates)

    def score(law: str, some: Sequence[Slate]) -> list[Scores]:
        try:
            return call_ranker(ranker, name, list(some))
        except ShaketableError as error:
            raise AssertionError(f"{law}: {error}") from error

    def same(law: str, left: Sequence[Scores], right: Sequence[Scores]) -> None:
        for slate, a, b in zip(slates, left, right, strict=True):
            _require(_is_close(a, b), f"{name}: {law}; the query {slate.query!r} had {a} and then {b}")

    query, docs = slates[0].query, slates[0].docs
    score("no slates must give no arrays", [])
    score("a slate without documents must give an empty array", [Slate(query, ())])
    score("a slate of one document must give one score", [Slate(query, docs[:1])])
    score("an empty text must be scored like any other", [Slate(query, (Doc(""), *docs[:2]))])
    score("an empty query must be scored like any other", [Slate("", docs)])
    first = score("each slate must give one finite score for each document", slates)
    same("the same call must give the same scores", first, score("a second call must work", slates))
    backwards = score("slates in another order must work", slates[::-1])[::-1]
    same("the order of slates must not matter", first, backwards)
    alone = [score("a slate alone must work", [slate])[0] for slate in slates]
    same("a slate's scores must not depend on the other slates", first, alone)
    if pointwise:
        reverse = [Slate(slate.query, slate.docs[::-1]) for slate in slates]
        permuted = [scores[::-1] for scores in score("documents in another order must work", reverse)]
        same("the scores of a pointwise ranker must not depend on the order of documents", first, permuted)
        singles = [[Slate(slate.query, (doc,)) for doc in slate.docs] for slate in slates]
        split = [np.array([float(s[0]) for s in score("one document must work", single)]) for single in singles]
        same("a pointwise ranker must score a document alone as in its list", first, split)
        more = [Slate(a.query, a.docs + b.docs) for a, b in zip(slates, slates[1:] + slates[:1], strict=True)]
        merged = [s[: len(a.docs)] for a, s in zip(slates, score("a longer list must work", more), strict=True)]
        same("a pointwise ranker must score a document in a longer list as before", first, merged)


def _check_input_unchanged(ranker: Ranker, name: str, slates: list[Slate]) -> None:
    given, before = list(slates), deepcopy(slates)
    try:
        ranker.score(given)
    except Exception as error:
        raise AssertionError(f"{name}: slates must be scored, score raised {error!r}") from error
    _require(given == before, f"{name}: score must not change the slates it is given")


def check_model(model: Model, collection: Collection) -> None:
    """Check the contract of a model: it is a value, its spec builds an equal model, and it opens a ranker.

    Parameters
    ----------
    model
        The model, a frozen dataclass with a method `open(collection)`.
    collection
        A small collection to open it on.
    """
    model_class = type(model).__name__
    _check_frozen_dataclass(type(model), model_class)
    text = RANKERS.spec(model)
    if text.partition("(")[0] in RANKERS:
        _require(RANKERS.build(text) == model, f"{model_class}: the text {text!r} must build an equal model")
    docs = tuple(collection.docs[docno] for docno in islice(collection.docs, 6))
    queries = [query.text for query in islice(collection.queries.values(), 3)]
    slates = [Slate(query, docs[: 6 - i]) for i, query in enumerate(queries)]
    ranker, again = model.open(collection), model.open(collection)
    check_ranker(ranker, slates)
    marks = [getattr(opened, "fingerprint", None) for opened in (ranker, again)]
    _require(marks[0] == marks[1], f"{model_class}: opened twice on one collection, it must have the same fingerprint")
    for slate, a, b in zip(slates, ranker.score(slates), again.score(slates), strict=True):
        _require(
            _is_close(a, b),
            f"{model_class}: opened twice, it must give the same scores; the query {slate.query!r} had {a} and {b}",
        )
    if isinstance(ranker, Retriever):
        check_retriever(ranker, queries)


def assert_robust(
    ranker: Rankers,
    data: CollectionLike = "sample",
    rules: str | Path | Gate | Sequence[str | Path | Gate] = (),
    tasks: str | Task | Iterable[str | Task] = (),
    **options: Unpack[ExperimentOptions],
) -> None:
    """Audit a ranker with `st.audit` and raise an AssertionError that lists the failed gates.

    Parameters
    ----------
    ranker
        One or several rankers, as for `st.audit`.
    data
        The collection.
    rules
        The gates: texts, rule files or gates. By default, the default gate.
    tasks
        The tasks to run; by default every task that applies.
    **options
        The options of an experiment, as for `st.audit`.

    Examples
    --------
    >>> assert_robust("bm25", "sample", "nDCG@10>=0.3", "effectiveness", max_queries=20)
    """
    results = audit_by_rules(ranker, data, rules, tasks, **options)[1]
    message = describe_broken_rules(results)
    _require(not message, message)


def check_retriever(retriever: Retriever, queries: Sequence[str]) -> None:
    """Check the contract of a retriever (`core.protocols.Retriever`).

    Parameters
    ----------
    retriever
        The retriever.
    queries
        Query texts to search with.
    """
    name = getattr(retriever, "name", type(retriever).__name__)
    queries = list(queries)

    def search(law: str, some: list[str], k: int) -> list[dict[str, float]]:
        try:
            found = retriever.search(some, k)
        except Exception as error:
            raise AssertionError(f"{name}: {law}, search raised {error!r}") from error
        _require(len(found) == len(some), f"{name}: {law}; there are {len(found)} lists for {len(some)} queries")
        return found

    search("no queries must give no lists", [], 10)
    search("an empty query must give a list, which may be empty", [""], 10)
    ten = search("each query must give one list", queries, 10)
    three = search("each query must give one list", queries, 3)
    for query, long, short in zip(queries, ten, three, strict=True):
        where = f"; the query {query!r} breaks this rule"
        _require(len(long) <= 10 and len(short) <= 3, f"{name}: search must give k documents at most{where}")
        _require(all(isinstance(docno, str) for docno in long), f"{name}: docnos must be texts{where}")
        _require(bool(np.isfinite(list(long.values())).all()), f"{name}: scores must be finite{where}")
        _require(
            list(long) == rank_docnos(long),
            f"{name}: documents must come best first, in the order of rank_docnos{where}",
        )
        head = dict(islice(long.items(), 3))
        _require(_has_same_scores(short, head), f"{name}: the top 3 must be the first 3 of the top 10{where}")
        alone = search("each query must give one list", [query], 10)[0]
        _require(
            _has_same_scores(alone, long),
            f"{name}: a query must give the same list alone and among other queries{where}",
        )


def check_transform(transform: Transform, texts: Sequence[str] | None = None, n_draws: int = 5) -> None:
    """Check the contract of a transform (`core.protocols.Transform`).

    Parameters
    ----------
    transform
        The transform.
    texts
        The texts to change; `SAMPLE_TEXTS` by default.
    n_draws
        The number of random draws for each text.
    """
    name = type(transform).__name__
    _require(isinstance(transform.category, str), f"{name}: category must be a text, empty if it depends on the words")
    context = TransformContext("red boat", "boats that are red", ("harbour", "sail", "anchor"))
    for text in texts or SAMPLE_TEXTS:
        for draw in range(n_draws):
            try:
                once, twice = (transform.apply(text, make_item_rng(7, text, draw), context) for _ in range(2))
            except Exception as error:
                raise AssertionError(f"{name}: apply must accept {text[:40]!r}, it raised {error!r}") from error
            _require(once == twice, f"{name}: the same random draws must give the same text; {text[:40]!r} gave two")
            if once is None:
                continue
            _require(isinstance(once, str), f"{name}: apply must return a text or None, not {once!r}")
            _require(
                bool(once.strip()),
                f"{name}: apply must not return an empty text; return None if the transform does not apply",
            )
            changed = once.split() != text.split()
            _require(changed, f"{name}: apply must not return its input; {text[:40]!r} came back")
    many = getattr(transform, "apply_many", None)
    if many:
        given = [text for text in texts or SAMPLE_TEXTS if len(text) < 100]
        rolls, contexts = [make_item_rng(7, text) for text in given], [context] * len(given)
        alone = [transform.apply(text, make_item_rng(7, text), context) for text in given]
        _require(
            many(given, rolls, contexts) == alone, f"{name}: apply_many must return what apply returns for each text"
        )


def check_probe(probe: Probe, context: ProbeContext) -> None:
    """Check the contract of a probe (`core.protocols.Probe`).

    Parameters
    ----------
    probe
        The probe.
    context
        The context to draw text pairs from.
    """
    name = type(probe).__name__
    _require(isinstance(probe.strategy, str) and bool(probe.strategy), f"{name}: strategy must be a text")
    _require(isinstance(probe.symmetric, bool), f"{name}: symmetric must be True or False")
    reason = probe.unavailable_reason(context)
    _require(isinstance(reason, str), f"{name}: unavailable_reason must return a text, empty if the probe is available")
    if reason:
        return
    once, twice = list(probe.draw_pairs(context)), list(probe.draw_pairs(context))
    _require(once == twice, f"{name}: the same context must give the same text pairs")
    for one in once:
        if isinstance(one, Skipped):
            _require(bool(one.reason.strip()), f"{name}: a skipped case must have a reason")
            continue
        _require(isinstance(one, TextPair), f"{name}: draw_pairs must yield text pairs, not {one!r}")
        _require(bool(one.query.strip()), f"{name}: a text pair must have a query")
        texts = isinstance(one.first, Doc) and isinstance(one.second, Doc)
        _require(texts and bool(one.first.text.strip()), f"{name}: a text pair must have two documents with a text")
        if one.docno:
            original = context.collection.docs[one.docno]
            kept = (one.first.title, one.first.url) == (original.title, original.url)
            _require(kept, f"{name}: the title and URL of {one.docno!r} must not change")


def check_attack(attack: Attack, cases: Sequence[AttackCase], target: Target, seed: int = 0) -> None:
    """Check the contract of an attack (`core.attack_types.Attack`).

    The outcome of a case must not depend on other cases. It must not depend on scores as long as the ranks are the
    same, because an attack sees only ranks. The changed document must keep the URL of the original.

    Parameters
    ----------
    attack
        The attack.
    cases
        Documents of the target's lists to attack.
    target
        The attacked ranker.
    seed
        The random seed.
    """
    name = type(attack).__name__
    outcomes = run_attacks(attack, cases, target, seed=seed)
    for case, outcome in zip(cases, outcomes, strict=True):
        _require(
            isinstance(outcome, AttackOutcome), f"{name}: document {case.docno!r}: {getattr(outcome, 'reason', '')}"
        )
        if isinstance(outcome, AttackOutcome):
            worth = case.goal.utility
            _require(
                worth(outcome.ranks_after) >= worth(outcome.ranks_before),
                f"{name}: an outcome must not be worse for the goal than the original document",
            )
            _require(outcome.doc.url == case.doc.url, f"{name}: the URL of {case.docno!r} must not change")
    backwards = run_attacks(attack, cases[::-1], target, seed=seed, max_concurrent=2)[::-1]
    _require(outcomes == backwards, f"{name}: the order and the number of cases must not change an outcome")
    bent = Target(lambda slates: [_distort_scores(scores) for scores in target.score(slates)], target.pointwise)
    bent.target_lists = {
        qid: dataclasses.replace(pool, scores=_distort_scores(pool.scores)) for qid, pool in target.target_lists.items()
    }
    _require(
        run_attacks(attack, cases, bent, seed=seed) == outcomes,
        f"{name}: an attack must depend on ranks only, not on scores",
    )


def _distort_scores(scores: Any) -> Any:
    """Return different scores in the same order."""
    return None if scores is None else np.sign(scores) * np.log1p(np.abs(np.asarray(scores, dtype=np.float64)))


def check_measure(measure: Any) -> None:
    """Check the contract of a measure.

    Parameters
    ----------
    measure
        A measure of change, `between(before, after)`, or of spread, `over(values)`.
    """
    change, spread = isinstance(measure, ChangeMeasure), isinstance(measure, SpreadMeasure)
    _require(change or spread, f"{measure!r}: a measure must have a method between(before, after) or over(values)")
    _check_frozen_dataclass(type(measure), type(measure).__name__)
    if change:
        _check_change_measure(measure)
    else:
        _check_spread_measure(measure)


def _check_change_measure(measure: Any) -> None:
    orders = [list(order) for order in ("abcdefghijkl", "bacdefghijkl", "lkjihgfedcba", "dbcaefghljki")]
    identity = _evaluate_measure(measure, *orders[:1] * 2)
    for order in [*orders, ["a", "b"], ["a"]]:
        itself = _evaluate_measure(measure, order, order)
        _require(
            _is_close(itself, identity), f"{measure!r}: no change must always give {identity}, {order} gave {itself}"
        )
    values = [_evaluate_measure(measure, a, b) for a in orders for b in orders]
    _require(all(abs(value) <= 1 for value in values), f"{measure!r}: values must lie within -1 and 1, not {values}")
    low, high = min(values), max(values)
    extreme = _is_close(identity, low) or _is_close(identity, high)
    _require(extreme, f"{measure!r}: no change gives {identity}, so {low} and {high} cannot both be changes")
    _require(not _is_close(low, high), f"{measure!r}: a reversed list must not count as unchanged")


def _check_spread_measure(measure: Any) -> None:
    for values in (np.array([0.2, 0.4, 0.1, 0.9, 0.5, 0.3, 0.8, 0.7]), np.full(8, 0.5)):
        found, backwards = _evaluate_measure(measure, values), _evaluate_measure(measure, values[::-1])
        _require(
            _is_close(found, backwards), f"{measure!r}: the order of values must not matter, {found} is not {backwards}"
        )


def _evaluate_measure(measure: Any, *arguments: Any) -> float:
    """Return the value of a measure, and check that it is finite, repeatable, and leaves its arguments unchanged."""
    before = deepcopy(arguments)
    call = measure.between if len(arguments) == 2 else measure.over
    try:
        value, again = float(call(*arguments)), float(call(*arguments))
    except Exception as error:
        raise AssertionError(f"{measure!r}: it must return a number for {arguments}, it raised {error!r}") from error
    kept = all(list(a) == list(b) for a, b in zip(arguments, before, strict=True))
    _require(kept, f"{measure!r}: it must not change its arguments")
    _require(bool(np.isfinite(value)), f"{measure!r}: its value for {arguments} must be finite, it is {value}")
    _require(
        value == again,
        f"{measure!r}: its value for {arguments} must be the same twice, it was {value} and then {again}",
    )
    return value


def check_registry(registry: Registry) -> None:
    """Check each row of a registry: a frozen dataclass with a docstring, whose spec builds an equal object.

    Parameters
    ----------
    registry
        The registry, such as `st.TRANSFORMS`.
    """
    for name in registry:
        label = f"{registry.kind} {name}"
        try:
            cls = registry.get_class(name)
        except Exception as error:
            raise AssertionError(f"{label}: {registry.rows[name]} must be importable, it raised {error!r}") from error
        _check_frozen_dataclass(cls, label)
        summary = registry.summary(name)
        own = cls.__doc__ is not None and not cls.__doc__.startswith(f"{cls.__name__}(")  # generated by `dataclass`
        _require(own and bool(summary), f"{label}: the class must have a docstring")
        _require(
            len(summary) <= MAX_SUMMARY_CHARS,
            f"{label}: the docstring's first line must have {MAX_SUMMARY_CHARS} characters at most",
        )
        if all(_is_optional(field) for field in dataclasses.fields(cls)):
            _check_spec_roundtrip(registry, label, cls())
    for pattern, name in registry.shorthands.items():
        _require(
            name in registry.rows, f"{registry.kind}: the shorthand {pattern!r} must stand for a row, not {name!r}"
        )


def _check_spec_roundtrip(registry: Registry, label: str, thing: Any) -> None:
    text = registry.spec(thing)
    try:
        built = registry.build(text)
    except ShaketableError as error:
        raise AssertionError(f"{label}: its text {text!r} must be readable: {error}") from error
    _require(built == thing, f"{label}: its text {text!r} must build an equal object, it built {built!r}")
    _require(
        registry.spec(built) == text, f"{label}: text to object to text must give the same text, {text!r} does not"
    )


def _check_frozen_dataclass(cls: type[Any], label: str) -> None:
    frozen = dataclasses.is_dataclass(cls) and cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
    _require(frozen, f"{label}: {cls.__name__} must be a frozen dataclass")


def _is_optional(field: dataclasses.Field[Any]) -> bool:
    """Return True if the field has a default or is not a constructor argument."""
    missing = dataclasses.MISSING
    return not field.init or field.default is not missing or field.default_factory is not missing


def _is_close(left: Any, right: Any) -> bool:
    """Return True if the numbers are equal within `SCORE_TOLERANCE`."""
    return np.shape(left) == np.shape(right) and bool(
        np.allclose(left, right, rtol=SCORE_TOLERANCE, atol=SCORE_TOLERANCE)
    )


def _has_same_scores(left: dict[str, float], right: dict[str, float]) -> bool:
    """Return True if both lists have the same documents in the same order with the same scores."""
    return list(left) == list(right) and _is_close(list(left.values()), list(right.values()))


def _require(holds: bool, law: str) -> None:
    """Raise an AssertionError if a rule does not hold, even under `python -O`."""
    if not holds:
        raise AssertionError(law)
