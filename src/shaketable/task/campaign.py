"""A bench under attack: which documents are attacked in whose lists, and what the attacker knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from shaketable.attacks.knowledge import Knowledge, own_queries
from shaketable.attacks.target import Target
from shaketable.chance import draws_for
from shaketable.errors import BadInput
from shaketable.learners.plan import Plan
from shaketable.rankers.saved import Saved
from shaketable.score.road import Traits
from shaketable.text.language import language_tool
from shaketable.types import Attack, Collection, Doc, Listing, Recipe, Run, Slate, WhiteBox, ranking, unwatched

if TYPE_CHECKING:
    from shaketable.bench import Bench

FIRST = 11
"""The place where ranges begin: what stands among the first ten has little to gain."""
OWN_QUERIES = 200
"""Queries whose lists an attacker asks the target for, to learn a surrogate from."""

Range = tuple[int, int]


def ranges(count: int, depth: int) -> list[Range]:
    """The places from 11 to the end of the list in so many parts, as even as can be (paper 003: nine of ten places).

    >>> ranges(9, 100)[0], ranges(9, 100)[-1], ranges(2, 30)
    ((11, 20), (91, 100), [(11, 20), (21, 30)])
    """
    places = depth - FIRST + 1
    if count < 1 or places < count:
        raise BadInput(
            f"{count} ranges of places from {FIRST} on do not fit into lists of {depth} documents; "
            "ask for fewer targets, or for longer lists with --depth"
        )
    ends = [FIRST + places * part // count for part in range(count + 1)]
    return [(start, end - 1) for start, end in pairwise(ends)]


@dataclass(frozen=True)
class Aim:
    """A document to attack: the query, the document, and the range of places that it was drawn from."""

    qid: str
    docno: str
    doc: Doc
    range: Range


def aims(listing: Listing, grades: Mapping[str, int], parts: Sequence[Range], seed: int, any_grade: bool) -> list[Aim]:
    """One document from each range of a list, drawn at random from those of grade 0 and those that nobody judged.

    A range beyond the end of a list, or without such a document, has none.
    """
    drawn = []
    for start, end in parts:
        places = range(start - 1, min(end, len(listing.docnos)))
        fitting = [i for i in places if any_grade or grades.get(listing.docnos[i], 0) <= 0]
        if fitting:
            at = draws_for(seed, "target", listing.qid, start).choice(fitting)
            drawn.append(Aim(listing.qid, listing.docnos[at], listing.docs[at], (start, end)))
    return drawn


def open_target(bench: Bench, name: str, texts: Mapping[str, str], candidates: Run) -> Target:
    """A ranker of the bench as the target of attacks, by the road, on the candidates of these queries."""
    ranker, origin = bench.ranker(name), bench.origin(name)
    traits = Traits.of(ranker, name)
    quiet = replace(bench.road, watch=unwatched)  # the driver shows how far it is, in attacks
    target = Target(lambda slates: quiet.score(ranker, slates, name, origin), traits.pointwise, traits.noise)
    target.read(slates(bench, texts, candidates))
    return target


def slates(bench: Bench, texts: Mapping[str, str], candidates: Run) -> dict[str, tuple[Slate, list[str]]]:
    """query id -> its slate, best candidate first, and the docnos of its documents."""
    docnos = {qid: ranking(candidates[qid]) for qid in texts if candidates.get(qid)}
    return {
        qid: (Slate(texts[qid], tuple(bench.collection.docs[docno] for docno in some)), some)
        for qid, some in docnos.items()
    }


def knowledge(bench: Bench, name: str, attacked: Sequence[str], language: str = "light") -> Knowledge:
    """What an attacker of this ranker knows: the documents, and how it orders the lists of queries of his own."""
    whole = bench.collection

    @cache
    def asked() -> Collection:
        own = own_queries(whole, attacked, OWN_QUERIES, bench.seed)
        texts = {qid: query.text for qid, query in own.items()}
        run = bench.rerank(name, texts, bench.first_stage_finds(texts))
        orders = {qid: ranking(scores) for qid, scores in run.items()}
        places = {qid: {docno: float(-i) for i, docno in enumerate(order, 1)} for qid, order in orders.items()}
        return Collection(whole.name, whole.docs, own, candidates=places)

    def fit(learner: str, plan: Plan, collection: Collection) -> Saved:
        return bench.on(collection).fit(learner, tuple(collection.queries), plan=plan)

    return Knowledge(whole.docs, asked, fit, language_tool(language), bench.seed)


def opened(bench: Bench, name: str, recipe: Any, known: Knowledge) -> Attack:
    """A recipe against a ranker of the bench. One that needs the net itself is given it, if there is one."""
    if isinstance(recipe, WhiteBox):
        net = getattr(bench.ranker(name), "net", None)
        if net is None:
            raise BadInput(f"the ranker {name} has no net to open, so it has no gradients; attack it as a black box")
        return recipe.open_net(known, net)
    if not isinstance(recipe, Recipe):
        raise BadInput(f"{type(recipe).__name__} is no recipe: it has no method open")
    return recipe.open(known)
