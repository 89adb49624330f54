"""The changes that a live page offers: transforms of queries and documents, and recipes for documents."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shaketable.attacks.runner import run_attacks
from shaketable.attacks.setup import build_attacker_knowledge, confirm_outcomes, open_recipe, open_target
from shaketable.core.attack_types import WhiteBoxRecipe
from shaketable.core.documents import MAX_CHANGED_CHARS, Doc
from shaketable.core.errors import BadInput, ShaketableError, UnknownName, explain_user_errors
from shaketable.core.protocols import Transform, TransformContext
from shaketable.core.registries import GOALS, RECIPES, TRANSFORMS
from shaketable.core.registry import Registry
from shaketable.core.results import Failure
from shaketable.datasets.languages import list_collection_translations
from shaketable.experiment import Experiment
from shaketable.tasks.document_attack import DocumentAttack
from shaketable.transforms.availability import find_unavailable_reason
from shaketable.transforms.categories import DOCUMENT
from shaketable.transforms.vary import make_rng

if TYPE_CHECKING:
    from shaketable.api.viewing.session import ViewSession

FIRST_DRAW = 0
OTHER_CATEGORY = "other"
"""The category of transforms that state none, such as those of installed packages."""


MAX_TRIALS, MAX_LIST_TRIALS = DocumentAttack().trials, DocumentAttack().list_trials
"""Texts that a recipe may try, and those against a ranker whose scores depend on the list, as in an audit."""


@dataclass(frozen=True)
class Change:
    """A transform or a recipe of a list: its name, its spec, its description, and the category of a transform."""

    name: str
    spec: str
    summary: str
    category: str = ""

    @property
    def for_queries(self) -> bool:
        """Whether it can change a query."""
        return self.category not in ("", DOCUMENT)


@dataclass(frozen=True)
class ChangeList:
    """The transforms and recipes that a live page offers, and the reasons why others are left out, by name."""

    transforms: Mapping[str, Change] = field(default_factory=dict)
    recipes: Mapping[str, Change] = field(default_factory=dict)
    unavailable: Mapping[str, str] = field(default_factory=dict)

    def get_transform(self, name: str) -> Change:
        """Return a transform of the list; raise an error with the reason if it is left out."""
        return self._get("transform", self.transforms, name)

    def get_recipe(self, name: str) -> Change:
        """Return a recipe of the list; raise an error with the reason if it is left out."""
        return self._get("recipe", self.recipes, name)

    def _get(self, kind: str, known: Mapping[str, Change], name: str) -> Change:
        if name in known:
            return known[name]
        if name in self.unavailable:
            raise BadInput(f"{name} is not available here: {self.unavailable[name]}")
        raise UnknownName(kind, name, known)


def list_changes(experiment: Experiment) -> ChangeList:
    """Return the transforms and recipes that a live page can run at once on this collection."""
    has_language = any(query.language for query in experiment.collection.queries.values())
    transforms: dict[str, Change] = {}
    recipes: dict[str, Change] = {}
    unavailable: dict[str, str] = {}
    for name in TRANSFORMS:
        if reason := _find_transform_reason(name, has_language):
            unavailable[name] = reason
        else:
            category = getattr(TRANSFORMS.build(name), "category", "") or OTHER_CATEGORY
            transforms[name] = Change(name, name, _summarize(TRANSFORMS, name), category)
    panel = {spec.partition("(")[0]: spec for spec in DocumentAttack().recipes}  # their strongest texts come first
    for name in RECIPES:
        if reason := _find_recipe_reason(name):
            unavailable[name] = reason
        else:
            recipes[name] = Change(name, panel.get(name, name), _summarize(RECIPES, name))
    return ChangeList(transforms, recipes, unavailable)


def _summarize(registry: Registry, name: str) -> str:
    """Return the description of a row without the marks of code."""
    return registry.summary(name).replace("`", "")


def _find_transform_reason(name: str, has_language: bool) -> str:
    """Return the reason why a transform is left out, or ""."""
    try:
        make = TRANSFORMS.get_class(name)
        if _list_required_fields(make):
            return "it needs parameters"
        if getattr(make, "needs_language", False) and not has_language:
            return "it needs the language of the query, which the collection does not state"
        return find_unavailable_reason(TRANSFORMS.build(name))
    except ShaketableError as error:
        return str(error)


def _find_recipe_reason(name: str) -> str:
    """Return the reason why a recipe is left out, or ""."""
    try:
        recipe = RECIPES.build(name)
    except ShaketableError as error:
        return str(error)
    command = f"run it with: shaketable attack --recipe {name}"
    if hasattr(recipe, "surrogate"):
        return f"it trains a surrogate model first, which takes minutes; {command}"
    if isinstance(recipe, WhiteBoxRecipe):
        return f"it needs the gradients of a neural ranker; {command}"
    return ""


def _list_required_fields(make: type[Any]) -> list[str]:
    fields = dataclasses.fields(make) if dataclasses.is_dataclass(make) else ()
    return [one.name for one in fields if one.init and one.default is one.default_factory]  # both are MISSING


def transform_query(session: ViewSession, name: str, query: str) -> str:
    """Return the query changed by a transform; raise `BadInput` if the transform does not apply."""
    change = session.changes.get_transform(name)
    if not change.for_queries:
        raise BadInput(f"{name} is a transform of documents and cannot change a query")
    return _transform(session, change, query, query)


def transform_document(session: ViewSession, name: str, query: str, doc: Doc) -> Doc:
    """Return the document with its body changed by a transform; raise `BadInput` if the transform does not apply."""
    body = _transform(session, session.changes.get_transform(name), doc.body, query)
    return dataclasses.replace(doc, body=body)


def _transform(session: ViewSession, change: Change, text: str, query: str) -> str:
    """Return the changed text; the random numbers depend on seed, transform and text alone."""
    transform: Transform = TRANSFORMS.build(change.spec)
    collection, qid = session.experiment.collection, session.find_qid(query)
    known = collection.queries.get(qid)
    context = TransformContext(
        query,
        known.description if known else "",
        session.experiment.vocabulary,
        known.language if known else "",
        list_collection_translations(collection).get(qid, {}) if known else {},
    )
    rng = make_rng(transform, session.experiment.seed, text, FIRST_DRAW)
    with explain_user_errors(f"the transform {change.name} failed"):
        changed = transform.apply(text, rng, context)
    if changed is None or changed == text:
        raise BadInput(f"the transform {change.name} does not apply to this text")
    if len(changed) > MAX_CHANGED_CHARS:
        raise BadInput(f"the transform {change.name} makes the text longer than {MAX_CHANGED_CHARS:,} characters")
    return changed


@dataclass(frozen=True)
class RecipeOutcome:
    """The text that a recipe found for a document, and its ranks for the attacked ranker."""

    doc: Doc
    rank_before: int
    rank_after: int
    trials: int


def run_recipe(session: ViewSession, name: str, ranker: str, query: str, docno: str, doc: Doc) -> RecipeOutcome:
    """Run a recipe on a document in the list of a ranker, with the trials that an audit gives it for one document."""
    experiment, qid = session.experiment, session.find_qid(query)
    recipe = RECIPES.build(session.changes.get_recipe(name).spec)
    listed = session.find_candidates(session.check_ranker(ranker), query)
    if not listed:
        raise BadInput(f"{ranker} ranks no document for this query, so there is no rank to improve")
    target = open_target(experiment, ranker, {}, {})
    target.read_lists({qid: session.build_slate(query, listed, docno, doc)})
    cases = target.build_cases([(docno, doc, [qid])], GOALS.build("promote"))
    if not cases:
        raise BadInput(f"{ranker} failed on this document, so it cannot be attacked")
    attacked = [qid] if qid in experiment.collection.queries else []
    knowledge = build_attacker_knowledge(experiment, ranker, attacked)
    budget = MAX_TRIALS if target.pointwise else MAX_LIST_TRIALS
    opened = open_recipe(experiment, ranker, recipe, knowledge)
    outcomes = run_attacks(opened, cases, target, budget=budget, seed=experiment.seed)
    (outcome,) = confirm_outcomes(target, cases, outcomes)
    if isinstance(outcome, Failure):
        raise BadInput(f"the recipe {name} failed: {outcome.reason}")
    return RecipeOutcome(outcome.doc, outcome.ranks_before[0], outcome.ranks_after[0], outcome.trials)
